/*
 * Use of late, of a CPU or of the event loop: over the interval since a sample of its own clock, however often it is
 * read.
 */

/** Both in seconds since there was something to use. */
export interface UsageSample {
  readonly atSeconds: number;
  readonly usedSeconds: number;
}

/** What an interval is at least. */
export const USAGE_WINDOW_SECONDS = 5;

/** Starts with the clock of its samples, so the first reading has an interval too. */
export class UsageWindow {
  readonly #sample: () => UsageSample;
  #older: UsageSample = { atSeconds: 0, usedSeconds: 0 };
  #newer: UsageSample = this.#older;

  constructor(sample: () => UsageSample) {
    this.#sample = sample;
  }

  /**
   * How much was in use on average over the last 5 to 10 seconds, or since the clock started if that is less.
   *
   * The interval is longer when nothing has called `advance` for a while, never shorter because of another reader.
   */
  read(): number {
    const now = this.advance();
    const seconds = now.atSeconds - this.#older.atSeconds;
    return seconds > 0 ? (now.usedSeconds - this.#older.usedSeconds) / seconds : 0;
  }

  /** Lets the interval begin later if it has become too long. */
  advance(): UsageSample {
    const now = this.#sample();
    if (now.atSeconds - this.#newer.atSeconds >= USAGE_WINDOW_SECONDS) {
      this.#older = this.#newer;
      this.#newer = now;
    }
    return now;
  }
}
