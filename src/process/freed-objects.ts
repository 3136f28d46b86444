/*
 * How many objects each garbage collection freed: `python_gc_collected_objects` (SPEC 2.3).
 *
 * V8's profiler reports the bytes that a collection freed, but it makes every pause longer, and once stopped it holds
 * native memory until a mark-compact. So it runs for a few collections now and then. Between these profiles the bytes
 * are estimated. A minor collection is taken to free the same share of the new space as those in the last profile did,
 * and a mark-compact roughly as much as the used heap has shrunk by since it was read last.
 *
 * V8 counts the bytes of the heap before and after a collection, never the objects. `--trace-gc-object-stats`
 * does count: what a JSON service left to be collected had a mean of 51 bytes. So 50 bytes make an object here.
 */

import type { HeapSpaceInfo } from 'node:v8';
import { BYTES_PER_OBJECT, PROFILE_EVERY_MS, PROFILE_LENGTH } from './process-metrics.js';
import type { CollectionHistograms, CollectionKind, Generation } from './process-metrics.js';
import type { Collection, ProcessSources } from './sources.js';

/** V8's `GCType`; `node:perf_hooks` names only some of its values. */
type CollectionType = number;
const MARK_COMPACT: CollectionType = 4;
const INCREMENTAL: CollectionType = 8;

/** prom-client's name of each type. */
export const KINDS: Readonly<Record<CollectionType, CollectionKind>> = {
  1: 'minor',
  2: 'minor',
  4: 'major',
  8: 'incremental',
  16: 'weakcb',
};
/** The generation of each type. Weak callbacks have no generation: they free nothing themselves. */
const GENERATIONS: Readonly<Record<CollectionType, Generation>> = { 1: '0', 2: '1', 4: '2', 8: '1' };
/** The types by the names that V8's profiler uses. */
const NAMED: Readonly<Record<string, CollectionType>> = {
  Scavenge: 1,
  MinorMarkCompact: 2,
  MinorMarkSweep: 2,
  MarkSweepCompact: MARK_COMPACT,
  IncrementalMarking: INCREMENTAL,
  ProcessWeakCallbacks: 16,
};

/** The type of a collection; 0 if its entry has none. */
export function typeOf({ detail }: Collection): CollectionType {
  return (detail as { readonly kind?: number } | undefined)?.kind ?? 0;
}

/**
 * Milliseconds from one profile to the next when incremental marking has begun: most often the mark-compact at its end
 * is measured, too.
 */
export const PROFILE_MARKING_EVERY_MS = 10_000;

/** Maximum age of a reading of the heap at a minor collection. */
export const HEAP_EVERY_MS = 1000;

/** Counts from `start` to `close`. */
export interface FreedObjects {
  start(): void;
  close(): void;
  /** Counts collections that `node:perf_hooks` reported. */
  count(collections: readonly Collection[]): void;
  /** Counts what the profiler holds; it continues if its profile isn't done. */
  collect(): void;
}

