/*
 * Base of counters, gauges, histograms and summaries: checks labels, makes their series, and keeps the number of series
 * within a limit.
 */

import { show } from '../base/options-check.js';
import type { Exemplar, ExemplarUpdate } from './exemplar.js';
import type { Definition } from './names.js';

/** `text` is Prometheus text 0.0.4, `openmetrics` OpenMetrics text 1.0. */
export type Format = 'text' | 'openmetrics';

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
export type MetricUpdate<L extends string, Values extends readonly unknown[]> = [L] extends [never]
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
  readonly labelNames?: readonly L[] | undefined;
  /**
   * How many series there may be before further label values share one series, `_overflow`; default: the registry's
   * `maxSeries`.
   */
  readonly maxSeries?: number | undefined;
  /** Runs before each exposition; if it throws or returns a promise, this metric is left out. */
  readonly collect?: ((this: M) => void) | undefined;
}

/** Members that every metric has. `L`: the label names; `Bound`: the result of `labels`. */
export abstract class Metric<L extends string, Bound> {
  /** The name of the metric. */
  readonly name: string;
  /** The description of the metric, as Prometheus shows it. */
  readonly help: string;
  /**
   * Only declared, as is `unlabelled`: a definition would set the field to undefined first, and to V8 only a field that
   * is set once is a constant, which it reads when it compiles an `inc()`, and not with each call. @internal
   */
  declare readonly definition: Creation<Bound & Series>;
  /** The series of a metric without labels. @internal */
  declare private readonly unlabelled: (Bound & Series) | undefined;
  /** The live series in order of their creation, by the values of their labels. @internal */
  readonly samples: Map<string, Bound & Series> = new Map();
  /** @internal */
  private overflow: (Bound & Series) | undefined;

  /** Metrics are made by `registry.counter`, `gauge`, `histogram` and `summary`. */
  constructor(definition: never);
  /** @internal */
  constructor(definition: Creation<Bound & Series>);
  constructor(definition: Creation<Bound & Series>) {
    // prom-client's metrics are made by `new`.
    if (typeof definition?.create !== 'function')
      throw new TypeError('a metric is made by its registry, not by new; write registry.counter({ name, help })');
    this.name = definition.name;
    this.help = definition.help;
    this.definition = definition;
    this.unlabelled = definition.labelNames.length === 0 ? this.insert(definition.create(this, [])) : undefined;
  }

  /** The names of the labels, in the order of the option `labelNames`. */
  get labelNames(): readonly string[] {
    return this.definition.labelNames;
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
    return this.obtain(values);
  }

  /** Takes a series out of the exposition; an update brings it back, from zero. @throws {TypeError} as `labels` does */
  remove(labels: Labels<L>): void;
  /** The same, with only the values, in the order of `labelNames`. */
  remove(...values: readonly LabelValue[]): void;
  remove(...values: readonly unknown[]): void {
    const key = keyOf(toTexts(this.definition, values));
    const series = this.samples.get(key);
    if (series === undefined) return;
    series.isRemoved = true;
    this.samples.delete(key);
    if (series === this.overflow) this.overflow = undefined;
  }

  /** Takes every series out; a metric without labels starts again at zero. */
  reset(): void {
    for (const { labelValues } of this.samples.values()) this.remove(...labelValues);
    if (this.unlabelled !== undefined) this.revive(this.unlabelled);
  }

  /** Whether an object is an update, not labels: it has a key of an update which is not a label's name. @internal */
  protected isUpdate(object: object): object is ExemplarUpdate & { readonly labels?: object } {
    const { labelNames } = this.definition;
    return (
      ('labels' in object && !labelNames.includes('labels')) ||
      ('value' in object && !labelNames.includes('value')) ||
      ('exemplarLabels' in object && !labelNames.includes('exemplarLabels'))
    );
  }

  /** The series of a metric without labels. @throws {TypeError} when the metric has labels @internal */
  protected only(): Bound & Series {
    return this.unlabelled ?? this.obtain([]);
  }

  /** As `labels`, with an object that has all labels or with their values. @internal */
  protected obtain(given: readonly unknown[]): Bound & Series {
    const texts = toTexts(this.definition, given);
    const series = this.samples.get(keyOf(texts));
    if (series !== undefined) return series;
    for (const [index, text] of texts.entries()) {
      // A lone surrogate has no UTF-8 form: on the wire it would be U+FFFD, and two series one.
      if (!text.isWellFormed())
        throw wrong(this.definition, index, `is ${show(text)}, which is not valid Unicode; pass text.toWellFormed()`);
    }
    return this.overflowIfFull() ?? this.insert(this.definition.create(this, texts));
  }

