/*
 * Load shedding: while the event loop is late or memory is nearly used up, requests are refused with 503, so that those
 * under way are answered and health and metrics still tell what is going on.
 */

import { FrameworkErrorCodes, ServiceUnavailable, type ErrorCode } from '../errors.js';
import type { Handler } from '../http/context.js';
import { logSafely, type Logger } from '../log.js';
import { assertOptions, wholeNumber, type Kinds } from '../options-check.js';

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
export class LoadShedder {
  readonly #sources: LoadSources;
  readonly #error: Overloaded;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #isOverloaded = false;
  #isMemoryShort = false;
  #ticks = 0;
  #dueAtMs = 0;

  constructor(sources: LoadSources) {
    this.#sources = sources;
    this.#error = new Overloaded(undefined, { retryAfter: sources.options.retryAfter });
  }

  /** A handler that runs only while the process keeps up. */
  guard(handler: Handler): Handler {
    return (ctx) => {
      if (this.#timer === undefined) this.#start();
      // Always the same error: under load, another stack would be the last thing to spend time on.
      return this.#isOverloaded ? this.#error : handler(ctx);
    };
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  #start(): void {
    if (this.#isClosed) return;
    this.#dueAtMs = performance.now() + TICK_MS;
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
  }

  #tick(): void {
    const { options, memoryPercent, logger } = this.#sources;
    const nowMs = performance.now();
    const lateMs = nowMs - this.#dueAtMs;
    this.#dueAtMs = nowMs + TICK_MS;
    if (this.#ticks % TICKS_PER_MEMORY_READING === 0) this.#isMemoryShort = memoryPercent() > options.maxMemoryPercent;
    this.#ticks += 1;
    const isOverloaded = lateMs > options.maxEventLoopDelay || this.#isMemoryShort;
    if (isOverloaded && !this.#isOverloaded) {
      logSafely(
        logger,
        'warn',
        { event_loop_delay_ms: Math.round(lateMs), memory_short: this.#isMemoryShort },
        'overloaded: requests are refused',
      );
    }
    this.#isOverloaded = isOverloaded;
  }
}
