/*
 * Checks exemplars.
 *
 * Spec: OpenMetrics 1.0, section "Exemplars".
 */

import { Date } from '../base/clock.js';
import { show } from '../base/options-check.js';
import { assertLabelName } from './names.js';

/** Labels that lead from one observation to its trace, maximum 128 characters in all; only OpenMetrics shows them. */
export type ExemplarLabels = Readonly<Record<string, string | number>>;

/** One observation of a series, with labels that lead to more about it (a trace id). */
export interface Exemplar {
  readonly labels: ExemplarLabels;
  readonly value: number;
  readonly timestampSeconds: number;
}

/** An update in prom-client's object form. */
export interface ExemplarUpdate {
  /** The number to add or to observe. Default for a counter: 1. */
  readonly value?: number | undefined;
  /** Labels of the exemplar, such as `{ trace_id }`. Default: no exemplar. */
  readonly exemplarLabels?: ExemplarLabels | undefined;
}

/** One observation in prom-client's object form. */
export interface Observation extends ExemplarUpdate {
  /** The observed value. */
  readonly value: number;
}

/** Maximum characters of the labels of one exemplar. */
const MAX_LENGTH = 128;

/**
 * An exemplar of now.
 *
 * @throws {TypeError} for a label name or a value that is invalid
 * @throws {RangeError} when names and values have more than 128 characters together
 * @internal
 */
export function toExemplar(labels: unknown, value: number, metricName: string): Exemplar {
  if (typeof labels !== 'object' || labels === null)
    throw new TypeError(`exemplarLabels of "${metricName}" is ${show(labels)}; pass an object`);
  const copy: Readonly<Record<string, unknown>> = { ...labels };
  let length = 0;
  for (const name in copy) {
    const text = copy[name];
    assertLabelName(name, `an exemplar of "${metricName}"`);
    if (typeof text !== 'string' && typeof text !== 'number') {
      throw new TypeError(`exemplar label "${name}" of "${metricName}" is ${show(text)}; give a string or a number`);
    }
    const shown = String(text);
    // Prometheus drops a whole scrape for a NUL in an exemplar, and a lone surrogate has no UTF-8 form.
    if (shown.includes('\0') || !shown.isWellFormed()) {
      throw new TypeError(
        `exemplar label "${name}" of "${metricName}" is ${show(text)}; NUL and half characters can't be sent`,
      );
    }
    length += name.length + shown.length;
  }
  // OpenMetrics counts characters, not UTF-16 units; there are never more characters than units.
  if (length > MAX_LENGTH) length = [...Object.entries(copy).flat().join('')].length;
  if (length > MAX_LENGTH) {
    throw new RangeError(
      `the exemplar labels of "${metricName}" have ${length} characters; ${MAX_LENGTH} is the limit of OpenMetrics`,
    );
  }
  return { labels: copy as ExemplarLabels, value, timestampSeconds: Date.now() / 1000 };
}
