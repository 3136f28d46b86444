/**
 * One request in, one reply out: head, route, middleware, handler, reply or error, observation.
 *
 * Requests are answered in batches, one for each turn of the event loop, after everything that had arrived was parsed:
 * that costs a quarter less CPU than answering each from inside the parser, and a client that pipelines or has left
 * already is known as such before its handler runs.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Endpoint, Endpoints } from './endpoint.js';
import type { HttpError } from '../errors.js';
import { Exchange } from './exchange.js';
import { levelOf, logFailure } from './failure-log.js';
import { abandon, closeAfter, discard, endWithConnection, isCut, parserErrorOf, send, sendRaw, type Outcome, type ParserError } from '../http/connection.js';
import { Context, type Environment, type Handler, type HandlerResult } from '../http/context.js';
import { errorToOutgoing, mapError } from '../http/error-mapper.js';
import { isThenable, toOutgoing, type Outgoing } from '../http/reply.js';
import { assertRequestHead, parseTarget, requestId } from '../http/request.js';
import { isTraced, RequestTrace } from './tracing.js';
import type { RequestMetrics } from '../monitor/request-metrics.js';
import { NO_PARAMS } from '../routing/params.js';
import type { Router } from '../routing/router.js';

/** nginx's status for a client that left; never sent, only counted. */
const CLIENT_CLOSED_REQUEST = 499;

/** What the pipeline holds requests and clients to. */
export interface PipelineLimits {
  readonly maxHeadersCount: number;
  readonly sendTimeoutMs: number;
}

/** The path of a request through one application. */
export class Pipeline {
  readonly #router: Router<Handler, Endpoint>;
  readonly #endpoints: Endpoints;
  readonly #env: Environment;
  readonly #metrics: RequestMetrics;
  readonly #limits: PipelineLimits;

  /** What has arrived in this turn of the event loop. */
  #arrived: Exchange[] = [];
  /** What waits for a promise, a stream, the rest of its body, or replies before its own. */
  readonly #pending = new Set<Exchange>();
  #active = 0;

  /** Set while draining: the latest request of each connection, whose reply is to end it. */
  #latest: WeakMap<Duplex, Exchange> | undefined;
  #whenIdle: (() => void)[] = [];
  /** Connections whose last request is known: what they send behind it is not answered (RFC 9112, section 9.6). */
  readonly #ended = new WeakSet<Duplex>();

  constructor(endpoints: Endpoints, env: Environment, metrics: RequestMetrics, limits: PipelineLimits) {
    this.#router = endpoints.router;
    this.#endpoints = endpoints;
    this.#env = env;
    this.#metrics = metrics;
    this.#limits = limits;
  }

  /** Requests that have no complete reply yet. */
  get active(): number {
    return this.#active;
  }

  /** Takes one request, to be answered in this turn of the event loop; never throws. */
  handle(req: IncomingMessage, res: ServerResponse, awaitsContinue: boolean): void {
    this.#arrive(new Exchange(req, res, awaitsContinue, this.#metrics.unmatched));
  }

  /** Answers a request that `node:http` itself would refuse; never throws. */
  refuse(req: IncomingMessage, res: ServerResponse, error: HttpError): void {
    this.#arrive(new Exchange(req, res, false, this.#metrics.unmatched, error));
  }

  /**
   * Answers on a socket that has no response object, behind the replies to the requests before, and closes it.
   *
   * @param req null for one that could not be parsed
   */
  refuseRaw(req: IncomingMessage | null, socket: Duplex, error: HttpError): void {
    const latest = this.#latestOn(socket);
    if (latest !== undefined && !latest.res.writableFinished) {
      latest.res.once('finish', () => this.refuseRaw(req, socket, error));
      return;
    }
    const id = req === null ? null : requestId(req);
    this.#metrics.unmatched.observe(req?.method ?? '_OTHER', error.statusCode, 0);
    logFailure(this.#env.logger, levelOf(error), error, error.statusCode, req, id);
    sendRaw(socket, errorToOutgoing(error, id));
  }

  /** Answers what `node:http` raised as a `clientError`: a request that it could not parse, or one that took too long. */
  handleParserError(error: ParserError, socket: Duplex): void {
    const failure = parserErrorOf(error);
    const latest = this.#latestOn(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else if (latest !== undefined && !latest.req.complete) {
      // The body of a request that has reached its handler is broken: its own reply says so, if it has none yet.
      if (!latest.answered) this.#fail(latest, failure, true);
      closeAfter(latest.req, latest.res);
    } else if (latest?.res.writableFinished !== false && socket.writableLength > 0) socket.destroy();
    else this.refuseRaw(null, socket, failure);
  }

