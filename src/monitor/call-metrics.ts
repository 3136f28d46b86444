/*
 * Times every call of another service, each try of it by itself.
 */

import type { Histogram } from '../metrics/histogram.js';
import type { Registry } from '../metrics/registry.js';
import { methodLabel } from './request-metrics.js';

/** The metrics of the calls that one application makes. */
export class CallMetrics {
  readonly #durations: Histogram<'service' | 'method' | 'status_code'>;

  /**
   * Registers `service_request_duration_seconds`.
   *
   * @param buckets in seconds
   */
  constructor(registry: Registry, buckets: readonly number[]) {
    this.#durations = registry.histogram({
      name: 'service_request_duration_seconds',
      help: 'Time of each try of a call to another service, by service, method and status; status 0 is no answer.',
      labelNames: ['service', 'method', 'status_code'],
      buckets,
    });
  }

  /**
   * Adds one try.
   *
   * @param service its name as configured
   * @param statusCode of the answer, 0 where there was none
   */
  observe(service: string, method: string, statusCode: number, seconds: number): void {
    this.#durations.observe({ service, method: methodLabel(method), status_code: statusCode }, seconds);
  }
}
