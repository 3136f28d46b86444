/*
 * Takes over what `node:http` hands out: requests, and what is none.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { HttpError } from '../errors.js';
import { connectionOf } from '../http/connection.js';
import { errorToOutgoing, type ParserError } from '../http/error-mapper.js';
import { assertRequestHead, requestId } from '../http/request.js';
import type { RequestListener } from '../http/server.js';
import type { ConnectionLimits } from '../http/waiting-requests.js';
import { sendRaw } from '../http/writer.js';
import type { RouteMetrics } from '../monitor/request-metrics.js';
import { countBytes } from './access-log.js';
import { PipelineExchange, type Runner } from './exchange.js';
import type { Observer } from './observer.js';

/** What clients are held to. */
export interface ArrivalLimits extends ConnectionLimits {
  readonly maxHeadersCount: number;
  readonly accessLog: boolean;
}

/** Gives each request to its connection, which has it run by the pipeline; nothing here throws. */
export class Arrivals implements RequestListener {
  readonly #runner: Runner;
  readonly #observer: Observer;
  readonly #unmatched: RouteMetrics;
  readonly #errorTypes: string | null;
  readonly #limits: ArrivalLimits;

  constructor(
    runner: Runner,
    observer: Observer,
    unmatched: RouteMetrics,
    errorTypes: string | null,
    limits: ArrivalLimits,
  ) {
    this.#runner = runner;
    this.#observer = observer;
    this.#unmatched = unmatched;
    this.#errorTypes = errorTypes;
    this.#limits = limits;
  }

  handle(req: IncomingMessage, res: ServerResponse, awaitsContinue: boolean): void {
    let isLast: boolean;
    let refusal: unknown = null;
    try {
      isLast = assertRequestHead(req, this.#limits.maxHeadersCount);
    } catch (thrown) {
      // A proxy in front may have read another length or another host here: nothing behind it can be trusted.
      isLast = true;
      refusal = thrown;
    }
    this.#accept(req, res, awaitsContinue, isLast, refusal);
  }

  refuse(req: IncomingMessage, res: ServerResponse, error: HttpError): void {
    this.#accept(req, res, false, true, error);
  }

  refuseConnect(req: IncomingMessage, socket: Duplex, error: HttpError): void {
    connectionOf(socket, this.#limits).refuse(() => this.#refuseRaw(req, socket, error));
  }

  handleParserError(error: ParserError, socket: Duplex): void {
    connectionOf(socket, this.#limits).breakOff(error, (failure) => this.#refuseRaw(null, socket, failure));
  }

  #accept(req: IncomingMessage, res: ServerResponse, awaitsContinue: boolean, isLast: boolean, refusal: unknown): void {
    const connection = connectionOf(req.socket, this.#limits);
    const exchange = new PipelineExchange(req, res, awaitsContinue, connection, this.#runner, this.#unmatched, refusal);
    if (this.#limits.accessLog) exchange.bytes = countBytes(req, res);
    this.#runner.begin();
    connection.accept(exchange, isLast);
  }

  /** @param req null for one that could not be parsed */
  #refuseRaw(req: IncomingMessage | null, socket: Duplex, error: HttpError): void {
    const id = req === null ? null : requestId(req);
    const outgoing = errorToOutgoing(error, id, req?.headers.accept, this.#errorTypes);
    this.#observer.refused(req, id, error, outgoing.length);
    sendRaw(socket, outgoing);
  }
}
