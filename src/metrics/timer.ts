/**
 * Measures the seconds between two calls, with labels that may be known at the start or only at the end.
 */
import type { ExemplarLabels } from './exemplar.js';

/** Ends the timer of a series, whose labels are known; returns the seconds that were recorded. */
export type BoundTimer = (labels?: Readonly<Record<string, never>>) => number;

/** As `BoundTimer`, with labels for the exemplar, which are added to those of the start. */
export type BoundHistogramTimer = (labels?: Readonly<Record<string, never>>, exemplarLabels?: ExemplarLabels) => number;

/**
 * Starts the clock; the function it gives calls `record` with the seconds and the labels of both ends, and returns
 * the seconds. Of a label that both ends give, the end's counts.
 */
export function startTimer(
  startLabels: unknown,
  record: (seconds: number, labels: object, exemplarLabels: ExemplarLabels | undefined) => void,
  startExemplarLabels?: ExemplarLabels,
): (endLabels?: object, endExemplarLabels?: ExemplarLabels) => number {
  const start = performance.now();
  return (endLabels, endExemplarLabels) => {
    const seconds = (performance.now() - start) / 1000;
    const exemplarLabels = { ...startExemplarLabels, ...endExemplarLabels };
    const hasExemplar = startExemplarLabels !== undefined || endExemplarLabels !== undefined;
    record(seconds, { ...(startLabels as object | undefined), ...endLabels }, hasExemplar ? exemplarLabels : undefined);
    return seconds;
  };
}

/** As above for one series; labels at the end would be another series and are refused with a `TypeError`. */
export function startBoundTimer(
  metricName: string,
  record: (seconds: number, exemplarLabels: ExemplarLabels | undefined) => void,
  startExemplarLabels?: ExemplarLabels,
): BoundHistogramTimer {
  return startTimer(
    undefined,
    (seconds, labels, exemplarLabels) => {
      const [name] = Object.keys(labels);
      if (name !== undefined) {
        throw new TypeError(
          `a timer of one series of "${metricName}" has all its labels and can't take "${name}"; use startTimer of the metric`,
        );
      }
      record(seconds, exemplarLabels);
    },
    startExemplarLabels,
  );
}
