/*
 * One sampler for each registry with metrics of the process: reads it, its control group and its runtime.
 *
 * Everything is read when it is asked for. What needs to be watched in between (event-loop delay, garbage
 * collections, the interval of the CPU percentage) runs from `start` to `close` and keeps no process alive.
 */

import { builtin } from '../base/builtin.js';
import { assertOptions, OBJECT, show, STRING } from '../base/options-check.js';
import type { LabelValue } from '../metrics/metric.js';
import { toDefaultLabels } from '../metrics/names.js';
import type { Registry } from '../metrics/registry.js';
import { readCgroupLimits, readStatus } from './linux.js';
import { readMemoryUse, registerCollections, registerProcessMetrics, registerSpecMetrics } from './process-metrics.js';
import type { CollectionHistograms, ProcessUsage } from './process-metrics.js';
import { Readings } from './readings.js';
import { watchProcess, type ProcessWatch } from './watch.js';

/** Registers the metrics of a process; before `start`, event loop lag and garbage collections stay 0. */
export class ProcessSampler {
  readonly #root: string;
  readonly #cpu = new UsageWindow(sampleCpu);
  readonly #loop = new UsageWindow(sampleLoop);
  readonly #collections: CollectionHistograms;
  #watch: ProcessWatch | undefined;
  #isClosed = false;

  /**
   * @param isService whether it has the values of SPEC 2, too
   * @param root prefix of `/proc` and `/sys`; empty for the real directories
   * @throws {TypeError} when the registry has them already
   */
  constructor(readings: Readings, isService: boolean, root = '') {
    this.#root = root;
    this.#collections = readings.registry.addDefaultMetrics(() => this.close(), () => {
      if (isService) registerSpecMetrics(readings, () => this.read());
      registerProcessMetrics(readings, root, () => this.#watch?.lag(), () => this.#loop.read());
      return registerCollections(readings, isService, () => this.#watch?.collect());
    });
  }

  /** Begins to watch event loop and garbage collector. After `close` it does nothing. */
  start(): void {
    const advance = (): void => {
      this.#cpu.advance();
      this.#loop.advance();
    };
    if (!this.#isClosed) this.#watch ??= watchProcess(this.#collections, advance);
  }

  /** The values of SPEC 2.2, read now; none of them while the process has no file descriptor left to read files. */
  read(): Partial<ProcessUsage> {
    const { rss } = readMemoryUse();
    // The limits could not be read either, and a percentage of something else would be wrong.
    if (rss === undefined) return {};
    const limits = readCgroupLimits(this.#root);
    const { availableParallelism, totalmem } = builtin('node:os');
    const memoryBytes = Math.min(limits.memoryBytes, totalmem());
    const cpus = Math.min(limits.cpus, readStatus(this.#root).cpus ?? availableParallelism());
    return {
      proc_rss_mem_bytes: rss,
      proc_rss_mem_perc: (100 * rss) / memoryBytes,
      proc_cpu_perc: Math.min(100, (100 * this.#cpu.read()) / cpus),
    };
  }

  /** Stops watching; the metrics stay readable. */
  close(): void {
    this.#isClosed = true;
    this.#watch?.close();
  }
}

/** Registers the metrics of a service's process. @throws {TypeError} when the registry has them already */
export function collectProcess(registry: Registry, root?: string): ProcessSampler {
  return new ProcessSampler(new Readings(registry), true, root);
}

/** Options of `collectDefaultMetrics`. */
export interface DefaultMetricsOptions {
  /** Put before each name. Default: nothing. */
  readonly prefix?: string | undefined;
  /** Labels of every sample; a metric's own label overrides a label of the same name. */
  readonly labels?: Readonly<Record<string, LabelValue>> | undefined;
}

/**
 * Collects prom-client's default metrics of the process and of Node.js into a registry that isn't an application's,
 * until it is cleared. What watches the event loop and the garbage collector keeps no process alive.
 *
 * @throws {TypeError} for an invalid option, and when the registry has them already
 */
export function collectDefaultMetrics(registry: Registry, options: DefaultMetricsOptions = {}): void {
  if (typeof registry?.addDefaultMetrics !== 'function')
    throw new TypeError(`collectDefaultMetrics() takes a registry, not ${show(registry)}; give new Registry()`);
  assertOptions('collectDefaultMetrics()', options, { prefix: STRING, labels: OBJECT });
  const { prefix = '', labels = {} } = options;
  const readings = new Readings(registry, prefix, Object.fromEntries(toDefaultLabels(labels)));
  const sampler = new ProcessSampler(readings, false);
  sampler.start();
}

/** Both in seconds since the process, or the event loop, began. */
export interface UsageSample {
  readonly atSeconds: number;
  readonly usedSeconds: number;
}

function sampleCpu(): UsageSample {
  const { user, system } = process.cpuUsage();
  return { atSeconds: process.uptime(), usedSeconds: (user + system) / 1e6 };
}

function sampleLoop(): UsageSample {
  const { idle, active } = builtin('node:perf_hooks').performance.eventLoopUtilization();
  return { atSeconds: (idle + active) / 1000, usedSeconds: active / 1000 };
}

/** Minimum length of an interval. */
export const USAGE_WINDOW_SECONDS = 5;

/**
 * Measures how much a CPU or the event loop was used recently. The interval begins with a sample that the window takes
 * by its own clock, not with the last reading: two readers don't shorten each other's interval.
 *
 * Starts with the clock of its samples, so the first reading has an interval too.
 */
export class UsageWindow {
  #older: UsageSample = { atSeconds: 0, usedSeconds: 0 };
  #newer: UsageSample = this.#older;

  constructor(readonly sample: () => UsageSample) {}

  /**
   * How much was in use on average over the last 5 to 10 seconds, or since the clock started if that is less.
   *
   * The interval is longer when nothing has called `advance` for a while, never shorter because of another reader.
   */
  read(): number {
    const { atSeconds, usedSeconds } = this.advance();
    const seconds = atSeconds - this.#older.atSeconds;
    return seconds > 0 ? (usedSeconds - this.#older.usedSeconds) / seconds : 0;
  }

  /** Lets the interval begin later if it has become too long. */
  advance(): UsageSample {
    const now = this.sample();
    if (now.atSeconds - this.#newer.atSeconds >= USAGE_WINDOW_SECONDS) [this.#older, this.#newer] = [this.#newer, now];
    return now;
  }
}
