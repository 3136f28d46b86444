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

import { BYTES_PER_OBJECT, PROFILE_EVERY_MS, PROFILE_LENGTH } from './process-metrics.js';
import type { CollectionHistograms, CollectionKind, Generation } from './process-metrics.js';
import type { Collection, ProcessSources } from './sources.js';

interface CollectionType {
  readonly kind: CollectionKind;
  /** Undefined for weak callbacks: they free nothing themselves. */
  readonly generation?: Generation;
  /** Names that V8's profiler uses. */
  readonly names: readonly string[];
}

/** By V8's `GCType`, of which `node:perf_hooks` names only some values. */
const TYPES: Readonly<Record<number, CollectionType>> = {
  1: { kind: 'minor', generation: '0', names: ['Scavenge'] },
  2: { kind: 'minor', generation: '1', names: ['MinorMarkCompact', 'MinorMarkSweep'] },
  4: { kind: 'major', generation: '2', names: ['MarkSweepCompact'] },
  8: { kind: 'incremental', generation: '1', names: ['IncrementalMarking'] },
  16: { kind: 'weakcb', names: ['ProcessWeakCallbacks'] },
};

/** The type of a collection; undefined for a type that is unknown here. */
export function typeOf({ detail }: Collection): CollectionType | undefined {
  return TYPES[detail?.['kind'] ?? 0];
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
  { now, heapSpaces, createGcProfiler }: ProcessSources,
): FreedObjects {
  const readHeap = (): HeapReading => {
    const spaces = heapSpaces();
    const usedBytes = spaces.reduce((sum, { space_used_size: used }) => sum + used, 0);
    const newSpace = spaces.find(({ space_name: name }) => name === NEW_SPACE);
    const newBytes = newSpace?.space_used_size ?? 0;
    const newCapacity = newBytes + (newSpace?.space_available_size ?? 0);
    return { at: now(), usedBytes, oldBytes: usedBytes - newBytes, newCapacity };
  };
  const startSpan = (): Span => {
    const profiler = createGcProfiler();
    profiler.start();
    return { profiler, from: now(), until: Infinity, collections: 0 };
  };
  let heap = readHeap();
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

  const observe = ({ generation }: CollectionType, freedBytes: number): void => {
    if (generation !== undefined)
      objects.get(generation)?.observe(Math.round(Math.max(0, freedBytes) / BYTES_PER_OBJECT));
  };

  const estimate = ({ kind }: CollectionType, before: HeapReading): number => {
    if (kind === 'incremental') return 0;
    // A mark-compact empties the new space: what is in there now was made afterwards.
    if (kind === 'major') return before.usedBytes - heap.oldBytes;
    return freedShare * before.newCapacity;
  };

  const endSpan = (): void => {
    if (span.until < Infinity) return;
    // The span ends before the profiler is stopped: reading what it holds may set off a collection that it misses.
    span.until = now();
    const { statistics } = span.profiler.stop();
    left -= statistics.length;
    for (const { gcType, beforeGC, afterGC } of statistics) {
      const type = Object.values(TYPES).find(({ names }) => names.includes(gcType));
      if (type === undefined) continue;
      const freedBytes = beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize;
      observe(type, freedBytes);
      const newSpace = beforeGC.heapSpaceStatistics.find(({ spaceName }) => spaceName === NEW_SPACE);
      if (type.kind !== 'minor' || newSpace === undefined) continue;
      freed += Math.max(0, freedBytes);
      capacity += newSpace.spaceUsedSize + newSpace.spaceAvailableSize;
    }
    if (capacity > 0) freedShare = freed / capacity;
  };

  return {
    count(collections) {
      if (collections.length === 0) return;
      const kinds = collections.map((collection) => typeOf(collection)?.kind);
      const before = heap;
      // Reading takes 17 µs, right after a pause, and collections can come 50 times a second.
      if (now() - heap.at >= HEAP_EVERY_MS || kinds.some((kind) => kind !== 'minor')) heap = readHeap();
      for (const collection of collections) {
        const type = typeOf(collection);
        if (isMeasured(collection, span)) span.collections += 1;
        else if (type !== undefined && !isMeasured(collection, spanBefore)) observe(type, estimate(type, before));
      }
      const everyMs = kinds.includes('incremental') ? PROFILE_MARKING_EVERY_MS : PROFILE_EVERY_MS;
      if (now() - span.until >= everyMs) {
        left = PROFILE_LENGTH;
        freed = capacity = 0;
        [span, spanBefore] = [startSpan(), span];
      } else if (span.collections >= left) endSpan();
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
  /** Number of its collections that were reported so far; some are reported after the profiler is stopped. */
  collections: number;
}

/** Whether the profiler ran when a collection began. */
function isMeasured({ startTime }: Collection, span: Span | undefined): boolean {
  return span !== undefined && startTime >= span.from && startTime < span.until;
}

interface HeapReading {
  /** Milliseconds on the clock of the sources. */
  readonly at: number;
  readonly usedBytes: number;
  /** Outside of the new space. */
  readonly oldBytes: number;
  /** Capacity of the new space. */
  readonly newCapacity: number;
}

const NEW_SPACE = 'new_space';
