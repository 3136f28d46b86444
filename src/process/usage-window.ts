/*
 * How much a CPU or the event loop was used recently. The interval begins with a sample that the window takes by its
 * own clock, not with the last reading: two readers don't shorten each other's interval.
 */

/** Both in seconds since the process, or the event loop, began. */
export interface UsageSample {
  readonly atSeconds: number;
  readonly usedSeconds: number;
}

/** Least length of an interval. */
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
