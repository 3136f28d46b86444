/*
 * Watches the process between two expositions: the delay of its event loop and its garbage collections.
 *
 * Loaded when the watching begins: a service is up before it is watched.
 */

import { clearInterval, setInterval } from '../base/clock.js';
import { createEventLoopMonitor, TICK_MS, type EventLoopLag } from './event-loop.js';
import { createFreedObjects, typeOf } from './freed-objects.js';
import type { CollectionHistograms } from './process-metrics.js';
import type { Collection, ProcessSources } from './sources.js';

/** Keeps no process alive. */
export interface ProcessWatch {
  lag(): EventLoopLag;
  /** Counts the collections that were not counted yet. */
  collect(): void;
  /** Ends the watching; what was counted stays readable. */
  close(): void;
}

/** Begins to watch. @param onTick called every second */
export function watchProcess(
  sources: ProcessSources,
  { durations, freed }: CollectionHistograms,
  onTick: () => void,
): ProcessWatch {
  const loop = createEventLoopMonitor(sources);
  const count = (collections: readonly Collection[]): void => {
    for (const collection of collections) {
      const type = typeOf(collection);
      if (type !== undefined) durations.get(type.kind)?.observe(collection.duration / 1000);
    }
    freedObjects?.count(collections);
  };
  const collections = sources.watchCollections(count);
  const freedObjects = freed && createFreedObjects(freed, sources);
  const collect = (): void => {
    count(collections.takeRecords());
    freedObjects?.collect();
  };
  const tick = (): void => {
    loop.tick();
    onTick();
  };
  const timer = setInterval(tick, TICK_MS).unref();
  return {
    lag: () => loop.read(),
    collect,
    close() {
      clearInterval(timer);
      loop.close();
      collect();
      collections.disconnect();
      freedObjects?.close();
    },
  };
}
