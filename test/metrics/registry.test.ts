import { expect, test, vi } from 'vitest';
import { Counter, Gauge, Histogram, Registry, Summary } from 'postern/metrics';
import { sampleMap } from '../support/exposition-parser.js';

const INVALID_NAMES = ['', '1st', 'a-b', 'a b', 'é', 'a\n', 7, undefined, null];

test.for(INVALID_NAMES)('the metric name %j is refused', (name) => {
  const registry = new Registry();
  // @ts-expect-error wrong on purpose
  expect(() => registry.counter({ name, help: 'Help.' })).toThrow(/invalid metric name .*use letters/);
});

test.for([{ help: '' }, { help: undefined }, { help: 7 }])('the help $help is refused', ({ help }) => {
  // @ts-expect-error wrong on purpose
  expect(() => new Registry().gauge({ name: 'size', help })).toThrow(/"size".*say in a sentence/);
});

test.for(['', '1st', 'a-b', '__name', 7, undefined])('the label name %j is refused', (name) => {
  // @ts-expect-error wrong on purpose
  expect(() => new Registry().gauge({ name: 'size', help: 'Help.', labelNames: [name] })).toThrow(TypeError);
});

test('a label name twice, le of a histogram, and no array are refused', () => {
  const registry = new Registry();
  expect(() => registry.gauge({ name: 'size', help: 'Help.', labelNames: ['a', 'a'] }))
    .toThrow('label name "a" of "size" is there twice; remove one');
  expect(() => registry.histogram({ name: 'size', help: 'Help.', labelNames: ['le'] })).toThrow(/"le" of "size"/);
  // @ts-expect-error wrong on purpose
  expect(() => registry.gauge({ name: 'size', help: 'Help.', labelNames: 'queue' })).toThrow(/pass an array/);
  expect(registry.get('size')).toBeUndefined();
});

test.for([Counter, Gauge, Histogram, Summary])('%o by new, as in prom-client, is refused with what to write', (Metric) => {
  for (const given of [[{ name: 'a', help: 'A.', labelNames: ['b'] }], []])
    expect(() => Reflect.construct(Metric, given)).toThrow(/made by its registry, not by new; write registry\.counter/);
});

const CLASHES = [
  ['gauge foo', 'gauge foo'],
  ['counter foo_total', 'counter foo'],
  ['counter foo_total', 'gauge foo'],
  ['gauge foo', 'counter foo_total'],
  ['counter foo', 'gauge foo_total'],
  ['counter foo', 'gauge foo_created'],
  ['histogram foo', 'gauge foo_count'],
  ['gauge foo_count', 'histogram foo'],
  ['histogram foo', 'counter foo_count_total'],
  ['histogram foo', 'gauge foo_sum'],
  ['histogram foo', 'gauge foo_bucket'],
  ['histogram foo', 'gauge foo_created'],
  ['histogram foo', 'counter foo_sum'],
] as const;

test.for(CLASHES)('%s and %s cannot be in one registry', ([first, second]) => {
  const registry = new Registry();
  register(registry, first);
  const before = registry.expose();
  expect(() => register(registry, second)).toThrow(/registered already|clashes with/);
  expect(registry.expose()).toBe(before);
});

test.for([
  ['histogram foo', 'gauge foo_max'],
  ['counter foo_total', 'gauge foo_bytes'],
  ['gauge foo', 'gauge foo_total'],
] as const)('%s and %s get along', ([first, second]) => {
  const registry = new Registry();
  register(registry, first);
  expect(() => register(registry, second)).not.toThrow();
});

test('a removed metric leaves the exposition and frees its names', () => {
  const registry = new Registry();
  const first = registry.histogram({ name: 'foo', help: 'Help.' });
  expect(registry.get('foo')).toBe(first);
  registry.remove('foo');
  registry.remove('foo');
  first.observe(1);
  expect(registry.get('foo')).toBeUndefined();
  expect(registry.expose()).toBe('');
  registry.gauge({ name: 'foo_count', help: 'Help.' });
  expect(registry.get('foo_count')).toBeInstanceOf(Gauge);
});

test('get tells the kinds apart', () => {
  const registry = new Registry();
  registry.counter({ name: 'a_total', help: 'Help.' });
  registry.histogram({ name: 'b', help: 'Help.' });
  expect(registry.get('a_total')).toBeInstanceOf(Counter);
  expect(registry.get('b')).toBeInstanceOf(Histogram);
  expect(registry.get('c')).toBeUndefined();
});

test('two registries share nothing', () => {
  const [one, two] = [new Registry(), new Registry()];
  one.counter({ name: 'jobs_total', help: 'Jobs.' }).inc(3);
  two.counter({ name: 'jobs_total', help: 'Jobs.' }).inc(5);
  expect(sampleMap(one.expose()).get('jobs_total')).toBe(3);
  expect(sampleMap(two.expose()).get('jobs_total')).toBe(5);
});

test('collect runs before each exposition, with the metric as this', () => {
  const registry = new Registry();
  let runs = 0;
  registry.gauge({
    name: 'runs',
    help: 'Runs.',
    labelNames: ['of'],
    collect() {
      this.set({ of: 'it' }, ++runs);
    },
  });
  expect(sampleMap(registry.expose()).get('runs{of=it}')).toBe(1);
  expect(sampleMap(registry.expose('openmetrics'), 'openmetrics').get('runs{of=it}')).toBe(2);
});

const FAILURES = [
  { how: 'throws', collect: () => { throw new Error('no luck'); }, message: 'no luck' },
  { how: 'returns a promise', collect: () => Promise.resolve(), message: /returned a promise/ },
  { how: 'returns a promise that rejects', collect: () => Promise.reject(new Error('later')),
    message: /returned a promise/ },
];