  /** The series that counts for the labels of a removed one: itself again, unless another took its place. @internal */
  revive(series: Bound & Series): Bound & Series {
    const other = this.samples.get(keyOf(series.labelValues)) ?? this.overflowIfFull();
    if (other !== undefined) return other;
    series.zero();
    series.isRemoved = false;
    return this.insert(series);
  }

  /** @internal */
  private insert(series: Bound & Series): Bound & Series {
    this.samples.set(keyOf(series.labelValues), series);
    return series;
  }

  /** The series `_overflow` if the metric has as many series as it may have. @internal */
  private overflowIfFull(): (Bound & Series) | undefined {
    const { labelNames, maxSeries, onOverflow, create } = this.definition;
    if (this.samples.size - (this.overflow === undefined ? 0 : 1) < maxSeries) return undefined;
    onOverflow();
    if (this.overflow === undefined) {
      const values = labelNames.map(() => '_overflow');
      this.overflow = this.samples.get(keyOf(values)) ?? this.insert(create(this, values));
    }
    return this.overflow;
  }
}

/** Values of a series, by their names in OpenTelemetry's protocol. @internal */
export interface DataPoint {
  readonly asDouble?: number;
  readonly count?: number;
  readonly sum?: number | undefined;
  /** One more than `explicitBounds`; not cumulative. */
  readonly bucketCounts?: readonly number[];
  readonly explicitBounds?: readonly number[];
  readonly quantileValues?: readonly { readonly quantile: number; readonly value: number }[];
  readonly exemplars?: readonly (Exemplar | undefined)[] | undefined;
}

/**
 * Base of all kinds of series. Fields that the constructor sets are only declared: an initializer is one more
 * function to compile and to run for each series. @internal
 */
export abstract class Series {
  declare readonly labelValues: readonly string[];
  /** Whether the metric no longer has it. */
  declare isRemoved: boolean;
  declare protected readonly owner: Metric<string, unknown>;

  constructor(owner: Metric<string, unknown>, labelValues: readonly string[]) {
    this.owner = owner;
    this.labelValues = labelValues;
    this.isRemoved = false;
  }

  /** Sets everything back to zero. */
  abstract zero(): void;

  /** Its values, as a data point of OpenTelemetry's protocol has them. */
  abstract get point(): DataPoint;

  /** Its sample lines. @param name of the metric @param labels formatted: `{queue="mail"}`, or empty */
  abstract format(name: string, labels: string, format: Format): string;

  /** The series that counts: itself, or the one for the labels of a removed one. */
  protected live(): this {
    return this.isRemoved ? (this.owner.revive(this) as this) : this;
  }
}

interface Creation<S> extends Definition {
  /** Creates a series at zero. */
  readonly create: (owner: Metric<string, unknown>, labelValues: readonly string[]) => S;
}

/** The values of the labels in the order of their names. @throws {TypeError} for a wrong or missing label */
function toTexts(definition: Definition, given: readonly unknown[]): string[] {
  const { labelNames } = definition;
  const labels = given[0] as Readonly<Record<string, unknown>> | null | undefined;
  const isRecord = typeof labels === 'object' && labels !== null;
  if (isRecord) {
    for (const name in labels) if (!labelNames.includes(name)) throw mismatch(definition, `has no label "${name}"`);
  } else if (given.length !== labelNames.length) throw mismatch(definition, `got ${given.length} label values`);
  // A plain loop: a callback would be compiled for each metric, and most series are made before anything is.
  const texts = new Array<string>(labelNames.length);
  for (let index = 0; index < texts.length; index++) {
    const value = isRecord ? labels[labelNames[index]!] : given[index];
    if (typeof value !== 'string' && typeof value !== 'number') {
      const problem = value === undefined ? 'is missing' : `is ${show(value)}`;
      throw wrong(definition, index, `${problem}; give a string or a number`);
    }
    texts[index] = typeof value === 'string' ? value : String(value);
  }
  return texts;
}

function wrong({ name, labelNames }: Definition, index: number, problem: string): TypeError {
  return new TypeError(`label "${labelNames[index]}" of metric "${name}" ${problem}`);
}

function mismatch({ name, labelNames }: Definition, problem: string): TypeError {
  const wanted = labelNames.length === 0 ? 'none' : `exactly ${labelNames.map((label) => `"${label}"`).join(', ')}`;
  return new TypeError(`metric "${name}" ${problem}; give ${wanted}`);
}

/** A key that no other values have: half a surrogate pair separates them, and the value of a series never has one. */
function keyOf(labelValues: readonly string[]): string {
  return labelValues.join('\ud800');
}
