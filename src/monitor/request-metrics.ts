/*
 * Counts and times every request, and every call of another service, under labels that no client can invent.
 *
 * Methods follow the HTTP semantic conventions of OpenTelemetry: what is not known is `_OTHER`.
 */

import type { Histogram } from '../metrics/histogram.js';
import type { Registry } from '../metrics/registry.js';
import { STANDARD_METHOD } from '../http/request.js';

/** A method's name in a label: itself, or `_OTHER` for a name that a client or a caller made up. */
function methodLabel(method: string, known?: ReadonlySet<string>): string {
  return STANDARD_METHOD.test(method) || known?.has(method) === true ? method : '_OTHER';
}

export class RequestMetrics {
  /** Requests answered so far, refused and unparsable ones included. */
  count = 0;
  readonly #routed: ReadonlySet<string>;
  readonly #durations: Histogram<'method' | 'route' | 'status_code'>;

  /**
   * Registers `request_count_total` and `http_request_duration_seconds`.
   *
   * @param routed a set that has the methods of all routes, now and later
   * @param buckets of the durations, in seconds
   */
  constructor(registry: Registry, routed: ReadonlySet<string>, buckets: readonly number[]) {
    this.#routed = routed;
    const collect = (): void => {
      total.reset();
      total.inc(this.count);
    };
    const total = registry.counter({ name: 'request_count_total', help: 'Requests processed.', collect });
    this.#durations = registry.histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the parsed request head to the written reply, by method, route and status.',
      labelNames: ['method', 'route', 'status_code'],
      buckets,
    });
  }

  /**
   * Adds one answered request.
   *
   * @param route the path as registered; empty if no route matched
   * @param traceId of a sampled trace: it becomes the exemplar `trace_id` of the request's bucket
   */
  observe(method: string, route: string, statusCode: number, seconds: number, traceId?: string): void {
    this.count += 1;
    const labels = { method: methodLabel(method, this.#routed), route, status_code: statusCode };
    if (traceId === undefined) this.#durations.observe(labels, seconds);
    else this.#durations.observe({ labels, value: seconds, exemplarLabels: { trace_id: traceId } });
  }
}

/** Adds one attempt of a call. @param statusCode of the answer, 0 where there was none */
export type ObserveCall = (service: string, method: string, statusCode: number, seconds: number) => void;

/** Registers `service_request_duration_seconds`. @param buckets in seconds */
export function createCallMetrics(registry: Registry, buckets: readonly number[]): ObserveCall {
  const durations = registry.histogram({
    name: 'service_request_duration_seconds',
    help: 'Time of each attempt of a call to another service, by service, method and status; status 0: no answer.',
    labelNames: ['service', 'method', 'status_code'],
    buckets,
  });
  return (service, method, statusCode, seconds) =>
    durations.observe({ service, method: methodLabel(method), status_code: statusCode }, seconds);
}
