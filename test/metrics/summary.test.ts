/** Summaries: their quantiles against sorted numbers, and what they forget. */

import { afterEach, expect, test, vi } from 'vitest';
import { Registry, type Summary, type SummaryOptions } from 'postern/metrics';
import { Digest } from '../../src/metrics/digest.js';
import { parseExposition, sampleMap } from '../support/exposition-parser.js';
import { createRandom, type Random } from '../support/random.js';

vi.mock('../../src/base/clock.js', async (load) => (await import('../support/faked-clock.js')).fakeClock(await load()));

afterEach(() => {
  vi.useRealTimers();
});

function create(options: Partial<SummaryOptions> = {}): Summary & { readonly sampled: () => Map<string, number> } {
  const registry = new Registry();
  const summary: Summary = registry.summary({ name: 's', help: 'Help.', ...options });
  return Object.assign(summary, { sampled: () => sampleMap(registry.expose()) });
}

test('quantiles, sum and count stand in the text as both formats have them', () => {
  const registry = new Registry();
  const summary = registry.summary({ name: 'size_bytes', help: 'Sizes.', labelNames: ['of'], percentiles: [1, 0.5] });
  for (const size of [1, 2, 3]) summary.observe({ of: 'x' }, size);
  const lines = [
    '# HELP size_bytes Sizes.', '# TYPE size_bytes summary', 'size_bytes{of="x",quantile="0.5"} 2.0',
    'size_bytes{of="x",quantile="1.0"} 3.0', 'size_bytes_sum{of="x"} 6.0', 'size_bytes_count{of="x"} 3.0', '',
  ];
  expect(registry.expose()).toBe(lines.join('\n'));
  expect(registry.expose('openmetrics')).toBe(`${lines.join('\n')}# EOF\n`);
});

test("the percentiles are prom-client's unless told, and of nothing they are NaN", () => {
  const summary = create();
  expect([...summary.sampled()]).toEqual([
    ...['0.01', '0.05', '0.5', '0.9', '0.95', '0.99', '0.999'].map((quantile) => [`s{quantile=${quantile}}`, NaN]),
    ['s_sum', 0],
    ['s_count', 0],
  ]);
});

test('of a few observations the quantiles are observed values, ties included', () => {
  const summary = create({ percentiles: [0, 0.01, 0.5, 0.9, 1] });
  for (const value of [100, 50, 100, 50, 100]) summary.observe(value);
  expect([...summary.sampled().values()]).toEqual([50, 50, 100, 100, 100, 400, 5]);
  const one = create({ percentiles: [0, 0.5, 1] });
  one.observe(-7);
  expect([...one.sampled().values()]).toEqual([-7, -7, -7, -7, 1]);
});

const SHAPES: readonly { readonly name: string; readonly draw: (random: Random, index: number) => number }[] = [
  { name: 'uniform', draw: (random) => random.next() },
  { name: 'ascending', draw: (_random, index) => index },
  { name: 'descending', draw: (_random, index) => -index },
  { name: 'alternating', draw: (_random, index) => (index % 2 === 0 ? index : -index) },
  { name: 'heavy-tailed', draw: (random) => 1 / (random.next() + 1e-9) },
  { name: 'two values', draw: (random) => (random.int(10) === 0 ? 1 : 0) },
  { name: 'many ties', draw: (random) => random.int(5) },
];

test.for(SHAPES)(
  'of 50,000 $name observations each quantile is within 1 % of its rank, and at the ends closer',
  ({ draw }) => {
    const random = createRandom(11);
    const percentiles = [0, 0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1];
    const summary = create({ percentiles });
    const values = Array.from({ length: 50_000 }, (_, index) => draw(random, index));
    for (const value of values) summary.observe(value);
    const sorted = values.sort((a, b) => a - b);
    for (const quantile of percentiles) {
      const name = `s{quantile=${Number.isInteger(quantile) ? `${quantile}.0` : quantile}}`;
      const error = Math.min(0.01, 0.1 * Math.sqrt(quantile * (1 - quantile)) + 1e-4);
      const [low, high] = [quantile - error, quantile + error].map(
        (share) => sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(share * sorted.length)))]!,
      );
      expect(summary.sampled().get(name), name).toBeGreaterThanOrEqual(low!);
      expect(summary.sampled().get(name), name).toBeLessThanOrEqual(high!);
    }
    expect(summary.sampled().get('s_count')).toBe(50_000);
  },
);

