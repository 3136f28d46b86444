/* Summaries: quantiles of all observations or of the recent ones, with sum and count. */

import { monotonicNow } from '../base/clock.js';
import { show } from '../base/options-check.js';
import { Digest, quantilesOf } from './digest.js';
import { formatOwnLabels, formatRest, openLabels } from './exposition.js';
import { Metric, Series } from './metric.js';
import type { DataPoint, Format, MetricOptions, MetricUpdate, SomeLabels } from './metric.js';
import type { MetricKind } from './names.js';
import { startBoundTimer, startTimer, type BoundTimer } from './timer.js';

/** @internal */
export const SUMMARY: MetricKind = {
  type: 'summary',
  options: ['percentiles', 'maxAgeSeconds', 'ageBuckets'],
  ownLabel: 'quantile',
  suffixes: ['_sum', '_count', '_created'],
  data: 'summary',
};

/** Options of a summary. */
export interface SummaryOptions<L extends string = never> extends MetricOptions<L, Summary<L>> {
  /** Quantiles from 0 to 1; default: 0.01, 0.05, 0.5, 0.9, 0.95, 0.99 and 0.999. */
  readonly percentiles?: readonly number[] | undefined;
  /** How long an observation counts for the quantiles, in seconds; default: for ever. Sum and count keep it. */
  readonly maxAgeSeconds?: number | undefined;
  /** In how many parts of `maxAgeSeconds` observations are forgotten, one part at a time; default 5. */
  readonly ageBuckets?: number | undefined;
}

/** Arguments of `observe`: `(labels, value)`, without labels `(value)`. */
export type SummaryUpdate<L extends string> = MetricUpdate<L, [value: number]>;

/** One series of a summary. */
export interface BoundSummary {
  /** How much was observed, all in all. */
  readonly sum: number;
  /** How often something was observed. */
  readonly count: number;
  /** Counts a value. @throws {TypeError} unless it is a finite number */
  observe(value: number): void;
  /** Starts a clock; the function it returns observes the seconds since then, and returns them. */
  startTimer(): BoundTimer;
}

/** A metric with quantiles that the process computes. Quantiles of several processes cannot be added up. */
export class Summary<L extends string = never> extends Metric<L, BoundSummary> {
  /** Counts a value. @throws {TypeError} for wrong or missing labels and for a value that is not a finite number */
  observe(...update: SummaryUpdate<L>): void;
  observe(first: unknown, value?: number): void {
    if (typeof first === 'object' && first !== null) this.obtain([first]).observe(value as number);
    else this.only().observe(first as number);
  }

  /** Starts a clock. The function returned observes and returns the seconds since then. Both calls take labels. */
  startTimer(labels?: SomeLabels<L>): (labels?: SomeLabels<L>) => number {
    return startTimer(labels, ({ value }, all) => this.obtain([all]).observe(value));
  }
}

/** How quantiles are kept. @internal */
interface QuantileWindow {
  /** Ascending. */
  readonly quantiles: readonly number[];
  /** Label of each quantile, formatted. */
  readonly quantileLabels: readonly string[];
  /** Length of one part of the window, in ms; Infinity if observations never expire. */
  readonly partMs: number;
  readonly parts: number;
}

/** @internal */
export class SummarySeries extends Series implements BoundSummary {
  readonly #window: QuantileWindow;
  /** The digest of each part of the window that has one, with the number of the part since the clock began. */
  #parts: { readonly digest: Digest; readonly number: number }[] = [];
  sum = 0;
  count = 0;

  constructor(owner: Metric<string, unknown>, labelValues: readonly string[], window: QuantileWindow) {
    super(owner, labelValues);
    this.#window = window;
  }

  observe(value: number): void {
    if (typeof value !== 'number' || !Number.isFinite(value)) {
      throw new TypeError(`summary "${this.owner.definition.name}" can't observe ${show(value)}; give a finite number`);
    }
    const series = this.live();
    series.#digest().add(value);
    series.sum += value;
    series.count += 1;
  }

  startTimer(): BoundTimer {
    return startBoundTimer(this.owner.definition.name, ({ value }) => this.observe(value));
  }

