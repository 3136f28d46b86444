/**
 * Counts and times every request, under labels that no client can invent.
 *
 * Methods follow the HTTP semantic conventions of OpenTelemetry: what is not known is `_OTHER`.
 */

import type { Histogram } from '../metrics/histogram.js';
import type { Registry } from '../metrics/registry.js';

type Durations = Histogram<'method' | 'route' | 'status_code'>;
type Duration = ReturnType<Durations['labels']>;

/** RFC 9110, PATCH (RFC 5789) and QUERY (RFC 10008). */
const KNOWN_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE']);

/** The request metrics of one application. */
export class RequestMetrics {
  /** Requests answered so far, refused and unparsable ones included. */
  count = 0;
  /** For requests without a route. */
  readonly unmatched: RouteMetrics;
  readonly #durations: Durations;

  constructor(registry: Registry) {
    const requests = this;
    registry.counter({
      name: 'request_count_total',
      help: 'Requests processed.',
      collect() {
        this.reset();
        this.inc(requests.count);
      },
    });
    this.#durations = registry.histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the parsed request head to the written reply, by method, route and status.',
      labelNames: ['method', 'route', 'status_code'],
    });
    this.unmatched = new RouteMetrics(this, this.#durations, '', []);
  }

  /** For one route, `methods` being those it was registered with. */
  forRoute(path: string, method: string): RouteMetrics {
    return new RouteMetrics(this, this.#durations, path, [method]);
  }

  /** Counts a request that could not be parsed. */
  unparsed(statusCode: number): void {
    this.unmatched.observe('_OTHER', statusCode, 0);
  }
}

/** The request metrics of one route. */
export class RouteMetrics {
  readonly #requests: RequestMetrics;
  readonly #durations: Durations;
  readonly #route: string;
  readonly #methods: readonly string[];
  // Most requests of a route share method and status with the one before.
  #lastMethod = '';
  #lastStatus = 0;
  #last: Duration | undefined;

  constructor(requests: RequestMetrics, durations: Durations, route: string, methods: readonly string[]) {
    this.#requests = requests;
    this.#durations = durations;
    this.#route = route;
    this.#methods = methods;
  }

  /** Adds one answered request. */
  observe(method: string, statusCode: number, seconds: number): void {
    this.#requests.count += 1;
    if (this.#last === undefined || statusCode !== this.#lastStatus || method !== this.#lastMethod) {
      const known = KNOWN_METHODS.has(method) || this.#methods.includes(method);
      this.#last = this.#durations.labels({ method: known ? method : '_OTHER', route: this.#route, status_code: statusCode });
      this.#lastMethod = method;
      this.#lastStatus = statusCode;
    }
    this.#last.observe(seconds);
  }
}
