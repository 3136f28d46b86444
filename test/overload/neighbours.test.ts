/**
 * Other routes of a process with an overloaded one: in virtual time. Where a pool is its limit, they lose nothing.
 * Where they share it, their priorities decide.
 *
 * @module-tag slow
 */

import { setImmediate as turn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import type { Context, Postern } from 'postern';
import { MemoryClients } from '../support/memory-clients.js';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';
import { createPool, time } from '../support/virtual-clock.js';

vi.mock('../../src/base/clock.js', async (load) =>
  (await import('../support/virtual-clock.js')).time.replace(await load()),
);

/** Modules are loaded with the first requests, which takes real time. */
const warmUp = async (app: Postern): Promise<void> => void (await (await app.request('/warm')).text());

const quick = async (): Promise<string> => (await time.wait(20), 'quick');

/** Each creates a service with `/work`, which is overloaded, and `/other`; and says who refuses. */
const SERVICES: Readonly<Record<string, () => { app: Postern; refusing: readonly Postern[] }>> = {
  'mixed routes': () => {
    const app = createApp();
    app.get('/work', createPool());
    app.get('/other', quick);
    app.get('/warm', () => 'warm');
    return { app, refusing: [app] };
  },
  'two hops': () => {
    const back = createApp();
    back.get('/work', createPool());
    back.get('/other', quick);
    back.get('/warm', () => 'warm');
    const app = createApp({ services: { back } });
    for (const path of ['/work', '/other', '/warm'])
      app.get(path, async (ctx: Context) => (await ctx.service('back').get(path, { timeout: 1000 })).body);
    return { app, refusing: [back, app] };
  },
  priorities: () => {
    const app = createApp();
    const shared = createPool();
    app.get('/work', { priority: 'low' }, shared);
    app.get('/more', { priority: 'high' }, shared);
    app.get('/other', quick);
    app.get('/warm', () => 'warm');
    return { app, refusing: [app] };
  },
};

/** One request's status and, in ms of virtual time, when it was sent and how long it took. */
interface Outcome {
  readonly status: number;
  readonly sentMs: number;
  readonly tookMs: number;
}

/** Clients of an application whose requests have a deadline. */
function createClient(to: Postern, deadlineMs: number): {
  send: (...paths: readonly string[]) => void;
  pass: () => Promise<void>;
  settle: () => Promise<void>;
  of: (path: string) => readonly Outcome[];
} {
  const outcomes: Record<string, Outcome[]> = {};
  let open = 0;
  const clients = new MemoryClients(to);
  const headers = { 'x-envoy-expected-rq-timeout-ms': String(deadlineMs) };
  return {
    send(...paths) {
      open += paths.length;
      const sentMs = time.nowMs;
      for (const path of paths) clients.get(path, headers, (status) => {
        open -= 1;
        (outcomes[path] ??= []).push({ status, sentMs, tookMs: time.nowMs - sentMs });
      });
    },
    /** 10 ms. The requests reach their handlers before time passes. */
    async pass() {
      for (let turns = 0; turns < 12; turns += 1) await turn();
      await time.pass(10);
    },
    async settle() {
      while (open > 0) {
        await new Promise((resolve) => void setTimeout(resolve, 1));
        await time.pass(20);
      }
    },
    of: (path) => outcomes[path] ?? [],
  };
}

test.for(Object.keys(SERVICES))('%s: an overloaded route costs the other no refusal and no latency', async (name) => {
  const { app, refusing } = (SERVICES[name] as () => { app: Postern; refusing: readonly Postern[] })();
  // The first requests in the queue of the second hop are late.
  for (const each of refusing) expectFailures(each, ...(each === app && refusing.length > 1 ? [503, 504] : [503]));
  const { send, pass, settle, of } = createClient(app, 1000);
  for (const each of [...refusing, app]) await warmUp(each);
  // 500 requests a second for a pool that can do 100.
  for (let i = 0; i < 300; i += 1) {
    send('/work', '/work', '/work', '/work', '/work');
    if (i % 2 === 0) send('/other');
    if (i % 2 === 1 && name === 'priorities') send('/more');
    await pass();
  }
  await settle();
  await time.pass(3000);
  const statusesOf = (path: string): number[] => of(path).map(({ status }) => status);
  expect(statusesOf('/work')).toContain(503);
  expect(statusesOf('/other').filter((status) => status !== 200)).toEqual([]);
  expect(Math.max(...of('/other').map(({ tookMs }) => tookMs))).toBeLessThanOrEqual(40);
  for (const each of refusing)
    expect(each.metrics.expose()).not.toMatch(/http_requests_refused_total\{route="\/other"/);
  if (name !== 'priorities') return;
  const refusedOf = (path: string): number => statusesOf(path).filter((status) => status === 503).length;
  expect(refusedOf('/work')).toBeGreaterThan(10 * refusedOf('/more'));
});

test('of three routes that are overloaded, low is refused before normal, and normal before high', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 503);
  const shared = createPool(4, 40);
  const priorities = ['low', 'normal', 'high'] as const;
  for (const priority of priorities) app.get(`/${priority}`, { priority }, shared);
  const paths = priorities.map((priority) => `/${priority}`);
  const { send, pass, settle, of } = createClient(app, 500);
  app.get('/warm', () => 'warm');
  await warmUp(app);
  const startMs = time.nowMs;
  // Each route has 60 requests a second; the pool can do 100.
  for (let i = 0; i < 1000; i += 1) {
    if (i % 5 !== 1 && i % 5 !== 3) send(...paths);
    await pass();
  }
  await settle();
  const isCounted = ({ status, sentMs }: Outcome): boolean => status === 200 && sentMs > startMs + 4000;
  const [low = 0, normal = 0, high = 0] = paths.map((path) => of(path).filter(isCounted).length / 6);
  expect(high).toBeGreaterThan(57);
  expect(normal).toBeGreaterThan(36);
  expect(low).toBeLessThan(4);
  // In the middle of the episodes of all three.
  await app.close();
  const lines = logger.entries.filter(({ message }) => message?.includes('overloaded'));
  expect(lines.map(({ object, message }) => `${object['route']} ${message?.split(':')[0]}`).sort()).toEqual(
    [...paths].sort().flatMap((path) => [`GET ${path} no longer overloaded`, `GET ${path} overloaded`]),
  );
});
