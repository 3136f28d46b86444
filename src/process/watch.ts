/*
 * Watches the process between two expositions: the delay of its event loop and its garbage collections.
 *
 * Loaded when the watching begins: a service is up before it is watched.
 */

import { clearInterval, setInterval } from '../base/clock.js';
import { createEventLoopMonitor, TICK_MS, type EventLoopLag } from './event-loop.js';
import { createFreedObjects, KINDS, typeOf, type FreedObjects } from './freed-objects.js';
import type { CollectionHistograms } from './process-metrics.js';
import type { Collection, CollectionWatch, ProcessSources } from './sources.js';

/** Keeps no process alive. */
export interface ProcessWatch {
  lag(): EventLoopLag;
  /** Counts the collections that were not counted yet. */
  collect(): void;
  close(): void;
}

/** Begins to watch. @param onTick called every second */
export function watchProcess(
  sources: ProcessSources,
  { durations, freed }: CollectionHistograms,
  onTick: () => void,
): ProcessWatch {
  const monitor = createEventLoopMonitor(sources);
  const gc = createGcObserver(durations, sources, freed && createFreedObjects(freed, sources));
  monitor.start();
  gc.start();
  const tick = (): void => {
    monitor.tick();
    onTick();
  };
  const timer = setInterval(tick, TICK_MS).unref();
  return {
    lag: () => monitor.read(),
    collect: () => gc.collect(),
    close() {
      clearInterval(timer);
      monitor.close();
      gc.close();
    },
  };
}

/** Watches from `start` to `close`; what was counted stays readable. */
export interface GcObserver {
  start(): void;
  /** Counts the collections that were not yet reported to a listener. */
  collect(): void;
  close(): void;
}

export function createGcObserver(
  durations: CollectionHistograms['durations'],
  { watchCollections }: Pick<ProcessSources, 'watchCollections'>,
  freed: FreedObjects | undefined,
): GcObserver {
  let watch: CollectionWatch | undefined;
  const count = (collections: readonly Collection[]): void => {
    for (const collection of collections) {
      const kind = KINDS[typeOf(collection)];
      if (kind !== undefined) durations.get(kind)?.observe(collection.duration / 1000);
    }
    freed?.count(collections);
  };
  const collect = (): void => {
    count(watch?.takeRecords() ?? []);
    freed?.collect();
  };
  return {
    start() {
      if (watch !== undefined) return;
      watch = watchCollections(count);
      freed?.start();
    },
    collect,
    close() {
      collect();
      watch?.disconnect();
      watch = undefined;
      freed?.close();
    },
  };
}
