/*
 * The limits of the process: while the event loop is late or memory is nearly used up, requests are refused, so that
 * those in flight are answered and health and metrics still report what is happening.
 */

import { clearInterval, monotonicNow, setInterval } from '../base/clock.js';
import { logSafely, type Logger } from '../base/log.js';
import type { LoadShedding } from './options.js';
import type { Reason } from './refusals.js';

const TICK_MS = 100;
/** Reading the limits of a control group takes longer than reading the clock. */
const TICKS_PER_MEMORY_READING = 10;

/** Watches the process from the first request on. */
export class ProcessLimits {
  readonly #options: LoadShedding;
  readonly #memoryPercent: () => number;
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #exceeded: Reason | undefined;
  #isMemoryShort = false;
  #ticks = 0;
  #dueAtMs = 0;

  /** @param memoryPercent the memory of the process, in percent of the memory that it may use */
  constructor(options: LoadShedding, memoryPercent: () => number, logger: Logger) {
    this.#options = options;
    this.#memoryPercent = memoryPercent;
    this.#logger = logger;
  }

  /** The limit that is exceeded, if any. The first call starts the timer. */
  get exceeded(): Reason | undefined {
    if (this.#timer === undefined && !this.#isClosed) {
      this.#dueAtMs = monotonicNow() + TICK_MS;
      this.#timer = setInterval(this.#tick, TICK_MS).unref();
    }
    return this.#exceeded;
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  readonly #tick = (): void => {
    const { maxEventLoopDelay, maxMemoryPercent, observe } = this.#options;
    const nowMs = monotonicNow();
    const lateMs = nowMs - this.#dueAtMs;
    this.#dueAtMs = nowMs + TICK_MS;
    if (this.#ticks % TICKS_PER_MEMORY_READING === 0) this.#isMemoryShort = this.#memoryPercent() > maxMemoryPercent;
    this.#ticks += 1;
    const before = this.#exceeded;
    this.#exceeded = lateMs > maxEventLoopDelay ? 'event_loop' : this.#isMemoryShort ? 'memory' : undefined;
    if ((before === undefined) === (this.#exceeded === undefined)) return;
    const verb = observe ? 'would be' : 'are';
    if (before === undefined) {
      const load = { event_loop_delay_ms: Math.round(lateMs), memory_short: this.#isMemoryShort };
      logSafely(this.#logger, 'warn', load, `overloaded: requests ${verb} refused`);
    } else logSafely(this.#logger, 'info', {}, `no longer overloaded: no more requests ${verb} refused`);
  };
}
