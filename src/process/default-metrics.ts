/*
 * The metrics of the process and of Node.js in a registry without an application.
 */

import { assertMetricName, toDefaultLabels } from '../metrics/names.js';
import type { Registry } from '../metrics/registry.js';
import { assertOptions, OBJECT, STRING } from '../base/options-check.js';
import { createReadings } from './readings.js';
import { createSampler } from './sampler.js';

/** What `collectDefaultMetrics` takes. */
export interface DefaultMetricsOptions {
  /** Stands in front of each name; default: nothing. */
  readonly prefix?: string;
  /** Labels of every sample; a metric's own label beats the one of that name. */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * Collects prom-client's default metrics of the process and of Node.js into a registry that isn't an application's,
 * until it is cleared. What watches the event loop and the garbage collector keeps no process alive.
 *
 * @throws {TypeError} for an invalid option, and when the registry has them already
 */
export function collectDefaultMetrics(registry: Registry, options: DefaultMetricsOptions = {}): void {
  assertOptions('collectDefaultMetrics()', options, { prefix: STRING, labels: OBJECT });
  const { prefix = '', labels = {} } = options;
  assertMetricName(`${prefix}process_cpu_seconds_total`);
  const readings = createReadings(registry, prefix, Object.fromEntries(toDefaultLabels(labels)));
  createSampler(registry, readings, false).start().catch((error: Error) => process.emitWarning(error));
}
