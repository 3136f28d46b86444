import { expect, test } from 'vitest';
import { Registry } from 'postern/metrics';
import { parseExposition, type ParsedSample } from '../support/exposition-parser.js';
import { FRAGMENTS, NUMBERS, randomText } from '../support/random-metrics.js';
import { createRandom, type Random } from '../support/random.js';

interface Expected {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Omit<ParsedSample, 'exemplar'>[];
}

test('both formats read back as the families that were written', () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = createRandom(seed);
    const registry = new Registry();
    const expected = Array.from({ length: random.int(8) }, (_, index) => addFamily(registry, random, index));
    for (let round = 0; round < 2; round++) {
      const text = registry.expose();
      expect(plain(parseExposition(text, 'text')), `seed ${seed}`).toEqual(expected);
      expect(plain(parseExposition(registry.expose('openmetrics'), 'openmetrics')), `seed ${seed}`)
        .toEqual(expected.map(toOpenMetrics));
    }
  }
});

test('label values never share a series, whatever is in them', () => {
  const registry = new Registry();
  const counter = registry.counter({ name: 'pairs_total', help: 'Pairs.', labelNames: ['a', 'b'] });
  const values = [
    ...FRAGMENTS,
    ...FRAGMENTS.map((fragment) => `${fragment}|`),
    ...FRAGMENTS.map((fragment) => `|${fragment}"`),
  ];
  const distinct = [...new Set(values)];
  distinct.forEach((a, row) => distinct.forEach((b, column) => counter.inc({ a, b }, row * 1000 + column)));
  const [family] = parseExposition(registry.expose(), 'text');
  expect(family?.samples.length).toBe(distinct.length ** 2);
  for (const { labels, value } of family?.samples ?? []) {
    expect(value).toBe(distinct.indexOf(labels['a'] as string) * 1000 + distinct.indexOf(labels['b'] as string));
  }
});

test('series that come and go leave a text that still reads back', () => {
  const random = createRandom(7);
  const registry = new Registry();
  const gauge = registry.gauge({ name: 'sizes', help: 'Sizes.', labelNames: ['key'] });
  const expected = new Map<string, number>();
  for (let step = 0; step < 400; step++) {
    for (let change = 0; change < 40; change++) {
      const key = `${random.int(200)}-${'long '.repeat(random.int(60))}${random.pick(FRAGMENTS)}`;
      if (random.int(3) > 0) {
        gauge.set({ key }, step);
        expected.set(key, step);
      } else {
        for (const gone of [...expected.keys()].slice(0, 20)) {
          gauge.remove({ key: gone });
          expected.delete(gone);
        }
      }
    }
    if (step % 20 > 0) continue;
    const [family] = parseExposition(registry.expose(), 'text');
    expect(new Map(family?.samples.map(({ labels, value }) => [labels['key'], value]))).toEqual(expected);
  }
});

function addFamily(registry: Registry, random: Random, index: number): Expected {
  const help = `Help ${randomText(random)}.`;
  const labelNames = ['first', 'second', 'third'].slice(0, random.int(4));
  const labelSets = labelNames.length === 0 ? [{}] : distinctLabels(labelNames, random);
  const kind = random.pick(['counter', 'gauge', 'histogram'] as const);
  const name = kind === 'counter' ? `family_${index}${random.pick(['', '_total'])}` : `family:${index}`;
  if (kind === 'histogram') {
    const bounds = [...new Set([0, 0.5, 1, 1e21, random.next()])].sort((a, b) => a - b);
    const histogram = registry.histogram({ name, help, labelNames, buckets: bounds });
    const samples = labelSets.flatMap((labels) => {
      const values = Array.from({ length: random.int(20) }, () => random.pick([-1, 0.25, 0.5, 3, 1e22]));
      const bound = histogram.labels(labels);
      for (const value of values) bound.observe(value);
      const buckets = [...bounds, Infinity].map((le) => ({
        name: `${name}_bucket`,
        labels: { ...labels, le: leText(le) },
        value: values.filter((value) => value <= le).length,
      }));
      return [
        ...buckets,
        { name: `${name}_sum`, labels, value: values.reduce((sum, value) => sum + value, 0) },
        { name: `${name}_count`, labels, value: values.length },
      ];
    });
    return { name, type: kind, help, samples };
  }
  const samples = labelSets.map((labels) => {
    const value =
      kind === 'counter' ? Math.abs(random.pick(NUMBERS)) : random.pick([...NUMBERS, NaN, Infinity, -Infinity]);
    return { name, labels, value };
  });
  if (kind === 'counter') {
    const counter = registry.counter({ name, help, labelNames });
    for (const { labels, value } of samples) counter.inc(labels, value);
  } else {
    const gauge = registry.gauge({ name, help, labelNames });
    for (const { labels, value } of samples) gauge.set(labels, value);
  }
  return { name, type: kind, help, samples };
}

function distinctLabels(labelNames: readonly string[], random: Random): Record<string, string>[] {
  const sets = Array.from({ length: random.int(6) }, () =>
    Object.fromEntries(labelNames.map((name) => [name, randomText(random)])),
  );
  return [...new Map(sets.map((labels) => [JSON.stringify(labels), labels])).values()];
}

function leText(bound: number): string {
  if (bound === Infinity) return '+Inf';
  return Number.isInteger(bound) && bound < 1e21 ? `${bound}.0` : String(bound);
}

/** OpenMetrics leaves out a sum that went below zero, and the count beside it. */
function hasSum({ name, samples }: Expected, { labels }: Expected['samples'][number]): boolean {
  const sum = samples.find(
    (sample) => sample.name === `${name}_sum` && JSON.stringify(sample.labels) === JSON.stringify(labels),
  );
  return (sum?.value ?? -1) >= 0;
}

function plain(families: ReturnType<typeof parseExposition>): Expected[] {
  return families.map((family) => ({
    ...family,
    samples: family.samples.map(({ name, labels, value }) => ({ name, labels, value })),
  }));
}

function toOpenMetrics(family: Expected): Expected {
  if (family.type === 'histogram')
    return {
      ...family,
      samples: family.samples.filter((sample) => sample.name.endsWith('_bucket') || hasSum(family, sample)),
    };
  if (family.type !== 'counter') return family;
  const name = family.name.replace(/_total$/, '');
  return { ...family, name, samples: family.samples.map((sample) => ({ ...sample, name: `${name}_total` })) };
}
