/*
 * Histograms: how many observations fell into which bucket, and their sum.
 */

import { show } from '../base/options-check.js';
import * as exemplarChecks from './exemplar.js';
import type { ExemplarLabels, ExemplarUpdate } from './exemplar.js';
import type { Exemplar } from './format.js';
import { Metric } from './metric.js';
import type { Labels, MetricOptions, SomeLabels, Update, UpdateLabels } from './metric.js';
import { OwnedSeries } from './series-map.js';
import type { SeriesMap } from './series-map.js';
import * as timing from './timer.js';
import type { BoundHistogramTimer } from './timer.js';

export interface HistogramOptions<L extends string = never> extends MetricOptions<L, Histogram<L>> {
  /** Upper bounds, ascending, `+Inf` implied; default: 5 ms to 10 s, in seconds. */
  readonly buckets?: readonly number[];
}

/** One observation in prom-client's object form. */
export interface Observation extends ExemplarUpdate {
  readonly value: number;
}

/** Arguments of `observe`: `(labels, value)`, without labels `(value)`, or prom-client's object. */
export type HistogramUpdate<L extends string> =
  Update<L, [value: number]> | [observation: Observation & UpdateLabels<L>];

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

export class Histogram<L extends string = never> extends Metric<L, BoundHistogram> {
  /** Counts a value. @throws {TypeError} for wrong or missing labels and for a value that is not a finite number */
  observe(...update: HistogramUpdate<L>): void;
  observe(first: unknown, value?: number): void {
    if (typeof first === 'object' && first !== null) {
      const series = this.series.tree.find(first);
      if (series !== undefined && value !== undefined) series.observe(value);
      else if (exemplarChecks.isExemplarUpdate(first, this)) {
        const { labels = {}, ...rest } = first;
        this.find(labels).observe(rest as Observation);
      } else this.find(first).observe(value as number);
    } else {
      this.series.only().observe(first as number);
    }
  }

  /**
   * Starts a clock; the function it returns observes the seconds since then, and returns them. Labels may be given at
   * either end, and so may labels of the exemplar.
   */
  startTimer(labels?: SomeLabels<L>, exemplarLabels?: ExemplarLabels): HistogramTimer<L> {
    const observe = (value: number, all: object, exemplar: object): void =>
      this.find(all).observe({ value, ...exemplar });
    return timing.startTimer(labels, observe, exemplarLabels);
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
export class HistogramSeries extends OwnedSeries<HistogramSeries> implements BoundHistogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #exemplars: (Exemplar | undefined)[] | undefined;

  constructor(owner: SeriesMap<HistogramSeries>, labelValues: readonly string[], bounds: readonly number[]) {
    super(owner, labelValues);
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  /** Per bucket, not cumulative. */
  get values(): readonly number[] {
    return this.#counts;
  }

  get count(): number {
    return this.#counts.reduce((total, count) => total + count, 0);
  }

  get sum(): number {
    return this.#sum;
  }

  get exemplars(): readonly (Exemplar | undefined)[] | undefined {
    return this.#exemplars;
  }

  observe(update: number | Observation): void {
    const series = this.isRemoved ? this.owner.revive(this) : this;
    if (typeof update === 'number' && update > -Infinity && update < Infinity) {
      series.#counts[this.#bucket(update)]!++;
      series.#sum += update;
    } else {
      series.#observeWithExemplar(update);
    }
  }

  startTimer(exemplarLabels?: ExemplarLabels): BoundHistogramTimer {
    return timing.startBoundTimer(
      this.owner.definition.name,
      (value, exemplar) => this.observe({ value, ...exemplar }),
      exemplarLabels,
    );
  }

  zero(): void {
    this.#counts.fill(0);
    this.#sum = 0;
    this.#exemplars = undefined;
  }

  #observeWithExemplar(update: unknown): void {
    const { value, exemplarLabels } =
      typeof update === 'object' && update !== null ? (update as Observation) : { value: update };
    const { name } = this.owner.definition;
    if (typeof value !== 'number' || !Number.isFinite(value)) {
      throw new TypeError(`histogram "${name}" can't observe ${show(value)}; give a finite number`);
    }
    const exemplar = exemplarChecks.toExemplar(exemplarLabels, value, name);
    const bucket = this.#bucket(value);
    if (exemplar !== undefined) (this.#exemplars ??= [])[bucket] = exemplar;
    this.#counts[bucket]!++;
    this.#sum += value;
  }

  /** The first bucket whose bound isn't below the value. */
  #bucket(value: number): number {
    const bounds = this.#bounds;
    let low = 0;
    let high = bounds.length;
    while (high - low > 8) {
      const middle = (low + high) >>> 1;
      if (value > bounds[middle]!) low = middle + 1;
      else high = middle;
    }
    while (low < high && value > bounds[low]!) low++;
    return low;
  }
}
