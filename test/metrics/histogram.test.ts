import { afterEach, expect, test, vi } from 'vitest';
import { exponentialBuckets, linearBuckets, Registry } from 'postern/metrics';
import { parseExposition, sampleMap } from '../support/exposition-parser.js';

vi.mock('../../src/base/clock.js', async (load) => (await import('../support/faked-clock.js')).fakeClock(await load()));

afterEach(() => {
  vi.useRealTimers();
});

test.for([1, 2, 8, 9, 12, 40, 100])('of %i buckets each value falls into the first that is not below it', (count) => {
  const registry = new Registry();
  const buckets = linearBuckets(1, 1, count);
  const histogram = registry.histogram({ name: 'h', help: 'Help.', buckets });
  const values = buckets.flatMap((bound) => [bound - 0.5, bound, bound + 0.25]).concat(-1e9, 1e9);
  for (const value of values) histogram.observe(value);
  const samples = sampleMap(registry.expose());
  for (const bound of buckets)
    expect(samples.get(`h_bucket{le=${bound}.0}`)).toBe(values.filter((value) => value <= bound).length);
  expect(samples.get('h_bucket{le=+Inf}')).toBe(values.length);
  expect(histogram.labels().count).toBe(values.length);
});

test.for([NaN, Infinity, -Infinity, '5', null, undefined, 1n])(
  'the observation %s throws and counts nothing',
  (value) => {
    const registry = new Registry();
    const bare = registry.histogram({ name: 'a', help: 'Help.' });
    const labelled = registry.histogram({ name: 'b', help: 'Help.', labelNames: ['of'] });
    // @ts-expect-error wrong on purpose
    expect(() => bare.observe(value)).toThrow(/histogram "a" can't observe .*; give a finite number/);
    // @ts-expect-error wrong on purpose
    expect(() => labelled.observe({ of: 'x' }, value)).toThrow(TypeError);
    // @ts-expect-error wrong on purpose
    expect(() => labelled.labels('x').observe(value)).toThrow(TypeError);
    expect(bare.labels().count + labelled.labels('x').count).toBe(0);
  },
);

const WRONG_BUCKETS: readonly { readonly buckets: unknown; readonly message: string }[] = [
  { buckets: [], message: 'has no finite bound; give at least one' },
  { buckets: [Infinity], message: 'has no finite bound; give at least one' },
  { buckets: [1, 1], message: 'bucket 1 of "h" is 1, not more than the 1 before it; sort the buckets' },
  { buckets: [2, 1], message: 'sort the buckets' },
  { buckets: [-Infinity, 1], message: 'bucket 0' },
  { buckets: [Infinity, 1], message: 'sort the buckets' },
  { buckets: [1, NaN], message: 'bucket 1 of "h" is NaN; give a number' },
  { buckets: ['1'], message: 'bucket 0 of "h" is "1"; give a number' },
  { buckets: 5, message: 'pass an array' },
  { buckets: null, message: 'pass an array' },
];

test.for(WRONG_BUCKETS)('the buckets $buckets are refused', ({ buckets, message }) => {
  const registry = new Registry();
  // @ts-expect-error wrong on purpose
  expect(() => registry.histogram({ name: 'h', help: 'Help.', buckets })).toThrow(message);
  expect(registry.get('h')).toBeUndefined();
});

test('a last bucket of infinity is implied anyway, and the caller keeps the array', () => {
  const registry = new Registry();
  const buckets = [1, Infinity];
  const histogram = registry.histogram({ name: 'h', help: 'Help.', buckets });
  buckets[0] = 100;
  histogram.observe(50);
  expect([...sampleMap(registry.expose())])
    .toEqual([['h_bucket{le=1.0}', 0], ['h_bucket{le=+Inf}', 1], ['h_sum', 50], ['h_count', 1]]);
});

test("without buckets they are prom-client's", () => {
  const registry = new Registry();
  registry.histogram({ name: 'h', help: 'Help.' });
  const bounds = parseExposition(registry.expose(), 'text')[0]?.samples.flatMap(({ labels }) => labels['le'] ?? []);
  expect(bounds).toEqual(['0.005', '0.01', '0.025', '0.05', '0.1', '0.25', '0.5', '1.0', '2.5', '5.0', '10.0', '+Inf']);
});

test('a timer observes the seconds between its ends, with labels of both', () => {
  vi.useFakeTimers();
  const registry = new Registry();
  const histogram = registry.histogram({ name: 'h', help: 'Help.', labelNames: ['of', 'how'], buckets: [1] });
  const stop = histogram.startTimer({ of: 'x' }, { trace_id: 'start' });
  vi.advanceTimersByTime(1500);
  expect(stop({ how: 'well' })).toBe(1.5);
  expect(histogram.labels('x', 'well').sum).toBe(1.5);
  expect(histogram.startTimer()({ of: 'x', how: 'well' }, { trace_id: 'end' })).toBe(0);
  const stopBound = histogram.labels('x', 'well').startTimer();
  vi.advanceTimersByTime(500);
  expect(stopBound()).toBe(0.5);
  const exemplars = parseExposition(registry.expose('openmetrics'), 'openmetrics')[0]?.samples.map(
    ({ exemplar }) => exemplar?.labels['trace_id'],
  );
  expect(exemplars).toEqual(['end', 'start', undefined, undefined]);
});

test('a timer that is stopped without its labels throws', () => {
  const histogram = new Registry().histogram({ name: 'h', help: 'Help.', labelNames: ['of'] });
  const stop = histogram.startTimer();
  expect(() => stop()).toThrow(/label "of"/);
});

test('exemplars stand at the bucket they fell into, in OpenMetrics alone', () => {
  const registry = new Registry();
  const histogram = registry.histogram({ name: 'h', help: 'Help.', labelNames: ['of'], buckets: [1, 2, 3] });
  histogram.observe({ labels: { of: 'x' }, value: 1.5, exemplarLabels: { trace_id: 'old' } });
  histogram.observe({ labels: { of: 'x' }, value: 1.6, exemplarLabels: { trace_id: 'new' } });
  histogram.labels('x').observe({ value: 99, exemplarLabels: { trace_id: 'far' } });
  histogram.observe({ of: 'x' }, 1.7);
  const samples = parseExposition(registry.expose('openmetrics'), 'openmetrics')[0]?.samples;
  expect(samples?.map(({ exemplar }) => exemplar && [exemplar.labels['trace_id'], exemplar.value]))
    .toEqual([undefined, ['new', 1.6], undefined, ['far', 99], undefined, undefined]);
  expect(samples?.map(({ value }) => value)).toEqual([0, 3, 3, 4, 103.8, 4]);
  expect(registry.expose()).not.toContain('trace_id');
});

test('zero shows a series before anything is observed', () => {
  const registry = new Registry();
  registry.histogram({ name: 'h', help: 'Help.', labelNames: ['of'], buckets: [1] }).zero({ of: 'x' });
  expect(sampleMap(registry.expose()).get('h_count{of=x}')).toBe(0);
});

test('buckets can be spaced evenly or by a factor', () => {
  expect(linearBuckets(0, 10, 3)).toEqual([0, 10, 20]);
  expect(exponentialBuckets(1, 2, 4)).toEqual([1, 2, 4, 8]);
  for (const wrong of [
    () => linearBuckets(0, 0, 3),
    () => linearBuckets(0, 1, 0),
    () => exponentialBuckets(0, 2, 3),
    () => exponentialBuckets(1, 1, 3),
    () => exponentialBuckets(1, 2, NaN),
  ]) {
    expect(wrong).toThrow(RangeError);
  }
});
