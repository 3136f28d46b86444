/*
 * Time limits: the longest that a timer of Node.js can wait, waiting no longer than a limit, and the limit of a caller.
 */

import type { IncomingHttpHeaders } from 'node:http';
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

export const DEADLINE_HEADER = 'x-envoy-expected-rq-timeout-ms';

/** The deadline in ms; undefined without the header, and if its value is not a positive integer. */
export function readDeadlineHeader({ [DEADLINE_HEADER]: value }: IncomingHttpHeaders): number | undefined {
  return typeof value === 'string' && /^0*[1-9]\d*$/.test(value) ? Number(value) : undefined;
}
