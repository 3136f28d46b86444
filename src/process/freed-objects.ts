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

/** Counts from its creation to `close`. */
interface FreedObjects {
  /** Counts collections that `node:perf_hooks` reported. */
  count(collections: readonly Collection[]): void;
  /** Counts what the profiler holds; it continues if its profile isn't done. */
  collect(): void;
  close(): void;
}

export function createFreedObjects(
  objects: NonNullable<CollectionHistograms['freed']>,
  { now, heapSpaces, createGcProfiler }: Pick<ProcessSources, 'now' | 'heapSpaces' | 'createGcProfiler'>,
): FreedObjects {
  const startSpan = (): Span => {
    const profiler = createGcProfiler();
    profiler.start();
    return { profiler, from: now(), until: Infinity, collections: 0 };
  };
  let heap = readHeap(heapSpaces());
  let heapReadAt = now();
  let span = startSpan();
  /** The span before: `node:perf_hooks` may report a collection of it only now. */
  let spanBefore: Span | undefined;
  /** How many collections the profile is still to measure. */
  let left = PROFILE_LENGTH;
  /** Bytes that the minor collections of this profile freed. */
  let freed = 0;
  /** Capacity of the new space when each of them began, added up, in bytes. */
  let capacity = 0;
  /** The share of the new space, 0 to 1, that minor collections freed in the last profile. */
  let freedShare = 1;

  const observe = (type: CollectionType, freedBytes: number): void => {
    const generation = GENERATIONS[type];
    if (generation !== undefined)
      objects.get(generation)?.observe(Math.round(Math.max(0, freedBytes) / BYTES_PER_OBJECT));
  };

  const estimate = (type: CollectionType, before: HeapReading, after: HeapReading): number => {
    if (type === INCREMENTAL) return 0;
    // A mark-compact empties the new space: what is in there now was made afterwards.
    if (type === MARK_COMPACT) return before.usedBytes - after.oldBytes;
    return freedShare * before.newCapacity;
  };

  const endSpan = (): void => {
    if (span.until < Infinity) return;
    // The span ends before the profiler is stopped: reading what it holds may set off a collection that it misses.
    span.until = now();
    const { statistics } = span.profiler.stop();
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
    count(collections) {
      if (collections.length === 0) return;
      const before = heap;
      const types = collections.map(typeOf);
      // Reading takes 17 µs, right after a pause, and collections can come 50 times a second.
      if (now() - heapReadAt >= HEAP_EVERY_MS || types.some((type) => KINDS[type] !== 'minor')) {
        heap = readHeap(heapSpaces());
        heapReadAt = now();
      }
      for (const [index, { startTime }] of collections.entries()) {
        const measured = [span, spanBefore].find((each) => each && startTime >= each.from && startTime < each.until);
        if (measured === undefined) observe(types[index]!, estimate(types[index]!, before, heap));
        else measured.collections += 1;
      }
      const everyMs = types.includes(INCREMENTAL) ? PROFILE_MARKING_EVERY_MS : PROFILE_EVERY_MS;
      if (span.until === Infinity) {
        if (span.collections >= left) endSpan();
      } else if (now() - span.until >= everyMs) {
        left = PROFILE_LENGTH;
        freed = capacity = 0;
        [span, spanBefore] = [startSpan(), span];
      }
    },
    collect() {
      if (span.until < Infinity || span.collections === 0) return;
      endSpan();
      if (left > 0) [span, spanBefore] = [startSpan(), span];
    },
    close: endSpan,
  };
}

/** The time from a start of the profiler to its stop. */
interface Span {
  readonly profiler: ReturnType<ProcessSources['createGcProfiler']>;
  readonly from: number;
  /** Infinite until the profiler is stopped. */
  until: number;
  /** Number of its collections that were reported so far. */
  collections: number;
}

interface HeapReading {
  readonly usedBytes: number;
  /** Outside of the new space. */
  readonly oldBytes: number;
  /** Capacity of the new space. */
  readonly newCapacity: number;
}

const NEW_SPACE = 'new_space';

function readHeap(spaces: readonly HeapSpaceInfo[]): HeapReading {
  const usedBytes = spaces.reduce((sum, { space_used_size: used }) => sum + used, 0);
  const newSpace = spaces.find(({ space_name: name }) => name === NEW_SPACE);
  const newBytes = newSpace?.space_used_size ?? 0;
  const newCapacity = newBytes + (newSpace?.space_available_size ?? 0);
  return { usedBytes, oldBytes: usedBytes - newBytes, newCapacity };
}