test('observations leave the quantiles a part of maxAgeSeconds at a time, and stay in sum and count', () => {
  vi.useFakeTimers();
  const summary = create({ percentiles: [0, 1], maxAgeSeconds: 10, ageBuckets: 5 });
  vi.advanceTimersByTime(10_000 - (performance.now() % 2000));
  for (let second = 0; second < 10; second++) {
    summary.observe(second);
    vi.advanceTimersByTime(1000);
  }
  const range = (): readonly (number | undefined)[] =>
    [summary.sampled().get('s{quantile=0.0}'), summary.sampled().get('s{quantile=1.0}')];
  expect(range()).toEqual([2, 9]);
  vi.advanceTimersByTime(4000);
  expect(range()).toEqual([6, 9]);
  summary.observe(100);
  expect(range()).toEqual([6, 100]);
  vi.advanceTimersByTime(3_600_000);
  expect(range()).toEqual([NaN, NaN]);
  expect([summary.sampled().get('s_sum'), summary.sampled().get('s_count')]).toEqual([145, 11]);
});

test('with one part, observations leave the quantiles together', () => {
  vi.useFakeTimers();
  const summary = create({ percentiles: [1], maxAgeSeconds: 10, ageBuckets: 1 });
  vi.advanceTimersByTime(10_000 - (performance.now() % 10_000));
  for (const value of [1, 2]) {
    summary.observe(value);
    vi.advanceTimersByTime(4000);
  }
  expect(summary.sampled().get('s{quantile=1.0}')).toBe(2);
  vi.advanceTimersByTime(2000);
  expect([summary.sampled().get('s{quantile=1.0}'), summary.sampled().get('s_count')]).toEqual([NaN, 2]);
});

test('what is kept of a million observations is no more than of a thousand', () => {
  const digest = new Digest();
  const most = (count: number): number => {
    let length = 0;
    for (let index = 0; index < count; index++) {
      digest.add((index * 7919) % 10_007);
      if (index % 251 === 0) length = Math.max(length, digest.centroids.length);
    }
    return length;
  };
  expect(most(1000)).toBeLessThan(500);
  expect(most(1_000_000)).toBeLessThan(500);
});

