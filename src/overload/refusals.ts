/*
 * The errors of refused requests, and their number by route and reason.
 */

import { FrameworkErrorCodes, type ErrorCode } from '../base/error-codes.js';
import { ApiError, ServiceUnavailable } from '../base/errors.js';
import * as errorMapper from '../http/error-mapper.js';
import type { BoundCounter, Counter } from '../metrics/counter.js';
import type { RequestMetrics } from '../monitor/request-metrics.js';
import type { LoadShedding } from './options.js';

/** The reason for a refusal, as a label. */
export type Reason = 'queue' | 'deadline' | 'event_loop' | 'memory';

/** The service has more to do than it can; the request was not run. @internal */
export class Overloaded extends ServiceUnavailable {
  static override description: string = 'The service has more to do than it can; try again later.';
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_overloaded;
}

/** The time of a request is over: the `timeout` of its route, or the deadline that its caller sent. @internal */
export class TimedOut extends ApiError {
  static override statusCode = 504;
  static override message = 'Gateway timeout.';
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_timeout;
}

/** Nobody waits for the reply any more; the handler was not run. @internal */
export class DeadlinePassed extends TimedOut {
  static override description = 'The deadline of the request passed before it could be handled.';
}

/** Counts refusals, and makes their errors. */
export class Refusals {
  readonly #count: Counter<'route' | 'reason'>;
  /** The series of the latest refusal; most have the same. */
  #series: { readonly route: string; readonly reason: Reason; readonly bound: BoundCounter } | undefined;
  readonly #options: LoadShedding;
  // Always the same errors: under load, nobody has time for another stack or another body.
  #overloaded: Overloaded | undefined;
  #late: DeadlinePassed | undefined;

  constructor(requests: RequestMetrics, options: LoadShedding) {
    this.#options = options;
    this.#count = requests.countRefusals(options.observe);
  }

  /**
   * Counts a request that may be refused.
   *
   * @param route its path as registered; empty without a route
   * @returns the error of the refusal; undefined if refusals are only observed, so that the request has to run
   */
  refuse(route: string, reason: Reason): Error | undefined {
    if (this.#series?.route !== route || this.#series.reason !== reason)
      this.#series = { route, reason, bound: this.#count.labels({ route, reason }) };
    this.#series.bound.inc();
    const { observe, retryAfter } = this.#options;
    if (observe) return undefined;
    if (reason === 'deadline') return (this.#late ??= errorMapper.makeReady(new DeadlinePassed()));
    return (this.#overloaded ??= errorMapper.makeReady(new Overloaded(undefined, { retryAfter })));
  }
}
