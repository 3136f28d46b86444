/**
 * Registers what is to be known of the Node.js runtime, under prom-client's names.
 */
import type { HeapSpaceInfo } from 'node:v8';
import type { EventLoopLag } from './event-loop.js';
import type { Reading, Readings } from './readings.js';

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
  /** The same of libuv's handles, timers aside. */
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
  registerActive(readings, 'handles', 'Open handles of libuv, timers aside', sources.activeHandles);
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
  const delays: readonly (readonly [name: string, what: string, value: (lag: EventLoopLag) => number])[] = [
    ['min', 'Lowest event loop delay', ({ min }) => min],
    ['max', 'Highest event loop delay', ({ max }) => max],
    ['mean', 'Mean event loop delay', ({ mean }) => mean],
    ['stddev', 'Standard deviation of the event loop delay', ({ stddev }) => stddev],
    ['p50', 'Median event loop delay', ({ p50 }) => p50],
    ['p90', '90th percentile of the event loop delay', ({ p90 }) => p90],
    ['p99', '99th percentile of the event loop delay', ({ p99 }) => p99],
  ];
  readings.gauges(readings.shared(lag), [
    [
      'nodejs_eventloop_lag_seconds',
      'How late the event loop came to a timer that is due every second: the last time, or by now.',
      ({ last }) => last,
    ],
    ...delays.map(([name, what, value]): Reading<EventLoopLag> => [
      `nodejs_eventloop_lag_${name}_seconds`,
      `${what} of the last one to two minutes.`,
      value,
    ]),
  ]);
  readings.gauges(utilization, [
    [
      'nodejs_eventloop_utilization',
      'Share of the last 5 to 10 seconds in which the event loop did not wait, 0 to 1.',
      (share) => share,
    ],
  ]);
}

/** The number of each type, and of all. */
function registerActive(readings: Readings, what: string, help: string, types: () => readonly string[]): void {
  const read = readings.shared(types);
  readings.gaugesBy('type', read, [
    [`nodejs_active_${what}`, `${help}, by type.`, (all) => all.map((type) => [type, 1] as const)],
  ]);
  readings.gauges(read, [[`nodejs_active_${what}_total`, `${help}.`, ({ length }) => length]]);
}

function registerHeap(readings: Readings, { memoryUsage, heapLimit, heapSpaces }: RuntimeSources): void {
  readings.gauges(readings.shared(memoryUsage), [
    ['nodejs_heap_size_total_bytes', 'Size of the V8 heap.', ({ heapTotal }) => heapTotal],
    ['nodejs_heap_size_used_bytes', 'Used part of the V8 heap.', ({ heapUsed }) => heapUsed],
    ['nodejs_external_memory_bytes', 'Memory of C++ objects that JavaScript objects hold.', ({ external }) => external],
  ]);
  readings.gauges(heapLimit, [
    ['nodejs_heap_size_limit_bytes', 'Size at which the V8 heap ends the process.', (limit) => limit],
  ]);
  const each =
    (key: 'space_size' | 'space_used_size' | 'space_available_size') =>
    (spaces: readonly HeapSpaceInfo[]): (readonly [string, number])[] =>
      spaces.map((space) => [space.space_name.replace(/_space$/, ''), space[key]]);
  readings.gaugesBy('space', readings.shared(heapSpaces), [
    ['nodejs_heap_space_size_total_bytes', 'Size of a space of the V8 heap.', each('space_size')],
    ['nodejs_heap_space_size_used_bytes', 'Used part of a space of the V8 heap.', each('space_used_size')],
    ['nodejs_heap_space_size_available_bytes', 'Free part of a space of the V8 heap.', each('space_available_size')],
  ]);
}
