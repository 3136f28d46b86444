/* The metrics of one application: registers them under names that can't clash, and exposes them. */

import { assertOptions, show } from '../base/options-check.js';
import { isThenable } from '../base/promises.js';
import { Counter, COUNTER, CounterSeries, type CounterOptions } from './counter.js';
import { CONTENT_TYPES, type DefaultLabels, formatMetrics, formatOwnLabels } from './exposition.js';
import { Gauge, GAUGE, GaugeSeries, type GaugeOptions } from './gauge.js';
import { DEFAULT_BUCKETS, Histogram, HISTOGRAM, HistogramSeries, toBounds } from './histogram.js';
import type { HistogramOptions } from './histogram.js';
import type { Format, LabelValue, MetricOptions } from './metric.js';
import { assertLabelNames, assertMetricName, ClaimedNames, toDefaultLabels } from './names.js';
import type { Definition, MetricKind } from './names.js';
import { Summary, SUMMARY, SummarySeries, toQuantileWindow, type SummaryOptions } from './summary.js';

/** Options of a registry. */
export interface RegistryOptions {
  /** How many series a metric may have before further label values share one series, `_overflow`; default 10,000. */
  readonly maxSeries?: number | undefined;
  /** Called when a metric is left out of an exposition because its `collect` failed. Default: nothing is called. */
  readonly onError?: ((metricName: string, error: unknown) => void) | undefined;
}

/** A metric whose label names aren't known at compile time. */
export type AnyMetric = Counter<string> | Gauge<string> | Histogram<string> | Summary<string>;

/** Shares nothing with any other registry; iterating over it yields its metrics, in order of registration. */
export class Registry implements Iterable<AnyMetric> {
  readonly #maxSeries: number;
  readonly #onError: (metricName: string, error: unknown) => void;
  readonly #entries: Map<string, Entry> = new Map();
  readonly #names: ClaimedNames = new ClaimedNames();
  readonly #listeners: Set<() => void> = new Set();
  #defaultLabels: DefaultLabels = new Map();
  readonly #overflows: Counter<'metric'>;
  readonly #collectErrors: Counter<'metric'>;
  /** The registry's own, exposed from the first time that they have something to count. */
  readonly #own: readonly Entry[];
  #stopDefaultMetrics: (() => void) | undefined;

