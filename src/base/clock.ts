/*
 * The only source of time and chance.
 *
 * Postern takes these functions when it is loaded. So fake timers (Vitest, Jest, `node:test`) do not affect an
 * application, and a program that replaces the globals before it loads Postern runs it in virtual time.
 */

import { builtin } from './builtin.js';

const { hrtime } = process;
export const setTimeout: typeof globalThis.setTimeout = globalThis.setTimeout;
export const clearTimeout: typeof globalThis.clearTimeout = globalThis.clearTimeout;
export const setInterval: typeof globalThis.setInterval = globalThis.setInterval;
export const clearInterval: typeof globalThis.clearInterval = globalThis.clearInterval;
export const setImmediate: typeof globalThis.setImmediate = globalThis.setImmediate;
export const clearImmediate: typeof globalThis.clearImmediate = globalThis.clearImmediate;
export const nextTick: typeof process.nextTick = process.nextTick;
export const Date: DateConstructor = globalThis.Date;

/** Milliseconds on a monotonic clock; only differences count. `performance.now` would load node:perf_hooks. */
export function monotonicNow(): number {
  const time = hrtime();
  return time[0] * 1e3 + time[1] / 1e6;
}

/** When {@link monotonicNow} was 0, in ms since the Unix epoch; more precise than `Date`. */
export function monotonicOrigin(): number {
  const { performance } = builtin('node:perf_hooks');
  return performance.timeOrigin + performance.now() - monotonicNow();
}

/** The time since a moment on that clock, as documents have it: `3 ms`. */
export function elapsedSince(startedAtMs: number): string {
  return `${Math.floor(monotonicNow() - startedAtMs)} ms`;
}

/** A number from 0 up to, but not including, 1. */
export const random: () => number = Math.random;

/**
 * The pause before another attempt: `firstMs`, doubled with each attempt that failed, up to `mostMs`. Half of it is
 * random, so that callers that failed together do not come back together.
 *
 * @param attempt the number of the attempt that failed, from 1
 */
export function backoffMs(attempt: number, firstMs: number, mostMs: number): number {
  return Math.min(mostMs, firstMs * 2 ** (attempt - 1)) * (0.5 + random() / 2);
}

/** Random bytes that are not used yet: to ask node:crypto for a few takes as long as for thousands. */
const stock = { bytes: Buffer.alloc(4096), used: 4096 };

/** @returns random bytes in hexadecimal */
export function randomHex(count: 8 | 16): string {
  if (stock.used + count > stock.bytes.length) {
    builtin('node:crypto').randomFillSync(stock.bytes);
    stock.used = 0;
  }
  stock.used += count;
  return stock.bytes.toString('hex', stock.used - count, stock.used);
}

/** @returns a random UUID, version 4 */
export function randomUuid(): string {
  return builtin('node:crypto').randomUUID();
}