  zero(): void {
    this.#parts = [];
    this.sum = 0;
    this.count = 0;
  }

  get point(): DataPoint {
    const values = this.#quantiles().map((value, index) => ({ quantile: this.#window.quantiles[index]!, value }));
    // The protocol allows no value below 0. NaN: there were no observations lately.
    return { count: this.count, sum: this.sum, quantileValues: values.filter(({ value }) => value >= 0) };
  }

  format(name: string, labels: string, format: Format): string {
    // OpenMetrics allows neither a negative quantile nor a negative sum.
    const isAllowed = (value: number): boolean => format === 'text' || !(value < 0);
    const start = openLabels(name, labels);
    let lines = '';
    for (const [index, value] of this.#quantiles().entries())
      if (isAllowed(value)) lines += start + this.#window.quantileLabels[index]! + formatRest(value);
    if (isAllowed(this.sum)) lines += `${name}_sum${labels}${formatRest(this.sum)}`;
    return `${lines}${name}_count${labels}${formatRest(this.count)}`;
  }

  /** The value of each quantile; NaN without recent observations. */
  #quantiles(): number[] {
    const { quantiles, parts } = this.#window;
    const oldest = this.#partNumber() - parts;
    const live = this.#parts.flatMap(({ digest, number }) => (number > oldest ? [digest] : []));
    return quantilesOf(live, quantiles);
  }

  /** The digest of this moment; it replaces a digest that is one window old. */
  #digest(): Digest {
    const number = this.#partNumber();
    const index = number % this.#window.parts;
    let part = this.#parts[index];
    if (part?.number !== number) this.#parts[index] = part = { digest: new Digest(), number };
    return part.digest;
  }

  #partNumber(): number {
    return Math.floor(monotonicNow() / this.#window.partMs);
  }
}

/**
 * Checks the options of a summary, and makes its window.
 *
 * @internal
 * @throws {TypeError} for a value that is not a number, and for `ageBuckets` without `maxAgeSeconds`
 * @throws {RangeError} for a number that is out of range
 */
export function toQuantileWindow(
  { percentiles = DEFAULT_QUANTILES, maxAgeSeconds, ageBuckets }: Omit<SummaryOptions, keyof MetricOptions<never>>,
  metricName: string,
): QuantileWindow {
  const assertNumber = (what: string, value: unknown, isInRange: boolean, wanted: string): void => {
    if (typeof value !== 'number') throw new TypeError(`${what} of "${metricName}" is ${show(value)}; give a number`);
    if (!isInRange) throw new RangeError(`${what} of "${metricName}" is ${value}; give ${wanted}`);
  };
  if (!Array.isArray(percentiles))
    throw new TypeError(`percentiles of "${metricName}" is ${show(percentiles)}; pass an array of numbers`);
  for (const quantile of percentiles)
    assertNumber('a percentile', quantile, quantile >= 0 && quantile <= 1, 'shares from 0 to 1');
  const quantiles = [...new Set(percentiles as number[])].sort((a, b) => a - b);
  const quantileLabels = formatOwnLabels(SUMMARY, quantiles);
  if (maxAgeSeconds === undefined) {
    if (ageBuckets === undefined) return { quantiles, quantileLabels, partMs: Infinity, parts: 1 };
    throw new TypeError(`ageBuckets of "${metricName}" are parts of maxAgeSeconds; give that as well`);
  }
  const isAge = maxAgeSeconds > 0 && maxAgeSeconds < Infinity;
  assertNumber('maxAgeSeconds', maxAgeSeconds, isAge, 'a positive number of seconds');
  const parts = ageBuckets ?? DEFAULT_PARTS;
  const isCount = Number.isInteger(parts) && parts >= 1 && parts <= MAX_PARTS;
  assertNumber('ageBuckets', parts, isCount, `a whole number from 1 to ${MAX_PARTS}`);
  return { quantiles, quantileLabels, partMs: (maxAgeSeconds * 1000) / parts, parts };
}

const DEFAULT_QUANTILES: readonly number[] = [0.01, 0.05, 0.5, 0.9, 0.95, 0.99, 0.999];
const DEFAULT_PARTS = 5;
/** Each part has a digest. */
const MAX_PARTS = 1000;
