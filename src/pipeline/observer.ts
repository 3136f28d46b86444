/*
 * A request on its way through the pipeline, and the reports of its outcome: to metrics, the access log, the log of
 * failures, and subscribers of traces.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BagMember } from '../base/bag.js';
import { monotonicNow } from '../base/clock.js';
import type { Connection } from '../http/connection.js';
import { Context, type ServingOptions } from '../http/context.js';
import { HttpError } from '../base/errors.js';
import type { MappedError } from '../http/error-mapper.js';
import { CLIENT_CLOSED_REQUEST, Exchange, type ConnectionSteps } from '../http/exchange.js';
import type { Outgoing } from '../http/reply.js';
import type { RequestTrace } from '../http/request-tracing.js';
import type { ReplyOutcome } from '../http/writer.js';
import { isSilent, logSafely, type Logger } from '../base/log.js';
import { sampledTraceId } from '../propagation/trace-context.js';
import type { RequestMetrics } from '../monitor/request-metrics.js';
import { DeadlinePassed, Overloaded } from '../overload/overload.js';

/** The steps of every request; none of them throws. */
export interface Steps extends ConnectionSteps<PipelineExchange> {
  fail(exchange: PipelineExchange, thrown: unknown, unsent?: Outgoing['headers']): void;
  settle(exchange: PipelineExchange, statusCode: number, outcome: ReplyOutcome): void;
}

/** One request under way, with what the pipeline notes of it. */
export class PipelineExchange extends Exchange {
  ctx: Context | null = null;
  /** Its value of the label `route`; empty as long as no route is found. */
  label = '';
  trace: RequestTrace | null = null;
  /** Returns how many bytes of its reply's body were written; null without an access log. */
  bytes: (() => number) | null = null;
  /** How often writing a reply has failed. */
  failedWrites = 0;
  /** Its member in the pipeline's bag of requests that run without a client; null as long as it is not in that bag. */
  leftMember: BagMember<PipelineExchange> | null = null;

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    awaitsContinue: boolean,
    readonly connection: Connection,
    readonly steps: Steps,
    /** The error that it is answered with instead of being run; null to run it. */
    readonly refusal: unknown,
  ) {
    super(req, res, awaitsContinue);
  }
}

/** Reports the outcomes of the requests of one pipeline. */
export class Observer {
  readonly #options: ServingOptions;
  readonly #requests: RequestMetrics;

  constructor(options: ServingOptions, requests: RequestMetrics) {
    this.#options = options;
    this.#requests = requests;
  }

