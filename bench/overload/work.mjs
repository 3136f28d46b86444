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

/**
 * The routes of a service, by path; `call` asks the next service.
 *
 * @typedef {{ handle: (call: Call) => unknown, priority?: 'low' | 'high' }} Route
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
  timer: () => ({ '/work': { handle: () => wait(50, { rows: 1 }) } }),
  report: () => ({ '/work': { handle: () => wait(3000, { rows: 1 }) } }),
  hop: () => ({ '/work': { handle: (call) => call(0) } }),
  retrying: () => ({ '/work': { handle: (call) => call(2) } }),
};
