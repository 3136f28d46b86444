/** Labels that every sample of a registry has; taking everything out; going over what there is. */

import { expect, test, vi } from 'vitest';
import { Registry, type AnyMetric } from 'postern/metrics';
import { parseExposition, sampleMap } from '../support/exposition-parser.js';

function everyKind(): Registry {
  const registry = new Registry();
  registry.counter({ name: 'bare_total', help: 'Help.' }).inc();
  registry.counter({ name: 'jobs_total', help: 'Help.', labelNames: ['queue'] }).inc({ queue: 'mail' });
  registry.gauge({ name: 'size', help: 'Help.', labelNames: ['app'] }).set({ app: 'own' }, 2);
  registry.histogram({ name: 'seconds', help: 'Help.', buckets: [1] }).observe(0.5);
  registry
    .histogram({ name: 'labelled_seconds', help: 'Help.', labelNames: ['route'], buckets: [1] })
    .observe({ route: '/' }, 3);
  registry.summary({ name: 'parts', help: 'Help.', percentiles: [0.5] }).observe(1);
  return registry;
}

const WITH_DEFAULTS = [
  ['bare_total{app=shop,zone=7}', 1],
  ['jobs_total{queue=mail,app=shop,zone=7}', 1],
  ['size{app=own,zone=7}', 2],
  ['seconds_bucket{app=shop,zone=7,le=1.0}', 1],
  ['seconds_bucket{app=shop,zone=7,le=+Inf}', 1],
  ['seconds_sum{app=shop,zone=7}', 0.5],
  ['seconds_count{app=shop,zone=7}', 1],
  ['labelled_seconds_bucket{route=/,app=shop,zone=7,le=1.0}', 0],
  ['labelled_seconds_bucket{route=/,app=shop,zone=7,le=+Inf}', 1],
  ['labelled_seconds_sum{route=/,app=shop,zone=7}', 3],
  ['labelled_seconds_count{route=/,app=shop,zone=7}', 1],
  ['parts{app=shop,zone=7,quantile=0.5}', 1],
  ['parts_sum{app=shop,zone=7}', 1],
  ['parts_count{app=shop,zone=7}', 1],
];

test.for(['text', 'openmetrics'] as const)(
  'default labels are on every sample of %s, and its own beat them',
  (format) => {
    const registry = everyKind();
    registry.expose(format);
    registry.setDefaultLabels({ app: 'shop', zone: 7 });
    for (let round = 0; round < 2; round++)
      expect([...sampleMap(registry.expose(format), format)]).toEqual(WITH_DEFAULTS);
  },
);

test('they replace those that were set before, also where metrics come later, and go with an empty set', () => {
  const registry = everyKind();
  const before = registry.expose();
  const labels: Record<string, string> = { app: 'shop' };
  registry.setDefaultLabels(labels);
  labels['app'] = 'changed by the caller';
  expect(registry.expose()).toContain('bare_total{app="shop"} 1.0\n');
  registry.setDefaultLabels({ zone: 'a"b\n' });
  registry.gauge({ name: 'later', help: 'Help.' }).set(1);
  expect(registry.expose()).toContain('later{zone="a\\"b\\n"} 1.0\n');
  expect(registry.expose()).not.toContain('app="shop"');
  registry.remove('later');
  registry.setDefaultLabels({});
  expect(registry.expose()).toBe(before);
});

test('what the registry counts of itself has them, too', () => {
  const registry = new Registry();
  registry.setDefaultLabels({ app: 'shop' });
  const counter = registry.counter({ name: 'a_total', help: 'Help.', labelNames: ['of'], maxSeries: 1 });
  counter.inc({ of: 'x' });
  counter.inc({ of: 'y' });
  expect(registry.expose()).toContain('metrics_overflow_total{metric="a_total",app="shop"} 1.0\n');
});

const WRONG: readonly { readonly labels: unknown; readonly message: string }[] = [
  { labels: null, message: 'default labels are null; pass an object' },
  { labels: 'app', message: 'default labels are "app"; pass an object' },
  { labels: { 'a-b': 'x' }, message: 'invalid label name "a-b" of default labels' },
  { labels: { __name__: 'x' }, message: "Prometheus's own" },
  { labels: { le: '1' }, message: 'default label "le" is a histogram\'s or a summary\'s own; rename it' },
  { labels: { quantile: '1' }, message: 'rename it' },
  { labels: { app: undefined }, message: 'default label "app" is undefined; give a string' },
  { labels: { app: true }, message: 'default label "app" is true' },
  { labels: { app: '\ud83d' }, message: 'valid Unicode' },
];

test.for(WRONG)('the default labels $labels are refused, and those before stay', ({ labels, message }) => {
  const registry = everyKind();
  registry.setDefaultLabels({ app: 'shop' });
  // @ts-expect-error wrong on purpose
  const set = (): void => registry.setDefaultLabels(labels);
  expect(set).toThrow(TypeError);
  expect(set).toThrow(message);
  expect(registry.expose()).toContain('bare_total{app="shop"} 1.0\n');
});

test('going over a registry gives its metrics in order of registration', () => {
  const registry = everyKind();
  const metrics: AnyMetric[] = [...registry];
  expect(metrics.map(({ name }) => name)).toEqual([
    'bare_total', 'jobs_total', 'size', 'seconds', 'labelled_seconds', 'parts',
  ]);
  for (const metric of registry) expect(registry.get(metric.name)).toBe(metric);
  for (const metric of registry) metric.reset();
  expect(sampleMap(registry.expose()).get('bare_total')).toBe(0);
  for (const { name } of registry) registry.remove(name);
  expect([...registry]).toEqual([]);
  expect(registry.expose()).toBe('');
});

test('clear takes out metrics, default labels, listeners and what was counted of the registry itself', () => {
  const registry = everyKind();
  const listener = vi.fn();
  registry.onExpose(listener);
  registry.setDefaultLabels({ app: 'shop' });
  const held = registry.get('bare_total');
  registry.gauge({ name: 'failing', help: 'Help.', collect() { throw new Error('no'); } });
  registry.expose();
  listener.mockClear();
  registry.clear();
  expect([...registry]).toEqual([]);
  expect(registry.get('bare_total')).toBeUndefined();
  expect(registry.expose()).toBe('');
  expect(registry.expose('openmetrics')).toBe('# EOF\n');
  expect(listener).not.toHaveBeenCalled();
  registry.counter({ name: 'bare_total', help: 'Another.' }).inc(5);
  expect(held).not.toBe(registry.get('bare_total'));
  expect(registry.expose()).toBe('# HELP bare_total Another.\n# TYPE bare_total counter\nbare_total 5.0\n');
});

test('series that go and come keep their labels apart, whatever their order in the text before', () => {
  const registry = new Registry();
  const gauge = registry.gauge({ name: 'g', help: 'Help.', labelNames: ['of'] });
  const set = (...names: string[]): void => names.forEach((of, index) => gauge.set({ of }, index));
  const exposed = (): string[] =>
    parseExposition(registry.expose(), 'text')[0]!.samples.map(({ labels }) => labels['of'] as string);
  set('a', 'b', 'c', 'd');
  expect(exposed()).toEqual(['a', 'b', 'c', 'd']);
  gauge.remove('a');
  gauge.remove('c');
  set('e', 'a');
  expect(exposed()).toEqual(['b', 'd', 'e', 'a']);
  gauge.reset();
  set('d', 'c', 'b');
  expect(exposed()).toEqual(['d', 'c', 'b']);
});
