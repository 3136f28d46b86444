/**
 * Virtual time for Postern's timers: what would take an hour takes as long as its computation.
 *
 * Postern takes its timer functions when it is loaded (`src/base/clock.ts`), so it has to be loaded by `inVirtualTime`.
 */

import { AsyncResource } from 'node:async_hooks';

const nativeImmediate = setImmediate;

class VirtualTimer {
  #at = -1;
  readonly #run: () => void;

  constructor(
    readonly time: VirtualTime,
    callback: () => void,
    readonly ms: number,
    readonly repeats: boolean,
  ) {
    // A real timer runs its callback in the async context in which it was set.
    const context = new AsyncResource('VirtualTimer');
    this.#run = () => context.runInAsyncScope(callback);
    this.refresh();
  }

  fire(): void {
    if (this.#at === -1) return;
    this.#at = -1;
    if (this.repeats) this.refresh();
    this.time.activity += 1;
    this.#run();
  }

  refresh(): this {
    this.close();
    this.#at = this.time.now + this.ms;
    this.time.add(this, this.#at);
    return this;
  }

  close(): this {
    if (this.#at !== -1) this.time.remove(this, this.#at);
    this.#at = -1;
    return this;
  }

  ref(): this { return this; }
  unref(): this { return this; }
  hasRef(): boolean { return false; }
  [Symbol.toPrimitive](): number { return 0; }
}

/** A clock that moves only when everything that is due has been done. */
export class VirtualTime {
  /** In ms since the beginning. */
  now = 0;
  /** Counts whatever happens; time moves on when it has stopped to grow. */
  activity = 0;
  readonly #timers = new Map<number, Set<VirtualTimer>>();

  add(timer: VirtualTimer, at: number): void {
    const due = this.#timers.get(at);
    if (due === undefined) this.#timers.set(at, new Set([timer]));
    else due.add(timer);
  }

  remove(timer: VirtualTimer, at: number): void {
    this.#timers.get(at)?.delete(timer);
  }

  readonly set = (callback: (...args: unknown[]) => void, ms = 1, ...args: unknown[]): VirtualTimer =>
    new VirtualTimer(this, () => callback(...args), Math.max(1, Math.trunc(ms)), false);
  readonly repeat = (callback: (...args: unknown[]) => void, ms = 1, ...args: unknown[]): VirtualTimer =>
    new VirtualTimer(this, () => callback(...args), Math.max(1, Math.trunc(ms)), true);
  readonly clear = (timer?: VirtualTimer): void => void timer?.close();
  readonly sleep = (ms: number): Promise<void> => new Promise((resolve) => this.set(() => resolve(), ms));

  /** Runs whatever is due up to a time. */
  async runUntil(end: number): Promise<void> {
    for (;;) {
      await this.#settle();
      let next = Infinity;
      for (const [at, due] of this.#timers) {
        if (due.size === 0) this.#timers.delete(at);
        else if (at < next) next = at;
      }
      if (next > end) break;
      this.now = next;
      const due = this.#timers.get(next) as Set<VirtualTimer>;
      this.#timers.delete(next);
      // Each in a task of its own, as packets and timers of different connections are.
      for (const timer of due) nativeImmediate(() => timer.fire());
    }
    this.now = end;
  }

  /** Resolves when nothing has happened for some turns of the event loop. */
  async #settle(): Promise<void> {
    for (let quiet = 0, seen = -1; quiet < 3; ) {
      await new Promise((resolve) => nativeImmediate(resolve));
      quiet = this.activity === seen ? quiet + 1 : 0;
      seen = this.activity;
    }
  }
}

export const time = new VirtualTime();

/** Loads a module whose timers are to be virtual. */
export async function inVirtualTime<T>(load: () => Promise<T>): Promise<T> {
  const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate } = globalThis;
  const counted = (callback: (...args: unknown[]) => void, ...args: unknown[]): NodeJS.Immediate =>
    nativeImmediate(() => {
      time.activity += 1;
      callback(...args);
    });
  Object.assign(globalThis, { setTimeout: time.set, clearTimeout: time.clear });
  Object.assign(globalThis, { setInterval: time.repeat, clearInterval: time.clear, setImmediate: counted });
  const { hrtime } = process;
  const virtual = (): [number, number] => [Math.floor(time.now / 1e3), Math.round((time.now % 1e3) * 1e6)];
  process.hrtime = Object.assign(virtual, { bigint: hrtime.bigint });
  try {
    return await load();
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate });
    process.hrtime = hrtime;
  }
}

/** Runs a callback in a task of its own, in the next turn of the event loop. */
export function inNextTurn(callback: () => void): void {
  time.activity += 1;
  nativeImmediate(() => {
    time.activity += 1;
    callback();
  });
}
