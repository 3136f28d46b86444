/*
 * Registers metrics that are read when they are exposed, under a prefix and with labels that all of them have.
 */

import type { BoundHistogram } from '../metrics/histogram.js';
import type { Registry } from '../metrics/registry.js';

export class Readings {
  readonly #registry: Registry;
  readonly #prefix: string;
  readonly #labels: Readonly<Record<string, string>>;

  /**
   * @param prefix stands in front of each name
   * @param labels of every sample; a metric's own label beats the one of that name
   */
  constructor(registry: Registry, prefix: string = '', labels: Readonly<Record<string, string>> = {}) {
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

  /** While there is no value there is no sample. */
  gauge(name: string, help: string, read: () => number | undefined): void {
    const labels = this.#labels;
    this.#registry.gauge({
      ...this.#options(name, help),
      collect() {
        const value = read();
        if (value === undefined) this.remove(labels);
        else this.set(labels, value);
      },
    });
  }

  /** Of what something else counts; while it does not there is no sample. */
  counter(name: string, help: string, read: () => number | undefined): void {
    const labels = this.#labels;
    this.#registry.counter({
      ...this.#options(name, help),
      collect() {
        const value = read();
        this.remove(labels);
        if (value !== undefined) this.inc(labels, value);
      },
    });
  }

  /** With a sample for each value of a label; a value that is there twice is added up. */
  gaugeBy(
    label: string,
    name: string,
    help: string,
    read: () => Iterable<readonly [labelValue: string, value: number]>,
  ): void {
    const labels = this.#labels;
    this.#registry.gauge({
      ...this.#options(name, help, label),
      collect() {
        this.reset();
        for (const [labelValue, value] of read()) this.inc({ ...labels, [label]: labelValue }, value);
      },
    });
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
