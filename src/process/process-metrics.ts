/*
 * Registers the metrics of the process and of Node.js, under prom-client's names and the names of SPEC 2.2. Everything
 * is read when it is exposed; watch.ts counts the garbage collections.
 */

import { builtin } from '../base/builtin.js';
import { Date } from '../base/clock.js';
import type { BoundHistogram } from '../metrics/histogram.js';
import { countOpenFiles, readMaxFiles, readStatus } from './linux.js';
import type { Readings } from './readings.js';

/** The values of SPEC 2.2 at one time. */
export interface ProcessUsage {
  readonly proc_rss_mem_bytes: number;
  /** Share of the memory that the process may use: its tightest cgroup limit, or else the machine's. */
  readonly proc_rss_mem_perc: number;
  /** Share of the CPU time that the process may use: its tightest cgroup quota, or else the machine's. */
  readonly proc_cpu_perc: number;
}

/**
 * All in seconds; 0 where nothing was measured yet. `last` is how late the last tick of the timer in watch.ts was, or
 * how late the next one is already.
 */
export type EventLoopLag = Readonly<Record<'last' | 'min' | 'max' | 'mean' | 'stddev' | 'p50' | 'p90' | 'p99', number>>;

/** Undefined until the event loop is watched. */
type ReadLag = () => EventLoopLag | undefined;

/** Memory of the process, in bytes; `rss` is undefined if it cannot be read. */
type MemoryUse = Pick<NodeJS.MemoryUsage, 'heapTotal' | 'heapUsed' | 'external'> & { readonly rss: number | undefined };

/** Linux reports `rss` in a file, so without a file descriptor `process.memoryUsage` throws; V8 knows the rest. */
export function readMemoryUse(): MemoryUse {
  try {
    return process.memoryUsage();
  } catch {
    const heap = builtin('node:v8').getHeapStatistics();
    const { total_heap_size: heapTotal, used_heap_size: heapUsed, external_memory: external } = heap;
    return { rss: undefined, heapTotal, heapUsed, external };
  }
}

/** Registers the values of SPEC 2.2. */
export function registerSpecMetrics(readings: Readings, read: () => Partial<ProcessUsage>): void {
  const process = readings.shared(read);
  const share = 'as a percentage of what the process may use.';
  readings.gauge('proc_rss_mem_bytes', 'Resident memory of the process.', () => process().proc_rss_mem_bytes);
  readings.gauge('proc_rss_mem_perc', `Resident memory ${share}`, () => process().proc_rss_mem_perc);
  readings.gauge('proc_cpu_perc', `CPU use of the last 5 to 10 seconds ${share}`, () => process().proc_cpu_perc);
}

/**
 * Registers prom-client's metrics of the process and of Node.js.
 *
 * @param root prefix of `/proc` and `/sys`; empty for the real directories
 * @param utilization reads the share of the time, 0 to 1, that the event loop did not wait
 */
export function registerProcessMetrics(
  readings: Readings, root: string, lag: ReadLag, utilization: () => number,
): void {
  const memory = readings.shared(readMemoryUse);
  const cpu = readings.shared(() => process.cpuUsage());
  const spent = 'CPU time that the process spent in';
  const started = 'When the process started, in seconds since the Unix epoch.';
  const startTime = Date.now() / 1000 - process.uptime();
  readings.gauge('process_resident_memory_bytes', 'Resident memory of the process.', () => memory().rss);
  readings.counter('process_cpu_user_seconds_total', `${spent} user mode.`, () => cpu().user / 1e6);
  readings.counter('process_cpu_system_seconds_total', `${spent} system mode.`, () => cpu().system / 1e6);
  const sum = (): number => (cpu().user + cpu().system) / 1e6;
  readings.counter('process_cpu_seconds_total', `${spent} user and system mode.`, sum);
  readings.gauge('process_start_time_seconds', started, () => startTime);
  if (process.platform === 'linux') {
    const status = readings.shared(() => readStatus(root));
    const data = 'Data segment of the process, heap and private mappings included.';
    readings.gauge('process_virtual_memory_bytes', 'Virtual memory of the process.', () => status().virtualBytes);
    readings.gauge('process_heap_bytes', data, () => status().dataBytes);
    readings.gauge('process_open_fds', 'Open file descriptors.', () => countOpenFiles(root));
    readings.gauge('process_max_fds', 'Limit of open file descriptors.', () => readMaxFiles(root));
  }
  registerEventLoop(readings, lag, utilization);
  const resources = (): readonly string[] => process.getActiveResourcesInfo();
  registerActive(readings, 'resources', 'Resources that keep the event loop alive', resources);
  registerActive(readings, 'handles', 'Open handles of libuv, except timers', () => typesOf('_getActiveHandles'));
  registerActive(readings, 'requests', 'Requests of libuv under way', () => typesOf('_getActiveRequests'));
  readings.gauge('nodejs_heap_size_total_bytes', 'Size of the V8 heap.', () => memory().heapTotal);
  readings.gauge('nodejs_heap_size_used_bytes', 'Used part of the V8 heap.', () => memory().heapUsed);
  const external = 'Memory of C++ objects that JavaScript objects hold.';
  readings.gauge('nodejs_external_memory_bytes', external, () => memory().external);
  const heapLimit = (): number => builtin('node:v8').getHeapStatistics().heap_size_limit;
  readings.gauge('nodejs_heap_size_limit_bytes', 'Size at which the V8 heap ends the process.', heapLimit);
  registerHeapSpaces(readings);
  const [major = '', minor = '', patch = ''] = process.version.slice(1).split('.');
  const labels = { version: process.version, major, minor, patch };
  readings.gaugeBy(Object.keys(labels), 'nodejs_version_info', 'Version of Node.js; always 1.', () => [[labels, 1]]);
}

