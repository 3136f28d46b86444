/* Readings of the running process; a test passes others. */

import type { monitorEventLoopDelay } from 'node:perf_hooks';
import type { HeapSpaceInfo } from 'node:v8';
import { builtin } from '../base/builtin.js';
import { monotonicNow } from '../base/clock.js';

/** A performance entry of type `gc`. */
export interface Collection {
  /** In milliseconds. */
  readonly duration: number;
  /** `kind` is one of V8's `GCType`. */
  readonly detail?: Readonly<Record<string, number>>;
}

/** Methods of a `PerformanceObserver` that are used here. */
export interface CollectionWatch {
  /** Returns the collections that were not yet reported to a listener, and forgets them. */
  takeRecords(): readonly Collection[];
  disconnect(): void;
}

/** Some versions of `@types/node` do not export its name, `IntervalHistogram`. */
type DelayMonitor = ReturnType<typeof monitorEventLoopDelay>;

/** Memory of the process, in bytes. */
interface MemoryUse extends Pick<NodeJS.MemoryUsage, 'heapTotal' | 'heapUsed' | 'external'> {
  /** Undefined if it cannot be read. */
  readonly rss: number | undefined;
}

/** Modules are loaded by the reading that needs them first, so that a start-up doesn't pay for a scrape. */
export class ProcessSources {
  /** Put before `/proc` and `/sys`; empty for the real ones. */
  readonly root: string = '';
  readonly platform: string = process.platform;
  readonly memoryUsage: () => MemoryUse = readMemoryUse;
  /** Microseconds since the process started. */
  readonly cpuUsage: () => NodeJS.CpuUsage = () => process.cpuUsage();
  /** Milliseconds since the event loop started. */
  readonly loopUsage: () => { readonly idle: number; readonly active: number } = () =>
    builtin('node:perf_hooks').performance.eventLoopUtilization();
  /** Seconds since the process started. */
  readonly uptime: () => number = () => process.uptime();
  /** Milliseconds, monotonic. */
  readonly now: () => number = monotonicNow;
  readonly machine: () => { readonly memoryBytes: number; readonly cpus: number } = () => {
    const { availableParallelism, totalmem } = builtin('node:os');
    return { memoryBytes: totalmem(), cpus: availableParallelism() };
  };
  /** The type of each resource that keeps the event loop alive. */
  readonly activeResources: () => readonly string[] = () => process.getActiveResourcesInfo();
  readonly heapSpaces: () => readonly HeapSpaceInfo[] = () => builtin('node:v8').getHeapSpaceStatistics();
  readonly createMonitor: (resolutionMs: number) => DelayMonitor = (resolution) =>
    builtin('node:perf_hooks').monitorEventLoopDelay({ resolution });
  /** Reports collections, some turns after they took place. */
  readonly watchCollections: (listener: (collections: readonly Collection[]) => void) => CollectionWatch = (report) => {
    const { PerformanceObserver } = builtin('node:perf_hooks');
    const observer = new PerformanceObserver((list) => report(list.getEntries()));
    observer.observe({ type: 'gc' });
    return observer;
  };
}

/** Linux reports `rss` in a file, so without a file descriptor `process.memoryUsage` throws; V8 knows the rest. */
function readMemoryUse(): MemoryUse {
  try {
    return process.memoryUsage();
  } catch {
    const heap = builtin('node:v8').getHeapStatistics();
    const { total_heap_size: heapTotal, used_heap_size: heapUsed, external_memory: external } = heap;
    return { rss: undefined, heapTotal, heapUsed, external };
  }
}
