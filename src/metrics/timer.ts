/* Measures the seconds between two calls, with labels that may be known at the start or only at the end. */

import { monotonicNow } from '../base/clock.js';
import type { ExemplarLabels, Observation } from './exemplar.js';

/** Ends the timer of a series, whose labels are known; returns the seconds that were recorded. */
export type BoundTimer = (labels?: Readonly<Record<string, never>>) => number;

/** The same as `BoundTimer`, with labels for the exemplar, which are added to the labels of the start. */
export type BoundHistogramTimer = (labels?: Readonly<Record<string, never>>, exemplarLabels?: ExemplarLabels) => number;

/**
 * Starts the clock; the function it returns calls `record` with the seconds and the labels of both ends, and returns
 * the seconds. A label of the end overrides the same label of the start.
 *
 * @internal
 */
export function startTimer(
  startLabels: object | undefined,
  record: (observation: Observation, labels: object) => void,
  startExemplarLabels?: ExemplarLabels,
): (endLabels?: object, endExemplarLabels?: ExemplarLabels) => number {
  const start = monotonicNow();
  return (endLabels, endExemplarLabels) => {
    const value = (monotonicNow() - start) / 1000;
    const hasExemplar = startExemplarLabels !== undefined || endExemplarLabels !== undefined;
    const exemplar = hasExemplar ? { exemplarLabels: { ...startExemplarLabels, ...endExemplarLabels } } : {};
    record({ value, ...exemplar }, { ...startLabels, ...endLabels });
    return value;
  };
}

/** As above for one series; labels at the end would be another series and are refused with a `TypeError`. @internal */
export function startBoundTimer(
  metricName: string,
  record: (observation: Observation) => void,
  startExemplarLabels?: ExemplarLabels,
): BoundHistogramTimer {
  const refuseLabels = (observation: Observation, labels: object): void => {
    const [name] = Object.keys(labels);
    if (name === undefined) return record(observation);
    throw new TypeError(
      `a timer of one series of "${metricName}" has all its labels and can't take "${name}"; use startTimer of the metric`,
    );
  };
  return startTimer(undefined, refuseLabels, startExemplarLabels);
}
