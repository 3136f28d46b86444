/*
 * What ends one try of a call: its time, any number of signals, and whatever goes wrong on the way.
 */

import { clearTimeout, setTimeout } from '../base/clock.js';
import { forgetAborted, whenAborted } from './abort.js';

/** The limit of one try; it is over once, with a reason or by {@link release}. */
export class TryLimit {
  readonly #signals: readonly AbortSignal[];
  readonly #onRelease: () => void;
  #timer: NodeJS.Timeout | undefined;
  #cut: ((reason: unknown) => void) | undefined;
  #released = false;

  /**
   * @param timeoutMs at most what a timer takes
   * @param toTimeout the reason when time is up
   * @param signals each ends the try with its own reason; none may be aborted
   * @param onRelease called once, when the try is over
   */
  constructor(timeoutMs: number, toTimeout: () => Error, signals: readonly AbortSignal[], onRelease: () => void) {
    this.#signals = signals;
    this.#onRelease = onRelease;
    this.#timer = setTimeout(() => this.end(toTimeout()), timeoutMs);
    for (const signal of signals) whenAborted(signal, this.end);
  }

  /** Whether it was ended or released. */
  get isOver(): boolean {
    return this.#released;
  }

  /** Says what to cut when the try is ended; to be called at most once, in the turn in which the limit is made. */
  whenEnded(cut: (reason: unknown) => void): void {
    this.#cut = cut;
  }

  /** Lifts the limit of time; the signals stay. */
  liftTime(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** The try is over: nothing ends it any more. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.liftTime();
    for (const signal of this.#signals) forgetAborted(signal, this.end);
    this.#onRelease();
  }

  /** Ends the try, unless it is over. */
  readonly end = (reason: unknown): void => {
    if (this.#released) return;
    this.release();
    this.#cut?.(reason);
  };
}
