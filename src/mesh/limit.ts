/*
 * Ends one attempt of a call: when its time is up, when a signal aborts, and when something fails on the way.
 */

import { clearTimeout, setTimeout } from '../base/clock.js';
import { builtin } from '../base/builtin.js';

/** The limit of one attempt. It ends once: {@link end} has a reason, {@link release} does not. */
export class Limit {
  readonly #signals: readonly AbortSignal[];
  readonly #onOver: (failure?: { reason: unknown }) => void;
  #timer: NodeJS.Timeout | undefined;
  #cut: ((reason: unknown) => void) | undefined;
  #isOver = false;

  /**
   * @param timeoutMs at most what a timer takes
   * @param toTimeout creates the reason when time is up
   * @param signals each ends the attempt with its own reason; none may be aborted
   * @param onOver called once, with the reason if the attempt was ended
   */
  constructor(
    timeoutMs: number,
    toTimeout: () => unknown,
    signals: readonly AbortSignal[],
    onOver: (failure?: { reason: unknown }) => void,
  ) {
    this.#signals = signals;
    this.#onOver = onOver;
    this.#timer = setTimeout(() => this.end(toTimeout()), timeoutMs);
    for (const signal of signals) {
      // Many calls may share a signal; Node.js would warn of more than ten listeners.
      builtin('node:events').setMaxListeners(0, signal);
      signal.addEventListener('abort', this.#onAbort);
    }
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Sets what happens when the attempt is ended; call it at most once, in the turn in which the limit is made. */
  whenEnded(cut: (reason: unknown) => void): void {
    this.#cut = cut;
  }

  /** Lifts the time limit; the signals stay. */
  liftTime(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Marks the attempt as over: nothing ends it any more. */
  release(failure?: { reason: unknown }): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.liftTime();
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#onAbort);
    this.#onOver(failure);
  }

  /** Ends the attempt, unless it is over. */
  readonly end = (reason: unknown): void => {
    if (this.#isOver) return;
    this.release({ reason });
    this.#cut?.(reason);
  };

  readonly #onAbort = ({ target }: Event): void => this.end((target as AbortSignal).reason);
}

/** Waits; rejects with the reason of the first signal that aborts. */
export async function pause(ms: number, signals: readonly AbortSignal[]): Promise<void> {
  for (const signal of signals) signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const limit = new Limit(ms, resolve, signals, () => undefined);
    limit.whenEnded(reject);
  });
}
