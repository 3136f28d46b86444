/*
 * Package entry `postern/metrics`: the metrics library without the framework.
 */

export { Counter } from '../metrics/counter.js';
export type { BoundCounter, CounterOptions, CounterUpdate } from '../metrics/counter.js';
export type { ExemplarLabels, ExemplarUpdate } from '../metrics/exemplar.js';
export type { Format } from '../metrics/exposition.js';
export { Gauge } from '../metrics/gauge.js';
export type { BoundGauge, GaugeLabels, GaugeOptions, GaugeStep, GaugeValue } from '../metrics/gauge.js';
export { exponentialBuckets, Histogram, linearBuckets } from '../metrics/histogram.js';
export type {
  BoundHistogram,
  HistogramOptions,
  HistogramTimer,
  HistogramUpdate,
  Observation,
} from '../metrics/histogram.js';
export type { Labels, LabelValue, MetricOptions, SomeLabels } from '../metrics/metric.js';
export { Registry } from '../metrics/registry.js';
export type { AnyMetric, RegistryOptions } from '../metrics/registry.js';
export { Summary } from '../metrics/summary.js';
export type { BoundSummary, SummaryOptions, SummaryUpdate } from '../metrics/summary.js';
export type { BoundHistogramTimer, BoundTimer } from '../metrics/timer.js';
export { collectDefaultMetrics } from '../process/sampler.js';
export type { DefaultMetricsOptions } from '../process/sampler.js';
