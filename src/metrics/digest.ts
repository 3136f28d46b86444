/*
 * Estimates quantiles of a stream of numbers in bounded memory: a t-digest. Up to 255 numbers are kept unchanged.
 *
 * Source: T. Dunning and O. Ertl, "Computing Extremely Accurate Quantiles Using t-Digests" (2019), section 2.2, "The
 * merging t-digest", with the derivative of the scale function k1.
 */

/** Maximum centroids. The error near the median is about 0.5 % of the ranks, and at the ends far less. */
const COMPRESSION = 200;
/** Number of values that wait before they are merged. */
const PENDING = 256;

/** Numbers that are near each other. */
interface Centroid {
  readonly mean: number;
  readonly count: number;
}

export class Digest {
  #centroids: readonly Centroid[] = [];
  #pending: number[] = [];
  /** Infinity without numbers. */
  min: number = Infinity;
  /** -Infinity without numbers. */
  max: number = -Infinity;

  /** Every centroid, in no order; a value that waits to be merged is a centroid of its own. */
  get centroids(): readonly Centroid[] {
    return this.#centroids.concat(this.#pending.map((mean) => ({ mean, count: 1 })));
  }

  /** Takes finite numbers. */
  add(value: number): void {
    if (value < this.min) this.min = value;
    if (value > this.max) this.max = value;
    this.#pending.push(value);
    if (this.#pending.length < PENDING) return;
    this.#centroids = merge(this.centroids.toSorted(byMean));
    this.#pending = [];
  }
}

/**
 * The values below which these shares of all numbers lie, NaN without numbers. A centroid's mean is in the middle
 * of its own numbers, and values between two such points are on the line between them.
 *
 * @param quantiles from 0 to 1, ascending
 */
export function quantilesOf(digests: readonly Digest[], quantiles: readonly number[]): number[] {
  const centroids = digests.flatMap((digest) => digest.centroids).sort(byMean);
  if (centroids.length === 0) return quantiles.map(() => NaN);
  // Each is a place in the order of all numbers, and the value there.
  const points = [{ rank: 0, value: Math.min(...digests.map(({ min }) => min)) }];
  let total = 0;
  for (const { mean, count } of centroids) {
    points.push({ rank: total + count / 2, value: mean });
    total += count;
  }
  points.push({ rank: total, value: Math.max(...digests.map(({ max }) => max)) });
  let index = 1;
  return quantiles.map((quantile) => {
    const rank = quantile * total;
    while (points[index]!.rank < rank) index++;
    const [left, right] = [points[index - 1]!, points[index]!];
    return left.value + (right.value - left.value) * ((rank - left.rank) / (right.rank - left.rank));
  });
}

function byMean(a: Centroid, b: Centroid): number {
  return a.mean - b.mean;
}

/** Neighbours become one as long as it spans no more than one unit of the scale, which is narrow at both ends. */
function merge(sorted: readonly Centroid[]): Centroid[] {
  const total = sorted.reduce((sum, { count }) => sum + count, 0);
  const merged = sorted.slice(0, 1);
  let below = 0;
  for (const next of sorted.slice(1)) {
    const last = merged.at(-1)!;
    const count = last.count + next.count;
    const quantile = (below + count / 2) / total;
    const unit = (total * 2 * Math.PI * Math.sqrt(quantile * (1 - quantile))) / COMPRESSION;
    if (count <= unit) {
      merged[merged.length - 1] = { mean: last.mean + (next.mean - last.mean) * (next.count / count), count };
    } else {
      merged.push(next);
      below += last.count;
    }
  }
  return merged;
}
