/**
 * Event-loop lag over the last one to two minutes, by a clock of its own: reading it changes nothing.
 *
 * Two of Node's delay monitors run in step and are emptied in turn, so that the older one has seen at
 * least a whole minute. Each measures the time between two ticks; what is over the tick's length is lag.
 */
import type { IntervalHistogram } from 'node:perf_hooks';

/** All in seconds; 0 where nothing was measured yet. */
export interface EventLoopLag {
  /** How late the last tick of the sampler's own clock was, or the next one is already. */
  readonly last: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly stddev: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/**
 * Milliseconds between two ticks; half of them cost twice the CPU of an idle process, about 3 ms per second as it is.
 */
export const RESOLUTION_MS = 20;
/** How often `tick` is to be called, in milliseconds. */
export const TICK_MS = 1000;
/** Prometheus scrapes once a minute at least, so no spike goes unseen. */
const WINDOW_MS = 60_000;

/** Where time comes from. */
export interface EventLoopSources {
  /** Milliseconds, monotonic. */
  readonly now: () => number;
  readonly createMonitor: (resolutionMs: number) => IntervalHistogram;
}

export class EventLoopMonitor {
  readonly #sources: EventLoopSources;
  #older: IntervalHistogram | undefined;
  #newer: IntervalHistogram | undefined;
  #emptiedAt = 0;
  #dueAt = NaN;
  #lastMs = 0;

  constructor(sources: EventLoopSources) {
    this.#sources = sources;
  }

  start(): void {
    const now = this.#sources.now();
    this.#older = this.#sources.createMonitor(RESOLUTION_MS);
    this.#newer = this.#sources.createMonitor(RESOLUTION_MS);
    this.#older.enable();
    this.#newer.enable();
    this.#emptiedAt = now;
    this.#dueAt = now + TICK_MS;
  }

  /** To be called every `TICK_MS` as exactly as the event loop allows, whose lag is what it is about. */
  tick(): void {
    const now = this.#sources.now();
    this.#lastMs = Math.max(0, now - this.#dueAt);
    this.#dueAt = now + TICK_MS;
    if (now - this.#emptiedAt < WINDOW_MS) return;
    [this.#older, this.#newer] = [this.#newer, this.#older];
    this.#newer?.reset();
    this.#emptiedAt = now;
  }

  read(): EventLoopLag {
    const monitor = this.#older;
    const last = Math.max(this.#lastMs, this.#sources.now() - this.#dueAt || 0) / 1000;
    if (monitor === undefined || monitor.count === 0)
      return { last, min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 };
    return {
      last,
      min: toLag(monitor.min),
      max: toLag(monitor.max),
      mean: toLag(monitor.mean),
      stddev: monitor.stddev / 1e9,
      p50: toLag(monitor.percentile(50)),
      p90: toLag(monitor.percentile(90)),
      p99: toLag(monitor.percentile(99)),
    };
  }

  close(): void {
    this.#older?.disable();
    this.#newer?.disable();
  }
}

/** Nanoseconds between two ticks → seconds of lag; timers have whole milliseconds, so a tick may come early. */
function toLag(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1000);
}
