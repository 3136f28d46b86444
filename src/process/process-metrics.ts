/**
 * Registers what is to be known of the process: CPU, memory and files, under prom-client's names and those of SPEC 2.2.
 */
import type { CgroupLimits } from './cgroup.js';
import { countOpenFiles, readMaxFiles, readStatus } from './proc-files.js';
import type { Registry } from '../metrics/registry.js';

/** One reading of the values of SPEC 2.2. */
export interface ProcessReading {
  readonly rssBytes: number;
  /** Of the memory that the process may use: its tightest cgroup limit, or else the machine's. */
  readonly rssPercent: number;
  /** Of the CPU time that the process may use: its tightest cgroup quota, or else the machine's. */
  readonly cpuPercent: number;
}

/** Where the readings come from. */
export interface ProcessMetricSources {
  /** Stands in front of `/proc`. */
  readonly root: string;
  readonly platform: string;
  readonly read: () => ProcessReading;
  readonly limits: () => CgroupLimits;
  /** Microseconds since the process started. */
  readonly cpuUsage: () => { readonly user: number; readonly system: number };
  /** Seconds since the Unix epoch. */
  readonly startTime: number;
}

/** Registers the metrics; everything is read when they are exposed. */
export function registerProcessMetrics(registry: Registry, sources: ProcessMetricSources): void {
  registerSpecMetrics(registry, shared(registry, sources.read));
  registerCpu(registry, shared(registry, sources.cpuUsage));
  registry.gauge({ name: 'process_start_time_seconds', help: 'When the process started, in seconds since the Unix epoch.' }).set(sources.startTime);
  if (sources.platform !== 'linux') return;
  registerProcFiles(registry, sources.root);
  registerThrottling(registry, shared(registry, sources.limits));
}

/** Reads once for each exposition, whatever number of metrics ask. */
export function shared<T extends object>(registry: Registry, read: () => T): () => T {
  let reading: T | undefined;
  registry.onExpose(() => {
    reading = undefined;
  });
  return () => (reading ??= read());
}

function registerSpecMetrics(registry: Registry, read: () => ProcessReading): void {
  const metrics = [
    ['proc_rss_mem_bytes', 'rssBytes', 'Resident memory of the process.'],
    ['proc_rss_mem_perc', 'rssPercent', 'Resident memory as a percentage of what the process may use.'],
    ['proc_cpu_perc', 'cpuPercent', 'CPU use of the last 5 to 10 seconds as a percentage of what the process may use.'],
    ['process_resident_memory_bytes', 'rssBytes', 'Resident memory of the process.'],
  ] as const;
  for (const [name, key, help] of metrics) {
    registry.gauge({
      name,
      help,
      collect() {
        this.set(read()[key]);
      },
    });
  }
}

function registerCpu(registry: Registry, read: ProcessMetricSources['cpuUsage']): void {
  const metrics = [
    ['process_cpu_user_seconds_total', 'CPU time that the process spent in user mode.', () => read().user],
    ['process_cpu_system_seconds_total', 'CPU time that the process spent in system mode.', () => read().system],
    ['process_cpu_seconds_total', 'CPU time that the process spent in user and system mode.', () => read().user + read().system],
  ] as const;
  for (const [name, help, microseconds] of metrics) registerAbsolute(registry, name, help, () => microseconds() / 1e6);
}

function registerProcFiles(registry: Registry, root: string): void {
  const status = shared(registry, () => readStatus(root));
  const metrics = [
    ['process_virtual_memory_bytes', 'Virtual memory of the process.', () => status().virtualBytes],
    ['process_heap_bytes', 'Data segment of the process, heap and private mappings included.', () => status().dataBytes],
    ['process_open_fds', 'Open file descriptors.', () => countOpenFiles(root)],
    ['process_max_fds', 'Limit of open file descriptors.', () => readMaxFiles(root)],
  ] as const;
  for (const [name, help, read] of metrics) {
    registry.gauge({
      name,
      help,
      collect() {
        const value = read();
        if (value === undefined) this.remove();
        else this.set(value);
      },
    });
  }
}

/** Registered when there is a quota for the first time, for without one there is nothing to count. */
function registerThrottling(registry: Registry, limits: () => CgroupLimits): void {
  const metrics = [
    ['process_cgroup_cpu_periods_total', 'periods', 'Enforcement periods of the CPU quota in which the control group had something to run.'],
    ['process_cgroup_cpu_throttled_periods_total', 'throttledPeriods', 'Enforcement periods in which the CPU quota stopped the control group.'],
    ['process_cgroup_cpu_throttled_seconds_total', 'throttledSeconds', 'Time for which the CPU quota stopped the control group, over all CPUs.'],
  ] as const;
  const stopLooking = registry.onExpose(() => {
    if (limits().throttling === undefined) return;
    stopLooking();
    for (const [name, key, help] of metrics) registerAbsolute(registry, name, help, () => limits().throttling?.[key]);
  });
}

/** A counter that something else counts; without a value it has no sample. */
function registerAbsolute(registry: Registry, name: string, help: string, read: () => number | undefined): void {
  registry.counter({
    name,
    help,
    collect() {
      const value = read();
      this.reset();
      if (value === undefined) this.remove();
      else this.inc(value);
    },
  });
}
