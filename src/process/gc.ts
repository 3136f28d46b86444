/**
 * Observes garbage collections: how long each took, and how much it freed.
 *
 * V8 counts the bytes of the heap before and after a collection, never the objects. `--trace-gc-object-stats`
 * does count: what a JSON service left to be collected had a mean of 51 bytes. So 50 bytes make an object here.
 */
import type { GCProfiler } from 'node:v8';
import type { Histogram } from '../metrics/histogram.js';
import type { Registry } from '../metrics/registry.js';

/** What is needed of V8's profiler. */
export type GcProfiler = Pick<GCProfiler, 'start' | 'stop'>;

export interface GcObserver {
  start(): void;
  /** Moves what the profiler holds, some 3 kB for each collection, into the histograms; call it once in a while. */
  drain(): void;
  close(): void;
}

/** Bytes of heap that count as one object. */
export const BYTES_PER_OBJECT = 50;

/** Registers the histograms; from `start` on each collection costs some 80 µs of CPU. */
export function observeGc(registry: Registry, createProfiler: () => GcProfiler): GcObserver {
  let profiler: GcProfiler | undefined;
  const drain = (): void => {
    if (profiler === undefined) return;
    const { statistics } = profiler.stop();
    profiler = createProfiler();
    profiler.start();
    for (const { gcType, cost, beforeGC, afterGC } of statistics) {
      const type = TYPES[gcType];
      if (type === undefined) continue;
      durations.observe({ kind: type.kind }, cost / 1e6);
      if (type.generation === undefined) continue;
      const freedBytes = Math.max(0, beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize);
      objects.observe({ generation: type.generation }, Math.round(freedBytes / BYTES_PER_OBJECT));
    }
  };
  const durations: Histogram<'kind'> = registry.histogram({
    name: 'nodejs_gc_duration_seconds',
    help: 'Garbage collection pauses by kind: major, minor, incremental or weakcb.',
    labelNames: ['kind'],
    buckets: [0.001, 0.01, 0.1, 1, 2, 5],
    collect: drain, // for both: this one is exposed first
  });
  const objects: Histogram<'generation'> = registry.histogram({
    name: 'python_gc_collected_objects',
    help: `Objects freed by one garbage collection, estimated: bytes of V8 heap freed, divided by ${BYTES_PER_OBJECT}. Generation 0 is a scavenge, 1 an incremental step or minor mark-sweep, 2 a mark-compact.`,
    labelNames: ['generation'],
    buckets: [500, 1000, 5000, 10_000, 50_000],
  });
  for (const kind of ['major', 'minor', 'incremental', 'weakcb']) durations.zero({ kind });
  for (const generation of ['0', '1', '2']) objects.zero({ generation });
  return {
    start() {
      if (profiler !== undefined) return;
      profiler = createProfiler();
      profiler.start();
    },
    drain,
    close() {
      drain();
      profiler?.stop();
      profiler = undefined;
    },
  };
}

/** V8's name of a collection → prom-client's kind and the generation; weak callbacks free nothing themselves. */
const TYPES: Readonly<Record<string, { readonly kind: string; readonly generation?: string }>> = {
  Scavenge: { kind: 'minor', generation: '0' },
  MinorMarkCompact: { kind: 'minor', generation: '1' },
  MinorMarkSweep: { kind: 'minor', generation: '1' },
  IncrementalMarking: { kind: 'incremental', generation: '1' },
  MarkSweepCompact: { kind: 'major', generation: '2' },
  ProcessWeakCallbacks: { kind: 'weakcb' },
};
