/** Random metrics with hostile texts and numbers: both formats, strictly read, against a model of what was counted. */

import { Registry } from 'postern/metrics';
import { parseExposition, type ParsedFamily } from '../support/exposition-parser.js';
import { FRAGMENTS, NUMBERS, randomText } from '../support/random-metrics.js';
import { oneIn, several, type Random } from '../support/random.js';
import { assert, assertSame, type Target } from './target.js';

type Kind = 'counter' | 'gauge' | 'histogram';
type Labels = Readonly<Record<string, string | number>>;
type Metric = ReturnType<Registry['get']> & {};
type Bound = ReturnType<Metric['labels']>;

interface Exemplar {
  readonly labels: Labels;
  readonly value: number;
}

interface ModelSeries {
  readonly texts: readonly string[];
  value: number;
  /** Of a histogram: not cumulative, one more than there are bounds. */
  counts: number[];
  /** By bucket; a counter has but one. */
  readonly exemplars: (Exemplar | undefined)[];
}

interface ModelMetric {
  readonly kind: Kind;
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly bounds: readonly number[];
  readonly maxSeries: number;
  readonly collect: 'none' | 'sets' | 'throws' | 'promises';
  readonly metric: Metric;
  /** By the texts of its labels, in order of creation. */
  readonly series: Map<string, ModelSeries>;
  /** The series that takes what is too much. */
  overflow: string | undefined;
}

const TEXTS = [
  ...FRAGMENTS, '\u0000', '\u2028', '\ufeff', '\u007f', '_overflow', '+Inf', '𝒳', 'x'.repeat(200), '\\"', '"} 1.0\n',
  '# EOF\n', '\\',
];
const NAMES = [
  'jobs', 'jobs_total', 'jobs_created', 'jobs_count', 'jobs_sum', 'jobs_bucket', 'a:b', '_x', 'size_bytes', 'T',
  'total', '_total', 'x_total_total', 'http_requests_total',
];
const WRONG_NAMES = ['', '1a', 'a-b', 'a b', 'é', 'a\n', '__proto__ ', 'a{b}'];
const LABELS = ['a', 'b', 'queue', 'constructor', 'toString', '_', 'le', 'quantile', 'A1'];
const WRONG_LABELS = ['', '1a', 'a-b', '__proto__', '__name', 'a:b', 'é'];
/** Name, labels, value, and what points out one observation. */
type ExpectedSample = readonly [string, Labels, number, (Exemplar | undefined)?];

const WRONG_TEXTS: readonly unknown[] = [undefined, null, true, {}, [], Symbol('s'), 1n, '\ud83d', 'a\udc00'];
const OVERFLOW = '_overflow';

export const metrics: Target = {
  name: 'metrics',
  outcomes: [
    'exposed', 'registered', 'not registered', 'counted', 'wrong labels', 'wrong value', 'overflow', 'exemplar',
    'removed', 'metric removed', 'default labels', 'bound', 'not collected',
  ],
  run(random, met) {
    const maxSeries = oneIn(random, 3) ? 1 + random.int(4) : 10_000;
    const model = new Model(new Registry({ maxSeries }), maxSeries, met);
    const bound: { readonly metric: ModelMetric; readonly texts: readonly string[]; readonly series: Bound }[] = [];
    for (let step = 10 + random.int(120); step > 0; step -= 1) {
      const metric = model.metrics.length === 0 ? undefined : random.pick(model.metrics);
      const kind = random.int(24);
      if (metric === undefined || kind === 0) model.register(random);
      else if (kind === 1) model.expose();
      else if (kind === 2 && oneIn(random, 3)) model.remove(random, metric);
      else if (kind === 3 && oneIn(random, 3)) model.setDefaultLabels(random);
      else if (kind === 3) model.reset(metric);
      else if (kind === 4) model.removeSeries(random, metric);
      else if (kind === 5) {
        const texts = model.textsOf(random, metric);
        bound.push({ metric, texts: model.bind(metric, texts), series: metric.metric.labels(...texts) });
        met('bound');
      } else if (kind < 9 && bound.length > 0) {
        const { metric: owner, texts, series } = random.pick(bound);
        model.update(random, owner, texts, true, (value) => update(owner.kind, series, value));
      } else if (kind < 11) model.updateWrongly(random, metric);
      else if (kind < 13) model.updateWithExemplar(random, metric);
      else {
        const texts = model.textsOf(random, metric);
        const labels = Object.fromEntries(
          metric.labelNames.map((name, index): [string, string | number] => [name, texts[index] ?? '']),
        );
        const isDirect = texts.length === 0 && oneIn(random, 2);
        model.update(random, metric, texts, isDirect, (value) =>
          isDirect ? update(metric.kind, metric.metric, value) : updateLabels(metric, labels, value),
        );
      }
    }
    model.expose();
  },
};

