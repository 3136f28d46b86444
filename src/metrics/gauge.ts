/* Gauges: values that go up and down. */

import { Date } from '../base/clock.js';
import { show } from '../base/options-check.js';
import { formatRest } from './exposition.js';
import { Metric, Series } from './metric.js';
import type { DataPoint, Labels, MetricOptions, MetricUpdate, SomeLabels } from './metric.js';
import type { MetricKind } from './names.js';
import { type BoundTimer, startBoundTimer, startTimer } from './timer.js';

/** @internal */
export const GAUGE: MetricKind = { type: 'gauge', options: [], suffixes: [], data: 'gauge' };

/** Options of a gauge. */
export interface GaugeOptions<L extends string = never> extends MetricOptions<L, Gauge<L>> {}

/** Arguments of `set`: `(labels, value)`, without labels `(value)`. */
export type GaugeValue<L extends string> = MetricUpdate<L, [value: number]>;

/** Arguments of `inc` and `dec`: `(labels, by?)`, without labels `(by?)`. Default of `by`: 1. */
export type GaugeStep<L extends string> = MetricUpdate<L, [by?: number]>;

/** Arguments of a method for one series that needs no number: its labels, or nothing for a metric without labels. */
export type GaugeLabels<L extends string> = [L] extends [never] ? [labels?: Labels<L>] : [labels: Labels<L>];

/** One series of a gauge; a number may be NaN or infinite, any other type throws a `TypeError`. */
export interface BoundGauge {
  /** The value now. */
  readonly value: number;
  /** Sets the value. */
  set(value: number): void;
  /** Adds 1, or what is given. */
  inc(by?: number): void;
  /** Takes away 1, or what is given. */
  dec(by?: number): void;
  /** Sets the seconds since the Unix epoch. */
  setToCurrentTime(): void;
  /** Starts a clock; the function it returns sets the seconds since then, and returns them. */
  startTimer(): BoundTimer;
}

/** Every method throws a `TypeError` for wrong or missing labels and for a value that is not a number. */
export class Gauge<L extends string = never> extends Metric<L, BoundGauge> {
  /**
   * Sets the value.
   *
   * @example
   * const size = app.metrics.gauge({ name: 'queue_size', help: 'Waiting jobs.' });
   * size.set(7);
   */
  set(...update: GaugeValue<L>): void;
  set(first: unknown, value?: number): void {
    if (typeof first === 'object' && first !== null) this.obtain([first]).set(value as number);
    else this.only().set(first as number);
  }

  /** Adds a number. Default: 1. */
  inc(...update: GaugeStep<L>): void;
  inc(first?: unknown, by?: number): void {
    if (typeof first === 'object' && first !== null) this.obtain([first]).inc(by);
    else this.only().inc(first as number | undefined);
  }

  /** Subtracts a number. Default: 1. */
  dec(...update: GaugeStep<L>): void;
  dec(first?: unknown, by?: number): void {
    if (typeof first === 'object' && first !== null) this.obtain([first]).dec(by);
    else this.only().dec(first as number | undefined);
  }

  /** Sets the seconds since the Unix epoch. */
  setToCurrentTime(...labels: GaugeLabels<L>): void;
  setToCurrentTime(labels: object = {}): void {
    this.obtain([labels]).setToCurrentTime();
  }

  /** Starts a clock. The function returned sets and returns the seconds since then. Both calls take labels. */
  startTimer(labels?: SomeLabels<L>): (labels?: SomeLabels<L>) => number {
    return startTimer(labels, ({ value }, all) => this.obtain([all]).set(value));
  }
}

/** @internal */
export class GaugeSeries extends Series implements BoundGauge {
  value = 0;

  set(value: number): void {
    this.#liveFor(value).value = value;
  }

  inc(by = 1): void {
    this.#liveFor(by).value += by;
  }

  dec(by = 1): void {
    this.#liveFor(by).value -= by;
  }

  setToCurrentTime(): void {
    this.live().value = Date.now() / 1000;
  }

  startTimer(): BoundTimer {
    return startBoundTimer(this.owner.definition.name, ({ value }) => this.set(value));
  }

  zero(): void {
    this.value = 0;
  }

  get point(): DataPoint {
    return { asDouble: this.value };
  }

  format(name: string, labels: string): string {
    return name + labels + formatRest(this.value);
  }

  /** The series that counts. @throws {TypeError} unless the value is a number */
  #liveFor(value: unknown): this {
    if (typeof value === 'number') return this.live();
    throw new TypeError(`gauge "${this.owner.definition.name}" got ${show(value)}; give a number`);
  }
}
