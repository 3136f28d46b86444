/*
 * Tells what became of requests: metrics, the access log, the log of failures, and whoever traces.
 */

import type { IncomingMessage } from 'node:http';
import { Context } from '../http/context.js';
import type { HttpError } from '../errors.js';
import type { MappedError } from '../http/error-mapper.js';
import type { Logger } from '../log.js';
import { sampledTraceId } from '../mesh/trace-context.js';
import type { RequestMetrics } from '../monitor/request-metrics.js';
import { logAccess } from './access-log.js';
import type { PipelineExchange } from './exchange.js';
import { logFailure } from './failure-log.js';

/** What is told of the requests of one application. */
export class Observer {
  readonly #logger: Logger;
  readonly #metrics: RequestMetrics;
  readonly #logsAccess: boolean;

  constructor(logger: Logger, metrics: RequestMetrics, logsAccess: boolean) {
    this.#logger = logger;
    this.#metrics = metrics;
    this.#logsAccess = logsAccess;
  }

  /** A request failed, and is answered with a status. */
  failed({ req, ctx, id, trace }: PipelineExchange, thrown: unknown, error: MappedError, status: number): void {
    trace?.fail(thrown, error.errorCode);
    logFailure(this.#loggerOf(ctx), error, thrown, status, req, id);
  }

  /** The outcome of a request is known. */
  settled(exchange: PipelineExchange, status: number): void {
    const { req, ctx, route, startedAt, metrics, trace } = exchange;
    const seconds = (performance.now() - startedAt) / 1000;
    const traceId = req.headers['traceparent'] === undefined ? undefined : sampledTraceId(req.rawHeaders);
    metrics.observe(req.method as string, status, seconds, traceId);
    if (this.#logsAccess) {
      const { id, bytes } = exchange;
      logAccess(this.#loggerOf(ctx), { req, route: route?.path ?? null, id, status, seconds, bytes: bytes() });
    }
    trace?.finish(status);
  }

  /** @param req null for something that could not be parsed */
  refused(req: IncomingMessage | null, id: string | null, error: HttpError, bytes: number): void {
    const status = error.statusCode;
    this.#metrics.unmatched.observe(req?.method ?? '_OTHER', status, 0);
    logFailure(this.#logger, error, error, status, req, id);
    if (this.#logsAccess) logAccess(this.#logger, { req, route: null, id, status, seconds: 0, bytes });
  }

  #loggerOf(ctx: Context | null): Logger {
    return ctx === null ? this.#logger : Context.loggerOf(ctx);
  }
}