/** The method that adds to a metric or to one of its series; `value` may be anything. */
function update(kind: Kind, target: object, value: unknown): void {
  const method: unknown = Reflect.get(target, { counter: 'inc', gauge: 'inc', histogram: 'observe' }[kind]);
  assert(typeof method === 'function', `a ${kind} has no method to add with`);
  Reflect.apply(method, target, [value]);
}

function updateLabels({ kind, metric }: ModelMetric, labels: object, value: unknown): void {
  const method: unknown = Reflect.get(metric, { counter: 'inc', gauge: 'inc', histogram: 'observe' }[kind]);
  assert(typeof method === 'function', `a ${kind} has no method to add with`);
  Reflect.apply(method, metric, [labels, value]);
}

/** What a registry must hold. */
class Model {
  readonly metrics: ModelMetric[] = [];
  readonly #registry: Registry;
  readonly #maxSeries: number;
  readonly #met: (outcome: string) => void;
  readonly #overflows = new Map<string, number>();
  #defaultLabels: Labels = {};
  readonly #collectErrors = new Map<string, number>();

  constructor(registry: Registry, maxSeries: number, met: (outcome: string) => void) {
    this.#registry = registry;
    this.#maxSeries = maxSeries;
    this.#met = met;
  }

  register(random: Random): void {
    const kind = random.pick(['counter', 'gauge', 'histogram'] as const);
    const isWrong = oneIn(random, 6);
    const name =
      isWrong && oneIn(random, 2)
        ? random.pick(WRONG_NAMES)
        : `${random.pick(NAMES)}${oneIn(random, 2) ? random.int(20) : ''}`;
    const labelNames = several(random, 0, 3, () =>
      isWrong && oneIn(random, 3) ? random.pick(WRONG_LABELS) : random.pick(LABELS),
    );
    const help = isWrong && oneIn(random, 3) ? '' : `${random.pick(['Help', '#', ' '])}${randomText(random)}.`;
    const bounds = [
      ...new Set(several(random, 1, 12, () => random.pick([...NUMBERS, random.next(), -1e300, 1e300]))),
    ].sort((a, b) => a - b);
    const buckets = oneIn(random, 8) ? random.pick([[], [2, 1], [1, 1], [NaN], [...bounds, Infinity]]) : bounds;
    const maxSeries = oneIn(random, 4) ? 1 + random.int(3) : undefined;
    const collect = random.pick(['none', 'none', 'none', 'none', 'none', 'sets', 'throws', 'promises'] as const);
    const options = {
      name,
      help,
      labelNames,
      ...(maxSeries === undefined ? {} : { maxSeries }),
      ...(collect === 'none' ? {} : { collect: () => this.#collect(name) }),
    };
    const isValid =
      /^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name) &&
      help !== '' &&
      labelNames.every((label) => /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/.test(label)) &&
      new Set(labelNames).size === labelNames.length &&
      !(kind === 'histogram' && labelNames.includes('le')) &&
      !(
        kind === 'histogram' &&
        (buckets.every((bound) => bound === Infinity) ||
          buckets.some((bound, index) => Number.isNaN(bound) || bound <= (buckets[index - 1] ?? -Infinity)))
      );
    const related = ['metrics_overflow', 'metrics_collect_errors', ...this.metrics.map((other) => other.name)].some(
      (other) => stem(other) === stem(name),
    );
    let metric: Metric;
    try {
      // One object for all three: the types of their `collect` differ in `this` alone.
      metric =
        kind === 'counter'
          ? this.#registry.counter(options)
          : kind === 'gauge'
            ? this.#registry.gauge(options)
            : this.#registry.histogram({ ...options, buckets });
    } catch (error) {
      assert(
        error instanceof TypeError || error instanceof RangeError,
        `registering ${JSON.stringify(options)} threw ${String(error)}`,
      );
      assert(!isValid || related, `${kind} ${JSON.stringify({ ...options, buckets })} was refused: ${String(error)}`);
      this.#met('not registered');
      return;
    }
    assert(isValid, `${kind} ${JSON.stringify({ ...options, buckets })} was taken`);
    assert(this.metrics.every((other) => other.name !== name), `${name} was taken twice`);
    const finite = buckets.filter((bound) => bound !== Infinity);
    const added: ModelMetric = {
      kind,
      name,
      help,
      labelNames,
      bounds: finite,
      maxSeries: maxSeries ?? this.#maxSeries,
      collect,
      metric,
      series: new Map(),
      overflow: undefined,
    };
    if (labelNames.length === 0) this.bind(added, []);
    this.metrics.push(added);
    this.#met('registered');
  }

  /** The series of some texts, made if need be; what is over the limit has the texts of the overflow series. */
  bind(metric: ModelMetric, given: readonly (string | number)[]): readonly string[] {
    const texts = given.map(String);
    const key = JSON.stringify(texts);
    if (metric.series.has(key)) return texts;
    const create = (all: readonly string[]): readonly string[] => {
      metric.series.set(JSON.stringify(all), {
        texts: all,
        value: 0,
        counts: metric.bounds.map(() => 0).concat(0),
        exemplars: [],
      });
      return all;
    };
    if (
      metric.labelNames.length === 0 ||
      metric.series.size - (metric.overflow === undefined ? 0 : 1) < metric.maxSeries
    )
      return create(texts);
    this.#overflows.set(metric.name, (this.#overflows.get(metric.name) ?? 0) + 1);
    this.#met('overflow');
    const all = metric.labelNames.map(() => OVERFLOW);
    if (metric.overflow === undefined) {
      metric.overflow = JSON.stringify(all);
      if (!metric.series.has(metric.overflow)) create(all);
    }
    return all;
  }

  textsOf(random: Random, { labelNames, series }: ModelMetric): readonly (string | number)[] {
    const known = [...series.values()];
    if (known.length > 0 && oneIn(random, 2)) return random.pick(known).texts;
    return labelNames.map(() =>
      oneIn(random, 8) ? random.pick(NUMBERS) : oneIn(random, 3) ? randomText(random) : random.pick(TEXTS),
    );
  }

  /** Adds a value, which may be wrong, to a series, found by its texts or at hand. */
  update(
    random: Random,
    metric: ModelMetric,
    given: readonly (string | number)[],
    isAtHand: boolean,
    add: (value: unknown) => void,
  ): void {
    if (!this.metrics.includes(metric)) this.#met('metric removed');
    const values: readonly unknown[] = [...NUMBERS, ...NUMBERS, NaN, Infinity, -Infinity, '1', null, true, 1n];
    const value = values[random.int(values.length)];
    const isNumber = typeof value === 'number';
    const isValid =
      isNumber && (metric.kind === 'gauge' || (Number.isFinite(value) && (metric.kind === 'histogram' || value >= 0)));
    // A gauge at hand looks at the value before anything else, so that a wrong one brings no removed series back.
    const isUntouched = isAtHand && metric.kind === 'gauge' && !isNumber;
    const series = isUntouched ? undefined : metric.series.get(JSON.stringify(this.bind(metric, given)));
    try {
      add(value);
    } catch (error) {
      assert(
        !isValid && (error instanceof TypeError || error instanceof RangeError),
        `${metric.kind} refused ${String(value)} with ${String(error)}`,
      );
      this.#met('wrong value');
      return;
    }
    assert(isValid && series !== undefined, `${metric.kind} took ${String(value)}`);
    this.#add(metric, series, value);
    this.#met('counted');
  }

  /** Labels that are wrong change nothing. */
  updateWrongly(random: Random, metric: ModelMetric): void {
    const right: Record<string, unknown> = Object.fromEntries(
      metric.labelNames.map((name) => [name, random.pick(TEXTS)]),
    );
    const label = metric.labelNames.length === 0 || oneIn(random, 3) ? 'unknown' : random.pick(metric.labelNames);
    if (label === 'unknown' || !oneIn(random, 3)) right[label] = WRONG_TEXTS[random.int(WRONG_TEXTS.length)];
    else Reflect.deleteProperty(right, label);
    try {
      updateLabels(metric, right, 1);
    } catch (error) {
      assert(error instanceof TypeError, `wrong labels threw ${String(error)}`);
      this.#met('wrong labels');
      return;
    }
    throw new Error(
      `${metric.kind} with labels ${metric.labelNames.join()} took ${Object.keys(right).join()}: ${Object.values(right).map(String).join()}`,
    );
  }

  updateWithExemplar(random: Random, metric: ModelMetric): void {
    if (metric.kind === 'gauge') return;
    const texts = this.textsOf(random, metric);
    const labels = Object.fromEntries(metric.labelNames.map((name, index) => [name, texts[index]]));
    const exemplarLabels: Record<string, unknown> = Object.fromEntries(
      several(random, 0, 3, () => [
        oneIn(random, 10) ? random.pick(WRONG_LABELS) : random.pick(['trace_id', 'span_id', 'a']),
        oneIn(random, 10) ? null : oneIn(random, 6) ? 'é'.repeat(random.int(140)) : random.pick([...TEXTS, 7]),
      ]),
    );
    const value = Math.abs(random.pick(NUMBERS));
    const length = Object.entries(exemplarLabels)
      .reduce((sum, [name, text]) => sum + [...name].length + [...String(text)].length, 0);
    const isValid = length <= 128 && Object.entries(exemplarLabels)
      .every(([name, text]) => /^(?!__)[a-zA-Z_]\w*$/.test(name) && text !== null && !String(text).includes('\0'));
    const series = metric.series.get(JSON.stringify(this.bind(metric, texts)));
    assert(series !== undefined, 'the model has no such series');
    try {
      update(metric.kind, metric.metric, { labels, value, exemplarLabels });
    } catch (error) {
      assert(
        !isValid && (error instanceof TypeError || error instanceof RangeError),
        `the exemplar ${JSON.stringify(exemplarLabels)} was refused: ${String(error)}`,
      );
      return;
    }
    assert(isValid, `the exemplar ${JSON.stringify(exemplarLabels)} was taken`);
    const bucket = this.#add(metric, series, value);
    series.exemplars[bucket] = {
      labels: Object.fromEntries(Object.entries(exemplarLabels).map(([name, text]) => [name, String(text)])),
      value,
    };
    this.#met('exemplar');
  }

  removeSeries(random: Random, metric: ModelMetric): void {
    const texts = this.textsOf(random, metric).map(String);
    if (oneIn(random, 2)) metric.metric.remove(...texts);
    else metric.metric.remove(Object.fromEntries(metric.labelNames.map((name, index) => [name, texts[index] ?? ''])));
    const key = JSON.stringify(texts);
    metric.series.delete(key);
    if (metric.overflow === key) metric.overflow = undefined;
    this.#met('removed');
  }

  reset(metric: ModelMetric): void {
    metric.metric.reset();
    metric.series.clear();
    metric.overflow = undefined;
    if (metric.labelNames.length === 0) this.bind(metric, []);
  }

  remove(random: Random, metric: ModelMetric): void {
    this.#registry.remove(metric.name);
    this.metrics.splice(this.metrics.indexOf(metric), 1);
    if (oneIn(random, 2)) this.#registry.remove(metric.name);
  }

  setDefaultLabels(random: Random): void {
    const names = several(random, 0, 2, () =>
      random.pick(LABELS.filter((name) => name !== 'le' && name !== 'quantile')),
    );
    this.#defaultLabels = Object.fromEntries(names.map((name) => [name, randomText(random)]));
    this.#registry.setDefaultLabels(this.#defaultLabels);
    this.#met('default labels');
  }

  /** Both formats say the same as the model, to a strict reader. */
  expose(): void {
    for (const format of ['text', 'openmetrics'] as const) {
      const text = this.#registry.expose(format);
      const families = parseExposition(text, format);
      this.#countCollectErrors();
      const expected = this.#expected(format);
      assertSame(
        families.map(({ name, type, help }) => ({ name, type, help })),
        expected.map(({ name, type, help }) => ({ name, type, help })),
        'the families',
      );
      for (const [index, family] of families.entries()) assertSamples(family, expected[index]?.samples ?? [], format);
    }
    this.#met('exposed');
  }

  #expected(
    format: 'text' | 'openmetrics',
  ): { name: string; type: string; help: string; samples: readonly ExpectedSample[] }[] {
    const own = [
      { name: 'metrics_overflow_total',
        help: 'Look-ups of label values beyond the series limit of a metric; all of them share its series _overflow.',
        counts: this.#overflows },
      { name: 'metrics_collect_errors_total',
        help: 'Expositions that a metric was left out of because its collect threw or returned a promise.',
        counts: this.#collectErrors },
    ].filter(({ counts }) => counts.size > 0);
    const familyName = (kind: Kind, name: string): string =>
      (format === 'openmetrics' && kind === 'counter' ? baseName(name) : name);
    const sampleName = (kind: Kind, name: string): string =>
      (format === 'openmetrics' && kind === 'counter' ? `${baseName(name)}_total` : name);
    const withDefaults = ([name, labels, ...rest]: ExpectedSample): ExpectedSample =>
      [name, { ...this.#defaultLabels, ...labels }, ...rest];
    return [
      ...this.metrics
        .filter(({ collect }) => collect === 'none' || collect === 'sets')
        .map((metric) => ({
          name: familyName(metric.kind, metric.name),
          type: metric.kind,
          help: metric.help,
          samples: samplesOf(metric, sampleName(metric.kind, metric.name), format).map(withDefaults),
        })),
      ...own.map(({ name, help, counts }) => ({
        name: familyName('counter', name),
        type: 'counter',
        help,
        samples: [...counts].map(
          ([metric, count]) => [sampleName('counter', name), { ...this.#defaultLabels, metric }, count] as const,
        ),
      })),
    ];
  }

  #countCollectErrors(): void {
    for (const { name, collect } of this.metrics) {
      if (collect !== 'throws' && collect !== 'promises') continue;
      this.#collectErrors.set(name, (this.#collectErrors.get(name) ?? 0) + 1);
      this.#met('not collected');
    }
  }

  #collect(name: string): unknown {
    const metric = this.metrics.find((other) => other.name === name);
    if (metric?.collect === 'throws') throw new Error('not to be had');
    return metric?.collect === 'promises' ? Promise.reject(new Error('late')) : undefined;
  }

  /** Returns the bucket that a value fell into. */
  #add({ kind, bounds }: ModelMetric, series: ModelSeries, value: number): number {
    series.value += value;
    if (kind !== 'histogram') return 0;
    const at = bounds.findIndex((bound) => value <= bound);
    const bucket = at === -1 ? bounds.length : at;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    return bucket;
  }
}

function baseName(name: string): string {
  return name.endsWith('_total') && name !== '_total' ? name.slice(0, -'_total'.length) : name;
}

/** Metrics of different stems never clash. */
function stem(name: string): string {
  return name.replace(/(?:_(?:total|created|count|sum|bucket))+$/, '');
}

function samplesOf(
  { kind, name, labelNames, bounds, series }: ModelMetric,
  sampleName: string,
  format: 'text' | 'openmetrics',
): ExpectedSample[] {
  return [...series.values()].flatMap(({ texts, value, counts, exemplars }): ExpectedSample[] => {
    const labels = Object.fromEntries(labelNames.map((label, index) => [label, texts[index] ?? '']));
    if (kind !== 'histogram') return [[sampleName, labels, value, exemplars[0]]];
    let total = 0;
    const buckets = [...bounds, Infinity].map((le, index) => {
      total += counts[index] ?? 0;
      return [`${name}_bucket`, { ...labels, le: leText(le) }, total, exemplars[index]] as const;
    });
    // In OpenMetrics a sum never goes down, and a count stands beside a sum alone.
    if (format === 'openmetrics' && !(value >= 0 && !((bounds[0] ?? 0) < 0))) return buckets;
    return [...buckets, [`${name}_sum`, labels, value], [`${name}_count`, labels, total]];
  });
}

function leText(bound: number): string {
  if (bound === Infinity) return '+Inf';
  return Number.isInteger(bound) && Math.abs(bound) < 1e21 ? `${bound}.0` : String(bound);
}

function assertSamples(
  { name: family, samples }: ParsedFamily,
  expected: readonly ExpectedSample[],
  format: 'text' | 'openmetrics',
): void {
  const show = (name: string, labels: Labels, value: number, exemplar: Exemplar | undefined): string => {
    const pairs = (all: Labels): unknown => Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1));
    const pointed = exemplar === undefined || format === 'text' ? [] : [pairs(exemplar.labels), exemplar.value];
    return JSON.stringify([name, pairs(labels), Object.is(value, -0) ? '0' : String(value), ...pointed]);
  };
  const [actual, wanted] = [
    samples.map((sample) => show(sample.name, sample.labels, sample.value, sample.exemplar)),
    expected.map(([name, labels, value, exemplar]) => show(name, labels, value, exemplar)),
  ];
  assertSame(actual, wanted, `the samples of ${family}`);
}
