/** Garbage collections: counted from performance entries, their bytes measured now and then by V8's profiler. */

import { createHistogram, type IntervalHistogram } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import v8, { type GCProfilerResult, type HeapSpaceInfo } from 'node:v8';
import { afterEach, expect, test, vi } from 'vitest';
import { HEAP_EVERY_MS, PROFILE_MARKING_EVERY_MS } from '../../src/process/freed-objects.js';
import {
  BYTES_PER_OBJECT,
  PROFILE_EVERY_MS,
  PROFILE_LENGTH,
  registerCollections,
} from '../../src/process/process-metrics.js';
import { Readings } from '../../src/process/readings.js';
import { collectProcess } from '../../src/process/sampler.js';
import { ProcessSources, type Collection, type CollectionWatch } from '../../src/process/sources.js';
import { watchProcess, type ProcessWatch } from '../../src/process/watch.js';
import { Registry } from '../../src/metrics/registry.js';
import { sampleMap } from '../support/exposition-parser.js';

vi.mock('../../src/base/clock.js', async (load) => (await import('../support/faked-clock.js')).fakeClock(await load()));

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const TYPES: readonly {
  readonly type: string;
  readonly gc: number;
  readonly kind: string;
  readonly generation: number | undefined;
}[] = [
  { type: 'Scavenge', gc: 1, kind: 'minor', generation: 0 },
  { type: 'MinorMarkCompact', gc: 2, kind: 'minor', generation: 1 },
  { type: 'MinorMarkSweep', gc: 2, kind: 'minor', generation: 1 },
  { type: 'IncrementalMarking', gc: 8, kind: 'incremental', generation: 1 },
  { type: 'MarkSweepCompact', gc: 4, kind: 'major', generation: 2 },
  { type: 'ProcessWeakCallbacks', gc: 16, kind: 'weakcb', generation: undefined },
];

test('every kind and generation is there before the first collection', () => {
  const { samples } = create();
  for (const kind of ['major', 'minor', 'incremental', 'weakcb'])
    expect(samples().get(`nodejs_gc_duration_seconds_count{kind=${kind}}`)).toBe(0);
  for (const generation of [0, 1, 2]) {
    expect(samples().get(`python_gc_collected_objects_count{generation=${generation}}`)).toBe(0);
    for (const le of ['500.0', '1000.0', '5000.0', '10000.0', '50000.0', '+Inf']) {
      expect(samples().get(`python_gc_collected_objects_bucket{generation=${generation},le=${le}}`)).toBe(0);
    }
  }
});

test.for(TYPES)(
  '$type is $kind, generation $generation, and what it freed is measured in a profile',
  ({ type, kind, generation }) => {
    const { samples, observer, collect } = create();
    observer.start();
    collect(type, { ms: 2.5, freed: 600 * BYTES_PER_OBJECT });
    expect(samples().get(`nodejs_gc_duration_seconds_sum{kind=${kind}}`)).toBe(0.0025);
    expect(samples().get(`nodejs_gc_duration_seconds_bucket{kind=${kind},le=0.01}`)).toBe(1);
    for (const other of [0, 1, 2]) {
      expect(samples().get(`python_gc_collected_objects_sum{generation=${other}}`)).toBe(other === generation ? 600 : 0);
      expect(samples().get(`python_gc_collected_objects_bucket{generation=${other},le=500.0}`)).toBe(0);
      expect(samples().get(`python_gc_collected_objects_bucket{generation=${other},le=1000.0}`))
        .toBe(other === generation ? 1 : 0);
    }
  },
);

test('a heap that grew during a collection freed nothing, and an unknown collection is left out', () => {
  const { samples, observer, collect } = create();
  observer.start();
  collect('Scavenge', { freed: -5000 });
  collect('SomethingNew', { freed: 5000 });
  expect(samples().get('python_gc_collected_objects_count{generation=0}')).toBe(1);
  expect(samples().get('python_gc_collected_objects_sum{generation=0}')).toBe(0);
});

test('between profiles a minor collection frees the share of the new space that it freed in the last one', () => {
  const { samples, observer, collect, heap, pass } = create();
  observer.start();
  for (let index = 0; index < PROFILE_LENGTH; index++) collect('Scavenge', { freed: 750_000, capacity: 1_000_000 });
  const measured = (PROFILE_LENGTH * 750_000) / BYTES_PER_OBJECT;
  expect(samples().get('python_gc_collected_objects_sum{generation=0}')).toBe(measured);
  heap({ newUsed: 200_000, newAvailable: 3_800_000 });
  pass(HEAP_EVERY_MS);
  collect('Scavenge', { freed: 1, capacity: 4_000_000 }); // the reading behind it is for the next one
  collect('Scavenge', { freed: 1, capacity: 4_000_000 });
  expect(samples().get('python_gc_collected_objects_count{generation=0}')).toBe(PROFILE_LENGTH + 2);
  expect(samples().get('python_gc_collected_objects_sum{generation=0}'))
    .toBe(measured + (750_000 + 3_000_000) / BYTES_PER_OBJECT);
});