  /** @throws {RangeError} when `maxSeries` is not a positive integer */
  constructor(options: RegistryOptions = {}) {
    assertOptions('new Registry()', options, ['maxSeries', 'onError']);
    const { maxSeries = 10_000, onError = () => {} } = options;
    assertMaxSeries(maxSeries, 'a registry');
    this.#maxSeries = maxSeries;
    this.#onError = onError;
    const count = (name: string, help: string): Counter<'metric'> =>
      this.counter({ name, help, labelNames: ['metric'], maxSeries: Infinity });
    this.#overflows = count(
      'metrics_overflow_total',
      'Look-ups of label values beyond the series limit of a metric; all of them share its series _overflow.',
    );
    this.#collectErrors = count(
      'metrics_collect_errors_total',
      'Expositions that a metric was left out of because its collect threw or returned a promise.',
    );
    this.#own = [...this.#entries.values()];
    this.#entries.clear();
  }

  /** The `Content-Type` of `expose()`, the Prometheus text format. */
  get contentType(): string {
    return this.contentTypeOf('text');
  }

  /** The `Content-Type` of `expose(format)`. */
  contentTypeOf(format: Format): string {
    return CONTENT_TYPES[format];
  }

  /**
   * Registers a counter.
   *
   * @throws {TypeError} for an invalid option, and for a name that clashes with another metric's in one of the formats
   *
   * @example
   * const jobs = app.metrics.counter({ name: 'jobs_total', help: 'Jobs done.', labelNames: ['queue'] });
   * jobs.inc({ queue: 'mail' });
   */
  counter<const L extends string = never>(options: CounterOptions<L>): Counter<L> {
    const definition = this.#define(COUNTER, options);
    const metric = new Counter<L>({ ...definition, create: (owner, values) => new CounterSeries(owner, values) });
    return this.#add(metric, options.collect);
  }

  /**
   * Registers a gauge.
   *
   * @throws {TypeError} as `counter` does
   *
   * @example
   * app.metrics.gauge({ name: 'queue_size', help: 'Waiting jobs.', collect() { this.set(queue.length); } });
   */
  gauge<const L extends string = never>(options: GaugeOptions<L>): Gauge<L> {
    const definition = this.#define(GAUGE, options);
    const metric = new Gauge<L>({ ...definition, create: (owner, values) => new GaugeSeries(owner, values) });
    return this.#add(metric, options.collect);
  }

  /**
   * Registers a histogram.
   *
   * @throws {TypeError} as `counter` does @throws {RangeError} when the buckets don't ascend
   *
   * @example
   * const seconds = app.metrics.histogram({ name: 'job_seconds', help: 'Duration of jobs.', buckets: [0.1, 1, 10] });
   * const stop = seconds.startTimer();
   * stop();
   */
  histogram<const L extends string = never>(options: HistogramOptions<L>): Histogram<L> {
    const definition = this.#define(HISTOGRAM, options);
    const { buckets = DEFAULT_BUCKETS } = options;
    const upperBounds = toBounds(buckets, definition.name);
    const bucketLabels = formatOwnLabels(HISTOGRAM, [...upperBounds, Infinity]);
    const metric = new Histogram<L>({
      ...definition,
      upperBounds,
      create: (owner, values) => new HistogramSeries(owner, values, upperBounds, bucketLabels),
    });
    return this.#add(metric, options.collect);
  }

  /** Registers a summary. @throws {TypeError} as `counter` does @throws {RangeError} when a number is out of range */
  summary<const L extends string = never>(options: SummaryOptions<L>): Summary<L> {
    const definition = this.#define(SUMMARY, options);
    const window = toQuantileWindow(options, definition.name);
    const metric = new Summary<L>({
      ...definition,
      create: (owner, values) => new SummarySeries(owner, values, window),
    });
    return this.#add(metric, options.collect);
  }

  /** The metric that was registered under this name, by the registry itself too. */
  get(name: string): AnyMetric | undefined {
    return (this.#entries.get(name) ?? this.#own.find(({ metric }) => metric.name === name))?.metric;
  }

  /** Iterates over the metrics, in the order of registration. */
  *[Symbol.iterator](): IterableIterator<AnyMetric> {
    for (const { metric } of this.#entries.values()) yield metric;
  }

  /**
   * Sets labels for every sample of every metric from now on. A sample's own label overrides a label of that name. They
   * replace the labels that were set before.
   *
   * @throws {TypeError} for a name or a value that no label may have
   */
  setDefaultLabels(labels: Readonly<Record<string, LabelValue>>): void {
    this.#defaultLabels = toDefaultLabels(labels);
  }

  /** Takes a metric out and frees its names; updates of it go nowhere from now on. */
  remove(name: string): void {
    if (this.#entries.delete(name)) this.#names.free(name);
  }

  /** Removes every metric, the default labels and every listener, and ends the collection of default metrics. */
  clear(): void {
    for (const name of [...this.#entries.keys()]) this.remove(name);
    this.#overflows.reset();
    this.#collectErrors.reset();
    this.#listeners.clear();
    this.#defaultLabels = new Map();
    this.#stopDefaultMetrics?.();
    this.#stopDefaultMetrics = undefined;
  }

  /**
   * Registers default metrics: all of them or, if that throws, none.
   *
   * @param stop called by `clear`, after which they may be registered again
   * @throws {TypeError} when the registry has them already, and what `register` throws @internal
   */
  addDefaultMetrics<T>(stop: () => void, register: () => T): T {
    if (this.#stopDefaultMetrics !== undefined)
      throw new TypeError('the default metrics are collected into this registry already; once is enough');
    const names = new Set(this.#entries.keys());
    try {
      const registered = register();
      this.#stopDefaultMetrics = stop;
      return registered;
    } catch (error) {
      for (const name of this.#entries.keys()) if (!names.has(name)) this.remove(name);
      throw error;
    }
  }

  /** Labels of every sample that has no label of its own by that name. @internal */
  get defaultLabels(): DefaultLabels {
    return this.#defaultLabels;
  }

  /** Writes every metric in order of registration; runs each `collect` first. Default format: Prometheus text 0.0.4. */
  expose(format: Format = 'text'): string {
    if (!Object.hasOwn(CONTENT_TYPES, format))
      throw new TypeError(`the format of expose() is ${show(format)}; give 'text' or 'openmetrics'`);
    return formatMetrics(this.gather(), format, this.#defaultLabels);
  }

  /**
   * Calls `listener` at the start of each exposition, before any `collect`: the moment to read what several metrics
   * share.
   *
   * @returns a function that ends it
   */
  onExpose(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #define(kind: MetricKind, options: MetricOptions<string, never>): Definition {
    const known = ['name', 'help', 'labelNames', 'maxSeries', 'collect', ...kind.options];
    assertOptions(`a ${kind.type}`, options, known);
    const { name, help, labelNames = [], maxSeries = this.#maxSeries, collect } = options;
    assertMetricName(name);
    if (typeof help !== 'string' || help === '')
      throw new TypeError(`metric "${name}" has the help ${show(help)}; say in a sentence what it measures`);
    assertLabelNames(labelNames, kind, name);
    assertMaxSeries(maxSeries, `metric "${name}"`);
    if (collect !== undefined && typeof collect !== 'function')
      throw new TypeError(`collect of "${name}" is ${show(collect)}; give a function`);
    const onOverflow = (): void => this.#overflows.inc({ metric: name });
    return { kind, name, help, labelNames: [...labelNames], maxSeries, onOverflow };
  }

  #add<M extends AnyMetric>(metric: M, collect: ((this: M) => unknown) | undefined): M {
    this.#names.claim(metric.definition);
    this.#entries.set(metric.name, { metric, collect: collect && (() => collect.call(metric)) });
    return metric;
  }

  /** The metrics to expose, after each `collect`, in order of registration. @internal */
  gather(): readonly AnyMetric[] {
    for (const listener of this.#listeners) listener();
    const collected = [...this.#entries.values()].filter((entry) => this.#isCollected(entry));
    const own = this.#own.filter(({ metric }) => metric.samples.size > 0);
    return [...collected, ...own].map(({ metric }) => metric);
  }

  #isCollected({ collect, metric: { name } }: Entry): boolean {
    if (collect === undefined) return true;
    try {
      const result = collect();
      if (!isThenable(result)) return true;
      void Promise.resolve(result).catch(() => {});
      throw new TypeError(
        `collect of "${name}" returned a promise; set what it waits for elsewhere, as soon as it is known`,
      );
    } catch (error) {
      this.#collectErrors.inc({ metric: name });
      this.#onError(name, error);
      return false;
    }
  }
}

interface Entry {
  readonly metric: AnyMetric;
  readonly collect: (() => unknown) | undefined;
}

function assertMaxSeries(maxSeries: number, owner: string): void {
  if ((Number.isInteger(maxSeries) || maxSeries === Infinity) && maxSeries >= 1) return;
  throw new RangeError(
    `maxSeries of ${owner} is ${show(maxSeries)}; give a positive integer, or Infinity for no limit`,
  );
}
