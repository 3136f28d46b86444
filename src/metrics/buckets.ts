/*
 * Upper bounds of histogram buckets.
 */

import { show } from '../base/options-check.js';

/** prom-client's, for requests measured in seconds: 5 ms to 10 s. @internal */
export const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * The finite bounds out of what a histogram is registered with; a last `Infinity` is implied and left out.
 *
 * @throws {TypeError} if it is not an array of numbers
 * @throws {RangeError} when there is no bound, or the bounds don't ascend
 * @internal
 */
export function toBounds(buckets: unknown, metricName: string): readonly number[] {
  if (!Array.isArray(buckets))
    throw new TypeError(`buckets of "${metricName}" is ${show(buckets)}; pass an array of numbers`);
  if (buckets.length === 0) throw new RangeError(`buckets of "${metricName}" is empty; give at least one upper bound`);
  const bounds: number[] = [];
  let previous = -Infinity;
  for (const [index, bound] of buckets.entries()) {
    if (typeof bound !== 'number' || Number.isNaN(bound)) {
      throw new TypeError(`bucket ${index} of "${metricName}" is ${show(bound)}; give a number`);
    }
    if (bound <= previous)
      throw new RangeError(
        `bucket ${index} of "${metricName}" is ${bound}, not more than the ${previous} before it; sort the buckets`,
      );
    previous = bound;
    if (bound !== Infinity) bounds.push(bound);
  }
  return bounds;
}

/**
 * `count` bounds, `width` apart: `(0, 10, 3)` is `[0, 10, 20]`.
 *
 * @throws {RangeError} unless `width` and `count` are positive
 */
export function linearBuckets(start: number, width: number, count: number): number[] {
  if (!(width > 0) || !(count >= 1))
    throw new RangeError(`can't make ${count} buckets ${width} apart; both must be positive`);
  return Array.from({ length: count }, (_, index) => start + index * width);
}

/**
 * `count` bounds, each `factor` times the one before: `(1, 2, 3)` is `[1, 2, 4]`.
 *
 * @throws {RangeError} unless `start` and `count` are positive and `factor` is over 1
 */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  if (!(start > 0) || !(factor > 1) || !(count >= 1)) {
    throw new RangeError(
      `can't make ${count} buckets from ${start} by a factor of ${factor}; start above 0, the factor above 1`,
    );
  }
  return Array.from({ length: count }, (_, index) => start * factor ** index);
}
