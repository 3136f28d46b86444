/* Base of counters, gauges, histograms and summaries: labels, and the removal of series. */

import type { ExemplarUpdate } from './exemplar.js';
import type { Series, SeriesMap } from './series-map.js';

/** Numbers are written as `String` writes them, so `200` and `'200'` are one value. */
export type LabelValue = string | number;

/** A value for every label name; for a metric without labels an object without keys. */
export type Labels<L extends string> = [L] extends [never]
  ? Readonly<Record<string, never>>
  : { readonly [Name in L]: LabelValue };

/** Some of the labels; the rest follows. */
export type SomeLabels<L extends string> = [L] extends [never]
  ? Readonly<Record<string, never>>
  : { readonly [Name in L]?: LabelValue };

/** Arguments of an update: labels and `Values`, for a metric without labels only `Values`. */
export type Update<L extends string, Values extends readonly unknown[]> = [L] extends [never]
  ? Values | [labels: Labels<L>, ...Values]
  : [labels: Labels<L>, ...Values];

/** The labels of an update in prom-client's object form. */
export type UpdateLabels<L extends string> = [L] extends [never]
  ? { readonly labels?: Labels<L> }
  : { readonly labels: Labels<L> };

/** Options that every metric has. */
export interface MetricOptions<L extends string, M = unknown> {
  /** Letters, digits, `_` and `:`; unique in the registry, in the names of its samples too. */
  readonly name: string;
  /** Description of the measured quantity, as Prometheus shows it. */
  readonly help: string;
  /** Default: none. */
  readonly labelNames?: readonly L[];
  /**
   * How many series there may be before further label values share one series, `_overflow`; default: the registry's
   * `maxSeries`.
   */
  readonly maxSeries?: number;
  /** Runs before each exposition; if it throws or returns a promise, this metric is left out. */
  readonly collect?: (this: M) => void;
}

/** `L`: the label names; `Bound`: the result of `labels`. */
export abstract class Metric<L extends string, Bound> {
  /** The name of the metric. */
  readonly name: string;
  /** The description of the metric, as Prometheus shows it. */
  readonly help: string;
  /** Declared for the reason that `SeriesMap` has. @internal */
  declare protected readonly series: SeriesMap<Bound & Series>;

  /** Metrics are made by `registry.counter`, `gauge`, `histogram` and `summary`. */
  constructor(series: never);
  /** @internal */
  constructor(series: SeriesMap<Bound & Series>);
  constructor(series: SeriesMap<Bound & Series>) {
    this.name = series.definition.name;
    this.help = series.definition.help;
    this.series = series;
  }

  /** The names of the labels, in the order of the option `labelNames`. */
  get labelNames(): readonly string[] {
    return this.series.definition.labelNames;
  }

  /**
   * The series of these labels, to keep for updates without a look-up; from now on it is exposed, at zero at first.
   *
   * @throws {TypeError} for a label that is missing, unknown, or neither a string nor a number
   */
  labels(labels: Labels<L>): Bound;
  /** The same, with only the values, in the order of `labelNames`. */
  labels(...values: readonly LabelValue[]): Bound;
  labels(...values: readonly unknown[]): Bound {
    return this.series.obtain(values);
  }

  /** Takes a series out of the exposition; an update brings it back, from zero. @throws {TypeError} as `labels` does */
  remove(labels: Labels<L>): void;
  /** The same, with only the values, in the order of `labelNames`. */
  remove(...values: readonly LabelValue[]): void;
  remove(...values: readonly unknown[]): void {
    this.series.delete(values);
  }

  /** Takes every series out; a metric without labels starts again at zero. */
  reset(): void {
    this.series.clear();
  }

  /** Whether it is an update, not a set of labels: it has a key of an update that no label is named. @internal */
  protected isUpdate(object: object): object is ExemplarUpdate & { readonly labels?: object } {
    const { labelNames } = this.series.definition;
    return (
      ('labels' in object && !labelNames.includes('labels')) ||
      ('value' in object && !labelNames.includes('value')) ||
      ('exemplarLabels' in object && !labelNames.includes('exemplarLabels'))
    );
  }
}
