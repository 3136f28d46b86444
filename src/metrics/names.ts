/*
 * Checks the names of metrics and labels, and that no two metrics of a registry have a name in common in either format.
 *
 * Spec: Prometheus "Data model", section "Metric names and labels"; OpenMetrics 1.0, sections "Label" and
 * "MetricFamily".
 */

import { show } from '../base/options-check.js';

/** Labels that are some kind's own. */
const OWN_LABELS = ['le', 'quantile'] as const;

/** A kind of metric. */
export interface MetricKind {
  /** Its type in an exposition. */
  readonly type: string;
  /** Options in addition to the options of every metric. */
  readonly options: readonly string[];
  /** The label of which each line of a series has another value. */
  readonly ownLabel?: (typeof OWN_LABELS)[number];
  /**
   * Ends of the family and sample names that a metric takes in either format, those that OpenMetrics only reserves
   * included.
   *
   * // counter "jobs_total" → jobs_total, jobs, jobs_created
   */
  readonly suffixes: readonly string[];
  /** Its data in OpenTelemetry's protocol. */
  readonly data: 'gauge' | 'sum' | 'histogram' | 'summary';
}

/** Options of every metric, checked. */
export interface Definition {
  readonly kind: MetricKind;
  /** Name as registered: a counter's with or without `_total`. */
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  /** Series beyond this number share one series, which doesn't count. */
  readonly maxSeries: number;
  /** Called each time that new labels are sent to the overflow series. */
  readonly onOverflow: () => void;
  /** The bounds of a histogram's buckets, without +Inf. */
  readonly upperBounds?: readonly number[];
}

/** The name of a metric's family in OpenMetrics: a counter's is without `_total`. */
export function familyName({ kind, name }: Pick<Definition, 'kind' | 'name'>): string {
  return (kind.type === 'counter' && /^(.+)_total$/.exec(name)?.[1]) || name;
}

/** @throws {TypeError} when `name` is not a Prometheus metric name */
export function assertMetricName(name: unknown): asserts name is string {
  if (typeof name !== 'string' || !/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) {
    throw new TypeError(`invalid metric name ${show(name)}; use letters, digits, "_" and ":", and no digit in front`);
  }
}

/** @throws {TypeError} for a name that is invalid, reserved for `kind`, or there twice */
export function assertLabelNames(labelNames: unknown, kind: MetricKind, metricName: string): void {
  if (!Array.isArray(labelNames))
    throw new TypeError(`labelNames of "${metricName}" is ${show(labelNames)}; pass an array of names`);
  for (const [index, labelName] of labelNames.entries()) {
    assertLabelName(labelName, `metric "${metricName}"`);
    if (labelName === kind.ownLabel)
      throw new TypeError(`label name "${labelName}" of "${metricName}" is the ${kind.type}'s own; rename it`);
    if (labelNames.indexOf(labelName) < index)
      throw new TypeError(`label name "${labelName}" of "${metricName}" is there twice; remove one`);
  }
}

/** @throws {TypeError} when `labelName` is not a label name, or is reserved by Prometheus (`__…`) */
export function assertLabelName(labelName: unknown, owner: string): asserts labelName is string {
  if (typeof labelName !== 'string' || !/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(labelName)) {
    throw new TypeError(
      `invalid label name ${show(labelName)} of ${owner}; use letters, digits and "_", and no digit in front`,
    );
  }
  if (labelName.startsWith('__'))
    throw new TypeError(`label name "${labelName}" of ${owner} is Prometheus's own; don't begin it with "__"`);
}

/**
 * Labels that metrics get in addition to their own.
 *
 * @throws {TypeError} for a name or a value that no label may have, and for names that histograms or summaries need
 */
export function toDefaultLabels(labels: unknown): ReadonlyMap<string, string> {
  if (typeof labels !== 'object' || labels === null)
    throw new TypeError(`default labels are ${show(labels)}; pass an object`);
  const checked = new Map<string, string>();
  for (const [name, value] of Object.entries(labels)) {
    assertLabelName(name, 'default labels');
    if (OWN_LABELS.some((ownLabel) => ownLabel === name))
      throw new TypeError(`default label "${name}" is a histogram's or a summary's own; rename it`);
    if ((typeof value !== 'string' && typeof value !== 'number') || /\p{Surrogate}/u.test(String(value)))
      throw new TypeError(`default label "${name}" is ${show(value)}; give a string of valid Unicode, or a number`);
    checked.set(name, String(value));
  }
  return checked;
}

/** The names that the metrics of a registry take in an exposition. */
export class ClaimedNames {
  /** Every family and sample name in use → the metric that has it. */
  readonly #owners: Map<string, string> = new Map();

  /** @throws {TypeError} when another metric has one of the names */
  claim(definition: Definition): void {
    const { kind, name } = definition;
    const base = familyName(definition);
    const names = [name, ...kind.suffixes.map((suffix) => base + suffix)];
    for (const taken of names) {
      const owner = this.#owners.get(taken);
      if (owner === name)
        throw new TypeError(`metric "${name}" is registered already; registry.get("${name}") returns it`);
      if (owner !== undefined)
        throw new TypeError(
          `${kind.type} "${name}" clashes with metric "${owner}": both have "${taken}" in an exposition; rename one`,
        );
    }
    for (const taken of names) this.#owners.set(taken, name);
  }

  free(name: string): void {
    for (const [taken, owner] of this.#owners) if (owner === name) this.#owners.delete(taken);
  }
}
