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

export interface UsageWindow {
  /**
   * How much was in use on average over the last 5 to 10 seconds, or since the clock started if that is less.
   *
   * The interval is longer when nothing has called `advance` for a while, never shorter because of another reader.
   */
  read(): number;
  /** Lets the interval begin later if it has become too long. */
  advance(): UsageSample;
}

/** Starts with the clock of its samples, so the first reading has an interval too. */
export function createUsageWindow(sample: () => UsageSample): UsageWindow {
  let older: UsageSample = { atSeconds: 0, usedSeconds: 0 };
  let newer = older;
  const advance = (): UsageSample => {
    const now = sample();
    if (now.atSeconds - newer.atSeconds >= USAGE_WINDOW_SECONDS) [older, newer] = [newer, now];
    return now;
  };
  const read = (): number => {
    const { atSeconds, usedSeconds } = advance();
    const seconds = atSeconds - older.atSeconds;
    return seconds > 0 ? (usedSeconds - older.usedSeconds) / seconds : 0;
  };
  return { read, advance };
}
