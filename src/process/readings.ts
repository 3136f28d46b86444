/* Registers metrics that are read when they are exposed, under a prefix and with labels that all of them have. */

import type { BoundHistogram, HistogramOptions } from '../metrics/histogram.js';
import type { MetricOptions } from '../metrics/metric.js';
import type { Registry } from '../metrics/registry.js';

type LabelledValue = readonly [labels: Readonly<Record<string, string>>, value: number];

export class Readings {
  /**
   * @param prefix put before each name
   * @param labels of every sample; a metric's own label overrides a label of the same name
   */
  constructor(
    readonly registry: Registry,
    readonly prefix: string = '',
    readonly labels: Readonly<Record<string, string>> = {},
  ) {}

  /** Returns a reader for several metrics, which reads once for each exposition. */
  shared<T>(read: () => T): () => T {
    let reading: T | undefined;
    this.registry.onExpose(() => {
      reading = undefined;
    });
    return () => (reading ??= read());
  }

  /** A gauge; while `read` returns undefined it has no sample. */
  gauge(name: string, help: string, read: () => number | undefined): void {
    const collect = (): void => {
      const value = read();
      if (value === undefined) gauge.remove(this.labels);
      else gauge.set(this.labels, value);
    };
    const gauge = this.registry.gauge({ ...this.#define(name, help), collect });
  }

  /** A counter whose value is counted elsewhere. */
  counter(name: string, help: string, read: () => number): void {
    const collect = (): void => {
      counter.remove(this.labels);
      counter.inc(this.labels, read());
    };
    const counter = this.registry.counter({ ...this.#define(name, help), collect });
  }

  /** A gauge with labels of its own; readings with the same labels are added up. */
  gaugeBy(labelNames: readonly string[], name: string, help: string, read: () => readonly LabelledValue[]): void {
    const collect = (): void => {
      gauge.reset();
      for (const [labels, value] of read()) gauge.inc({ ...this.labels, ...labels }, value);
    };
    const gauge = this.registry.gauge({ ...this.#define(name, help, ...labelNames), collect });
  }

  /** The parts of a histogram, one for each value of a label; all of them are exposed from the start. */
  histogramBy<V extends string>(
    label: string,
    values: readonly V[],
    { name, help, ...rest }: Omit<HistogramOptions<string>, 'labelNames'>,
  ): ReadonlyMap<V, BoundHistogram> {
    const histogram = this.registry.histogram({ ...this.#define(name, help, label), ...rest });
    return new Map(values.map((value) => [value, histogram.labels({ ...this.labels, [label]: value })]));
  }

  #define(name: string, help: string, ...own: string[]): MetricOptions<string> {
    return { name: this.prefix + name, help, labelNames: [...new Set([...own, ...Object.keys(this.labels)])] };
  }
}
