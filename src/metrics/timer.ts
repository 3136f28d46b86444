/* Measures the seconds between two calls, with labels that may be known at the start or only at the end. */

import { monotonicNow } from '../base/clock.js';
import type { ExemplarLabels } from './exemplar.js';

/** Ends the timer of a series, whose labels are known; returns the seconds that were recorded. */
export type BoundTimer = (labels?: Readonly<Record<string, never>>) => number;

/** The same as `BoundTimer`, with labels for the exemplar, which are added to the labels of the start. */
export type BoundHistogramTimer = (labels?: Readonly<Record<string, never>>, exemplarLabels?: ExemplarLabels) => number;

/** Members of an update for the exemplar, if it has labels. @internal */
type Exemplified = { readonly exemplarLabels?: ExemplarLabels };

/**
 * Starts the clock; the function it returns calls `record` with the seconds and the labels of both ends, and returns
 * the seconds. A label of the end overrides the same label of the start.
 *
 * @internal
 */
export function startTimer(
  startLabels: object | undefined,
  record: (seconds: number, labels: object, exemplar: Exemplified) => void,
  startExemplarLabels?: ExemplarLabels,
): (endLabels?: object, endExemplarLabels?: ExemplarLabels) => number {
  const start = monotonicNow();
  return (endLabels, endExemplarLabels) => {
    const seconds = (monotonicNow() - start) / 1000;
    const hasExemplar = startExemplarLabels !== undefined || endExemplarLabels !== undefined;
    const exemplar = hasExemplar ? { exemplarLabels: { ...startExemplarLabels, ...endExemplarLabels } } : {};
    record(seconds, { ...startLabels, ...endLabels }, exemplar);
    return seconds;
  };
}

/** As above for one series; labels at the end would be another series and are refused with a `TypeError`. @internal */
export function startBoundTimer(
  metricName: string,
  record: (seconds: number, exemplar: Exemplified) => void,
  startExemplarLabels?: ExemplarLabels,
): BoundHistogramTimer {
  const refuseLabels = (seconds: number, labels: object, exemplar: Exemplified): void => {
    const [name] = Object.keys(labels);
    if (name !== undefined) {
      throw new TypeError(
        `a timer of one series of "${metricName}" has all its labels and can't take "${name}"; use startTimer of the metric`,
      );
    }
    record(seconds, exemplar);
  };
  return startTimer(undefined, refuseLabels, startExemplarLabels);
}
