/*
 * The limits of the process: while the event loop is late or memory is nearly used up, requests are refused, so that
 * those in flight are answered and health and metrics still report what is happening.
 */

import { clearInterval, monotonicNow, setInterval } from '../base/clock.js';

const TICK_MS = 100;
/** Memory is read only with every tenth tick: reading the limits of a control group takes longer than the clock. */
const TICKS_PER_MEMORY_READING = 10;

/** Watches the process from the first request on. */
export class ProcessLimits {
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #exceeded: 'event_loop' | 'memory' | undefined;
  #isMemoryShort = false;
  #ticks = 0;
  #dueAtMs = 0;

  /**
   * @param readMemory reads the memory of the process, in percent of the memory that it may use
   * @param onChange called when the first limit is exceeded, and when no limit is exceeded any more
   */
  constructor(
    readonly options: { readonly maxEventLoopDelay: number; readonly maxMemoryPercent: number },
    readonly readMemory: () => number,
    readonly onChange: (isExceeded: boolean, figures: object) => void,
  ) {}

  /** The limit that is exceeded, if any. The first call starts the timer. */
  get exceeded(): 'event_loop' | 'memory' | undefined {
    if (this.#timer === undefined && !this.#isClosed) {
      this.#dueAtMs = monotonicNow() + TICK_MS;
      this.#timer = setInterval(this.#tick, TICK_MS).unref();
    }
    return this.#exceeded;
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    if (this.#exceeded !== undefined) this.onChange(false, {});
  }

  readonly #tick = (): void => {
    const { maxEventLoopDelay, maxMemoryPercent } = this.options;
    const nowMs = monotonicNow();
    const lateMs = nowMs - this.#dueAtMs;
    this.#dueAtMs = nowMs + TICK_MS;
    if (this.#ticks % TICKS_PER_MEMORY_READING === 0) this.#isMemoryShort = this.readMemory() > maxMemoryPercent;
    this.#ticks += 1;
    const wasExceeded = this.#exceeded !== undefined;
    this.#exceeded = lateMs > maxEventLoopDelay ? 'event_loop' : this.#isMemoryShort ? 'memory' : undefined;
    if (this.#exceeded === undefined && wasExceeded) this.onChange(false, {});
    if (this.#exceeded !== undefined && !wasExceeded)
      this.onChange(true, { event_loop_delay_ms: Math.round(lateMs), memory_short: this.#isMemoryShort });
  };
}
