/*
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
  /** The older one first. */
  #monitors: IntervalHistogram[] = [];
  #emptiedAt = 0;
  #dueAt = NaN;
  #lastMs = 0;

  constructor(sources: EventLoopSources) {
    this.#sources = sources;
  }

  start(): void {
    const now = this.#sources.now();
    this.#monitors = [this.#sources.createMonitor(RESOLUTION_MS), this.#sources.createMonitor(RESOLUTION_MS)];
    for (const monitor of this.#monitors) monitor.enable();
    this.#emptiedAt = now;
    this.#dueAt = now + TICK_MS;
  }

  /** To be called every `TICK_MS` as exactly as the event loop allows, whose lag is what it is about. */
  tick(): void {
    const now = this.#sources.now();
    this.#lastMs = Math.max(0, now - this.#dueAt);
    this.#dueAt = now + TICK_MS;
    if (now - this.#emptiedAt < WINDOW_MS) return;
    this.#monitors.reverse();
    this.#monitors[1]?.reset();
    this.#emptiedAt = now;
  }

  read(): EventLoopLag {
    const [monitor] = this.#monitors;
    const last = Math.max(this.#lastMs, this.#sources.now() - this.#dueAt || 0) / 1000;
    // Empty, a monitor's extremes are those of its numbers.
    const measured = monitor?.count === 0 ? undefined : monitor;
    return {
      last,
      min: toLag(measured?.min),
      max: toLag(measured?.max),
      mean: toLag(measured?.mean),
      stddev: (measured?.stddev ?? 0) / 1e9,
      p50: toLag(measured?.percentile(50)),
      p90: toLag(measured?.percentile(90)),
      p99: toLag(measured?.percentile(99)),
    };
  }

  close(): void {
    for (const monitor of this.#monitors) monitor.disable();
  }
}

/** Nanoseconds between two ticks → seconds of lag; timers have whole milliseconds, so a tick may come early. */
function toLag(nanoseconds: number = 0): number {
  return Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1000);
}
