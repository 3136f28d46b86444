/*
 * Counts garbage collections: how long each took, and how many objects it freed, `python_gc_collected_objects` (SPEC
 * 2.3).
 *
 * V8 reports neither the objects nor the bytes that a collection freed; its profiler measures the bytes, but makes
 * every pause longer. So they are estimated. A minor collection begins when the new space is full and empties most of
 * it; a mark-compact frees what the used heap has shrunk by since it was read last, behind the collection before.
 */

import type { HeapSpaceInfo } from 'node:v8';
import { BYTES_PER_OBJECT } from './process-metrics.js';
import type { CollectionHistograms, CollectionKind, Generation } from './process-metrics.js';
import type { Collection, ProcessSources } from './sources.js';

/** By V8's `GCType`, of which `node:perf_hooks` names only some values. Weak callbacks free nothing themselves. */
const TYPES: Readonly<Record<number, readonly [CollectionKind, Generation?]>> = {
  1: ['minor', '0'],
  2: ['minor', '1'],
  4: ['major', '2'],
  8: ['incremental', '1'],
  16: ['weakcb'],
};

/** Returns what counts collections, each of them once, after it took place. */
export function createCollectionCounter(
  { durations, freed }: CollectionHistograms,
  { heapSpaces }: Pick<ProcessSources, 'heapSpaces'>,
): (collections: readonly Collection[]) => void {
  let heap = toReading(heapSpaces());
  return (collections) => {
    if (collections.length === 0) return;
    const before = heap;
    if (freed !== undefined) heap = toReading(heapSpaces());
    // A mark-compact empties the new space: what is in there now was made afterwards.
    const major = before.usedBytes - heap.oldBytes;
    const freedBytes = { minor: before.newCapacity, major, incremental: 0, weakcb: 0 };
    for (const { detail, duration } of collections) {
      const [kind, generation] = TYPES[detail?.['kind'] ?? 0] ?? [];
      if (kind === undefined) continue;
      durations.get(kind)?.observe(duration / 1000);
      if (generation === undefined) continue;
      freed?.get(generation)?.observe(Math.round(Math.max(0, freedBytes[kind]) / BYTES_PER_OBJECT));
    }
  };
}

/** All in bytes. */
interface HeapReading {
  readonly usedBytes: number;
  /** Used outside of the new space. */
  readonly oldBytes: number;
  readonly newCapacity: number;
}

function toReading(spaces: readonly HeapSpaceInfo[]): HeapReading {
  const usedBytes = spaces.reduce((sum, { space_used_size: used }) => sum + used, 0);
  const newSpace = spaces.find(({ space_name: name }) => name === 'new_space');
  const newBytes = newSpace?.space_used_size ?? 0;
  const newCapacity = newBytes + (newSpace?.space_available_size ?? 0);
  return { usedBytes, oldBytes: usedBytes - newBytes, newCapacity };
}
