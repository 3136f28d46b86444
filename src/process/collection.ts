/*
 * Garbage collections as two histograms. They are registered at once; watch.ts counts into them, and is loaded later.
 */

import type { BoundHistogram } from '../metrics/histogram.js';
import type { Readings } from './readings.js';

/** prom-client's names. */
export type CollectionKind = 'major' | 'minor' | 'incremental' | 'weakcb';
/** 0 is a scavenge, 1 an incremental step or minor mark-sweep, 2 a mark-compact. */
export type Generation = '0' | '1' | '2';

/** Bytes of heap that count as one object. */
export const BYTES_PER_OBJECT = 50;
/** Collections of one profile; a stopped profiler holds some 3 kB for each. */
export const PROFILE_LENGTH = 16;
/** Milliseconds from one profile to the next. */
export const PROFILE_EVERY_MS = 600_000;

export interface CollectionHistograms {
  /** In seconds. */
  readonly durations: ReadonlyMap<CollectionKind, BoundHistogram>;
  /** In objects; undefined unless the process is a service. */
  readonly freed: ReadonlyMap<Generation, BoundHistogram> | undefined;
}

/** @param collect runs before each exposition, and counts for both histograms */
export function registerCollections(readings: Readings, isService: boolean, collect: () => void): CollectionHistograms {
  // The durations come first: their `collect` runs before the freed objects are exposed.
  const durations = readings.histogramBy('kind', ['major', 'minor', 'incremental', 'weakcb'], {
    name: 'nodejs_gc_duration_seconds',
    help: 'Garbage collection pauses by kind: major, minor, incremental or weakcb.',
    buckets: [0.001, 0.01, 0.1, 1, 2, 5],
    collect,
  });
  if (!isService) return { durations, freed: undefined };
  const freed = readings.histogramBy('generation', ['0', '1', '2'], {
    name: 'python_gc_collected_objects',
    help: HELP,
    buckets: [500, 1000, 5000, 10_000, 50_000],
  });
  return { durations, freed };
}

const HELP = [
  `Objects freed by one garbage collection, estimated: bytes of V8 heap freed, divided by ${BYTES_PER_OBJECT}.`,
  `V8 measures the bytes of ${PROFILE_LENGTH} collections every ${PROFILE_EVERY_MS / 60_000} minutes and when it begins`,
  'to mark; those in between are estimated from these and from the use of the heap.',
  'Generation 0 is a scavenge, 1 an incremental step or minor mark-sweep, 2 a mark-compact.',
].join(' ');
