/// <reference types="node" preserve="true" />
/* Package entry `postern/metrics`: the metrics library without the framework. */

export * from './metrics/public.js';
export { exponentialBuckets, linearBuckets } from './metrics/histogram.js';
export { collectDefaultMetrics, type DefaultMetricsOptions } from './process/sampler.js';
