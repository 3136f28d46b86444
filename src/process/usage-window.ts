/**
 * CPU use of late: over the interval since a sample of its own clock, however often it is read.
 */

/** Both in seconds since the process started. */
export interface CpuSample {
  readonly atSeconds: number;
  readonly cpuSeconds: number;
}

/** What an interval is at least. */
export const CPU_WINDOW_SECONDS = 5;

/** Starts with the start of the process, so the first reading has an interval too. */
export class CpuWindow {
  readonly #sample: () => CpuSample;
  #older: CpuSample = { atSeconds: 0, cpuSeconds: 0 };
  #newer: CpuSample = this.#older;

  constructor(sample: () => CpuSample) {
    this.#sample = sample;
  }

  /**
   * CPUs in use on average over the last 5 to 10 seconds, or since the process started if that is less.
   *
   * The interval is longer when nothing has called `advance` for a while, never shorter because of another reader.
   */
  read(): number {
    const now = this.advance();
    const seconds = now.atSeconds - this.#older.atSeconds;
    return seconds > 0 ? (now.cpuSeconds - this.#older.cpuSeconds) / seconds : 0;
  }

  /** Lets the interval begin later if it has become too long. */
  advance(): CpuSample {
    const now = this.#sample();
    if (now.atSeconds - this.#newer.atSeconds >= CPU_WINDOW_SECONDS) {
      this.#older = this.#newer;
      this.#newer = now;
    }
    return now;
  }
}
