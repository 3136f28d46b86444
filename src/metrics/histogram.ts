/* Histograms: how many observations fell into which bucket, and their sum. */

import { show } from '../base/options-check.js';
import { type Exemplar, type ExemplarLabels, type Observation, toExemplar } from './exemplar.js';
import { formatRest, openLabels } from './exposition.js';
import { Metric, Series } from './metric.js';
import type { DataPoint, Format, Labels, MetricOptions, MetricUpdate, SomeLabels, UpdateLabels } from './metric.js';
import type { MetricKind } from './names.js';
import { type BoundHistogramTimer, startBoundTimer, startTimer } from './timer.js';

/** @internal */
export const HISTOGRAM: MetricKind = {
  type: 'histogram',
  options: ['buckets'],
  ownLabel: 'le',
  suffixes: ['_bucket', '_sum', '_count', '_created'],
  data: 'histogram',
};

/** Options of a histogram. */
export interface HistogramOptions<L extends string = never> extends MetricOptions<L, Histogram<L>> {
  /** Upper bounds, ascending, `+Inf` implied; default: 5 ms to 10 s, in seconds. */
  readonly buckets?: readonly number[] | undefined;
}

/** Arguments of `observe`: `(labels, value)`, without labels `(value)`, or prom-client's object. */
export type HistogramUpdate<L extends string> =
  MetricUpdate<L, [value: number]> | [observation: Observation & UpdateLabels<L>];

/** Ends a timer with the rest of the labels; returns the seconds that were observed. */
export type HistogramTimer<L extends string> = (labels?: SomeLabels<L>, exemplarLabels?: ExemplarLabels) => number;

/** One series of a histogram. */
export interface BoundHistogram {
  /** How much was observed, all in all. */
  readonly sum: number;
  /** How often something was observed. */
  readonly count: number;
  /** Counts a value. @throws {TypeError} unless it is a finite number */
  observe(value: number): void;
  /** Counts `value`, and remembers it as its bucket's exemplar if it has labels. */
  observe(observation: Observation): void;
  /** Starts a clock; the function it returns observes the seconds since then, and returns them. */
  startTimer(exemplarLabels?: ExemplarLabels): BoundHistogramTimer;
}

/** A metric that counts observations by bucket: durations, sizes. `registry.histogram` creates it. */
export class Histogram<L extends string = never> extends Metric<L, BoundHistogram> {
  /** Counts a value. @throws {TypeError} for wrong or missing labels and for a value that is not a finite number */
  observe(...update: HistogramUpdate<L>): void;
  observe(first: unknown, value?: number): void {
    if (typeof first !== 'object' || first === null) this.only().observe(first as number);
    else if (this.isUpdate(first)) {
      const { labels = {}, ...rest } = first;
      this.obtain([labels]).observe(rest as Observation);
    } else this.obtain([first]).observe(value as number);
  }

  /**
   * Starts a clock; the function it returns observes the seconds since then, and returns them. Labels may be given at
   * either end, and so may labels of the exemplar.
   */
  startTimer(labels?: SomeLabels<L>, exemplarLabels?: ExemplarLabels): HistogramTimer<L> {
    return startTimer(labels, (update, all) => this.obtain([all]).observe(update), exemplarLabels);
  }

  /**
   * Starts a series at zero, so that it is exposed before anything is observed.
   *
   * @throws {TypeError} as `labels` does
   */
  zero(labels: Labels<L>): void {
    this.labels(labels);
  }
}

/** @internal */
export class HistogramSeries extends Series implements BoundHistogram {
  readonly #bounds: readonly number[];
  readonly #bucketLabels: readonly string[];
  /** Per bucket, not cumulative. */
  readonly values: number[];
  sum = 0;
  exemplars: (Exemplar | undefined)[] | undefined;

  /** @param bucketLabels the label of each bucket, formatted */
  constructor(
    owner: Metric<string, unknown>,
    labelValues: readonly string[],
    bounds: readonly number[],
    bucketLabels: readonly string[],
  ) {
    super(owner, labelValues);
    this.#bounds = bounds;
    this.#bucketLabels = bucketLabels;
    this.values = new Array<number>(bounds.length + 1).fill(0);
  }

  get count(): number {
    return this.values.reduce((total, count) => total + count, 0);
  }

