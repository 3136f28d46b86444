/*
 * Registers the metrics of the process (CPU, memory, files), under prom-client's names and the names of SPEC 2.2.
 */

import type { CgroupLimits, CpuThrottling } from './cgroup.js';
import { countOpenFiles, readMaxFiles, readStatus } from './proc-files.js';
import type { Readings } from './readings.js';

/** One reading of the values of SPEC 2.2. */
export interface ProcessReading {
  readonly rssBytes: number;
  /** Share of the memory that the process may use: its tightest cgroup limit, or else the machine's. */
  readonly rssPercent: number;
  /** Share of the CPU time that the process may use: its tightest cgroup quota, or else the machine's. */
  readonly cpuPercent: number;
}

/** Where the readings come from. */
export interface ProcessMetricSources {
  /** Stands in front of `/proc`. */
  readonly root: string;
  readonly platform: string;
  readonly memoryUsage: () => { readonly rss: number };
  readonly limits: () => CgroupLimits;
  /** Microseconds since the process started. */
  readonly cpuUsage: () => { readonly user: number; readonly system: number };
  /** Seconds since the Unix epoch. */
  readonly startTime: number;
}

/** Registers the values of SPEC 2.2. */
export function registerSpecMetrics(readings: Readings, read: () => ProcessReading): void {
  const process = readings.shared(read);
  readings.gauge('proc_rss_mem_bytes', 'Resident memory of the process.', () => process().rssBytes);
  readings.gauge(
    'proc_rss_mem_perc',
    'Resident memory as a percentage of what the process may use.',
    () => process().rssPercent,
  );
  readings.gauge(
    'proc_cpu_perc',
    'CPU use of the last 5 to 10 seconds as a percentage of what the process may use.',
    () => process().cpuPercent,
  );
}

/** Registers prom-client's metrics of the process, and the metrics of its CPU quota. */
export function registerProcessMetrics(
  readings: Readings,
  { memoryUsage, cpuUsage, startTime, platform, root, limits }: ProcessMetricSources,
): void {
  const cpu = readings.shared(cpuUsage);
  const spent = 'CPU time that the process spent in';
  readings.gauge('process_resident_memory_bytes', 'Resident memory of the process.', () => memoryUsage().rss);
  readings.counter('process_cpu_user_seconds_total', `${spent} user mode.`, () => cpu().user / 1e6);
  readings.counter('process_cpu_system_seconds_total', `${spent} system mode.`, () => cpu().system / 1e6);
  readings.counter(
    'process_cpu_seconds_total',
    `${spent} user and system mode.`,
    () => (cpu().user + cpu().system) / 1e6,
  );
  readings.gauge(
    'process_start_time_seconds',
    'When the process started, in seconds since the Unix epoch.',
    () => startTime,
  );
  if (platform !== 'linux') return;
  const status = readings.shared(() => readStatus(root));
  readings.gauge('process_virtual_memory_bytes', 'Virtual memory of the process.', () => status().virtualBytes);
  readings.gauge(
    'process_heap_bytes',
    'Data segment of the process, heap and private mappings included.',
    () => status().dataBytes,
  );
  readings.gauge('process_open_fds', 'Open file descriptors.', () => countOpenFiles(root));
  readings.gauge('process_max_fds', 'Limit of open file descriptors.', () => readMaxFiles(root));
  registerThrottling(readings, readings.shared(limits));
}

/** Registered when there is a quota for the first time, for without one there is nothing to count. */
function registerThrottling(readings: Readings, limits: () => CgroupLimits): void {
  const register = (what: string, help: string, key: keyof CpuThrottling): void =>
    readings.counter(`process_cgroup_cpu_${what}_total`, help, () => limits().throttling?.[key]);
  readings.onceDue(
    () => limits().throttling !== undefined,
    () => {
      register(
        'periods',
        'Enforcement periods of the CPU quota in which the control group had something to run.',
        'periods',
      );
      register(
        'throttled_periods',
        'Enforcement periods in which the CPU quota stopped the control group.',
        'throttledPeriods',
      );
      register(
        'throttled_seconds',
        'Time for which the CPU quota stopped the control group, over all CPUs.',
        'throttledSeconds',
      );
    },
  );
}
