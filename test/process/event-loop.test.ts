import perfHooks, { createHistogram, type IntervalHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { afterEach, expect, test, vi } from 'vitest';
import { createEventLoopMonitor, RESOLUTION_MS, TICK_MS, type EventLoopMonitor } from '../../src/process/watch.js';

vi.mock('../../src/base/clock.js', async (load) => (await import('../support/faked-clock.js')).fakeClock(await load()));
afterEach(() => void vi.restoreAllMocks());

test('before anything was measured the lag is zero', () => {
  const { monitor } = create();
  const nothing = { last: 0, min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 };
  expect(monitor.read()).toEqual(nothing);
});

test('the time of a tick is no lag, what is over it is', () => {
  const { monitor, record } = create();
  for (let index = 0; index < 99; index++) record(RESOLUTION_MS + 1);
  record(RESOLUTION_MS + 300);
  const { min, max, mean, p50, p99 } = monitor.read();
  expect(min).toBeCloseTo(0.001, 4);
  expect(max).toBeCloseTo(0.3, 3);
  expect(mean).toBeCloseTo((99 + 300) / 100 / 1000, 4);
  expect(p50).toBeCloseTo(0.001, 4);
  expect(p99).toBeCloseTo(0.001, 4);
});

test('a tick that comes early has no lag', () => {
  const { monitor, record } = create();
  record(RESOLUTION_MS - 1);
  expect(monitor.read().min).toBe(0);
});

test('a spike stays to be seen for a minute at least and two at most, however often it is read', () => {
  const { monitor, record, advance } = create();
  for (let second = 0; second < 90; second++) {
    advance(TICK_MS);
    record(RESOLUTION_MS);
    monitor.tick();
  }
  record(RESOLUTION_MS + 500);
  const seen: number[] = [];
  for (let second = 0; second < 200; second++) {
    advance(TICK_MS);
    record(RESOLUTION_MS);
    monitor.tick();
    for (let reader = 0; reader < 3; reader++) if (monitor.read().max > 0.4) seen[second] = second;
  }
  expect(seen.length).toBeGreaterThanOrEqual(60);
  expect(seen.length).toBeLessThanOrEqual(120);
  expect(seen).toEqual(Array.from(seen.keys()));
});

test('the last lag is how late the last tick came, or how late the next one is by now', () => {
  const { monitor, advance } = create();
  advance(TICK_MS + 40);
  monitor.tick();
  expect(monitor.read().last).toBeCloseTo(0.04, 9);
  advance(TICK_MS + 300);
  expect(monitor.read().last).toBeCloseTo(0.3, 9);
  monitor.tick();
  advance(TICK_MS);
  monitor.tick();
  expect(monitor.read().last).toBe(0);
});

test('creation enables both monitors and close disables them', () => {
  const { monitor, monitors } = create();
  expect(monitors.map(({ isEnabled }) => isEnabled)).toEqual([true, true]);
  monitor.close();
  expect(monitors.map(({ isEnabled }) => isEnabled)).toEqual([false, false]);
});

interface FakeMonitor {
  isEnabled: boolean;
  readonly histogram: RecordableHistogram & IntervalHistogram;
}

interface Bench {
  readonly monitor: EventLoopMonitor;
  readonly monitors: FakeMonitor[];
  readonly record: (milliseconds: number) => void;
  readonly advance: (milliseconds: number) => void;
}

function create(): Bench {
  let now = 5000;
  const monitors: FakeMonitor[] = [];
  const createMonitor = (): IntervalHistogram => {
    const enabled = (isEnabled: boolean) => (): boolean => {
      fake.isEnabled = isEnabled;
      return true;
    };
    const fake: FakeMonitor = {
      isEnabled: false,
      histogram: Object.assign(createHistogram(), { enable: enabled(true), disable: enabled(false) }),
    };
    monitors.push(fake);
    return fake.histogram;
  };
  vi.spyOn(perfHooks, 'monitorEventLoopDelay').mockImplementation(createMonitor);
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  return {
    monitor: createEventLoopMonitor(),
    monitors,
    record: (milliseconds) => monitors.forEach(({ histogram }) => histogram.record(milliseconds * 1e6)),
    advance: (milliseconds) => void (now += milliseconds),
  };
}
