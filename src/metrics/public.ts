/* The names of the metrics library that users import: as values from `postern/metrics`, as types from `postern`. */

export { Counter, type BoundCounter, type CounterOptions, type CounterUpdate } from './counter.js';
export type { ExemplarLabels, ExemplarUpdate, Observation } from './exemplar.js';
export { Gauge } from './gauge.js';
export type { BoundGauge, GaugeLabels, GaugeOptions, GaugeStep, GaugeValue } from './gauge.js';
export { Histogram } from './histogram.js';
export type { BoundHistogram, HistogramOptions, HistogramTimer, HistogramUpdate } from './histogram.js';
export type {
  Format,
  Labels,
  LabelValue,
  Metric,
  MetricOptions,
  MetricUpdate,
  SomeLabels,
  UpdateLabels,
} from './metric.js';
export { Registry, type AnyMetric, type RegistryOptions } from './registry.js';
export { Summary, type BoundSummary, type SummaryOptions, type SummaryUpdate } from './summary.js';
export type { BoundHistogramTimer, BoundTimer } from './timer.js';
