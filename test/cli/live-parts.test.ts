/**
 * What the live page is made of, apart from the browser: reports, what changed, sparklines and the layout of the graph.
 */

import { expect, test } from 'vitest';
import { toReport } from '../../src/cli/live-command.js';
import { layOut, type Link } from '../../src/live/layout.js';
import type { MeshEdge } from '../../src/live/track.js';
import { drawSparkline } from '../../src/live/table.js';
import { describeChanges, failing, follow, type Track } from '../../src/live/track.js';
import type { PingEntry } from '../../src/monitor/ping-document.js';
import { createRandom } from '../support/random.js';

/** A mesh as its first service tells of it. */
function answerOf(edges: Record<string, readonly string[]>, service: string, depth: number): PingEntry {
  const below = depth === 0 ? [] : (edges[service] ?? []);
  const response =
    below.length === 0 ? 'pong' : Object.fromEntries(below.map((to) => [to, answerOf(edges, to, depth - 1)]));
  return { response: { response, process_time: '1 ms' }, status_code: 200, request_time: '3 ms' };
}

const listed = (edges: Record<string, readonly string[]>, depth: number): string[] =>
  toReport('a', answerOf(edges, 'a', depth)).edges.map(
    ({ from, to, level }) => `${'  '.repeat(level)}${from ?? ''}>${to}`,
  );

test('a report lists every edge once, nearest to the asked service, what is below a service at its first place', () => {
  expect(listed({ a: ['b', 'c'], b: ['d'], c: ['d', 'b'], d: ['a', 'd'] }, 5)).toEqual([
    '>a', '  a>b', '    b>d', '      d>a', '      d>d', '  a>c', '    c>d', '    c>b',
  ]);
});

test('a report of a dense mesh is as long as it has edges, not ways, and ends where nobody could read on', () => {
  const names = Array.from({ length: 8 }, (_, index) => 'abcdefgh'[index] ?? '');
  expect(listed(Object.fromEntries(names.map((name) => [name, names])), 5)).toHaveLength(1 + 64);
  const many = toReport('a', answerOf({ a: Array.from({ length: 3_000 }, (_, index) => `s${index}`) }, 'a', 1));
  expect([many.edges.length, many.omitted]).toEqual([1000, 2001]);
});

test('a name in a report has at most 200 characters, also if each of them takes two units of UTF-16', () => {
  const { edges } = toReport('a', answerOf({ a: ['x'.repeat(1_000), '😀'.repeat(1_000), '😀'.repeat(200)] }, 'a', 1));
  expect(edges.map(({ to }) => Array.from(to).length)).toEqual([1, 200, 200, 200]);
  expect(edges.map(({ to }) => to.endsWith('…'))).toEqual([false, true, true, false]);
});

const edge = (from: string | null, to: string, status = 200): MeshEdge =>
  ({ from, to, level: from === null ? 0 : 1, status, ms: 3, reason: status === 200 ? '' : 'down' });

/** Follows reports that come every two seconds; gives what the log says of each. */
function followAll(...reports: MeshEdge[][]): { tracks: readonly Track[]; log: string[][] } {
  let tracks: readonly Track[] = [];
  const log = reports.map((edges, index) => {
    const followed = follow(tracks, edges, index * 2000);
    tracks = followed.tracks;
    return describeChanges(followed.changes).map(({ text }) => text);
  });
  return { tracks, log };
}

test('an edge that vanishes keeps its place, counts no more, and leaves with the last of its answers', () => {
  const all = [edge(null, 'a'), edge('a', 'b'), edge('a', 'c')];
  const without = [edge(null, 'a'), edge('a', 'c')];
  const { tracks, log } = followAll(all, without);
  expect(log[1]).toEqual(['a → b is out of sight']);
  expect(tracks.map((track) => [track.edge.to, track.gone])).toEqual([['a', false], ['b', true], ['c', false]]);
  expect(failing(followAll([edge(null, 'a'), edge('a', 'b', 503)], [edge(null, 'a')]).tracks)).toEqual([]);
  expect(followAll(all, ...Array.from({ length: 60 }, () => without)).tracks).toHaveLength(2);
  // As long as the service that would tell of it is down, too, nobody knows.
  const silent = [edge(null, 'a', 503)];
  expect(followAll(all, ...Array.from({ length: 60 }, () => silent)).tracks).toHaveLength(3);
});

