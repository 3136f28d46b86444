import { expect, test } from 'vitest';
import { Registry } from 'postern/metrics';
import { sampleMap } from '../support/exposition-parser.js';

const WRONG: readonly { readonly what: string; readonly labels: unknown; readonly message: string }[] = [
  { what: 'a missing label', labels: { queue: 'mail' },
    message: 'label "host" of metric "jobs_total" is missing; give a string or a number' },
  { what: 'no labels', labels: {}, message: 'label "queue" of metric "jobs_total" is missing' },
  { what: 'an unknown label', labels: { queue: 'mail', host: 'h', extra: 'x' },
    message: 'has no label "extra"; give exactly "queue", "host"' },
  { what: 'a misspelt label', labels: { queue: 'mail', hots: 'h' }, message: 'has no label "hots"' },
  { what: 'an undefined value', labels: { queue: 'mail', host: undefined }, message: 'label "host"' },
  { what: 'a null value', labels: { queue: 'mail', host: null }, message: 'is null' },
  { what: 'a boolean value', labels: { queue: true, host: 'h' }, message: 'is true' },
  { what: 'an object value', labels: { queue: { a: 1 }, host: 'h' }, message: 'is an object' },
  { what: 'an array', labels: ['mail', 'h'], message: 'has no label "0"' },
];

test.for(WRONG)('$what throws and changes nothing', ({ labels, message }) => {
  const registry = new Registry();
  const options = { name: 'jobs_total', help: 'Jobs.', labelNames: ['queue', 'host'] };
  const counter = registry.counter(options);
  counter.inc({ queue: 'mail', host: 'h' });
  const before = registry.expose();
  // @ts-expect-error wrong on purpose
  expect(() => counter.inc(labels)).toThrow(message);
  // @ts-expect-error wrong on purpose
  expect(() => counter.labels(labels)).toThrow(TypeError);
  // @ts-expect-error wrong on purpose
  expect(() => counter.remove(labels)).toThrow(TypeError);
  expect(registry.expose()).toBe(before);
});

test('a value that UTF-8 cannot write throws, for it would share its series on the wire', () => {
  const counter = new Registry().counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue'] });
  expect(() => counter.inc({ queue: 'a\ud800' }))
    .toThrow('label "queue" of metric "jobs_total" is "a\\ud800", which is not valid Unicode');
  expect(() => counter.labels('\udfff')).toThrow(TypeError);
});

test('a labelled metric needs labels, and one without labels takes none', () => {
  const registry = new Registry();
  const labelled = registry.gauge({ name: 'a', help: 'Help.', labelNames: ['of'] });
  const bare = registry.gauge({ name: 'b', help: 'Help.' });
  // @ts-expect-error wrong on purpose
  expect(() => labelled.set(1)).toThrow('metric "a" got 0 label values; give exactly "of"');
  // @ts-expect-error wrong on purpose
  expect(() => bare.set({ of: 'x' }, 1)).toThrow('metric "b" has no label "of"; give none');
  bare.set({}, 3);
  bare.labels().inc();
  expect(sampleMap(registry.expose()).get('b')).toBe(4);
});

test('labels in any order, numbers and positions mean one series', () => {
  const registry = new Registry();
  const counter = registry.counter({ name: 'replies_total', help: 'Replies.', labelNames: ['route', 'status'] });
  counter.inc({ route: '/', status: 200 });
  counter.inc({ status: '200', route: '/' });
  counter.labels('/', 200).inc();
  counter.labels({ status: 200, route: '/' }).inc();
  expect(sampleMap(registry.expose())).toEqual(new Map([['replies_total{route=/,status=200}', 4]]));
  expect(counter.labels('/', '200')).toBe(counter.labels({ route: '/', status: 200 }));
  expect(() => counter.labels('/')).toThrow('got 1 label values; give exactly "route", "status"');
});

test('names of Object.prototype are labels and values like others', () => {
  const registry = new Registry();
  const counter = registry.counter({ name: 'odd_total', help: 'Odd.', labelNames: ['constructor', 'toString'] });
  counter.inc({ constructor: '__proto__', toString: 'valueOf' });
  expect(registry.expose()).toContain('odd_total{constructor="__proto__",toString="valueOf"} 1.0');
  // @ts-expect-error wrong on purpose
  expect(() => counter.inc({ constructor: 'x' })).toThrow(TypeError);
});

