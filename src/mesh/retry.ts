/* How long a call waits before it is repeated, and how often all calls of a service may be repeated. */

import { backoffMs, Date, monotonicNow } from '../base/clock.js';

const WINDOW_SECONDS = 10;
const CALLS_PER_RETRY = 5;
const RETRIES_PER_SECOND = 10;

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1000;

/**
 * How many attempts the calls of one service may add: 20 % of the calls and 10 a second, over the last 10 s. So a busy
 * service that is down gets at most a fifth more requests than there are calls, however many retries each call has.
 */
export interface RetryBudget {
  /** Counts a call, once for all of its attempts. */
  addCall(): void;
  /** Takes one retry from the budget; false if none is left. */
  take(): boolean;
}

/** @param now in ms */
export function createRetryBudget(now: () => number = monotonicNow): RetryBudget {
  /** For each second of the window: a call subtracts 1, a retry adds the number of calls that pay for it. */
  const spent = new Int32Array(WINDOW_SECONDS);
  let second = Math.floor(now() / 1000);
  /** Forgets what is older than the window, and adds to this second. */
  const spend = (calls: number): void => {
    const last = Math.floor(now() / 1000);
    for (second = Math.max(second, last - WINDOW_SECONDS); second < last; second += 1)
      spent[(second + 1) % WINDOW_SECONDS] = 0;
    const slot = last % WINDOW_SECONDS;
    spent[slot] = (spent[slot] ?? 0) + calls;
  };
  return {
    addCall: () => spend(-1),
    take() {
      spend(CALLS_PER_RETRY);
      const isLeft = spent.reduce((sum, calls) => sum + calls) <= CALLS_PER_RETRY * RETRIES_PER_SECOND * WINDOW_SECONDS;
      if (!isLeft) spend(-CALLS_PER_RETRY);
      return isLeft;
    },
  };
}

/**
 * The pause before the next attempt, in ms: as long as `Retry-After` says, else {@link backoffMs} from 50 ms up to 1 s.
 *
 * @param attempt the number of the attempt that failed, from 1
 */
export function pauseBefore(attempt: number, retryAfter: string | undefined): number {
  if (retryAfter !== undefined && /^\d{1,9}$/.test(retryAfter)) return Number(retryAfter) * 1000;
  const at = retryAfter === undefined ? NaN : Date.parse(retryAfter);
  if (!Number.isNaN(at)) return Math.max(0, at - Date.now());
  return backoffMs(attempt, FIRST_PAUSE_MS, MAX_PAUSE_MS);
}