test.for(FAILURES)(
  'a collect that $how loses its own metric, is told about and counted',
  async ({ collect, message }) => {
    const onError = vi.fn<(metricName: string, error: unknown) => void>();
    const registry = new Registry({ onError });
    registry.gauge({ name: 'before', help: 'Help.' });
    registry.gauge({ name: 'broken', help: 'Help.', collect });
    registry.gauge({ name: 'after', help: 'Help.' });
    const samples = sampleMap(registry.expose());
    expect([...samples.keys()]).toEqual(['before', 'after', 'metrics_collect_errors_total{metric=broken}']);
    expect(samples.get('metrics_collect_errors_total{metric=broken}')).toBe(1);
    expect(registry.expose()).not.toContain('# TYPE broken');
    expect(onError).toHaveBeenCalledTimes(2);
    expect(onError.mock.calls[0]?.[0]).toBe('broken');
    expect(() => { throw onError.mock.calls[0]?.[1]; }).toThrow(message);
    await new Promise(setImmediate);
  },
);

test("the registry's own names are taken from the start", () => {
  const registry = new Registry();
  const name = 'metrics_collect_errors_total';
  expect(() => registry.counter({ name, help: 'Help.' })).toThrow(`registry.get("${name}") returns it`);
  expect(registry.get(name)?.name).toBe(name);
  expect(() => registry.gauge({ name: 'metrics_overflow', help: 'Help.' })).toThrow(TypeError);
  expect(registry.expose()).toBe('');
});

test('a collect that is not a function is refused', () => {
  const registry = new Registry();
  // @ts-expect-error wrong on purpose
  expect(() => registry.gauge({ name: 'size', help: 'Help.', collect: 5 }))
    .toThrow('collect of "size" is 5; give a function');
  expect([...registry]).toEqual([]);
});

test('onExpose runs before any collect, until it is ended', () => {
  const registry = new Registry();
  const order: string[] = [];
  registry.gauge({ name: 'size', help: 'Help.', collect: () => void order.push('collect') });
  const end = registry.onExpose(() => order.push('listener'));
  registry.expose();
  end();
  registry.expose();
  expect(order).toEqual(['listener', 'collect', 'collect']);
});

test('labels beyond the limit share one series, and are counted', () => {
  const registry = new Registry({ maxSeries: 2 });
  const jobs = registry.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue', 'host'] });
  for (const queue of ['a', 'b', 'c', 'd']) jobs.inc({ queue, host: 'h' });
  jobs.inc({ queue: 'a', host: 'h' });
  jobs.labels({ queue: 'e', host: 'h' }).inc(5);
  expect(sampleMap(registry.expose())).toEqual(
    new Map([
      ['jobs_total{queue=a,host=h}', 2],
      ['jobs_total{queue=b,host=h}', 1],
      ['jobs_total{queue=_overflow,host=_overflow}', 7],
      ['metrics_overflow_total{metric=jobs_total}', 3],
    ]),
  );
});

test("a metric's own limit beats the registry's, and a removed series makes room", () => {
  const registry = new Registry({ maxSeries: 1 });
  const sizes = registry.gauge({ name: 'size', help: 'Sizes.', labelNames: ['of'], maxSeries: 2 });
  for (const of of ['a', 'b', 'c']) sizes.set({ of }, 1);
  sizes.remove({ of: 'a' });
  sizes.set({ of: 'd' }, 4);
  expect([...sampleMap(registry.expose()).keys()])
    .toEqual(['size{of=b}', 'size{of=_overflow}', 'size{of=d}', 'metrics_overflow_total{metric=size}']);
});

test('the overflow series can be taken out as well, and comes back when it is needed', () => {
  const registry = new Registry({ maxSeries: 1 });
  const sizes = registry.gauge({ name: 'size', help: 'Sizes.', labelNames: ['of'] });
  const overflowOf = (of: string): number | undefined => {
    sizes.set({ of: 'a' }, 1);
    sizes.inc({ of });
    return sampleMap(registry.expose()).get('size{of=_overflow}');
  };
  expect(overflowOf('b')).toBe(1);
  sizes.remove({ of: '_overflow' });
  expect(overflowOf('c')).toBe(1);
  sizes.reset();
  expect(overflowOf('d')).toBe(1);
});

test('ten thousand series fit unless told otherwise', () => {
  const registry = new Registry();
  const jobs = registry.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['id'] });
  for (let id = 0; id <= 10_000; id++) jobs.inc({ id });
  const samples = sampleMap(registry.expose());
  expect(samples.get('jobs_total{id=9999}')).toBe(1);
  expect(samples.get('jobs_total{id=10000}')).toBeUndefined();
  expect(samples.get('metrics_overflow_total{metric=jobs_total}')).toBe(1);
});

test.for([0, -1, 1.5, NaN, '7', null])('the limit %j is refused', (maxSeries) => {
  // @ts-expect-error wrong on purpose
  expect(() => new Registry({ maxSeries })).toThrow(RangeError);
  // @ts-expect-error wrong on purpose
  expect(() => new Registry().gauge({ name: 'size', help: 'Help.', maxSeries })).toThrow(/"size".*positive integer/);
});

function register(registry: Registry, what: string): void {
  const [kind, name = ''] = what.split(' ');
  if (kind === 'counter') registry.counter({ name, help: 'Help.' });
  else if (kind === 'gauge') registry.gauge({ name, help: 'Help.' });
  else registry.histogram({ name, help: 'Help.' });
}
