import { expect, test } from 'vitest';
import { USAGE_WINDOW_SECONDS, UsageWindow, type UsageSample } from '../../src/process/sampler.js';

test('the first reading is over the time since the process started', () => {
  const { window } = create({ atSeconds: 4, usedSeconds: 1 });
  expect(window.read()).toBe(0.25);
});

test('a second reader at once reads the same', () => {
  const { window, set } = create({ atSeconds: 60, usedSeconds: 30 });
  const first = window.read();
  set({ atSeconds: 60, usedSeconds: 30 });
  expect(window.read()).toBe(first);
  set({ atSeconds: 60.001, usedSeconds: 30 });
  expect(window.read()).toBeCloseTo(first, 3);
});

test('readings in between change nothing that another one sees', () => {
  const quiet = create({ atSeconds: 0, usedSeconds: 0 });
  const busy = create({ atSeconds: 0, usedSeconds: 0 });
  for (let tick = 1; tick <= 60; tick++) {
    const now = { atSeconds: tick, usedSeconds: tick * tick * 0.01 };
    quiet.set(now);
    quiet.window.advance();
    busy.set(now);
    busy.window.advance();
    busy.window.read();
    busy.window.read();
  }
  expect(busy.window.read()).toBe(quiet.window.read());
});

test('the interval is one to two windows while the clock runs', () => {
  const { window, set } = create({ atSeconds: 0, usedSeconds: 0 });
  for (let tick = 1; tick <= 100; tick++) {
    set({ atSeconds: tick, usedSeconds: 0 });
    window.advance();
  }
  for (let seconds = 0; seconds <= USAGE_WINDOW_SECONDS; seconds += 0.5) {
    set({ atSeconds: 100 + seconds, usedSeconds: 1 });
    const interval = 1 / window.read();
    expect(interval).toBeGreaterThanOrEqual(USAGE_WINDOW_SECONDS);
    expect(interval).toBeLessThanOrEqual(2 * USAGE_WINDOW_SECONDS + 0.5);
  }
});

test('without time there is no use', () => {
  expect(create({ atSeconds: 0, usedSeconds: 0 }).window.read()).toBe(0);
});

function create(first: UsageSample): { readonly window: UsageWindow; readonly set: (sample: UsageSample) => void } {
  let sample = first;
  return { window: new UsageWindow(() => sample), set: (next) => void (sample = next) };
}
