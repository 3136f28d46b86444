/**
 * Registers what is to be known of the process: CPU, memory and files, under prom-client's names and those of SPEC 2.2.
 */
import type { CgroupLimits } from './cgroup.js';
import { countOpenFiles, readMaxFiles, readStatus } from './proc-files.js';
import type { Readings } from './readings.js';

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
  readonly memoryUsage: () => { readonly rss: number };
  readonly limits: () => CgroupLimits;
  /** Microseconds since the process started. */
  readonly cpuUsage: () => { readonly user: number; readonly system: number };
  /** Seconds since the Unix epoch. */
  readonly startTime: number;
}

/** Registers the values of SPEC 2.2. */
export function registerSpecMetrics(readings: Readings, read: () => ProcessReading): void {
  readings.gauges(readings.shared(read), [
    ['proc_rss_mem_bytes', 'Resident memory of the process.', ({ rssBytes }) => rssBytes],
    [
      'proc_rss_mem_perc',
      'Resident memory as a percentage of what the process may use.',
      ({ rssPercent }) => rssPercent,
    ],
    [
      'proc_cpu_perc',
      'CPU use of the last 5 to 10 seconds as a percentage of what the process may use.',
      ({ cpuPercent }) => cpuPercent,
    ],
  ]);
}

/** Registers prom-client's metrics of the process, and those of its CPU quota. */
export function registerProcessMetrics(readings: Readings, sources: ProcessMetricSources): void {
  readings.gauges(sources.memoryUsage, [
    ['process_resident_memory_bytes', 'Resident memory of the process.', ({ rss }) => rss],
  ]);
  readings.counters(readings.shared(sources.cpuUsage), [
    ['process_cpu_user_seconds_total', 'CPU time that the process spent in user mode.', ({ user }) => user / 1e6],
    [
      'process_cpu_system_seconds_total',
      'CPU time that the process spent in system mode.',
      ({ system }) => system / 1e6,
    ],
    [
      'process_cpu_seconds_total',
      'CPU time that the process spent in user and system mode.',
      ({ user, system }) => (user + system) / 1e6,
    ],
  ]);
  readings.gauges(
    () => sources.startTime,
    [['process_start_time_seconds', 'When the process started, in seconds since the Unix epoch.', (time) => time]],
  );
  if (sources.platform !== 'linux') return;
  registerProcFiles(readings, sources.root);
  registerThrottling(readings, readings.shared(sources.limits));
}

function registerProcFiles(readings: Readings, root: string): void {
  readings.gauges(
    readings.shared(() => readStatus(root)),
    [
      ['process_virtual_memory_bytes', 'Virtual memory of the process.', ({ virtualBytes }) => virtualBytes],
      [
        'process_heap_bytes',
        'Data segment of the process, heap and private mappings included.',
        ({ dataBytes }) => dataBytes,
      ],
    ],
  );
  readings.gauges(
    () => root,
    [
      ['process_open_fds', 'Open file descriptors.', countOpenFiles],
      ['process_max_fds', 'Limit of open file descriptors.', readMaxFiles],
    ],
  );
}

/** Registered when there is a quota for the first time, for without one there is nothing to count. */
function registerThrottling(readings: Readings, limits: () => CgroupLimits): void {
  readings.onceDue(
    () => limits().throttling !== undefined,
    () => {
      readings.counters(limits, [
        [
          'process_cgroup_cpu_periods_total',
          'Enforcement periods of the CPU quota in which the control group had something to run.',
          ({ throttling }) => throttling?.periods,
        ],
        [
          'process_cgroup_cpu_throttled_periods_total',
          'Enforcement periods in which the CPU quota stopped the control group.',
          ({ throttling }) => throttling?.throttledPeriods,
        ],
        [
          'process_cgroup_cpu_throttled_seconds_total',
          'Time for which the CPU quota stopped the control group, over all CPUs.',
          ({ throttling }) => throttling?.throttledSeconds,
        ],
      ]);
    },
  );
}
