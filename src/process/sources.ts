/* Where readings of the process come from: the running process, unless a test says otherwise. */

import type { IntervalHistogram } from 'node:perf_hooks';
import type { GCProfiler, HeapSpaceInfo } from 'node:v8';
import { builtin } from '../base/builtin.js';
import { eventLoopUtilization, monotonicNow } from '../base/clock.js';

/** A performance entry of type `gc`; both times in milliseconds. */
export interface Collection {
  readonly startTime: number;
  readonly duration: number;
  /** `kind` is one of V8's `GCType`. */
  readonly detail?: unknown;
}

/** Methods of a `PerformanceObserver` that are used here. */
export interface CollectionWatch {
  /** Returns the collections that were not yet reported to a listener, and forgets them. */
  takeRecords(): readonly Collection[];
  disconnect(): void;
}

export interface ProcessSources {
  /** Stands in front of `/proc` and `/sys`; empty for the real ones. */
  readonly root: string;
  readonly platform: string;
  /** // "v20.20.2" */
  readonly version: string;
  readonly memoryUsage: () => Readonly<Record<'rss' | 'heapTotal' | 'heapUsed' | 'external', number>>;
  /** Microseconds since the process started. */
  readonly cpuUsage: () => { readonly user: number; readonly system: number };
  /** Milliseconds since the event loop started. */
  readonly loopUsage: () => { readonly idle: number; readonly active: number };
  /** Seconds since the process started. */
  readonly uptime: () => number;
  /** Milliseconds, monotonic; on the clock of the collections. */
  readonly now: () => number;
  readonly machine: () => { readonly memoryBytes: number; readonly cpus: number };
  /** The type of each resource that keeps the event loop alive. */
  readonly activeResources: () => readonly string[];
  /** The same of libuv's handles, except timers. */
  readonly activeHandles: () => readonly string[];
  /** The same of libuv's requests. */
  readonly activeRequests: () => readonly string[];
  readonly heapLimit: () => number;
  readonly heapSpaces: () => readonly HeapSpaceInfo[];
  readonly createMonitor: (resolutionMs: number) => IntervalHistogram;
  /** Reports collections, some turns after they took place. */
  readonly watchCollections: (listener: (collections: readonly Collection[]) => void) => CollectionWatch;
  readonly createGcProfiler: () => Pick<GCProfiler, 'start' | 'stop'>;
}

/** Modules are loaded by the reading that needs them first, so that a start-up doesn't pay for a scrape. */
export const REAL_SOURCES: ProcessSources = {
  root: '',
  platform: process.platform,
  version: process.version,
  memoryUsage: () => process.memoryUsage(),
  cpuUsage: () => process.cpuUsage(),
  loopUsage: () => eventLoopUtilization(),
  uptime: () => process.uptime(),
  now: monotonicNow,
  machine: () => {
    const { availableParallelism, totalmem } = builtin('node:os');
    return { memoryBytes: totalmem(), cpus: availableParallelism() };
  },
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
