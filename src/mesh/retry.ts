/*
 * When a failed try is repeated, and how often all calls of a service may be.
 */

import { Date, monotonicNow, random } from '../base/clock.js';
import { TryLimit } from './try-limit.js';

const WINDOW_SECONDS = 10;
const CALLS_PER_RETRY = 5;
const RETRIES_PER_SECOND = 10;

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1000;

/**
 * Tells callers further up not to try again: the caller next to the failure has tried already, or the service has too
 * much to do. Without this header, if A calls B and B calls C with three tries each, C gets nine requests for one.
 * Envoy knows the header, and does not try again, either.
 */
export const NO_RETRY_HEADER = 'x-envoy-overloaded';

/**
 * How many tries the calls of one service may add: 20 % of the calls and 10 a second, over the last 10 s. So a busy
 * service that is down gets a fifth more requests than there are calls, however many retries each call asks for.
 */
export interface RetryBudget {
  /** Counts a call, once for all of its tries. */
  addCall(): void;
  /** Takes one retry out of the budget; false if none is left. */
  take(): boolean;
}

/** @param now in ms */
export function createRetryBudget(now: () => number = monotonicNow): RetryBudget {
  /** For each second of the window: a call takes 1 away, and a retry adds the number of calls that pay for it. */
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

/** Whether a status says that another try may succeed. */
export function isUnavailable(status: number): boolean {
  return status === 503 || status === 504;
}

/**
 * In ms, before the next try: what `Retry-After` says, else a pause that grows from 50 ms to 1 s, spread out, so that
 * callers that failed together don't come back together.
 *
 * @param attempt the number of the try that failed, from 1
 */
export function pauseBefore(attempt: number, retryAfter: string | undefined): number {
  if (retryAfter !== undefined && /^\d{1,9}$/.test(retryAfter)) return Number(retryAfter) * 1000;
  const at = retryAfter === undefined ? NaN : Date.parse(retryAfter);
  if (!Number.isNaN(at)) return Math.max(0, at - Date.now());
  return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1)) * (0.5 + random() / 2);
}

/** Waits; rejects with the reason of the first signal that aborts. */
export async function pause(ms: number, signals: readonly AbortSignal[]): Promise<void> {
  for (const signal of signals) signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const over = new Error('the pause is over');
    const limit = new TryLimit(
      ms,
      () => over,
      signals,
      () => undefined,
    );
    limit.whenEnded((reason) => (reason === over ? resolve() : reject(reason)));
  });
}
