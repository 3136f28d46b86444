/*
 * Watches the process between two expositions: the delay of its event loop, and its garbage collections, with how many
 * objects they freed, `python_gc_collected_objects` (SPEC 2.3).
 */

import type { PerformanceEntry } from 'node:perf_hooks';
import { builtin } from '../base/builtin.js';
import { clearInterval, monotonicNow, setInterval } from '../base/clock.js';
import { BYTES_PER_OBJECT } from './process-metrics.js';
import type { CollectionHistograms, CollectionKind, EventLoopLag, Generation } from './process-metrics.js';

/** Keeps no process alive. */
export interface ProcessWatch {
  lag(): EventLoopLag;
  /** Counts the collections that were not counted yet. */
  collect(): void;
  /** Stops watching, after counting the latest collections. */
  close(): void;
}

/** Begins to watch. @param onTick called every second */
export function watchProcess(histograms: CollectionHistograms, onTick: () => void): ProcessWatch {
  const { PerformanceObserver } = builtin('node:perf_hooks');
  const loop = createEventLoopMonitor();
  const count = createCollectionCounter(histograms);
  // Reports collections some turns after they took place.
  const observer = new PerformanceObserver((list) => count(list.getEntries()));
  observer.observe({ type: 'gc' });
  const collect = (): void => count(observer.takeRecords());
  const timer = setInterval(() => {
    loop.tick();
    onTick();
  }, TICK_MS).unref();
  return {
    lag: () => loop.read(),
    collect,
    close() {
      clearInterval(timer);
      loop.close();
      collect();
      observer.disconnect();
    },
  };
}

/** Milliseconds between two ticks. At 20, they take 3 ms of CPU in each second of an idle process; at 10, twice that. */
export const RESOLUTION_MS = 20;
/** Interval at which `tick` must be called, in milliseconds. */
export const TICK_MS = 1000;
/** Prometheus scrapes once a minute by default, so it sees every spike. */
const WINDOW_MS = 60_000;

/** Measures until it is closed. */
export interface EventLoopMonitor {
  /** To be called every `TICK_MS`: how much later it is called is the lag of the event loop. */
  tick(): void;
  read(): EventLoopLag;
  close(): void;
}

/**
 * Measures the lag of the event loop over the last one to two minutes, by a clock of its own: reading it changes
 * nothing.
 *
 * Two of Node's delay monitors run in step and are emptied in turn, so that the older one has seen at least a whole
 * minute. Each measures the time between two ticks; what is over the tick's length is lag.
 */
export function createEventLoopMonitor(): EventLoopMonitor {
  const { monitorEventLoopDelay } = builtin('node:perf_hooks');
  let older = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  let newer = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  older.enable();
  newer.enable();
  let emptiedAt = monotonicNow();
  let dueAt = emptiedAt + TICK_MS;
  let lastMs = 0;
  return {
    tick() {
      const at = monotonicNow();
      lastMs = Math.max(0, at - dueAt);
      dueAt = at + TICK_MS;
      if (at - emptiedAt < WINDOW_MS) return;
      older.reset();
      [older, newer] = [newer, older];
      emptiedAt = at;
    },
    read() {
      // The least and largest value of an empty monitor are the limits of its type of number.
      const measured = older.count === 0 ? undefined : older;
      return {
        last: Math.max(lastMs, monotonicNow() - dueAt) / 1000,
        min: toLag(measured?.min),
        max: toLag(measured?.max),
        mean: toLag(measured?.mean),
        stddev: (measured?.stddev ?? 0) / 1e9,
        p50: toLag(measured?.percentile(50)),
        p90: toLag(measured?.percentile(90)),
        p99: toLag(measured?.percentile(99)),
      };
    },
    close() {
      older.disable();
      newer.disable();
    },
  };
}

/** Nanoseconds between two ticks → seconds of lag; timers have whole milliseconds, so a tick may come early. */
function toLag(nanoseconds: number = 0): number {
  return Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1000);
}

/** By V8's `GCType`, of which `node:perf_hooks` names only some values. Weak callbacks free nothing themselves. */
const TYPES: Readonly<Record<number, readonly [CollectionKind, Generation?]>> = {
  1: ['minor', '0'],
  2: ['minor', '1'],
  4: ['major', '2'],
  8: ['incremental', '1'],
  16: ['weakcb'],
};

/**
 * Returns what counts collections, each of them once, after it took place.
 *
 * V8 reports neither the objects nor the bytes that a collection freed; its profiler measures the bytes, but makes
 * every pause longer. So they are estimated. A minor collection begins when the new space is full and empties most of
 * it; a mark-compact frees what the used heap has shrunk by since it was read last. If one report has several
 * mark-compacts, the first one counts as freeing all of that.
 */
function createCollectionCounter(
  { durations, freed }: CollectionHistograms,
): (collections: readonly PerformanceEntry[]) => void {
  let heap = readHeapSizes();
  return (collections) => {
    if (collections.length === 0) return;
    const before = heap;
    if (freed !== undefined) heap = readHeapSizes();
    // A mark-compact empties the new space: what is in there now was made afterwards.
    const major = before.usedBytes - heap.oldBytes;
    const freedBytes = { minor: before.newCapacity, major, incremental: 0, weakcb: 0 };
    for (const collection of collections) {
      const { kind: type = 0 } = Object(Reflect.get(collection, 'detail')) as { readonly kind?: number };
      const [kind, generation] = TYPES[type] ?? [];
      if (kind === undefined) continue;
      durations.get(kind)?.observe(collection.duration / 1000);
      if (generation === undefined) continue;
      freed?.get(generation)?.observe(Math.round(Math.max(0, freedBytes[kind]) / BYTES_PER_OBJECT));
      if (kind === 'major') freedBytes.major = 0;
    }
  };
}

/** All in bytes. */
interface HeapSizes {
  readonly usedBytes: number;
  /** Used outside of the new space. */
  readonly oldBytes: number;
  readonly newCapacity: number;
}

function readHeapSizes(): HeapSizes {
  const spaces = builtin('node:v8').getHeapSpaceStatistics();
  const usedBytes = spaces.reduce((sum, { space_used_size: used }) => sum + used, 0);
  const newSpace = spaces.find(({ space_name: name }) => name === 'new_space');
  const newBytes = newSpace?.space_used_size ?? 0;
  const newCapacity = newBytes + (newSpace?.space_available_size ?? 0);
  return { usedBytes, oldBytes: usedBytes - newBytes, newCapacity };
}