  /** A request failed, and is answered with a status. */
  failed({ req, ctx, id, trace }: PipelineExchange, thrown: unknown, error: MappedError, status: number): void {
    if (status >= 400) trace?.fail(thrown, error.errorCode);
    logFailure(this.#loggerOf(ctx), error, thrown, status, req, id);
  }

  /** The outcome of a request is known. */
  settled(exchange: PipelineExchange, status: number): void {
    const { req, ctx, startedAtMs, label, trace } = exchange;
    const seconds = (monotonicNow() - startedAtMs) / 1000;
    const span = ctx?.span;
    const isInTrace = span !== undefined || req.headers['traceparent'] !== undefined;
    const traceId = isInTrace ? sampledTraceId(span, req.headers) : undefined;
    this.#requests.observe(req.method as string, label, status, seconds, traceId);
    if (exchange.bytes !== null) {
      const known = { route: label || null, status, bytes: exchange.bytes(), request_id: exchange.id };
      logAccess(this.#loggerOf(ctx), req, seconds, known);
    }
    trace?.finish(status);
  }

  /** @param req null for something that could not be parsed @param error null if it was not answered */
  refused(req: IncomingMessage | null, id: string | null, error: HttpError | null, bytes: number): void {
    const status = error?.statusCode ?? CLIENT_CLOSED_REQUEST;
    this.#requests.observe(req?.method ?? '_OTHER', '', status, 0);
    const { logger, accessLog } = this.#options;
    if (error !== null) logFailure(logger, error, error, status, req, id);
    if (accessLog) logAccess(logger, req, 0, { route: null, status, bytes, request_id: id });
  }

  #loggerOf(ctx: Context | null): Logger {
    return ctx === null ? this.#options.logger : Context.loggerOf(ctx);
  }
}

/** Never throws. @param req null for one that could not be parsed; else `id` is its own */
function logFailure(
  logger: Logger,
  error: MappedError,
  thrown: unknown,
  statusCode: number,
  req: IncomingMessage | null,
  id: string | null,
): void {
  const level = levelOf(error, statusCode);
  if (isSilent(logger, level)) return;
  const request = req === null ? {} : { request_id: id, method: req.method, target: targetOf(req) };
  logSafely(
    logger,
    level,
    { err: thrown, status_code: statusCode, ...request },
    level === 'error' ? 'request failed' : 'request refused',
  );
}

/** The request-target for a log: as sent, without its query, which may hold a token. */
function targetOf(req: IncomingMessage): string {
  // A mount, or middleware for Express, may have changed `url`.
  const sent = 'originalUrl' in req && typeof req.originalUrl === 'string' ? req.originalUrl : (req.url ?? '');
  const mark = sent.indexOf('?');
  return mark === -1 ? sent : sent.slice(0, mark);
}

/**
 * An unknown method or version (501, 505) is the client's mistake: if it were logged as an error, any client could fill
 * the log. A refused request is counted, and the log has the begin of the overload; more lines would add to the load.
 */
function levelOf(error: MappedError, statusCode: number): 'debug' | 'error' {
  if (statusCode < 500 || error instanceof Overloaded || error instanceof DeadlinePassed) return 'debug';
  return error instanceof HttpError && (statusCode === 501 || statusCode === 505) ? 'debug' : 'error';
}

/** Fields of one request's line. If the request could not be parsed, unknown fields are null. */
export interface AccessEntry {
  readonly method: string | null;
  /** As registered; null where no route matched. */
  readonly route: string | null;
  /** As sent, without its query. */
  readonly target: string | null;
  /** 499 for a client that left. */
  readonly status: number;
  readonly ms: number;
  /** Bytes of the body, before chunked coding. */
  readonly bytes: number;
  readonly request_id: string | null;
}

/** Writes a line of the access log. Never throws. @param req null for a request that could not be parsed */
function logAccess(
  logger: Logger,
  req: IncomingMessage | null,
  seconds: number,
  { route, status, bytes, request_id }: Pick<AccessEntry, 'route' | 'status' | 'bytes' | 'request_id'>,
): void {
  if (isSilent(logger, 'info')) return;
  const target = req === null ? null : targetOf(req);
  const ms = Math.round(seconds * 1e6) / 1e3;
  const entry: AccessEntry = { method: req?.method ?? null, route, target, status, ms, bytes, request_id };
  logSafely(logger, 'info', entry, 'request');
}

/**
 * Counts the bytes of a reply's body while they are written, also by a handler that uses `ctx.raw.res`.
 *
 * @returns how many there are so far
 */
export function countBytes({ method }: IncomingMessage, res: ServerResponse): () => number {
  let count = 0;
  const counting =
    <Result>(write: (...args: never[]) => Result) =>
    (...args: unknown[]): Result => {
      const [chunk, encoding] = args;
      // Where a body is not allowed, node:http drops what is written.
      const isDropped = method === 'HEAD' || res.statusCode === 204 || res.statusCode === 304;
      if (typeof chunk === 'string' && !isDropped) count += Buffer.byteLength(chunk, encoding as BufferEncoding);
      else if (chunk instanceof Uint8Array && !isDropped) count += chunk.byteLength;
      return Reflect.apply(write, res, args) as Result;
    };
  res.write = counting(res.write);
  // `end` of node:http does not call `write`.
  res.end = counting(res.end);
  return () => count;
}
