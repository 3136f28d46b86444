/** Takes the place of `src/base/clock.ts`: time and chance are those of a simulated world. */

import { AsyncResource } from 'node:async_hooks';
import type { Random } from './random.js';

const EPOCH = Date.UTC(2026, 0, 1);

/** A world whose time moves from event to event. */
export interface SimulatedWorld {
  readonly now: number;
  readonly random: Random;
  at(at: number, run: () => void): { isCancelled: boolean };
}

type Callback = (...args: unknown[]) => void;
type Clock = typeof import('../../src/base/clock.js');
/** The functions of the clock, with timers of another type. */
export type SimulatedClock = { readonly [Name in keyof Clock]: unknown };

/** @param current returns the world that runs: a program may run one after another */
export function clockOf(current: () => SimulatedWorld): SimulatedClock {
  /** What `setTimeout` and the like return. It keeps the async context, as a timer of Node.js does. */
  class Timer extends AsyncResource {
    #event: { isCancelled: boolean } | undefined;

    constructor(readonly run: () => void, readonly ms: number) {
      super('Timer');
      this.refresh();
    }

    refresh(): this {
      this.close();
      const world = current();
      this.#event = world.at(world.now + this.ms, () => this.runInAsyncScope(this.run));
      return this;
    }

    close(): void {
      if (this.#event !== undefined) this.#event.isCancelled = true;
    }

    ref(): this { return this; }
    unref(): this { return this; }
  }

  const stop = (timer?: Timer): void => timer?.close();
  const randomHex = (bytes: number): string =>
    Array.from({ length: 2 * bytes }, () => current().random.int(16).toString(16)).join('');
  return {
    setTimeout: (run: Callback, ms = 1, ...args: unknown[]) => new Timer(() => run(...args), Math.max(ms, 1)),
    setInterval: (run: Callback, ms = 1, ...args: unknown[]) => {
      const timer = new Timer(() => run(timer.refresh(), ...args), Math.max(ms, 1));
      return timer;
    },
    setImmediate: (run: Callback, ...args: unknown[]) => new Timer(() => run(...args), 0),
    clearTimeout: stop,
    clearInterval: stop,
    clearImmediate: stop,
    nextTick: process.nextTick,
    Date: class extends Date {
      constructor(...args: [] | [number | string | Date]) {
        super(args[0] ?? EPOCH + current().now);
      }
      static override now(): number {
        return EPOCH + current().now;
      }
    },
    monotonicNow: () => current().now,
    elapsedSince: (startedMs: number) => `${Math.floor(current().now - startedMs)} ms`,
    monotonicOrigin: () => EPOCH,
    random: () => current().random.next(),
    backoffMs: (attempt: number, firstMs: number, mostMs: number) =>
      Math.min(mostMs, firstMs * 2 ** (attempt - 1)) * (0.5 + current().random.next() / 2),
    randomHex,
    randomUuid: () => randomHex(16),
  };
}
