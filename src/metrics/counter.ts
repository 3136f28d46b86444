/* Counters: values that only grow, until the process starts again. */

import { show } from '../base/options-check.js';
import { type Exemplar, type ExemplarUpdate, toExemplar } from './exemplar.js';
import { formatRest } from './exposition.js';
import { Metric, Series } from './metric.js';
import type { DataPoint, Format, MetricOptions, MetricUpdate, UpdateLabels } from './metric.js';
import { familyName, type MetricKind } from './names.js';

/** @internal */
export const COUNTER: MetricKind = {
  type: 'counter',
  options: [],
  suffixes: ['', '_total', '_created'],
  data: 'sum',
};

/** Options of a counter. */
export interface CounterOptions<L extends string = never> extends MetricOptions<L, Counter<L>> {}

/**
 * Arguments of `inc`: `(labels, value?)`, without labels `(value?)`, or prom-client's object. Default of the value: 1.
 */
export type CounterUpdate<L extends string> =
  MetricUpdate<L, [value?: number]> | [update: ExemplarUpdate & UpdateLabels<L>];

/** One series of a counter. */
export interface BoundCounter {
  /** The sum so far. */
  readonly value: number;
  /**
   * Adds 1, or what is given.
   *
   * @throws {TypeError} unless it is a finite number
   * @throws {RangeError} when it is negative
   */
  inc(value?: number): void;
  /** Adds 1, or `value`, and remembers it as the exemplar if it has labels. */
  inc(update: ExemplarUpdate): void;
}

/**
 * A metric that only grows: requests, bytes, failures. `registry.counter` creates it.
 *
 * @example
 * const jobs = app.metrics.counter({ name: 'jobs_total', help: 'Jobs done.', labelNames: ['queue'] });
 * jobs.inc({ queue: 'mail' });
 */
export class Counter<L extends string = never> extends Metric<L, BoundCounter> {
  /**
   * Adds 1, or what is given.
   *
   * @throws {TypeError} for wrong or missing labels and for a value that is not a finite number
   * @throws {RangeError} when the value is negative
   */
  inc(...update: CounterUpdate<L>): void;
  inc(first?: unknown, value?: number): void {
    if (typeof first !== 'object' || first === null) this.only().inc(first as number | undefined);
    else if (this.isUpdate(first)) {
      const { labels = {}, ...rest } = first;
      this.obtain([labels]).inc(rest);
    } else this.obtain([first]).inc(value);
  }
}

/** @internal */
export class CounterSeries extends Series implements BoundCounter {
  value = 0;
  exemplar: Exemplar | undefined;

  inc(update: number | ExemplarUpdate = 1): void {
    const series = this.live();
    if (typeof update === 'number' && update >= 0 && update < Infinity) series.value += update;
    else series.#incWithExemplar(update);
  }

  zero(): void {
    this.value = 0;
    this.exemplar = undefined;
  }

  get point(): DataPoint {
    return { asDouble: this.value, exemplars: [this.exemplar] };
  }

  format(name: string, labels: string, format: Format): string {
    if (format === 'text') return name + labels + formatRest(this.value);
    return `${familyName(this.owner.definition)}_total${labels}${formatRest(this.value, this.exemplar)}`;
  }

  #incWithExemplar(update: unknown): void {
    const { value = 1, exemplarLabels } =
      typeof update === 'object' && update !== null ? (update as ExemplarUpdate) : { value: update as number };
    const { name } = this.owner.definition;
    if (typeof value !== 'number' || !Number.isFinite(value)) {
      throw new TypeError(`counter "${name}" can't be increased by ${show(value)}; give a finite number`);
    }
    if (value < 0)
      throw new RangeError(`counter "${name}" can't be increased by ${value}; use a gauge for what goes down`);
    if (exemplarLabels !== undefined) this.exemplar = toExemplar(exemplarLabels, value, name);
    this.value += value;
  }
}
