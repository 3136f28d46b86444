/**
 * One sampler for each application: the process, its control group and its runtime → metrics of a registry.
 *
 * Everything is read when it is asked for. What needs to be watched in between (event-loop delay, garbage
 * collections, the interval of the CPU percentage) runs from `start` to `close` and keeps no process alive.
 */
import { findCgroups, readCgroupLimits } from './cgroup.js';
import type { CgroupLimits, CgroupPaths } from './cgroup.js';
import { CpuWindow } from './usage-window.js';
import { EventLoopMonitor, TICK_MS } from './event-loop.js';
import type { EventLoopSources } from './event-loop.js';
import { observeGc } from './gc.js';
import type { GcProfiler } from './gc.js';
import { registerRuntimeMetrics } from './runtime.js';
import type { RuntimeSources } from './runtime.js';
import { readStatus } from './proc-files.js';
import { registerProcessMetrics } from './process-metrics.js';
import type { ProcessReading } from './process-metrics.js';
import type { Registry } from '../metrics/registry.js';

/** Where the readings come from; the running process, unless a test says otherwise. */
export interface ProcessSources extends Omit<RuntimeSources, 'lag' | 'memoryUsage'>, EventLoopSources {
  /** Stands in front of `/proc` and `/sys`; empty for the real ones. */
  readonly root: string;
  readonly platform: string;
  readonly memoryUsage: () => { readonly rss: number; readonly heapTotal: number; readonly heapUsed: number; readonly external: number };
  /** Microseconds since the process started. */
  readonly cpuUsage: () => { readonly user: number; readonly system: number };
  /** Seconds since the process started. */
  readonly uptime: () => number;
  readonly machine: () => { readonly memoryBytes: number; readonly cpus: number };
  readonly createGcProfiler: () => GcProfiler;
}

export interface ProcessSampler {
  /** Begins to watch event loop and garbage collector; once is enough, and after `close` too late. */
  start(): void;
  /** The values of SPEC 2.2, read now. */
  read(): ProcessReading;
  /** Stops whatever `start` started; what was registered stays readable. */
  close(): void;
}

/** Registers the metrics of the process and of Node.js; before `start` those of event loop and garbage collector stay 0. */
export function collectProcess(registry: Registry, given: Partial<ProcessSources> = {}): ProcessSampler {
  const sources: ProcessSources = { ...REAL_SOURCES, ...given };
  const monitor = new EventLoopMonitor(sources);
  const cpu = new CpuWindow(() => {
    const { user, system } = sources.cpuUsage();
    return { atSeconds: sources.uptime(), cpuSeconds: (user + system) / 1e6 };
  });
  let cgroups: CgroupPaths | undefined;
  const limits = (): CgroupLimits => readCgroupLimits((cgroups ??= findCgroups(sources.root)));
  const read = (): ProcessReading => readProcess(sources, limits(), cpu);
  registerProcessMetrics(registry, { ...sources, read, limits, startTime: Date.now() / 1000 - sources.uptime() });
  registerRuntimeMetrics(registry, { ...sources, lag: () => monitor.read() });
  const gc = observeGc(registry, sources.createGcProfiler);
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  return {
    start() {
      if (isClosed || timer !== undefined) return;
      monitor.start();
      gc.start();
      timer = setInterval(() => {
        monitor.tick();
        cpu.advance();
        gc.drain();
      }, TICK_MS).unref();
    },
    read,
    close() {
      isClosed = true;
      clearInterval(timer);
      monitor.close();
      gc.close();
    },
  };
}

/** The modules are loaded by whoever needs them first, so that a start-up doesn't pay for a scrape. */
const REAL_SOURCES: ProcessSources = {
  root: '',
  platform: process.platform,
  version: process.version,
  memoryUsage: () => process.memoryUsage(),
  cpuUsage: () => process.cpuUsage(),
  uptime: () => process.uptime(),
  now: () => performance.now(),
  machine: () => {
    const { availableParallelism, totalmem } = process.getBuiltinModule('node:os');
    return { memoryBytes: totalmem(), cpus: availableParallelism() };
  },
  activeResources: () => process.getActiveResourcesInfo(),
  heapSpaces: () => process.getBuiltinModule('node:v8').getHeapSpaceStatistics(),
  createMonitor: (resolution) => process.getBuiltinModule('node:perf_hooks').monitorEventLoopDelay({ resolution }),
  createGcProfiler: () => new (process.getBuiltinModule('node:v8').GCProfiler)(),
};

function readProcess(sources: ProcessSources, limits: CgroupLimits, cpu: CpuWindow): ProcessReading {
  const machine = sources.machine();
  const rssBytes = sources.memoryUsage().rss;
  const memoryBytes = Math.min(limits.memoryBytes ?? Infinity, machine.memoryBytes);
  const cpus = Math.min(limits.cpus ?? Infinity, readStatus(sources.root).cpus ?? machine.cpus);
  return { rssBytes, rssPercent: (100 * rssBytes) / memoryBytes, cpuPercent: Math.min(100, (100 * cpu.read()) / cpus) };
}
