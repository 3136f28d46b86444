/** Other routes of a process with an overloaded one: in virtual time. Where a pool is its limit, they lose nothing. */

import { setImmediate as turn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import type { Context, Postern } from 'postern';
import { createApp, expectFailures } from '../support/serve.js';
import { VirtualTime } from '../support/virtual-clock.js';

const time = vi.hoisted(() => ({ current: undefined as VirtualTime | undefined }));
vi.mock('../../src/base/clock.js', async (load) => {
  const { VirtualTime: Time } = await import('../support/virtual-clock.js');
  time.current = new Time();
  return time.current.replace(await load());
});
const clock = (): VirtualTime => time.current as VirtualTime;

/** Ten connections, each taken for 100 ms. */
function createPool(): () => Promise<string> {
  let free = 10;
  const queue: (() => void)[] = [];
  return async () => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => void queue.push(resolve));
    await clock().wait(100);
    const next = queue.shift();
    if (next === undefined) free += 1;
    else next();
    return 'done';
  };
}

const quick = async (): Promise<string> => (await clock().wait(20), 'quick');

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

test.for(Object.keys(SERVICES))('%s: an overloaded route costs the other no refusal and no latency', async (name) => {
  const { app, refusing } = (SERVICES[name] as () => { app: Postern; refusing: readonly Postern[] })();
  // The first requests in the queue of the second hop are late.
  for (const each of refusing) expectFailures(each, ...(each === app && refusing.length > 1 ? [503, 504] : [503]));
  const outcomes: Record<string, number[]> = {};
  const longest: Record<string, number> = {};
  const ask = async (to: Postern, path: string): Promise<void> => {
    const startMs = clock().nowMs;
    const { status } = await to.request(path, { headers: { 'x-envoy-expected-rq-timeout-ms': '1000' } });
    (outcomes[path] ??= []).push(status);
    longest[path] = Math.max(longest[path] ?? 0, clock().nowMs - startMs);
  };
  let open = 0;
  const send = (path: string): void => {
    open += 1;
    void ask(app, path).finally(() => (open -= 1));
  };
  const settle = async (): Promise<void> => {
    while (open > 0) {
      await new Promise((resolve) => void setTimeout(resolve, 1));
      await clock().pass(20);
    }
  };
  // Modules are loaded with the first requests, which takes real time.
  for (const each of [...refusing, app]) await ask(each, '/warm');
  // 500 requests a second for a pool that can do 100.
  for (let i = 0; i < 300; i += 1) {
    for (let each = 0; each < 5; each += 1) send('/work');
    if (i % 2 === 0) send('/other');
    if (i % 2 === 1 && name === 'priorities') send('/more');
    // The requests reach their handlers before time passes.
    for (let turns = 0; turns < 12; turns += 1) await turn();
    await clock().pass(10);
  }
  await settle();
  await clock().pass(3000);
  expect(outcomes['/work']).toContain(503);
  expect(outcomes['/other']?.filter((status) => status !== 200)).toEqual([]);
  expect(longest['/other']).toBeLessThanOrEqual(40);
  for (const each of refusing)
    expect(each.metrics.expose()).not.toMatch(/http_requests_refused_total\{route="\/other"/);
  if (name !== 'priorities') return;
  const refusedOf = (path: string): number => (outcomes[path] ?? []).filter((status) => status === 503).length;
  expect(refusedOf('/work')).toBeGreaterThan(10 * refusedOf('/more'));
});
