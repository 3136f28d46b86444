/* Ends one attempt of a call: when its time is up, when a signal aborts, and when something fails on the way. */

import { clearTimeout, setTimeout } from '../base/clock.js';
import { builtin } from '../base/builtin.js';

/** How an attempt ended: with a failure, which may be any value, or without. */
export interface AttemptOutcome {
  readonly failure?: { readonly reason: unknown };
}

/** The limit of one attempt. It is over once: {@link end} has a reason, {@link release} does not. */
export class Limit {
  readonly #signals: readonly AbortSignal[];
  readonly #timer: NodeJS.Timeout;
  readonly #listeners: ((outcome: AttemptOutcome) => void)[] = [];
  #outcome: AttemptOutcome | undefined;

  /**
   * @param timeoutMs at most what a timer takes
   * @param toTimeout creates the reason when time is up
   * @param signals each ends the attempt with its own reason
   */
  constructor(timeoutMs: number, toTimeout: () => unknown, signals: readonly AbortSignal[]) {
    this.#signals = signals;
    this.#timer = setTimeout(() => this.end(toTimeout()), timeoutMs);
    for (const signal of signals) {
      // Many calls may share a signal; Node.js would warn of more than ten listeners.
      builtin('node:events').setMaxListeners(0, signal);
      if (signal.aborted) {
        this.end(signal.reason);
        return;
      }
      signal.addEventListener('abort', this.#onAbort);
    }
  }

  get isOver(): boolean {
    return this.#outcome !== undefined;
  }

  /** Adds a listener that is called once, when the attempt is over: at once if it is. */
  whenOver(listener: (outcome: AttemptOutcome) => void): void {
    if (this.#outcome === undefined) this.#listeners.push(listener);
    else listener(this.#outcome);
  }

  /** Adds a listener that is called only if the attempt is ended. */
  whenEnded(cut: (reason: unknown) => void): void {
    this.whenOver(({ failure }) => {
      if (failure !== undefined) cut(failure.reason);
    });
  }

  /** Lifts the time limit; the signals stay. */
  liftTime(): void {
    clearTimeout(this.#timer);
  }

  /** Marks the attempt as over: nothing ends it any more. */
  release(outcome: AttemptOutcome = {}): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    this.liftTime();
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#onAbort);
    for (const listener of this.#listeners) listener(outcome);
  }

  /** Ends the attempt, unless it is over. */
  readonly end = (reason: unknown): void => this.release({ failure: { reason } });

  readonly #onAbort = ({ target }: Event): void => this.end((target as AbortSignal).reason);
}

/** Waits; rejects with the reason of the first signal that aborts. */
export function pause(ms: number, signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve, reject) => new Limit(ms, resolve, signals).whenEnded(reject));
}
