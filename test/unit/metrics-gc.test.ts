import type { GCProfilerResult } from 'node:v8';
import { expect, test } from 'vitest';
import { BYTES_PER_OBJECT, observeGc } from '../../src/process/gc.js';
import { Registry } from '../../src/metrics/registry.js';
import { sampleMap } from '../support/exposition-parser.js';

type Collection = GCProfilerResult['statistics'][number];

test('every kind and generation is there before the first collection', () => {
  const { registry } = create();
  const samples = sampleMap(registry.expose());
  for (const kind of ['major', 'minor', 'incremental', 'weakcb']) expect(samples.get(`nodejs_gc_duration_seconds_count{kind=${kind}}`)).toBe(0);
  for (const generation of [0, 1, 2]) {
    expect(samples.get(`python_gc_collected_objects_count{generation=${generation}}`)).toBe(0);
    for (const le of ['500.0', '1000.0', '5000.0', '10000.0', '50000.0', '+Inf']) {
      expect(samples.get(`python_gc_collected_objects_bucket{generation=${generation},le=${le}}`)).toBe(0);
    }
  }
});

const KINDS: readonly { readonly type: string; readonly kind: string; readonly generation: number | undefined }[] = [
  { type: 'Scavenge', kind: 'minor', generation: 0 },
  { type: 'MinorMarkCompact', kind: 'minor', generation: 1 },
  { type: 'MinorMarkSweep', kind: 'minor', generation: 1 },
  { type: 'IncrementalMarking', kind: 'incremental', generation: 1 },
  { type: 'MarkSweepCompact', kind: 'major', generation: 2 },
  { type: 'ProcessWeakCallbacks', kind: 'weakcb', generation: undefined },
];

test.for(KINDS)('$type is $kind, generation $generation', ({ type, kind, generation }) => {
  const { registry, observer, collect } = create();
  observer.start();
  collect(type, 2_500, 600 * BYTES_PER_OBJECT);
  const samples = sampleMap(registry.expose());
  expect(samples.get(`nodejs_gc_duration_seconds_sum{kind=${kind}}`)).toBe(0.0025);
  expect(samples.get(`nodejs_gc_duration_seconds_bucket{kind=${kind},le=0.01}`)).toBe(1);
  for (const other of [0, 1, 2]) {
    expect(samples.get(`python_gc_collected_objects_sum{generation=${other}}`)).toBe(other === generation ? 600 : 0);
    expect(samples.get(`python_gc_collected_objects_bucket{generation=${other},le=500.0}`)).toBe(0);
    expect(samples.get(`python_gc_collected_objects_bucket{generation=${other},le=1000.0}`)).toBe(other === generation ? 1 : 0);
  }
});

test('a heap that grew during a collection freed nothing, and an unknown collection is left out', () => {
  const { registry, observer, collect } = create();
  observer.start();
  collect('Scavenge', 1, -5000);
  collect('SomethingNew', 1, 5000);
  const samples = sampleMap(registry.expose());
  expect(samples.get('python_gc_collected_objects_count{generation=0}')).toBe(1);
  expect(samples.get('python_gc_collected_objects_sum{generation=0}')).toBe(0);
});

test('draining empties the profiler and loses nothing, and reading twice counts once', () => {
  const { registry, observer, collect, held } = create();
  observer.start();
  observer.start();
  for (let round = 0; round < 5; round++) {
    for (let index = 0; index < 10; index++) collect('Scavenge', 1, 100);
    observer.drain();
    expect(held()).toBe(0);
  }
  registry.expose();
  expect(sampleMap(registry.expose()).get('nodejs_gc_duration_seconds_count{kind=minor}')).toBe(50);
});

test('close stops the profiler and keeps what was counted', () => {
  const { registry, observer, collect, isRunning } = create();
  observer.close();
  observer.start();
  collect('Scavenge', 1, 100);
  observer.close();
  expect(isRunning()).toBe(false);
  collect('Scavenge', 1, 100);
  expect(sampleMap(registry.expose()).get('nodejs_gc_duration_seconds_count{kind=minor}')).toBe(1);
});

interface Bench {
  readonly registry: Registry;
  readonly observer: ReturnType<typeof observeGc>;
  readonly collect: (gcType: string, costMicroseconds: number, freedBytes: number) => void;
  readonly held: () => number;
  readonly isRunning: () => boolean;
}

function create(): Bench {
  const registry = new Registry();
  let running: Collection[] | undefined;
  const observer = observeGc(registry, () => ({
    start() {
      running = [];
    },
    stop() {
      const statistics = running ?? [];
      running = undefined;
      return { version: 1, startTime: 0, endTime: 0, statistics };
    },
  }));
  return {
    registry,
    observer,
    collect: (gcType, cost, freedBytes) => running?.push({ gcType, cost, beforeGC: heapOf(1e6), afterGC: heapOf(1e6 - freedBytes) }),
    held: () => running?.length ?? 0,
    isRunning: () => running !== undefined,
  };
}

function heapOf(usedHeapSize: number): Collection['beforeGC'] {
  return {
    heapSpaceStatistics: [],
    heapStatistics: {
      totalHeapSize: 0,
      totalHeapSizeExecutable: 0,
      totalPhysicalSize: 0,
      totalAvailableSize: 0,
      totalGlobalHandlesSize: 0,
      usedGlobalHandlesSize: 0,
      usedHeapSize,
      heapSizeLimit: 0,
      mallocedMemory: 0,
      externalMemory: 0,
      peakMallocedMemory: 0,
    },
  };
}
