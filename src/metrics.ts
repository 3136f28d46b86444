/* Package entry `postern/metrics`: the metrics library without the framework. */

export { Counter, type BoundCounter, type CounterOptions, type CounterUpdate } from './metrics/counter.js';
export type { ExemplarLabels, ExemplarUpdate, Observation } from './metrics/exemplar.js';
export { Gauge } from './metrics/gauge.js';
export type { BoundGauge, GaugeLabels, GaugeOptions, GaugeStep, GaugeValue } from './metrics/gauge.js';
export { exponentialBuckets, Histogram, linearBuckets } from './metrics/histogram.js';
export type { BoundHistogram, HistogramOptions, HistogramTimer, HistogramUpdate } from './metrics/histogram.js';
export type {
  Format,
  Labels,
  LabelValue,
  Metric,
  MetricOptions,
  MetricUpdate,
  SomeLabels,
  UpdateLabels,
} from './metrics/metric.js';
export { Registry, type AnyMetric, type RegistryOptions } from './metrics/registry.js';
export { Summary, type BoundSummary, type SummaryOptions, type SummaryUpdate } from './metrics/summary.js';
export type { BoundHistogramTimer, BoundTimer } from './metrics/timer.js';
export { collectDefaultMetrics, type DefaultMetricsOptions } from './process/sampler.js';
