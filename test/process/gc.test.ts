/** Garbage collections: counted from performance entries, the bytes that they freed estimated from readings of the heap. */

import perfHooks from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import v8, { type HeapSpaceInfo } from 'node:v8';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Registry } from 'postern/metrics';
import { collectProcess } from '../../src/process/sampler.js';
import { sampleMap } from '../support/exposition-parser.js';

interface Collection {
  readonly duration: number;
  readonly detail: { readonly kind: number; readonly flags: number };
}
type Listener = (list: { getEntries(): Collection[] }) => void;

/** What an object is taken to have. */
const BYTES_PER_OBJECT = 50;

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

test.for(TYPES)('$type is $kind, generation $generation', ({ type, kind, generation }) => {
  const { samples, observer, collect } = create();
  observer.start();
  collect(type, { ms: 2.5 });
  expect(samples().get(`nodejs_gc_duration_seconds_sum{kind=${kind}}`)).toBe(0.0025);
  expect(samples().get(`nodejs_gc_duration_seconds_bucket{kind=${kind},le=0.01}`)).toBe(1);
  for (const other of [0, 1, 2]) {
    const count = other === generation ? 1 : 0;
    expect(samples().get(`python_gc_collected_objects_count{generation=${other}}`)).toBe(count);
    expect(samples().get(`python_gc_collected_objects_bucket{generation=${other},le=+Inf}`)).toBe(count);
  }
});

test('a heap that grew behind a mark-compact freed nothing, and an unknown collection is left out', () => {
  const { samples, observer, collect, heap } = create();
  observer.start();
  heap({ oldUsed: 5000 });
  collect('MarkSweepCompact');
  collect('SomethingNew');
  expect(samples().get('python_gc_collected_objects_count{generation=2}')).toBe(1);
  expect(samples().get('python_gc_collected_objects_sum{generation=2}')).toBe(0);
  expect(samples().get('python_gc_collected_objects_count{generation=0}')).toBe(0);
});

test('a minor collection frees the new space as large as it was before', () => {
  const { samples, observer, collect, heap } = create();
  observer.start();
  heap({ newUsed: 200_000, newAvailable: 3_800_000 });
  collect('Scavenge'); // the reading behind it is for the next one
  collect('Scavenge');
  expect(samples().get('python_gc_collected_objects_count{generation=0}')).toBe(2);
  expect(samples().get('python_gc_collected_objects_sum{generation=0}'))
    .toBe((NEW_SPACE_BYTES + 4_000_000) / BYTES_PER_OBJECT);
});

test('a mark-compact frees what the heap has shrunk by, new objects behind it aside, and marking frees nothing', () => {
  const { samples, observer, collect, heap } = create();
  observer.start();
  heap({ oldUsed: 30_000_000, newUsed: 5_000_000 });
  collect('IncrementalMarking');
  heap({ oldUsed: 20_000_000, newUsed: 1_000_000 });
  collect('MarkSweepCompact');
  expect(samples().get('python_gc_collected_objects_count{generation=1}')).toBe(1);
  expect(samples().get('python_gc_collected_objects_sum{generation=1}')).toBe(0);
  expect(samples().get('python_gc_collected_objects_sum{generation=2}')).toBe(15_000_000 / BYTES_PER_OBJECT);
});

test('of two mark-compacts that are told together, the first one counts as freeing it all', () => {
  const { samples, observer, collect, deliver, heap } = create();
  heap({ oldUsed: 30_000_000 });
  observer.start();
  heap({ oldUsed: 20_000_000 });
  for (let index = 0; index < 2; index++) collect('MarkSweepCompact', { told: false });
  deliver();
  expect(samples().get('python_gc_collected_objects_count{generation=2}')).toBe(2);
  expect(samples().get('python_gc_collected_objects_sum{generation=2}')).toBe(10_000_000 / BYTES_PER_OBJECT);
});

test('what is told late is counted once', () => {
  const { samples, observer, collect, deliver } = create();
  observer.start();
  for (let index = 0; index < 3; index++) collect('Scavenge', { told: false });
  deliver();
  collect('Scavenge', { told: false });
  expect(samples().get('nodejs_gc_duration_seconds_count{kind=minor}')).toBe(4);
  expect(samples().get('nodejs_gc_duration_seconds_count{kind=minor}')).toBe(4);
  expect(samples().get('python_gc_collected_objects_count{generation=0}')).toBe(4);
});

test('close ends the watch, keeps what was counted, and lets nothing be counted again', () => {
  const { samples, observer, collect, isWatched } = create();
  observer.start();
  collect('Scavenge', { told: false });
  observer.close();
  observer.close();
  expect(isWatched()).toBe(false);
  collect('Scavenge');
  expect(samples().get('nodejs_gc_duration_seconds_count{kind=minor}')).toBe(1);
  expect(samples().get('python_gc_collected_objects_sum{generation=0}')).toBe(NEW_SPACE_BYTES / BYTES_PER_OBJECT);
});

test('each collection of a real process has its objects', async () => {
  const registry = new Registry();
  const sampler = collectProcess(registry);
  await sampler.start();
  for (let round = 0; round < 100; round++) {
    litter();
    await turn();
  }
  const samples = sampleMap(registry.expose());
  sampler.close();
  const minor = samples.get('nodejs_gc_duration_seconds_count{kind=minor}') ?? 0;
  expect(minor).toBeGreaterThan(3);
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
  readonly collect: (type: string, how?: { readonly ms?: number; readonly told?: boolean }) => void;
  readonly deliver: () => void;
  /** What a reading of the heap says from now on. */
  readonly heap: (use: {
    readonly oldUsed?: number;
    readonly newUsed?: number;
    readonly newAvailable?: number;
  }) => void;
  readonly isWatched: () => boolean;
}

const NEW_SPACE_BYTES = 1_000_000;

function create(): Bench {
  const registry = new Registry();
  let listener: Listener | undefined;
  let untold: Collection[] = [];
  let spaces = [space('old_space', 0, 0), space('new_space', 0, NEW_SPACE_BYTES)];
  const takeRecords = (): Collection[] => untold.splice(0);
  const deliver = (): void => listener?.({ getEntries: takeRecords });
  class FakeObserver {
    readonly observe = (): void => undefined;
    readonly takeRecords = takeRecords;
    readonly disconnect = (): void => void (listener = undefined);
    constructor(report: Listener) {
      listener = report;
    }
  }
  vi.spyOn(v8, 'getHeapSpaceStatistics').mockImplementation(() => spaces);
  vi.spyOn(perfHooks, 'PerformanceObserver').mockImplementation(FakeObserver as never);
  const observer = collectProcess(registry);
  onTestFinished(() => {
    observer.close();
    vi.restoreAllMocks();
  });
  return {
    observer,
    deliver,
    samples: () => sampleMap(registry.expose()),
    collect(type, { ms = 1, told = true } = {}) {
      const kind = TYPES.find((one) => one.type === type)?.gc ?? 32;
      if (listener !== undefined) untold.push({ duration: ms, detail: { kind, flags: 0 } });
      if (told) deliver();
    },
    heap({ oldUsed = 0, newUsed = 0, newAvailable = 0 }) {
      spaces = [space('old_space', oldUsed, 0), space('new_space', newUsed, newAvailable)];
    },
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