export function createFreedObjects(
  objects: NonNullable<CollectionHistograms['freed']>,
  { now, heapSpaces, createGcProfiler }: Pick<ProcessSources, 'now' | 'heapSpaces' | 'createGcProfiler'>,
): FreedObjects {
  let profiler: ReturnType<ProcessSources['createGcProfiler']> | undefined;
  /** The last two spans of the profiler: of a collection in the older one, `node:perf_hooks` may tell only now. */
  let spans: readonly Span[] = [];
  /** How many collections the profile is still to measure. */
  let left = 0;
  /** Bytes that the minor collections of this profile freed. */
  let freed = 0;
  /** Capacity of the new space when each of them began, added up, in bytes. */
  let capacity = 0;
  /** The share of the new space, 0 to 1, that minor collections freed in the last profile. */
  let freedShare = 1;
  let heap = readHeap([]);
  let heapReadAt = 0;

  const readSpaces = (): void => {
    heap = readHeap(heapSpaces());
    heapReadAt = now();
  };

  const observe = (type: CollectionType, freedBytes: number): void => {
    const generation = GENERATIONS[type];
    if (generation !== undefined)
      objects.get(generation)?.observe(Math.round(Math.max(0, freedBytes) / BYTES_PER_OBJECT));
  };

  const estimate = (type: CollectionType, before: HeapReading, after: HeapReading): number => {
    if (type === INCREMENTAL) return 0;
    // A mark-compact empties the new space: what is in there now was made afterwards.
    if (type === MARK_COMPACT) return before.usedBytes - (after.usedBytes - after.newBytes);
    return freedShare * before.newCapacity;
  };

  const startProfile = (): void => {
    left = PROFILE_LENGTH;
    freed = capacity = 0;
    startProfiler();
  };

  const startProfiler = (): void => {
    profiler = createGcProfiler();
    profiler.start();
    spans = [{ from: now(), until: Infinity, collections: 0 }, ...spans.slice(0, 1)];
  };

  const stopProfiler = (): void => {
    const [span] = spans;
    if (profiler === undefined || span === undefined) return;
    // The span ends before the profiler is stopped: reading what it holds may set off a collection that it misses.
    span.until = now();
    const { statistics } = profiler.stop();
    profiler = undefined;
    left -= statistics.length;
    for (const { gcType, beforeGC, afterGC } of statistics) {
      const type = NAMED[gcType] ?? 0;
      const freedBytes = beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize;
      observe(type, freedBytes);
      const newSpace = beforeGC.heapSpaceStatistics.find(({ spaceName }) => spaceName === NEW_SPACE);
      if (KINDS[type] !== 'minor' || newSpace === undefined) continue;
      freed += Math.max(0, freedBytes);
      capacity += newSpace.spaceUsedSize + newSpace.spaceAvailableSize;
    }
    if (capacity > 0) freedShare = freed / capacity;
  };

  return {
    start() {
      readSpaces();
      startProfile();
    },
    close: stopProfiler,
    count(collections) {
      if (collections.length === 0) return;
      const before = heap;
      // Reading takes 17 µs, right after a pause, and collections can come 50 times a second.
      const isDue = now() - heapReadAt >= HEAP_EVERY_MS;
      if (isDue || collections.some((each) => KINDS[typeOf(each)] !== 'minor')) readSpaces();
      let isMarking = false;
      for (const collection of collections) {
        const type = typeOf(collection);
        isMarking ||= type === INCREMENTAL;
        const { startTime } = collection;
        const span = spans.find(({ from, until }) => startTime >= from && startTime < until);
        if (span !== undefined) span.collections += 1;
        else observe(type, estimate(type, before, heap));
      }
      const [span] = spans;
      if (span === undefined) return;
      const idleMs = now() - span.until;
      if (profiler !== undefined && span.collections >= left) stopProfiler();
      else if (idleMs >= (isMarking ? PROFILE_MARKING_EVERY_MS : PROFILE_EVERY_MS)) startProfile();
    },
    collect() {
      if (profiler === undefined || spans[0]?.collections === 0) return;
      stopProfiler();
      if (left > 0) startProfiler();
    },
  };
}

/** The time from a start of the profiler to its stop. */
interface Span {
  readonly from: number;
  until: number;
  /** Number of its collections that were reported so far. */
  collections: number;
}

interface HeapReading {
  readonly usedBytes: number;
  /** In the new space. */
  readonly newBytes: number;
  /** Capacity of the new space. */
  readonly newCapacity: number;
}

const NEW_SPACE = 'new_space';

function readHeap(spaces: readonly HeapSpaceInfo[]): HeapReading {
  let usedBytes = 0;
  for (const { space_used_size: used } of spaces) usedBytes += used;
  const newSpace = spaces.find(({ space_name: name }) => name === NEW_SPACE);
  const newBytes = newSpace?.space_used_size ?? 0;
  return { usedBytes, newBytes, newCapacity: newBytes + (newSpace?.space_available_size ?? 0) };
}
