/*
 * A quantile of recent times, in constant space: each time moves the estimate up or down by a small part of itself.
 */

/** Resolution, in ms: shorter times are equal, because of the clock and the turns of the event loop. */
const LEAST_MS = 1;
/** The part by which one time moves the estimate, once there have been enough. */
const LEAST_STEP = 0.02;

export class Quantile {
  readonly #share: number;
  #count = 0;
  #ms: number | undefined;

  /** @param share of the times that are below: 0.5 for the median */
  constructor(share: number) {
    this.#share = share;
  }

  /** In ms; undefined before the first finite time. */
  get ms(): number | undefined {
    return this.#ms;
  }

  /** Whether there have been enough times for the first of them to be forgotten. */
  get isSettled(): boolean {
    return this.#count >= 25;
  }

  /** @param ms may be infinite, for a time without an end */
  add(ms: number): void {
    if (this.#ms === undefined) {
      if (ms !== Infinity) this.#ms = Math.max(LEAST_MS, ms);
      return;
    }
    this.#count += 1;
    const step = Math.max(LEAST_STEP, 1 / (1 + this.#count)) * 2;
    if (ms > this.#ms) this.#ms = Math.min(ms, this.#ms * (1 + step * this.#share));
    else this.#ms = Math.max(LEAST_MS, ms, this.#ms * (1 - step * (1 - this.#share)));
  }
}
