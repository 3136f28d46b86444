/*
 * Observes garbage collections: how long each took, and, where it is asked for, how much it freed.
 */

import type { BoundHistogram } from '../metrics/histogram.js';
import { KINDS, typeOf } from './collection.js';
import type { Collection, CollectionKind } from './collection.js';
import type { FreedObjects } from './freed-objects.js';
import type { Readings } from './readings.js';

/** What is needed of a `PerformanceObserver`. */
export interface CollectionWatch {
  /** Gives and forgets what was not told yet. */
  takeRecords(): readonly Collection[];
  disconnect(): void;
}

/** Where collections are told of, some turns after they were. */
export interface GcSources {
  readonly watchCollections: (listener: (collections: readonly Collection[]) => void) => CollectionWatch;
}

/** Watches from `start` to `close`; what was counted stays readable. */
export class GcObserver {
  readonly #sources: GcSources;
  readonly #durations: ReadonlyMap<CollectionKind, BoundHistogram>;
  readonly #freed: FreedObjects | undefined;
  #watch: CollectionWatch | undefined;

  /** Registers the histogram of durations; it is to be exposed before that of freed objects. */
  constructor(readings: Readings, sources: GcSources, createFreed?: () => FreedObjects) {
    this.#sources = sources;
    this.#durations = readings.histogramBy('kind', ['major', 'minor', 'incremental', 'weakcb'], {
      name: 'nodejs_gc_duration_seconds',
      help: 'Garbage collection pauses by kind: major, minor, incremental or weakcb.',
      buckets: [0.001, 0.01, 0.1, 1, 2, 5],
      collect: () => this.#collect(),
    });
    this.#freed = createFreed?.();
  }

  start(): void {
    if (this.#watch !== undefined) return;
    this.#watch = this.#sources.watchCollections((collections) => this.#count(collections));
    this.#freed?.start();
  }

  close(): void {
    this.#collect();
    this.#watch?.disconnect();
    this.#watch = undefined;
    this.#freed?.close();
  }

  /** Counts what was not told yet. */
  #collect(): void {
    this.#count(this.#watch?.takeRecords() ?? []);
    this.#freed?.collect();
  }

  #count(collections: readonly Collection[]): void {
    for (const collection of collections) {
      const kind = KINDS[typeOf(collection)];
      if (kind !== undefined) this.#durations.get(kind)?.observe(collection.duration / 1000);
    }
    this.#freed?.count(collections);
  }
}
