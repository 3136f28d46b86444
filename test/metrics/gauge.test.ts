import { afterEach, expect, test, vi } from 'vitest';
import { Registry } from 'postern/metrics';

vi.mock('../../src/base/clock.js', async (load) => (await import('../support/faked-clock.js')).fakeClock(await load()));

afterEach(() => {
  vi.useRealTimers();
});

test('a gauge is set, goes up and down, with and without labels', () => {
  const registry = new Registry();
  const bare = registry.gauge({ name: 'a', help: 'Help.' });
  const labelled = registry.gauge({ name: 'b', help: 'Help.', labelNames: ['of'] });
  bare.set(10);
  bare.inc();
  bare.dec(4);
  bare.dec();
  bare.inc(-2);
  labelled.set({ of: 'x' }, -3);
  labelled.inc({ of: 'x' });
  labelled.dec({ of: 'x' }, 0.5);
  expect(bare.labels().value).toBe(4);
  expect(labelled.labels('x').value).toBe(-2.5);
});

test.for(['5', null, undefined, {}, 1n])('a gauge set to %s throws', (value) => {
  const registry = new Registry();
  const gauge = registry.gauge({ name: 'a', help: 'Help.' });
  const labelled = registry.gauge({ name: 'b', help: 'Help.', labelNames: ['of'] });
  // @ts-expect-error wrong on purpose
  expect(() => gauge.set(value)).toThrow(TypeError);
  // @ts-expect-error wrong on purpose
  expect(() => gauge.labels().set(value)).toThrow(/gauge "a" got .*; give a number/);
  // @ts-expect-error wrong on purpose
  expect(() => labelled.set({ of: 'x' }, value)).toThrow(TypeError);
});

test('setToCurrentTime sets seconds since the epoch', () => {
  vi.useFakeTimers({ now: 1_700_000_000_250 });
  const registry = new Registry();
  const bare = registry.gauge({ name: 'a', help: 'Help.' });
  const labelled = registry.gauge({ name: 'b', help: 'Help.', labelNames: ['of'] });
  bare.setToCurrentTime();
  labelled.setToCurrentTime({ of: 'x' });
  expect(bare.labels().value).toBe(1_700_000_000.25);
  expect(labelled.labels('x').value).toBe(1_700_000_000.25);
});

test('a timer sets the seconds between its ends, with labels of both', () => {
  vi.useFakeTimers();
  const registry = new Registry();
  const gauge = registry.gauge({ name: 'a', help: 'Help.', labelNames: ['of', 'how'] });
  const stop = gauge.startTimer({ of: 'x' });
  vi.advanceTimersByTime(2500);
  expect(stop({ how: 'well' })).toBe(2.5);
  expect(gauge.labels({ of: 'x', how: 'well' }).value).toBe(2.5);
  const stopBound = gauge.labels('y', 'z').startTimer();
  vi.advanceTimersByTime(500);
  expect(stopBound()).toBe(0.5);
  expect(gauge.labels('y', 'z').value).toBe(0.5);
});
