/* The series of one metric: checks their labels, makes them, and keeps their number within a limit. */

import { show } from '../base/options-check.js';
import type { Definition } from './names.js';

/**
 * Base of all kinds of series. Fields that the constructor sets are only declared: an initializer is one more
 * function to compile and to run for each series.
 */
export abstract class Series {
  declare readonly labelValues: readonly string[];
  /** Whether the map no longer has it. */
  declare isRemoved: boolean;
  declare protected readonly owner: SeriesMap<Series>;

  constructor(owner: SeriesMap<Series>, labelValues: readonly string[]) {
    this.owner = owner;
    this.labelValues = labelValues;
    this.isRemoved = false;
  }

  /** Sets everything back to zero. */
  abstract zero(): void;

  /** The series that counts: itself, or the one for the labels of a removed one. */
  protected live(): this {
    return this.isRemoved ? (this.owner.revive(this) as this) : this;
  }
}

/**
 * A tree with one level for each label: no two sets of values can ever meet in one key, and a look-up hashes nothing
 * that V8 hasn't hashed before.
 */
type Tree<S> = S | Map<string, Tree<S>> | undefined;

export class SeriesMap<S extends Series> {
  // Declared, because a field that its declaration sets before the constructor does is not a constant to V8; it reads
  // these once when it compiles an `inc()` of one metric.
  declare readonly definition: Definition;
  /** The series of a metric without labels. */
  declare readonly unlabelled: S | undefined;
  /** The live series in order of their creation. */
  readonly all: Set<S> = new Set();
  readonly #create: (labelValues: readonly string[]) => S;
  #tree: Tree<S>;
  #overflow: S | undefined;

  /** Without labels the one series there is exists from the start. */
  constructor(definition: Definition, create: (owner: SeriesMap<Series>, labelValues: readonly string[]) => S) {
    this.definition = definition;
    this.#create = (labelValues) => create(this, labelValues);
    this.unlabelled = definition.labelNames.length === 0 ? this.#insert(this.#create([])) : undefined;
  }

  /** The series of a metric without labels. @throws {TypeError} when the metric has labels */
  only(): S {
    return this.unlabelled ?? this.obtain([]);
  }

  /**
   * The series of these labels, made if need be.
   *
   * @param given an object with all labels, or their values in the order of `labelNames`
   * @throws {TypeError} for a label that is missing, unknown, neither a string nor a number, or not valid Unicode
   */
  obtain(given: readonly unknown[]): S {
    const texts = this.#texts(given);
    const series = this.#find(texts);
    if (series !== undefined) return series;
    for (const [index, text] of texts.entries()) {
      // A lone surrogate has no UTF-8 form: on the wire it would be U+FFFD, and two series one.
      if (!text.isWellFormed())
        throw this.#wrong(index, `is ${show(text)}, which is not valid Unicode; pass text.toWellFormed()`);
    }
    return this.#isFull() ? this.#overflowing() : this.#insert(this.#create(texts));
  }

  /** The series that counts for the labels of a removed one: itself again, unless another took its place. */
  revive(series: S): S {
    const current = this.#find(series.labelValues);
    if (current !== undefined) return current;
    if (this.#isFull()) return this.#overflowing();
    series.zero();
    series.isRemoved = false;
    return this.#insert(series);
  }

  /** Removes the series of these labels, if there is one. @throws {TypeError} as `obtain` does */
  delete(given: readonly unknown[]): void {
    const texts = this.#texts(given);
    const series = this.#find(texts);
    if (series === undefined) return;
    series.isRemoved = true;
    this.all.delete(series);
    this.#tree = put(this.#tree, texts, undefined);
    if (series === this.#overflow) this.#overflow = undefined;
  }

  /** Removes every series; one without labels starts again at zero. */
  clear(): void {
    for (const { labelValues } of this.all) this.delete(labelValues);
    if (this.unlabelled !== undefined) this.revive(this.unlabelled);
  }

  /** The values of the labels in the order of their names. */
  #texts(given: readonly unknown[]): string[] {
    const { labelNames } = this.definition;
    const labels = given[0] as Readonly<Record<string, unknown>> | null | undefined;
    const isRecord = typeof labels === 'object' && labels !== null;
    if (isRecord) {
      for (const name in labels) if (!labelNames.includes(name)) throw this.#mismatch(`has no label "${name}"`);
    } else if (given.length !== labelNames.length) throw this.#mismatch(`got ${given.length} label values`);
    // A plain loop: a callback would be compiled for each metric, and most series are made before anything is.
    const texts = new Array<string>(labelNames.length);
    for (let index = 0; index < texts.length; index++) {
      const value = isRecord ? labels[labelNames[index]!] : given[index];
      if (typeof value !== 'string' && typeof value !== 'number') {
        const problem = value === undefined ? 'is missing' : `is ${show(value)}`;
        throw this.#wrong(index, `${problem}; give a string or a number`);
      }
      texts[index] = typeof value === 'string' ? value : String(value);
    }
    return texts;
  }

  #wrong(index: number, problem: string): TypeError {
    const { name, labelNames } = this.definition;
    return new TypeError(`label "${labelNames[index]}" of metric "${name}" ${problem}`);
  }

  #mismatch(problem: string): TypeError {
    const { name, labelNames } = this.definition;
    const wanted = labelNames.length === 0 ? 'none' : `exactly ${labelNames.map((label) => `"${label}"`).join(', ')}`;
    return new TypeError(`metric "${name}" ${problem}; give ${wanted}`);
  }

  #find(labelValues: readonly string[]): S | undefined {
    let tree = this.#tree;
    for (let depth = 0; depth < labelValues.length && tree !== undefined; depth++)
      tree = (tree as Map<string, Tree<S>>).get(labelValues[depth]!);
    return tree as S | undefined;
  }

  #insert(series: S): S {
    this.#tree = put(this.#tree, series.labelValues, series);
    this.all.add(series);
    return series;
  }

  #isFull(): boolean {
    return this.all.size - (this.#overflow === undefined ? 0 : 1) >= this.definition.maxSeries;
  }

  #overflowing(): S {
    this.definition.onOverflow();
    if (this.#overflow === undefined) {
      const values = this.definition.labelNames.map(() => '_overflow');
      this.#overflow = this.#find(values) ?? this.#insert(this.#create(values));
    }
    return this.#overflow;
  }
}

/** Returns a tree with another series for these values; undefined removes it, with every level that only it used. */
function put<S>(tree: Tree<S>, values: readonly string[], series: S | undefined, depth = 0): Tree<S> {
  const value = values[depth];
  if (value === undefined) return series;
  const level = (tree ?? new Map()) as Map<string, Tree<S>>;
  const below = put(level.get(value), values, series, depth + 1);
  if (below === undefined) level.delete(value);
  else level.set(value, below);
  return level.size > 0 ? level : undefined;
}
