/*
 * When a failed try is repeated, and how often all calls of a service may be.
 */

import { TryLimit } from './try-limit.js';

const WINDOW_SECONDS = 10;
const RETRIES_PER_CALL = 0.2;
const RETRIES_PER_SECOND = 10;

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1000;

/**
 * Says to callers further up that repeating is of no use: the service next to the failure has done so, or has too much
 * to do. Without it each hop would multiply the tries of the one behind. Proxies (Envoy) know it and repeat nothing,
 * either.
 */
export const NO_RETRY_HEADER = 'x-envoy-overloaded';

/**
 * How many tries the calls of one service may add: 20 % of the calls and 10 a second, over the last 10 s. A service
 * that is down gets a fifth more than it is offered, whatever each call asks for.
 */
export class RetryBudget {
  readonly #now: () => number;
  readonly #calls = new Uint32Array(WINDOW_SECONDS);
  readonly #retries = new Uint32Array(WINDOW_SECONDS);
  #second: number;

  /** @param now in ms */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#second = Math.floor(now() / 1000);
  }

  /** Counts a call; its tries are none. */
  addCall(): void {
    const slot = this.#advance();
    this.#calls[slot] = (this.#calls[slot] ?? 0) + 1;
  }

  /** Takes one retry; whether there was one to take. */
  take(): boolean {
    const slot = this.#advance();
    const most = RETRIES_PER_SECOND * WINDOW_SECONDS + RETRIES_PER_CALL * sum(this.#calls);
    if (sum(this.#retries) + 1 > most) return false;
    this.#retries[slot] = (this.#retries[slot] ?? 0) + 1;
    return true;
  }

  /** Forgets what is older than the window; gives the slot of this second. */
  #advance(): number {
    const second = Math.floor(this.#now() / 1000);
    const passed = Math.min(WINDOW_SECONDS, second - this.#second);
    for (let i = 1; i <= passed; i += 1) {
      const slot = (this.#second + i) % WINDOW_SECONDS;
      this.#calls[slot] = 0;
      this.#retries[slot] = 0;
    }
    this.#second = second;
    return second % WINDOW_SECONDS;
  }
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
  return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
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

function sum(counts: Uint32Array): number {
  return counts.reduce((total, count) => total + count);
}
