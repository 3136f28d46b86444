/*
 * One sampler for each application: the process, its control group and its runtime → metrics of a registry.
 *
 * Everything is read when it is asked for. What needs to be watched in between (event-loop delay, garbage
 * collections, the interval of the CPU percentage) runs from `start` to `close` and keeps no process alive.
 */

import { builtin } from '../base/builtin.js';
import { Date, eventLoopUtilization, monotonicNow } from '../base/clock.js';
import { assertOptions, OBJECT, show, STRING } from '../base/options-check.js';
import { assertMetricName, toDefaultLabels } from '../metrics/names.js';
import type { Registry } from '../metrics/registry.js';
import { findCgroups, readCgroupLimits, type CgroupLimits, type CgroupPaths } from './cgroup.js';
import { registerCollections } from './collection.js';
import type { EventLoopLag } from './event-loop.js';
import { readStatus } from './proc-files.js';
import { registerProcessMetrics, registerSpecMetrics, type ProcessReading } from './process-metrics.js';
import { createReadings, type Readings } from './readings.js';
import { registerRuntimeMetrics, type RuntimeSources } from './runtime.js';
import { createUsageWindow, type UsageWindow } from './usage-window.js';
import type { ProcessWatch, WatchSources } from './watch.js';

/** Where the readings come from; the running process, unless a test says otherwise. */
export interface ProcessSources
  extends Omit<RuntimeSources, 'lag' | 'utilization' | 'memoryUsage'>, WatchSources {
  /** Stands in front of `/proc` and `/sys`; empty for the real ones. */
  readonly root: string;
  readonly platform: string;
  readonly memoryUsage: () => {
    readonly rss: number;
    readonly heapTotal: number;
    readonly heapUsed: number;
    readonly external: number;
  };
  /** Microseconds since the process started. */
  readonly cpuUsage: () => { readonly user: number; readonly system: number };
  /** Milliseconds since the event loop started. */
  readonly loopUsage: () => { readonly idle: number; readonly active: number };
  /** Seconds since the process started. */
  readonly uptime: () => number;
  readonly machine: () => { readonly memoryBytes: number; readonly cpus: number };
}

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
  registerProcessMetrics(readings, { ...sources, limits, startTime });
  registerRuntimeMetrics(readings, { ...sources, lag: () => watch?.lag() ?? NO_LAG, utilization: () => loop.read() });
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

/** Modules are loaded by the reading that needs them first, so that a start-up doesn't pay for a scrape. */
const REAL_SOURCES: ProcessSources = {
  root: '',
  platform: process.platform,
  version: process.version,
  memoryUsage: () => process.memoryUsage(),
  cpuUsage: () => process.cpuUsage(),
  uptime: () => process.uptime(),
  now: monotonicNow,
  machine: () => {
    const { availableParallelism, totalmem } = builtin('node:os');
    return { memoryBytes: totalmem(), cpus: availableParallelism() };
  },
  loopUsage: () => eventLoopUtilization(),
  activeResources: () => process.getActiveResourcesInfo(),
  activeHandles: () => typesOf('_getActiveHandles'),
  activeRequests: () => typesOf('_getActiveRequests'),
  heapLimit: () => builtin('node:v8').getHeapStatistics().heap_size_limit,
  heapSpaces: () => builtin('node:v8').getHeapSpaceStatistics(),
  createMonitor: (resolution) => builtin('node:perf_hooks').monitorEventLoopDelay({ resolution }),
  watchCollections: (listener) => {
    const { PerformanceObserver } = builtin('node:perf_hooks');
    const observer = new PerformanceObserver((list) => listener(list.getEntries()));
    observer.observe({ type: 'gc' });
    return observer;
  },
  createGcProfiler: () => new (builtin('node:v8').GCProfiler)(),
};

/**
 * Types of what is active. Node.js does not document these methods, but prom-client uses them; a runtime may lack them.
 */
function typesOf(method: '_getActiveHandles' | '_getActiveRequests'): readonly string[] {
  const list: unknown = Reflect.get(process, method);
  if (typeof list !== 'function') return [];
  const active = Reflect.apply(list, process, []) as readonly (object | null)[];
  return active.map((one) => one?.constructor?.name ?? 'Object');
}

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
