/* Reports the outcome of each request once: the interface of those that want to know it, and the lines of the log. */

import type { IncomingMessage } from 'node:http';
import { isSilent, logSafely, type Logger } from '../base/log.js';
import { DeadlinePassed, HttpError, Overloaded } from '../base/errors.js';
import { isResponse } from '../payload/bytes.js';
import type { Story } from '../story/story.js';
import type { Exchange } from '../wire/exchange.js';
import { countBytes } from '../wire/node-internals.js';
import { Context } from './context.js';
import type { MappedError } from './errors.js';
import { Reply } from './reply.js';

/** Gets the outcome of every request. No method throws. */
export interface Observer {
  /** The request begins. */
  begun?(exchange: Exchange<Context>): void;
  /** The exchange is over. @param status 499 for a client that disconnected @param ms since the request began */
  settled(exchange: Exchange<Context>, status: number, ms: number): void;
  /**
   * Something that is not a request to answer was refused: malformed bytes, CONNECT, an upgrade.
   *
   * @param req null for bytes that could not be parsed; else `id` is its own
   * @param bytes of the body that was sent
   */
  refused?(req: IncomingMessage | null, id: string | null, status: number, bytes: number): void;
}

/** A failure with the reply to it. */
interface Failure {
  readonly error: MappedError;
  readonly thrown: unknown;
  readonly statusCode: number;
  /** Null for a request that could not be parsed; then it has no `id` and no `method`. */
  readonly req: IncomingMessage | null;
  readonly id: string | null;
  readonly method: string | null;
  /** Null for a request that was refused before it was read. */
  readonly handling: Context | null;
}

/** Logs a failure, unless there were too many in this second. Never throws. */
export function logFailure(logger: Logger, story: Story, failure: Failure): void {
  const { error, thrown, statusCode, req, id, method, handling } = failure;
  const level = levelOf(error, statusCode);
  if (isSilent(logger, level) || (level === 'error' && !story.mayLogFailure())) return;
  const request = req === null ? {} : { request_id: id, method, target: targetOf(req, handling) };
  const calls = handling?.calls ?? null;
  logSafely(
    logger,
    level,
    { err: reasonOf(thrown), status_code: statusCode, ...request, ...(calls === null ? {} : { calls }) },
    level === 'error' ? 'request failed' : 'request refused',
  );
}

/** The thrown value, for a line: a reply has no stack, and its members would not say what to do. */
function reasonOf(thrown: unknown): unknown {
  try {
    if (thrown instanceof Reply || isResponse(thrown)) return 'a reply was thrown; return it, or throw an ApiError';
  } catch {
    // A Proxy. The logger survives it, too.
  }
  return thrown;
}

/** The request-target for a log: without its query, which may hold a token, and without credentials. */
function targetOf(req: IncomingMessage, handling: Context | null): string {
  // Around an embedded application, Express takes its prefix off `url`. Middleware may change `url`, too.
  const whole = 'originalUrl' in req && typeof req.originalUrl === 'string' ? req.originalUrl : handling?.target.path;
  const sent = whole ?? req.url ?? '';
  const mark = sent.indexOf('?');
  return (mark === -1 ? sent : sent.slice(0, mark)).replace(/^([a-z][a-z0-9+.-]*:\/\/)?[^/]*@/i, '$1');
}

/**
 * An unknown method or version (501, 505) is the client's mistake: if it were logged as an error, any client could fill
 * the log. A refused request is counted, and the log has the begin of the overload; more lines would add to the load.
 */
function levelOf(error: MappedError, statusCode: number): 'debug' | 'error' {
  if (statusCode < 500 || error instanceof Overloaded || error instanceof DeadlinePassed) return 'debug';
  // A foreign error with a status, which is not an instance of either, counts as an `HttpError`.
  const isServers = error instanceof HttpError || !(error instanceof Error);
  return isServers && (statusCode === 501 || statusCode === 505) ? 'debug' : 'error';
}

/** Writes the access log: one line for each request. */
export class AccessLog implements Observer {
  readonly #bytes = new WeakMap<Exchange<Context>, () => number>();

  /** @param hasProbes whether successful requests to monitoring endpoints are logged, too */
  constructor(
    readonly logger: Logger,
    readonly hasProbes: boolean,
  ) {}

  begun(exchange: Exchange<Context>): void {
    exchange.keepContext();
    this.#bytes.set(exchange, countBytes(exchange.req, exchange.res));
  }

  settled(exchange: Exchange<Context>, settledAs: number, ms: number): void {
    const { req, res, id, method, handling, isCutByDrain } = exchange;
    if (!this.hasProbes && settledAs < 400 && handling !== null && Context.isMonitoring(handling)) return;
    const logger = handling === null ? this.logger : Context.loggerOf(handling);
    if (isSilent(logger, 'info')) return;
    const sent = res.headersSent ? res.statusCode : null;
    const caller = handling?.caller?.name;
    const entry = {
      method,
      route: handling?.label || null,
      target: targetOf(req, handling),
      // 499 for a client that left; null if a drain cut the request off before a status was sent.
      status: isCutByDrain ? sent : settledAs,
      ms: Math.round(ms * 1e3) / 1e3,
      // Bytes of the body, before chunked coding.
      bytes: this.#bytes.get(exchange)?.() ?? 0,
      request_id: id,
      ...(isCutByDrain && { cut: true }),
      ...(caller !== undefined && { caller }),
    };
    logSafely(logger, 'info', entry, 'request');
  }

  refused(req: IncomingMessage | null, id: string | null, status: number, bytes: number): void {
    const { method = null } = req ?? {};
    const target = req === null ? null : targetOf(req, null);
    const entry = { method, route: null, target, status, ms: 0, bytes, request_id: id };
    logSafely(this.logger, 'info', entry, 'request');
  }
}