test('between profiles a mark-compact frees what the heap has shrunk by, new objects behind it aside, and marking frees nothing', () => {
  const { samples, observer, collect, heap } = create();
  observer.start();
  for (let index = 0; index < PROFILE_LENGTH; index++) collect('Scavenge', { freed: 0 });
  heap({ oldUsed: 30_000_000, newUsed: 5_000_000 });
  collect('IncrementalMarking', {});
  heap({ oldUsed: 20_000_000, newUsed: 1_000_000 });
  collect('MarkSweepCompact', {});
  expect(samples().get('python_gc_collected_objects_count{generation=1}')).toBe(1);
  expect(samples().get('python_gc_collected_objects_sum{generation=1}')).toBe(0);
  expect(samples().get('python_gc_collected_objects_sum{generation=2}')).toBe(15_000_000 / BYTES_PER_OBJECT);
});

test('a profile ends behind its collections, and another begins ten minutes later', () => {
  const { observer, collect, profilers, isProfiled, pass } = create();
  observer.start();
  for (let index = 1; index < PROFILE_LENGTH; index++) collect('Scavenge', {});
  expect(isProfiled()).toBe(true);
  collect('Scavenge', {});
  expect(isProfiled()).toBe(false);
  pass(PROFILE_EVERY_MS - 1);
  for (let index = 0; index < 100; index++) collect('Scavenge', {});
  expect(profilers()).toBe(1);
  pass(1);
  collect('Scavenge', {});
  expect([profilers(), isProfiled()]).toEqual([2, true]);
});

test('one begins with incremental marking, at most every ten seconds, so that the mark-compact at its end is measured', () => {
  const { samples, observer, collect, profilers, isProfiled, pass } = create();
  observer.start();
  for (let index = 0; index < PROFILE_LENGTH; index++) collect('Scavenge', {});
  collect('IncrementalMarking', {});
  expect(isProfiled()).toBe(false);
  pass(PROFILE_MARKING_EVERY_MS);
  collect('Scavenge', {});
  expect(isProfiled()).toBe(false);
  collect('IncrementalMarking', {});
  collect('MarkSweepCompact', { freed: 5_000 });
  expect([profilers(), isProfiled()]).toEqual([2, true]);
  expect(samples().get('python_gc_collected_objects_sum{generation=2}')).toBe(5_000 / BYTES_PER_OBJECT);
});

test('what is told late is counted once, measured or estimated as it was when it happened', () => {
  const { samples, observer, collect, deliver, isProfiled, heap } = create();
  observer.start();
  heap({ newUsed: 0, newAvailable: 1_000_000 });
  for (let index = 0; index < PROFILE_LENGTH + 3; index++)
    collect('Scavenge', { freed: 500_000, capacity: 1_000_000, told: false });
  deliver();
  expect(isProfiled()).toBe(false);
  collect('Scavenge', { freed: 1, told: false });
  expect(samples().get('nodejs_gc_duration_seconds_count{kind=minor}')).toBe(PROFILE_LENGTH + 4);
  expect(samples().get('python_gc_collected_objects_count{generation=0}')).toBe(PROFILE_LENGTH + 4);
  expect(samples().get('python_gc_collected_objects_sum{generation=0}'))
    .toBe(((PROFILE_LENGTH + 4) * 500_000) / BYTES_PER_OBJECT);
});

test('a scrape counts what a profile holds so far, and needs no profiler where nothing was collected', () => {
  const { samples, observer, collect, profilers, isProfiled } = create();
  observer.start();
  for (let index = 0; index < 3; index++) collect('Scavenge', { freed: 5_000 });
  expect(samples().get('python_gc_collected_objects_sum{generation=0}')).toBe(300);
  for (let index = 0; index < 100; index++) samples();
  expect([profilers(), isProfiled()]).toEqual([2, true]);
  for (let index = 3; index < PROFILE_LENGTH; index++) collect('Scavenge', { freed: 5_000 });
  expect([profilers(), isProfiled()]).toEqual([2, false]);
  expect(samples().get('python_gc_collected_objects_sum{generation=0}')).toBe(PROFILE_LENGTH * 100);
});

test('close ends watch and profile, keeps what was counted, and lets nothing be counted again', () => {
  const { samples, observer, collect, isProfiled, isWatched } = create();
  observer.start();
  collect('Scavenge', { freed: 5_000, told: false });
  observer.close();
  observer.close();
  expect([isProfiled(), isWatched()]).toEqual([false, false]);
  collect('Scavenge', { freed: 5_000 });
  expect(samples().get('nodejs_gc_duration_seconds_count{kind=minor}')).toBe(1);
  expect(samples().get('python_gc_collected_objects_sum{generation=0}')).toBe(100);
});

