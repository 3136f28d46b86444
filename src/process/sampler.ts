/*
 * One sampler for each application: the process, its control group and its runtime → metrics of a registry.
 *
 * Everything is read when it is asked for. What needs to be watched in between (event-loop delay, garbage
 * collections, the interval of the CPU percentage) runs from `start` to `close` and keeps no process alive.
 */

import { Date } from '../base/clock.js';
import { assertOptions, OBJECT, show, STRING } from '../base/options-check.js';
import { assertMetricName, toDefaultLabels } from '../metrics/names.js';
import type { Registry } from '../metrics/registry.js';
import type { EventLoopLag } from './event-loop.js';
import { findCgroups, readCgroupLimits, readStatus, type CgroupLimits, type CgroupPaths } from './linux.js';
import { registerCollections, registerProcessMetrics, registerSpecMetrics } from './process-metrics.js';
import type { ProcessReading } from './process-metrics.js';
import { createReadings, type Readings } from './readings.js';
import { REAL_SOURCES, type ProcessSources } from './sources.js';
import type { ProcessWatch } from './watch.js';

export interface ProcessSampler {
  /** Begins to watch event loop and garbage collector; resolves when it does. After `close` it does nothing. */
  start(): Promise<void>;
  /** The values of SPEC 2.2, read now. */
  read(): ProcessReading;
  /** Stops whatever `start` started; what was registered stays readable. */
  close(): void;
}

/**
 * Registers the metrics of a service's process and of Node.js; before `start` the metrics of event loop and garbage
 * collector stay 0.
 *
 * @throws {TypeError} when the registry has them already
 */
export function collectProcess(registry: Registry, given: Partial<ProcessSources> = {}): ProcessSampler {
  return createSampler(registry, createReadings(registry), true, given);
}

/**
 * @param isService whether it has the values of SPEC 2, too
 * @throws {TypeError} when the registry has them already
 */
export function createSampler(
  registry: Registry,
  readings: Readings,
  isService: boolean,
  given: Partial<ProcessSources> = {},
): ProcessSampler {
  registry.claimDefaultMetrics(() => close());
  const sources: ProcessSources = { ...REAL_SOURCES, ...given };
  const cpu = createUsageWindow(() => {
    const { user, system } = sources.cpuUsage();
    return { atSeconds: sources.uptime(), usedSeconds: (user + system) / 1e6 };
  });
  const loop = createUsageWindow(() => {
    const { idle, active } = sources.loopUsage();
    return { atSeconds: (idle + active) / 1000, usedSeconds: active / 1000 };
  });
  let cgroups: CgroupPaths | undefined;
  const limits = (): CgroupLimits => readCgroupLimits((cgroups ??= findCgroups(sources.root)));
  const read = (): ProcessReading => readProcess(sources, limits(), cpu);
  const startTime = Date.now() / 1000 - sources.uptime();
  if (isService) registerSpecMetrics(readings, read);
  const lag = (): EventLoopLag => watch?.lag() ?? NO_LAG;
  registerProcessMetrics(readings, { ...sources, limits, startTime, lag, utilization: loop.read });
  const collections = registerCollections(readings, isService, () => watch?.collect());
  let watch: ProcessWatch | undefined;
  let starting: Promise<void> | undefined;
  let isClosed = false;
  const advance = (): void => {
    cpu.advance();
    loop.advance();
  };
  const start = async (): Promise<void> => {
    const { watchProcess } = await import('./watch.js');
    if (!isClosed) watch = watchProcess(sources, collections, advance);
  };
  const close = (): void => {
    isClosed = true;
    watch?.close();
  };
  return { start: () => (starting ??= start()), read, close };
}

/** Before anything was measured. */
const NO_LAG: EventLoopLag = { last: 0, min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 };

function readProcess(sources: ProcessSources, limits: CgroupLimits, cpu: UsageWindow): ProcessReading {
  const machine = sources.machine();
  const rssBytes = sources.memoryUsage().rss;
  const memoryBytes = Math.min(limits.memoryBytes ?? Infinity, machine.memoryBytes);
  const cpus = Math.min(limits.cpus ?? Infinity, readStatus(sources.root).cpus ?? machine.cpus);
  return { rssBytes, rssPercent: (100 * rssBytes) / memoryBytes, cpuPercent: Math.min(100, (100 * cpu.read()) / cpus) };
}

/** Options of `collectDefaultMetrics`. */
export interface DefaultMetricsOptions {
  /** Stands in front of each name; default: nothing. */
  readonly prefix?: string;
  /** Labels of every sample; a metric's own label overrides a label of the same name. */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * Collects prom-client's default metrics of the process and of Node.js into a registry that isn't an application's,
 * until it is cleared. What watches the event loop and the garbage collector keeps no process alive.
 *
 * @throws {TypeError} for an invalid option, and when the registry has them already
 */
export function collectDefaultMetrics(registry: Registry, options: DefaultMetricsOptions = {}): void {
  if (typeof registry?.claimDefaultMetrics !== 'function')
    throw new TypeError(`collectDefaultMetrics() takes a registry, not ${show(registry)}; give new Registry()`);
  assertOptions('collectDefaultMetrics()', options, { prefix: STRING, labels: OBJECT });
  const { prefix = '', labels = {} } = options;
  assertMetricName(`${prefix}process_cpu_seconds_total`);
  const readings = createReadings(registry, prefix, Object.fromEntries(toDefaultLabels(labels)));
  createSampler(registry, readings, false).start().catch((error: Error) => process.emitWarning(error));
}

/** Both in seconds since the process, or the event loop, began. */
export interface UsageSample {
  readonly atSeconds: number;
  readonly usedSeconds: number;
}

/** Least length of an interval. */
export const USAGE_WINDOW_SECONDS = 5;

export interface UsageWindow {
  /**
   * How much was in use on average over the last 5 to 10 seconds, or since the clock started if that is less.
   *
   * The interval is longer when nothing has called `advance` for a while, never shorter because of another reader.
   */
  read(): number;
  /** Lets the interval begin later if it has become too long. */
  advance(): UsageSample;
}

/**
 * Measures how much a CPU or the event loop was used recently. The interval begins with a sample that the window takes
 * by its own clock, not with the last reading: two readers don't shorten each other's interval.
 *
 * Starts with the clock of its samples, so the first reading has an interval too.
 */
export function createUsageWindow(sample: () => UsageSample): UsageWindow {
  let older: UsageSample = { atSeconds: 0, usedSeconds: 0 };
  let newer = older;
  const advance = (): UsageSample => {
    const now = sample();
    if (now.atSeconds - newer.atSeconds >= USAGE_WINDOW_SECONDS) [older, newer] = [newer, now];
    return now;
  };
  const read = (): number => {
    const { atSeconds, usedSeconds } = advance();
    const seconds = atSeconds - older.atSeconds;
    return seconds > 0 ? (usedSeconds - older.usedSeconds) / seconds : 0;
  };
  return { read, advance };
}
