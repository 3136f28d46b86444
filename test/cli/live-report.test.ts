/**
 * The report that the server of `postern live` has for its page: the edges of the mesh, and what changed.
 *
 * @module-tag package
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { COMMAND } from '../support/command.js';
import { startFakeMesh } from '../support/fake-mesh.js';
import { askLive, startLive, type Report } from '../support/live-page.js';

/** The report of a mesh whose first service is asked. */
async function report(edges: Record<string, readonly string[]>, depth: number): Promise<Report> {
  const { url } = await startLive(await startFakeMesh(edges), '--depth', String(depth));
  return askLive(url);
}

test('it lists every edge once, nearest to the asked service, what is below a service at its first place', async () => {
  const { edges } = await report({ a: ['b', 'c'], b: ['d'], c: ['d', 'b'], d: ['a', 'd'] }, 5);
  expect(edges.map(({ from, to, level }) => `${'  '.repeat(level)}${from ?? ''}>${to}`)).toEqual([
    '>a', '  a>b', '    b>d', '      d>a', '      d>d', '  a>c', '    c>d', '    c>b',
  ]);
});

test('of a dense mesh it is as long as it has edges, not ways, and ends where nobody could read on', async () => {
  const names = [...'abcdefgh'];
  expect((await report(Object.fromEntries(names.map((name) => [name, names])), 4)).edges).toHaveLength(1 + 64);
  const many = await report({ a: Array.from({ length: 3_000 }, (_, index) => `s${index}`) }, 1);
  expect([many.edges.length, many.omitted]).toEqual([1000, 2001]);
});

test('a name in it has at most 200 characters, also if each of them takes two units of UTF-16', async () => {
  const { edges } = await report({ a: ['x'.repeat(1_000), '😀'.repeat(1_000), '😀'.repeat(200)] }, 1);
  expect(edges.map(({ to }) => Array.from(to).length)).toEqual([1, 200, 200, 200]);
  expect(edges.map(({ to }) => to.endsWith('…'))).toEqual([false, true, true, false]);
});

/** Looks at a mesh again and again. */
async function follow(edges: Record<string, readonly string[]>): Promise<{
  readonly mesh: Awaited<ReturnType<typeof startFakeMesh>>;
  /** @returns the report of the last look, and the changes in it alone */
  look(times?: number): Promise<Report & { readonly log: readonly string[] }>;
}> {
  const mesh = await startFakeMesh(edges);
  const { url } = await startLive(mesh);
  let known = (await askLive(url)).changes.length;
  const look = async (times = 1): Promise<Report & { readonly log: readonly string[] }> => {
    for (let count = 1; count < times; count += 1) await askLive(url);
    const last = await askLive(url);
    const log = last.changes.slice(known).map(({ text }) => text);
    known = last.changes.length;
    return { ...last, log };
  };
  return { mesh, look };
}

test('an edge that vanishes keeps its place, and leaves with the last of its answers', async () => {
  const { mesh, look } = await follow({ a: ['b', 'c'] });
  mesh.edges['a'] = ['c'];
  const { tracks, log } = await look();
  expect(log).toEqual(['a → b is out of sight']);
  expect(tracks.map(({ edge, gone }) => [edge.to, gone])).toEqual([['a', false], ['b', true], ['c', false]]);
  expect((await look(60)).tracks.map(({ edge }) => edge.to)).toEqual(['a', 'c']);
});

test('an edge that vanished stays as long as the service that would tell of it is down', async () => {
  const { mesh, look } = await follow({ a: ['b', 'c'] });
  mesh.down.add('a');
  expect((await look(61)).tracks.map(({ edge, gone }) => [edge.to, gone]))
    .toEqual([['a', false], ['b', true], ['c', true]]);
});

test('an edge that vanished keeps its place when the edge before it leaves for good', async () => {
  const { mesh, look } = await follow({ a: ['b', 'c', 'd'] });
  mesh.edges['a'] = ['c', 'd'];
  await look();
  mesh.edges['a'] = ['d'];
  expect((await look(59)).tracks.map(({ edge }) => edge.to)).toEqual(['a', 'c', 'd']);
  expect((await look()).tracks.map(({ edge }) => edge.to)).toEqual(['a', 'd']);
});

test('since when is since the status is what it is; a reason that changes alone changes nothing', async () => {
  const { mesh, look } = await follow({ a: ['b'] });
  const logs: (readonly string[])[] = [];
  const sinces: (number | undefined)[] = [];
  const steps = [[200, ''], [503, 'down'], [503, 'still down'], [504, 'down'], [200, '']] as const;
  for (const failure of steps) {
    mesh.failures.set('b', failure);
    const { tracks, log, changes } = await look();
    logs.push(log);
    sinces.push(tracks[1]?.since);
    if (log.length > 0) expect(tracks[1]?.since).toBe(changes.at(-1)?.at);
  }
  expect(logs).toEqual([
    [], ['a → b fails: 503 down'], [], ['a → b fails: 504 down'], [expect.stringMatching(/^a → b answers again after \d+ s$/)],
  ]);
  expect(sinces[2]).toBe(sinces[1]);
});

test('its page is served although the package is gone from the disk', async () => {
  const mesh = await startFakeMesh({ a: [] });
  const folder = mkdtempSync(join(tmpdir(), 'postern-live-'));
  const dist = dirname(COMMAND);
  cpSync(dist, join(folder, 'dist'), { recursive: true });
  cpSync(join(dist, '../package.json'), join(folder, 'package.json'));
  const child = spawn(process.execPath, [join(folder, 'dist/cli.js'), 'live', mesh.url], { stdio: 'pipe' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [text] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  rmSync(folder, { recursive: true });
  const response = await fetch(/^http:\S+$/m.exec(text)?.[0] ?? '');
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('startPage(')]);
});
