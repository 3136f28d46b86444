/**
 * Counts and times every request, under labels that no client can invent.
 *
 * Methods follow the HTTP semantic conventions of OpenTelemetry: what is not known is `_OTHER`.
 */

import type { Histogram } from '../metrics/histogram.js';
import type { Registry } from '../metrics/registry.js';

/** How long requests took. */
export type Durations = Histogram<'method' | 'route' | 'status_code'>;
type Duration = ReturnType<Durations['labels']>;

/** RFC 9110, PATCH (RFC 5789) and QUERY (RFC 10008). */
const STANDARD_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE']);

/** The request metrics of one application. */
export class RequestMetrics {
  /** Requests answered so far, refused and unparsable ones included. */
  count = 0;
  /** For requests without a route. */
  readonly unmatched: RouteMetrics;
  readonly #routed: ReadonlySet<string>;
  readonly #durations: () => Durations;

  /**
   * @param routed methods that any route has
   * @param durations not asked for before the first request
   */
  constructor(routed: ReadonlySet<string>, durations: () => Durations) {
    this.#routed = routed;
    this.#durations = durations;
    this.unmatched = this.forRoute('');
  }

  /** For one route. */
  forRoute(path: string): RouteMetrics {
    return new RouteMetrics(this, path);
  }

  /** The series of a route that a request belongs to. */
  series(method: string, route: string, statusCode: number): Duration {
    const known = STANDARD_METHODS.has(method) || this.#routed.has(method);
    return this.#durations().labels({ method: known ? method : '_OTHER', route, status_code: statusCode });
  }
}

/** The request metrics of one route. */
export class RouteMetrics {
  readonly #requests: RequestMetrics;
  readonly #route: string;
  // Most requests of a route share method and status with the one before.
  #lastMethod = '';
  #lastStatus = 0;
  #last: Duration | undefined;

  constructor(requests: RequestMetrics, route: string) {
    this.#requests = requests;
    this.#route = route;
  }

  /** Adds one answered request. */
  observe(method: string, statusCode: number, seconds: number): void {
    this.#requests.count += 1;
    if (this.#last === undefined || statusCode !== this.#lastStatus || method !== this.#lastMethod) {
      this.#last = this.#requests.series(method, this.#route, statusCode);
      this.#lastMethod = method;
      this.#lastStatus = statusCode;
    }
    this.#last.observe(seconds);
  }
}

/** Registers the request metrics; gives the one that is not read off the requests. */
export function registerRequestMetrics(registry: Registry, requests: RequestMetrics): Durations {
  registry.counter({
    name: 'request_count_total',
    help: 'Requests processed.',
    collect() {
      this.reset();
      this.inc(requests.count);
    },
  });
  return registry.histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the parsed request head to the written reply, by method, route and status.',
    labelNames: ['method', 'route', 'status_code'],
  });
}
