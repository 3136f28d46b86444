/**
 * The work that the services of the overload scenarios do, the same for every framework.
 */

import { setTimeout as wait } from 'node:timers/promises';

/** Connections of the pool, and how long each request keeps one, in ms: 100 requests a second. */
const POOL_SIZE = 10;
const POOL_MS = 100;
/** CPU time of a request, in ms: 200 requests a second, less what HTTP takes. */
const BURN_MS = 5;

/** A pool of connections whose queue knows nothing of clients that left, as most pools. */
export function createPool() {
  let free = POOL_SIZE;
  /** @type {(() => void)[]} */
  const queue = [];
  return async () => {
    if (free > 0) free -= 1;
    else await new Promise((resolve) => queue.push(() => resolve(undefined)));
    await wait(POOL_MS);
    const next = queue.shift();
    if (next === undefined) free += 1;
    else next();
    return { rows: 1 };
  };
}

/** Counts CPU time, not the time on the clock: on a busy machine, a process that waits for its turn burns nothing. */
export function burn() {
  const before = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(before);
    if (user + system >= BURN_MS * 1000) return { burnt: BURN_MS };
  }
}

const startedAt = performance.now();
const elapsed = () => performance.now() - startedAt;
const between = (from, to) => from + Math.random() * (to - from);
/** A route that waits as long as the function says, in ms. */
const waits = (ms) => ({ '/work': { handle: () => wait(ms(), { rows: 1 }) } });

async function* ticks() {
  for (;;) {
    yield 'data: tick\n\n';
    await wait(500);
  }
}

/** Stops the process once, 4 s after its start, as a breakpoint does. */
function stopOnce() {
  setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5000), 4000).unref();
  return waits(() => between(20, 50));
}

/**
 * The routes of a service, by path; `call` asks the next service.
 *
 * @typedef {{ handle: (call: Call, ctx: import('postern').Context) => unknown, priority?: 'low' | 'high' }} Route
 * @typedef {(retries: number) => Promise<unknown>} Call
 * @type {Record<string, () => Record<string, Route>>}
 */
export const KINDS = {
  pool: () => ({ '/work': { handle: createPool() } }),
  cpu: () => ({ '/work': { handle: burn } }),
  mixed: () => ({ '/work': { handle: createPool() }, '/other': { handle: () => ({ hello: 'world' }) } }),
  priorities: () => {
    const pool = createPool();
    return { '/work': { handle: pool, priority: 'low' }, '/other': { handle: pool, priority: 'high' } };
  },
  timer: () => waits(() => between(40, 60)),
  report: () => waits(() => between(2900, 3100)),
  search: () => waits(() => between(50, 400)),
  bimodal: () => waits(() => (Math.random() < 0.9 ? 10 : between(4000, 8000))),
  slowStart: () => waits(() => Math.max(0, 3000 - elapsed()) + 50),
  poll: () => waits(() => (Math.random() < 0.1 ? 5 : 10_000)),
  events: () => ({ '/work': { handle: ticks } }),
  upload: () => ({ '/work': { handle: async (_, ctx) => ({ length: (await ctx.bytes()).length }) } }),
  large: () => ({ '/work': { handle: () => wait(10, Buffer.alloc(500_000)) } }),
  dependency: () => waits(() => (elapsed() < 4000 ? between(30, 60) : between(2900, 3300))),
  stop: stopOnce,
  hop: () => ({ '/work': { handle: (call) => call(0) } }),
  retrying: () => ({ '/work': { handle: (call) => call(2) } }),
};
