/**
 * Time limits: what a timer of Node.js can wait for, and waiting no longer than that.
 */

/** In ms; timers of Node.js take a longer time for 1 ms. */
export const MAX_TIMEOUT_MS: number = 2 ** 31 - 1;

/** @throws {TypeError} when one of the times, by name, is given and is not 0 or more */
export function assertTimes(times: Readonly<Record<string, number | undefined>>): void {
  for (const [name, value] of Object.entries(times)) {
    if (value !== undefined && (typeof value !== 'number' || !(value >= 0))) throw new TypeError(`${name} is ${String(value)}; give ms, 0 or more`);
  }
}

/** Waits for a promise, but not longer than that. */
export async function within(timeoutMs: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, Math.min(timeoutMs, MAX_TIMEOUT_MS));
  });
  await Promise.race([promise, late]);
  clearTimeout(timer);
}