  observe(update: number | Observation): void {
    const series = this.isRemoved ? this.live() : this;
    if (typeof update === 'number' && update > -Infinity && update < Infinity) {
      series.values[this.#bucket(update)]!++;
      series.sum += update;
    } else {
      series.#observeWithExemplar(update);
    }
  }

  startTimer(exemplarLabels?: ExemplarLabels): BoundHistogramTimer {
    const { name } = this.owner.definition;
    return startBoundTimer(name, (update) => this.observe(update), exemplarLabels);
  }

  zero(): void {
    this.values.fill(0);
    this.sum = 0;
    this.exemplars = undefined;
  }

  get point(): DataPoint {
    const { values, count, exemplars } = this;
    const sum = this.#canFall() ? undefined : this.sum;
    return { count, sum, bucketCounts: values, explicitBounds: this.#bounds, exemplars };
  }

  format(name: string, labels: string, format: Format): string {
    const isOpenMetrics = format === 'openmetrics';
    const start = openLabels(`${name}_bucket`, labels);
    let lines = '';
    let count = 0;
    for (let index = 0; index < this.values.length; index++) {
      count += this.values[index]!;
      const exemplar = isOpenMetrics ? this.exemplars?.[index] : undefined;
      lines += start + this.#bucketLabels[index]! + formatRest(count, exemplar);
    }
    // OpenMetrics does not allow a histogram to have a sum that can fall, or a count without a sum.
    if (isOpenMetrics && this.#canFall()) return lines;
    return `${lines}${name}_sum${labels}${formatRest(this.sum)}${name}_count${labels}${formatRest(count)}`;
  }

  /** Whether an observation may make the sum less. */
  #canFall(): boolean {
    return !(this.sum >= 0) || this.#bounds[0]! < 0;
  }

  #observeWithExemplar(update: unknown): void {
    const { value, exemplarLabels } =
      typeof update === 'object' && update !== null ? (update as Observation) : { value: update };
    const { name } = this.owner.definition;
    if (typeof value !== 'number' || !Number.isFinite(value)) {
      throw new TypeError(`histogram "${name}" can't observe ${show(value)}; give a finite number`);
    }
    const bucket = this.#bucket(value);
    if (exemplarLabels !== undefined) {
      const exemplar = toExemplar(exemplarLabels, value, name);
      (this.exemplars ??= [])[bucket] = exemplar;
    }
    this.values[bucket]!++;
    this.sum += value;
  }

  /** The index of the first bucket whose bound isn't below the value. */
  #bucket(value: number): number {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    return bucket;
  }
}

/** prom-client's, for requests measured in seconds: 5 ms to 10 s. @internal */
export const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * Checks the option `buckets`, and returns the finite bounds: a last `Infinity` is implied, and left out.
 *
 * @throws {TypeError} if it is not an array of numbers
 * @throws {RangeError} when there is no finite bound, or the bounds don't ascend
 * @internal
 */
export function toBounds(buckets: unknown, metricName: string): readonly number[] {
  if (!Array.isArray(buckets))
    throw new TypeError(`buckets of "${metricName}" is ${show(buckets)}; pass an array of numbers`);
  for (const [index, bound] of buckets.entries()) {
    const previous = index === 0 ? -Infinity : buckets[index - 1];
    if (typeof bound !== 'number' || Number.isNaN(bound)) {
      throw new TypeError(`bucket ${index} of "${metricName}" is ${show(bound)}; give a number`);
    }
    if (bound <= previous)
      throw new RangeError(
        `bucket ${index} of "${metricName}" is ${bound}, not more than the ${previous} before it; sort the buckets`,
      );
  }
  const bounds = buckets.filter((bound) => bound !== Infinity);
  if (bounds.length > 0) return bounds;
  throw new RangeError(`buckets of "${metricName}" has no finite bound; give at least one`);
}

/**
 * `count` bounds, `width` apart: `(0, 10, 3)` is `[0, 10, 20]`.
 *
 * @throws {RangeError} unless `width` and `count` are positive
 */
export function linearBuckets(start: number, width: number, count: number): number[] {
  if (!(width > 0) || !(count >= 1))
    throw new RangeError(`can't make ${count} buckets ${width} apart; both must be positive`);
  return Array.from({ length: count }, (_, index) => start + index * width);
}

/**
 * `count` bounds, each `factor` times the one before: `(1, 2, 3)` is `[1, 2, 4]`.
 *
 * @throws {RangeError} unless `start` and `count` are positive and `factor` is over 1
 */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  if (!(start > 0) || !(factor > 1) || !(count >= 1)) {
    throw new RangeError(
      `can't make ${count} buckets from ${start} by a factor of ${factor}; start above 0, the factor above 1`,
    );
  }
  return Array.from({ length: count }, (_, index) => start * factor ** index);
}
