/**
 * Medians, quartiles, and a random order that a seed repeats.
 */

/** @typedef {{ q1: number, median: number, q3: number }} Quartiles */

/**
 * @param {readonly number[]} values
 * @returns {Quartiles}
 */
export function quartiles(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return { q1: quantile(sorted, 0.25), median: quantile(sorted, 0.5), q3: quantile(sorted, 0.75) };
}

/** @param {readonly number[]} values */
export function median(values) {
  return quartiles(values).median;
}

/**
 * A generator of numbers in [0, 1), the same for the same seed (mulberry32).
 *
 * @param {number} seed
 * @returns {() => number}
 */
export function createRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * A copy in random order.
 *
 * @template T
 * @param {readonly T[]} items
 * @param {() => number} random
 */
export function shuffled(items, random) {
  const copy = [...items];
  for (let last = copy.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [copy[last], copy[other]] = [copy[other], copy[last]];
  }
  return copy;
}

/** Interpolates between neighbours. */
function quantile(sorted, share) {
  const position = (sorted.length - 1) * share;
  const below = Math.floor(position);
  const above = Math.ceil(position);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - below);
}
