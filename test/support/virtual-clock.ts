/**
 * Virtual time for an application: `base/clock` in tests, with a time that passes when it is told to. What needs no
 * time (promises, streams in memory, `setImmediate`) happens in the real event loop.
 */

import { setImmediate as turn } from 'node:timers/promises';

interface Timer {
  atMs: number;
  readonly order: number;
  readonly run: () => void;
  /** In ms; undefined for a timer that fires once. */
  readonly everyMs: number | undefined;
  isOver: boolean;
}

/** Time passes in steps of so many ms; timers that are due in between fire at their time. */
const STEP_MS = 5;
/** Turns of the event loop that a request in memory takes, and a few more. */
const TURNS = 12;

export class VirtualTime {
  nowMs = 1000;
  #timers: Timer[] = [];
  #order = 0;

  after(ms: number, run: () => void, everyMs?: number): Timer {
    const timer = { atMs: this.nowMs + Math.max(1, ms), order: (this.#order += 1), run, everyMs, isOver: false };
    this.#timers.push(timer);
    return timer;
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Lets time pass. */
  async pass(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    for (let stepMs = this.nowMs; this.nowMs < endMs; ) {
      stepMs = Math.min(endMs, stepMs + STEP_MS);
      const due = this.#take(stepMs);
      for (const timer of due) this.#fire(timer, Math.max(this.nowMs, timer.atMs));
      this.nowMs = Math.max(this.nowMs, stepMs);
      if (due.length > 0) for (let i = 0; i < TURNS; i += 1) await turn();
    }
  }

  /** Stops the process for a while: timers fire after it, all at once. */
  stop(ms: number): void {
    this.nowMs += ms;
  }

  /** The timers and clock of `base/clock`, in this time. */
  replace<Clock extends object>(clock: Clock): Clock {
    const add =
      (isRepeated: boolean) =>
      (run: (...args: unknown[]) => void, ms = 1, ...args: unknown[]) => {
        const timer = this.after(ms, () => run(...args), isRepeated ? Math.max(1, ms) : undefined);
        return Object.assign(timer, {
          unref: () => timer,
          ref: () => timer,
          refresh: () => Object.assign(timer, { atMs: this.nowMs + ms }),
        });
      };
    const clear = (timer: Timer | undefined): void => {
      if (timer !== undefined) timer.isOver = true;
    };
    return {
      ...clock,
      setTimeout: add(false),
      setInterval: add(true),
      clearTimeout: clear,
      clearInterval: clear,
      monotonicNow: () => this.nowMs,
      elapsedSince: (startedAtMs: number) => `${Math.floor(this.nowMs - startedAtMs)} ms`,
      monotonicOrigin: () => 0,
    };
  }

  #take(untilMs: number): Timer[] {
    const due = this.#timers.filter(({ atMs, isOver }) => !isOver && atMs <= untilMs);
    this.#timers = this.#timers.filter(({ atMs, isOver }) => !isOver && atMs > untilMs);
    return due.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
  }

  #fire(timer: Timer, nowMs: number): void {
    if (timer.isOver) return;
    this.nowMs = nowMs;
    if (timer.everyMs !== undefined) {
      timer.atMs = nowMs + timer.everyMs;
      this.#timers.push(timer);
    }
    timer.run();
  }
}

/** The time of a test file, which has `vi.mock('../../src/base/clock.js', …)` replace the clock by it. */
export const time: VirtualTime = new VirtualTime();

/** Connections to a database, each taken for a while by a request. */
export function createPool(size = 10, takenMs = 100): () => Promise<string> {
  let free = size;
  const queue: (() => void)[] = [];
  return async () => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => void queue.push(resolve));
    await time.wait(takenMs);
    const next = queue.shift();
    if (next === undefined) free += 1;
    else next();
    return 'done';
  };
}