test('a bound series is exposed at zero', () => {
  const registry = new Registry();
  registry.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue'] }).labels({ queue: 'mail' });
  expect(sampleMap(registry.expose()).get('jobs_total{queue=mail}')).toBe(0);
});

test('a removed series is gone, and its bound form starts again from zero', () => {
  const registry = new Registry();
  const counter = registry.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue', 'host'] });
  const mail = counter.labels({ queue: 'mail', host: 'h' });
  mail.inc(5);
  counter.inc({ queue: 'bill', host: 'h' });
  counter.remove({ queue: 'mail', host: 'h' });
  counter.remove('none', 'such');
  expect([...sampleMap(registry.expose()).keys()]).toEqual(['jobs_total{queue=bill,host=h}']);
  mail.inc();
  expect(sampleMap(registry.expose()).get('jobs_total{queue=mail,host=h}')).toBe(1);
  expect(() => counter.remove('mail')).toThrow(TypeError);
});

test('the bound form of a removed series counts for the one that took its place', () => {
  const registry = new Registry();
  const histogram = registry.histogram({ name: 'seconds', help: 'Help.', labelNames: ['of'] });
  const gauge = registry.gauge({ name: 'size', help: 'Help.', labelNames: ['of'] });
  const [oldTime, oldSize] = [histogram.labels('a'), gauge.labels('a')];
  histogram.remove('a');
  gauge.remove('a');
  histogram.observe({ of: 'a' }, 1);
  gauge.set({ of: 'a' }, 1);
  oldTime.observe(2);
  oldSize.inc();
  expect(histogram.labels('a').count).toBe(2);
  expect(gauge.labels('a').value).toBe(2);
});

test('reset empties a labelled metric and zeroes one without labels', () => {
  const registry = new Registry();
  const labelled = registry.counter({ name: 'a_total', help: 'Help.', labelNames: ['of'] });
  const bare = registry.counter({ name: 'b_total', help: 'Help.' });
  const bound = labelled.labels({ of: 'x' });
  bound.inc(3);
  bare.inc(3);
  labelled.reset();
  bare.reset();
  expect(sampleMap(registry.expose())).toEqual(new Map([['b_total', 0]]));
  bound.inc();
  bare.inc(2);
  expect(sampleMap(registry.expose())).toEqual(new Map([['a_total{of=x}', 1], ['b_total', 2]]));
});

test('a metric without labels can be taken out and comes back with the next update', () => {
  const registry = new Registry();
  const gauge = registry.gauge({ name: 'size', help: 'Help.' });
  gauge.set(7);
  gauge.remove();
  expect(sampleMap(registry.expose()).size).toBe(0);
  gauge.inc();
  expect(sampleMap(registry.expose()).get('size')).toBe(1);
  gauge.remove();
  gauge.set({}, 4);
  gauge.inc();
  expect(sampleMap(registry.expose()).get('size')).toBe(5);
  gauge.reset();
  expect(sampleMap(registry.expose()).get('size')).toBe(0);
});

test.for([1, 2, 8, 9, 10, 40])(
  'of %i values of each label, any can go and come back without another noticing',
  (count) => {
    const registry = new Registry();
    const counter = registry.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue', 'host'] });
    const pairs = Array.from({ length: count * count }, (_, index) => ({
      queue: `q${index % count}`,
      host: Math.floor(index / count),
    }));
    const expected = new Map<string, number>();
    const check = (): void => expect(sampleMap(registry.expose())).toEqual(expected);
    pairs.forEach((labels, index) => {
      counter.inc(labels, index + 1);
      expected.set(`jobs_total{queue=${labels.queue},host=${labels.host}}`, index + 1);
    });
    check();
    pairs.forEach((labels, index) => {
      if (index % 3 === 0) return;
      counter.remove(labels);
      counter.remove(labels);
      expected.delete(`jobs_total{queue=${labels.queue},host=${labels.host}}`);
    });
    check();
    pairs.forEach((labels, index) => {
      const key = `jobs_total{queue=${labels.queue},host=${labels.host}}`;
      counter.inc(labels);
      expected.set(key, index % 3 === 0 ? index + 2 : 1);
    });
    check();
    for (const labels of pairs.toReversed()) counter.remove(labels.queue, String(labels.host));
    expected.clear();
    check();
    counter.inc({ queue: 'q0', host: 0 });
    expect(sampleMap(registry.expose())).toEqual(new Map([['jobs_total{queue=q0,host=0}', 1]]));
  },
);