  /** From now on the reply to the latest request of a connection ends it. */
  closeConnections(): void {
    this.#latest = new WeakMap();
    for (const exchange of [...this.#pending, ...this.#arrived]) this.#latest.set(exchange.req.socket, exchange);
  }

  /** Resolves as soon as no request is under way; one whose client has left counts no more. */
  idle(): Promise<void> {
    for (const exchange of this.#pending) this.#settleWithClient(exchange);
    if (this.#active === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  #settleWithClient(exchange: Exchange): void {
    const { res } = exchange;
    if (isCut(res)) this.#settle(exchange, res.statusCode, 'aborted');
    else res.once('close', () => this.#settle(exchange, res.statusCode, res.writableFinished ? 'sent' : 'aborted'));
  }

  #arrive(exchange: Exchange): void {
    this.#active += 1;
    this.#latest?.set(exchange.req.socket, exchange);
    if (this.#whenIdle.length > 0) this.#settleWithClient(exchange);
    if (this.#arrived.push(exchange) === 1) setImmediate(this.#runArrived);
  }

  readonly #runArrived = (): void => {
    const exchanges = this.#arrived;
    this.#arrived = [];
    for (const exchange of exchanges) this.#run(exchange);
  };

  #run(exchange: Exchange): void {
    const { req, res } = exchange;
    if (exchange.answered) return;
    if (res.socket === null) endWithConnection(req, res);
    if (res.destroyed || this.#ended.has(req.socket)) {
      this.#settle(exchange, res.statusCode, 'aborted');
      return;
    }
    let result: HandlerResult | Promise<HandlerResult>;
    let isAsync: boolean;
    try {
      if (exchange.refusal !== null) throw exchange.refusal;
      if (assertRequestHead(req, this.#limits.maxHeadersCount)) {
        exchange.ends = true;
        this.#ended.add(req.socket);
      }
    } catch (thrown) {
      // Whoever passed it on may have framed it otherwise.
      this.#fail(exchange, thrown, true);
      return;
    }
    try {
      const target = parseTarget(req.url as string, req.method as string);
      const match = this.#router.match(req.method as string, target.path);
      const endpoint = this.#endpoints.of(match);
      exchange.metrics = endpoint.metrics;
      const ctx = (exchange.ctx = new Context(req, res, target, match === null ? NO_PARAMS : match.params, this.#env, exchange.awaitsContinue));
      if (isTraced()) result = (exchange.trace = new RequestTrace(ctx, endpoint.route)).run(endpoint.run);
      else result = endpoint.run(ctx);
      // Inside, because looking at a value can throw: it may be a proxy.
      isAsync = isThenable(result);
    } catch (thrown) {
      this.#fail(exchange, thrown);
      return;
    }
    if (!isAsync) {
      this.#finish(exchange, result as HandlerResult);
      return;
    }
    exchange.trace?.suspend();
    this.#pending.add(exchange);
    Promise.resolve(result).then(
      (value) => this.#finish(exchange, value),
      (thrown: unknown) => this.#fail(exchange, thrown),
    );
  }

  #finish(exchange: Exchange, value: HandlerResult): void {
    const { req, res } = exchange;
    if (exchange.answered || res.destroyed || res.headersSent || res.writableEnded) {
      // Cut, or written by the handler itself.
      discard(value);
      this.#settle(exchange, res.statusCode, isCut(res) ? 'aborted' : 'sent');
      return;
    }
    let outgoing: Outgoing;
    let outcome: Outcome | Promise<Outcome>;
    try {
      if (value instanceof Error) {
        // Returning an error is raising it.
        this.#fail(exchange, value);
        return;
      }
      outgoing = toOutgoing(value, req.method as string);
      outcome = send(req, res, outgoing, this.#endsConnection(exchange), this.#limits.sendTimeoutMs);
    } catch (thrown) {
      discard(value);
      this.#fail(exchange, thrown);
      return;
    }
    if (outgoing.body === null) discard(value);
    const { status } = outgoing;
    if (typeof outcome === 'string') {
      this.#settle(exchange, status, outcome);
      return;
    }
    this.#pending.add(exchange);
    outcome.then(
      (ended) => this.#settle(exchange, status, ended),
      (thrown: unknown) => this.#fail(exchange, thrown),
    );
  }

  #fail(exchange: Exchange, thrown: unknown, close = this.#endsConnection(exchange)): void {
    if (exchange.answered) return;
    const { req, res, ctx } = exchange;
    const error = mapError(thrown);
    const id = ctx === null ? requestId(req) : ctx.id;
    exchange.trace?.fail(thrown, error.errorCode);
    const hasLeft = isCut(res);
    if (hasLeft) logFailure(this.#env.logger, 'debug', thrown, CLIENT_CLOSED_REQUEST, req, id);
    else logFailure(this.#env.logger, levelOf(error), thrown, error.statusCode, req, id);
    if (res.destroyed || res.headersSent || res.writableEnded) {
      const status = res.writableEnded ? res.statusCode : error.statusCode;
      if (!res.writableEnded) abandon(res);
      this.#settle(exchange, status, hasLeft ? 'aborted' : 'sent');
      return;
    }
    try {
      send(req, res, errorToOutgoing(error, id), close, this.#limits.sendTimeoutMs);
      this.#settle(exchange, error.statusCode);
    } catch (invalid) {
      // A header of the error can't be sent.
      logFailure(this.#env.logger, 'error', invalid, 500, req, id);
      send(req, res, errorToOutgoing(mapError(invalid), id), true, this.#limits.sendTimeoutMs);
      this.#settle(exchange, 500);
    }
  }

  #settle(exchange: Exchange, statusCode: number, outcome: Outcome = 'sent'): void {
    if (exchange.answered) return;
    exchange.answered = true;
    this.#active -= 1;
    const { req, res } = exchange;
    if (res.destroyed || (req.complete && res.socket !== null)) this.#pending.delete(exchange);
    else this.#keepUntilClosed(exchange);
    // What has not run yet was refused by the parser: nothing is behind it, and requests before it may still wait.
    if (!res.shouldKeepAlive && !this.#arrived.includes(exchange)) this.#ended.add(req.socket);
    const counted = outcome === 'aborted' ? CLIENT_CLOSED_REQUEST : statusCode;
    exchange.metrics.observe(req.method as string, counted, (performance.now() - exchange.startedAt) / 1000);
    exchange.trace?.finish(counted);
    if (this.#active === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  /** Until its reply is out, and its body is there: one that breaks off gets no second reply. */
  #keepUntilClosed(exchange: Exchange): void {
    const { req, res } = exchange;
    this.#pending.add(exchange);
    if (req.complete) {
      res.once('close', () => this.#pending.delete(exchange));
      return;
    }
    const { socket } = req;
    const forget = (): void => {
      this.#pending.delete(exchange);
      socket.off('close', forget);
    };
    // Once it is answered, node:http does not tell a request that its connection is gone.
    socket.once('close', forget);
    req.once('close', forget);
  }

  #latestOn(socket: Duplex): Exchange | undefined {
    return [...this.#pending, ...this.#arrived].filter(({ req }) => req.socket === socket).at(-1);
  }

  /** A pipelined request behind this one is still answered. */
  #endsConnection({ req, ends }: Exchange): boolean {
    if (ends || this.#latest === undefined) return ends;
    const latest = this.#latest.get(req.socket);
    return latest === undefined || latest.req === req;
  }
}
