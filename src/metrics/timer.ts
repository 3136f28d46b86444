/**
 * Measures the seconds between two calls, with labels that may be known at the start or only at the end.
 */

/** Starts the clock; the function it gives calls `record` with the seconds and the labels of both ends, and returns the seconds. */
export function startTimer(startLabels: unknown, record: (seconds: number, labels: object) => void): (endLabels?: object) => number {
  const start = performance.now();
  return (endLabels) => {
    const seconds = (performance.now() - start) / 1000;
    record(seconds, { ...(startLabels as object | undefined), ...endLabels });
    return seconds;
  };
}
