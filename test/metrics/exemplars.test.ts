/** Exemplars and timers: labels of both ends, and what no format can carry. */

import { afterEach, expect, test, vi } from 'vitest';
import { Registry, type Histogram } from 'postern/metrics';
import { parseExposition, sampleMap, type ParsedExemplar } from '../support/exposition-parser.js';

vi.mock('../../src/base/clock.js', async (load) => (await import('../support/faked-clock.js')).fakeClock(await load()));

afterEach(() => {
  vi.useRealTimers();
});

function create(): {
  readonly registry: Registry;
  readonly histogram: Histogram<'method' | 'status'>;
  readonly exemplar: () => ParsedExemplar | undefined;
} {
  vi.useFakeTimers();
  const registry = new Registry();
  const histogram = registry.histogram({
    name: 'h_seconds',
    help: 'Help.',
    labelNames: ['method', 'status'],
    buckets: [10],
  });
  return {
    registry,
    histogram,
    exemplar: () => parseExposition(registry.expose('openmetrics'), 'openmetrics')[0]?.samples[0]?.exemplar,
  };
}

test("a timer's exemplar has the labels of start and end; of one that both give, the end's counts", () => {
  const { histogram, exemplar } = create();
  const stop = histogram.startTimer({ method: 'GET' }, { trace_id: 'a', span_id: 'b' });
  vi.advanceTimersByTime(2000);
  expect(stop({ status: 200 }, { span_id: 'c', user: 7 })).toBe(2);
  expect(exemplar()).toMatchObject({ labels: { trace_id: 'a', span_id: 'c', user: '7' }, value: 2 });
});

test.for([
  { start: { trace_id: 'a' }, end: undefined, labels: { trace_id: 'a' } },
  { start: undefined, end: { trace_id: 'b' }, labels: { trace_id: 'b' } },
  { start: undefined, end: undefined, labels: undefined },
])('with exemplar labels $start at the start and $end at the end it has $labels', ({ start, end, labels }) => {
  const { histogram, exemplar } = create();
  histogram.startTimer({ method: 'GET', status: 200 }, start)(undefined, end);
  expect(exemplar()?.labels).toEqual(labels);
  histogram.reset();
  histogram.labels('GET', 200).startTimer(start)({}, end);
  expect(exemplar()?.labels).toEqual(labels);
});

test('a timer of one series refuses labels at its end, for they would be another series', () => {
  const { registry, histogram } = create();
  const gauge = registry.gauge({ name: 'g', help: 'Help.', labelNames: ['of'] });
  const summary = registry.summary({ name: 's', help: 'Help.', labelNames: ['of'] });
  for (const stop of [
    histogram.labels('GET', 200).startTimer(),
    gauge.labels('x').startTimer(),
    summary.labels('x').startTimer(),
  ]) {
    // @ts-expect-error wrong on purpose
    const wrong = (): number => stop({ status: 500 });
    expect(wrong).toThrow(TypeError);
    expect(wrong).toThrow(/all its labels and can't take "status"; use startTimer of the metric/);
    expect(stop()).toBe(0);
  }
  expect(histogram.labels('GET', 200).count).toBe(1);
});

test('timers of summaries and gauges take labels at either end', () => {
  const { registry } = create();
  const summary = registry.summary({ name: 's', help: 'Help.', labelNames: ['a', 'b'], percentiles: [] });
  const stop = summary.startTimer({ a: 'x' });
  vi.advanceTimersByTime(1500);
  expect(stop({ b: 'y' })).toBe(1.5);
  expect(sampleMap(registry.expose()).get('s_sum{a=x,b=y}')).toBe(1.5);
});

test.for(['a\0b', '\0', '\ud83d', 'x\udc00'])(
  'the exemplar label value %j is refused, and nothing is counted',
  (text) => {
    const { registry, histogram } = create();
    const counter = registry.counter({ name: 'c_total', help: 'Help.' });
    expect(() =>
      histogram.observe({ labels: { method: 'GET', status: 200 }, value: 1, exemplarLabels: { trace_id: text } }),
    ).toThrow(TypeError);
    expect(() => counter.inc({ exemplarLabels: { trace_id: text } }))
      .toThrow(/exemplar label "trace_id" of "c_total" is .*can't be sent/);
    expect(histogram.labels('GET', 200).count + counter.labels().value).toBe(0);
  },
);

const SUMS: readonly {
  readonly what: string;
  readonly buckets: readonly number[];
  readonly values: readonly number[];
  readonly hasSum: boolean;
}[] = [
  { what: 'a sum of nothing', buckets: [1], values: [], hasSum: true },
  { what: 'a sum above zero', buckets: [0, 1], values: [-1, 5], hasSum: true },
  { what: 'a negative sum', buckets: [1], values: [-1], hasSum: false },
  { what: 'a sum beside a negative bucket', buckets: [-1, 1], values: [5], hasSum: false },
  { what: 'a sum that is no number', buckets: [1], values: [1.7e308, 1.7e308, -1.7e308, -1.7e308], hasSum: true },
];

test.for(SUMS)(
  'in OpenMetrics $what is there: $hasSum, and so is the count; in text both always are',
  ({ buckets, values, hasSum }) => {
    const registry = new Registry();
    const histogram = registry.histogram({ name: 'h', help: 'Help.', buckets });
    for (const value of values) histogram.observe(value);
    const names = [...sampleMap(registry.expose('openmetrics'), 'openmetrics').keys()];
    expect([names.includes('h_sum'), names.includes('h_count')]).toEqual([hasSum, hasSum]);
    expect([...sampleMap(registry.expose()).keys()]).toEqual(expect.arrayContaining(['h_sum', 'h_count']));
  },
);