function registerEventLoop(readings: Readings, lag: ReadLag, utilization: () => number): void {
  const read = readings.shared(lag);
  const last = 'How late the event loop ran a timer that is due every second: the last time, or by now.';
  const share = 'Share of the last 5 to 10 seconds in which the event loop did not wait, 0 to 1.';
  const register = (which: Exclude<keyof EventLoopLag, 'last'>, what: string): void => {
    const help = `${what} event loop delay of the last one to two minutes.`;
    readings.gauge(`nodejs_eventloop_lag_${which}_seconds`, help, () => read()?.[which] ?? 0);
  };
  readings.gauge('nodejs_eventloop_lag_seconds', last, () => read()?.last ?? 0);
  register('min', 'Lowest');
  register('max', 'Highest');
  register('mean', 'Mean');
  register('stddev', 'Standard deviation of the');
  register('p50', 'Median');
  register('p90', '90th percentile of the');
  register('p99', '99th percentile of the');
  readings.gauge('nodejs_eventloop_utilization', share, utilization);
}

/** The number of each type, and of all. */
function registerActive(readings: Readings, what: string, help: string, types: () => readonly string[]): void {
  const read = readings.shared(types);
  readings.gaugeBy(['type'], `nodejs_active_${what}`, `${help}, by type.`, () => read().map((type) => [{ type }, 1]));
  readings.gauge(`nodejs_active_${what}_total`, `${help}.`, () => read().length);
}

/**
 * Types of what is active. Node.js does not document these methods, but prom-client uses them; a runtime may lack them.
 */
function typesOf(method: '_getActiveHandles' | '_getActiveRequests'): readonly string[] {
  const list: unknown = Reflect.get(process, method);
  if (typeof list !== 'function') return [];
  const active = Reflect.apply(list, process, []) as readonly (object | null)[];
  return active.map((one) => one?.constructor?.name ?? 'Object');
}

function registerHeapSpaces(readings: Readings): void {
  const spaces = readings.shared(() => builtin('node:v8').getHeapSpaceStatistics());
  const register = (which: string, what: string, key: `space_${'size' | 'used_size' | 'available_size'}`): void =>
    readings.gaugeBy(['space'], `nodejs_heap_space_size_${which}_bytes`, `${what} of a space of the V8 heap.`, () =>
      spaces().map((each) => [{ space: each.space_name.replace(/_space$/, '') }, each[key]]),
    );
  register('total', 'Size', 'space_size');
  register('used', 'Used part', 'space_used_size');
  register('available', 'Free part', 'space_available_size');
}

/** prom-client's names. */
export type CollectionKind = 'major' | 'minor' | 'incremental' | 'weakcb';
/** 0 is a scavenge, 1 an incremental step or minor mark-sweep, 2 a mark-compact. */
export type Generation = '0' | '1' | '2';

/** Bytes of heap that count as one object: `--trace-gc-object-stats` counts a mean of 51 in a JSON service. */
export const BYTES_PER_OBJECT = 50;

export interface CollectionHistograms {
  /** In seconds. */
  readonly durations: ReadonlyMap<CollectionKind, BoundHistogram>;
  /** In objects; undefined unless the process is a service. */
  readonly freed: ReadonlyMap<Generation, BoundHistogram> | undefined;
}

/** @param collect runs before each exposition, and counts for both histograms */
export function registerCollections(readings: Readings, isService: boolean, collect: () => void): CollectionHistograms {
  const durations = readings.histogramBy('kind', ['major', 'minor', 'incremental', 'weakcb'], {
    name: 'nodejs_gc_duration_seconds',
    help: 'Garbage collection pauses by kind: major, minor, incremental or weakcb.',
    buckets: [0.001, 0.01, 0.1, 1, 2, 5],
    collect,
  });
  if (!isService) return { durations, freed: undefined };
  const freed = readings.histogramBy('generation', ['0', '1', '2'], {
    name: 'python_gc_collected_objects',
    help: [
      `Objects freed by one garbage collection, estimated: bytes of V8 heap freed, divided by ${BYTES_PER_OBJECT}.`,
      'A minor collection counts as freeing the new space, a mark-compact what the heap has shrunk by.',
      'Generation 0 is a scavenge, 1 an incremental step or minor mark-sweep, 2 a mark-compact.',
    ].join(' '),
    buckets: [500, 1000, 5000, 10_000, 50_000],
  });
  return { durations, freed };
}
