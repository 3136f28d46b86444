/**
 * Registers metrics that are read when they are exposed, under a prefix and with labels that all of them have.
 */
import type { BoundHistogram } from '../metrics/histogram.js';
import type { Registry } from '../metrics/registry.js';

/** Name, help, and the value out of what was read; without one there is no sample. */
export type Reading<T> = readonly [name: string, help: string, value: (reading: T) => number | undefined];

/** As above with a sample for each value of a label; a value that is there twice is added up. */
export type LabelledReading<T> = readonly [
  name: string,
  help: string,
  values: (reading: T) => Iterable<readonly [labelValue: string, value: number]>,
];

export interface ReadingsOptions {
  /** Stands in front of each name; default: nothing. */
  readonly prefix?: string;
  /** Labels of every sample; a metric's own label beats the one of that name. */
  readonly labels?: Readonly<Record<string, string>>;
}

export class Readings {
  readonly #registry: Registry;
  readonly #prefix: string;
  readonly #labels: Readonly<Record<string, string>>;

  constructor(registry: Registry, { prefix = '', labels = {} }: ReadingsOptions = {}) {
    this.#registry = registry;
    this.#prefix = prefix;
    this.#labels = labels;
  }

  /** Reads once for each exposition, whatever number of metrics ask. */
  shared<T extends object>(read: () => T): () => T {
    let reading: T | undefined;
    this.#registry.onExpose(() => {
      reading = undefined;
    });
    return () => (reading ??= read());
  }

  /** Does something before the first exposition at which it is due. */
  onceDue(isDue: () => boolean, act: () => void): void {
    const stopAsking = this.#registry.onExpose(() => {
      if (!isDue()) return;
      stopAsking();
      act();
    });
  }

  gauges<T>(read: () => T, metrics: readonly Reading<T>[]): void {
    const labels = this.#labels;
    for (const [name, help, valueOf] of metrics) {
      this.#registry.gauge({
        ...this.#options(name, help),
        collect() {
          const value = valueOf(read());
          if (value === undefined) this.remove(labels);
          else this.set(labels, value);
        },
      });
    }
  }

  /** Of what something else counts. */
  counters<T>(read: () => T, metrics: readonly Reading<T>[]): void {
    const labels = this.#labels;
    for (const [name, help, valueOf] of metrics) {
      this.#registry.counter({
        ...this.#options(name, help),
        collect() {
          const value = valueOf(read());
          this.remove(labels);
          if (value !== undefined) this.inc(labels, value);
        },
      });
    }
  }

  gaugesBy<T>(label: string, read: () => T, metrics: readonly LabelledReading<T>[]): void {
    const labels = this.#labels;
    for (const [name, help, valuesOf] of metrics) {
      this.#registry.gauge({
        ...this.#options(name, help, label),
        collect() {
          this.reset();
          for (const [labelValue, value] of valuesOf(read())) this.inc({ ...labels, [label]: labelValue }, value);
        },
      });
    }
  }

  /** A gauge that says by its labels what it has to say. */
  info(name: string, help: string, own: Readonly<Record<string, string>>): void {
    this.#registry.gauge(this.#options(name, help, ...Object.keys(own))).set({ ...this.#labels, ...own }, 1);
  }

  /** What observes for each value of a label; all of them are exposed from the start. */
  histogramBy<V extends string>(
    label: string,
    values: readonly V[],
    { name, help, ...rest }: HistogramDefinition,
  ): ReadonlyMap<V, BoundHistogram> {
    const histogram = this.#registry.histogram({ ...this.#options(name, help, label), ...rest });
    return new Map(values.map((value) => [value, histogram.labels({ ...this.#labels, [label]: value })]));
  }

  #options(
    name: string,
    help: string,
    ...own: string[]
  ): { name: string; help: string; labelNames: readonly string[] } {
    return { name: this.#prefix + name, help, labelNames: [...new Set([...own, ...Object.keys(this.#labels)])] };
  }
}

interface HistogramDefinition {
  readonly name: string;
  readonly help: string;
  readonly buckets: readonly number[];
  readonly collect?: () => void;
}