test('a process that runs for minutes makes a profiler or two, and none runs between profiles', async () => {
  const profilers = { made: 0, running: 0 };
  const { GCProfiler } = v8;
  vi.spyOn(v8, 'GCProfiler').mockImplementation(function () {
    const profiler = new GCProfiler();
    profilers.made += 1;
    return {
      start() {
        profilers.running += 1;
        profiler.start();
      },
      stop() {
        profilers.running -= 1;
        return profiler.stop();
      },
    } as v8.GCProfiler;
  });
  vi.useFakeTimers({ toFake: ['setInterval'] });
  const registry = new Registry();
  const sampler = collectProcess(registry);
  await sampler.start();
  for (let second = 0; second < 200; second++) {
    litter();
    vi.advanceTimersByTime(1000);
    await turn();
  }
  expect(profilers.made).toBeLessThan(10);
  expect(profilers.running).toBe(0);
  const samples = sampleMap(registry.expose());
  sampler.close();
  const minor = samples.get('nodejs_gc_duration_seconds_count{kind=minor}') ?? 0;
  expect(minor).toBeGreaterThan(PROFILE_LENGTH);
  expect(samples.get('python_gc_collected_objects_count{generation=0}')).toBe(minor);
  expect((samples.get('python_gc_collected_objects_sum{generation=0}') ?? 0) / minor).toBeGreaterThan(1000);
});

/** Some garbage, more than a young generation of any size. */
function litter(): number {
  let length = 0;
  for (let index = 0; index < 50_000; index++) length += [index, String(index)].length;
  return length;
}

interface Bench {
  readonly observer: { readonly start: () => void; readonly close: () => void };
  readonly samples: () => Map<string, number>;
  /** One collection, told at once unless said otherwise. */
  readonly collect: (
    type: string,
    how: { readonly ms?: number; readonly freed?: number; readonly capacity?: number; readonly told?: boolean },
  ) => void;
  readonly deliver: () => void;
  /** What a reading of the heap says from now on. */
  readonly heap: (use: {
    readonly oldUsed?: number;
    readonly newUsed?: number;
    readonly newAvailable?: number;
  }) => void;
  readonly pass: (ms: number) => void;
  readonly profilers: () => number;
  readonly isProfiled: () => boolean;
  readonly isWatched: () => boolean;
}

function create(): Bench {
  const registry = new Registry();
  let now = 1000;
  let running: GCProfilerResult['statistics'] | undefined;
  let made = 0;
  let listener: ((collections: readonly Collection[]) => void) | undefined;
  let untold: Collection[] = [];
  let spaces = [space('old_space', 0, 0), space('new_space', 0, 1_000_000)];
  const takeRecords = (): Collection[] => untold.splice(0);
  const deliver = (): void => listener?.(takeRecords());
  let watch: ProcessWatch | undefined;
  const histograms = registerCollections(new Readings(registry), true, () => watch?.collect());
  const freed = {
    now: () => now,
    heapSpaces: () => spaces,
    createGcProfiler() {
      made += 1;
      return {
        start() {
          running = [];
        },
        stop() {
          const statistics = running ?? [];
          running = undefined;
          return { version: 1, startTime: 0, endTime: 0, statistics };
        },
      };
    },
  };
  const watchCollections = (tell: typeof listener & {}): CollectionWatch => {
    listener = tell;
    return { takeRecords, disconnect: () => void (listener = undefined) };
  };
  const createMonitor = (): IntervalHistogram =>
    Object.assign(createHistogram(), { enable: () => true, disable: () => true });
  const sources = { ...new ProcessSources(), ...freed, watchCollections, createMonitor };
  return {
    observer: {
      start: () => void (watch = watchProcess(sources, histograms, () => {})),
      close: () => watch?.close(),
    },
    deliver,
    samples: () => sampleMap(registry.expose()),
    collect(type, { ms = 1, freed = 0, capacity = 1_000_000, told = true }) {
      running?.push({
        gcType: type,
        cost: ms * 1000,
        beforeGC: heapOf(1e6, capacity),
        afterGC: heapOf(1e6 - freed, capacity),
      });
      const kind = TYPES.find((one) => one.type === type)?.gc ?? 32;
      if (listener !== undefined) untold.push({ startTime: now, duration: ms, detail: { kind, flags: 0 } });
      now += 0.001;
      if (told) deliver();
    },
    heap({ oldUsed = 0, newUsed = 0, newAvailable = 0 }) {
      spaces = [space('old_space', oldUsed, 0), space('new_space', newUsed, newAvailable)];
    },
    pass: (ms) => void (now += ms),
    profilers: () => made,
    isProfiled: () => running !== undefined,
    isWatched: () => listener !== undefined,
  };
}

function space(name: string, used: number, available: number): HeapSpaceInfo {
  return {
    space_name: name,
    space_size: used + available,
    space_used_size: used,
    space_available_size: available,
    physical_space_size: used + available,
  };
}

function heapOf(usedHeapSize: number, newCapacity: number): GCProfilerResult['statistics'][number]['beforeGC'] {
  const newSpace = {
    spaceName: 'new_space',
    spaceSize: newCapacity,
    spaceUsedSize: newCapacity - 1000,
    spaceAvailableSize: 1000,
    physicalSpaceSize: newCapacity,
  };
  return {
    heapSpaceStatistics: [
      newSpace as unknown as GCProfilerResult['statistics'][number]['beforeGC']['heapSpaceStatistics'][number],
    ],
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