test.for([NaN, Infinity, -Infinity, '5', null, undefined, 1n])(
  'the observation %s throws and counts nothing',
  (value) => {
    const summary = create();
    // @ts-expect-error wrong on purpose
    expect(() => summary.observe(value)).toThrow(/summary "s" can't observe .*; give a finite number/);
    // @ts-expect-error wrong on purpose
    expect(() => summary.labels().observe(value)).toThrow(TypeError);
    expect(summary.labels().count).toBe(0);
  },
);

const WRONG: readonly { readonly options: object; readonly message: string }[] = [
  { options: { percentiles: 0.5 }, message: 'percentiles of "s" is 0.5; pass an array' },
  { options: { percentiles: ['0.5'] }, message: 'a percentile of "s" is "0.5"; give a number' },
  { options: { percentiles: [50] }, message: 'a percentile of "s" is 50; give shares from 0 to 1' },
  { options: { percentiles: [NaN] }, message: 'shares from 0 to 1' },
  { options: { maxAgeSeconds: 0 }, message: 'maxAgeSeconds of "s" is 0; give a positive number of seconds' },
  { options: { maxAgeSeconds: Infinity }, message: 'positive number of seconds' },
  { options: { maxAgeSeconds: '600' }, message: 'maxAgeSeconds of "s" is "600"; give a number' },
  { options: { maxAgeSeconds: 600, ageBuckets: 0 }, message: 'ageBuckets of "s" is 0; give a whole number' },
  { options: { maxAgeSeconds: 600, ageBuckets: 1e9 }, message: 'give a whole number' },
  { options: { ageBuckets: 5 }, message: 'ageBuckets of "s" are parts of maxAgeSeconds; give that as well' },
  { options: { labelNames: ['quantile'] }, message: 'label name "quantile" of "s" is the summary\'s own; rename it' },
  { options: { buckets: [1] }, message: 'unknown option "buckets" of a summary' },
  { options: { compressCount: 10 }, message: 'unknown option "compressCount" of a summary' },
];

test.for(WRONG)('$options is refused', ({ options, message }) => {
  const registry = new Registry();
  expect(() => registry.summary({ name: 's', help: 'Help.', ...options })).toThrow(message);
  expect(registry.get('s')).toBeUndefined();
});

test('a removed series starts again at zero, reset takes all out, and updates by a kept one count', () => {
  const registry = new Registry();
  const summary = registry.summary({ name: 's', help: 'Help.', labelNames: ['of'], percentiles: [0.5] });
  const kept = summary.labels('x');
  kept.observe(1);
  summary.remove({ of: 'x' });
  expect(registry.expose()).not.toContain('of="x"');
  kept.observe(5);
  expect([...sampleMap(registry.expose())])
    .toEqual([['s{of=x,quantile=0.5}', 5], ['s_sum{of=x}', 5], ['s_count{of=x}', 1]]);
  summary.reset();
  expect(sampleMap(registry.expose()).size).toBe(0);
  expect(kept.sum).toBe(5);
});

test('what is over its limit of series shares one', () => {
  const registry = new Registry();
  const summary = registry.summary({ name: 's', help: 'Help.', labelNames: ['of'], percentiles: [], maxSeries: 1 });
  for (const of of ['a', 'b', 'c']) summary.observe({ of }, 1);
  expect([...sampleMap(registry.expose())].filter(([name]) => name.startsWith('s_count')))
    .toEqual([['s_count{of=a}', 1], ['s_count{of=_overflow}', 2]]);
});

test('its names are its own: no other metric may have them', () => {
  const registry = new Registry();
  registry.summary({ name: 's', help: 'Help.' });
  for (const name of ['s', 's_sum', 's_count', 's_created'])
    expect(() => registry.gauge({ name, help: 'Help.' }), name).toThrow(TypeError);
  registry.remove('s');
  registry.gauge({ name: 's_sum', help: 'Help.' });
});

test('in OpenMetrics negative quantiles and a negative sum are left out, for it has none', () => {
  const registry = new Registry();
  const summary = registry.summary({ name: 's', help: 'Help.', percentiles: [0, 1] });
  for (const value of [-5, 2]) summary.observe(value);
  expect([...sampleMap(registry.expose('openmetrics'), 'openmetrics')])
    .toEqual([['s{quantile=1.0}', 2], ['s_count', 2]]);
  expect([...sampleMap(registry.expose())])
    .toEqual([['s{quantile=0.0}', -5], ['s{quantile=1.0}', 2], ['s_sum', -3], ['s_count', 2]]);
});

test('a collect may observe, and one that fails loses this metric alone', () => {
  const registry = new Registry();
  registry.summary({ name: 's', help: 'Help.', percentiles: [], collect() { this.observe(1); } });
  registry.summary({ name: 'broken', help: 'Help.', collect() { throw new Error('no'); } });
  registry.expose();
  const names = parseExposition(registry.expose(), 'text').map(({ name }) => name);
  expect(names).toEqual(['s', 'metrics_collect_errors_total']);
  expect(sampleMap(registry.expose()).get('s_count')).toBe(3);
});
