/*
 * Observes garbage collections: how long each took, and, where it is asked for, how much it freed.
 */

import { KINDS, typeOf } from './collection.js';
import type { Collection } from './collection.js';
import type { FreedObjects } from './freed-objects.js';
import type { Readings } from './readings.js';

/** What is needed of a `PerformanceObserver`. */
export interface CollectionWatch {
  /** Gives the collections that no listener was told of yet, and forgets them. */
  takeRecords(): readonly Collection[];
  disconnect(): void;
}

/** What tells of collections, some turns after they took place. */
export interface GcSources {
  readonly watchCollections: (listener: (collections: readonly Collection[]) => void) => CollectionWatch;
}

/** Watches from `start` to `close`; what was counted stays readable. */
export interface GcObserver {
  start(): void;
  close(): void;
}

/** Registers the histogram of durations, ahead of that of freed objects: its `collect`, run first, counts for both. */
export function createGcObserver(
  readings: Readings,
  { watchCollections }: GcSources,
  createFreed?: () => FreedObjects,
): GcObserver {
  const durations = readings.histogramBy('kind', ['major', 'minor', 'incremental', 'weakcb'], {
    name: 'nodejs_gc_duration_seconds',
    help: 'Garbage collection pauses by kind: major, minor, incremental or weakcb.',
    buckets: [0.001, 0.01, 0.1, 1, 2, 5],
    collect: () => collect(),
  });
  const freed = createFreed?.();
  let watch: CollectionWatch | undefined;

  /** Counts the collections that no listener was told of yet. */
  const collect = (): void => {
    count(watch?.takeRecords() ?? []);
    freed?.collect();
  };
  const count = (collections: readonly Collection[]): void => {
    for (const collection of collections) {
      const kind = KINDS[typeOf(collection)];
      if (kind !== undefined) durations.get(kind)?.observe(collection.duration / 1000);
    }
    freed?.count(collections);
  };
  return {
    start() {
      if (watch !== undefined) return;
      watch = watchCollections(count);
      freed?.start();
    },
    close() {
      collect();
      watch?.disconnect();
      watch = undefined;
      freed?.close();
    },
  };
}
