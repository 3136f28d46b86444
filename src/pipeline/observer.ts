/*
 * Reports the outcomes of requests to metrics, the access log, the log of failures, and subscribers of traces.
 */

import type { IncomingMessage } from 'node:http';
import { monotonicNow } from '../base/clock.js';
import { Context } from '../http/context.js';
import type { HttpError } from '../base/errors.js';
import type { MappedError } from '../http/error-mapper.js';
import type { Logger } from '../base/log.js';
import * as traceContext from '../propagation/trace-context.js';
import type { RequestMetrics } from '../monitor/request-metrics.js';
import { logAccess } from './access-log.js';
import type { PipelineExchange } from './exchange.js';
import { logFailure } from './failure-log.js';

/** nginx's status for a client that left; never sent, only counted. */
export const CLIENT_CLOSED_REQUEST = 499;

/** Reports the outcomes of the requests of one application. */
export interface Observer {
  /** A request failed, and is answered with a status. */
  failed(exchange: PipelineExchange, thrown: unknown, error: MappedError, status: number): void;
  /** The outcome of a request is known. */
  settled(exchange: PipelineExchange, status: number): void;
  /** @param req null for something that could not be parsed @param error null if it was not answered */
  refused(req: IncomingMessage | null, id: string | null, error: HttpError | null, bytes: number): void;
}

export function createObserver(logger: Logger, requests: RequestMetrics, logsAccess: boolean): Observer {
  const loggerOf = (ctx: Context | null): Logger => (ctx === null ? logger : Context.loggerOf(ctx));
  return {
    failed({ req, ctx, id, trace }, thrown, error, status) {
      trace?.fail(thrown, error.errorCode);
      logFailure(loggerOf(ctx), error, thrown, status, req, id);
    },

    settled(exchange, status) {
      const { req, ctx, startedAt, metrics, trace } = exchange;
      const seconds = (monotonicNow() - startedAt) / 1000;
      const { span } = ctx?.span ?? {};
      const isInTrace = span !== undefined || req.headers['traceparent'] !== undefined;
      const traceId = isInTrace ? traceContext.sampledTraceId(span, req.rawHeaders) : undefined;
      metrics.observe(req.method as string, status, seconds, traceId);
      if (logsAccess) {
        const { id, bytes } = exchange;
        logAccess(loggerOf(ctx), { req, route: metrics.route || null, id, status, seconds, bytes: bytes() });
      }
      trace?.finish(status);
    },

    refused(req, id, error, bytes) {
      const status = error?.statusCode ?? CLIENT_CLOSED_REQUEST;
      requests.unmatched.observe(req?.method ?? '_OTHER', status, 0);
      if (error !== null) logFailure(logger, error, error, status, req, id);
      if (logsAccess) logAccess(logger, { req, route: null, id, status, seconds: 0, bytes });
    },
  };
}
