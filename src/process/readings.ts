/*
 * Registers metrics that are read when they are exposed, under a prefix and with labels that all of them have.
 */

import type { BoundHistogram, HistogramOptions } from '../metrics/histogram.js';
import type { MetricOptions } from '../metrics/metric.js';
import type { Registry } from '../metrics/registry.js';

export interface Readings {
  /** Reads once for each exposition, whatever number of metrics ask. */
  shared<T extends object>(read: () => T): () => T;
  /** Does something before the first exposition at which it is due. */
  onceDue(isDue: () => boolean, act: () => void): void;
  /** A gauge; while `read` returns undefined it has no sample. */
  gauge(name: string, help: string, read: () => number | undefined): void;
  /** A counter whose value is counted elsewhere; while `read` returns undefined it has no sample. */
  counter(name: string, help: string, read: () => number | undefined): void;
  /** A gauge with a sample for each value of a label; readings with the same label value are added up. */
  gaugeBy(
    label: string,
    name: string,
    help: string,
    read: () => Iterable<readonly [labelValue: string, value: number]>,
  ): void;
  /** A gauge that is always 1, and says what it has to say by its labels. */
  info(name: string, help: string, own: Readonly<Record<string, string>>): void;
  /** The parts of a histogram, one for each value of a label; all of them are exposed from the start. */
  histogramBy<V extends string>(
    label: string,
    values: readonly V[],
    definition: Omit<HistogramOptions<string>, 'labelNames'>,
  ): ReadonlyMap<V, BoundHistogram>;
}

/**
 * @param prefix put before each name
 * @param labels of every sample; a metric's own label overrides a label of the same name
 */
export function createReadings(
  registry: Registry,
  prefix: string = '',
  labels: Readonly<Record<string, string>> = {},
): Readings {
  const define = (name: string, help: string, ...own: string[]): MetricOptions<string> => ({
    name: prefix + name,
    help,
    labelNames: [...new Set([...own, ...Object.keys(labels)])],
  });
  return {
    shared<T extends object>(read: () => T) {
      let reading: T | undefined;
      registry.onExpose(() => {
        reading = undefined;
      });
      return () => (reading ??= read());
    },
    onceDue(isDue, act) {
      const stopAsking = registry.onExpose(() => {
        if (!isDue()) return;
        stopAsking();
        act();
      });
    },
    gauge(name, help, read) {
      registry.gauge({
        ...define(name, help),
        collect() {
          const value = read();
          if (value === undefined) this.remove(labels);
          else this.set(labels, value);
        },
      });
    },
    counter(name, help, read) {
      registry.counter({
        ...define(name, help),
        collect() {
          const value = read();
          this.remove(labels);
          if (value !== undefined) this.inc(labels, value);
        },
      });
    },
    gaugeBy(label, name, help, read) {
      registry.gauge({
        ...define(name, help, label),
        collect() {
          this.reset();
          for (const [labelValue, value] of read()) this.inc({ ...labels, [label]: labelValue }, value);
        },
      });
    },
    info(name, help, own) {
      registry.gauge(define(name, help, ...Object.keys(own))).set({ ...labels, ...own }, 1);
    },
    histogramBy(label, values, { name, help, ...rest }) {
      const histogram = registry.histogram({ ...define(name, help, label), ...rest });
      return new Map(values.map((value) => [value, histogram.labels({ ...labels, [label]: value })]));
    },
  };
}
