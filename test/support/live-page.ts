/** `postern live` for tests: the command, what its server reports, and its page with reports of the test's own. */

import { once } from 'node:events';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { startCommand } from './command.js';
import type { FakeMesh } from './fake-mesh.js';

/** Starts the command, and waits for the address of the page. */
export async function startLive(
  mesh: FakeMesh,
  ...args: string[]
): Promise<{ url: string; stop: () => Promise<void> }> {
  // The settings of services in the environment are not those of the command.
  const child = startCommand(['live', mesh.url, ...args], {
    env: {
      SERVICE_CONNECTIONS: 'a=nonsense',
      SERVICE_URL_TEMPLATE: 'nonsense',
      MONITOR_PORT: '1',
      LOG_LEVEL: 'nonsense',
    },
  });
  const [text] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  const [url = ''] = /^http:\S+$/m.exec(text) ?? [];
  const stop = async (): Promise<void> => {
    const closed = once(child, 'close');
    child.kill('SIGTERM');
    expect(await closed).toEqual([0, null]);
  };
  return { url, stop };
}

/** An edge in a report. */
export interface Edge {
  readonly from: string | null;
  readonly to: string;
  readonly level: number;
  readonly status: number;
  readonly ms: number | null;
  readonly reason: string;
}

/** An edge as the page knows it. */
interface Track {
  readonly key: string;
  readonly edge: Edge;
  readonly history: readonly ({ readonly ms: number | null; readonly failed: boolean } | null)[];
  readonly since: number;
  readonly gone: boolean;
}

/** What the page asks its server for. */
export interface Report {
  readonly service: string;
  readonly edges: readonly Edge[];
  readonly omitted: number;
  readonly tracks: readonly Track[];
  readonly changes: readonly { readonly kind: string; readonly text: string; readonly at: number }[];
  readonly since: number;
  readonly failures: null;
}

/** Has the server look at the mesh once more. */
export async function askLive(url: string): Promise<Report> {
  return (await (await fetch(`${url}mesh.json`)).json()) as Report;
}

/** A report of a mesh that is just seen for the first time. @param names the asked service first */
export function reportOf(names: readonly string[], links: readonly (readonly [from: string, to: string])[]): Report {
  const usual = { level: 0, status: 200, ms: 3, reason: '' };
  const edges = [[null, names[0] ?? ''] as const, ...links].map(([from, to]): Edge => ({ ...usual, from, to }));
  const history = [{ ms: 3, failed: false }];
  const tracks = edges.map((edge): Track => {
    const key = `${edge.from ?? ''}>${edge.to}`;
    return { key, edge, history, since: 0, gone: false };
  });
  return { service: names[0] ?? '', edges, omitted: 0, tracks, changes: [], since: 0, failures: null };
}

/** Where the graph of a page has its services and its edges. */
export interface Drawn {
  readonly width: number;
  readonly height: number;
  /** By name; `y` is the middle. */
  readonly nodes: Readonly<Record<string, { readonly x: number; readonly y: number; readonly width: number }>>;
  /** By `from>to`. */
  readonly edges: Readonly<Record<string, { readonly path: string; readonly labelY: number }>>;
}

const DRAWN = `(() => {
  const numbers = (text) => text.match(/-?[\\d.]+/g).map(Number);
  const [, , width, height] = numbers(document.getElementById('graph').getAttribute('viewBox'));
  const nodes = {};
  for (const node of document.querySelectorAll('#graph .node')) {
    const [x, y] = numbers(node.getAttribute('transform'));
    nodes[node.dataset.name] = { x, y, width: Number(node.querySelector('rect').getAttribute('width')) };
  }
  const edges = {};
  for (const line of document.querySelectorAll('#graph .edge .line'))
    edges[line.closest('.edge').dataset.key] = { path: line.getAttribute('d'), labelY: 0 };
  for (const text of document.querySelectorAll('#graph .edge text'))
    edges[text.closest('.edge').dataset.key].labelY = Number(text.getAttribute('y')) - 5;
  return { width, height, nodes, edges };
})()`;

/** Has a page of `postern live` show a report in place of the next answer of its server, and reads its graph. */
export async function showReport(page: Page, report: Report): Promise<Drawn> {
  const all = '**/mesh.json';
  await page.unroute(all);
  await page.route(all, (route) => route.fulfill({ json: report }));
  const answered = page.waitForResponse(all);
  // A page that is shown again asks at once.
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
  await (await answered).finished();
  const keys = report.tracks.slice(1).map(({ key }) => key).sort();
  const shown = `JSON.stringify(Array.from(document.querySelectorAll('#graph .edge .line'), (line) => line.closest('.edge').dataset.key).sort())`;
  await expect.poll(() => page.evaluate(shown)).toBe(JSON.stringify(keys));
  return (await page.evaluate(DRAWN)) as Drawn;
}
