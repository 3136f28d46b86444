/**
 * Registers what is to be known of the Node.js runtime, under prom-client's names.
 */
import type { HeapSpaceInfo } from 'node:v8';
import type { EventLoopLag } from './event-loop.js';
import { shared } from './process-metrics.js';
import type { Registry } from '../metrics/registry.js';

/** Where the readings come from. */
export interface RuntimeSources {
  readonly lag: () => EventLoopLag;
  readonly memoryUsage: () => { readonly heapTotal: number; readonly heapUsed: number; readonly external: number };
  readonly heapSpaces: () => readonly HeapSpaceInfo[];
  /** The type of each resource that keeps the event loop alive. */
  readonly activeResources: () => readonly string[];
  /** // "v20.20.2" */
  readonly version: string;
}

/** Registers the gauges; everything is read when they are exposed. */
export function registerRuntimeMetrics(registry: Registry, sources: RuntimeSources): void {
  registerLag(registry, shared(registry, sources.lag));
  registerResources(registry, sources);
  registerHeap(registry, shared(registry, sources.memoryUsage));
  registerHeapSpaces(registry, shared(registry, sources.heapSpaces));
  registerVersion(registry, sources.version);
}

function registerLag(registry: Registry, read: () => EventLoopLag): void {
  const metrics: readonly (readonly [name: string, key: keyof EventLoopLag, help: string])[] = [
    ['nodejs_eventloop_lag_seconds', 'last', 'How late the event loop came to a timer that is due every second: the last time, or by now.'],
    ['nodejs_eventloop_lag_min_seconds', 'min', 'Lowest event loop delay of the last one to two minutes.'],
    ['nodejs_eventloop_lag_max_seconds', 'max', 'Highest event loop delay of the last one to two minutes.'],
    ['nodejs_eventloop_lag_mean_seconds', 'mean', 'Mean event loop delay of the last one to two minutes.'],
    ['nodejs_eventloop_lag_stddev_seconds', 'stddev', 'Standard deviation of the event loop delay of the last one to two minutes.'],
    ['nodejs_eventloop_lag_p50_seconds', 'p50', 'Median event loop delay of the last one to two minutes.'],
    ['nodejs_eventloop_lag_p90_seconds', 'p90', '90th percentile of the event loop delay of the last one to two minutes.'],
    ['nodejs_eventloop_lag_p99_seconds', 'p99', '99th percentile of the event loop delay of the last one to two minutes.'],
  ];
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

function registerResources(registry: Registry, { activeResources }: RuntimeSources): void {
  registry.gauge({
    name: 'nodejs_active_resources',
    help: 'Resources that keep the event loop alive, by type.',
    labelNames: ['type'],
    collect() {
      this.reset();
      for (const type of activeResources()) this.inc({ type });
    },
  });
}

function registerHeap(registry: Registry, read: RuntimeSources['memoryUsage']): void {
  const metrics = [
    ['nodejs_heap_size_total_bytes', 'heapTotal', 'Size of the V8 heap.'],
    ['nodejs_heap_size_used_bytes', 'heapUsed', 'Used part of the V8 heap.'],
    ['nodejs_external_memory_bytes', 'external', 'Memory of C++ objects that JavaScript objects hold.'],
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

function registerHeapSpaces(registry: Registry, read: RuntimeSources['heapSpaces']): void {
  const metrics = [
    ['nodejs_heap_space_size_total_bytes', 'space_size', 'Size of a space of the V8 heap.'],
    ['nodejs_heap_space_size_used_bytes', 'space_used_size', 'Used part of a space of the V8 heap.'],
    ['nodejs_heap_space_size_available_bytes', 'space_available_size', 'Free part of a space of the V8 heap.'],
  ] as const;
  for (const [name, key, help] of metrics) {
    registry.gauge({
      name,
      help,
      labelNames: ['space'],
      collect() {
        for (const space of read()) this.set({ space: space.space_name.replace(/_space$/, '') }, space[key]);
      },
    });
  }
}

function registerVersion(registry: Registry, version: string): void {
  const [major = '', minor = '', patch = ''] = version.slice(1).split('.');
  registry
    .gauge({ name: 'nodejs_version_info', help: 'Version of Node.js; always 1.', labelNames: ['version', 'major', 'minor', 'patch'] })
    .set({ version, major, minor, patch }, 1);
}
