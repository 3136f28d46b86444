import { expect, test } from 'vitest';
import { Registry } from 'postern/metrics';
import { parseExposition, sampleMap } from '../support/exposition-parser.js';

test('inc adds one or what is given, with and without labels', () => {
  const registry = new Registry();
  const bare = registry.counter({ name: 'a_total', help: 'Help.' });
  const labelled = registry.counter({ name: 'b_total', help: 'Help.', labelNames: ['of'] });
  bare.inc();
  bare.inc(2.5);
  bare.inc(0);
  labelled.inc({ of: 'x' });
  labelled.inc({ of: 'x' }, 4);
  labelled.labels({ of: 'x' }).inc(0.5);
  expect(sampleMap(registry.expose())).toEqual(new Map([['a_total', 3.5], ['b_total{of=x}', 5.5]]));
  expect(bare.labels().value).toBe(3.5);
});

const WRONG: readonly unknown[] = [NaN, Infinity, -Infinity, '5', null, 1n, true, () => 1];

test.for(WRONG)('an increase by %s throws and changes nothing', (value) => {
  const registry = new Registry();
  const bare = registry.counter({ name: 'a_total', help: 'Help.' });
  const labelled = registry.counter({ name: 'b_total', help: 'Help.', labelNames: ['of'] });
  // @ts-expect-error wrong on purpose
  expect(() => bare.inc(value)).toThrow(/counter "a_total" can't be increased by .*; give a finite number/);
  // @ts-expect-error wrong on purpose
  expect(() => bare.labels().inc(value)).toThrow(TypeError);
  // @ts-expect-error wrong on purpose
  expect(() => bare.inc({ value })).toThrow(TypeError);
  // @ts-expect-error wrong on purpose
  expect(() => labelled.inc({ of: 'x' }, value)).toThrow(TypeError);
  expect(bare.labels().value + labelled.labels('x').value).toBe(0);
});

test('an increase below zero throws', () => {
  const counter = new Registry().counter({ name: 'a_total', help: 'Help.' });
  expect(() => counter.inc(-1)).toThrow(
    new RangeError('counter "a_total" can\'t be increased by -1; use a gauge for what goes down'),
  );
});

test('the object form counts, and its exemplar shows in OpenMetrics alone', () => {
  const registry = new Registry();
  const counter = registry.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue'] });
  counter.inc({ labels: { queue: 'mail' }, value: 3, exemplarLabels: { trace_id: 'a"b', span: 7 } });
  counter.inc({ labels: { queue: 'mail' } });
  counter.inc({ queue: 'mail' });
  expect(sampleMap(registry.expose()).get('jobs_total{queue=mail}')).toBe(5);
  expect(registry.expose()).not.toContain('trace_id');
  const [family] = parseExposition(registry.expose('openmetrics'), 'openmetrics');
  expect(family?.samples[0]?.exemplar).toMatchObject({ labels: { trace_id: 'a"b', span: '7' }, value: 3 });
  expect(Math.abs((family?.samples[0]?.exemplar?.timestamp ?? 0) - Date.now() / 1000)).toBeLessThan(60);
});

test('the object form works without labels, and on a bound series', () => {
  const registry = new Registry();
  const counter = registry.counter({ name: 'jobs_total', help: 'Jobs.' });
  counter.inc({ value: 2, exemplarLabels: { trace_id: 'one' } });
  counter.inc({ exemplarLabels: { trace_id: 'two' } });
  counter.labels().inc({ value: 4, exemplarLabels: { trace_id: 'three' } });
  const [family] = parseExposition(registry.expose('openmetrics'), 'openmetrics');
  expect(family?.samples[0]).toMatchObject({ value: 7, exemplar: { labels: { trace_id: 'three' }, value: 4 } });
  counter.reset();
  expect(registry.expose('openmetrics')).not.toContain('three');
});

test('labels named like the parts of the object form are labels', () => {
  const registry = new Registry();
  const counter = registry.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['value', 'labels'] });
  counter.inc({ value: 'v', labels: 'l' }, 2);
  counter.inc({ value: 'w', labels: 'l' });
  expect(sampleMap(registry.expose()))
    .toEqual(new Map([['jobs_total{value=v,labels=l}', 2], ['jobs_total{value=w,labels=l}', 1]]));
});

const WRONG_EXEMPLARS: readonly { readonly exemplarLabels: unknown; readonly message: RegExp }[] = [
  { exemplarLabels: { trace_id: 'x'.repeat(121) }, message: /have 129 characters; 128 is the limit/ },
  { exemplarLabels: { '1st': 'x' }, message: /invalid label name "1st"/ },
  { exemplarLabels: { a: null }, message: /exemplar label "a"/ },
  { exemplarLabels: 'trace', message: /pass an object/ },
];

test.for(WRONG_EXEMPLARS)('the exemplar $exemplarLabels throws and counts nothing', ({ exemplarLabels, message }) => {
  const registry = new Registry();
  const counter = registry.counter({ name: 'jobs_total', help: 'Jobs.' });
  // @ts-expect-error wrong on purpose
  expect(() => counter.inc({ value: 1, exemplarLabels })).toThrow(message);
  expect(counter.labels().value).toBe(0);
});

test('an exemplar may have 128 characters, each counted once', () => {
  const registry = new Registry();
  const counter = registry.counter({ name: 'jobs_total', help: 'Jobs.' });
  counter.inc({ exemplarLabels: { trace_id: '🦊'.repeat(120) } });
  expect(parseExposition(registry.expose('openmetrics'), 'openmetrics')[0]?.samples[0]?.exemplar?.labels['trace_id'])
    .toBe('🦊'.repeat(120));
});
