/**
 * The series of one metric: checks their labels, makes them, and keeps their number within a limit.
 */
import { LabelTree } from './label-tree.js';
import { show } from './names.js';

/** What the map needs of a series. */
export interface Series {
  readonly labelValues: readonly string[];
  /** Whether the map has it; a removed one must `revive` before it counts on. */
  isLive: boolean;
  /** Sets everything back to zero. */
  zero(): void;
}

/** The value of every label of the series that takes what is over a metric's limit. */
export const OVERFLOW_VALUE = '_overflow';

export interface SeriesMapOptions<S extends Series> {
  /** The metric's, for messages. */
  readonly name: string;
  readonly labelNames: readonly string[];
  /** Series beyond this number share one series, which doesn't count. */
  readonly maxSeries: number;
  readonly create: (owner: SeriesMap<S>, labelValues: readonly string[]) => S;
  /** Called each time that new labels are sent to the overflow series. */
  readonly onOverflow: () => void;
}

export class SeriesMap<S extends Series> {
  /** The live series in order of their creation. */
  readonly all: Set<S> = new Set();
  readonly #options: SeriesMapOptions<S>;
  readonly #tree: LabelTree<S>;
  #only: S | undefined;
  #overflow: S | undefined;

  /** Without labels the one series there is exists from the start. */
  constructor(options: SeriesMapOptions<S>) {
    this.#options = options;
    this.#tree = new LabelTree(options.labelNames);
    if (options.labelNames.length === 0) this.#only = this.#insert(options.create(this, []));
  }

  get metricName(): string {
    return this.#options.name;
  }

  get labelNames(): readonly string[] {
    return this.#options.labelNames;
  }

  /** The series of these labels if it exists; whatever is wrong with them makes it `undefined`. */
  find(labels: object): S | undefined {
    return this.#tree.find(labels);
  }

  /** The series of a metric without labels. @throws {TypeError} when the metric has labels */
  only(): S {
    return this.#only ?? this.at([]);
  }

  /**
   * The series of these labels, made if need be.
   *
   * @throws {TypeError} for a label that is missing, unknown, neither a string nor a number, or not valid Unicode
   */
  obtain(labels: object): S {
    return this.#obtain(this.#values(labels));
  }

  /** As `obtain`, with the values alone in the order of `labelNames`. */
  at(values: readonly unknown[]): S {
    return this.#obtain(this.#texts(values));
  }

  /** The series that counts for the labels of a removed one: itself again, unless another took its place. */
  revive(series: S): S {
    const current = this.#tree.get(series.labelValues);
    if (current !== undefined) return current;
    if (this.#isFull()) return this.#overflowing();
    series.zero();
    return this.#insert(series);
  }

  /** Removes the series of these labels, if there is one. @throws {TypeError} as `obtain` does */
  delete(labels: object): void {
    this.#delete(this.#values(labels));
  }

  /** As `delete`, with the values alone in the order of `labelNames`. */
  deleteAt(values: readonly unknown[]): void {
    this.#delete(this.#texts(values));
  }

  /** Removes every series; one without labels starts again at zero. */
  clear(): void {
    for (const series of this.all) series.isLive = false;
    this.all.clear();
    this.#tree.clear();
    this.#overflow = undefined;
    if (this.#only !== undefined) this.revive(this.#only);
  }

  #values(labels: object): string[] {
    const { name: metric, labelNames } = this.#options;
    const record = labels as Readonly<Record<string, unknown>>;
    for (const name in record) {
      if (!labelNames.includes(name))
        throw new TypeError(`metric "${metric}" has no label "${name}"; give ${this.#wanted()}`);
    }
    return labelNames.map((name) => this.#text(name, record[name]));
  }

  #texts(values: readonly unknown[]): string[] {
    const { name: metric, labelNames } = this.#options;
    if (values.length !== labelNames.length) {
      throw new TypeError(`metric "${metric}" got ${values.length} label values; give ${this.#wanted()}`);
    }
    return values.map((value, index) => this.#text(labelNames[index]!, value));
  }

  #text(name: string, value: unknown): string {
    if (typeof value === 'number') return String(value);
    if (typeof value === 'string') return value;
    const problem = value === undefined ? 'is missing' : `is ${show(value)}`;
    throw new TypeError(`label "${name}" of metric "${this.#options.name}" ${problem}; give a string or a number`);
  }

  #obtain(texts: readonly string[]): S {
    const series = this.#tree.get(texts);
    if (series !== undefined) return series;
    texts.forEach((text, index) => this.#assertWellFormed(text, index));
    return this.#isFull() ? this.#overflowing() : this.#insert(this.#options.create(this, texts));
  }

  /** A lone surrogate has no UTF-8 form: on the wire it would be U+FFFD, and two series one. */
  #assertWellFormed(text: string, index: number): void {
    if (!/\p{Surrogate}/u.test(text)) return;
    const { name: metric, labelNames } = this.#options;
    throw new TypeError(
      `label "${labelNames[index]}" of metric "${metric}" is ${show(text)}, which is not valid Unicode; pass text.toWellFormed()`,
    );
  }

  #insert(series: S): S {
    this.#tree.set(series.labelValues, series);
    this.all.add(series);
    series.isLive = true;
    return series;
  }

  #delete(texts: readonly string[]): void {
    const series = this.#tree.get(texts);
    if (series === undefined) return;
    series.isLive = false;
    this.all.delete(series);
    this.#tree.delete(texts);
    if (series === this.#overflow) this.#overflow = undefined;
  }

  #isFull(): boolean {
    const { labelNames, maxSeries } = this.#options;
    return labelNames.length > 0 && this.all.size - (this.#overflow === undefined ? 0 : 1) >= maxSeries;
  }

  #overflowing(): S {
    this.#options.onOverflow();
    if (this.#overflow === undefined) {
      const values = this.#options.labelNames.map(() => OVERFLOW_VALUE);
      this.#overflow = this.#tree.get(values) ?? this.#insert(this.#options.create(this, values));
    }
    return this.#overflow;
  }

  #wanted(): string {
    const names = this.#options.labelNames;
    return names.length === 0 ? 'none' : `exactly ${names.map((name) => `"${name}"`).join(', ')}`;
  }
}
