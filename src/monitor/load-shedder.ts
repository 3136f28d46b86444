/*
 * Load shedding: while the event loop is late or memory is nearly used up, requests are refused with 503, so that those
 * under way are answered and health and metrics still tell what is going on.
 */

import { clearInterval, monotonicNow, setInterval } from '../base/clock.js';
import { FrameworkErrorCodes, type ErrorCode } from '../base/error-codes.js';
import { ServiceUnavailable } from '../base/errors.js';
import type { Handler } from '../http/context.js';
import { logSafely, type Logger } from '../base/log.js';
import { assertOptions, wholeNumber, type Kinds } from '../base/options-check.js';

/** When requests are refused because the process can't keep up. */
export interface LoadSheddingOptions {
  /** Most ms that the event loop may be late, 500 unless given. */
  maxEventLoopDelay?: number;
  /** Most memory that the process may hold, in percent of the cgroup's limit or else the machine's, 95 unless given. */
  maxMemoryPercent?: number;
  /** Seconds after which clients may come back, sent as `retry-after`; 1 unless given. */
  retryAfter?: number;
}

const KINDS: Kinds<LoadSheddingOptions> = {
  maxEventLoopDelay: wholeNumber(1),
  maxMemoryPercent: wholeNumber(1, 100),
  retryAfter: wholeNumber(0),
};

/** Checks the option `loadShedding`, and fills in its defaults. @throws {TypeError} when it is invalid @internal */
export function resolveLoadShedding(options: LoadSheddingOptions): Required<LoadSheddingOptions> {
  assertOptions('loadShedding', options, KINDS);
  const { maxEventLoopDelay = 500, maxMemoryPercent = 95, retryAfter = 1 } = options;
  return { maxEventLoopDelay, maxMemoryPercent, retryAfter };
}

/** What a shedder goes by. @internal */
export interface LoadSources {
  readonly options: Required<LoadSheddingOptions>;
  /** In percent of what the process may use. */
  readonly memoryPercent: () => number;
  readonly logger: Logger;
}

const TICK_MS = 100;
/** Reading the limits of a control group takes longer than looking at the clock. */
const TICKS_PER_MEMORY_READING = 10;

/** The error of a request that was refused. @internal */
export class Overloaded extends ServiceUnavailable {
  static override description: string = 'The service has more to do than it can; try again later.';
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_overloaded;
}

/** Watches the load of the process from the first request on. @internal */
export interface LoadShedder {
  /** A handler that runs only while the process keeps up. */
  guard(handler: Handler): Handler;
  close(): void;
}

/** @internal */
export function createLoadShedder({ options, memoryPercent, logger }: LoadSources): LoadShedder {
  const { maxEventLoopDelay, maxMemoryPercent, retryAfter } = options;
  // Always the same error: under load, another stack would be the last thing to spend time on.
  const error = new Overloaded(undefined, { retryAfter });
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let isOverloaded = false;
  let isMemoryShort = false;
  let ticks = 0;
  let dueAtMs = 0;

  const tick = (): void => {
    const nowMs = monotonicNow();
    const lateMs = nowMs - dueAtMs;
    dueAtMs = nowMs + TICK_MS;
    if (ticks % TICKS_PER_MEMORY_READING === 0) isMemoryShort = memoryPercent() > maxMemoryPercent;
    ticks += 1;
    const wasOverloaded = isOverloaded;
    isOverloaded = lateMs > maxEventLoopDelay || isMemoryShort;
    if (!isOverloaded || wasOverloaded) return;
    const load = { event_loop_delay_ms: Math.round(lateMs), memory_short: isMemoryShort };
    logSafely(logger, 'warn', load, 'overloaded: requests are refused');
  };
  const start = (): void => {
    if (isClosed) return;
    dueAtMs = monotonicNow() + TICK_MS;
    timer = setInterval(tick, TICK_MS).unref();
  };

  return {
    guard: (handler) => (ctx) => {
      if (timer === undefined) start();
      return isOverloaded ? error : handler(ctx);
    },
    close() {
      isClosed = true;
      clearInterval(timer);
    },
  };
}