test('an edge that vanished keeps its place when the edge before it leaves for good', () => {
  const all = [edge(null, 'a'), edge('a', 'b'), edge('a', 'c'), edge('a', 'd')];
  const [asked, , third, last] = all as [MeshEdge, MeshEdge, MeshEdge, MeshEdge];
  const reports = [all, [asked, third, last], ...Array.from({ length: 59 }, () => [asked, last])];
  expect(followAll(...reports).tracks.map((track) => track.edge.to)).toEqual(['a', 'c', 'd']);
  expect(followAll(...reports, [asked, last]).tracks.map((track) => track.edge.to)).toEqual(['a', 'd']);
});

test('since when is since the status is what it is; a reason that changes alone changes nothing', () => {
  const { tracks, log } = followAll(
    [edge(null, 'a')],
    [edge(null, 'a')],
    [edge(null, 'a', 503)],
    [{ ...edge(null, 'a', 503), reason: 'still down' }],
    [edge(null, 'a', 504)],
    [edge(null, 'a')],
  );
  expect(log.slice(1)).toEqual([[], ['a fails: 503 down'], [], ['a fails: 504 down'], ['a answers again after 2 s']]);
  expect(tracks[0]?.since).toBe(10_000);
});

test('a sparkline has the last 60 at its right end, failures in full height, and no slow answer flattens the others', () => {
  const history = [
    ...Array.from({ length: 20 }, () => ({ ms: 40, failed: false })),
    { ms: 9_000, failed: false },
    null,
    { ms: 1, failed: true },
  ];
  const { answered, failed } = drawSparkline(history);
  expect(failed).toBe('M177 28v-28h2v28z');
  expect(answered.match(/M/g)).toHaveLength(21);
  const heights = [...answered.matchAll(/v-([\d.]+)h/g)].map(([, height]) => Number(height));
  expect(heights.at(-1)).toBe(28);
  expect(heights[0]).toBeGreaterThan(14);
  expect(drawSparkline([])).toEqual({ answered: '', failed: '' });
});

const links = (...pairs: string[]): Link[] =>
  pairs.map((pair) => ({ key: pair, from: pair[0] ?? '', to: pair[1] ?? '' }));
const WIDTH = 80;

test('a graph has a column for each length of way, and edges that lead back run below everything', () => {
  const { nodes, edges, height } = layOut(['a', 'b', 'c', 'd'], links('ab', 'bc', 'ac', 'cd', 'da', 'dd'), () => WIDTH);
  const columns = ['a', 'b', 'c', 'd'].map((name) => nodes.get(name)?.x ?? 0);
  for (const [index, x] of columns.slice(1).entries()) expect(x - (columns[index] ?? 0)).toBeGreaterThan(WIDTH + 60);
  const bottom = Math.max(...[...nodes.values()].map(({ y }) => y + 17));
  for (const key of ['da', 'dd']) expect(edges.get(key)?.label.y).toBeGreaterThan(bottom);
  expect(edges.get('da')?.label.y).not.toBe(edges.get('dd')?.label.y);
  for (const { label } of edges.values()) expect(label.y).toBeLessThan(height);
});

test('an edge that skips a layer keeps clear of the service in it', () => {
  const { nodes, edges } = layOut(['a', 'b', 'c'], links('ab', 'bc', 'ac'), () => WIDTH);
  const { x = 0, y = 0 } = nodes.get('b') ?? {};
  const passing = [...(edges.get('ac')?.path.matchAll(/ (\d+)H(\d+)/g) ?? [])].map(([, at, to]) => ({
    y: Number(at),
    x: Number(to),
  }));
  expect(passing).toEqual([{ x: x + WIDTH, y: expect.any(Number) }]);
  expect(Math.abs((passing[0]?.y ?? 0) - y)).toBeGreaterThan(22);
});

test('no two services of any graph overlap, and every edge is drawn', () => {
  const random = createRandom(7);
  for (let round = 0; round < 200; round += 1) {
    const names = Array.from({ length: 2 + random.int(28) }, (_, index) => `s${index}`);
    const all = names.flatMap((from) =>
      names.filter(() => random.int(names.length) < 2).map((to): Link => ({ key: `${from} ${to}`, from, to })),
    );
    const { nodes, edges, width, height } = layOut(names, all, (name) => 40 + name.length * 10);
    expect(edges.size).toBe(all.length);
    const boxes = [...nodes.values()];
    expect(boxes).toHaveLength(names.length);
    for (const [index, one] of boxes.entries()) {
      expect(one.x >= 0 && one.x + one.width <= width && one.y - 17 >= 0 && one.y + 17 <= height).toBe(true);
      for (const other of boxes.slice(index + 1))
        expect(one.x === other.x && Math.abs(one.y - other.y) < 40, `${round}`).toBe(false);
    }
  }
});
