/*
 * Registers the metrics of the Node.js runtime, under prom-client's names.
 */

import type { HeapSpaceInfo } from 'node:v8';
import type { EventLoopLag } from './event-loop.js';
import type { Readings } from './readings.js';

/** Where the readings come from. */
export interface RuntimeSources {
  readonly lag: () => EventLoopLag;
  /** Share of the time, 0 to 1, that the event loop did not wait. */
  readonly utilization: () => number;
  readonly memoryUsage: () => { readonly heapTotal: number; readonly heapUsed: number; readonly external: number };
  readonly heapLimit: () => number;
  readonly heapSpaces: () => readonly HeapSpaceInfo[];
  /** The type of each resource that keeps the event loop alive. */
  readonly activeResources: () => readonly string[];
  /** The same of libuv's handles, except timers. */
  readonly activeHandles: () => readonly string[];
  /** The same of libuv's requests. */
  readonly activeRequests: () => readonly string[];
  /** // "v20.20.2" */
  readonly version: string;
}

/** Registers the gauges; everything is read when they are exposed. */
export function registerRuntimeMetrics(readings: Readings, sources: RuntimeSources): void {
  registerEventLoop(readings, sources);
  registerActive(readings, 'resources', 'Resources that keep the event loop alive', sources.activeResources);
  registerActive(readings, 'handles', 'Open handles of libuv, except timers', sources.activeHandles);
  registerActive(readings, 'requests', 'Requests of libuv under way', sources.activeRequests);
  registerHeap(readings, sources);
  const [major = '', minor = '', patch = ''] = sources.version.slice(1).split('.');
  readings.info('nodejs_version_info', 'Version of Node.js; always 1.', {
    version: sources.version,
    major,
    minor,
    patch,
  });
}

function registerEventLoop(readings: Readings, { lag, utilization }: RuntimeSources): void {
  const read = readings.shared(lag);
  const register = (which: Exclude<keyof EventLoopLag, 'last'>, what: string): void =>
    readings.gauge(
      `nodejs_eventloop_lag_${which}_seconds`,
      `${what} event loop delay of the last one to two minutes.`,
      () => read()[which],
    );
  readings.gauge(
    'nodejs_eventloop_lag_seconds',
    'How late the event loop ran a timer that is due every second: the last time, or by now.',
    () => read().last,
  );
  register('min', 'Lowest');
  register('max', 'Highest');
  register('mean', 'Mean');
  register('stddev', 'Standard deviation of the');
  register('p50', 'Median');
  register('p90', '90th percentile of the');
  register('p99', '99th percentile of the');
  readings.gauge(
    'nodejs_eventloop_utilization',
    'Share of the last 5 to 10 seconds in which the event loop did not wait, 0 to 1.',
    utilization,
  );
}

/** The number of each type, and of all. */
function registerActive(readings: Readings, what: string, help: string, types: () => readonly string[]): void {
  const read = readings.shared(types);
  readings.gaugeBy('type', `nodejs_active_${what}`, `${help}, by type.`, () => read().map((type) => [type, 1]));
  readings.gauge(`nodejs_active_${what}_total`, `${help}.`, () => read().length);
}

function registerHeap(readings: Readings, { memoryUsage, heapLimit, heapSpaces }: RuntimeSources): void {
  const memory = readings.shared(memoryUsage);
  readings.gauge('nodejs_heap_size_total_bytes', 'Size of the V8 heap.', () => memory().heapTotal);
  readings.gauge('nodejs_heap_size_used_bytes', 'Used part of the V8 heap.', () => memory().heapUsed);
  readings.gauge(
    'nodejs_external_memory_bytes',
    'Memory of C++ objects that JavaScript objects hold.',
    () => memory().external,
  );
  readings.gauge('nodejs_heap_size_limit_bytes', 'Size at which the V8 heap ends the process.', heapLimit);
  const spaces = readings.shared(heapSpaces);
  const register = (
    which: string,
    what: string,
    key: 'space_size' | 'space_used_size' | 'space_available_size',
  ): void =>
    readings.gaugeBy('space', `nodejs_heap_space_size_${which}_bytes`, `${what} of a space of the V8 heap.`, () =>
      spaces().map((space) => [space.space_name.replace(/_space$/, ''), space[key]]),
    );
  register('total', 'Size', 'space_size');
  register('used', 'Used part', 'space_used_size');
  register('available', 'Free part', 'space_available_size');
}
