/*
 * Takes over what `node:http` hands out: requests, CONNECT, and bytes that it could not parse.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { HttpError } from '../base/errors.js';
import { connectionOf } from '../http/connection.js';
import { errorToOutgoing } from '../http/error-mapper.js';
import { createHeadCheck, requestId } from '../http/request.js';
import type { RequestListener } from '../http/server.js';
import type { ConnectionLimits } from '../http/waiting-requests.js';
import { sendRaw } from '../http/writer.js';
import type { RouteMetrics } from '../monitor/request-metrics.js';
import { countBytes } from './access-log.js';
import { PipelineExchange, type Runner } from './exchange.js';
import type { Observer } from './observer.js';
import type { Outbox } from './outbox.js';

/** What clients are held to. */
export interface ArrivalLimits extends ConnectionLimits {
  readonly maxHeadersCount: number;
  readonly accessLog: boolean;
}

/** Gives each request to its connection, which has it run by the pipeline. The listener's functions never throw. */
export function createArrivals(
  runner: Runner,
  outbox: Outbox,
  observer: Observer,
  unmatched: RouteMetrics,
  errorTypes: string | null,
  limits: ArrivalLimits,
): RequestListener {
  const assertRequestHead = createHeadCheck(limits.maxHeadersCount);
  // As few calls as possible lead to the handler: each is a frame in the stack of every error that the handler makes.
  const arrive = (
    req: IncomingMessage,
    res: ServerResponse,
    awaitsContinue: boolean,
    refusal: unknown,
  ): PipelineExchange => {
    const connection = connectionOf(req.socket, limits);
    const exchange = new PipelineExchange(req, res, awaitsContinue, connection, runner, unmatched, refusal);
    if (limits.accessLog) exchange.bytes = countBytes(req, res);
    runner.begin();
    return exchange;
  };

  /** @param req null for one that could not be parsed */
  const refuseRaw = (req: IncomingMessage | null, socket: Duplex, error: HttpError): void => {
    const id = req === null ? null : requestId(req);
    const outgoing = errorToOutgoing(error, id, req?.headers.accept, errorTypes);
    observer.refused(req, id, error, outgoing.length);
    sendRaw(socket, outgoing);
  };

  return {
    handle(req, res, awaitsContinue = false) {
      let isLast: boolean;
      let refusal: unknown = null;
      try {
        isLast = assertRequestHead(req);
      } catch (thrown) {
        // A proxy in front may have read another length or another host in this head. What it takes for the body of
        // this request may be the next request for us, so nothing behind it is answered.
        isLast = true;
        refusal = thrown;
      }
      const exchange = arrive(req, res, awaitsContinue, refusal);
      if (exchange.connection.accept(exchange, isLast)) runner.run(exchange);
      else outbox.flushBehind();
    },
    refuse(req, res, error) {
      const exchange = arrive(req, res, false, error);
      if (exchange.connection.accept(exchange, true)) runner.run(exchange);
      else outbox.flushBehind();
    },
    refuseConnect: (req, socket, error) => connectionOf(socket, limits).refuse(() => refuseRaw(req, socket, error)),
    handleParserError: (error, socket) =>
      connectionOf(socket, limits).breakOff(error, (failure) => refuseRaw(null, socket, failure)),
  };
}
