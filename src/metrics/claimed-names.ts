/*
 * Which names the metrics of a registry take in an exposition, so that no two of them ever take the same.
 */

import type { MetricKind } from './format.js';
import { takenNames } from './names.js';

export class ClaimedNames {
  /** Every family and sample name in use → the metric that has it. */
  readonly #owners: Map<string, string> = new Map();

  /** @throws {TypeError} when another metric has one of the names */
  claim(kind: MetricKind, name: string): void {
    const names = takenNames(kind, name);
    for (const taken of names) {
      const owner = this.#owners.get(taken);
      if (owner === name)
        throw new TypeError(`metric "${name}" is registered already; registry.get("${name}") gives it`);
      if (owner !== undefined)
        throw new TypeError(
          `${kind} "${name}" clashes with metric "${owner}": both have "${taken}" in an exposition; rename one`,
        );
    }
    for (const taken of names) this.#owners.set(taken, name);
  }

  free(kind: MetricKind, name: string): void {
    for (const taken of takenNames(kind, name)) this.#owners.delete(taken);
  }
}
