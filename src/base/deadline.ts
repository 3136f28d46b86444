/* Time limits: the longest that a timer of Node.js can wait, and waiting no longer than a limit. */

import { clearTimeout, setTimeout } from './clock.js';
import type { Kind } from './options-check.js';

/** In ms; a timer of Node.js that is given more fires after 1 ms. */
export const MAX_TIMEOUT_MS: number = 2 ** 31 - 1;

/** A time to wait, in ms, of any length: more than {@link MAX_TIMEOUT_MS} is shortened to that where it is used. */
export const TIME: Kind = { accepts: (value) => typeof value === 'number' && value >= 0, give: 'ms, 0 or more' };

/** A time limit, in ms. */
export const TIME_LIMIT: Kind = {
  accepts: (value) => typeof value === 'number' && value > 0 && value <= MAX_TIMEOUT_MS,
  give: `ms, more than 0 and at most ${MAX_TIMEOUT_MS}`,
};

/** Waits for a promise, but not longer than a time limit. */
export async function within(timeoutMs: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, Math.min(timeoutMs, MAX_TIMEOUT_MS));
  });
  await Promise.race([promise, late]);
  clearTimeout(timer);
}
