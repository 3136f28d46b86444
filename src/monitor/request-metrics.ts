/*
 * Counts and times every request, and every call of another service, under labels that no client can invent.
 *
 * Methods follow the HTTP semantic conventions of OpenTelemetry: what is not known is `_OTHER`.
 */

import type { IncomingMessage } from 'node:http';
import type { Context } from '../answer/context.js';
import type { Observer } from '../answer/observers.js';
import { sampledTraceId } from '../propagation/trace-context.js';
import type { ObserveJob } from '../job/job.js';
import type { Exchange } from '../wire/exchange.js';
import type { BoundHistogram, Histogram } from '../metrics/histogram.js';
import type { Registry } from '../metrics/registry.js';
import { Readings } from '../process/readings.js';
import { STANDARD_METHOD } from '../wire/head.js';

/** A method's name in a label: itself, or `_OTHER` for a name that a client or a caller made up. */
function methodLabel(method: string, known?: ReadonlySet<string>): string {
  return STANDARD_METHOD.test(method) || known?.has(method) === true ? method : '_OTHER';
}

export class RequestMetrics implements Observer {
  /** Requests answered so far, refused and unparsable ones included. */
  count = 0;
  readonly #routed: ReadonlySet<string>;
  readonly #durations: Histogram<'method' | 'route' | 'status_code'>;
  /** Series that requests have had, by status, method and route: to find one by its labels takes ten functions. */
  readonly #series = new Map<string, BoundHistogram>();

  /**
   * Registers `request_count_total` and `http_request_duration_seconds`.
   *
   * @param routed a set that has the methods of all routes, now and later
   * @param buckets of the durations, in seconds
   */
  constructor(registry: Registry, routed: ReadonlySet<string>, buckets: readonly number[]) {
    this.#routed = routed;
    new Readings(registry).counter('request_count_total', 'Requests processed.', () => this.count);
    this.#durations = registry.histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the parsed request head to the written reply, by method, route and status.',
      labelNames: ['method', 'route', 'status_code'],
      buckets,
    });
  }

  settled({ req, method, handling }: Exchange<Context>, status: number, ms: number): void {
    const { headers } = req;
    const label = handling?.label ?? '';
    const value = ms / 1000;
    const series = this.#series.get(`${status} ${method} ${label}`) ?? this.#seriesOf(method, label, status);
    const isTraced = handling?.span !== undefined || headers['traceparent'] !== undefined;
    const traceId = isTraced ? sampledTraceId(handling?.span, headers) : undefined;
    this.count += 1;
    if (traceId === undefined) series.observe(value);
    // In the request's bucket, if the trace is sampled.
    else series.observe({ value, exemplarLabels: { trace_id: traceId } });
  }

  refused(req: IncomingMessage | null, _id: string | null, status: number): void {
    this.count += 1;
    this.#seriesOf(req?.method ?? '_OTHER', '', status).observe(0);
  }

  #seriesOf(method: string, route: string, statusCode: number): BoundHistogram {
    const labels = { method: methodLabel(method, this.#routed), route, status_code: statusCode };
    const series = this.#durations.labels(labels);
    // A method that has no route may get one.
    if (labels.method !== '_OTHER') this.#series.set(`${statusCode} ${method} ${route}`, series);
    return series;
  }
}

/** In seconds: a job may be one message, or a batch of the night. */
const JOB_BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 300, 1800];
/** Maximum names of jobs in labels. */
const MAX_JOBS = 100;

/** Registers `job_duration_seconds`. */
export function createJobMetrics(registry: Registry): ObserveJob {
  const durations = registry.histogram({
    name: 'job_duration_seconds',
    help: 'Time of each job, by name and outcome: done or failed.',
    labelNames: ['name', 'outcome'],
    buckets: JOB_BUCKETS,
  });
  const names = new Set<string>();
  return (name, outcome, seconds) => {
    if (names.size < MAX_JOBS) names.add(name);
    durations.observe({ name: names.has(name) ? name : '_OTHER', outcome }, seconds);
  };
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
