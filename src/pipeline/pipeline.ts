/*
 * One request in, one reply out: head, route, middleware, handler, reply or error, observation.
 *
 * A handler runs where `node:http` emitted its request, in that request's async context. Replies are written together
 * at the end of the turn: that costs less than writing each from inside the parser.
 */

import type { IncomingMessage } from 'node:http';
import type { HttpError } from '../base/errors.js';
import { Context, type Environment, type Handler, type HandlerResult } from '../http/context.js';
import { errorToOutgoing, forScope, mapError, withHeadersOf } from '../http/error-mapper.js';
import { isThenable, Reply, toOutgoing, type Outgoing } from '../http/reply.js';
import { parseTarget } from '../http/request.js';
import { scopeOf } from '../http/scope.js';
import type { RequestListener } from '../http/server.js';
import { discard, isCut, type Outcome } from '../http/writer.js';
import type { RequestMetrics } from '../monitor/request-metrics.js';
import { NO_PARAMS } from '../routing/route.js';
import type { Router } from '../routing/router.js';
import { createArrivals, type ArrivalLimits } from './arrivals.js';
import { announceDeprecation } from './deprecation.js';
import type { CompiledRoutes } from './compiled-routes.js';
import type { PipelineExchange } from './exchange.js';
import { InFlight } from './in-flight.js';
import { createObserver, type Observer } from './observer.js';
import { Outbox } from './outbox.js';
import { isTraced, RequestTrace } from './tracing.js';

/** nginx's status for a client that left; never sent, only counted. */
const CLIENT_CLOSED_REQUEST = 499;

/** What the pipeline holds requests and clients to. */
export interface PipelineLimits extends ArrivalLimits {
  readonly sendTimeout: number;
}

/** The path of a request through one application. */
export class Pipeline {
  readonly #router: Router<Handler>;
  readonly #routes: CompiledRoutes;
  readonly #env: Environment;

  readonly arrivals: RequestListener;
  readonly #observer: Observer;
  readonly #outbox: Outbox;
  readonly #inFlight = new InFlight();

  constructor(routes: CompiledRoutes, env: Environment, metrics: RequestMetrics, limits: PipelineLimits) {
    this.#router = routes.router;
    this.#routes = routes;
    this.#env = env;
    this.#observer = createObserver(env.logger, metrics, limits.accessLog);
    this.#outbox = new Outbox(this, limits.sendTimeout);
    this.arrivals = createArrivals(this, this.#outbox, this.#observer, metrics.unmatched, env.errorTypes, limits);
  }

  /** The refusal of an upgrade from the public; null for one that the listeners of `upgrade` get. */
  refuseUpgrade(req: IncomingMessage): HttpError | null {
    return scopeOf(req) === undefined ? null : this.#routes.refuseUpgrade(req);
  }

  /** Requests that have no complete reply yet. */
  get active(): number {
    return this.#inFlight.count;
  }

  /** A request has arrived. */
  begin(): void {
    this.#inFlight.count += 1;
  }

  /**
   * From now on a connection ends with the reply to its latest request, and requests whose client has left are over.
   */
  closeConnections(): void {
    this.#outbox.isDraining = true;
    for (const exchange of this.#inFlight.waiting) if (isCut(exchange.res)) this.settle(exchange, 0, 'aborted');
  }

  /** Resolves as soon as no request is under way; one whose client has left counts no more. */
  idle(): Promise<void> {
    return this.#inFlight.idle();
  }

  /** Runs a request; never throws. */
  run(exchange: PipelineExchange): void {
    if (exchange.answered || exchange.outgoing !== null) return;
    const { req } = exchange;
    exchange.isStarted = true;
    let result: HandlerResult | Promise<HandlerResult>;
    let isAsync: boolean;
    try {
      if (exchange.refusal !== null) throw exchange.refusal;
      const target = parseTarget(req.url as string, req.method as string);
      // `GET http://a.example/ HTTP/1.1`: the host of such a target goes before `Host` (RFC 9112, section 3.2.2).
      if (target.authority !== undefined) req.headers.host = target.authority;
      const scope = scopeOf(req);
      const match = this.#router.match(req.method as string, target.path, scope);
      const endpoint = this.#routes.of(match, target.path, scope);
      exchange.metrics = endpoint.metrics;
      const params = match === null ? NO_PARAMS : match.params;
      const route = match === null ? null : match.route;
      exchange.route = route;
      const ctx = (exchange.ctx = new Context(exchange, target, params, this.#env, route, scope));
      if (isTraced()) result = (exchange.trace = new RequestTrace(ctx, ctx.route)).run(endpoint.run);
      else result = endpoint.run(ctx);
      // Inside, because looking at a value can throw: it may be a proxy.
      isAsync = isThenable(result);
    } catch (thrown) {
      this.fail(exchange, thrown);
      return;
    }
    if (!isAsync) {
      this.#finish(exchange, result as HandlerResult);
      return;
    }
    exchange.trace?.suspend();
    this.wait(exchange);
    Promise.resolve(result).then(
      (value) => this.#finish(exchange, value),
      (thrown: unknown) => this.fail(exchange, thrown),
    );
  }

  /**
   * Answers with an error, unless the outcome is known; never throws.
   *
   * @param unsent a reply that could not be sent
   */
  fail(exchange: PipelineExchange, thrown: unknown, unsent?: unknown): void {
    if (exchange.answered || exchange.outgoing !== null) return;
    const { req, res, id, connection } = exchange;
    const error = mapError(thrown);
    const hasLeft = exchange.hasLeft || isCut(res);
    this.#observer.failed(exchange, thrown, error, hasLeft ? CLIENT_CLOSED_REQUEST : error.statusCode);
    if (res.destroyed || res.headersSent || res.writableEnded) {
      const status = res.writableEnded ? res.statusCode : error.statusCode;
      if (!res.writableEnded) connection.cutBehind(exchange);
      this.settle(exchange, status, hasLeft ? 'aborted' : 'sent');
    } else {
      const shown = forScope(exchange.ctx?.scope, thrown, error);
      const outgoing = errorToOutgoing(shown, id, req.headers.accept, this.#env.errorTypes);
      this.#reply(exchange, unsent instanceof Reply ? withHeadersOf(unsent, outgoing) : outgoing);
    }
  }

  /** Nobody takes the reply to this request any more; never throws. */
  abandon(exchange: PipelineExchange): void {
    if (exchange.outgoing !== null) discard(exchange.outgoing.body);
    // A handler that still runs counts as active until it ends, but a drain does not wait for a reply that nobody
    // takes.
    if (exchange.outgoing !== null || !exchange.isStarted || this.#outbox.isDraining)
      this.settle(exchange, 0, 'aborted');
  }

  /** An exchange waits for a promise or a stream. */
  wait(exchange: PipelineExchange): void {
    this.#inFlight.wait(exchange);
  }

  #finish(exchange: PipelineExchange, value: HandlerResult): void {
    const { req, res } = exchange;
    if (exchange.answered || exchange.outgoing !== null) discard(value);
    else if (value instanceof Error) this.fail(exchange, value);
    else if (exchange.isPiped || res.headersSent || res.destroyed || res.writableEnded) {
      discard(value);
      this.#leaveToHandler(exchange);
    } else {
      let outgoing: Outgoing;
      try {
        outgoing = toOutgoing(value, req.method as string);
      } catch (thrown) {
        discard(value);
        this.fail(exchange, thrown, value);
        return;
      }
      if (outgoing.body === null) discard(value);
      const failure = Reply.failureOf(value);
      if (failure !== undefined)
        this.#observer.failed(exchange, failure.thrown, mapError(failure.thrown), outgoing.status);
      this.#reply(exchange, outgoing);
    }
  }

  #reply(exchange: PipelineExchange, outgoing: Outgoing): void {
    const { route } = exchange;
    this.#outbox.put(exchange, route === null ? outgoing : announceDeprecation(outgoing, route.options));
  }

  /** The handler writes the reply itself: the exchange is over when that reply is. */
  #leaveToHandler(exchange: PipelineExchange): void {
    const { res } = exchange;
    const settle = (): void => this.settle(exchange, res.statusCode, isCut(res) ? 'aborted' : 'sent');
    if (res.writableEnded || res.destroyed) settle();
    else {
      this.wait(exchange);
      res.once('close', settle);
      exchange.onAbort(() => this.settle(exchange, res.statusCode, 'aborted'));
    }
  }

  /** The outcome of a request is known. */
  settle(exchange: PipelineExchange, statusCode: number, outcome: Outcome): void {
    if (exchange.answered) return;
    exchange.answered = true;
    exchange.connection.settle(exchange);
    this.#observer.settled(exchange, outcome === 'aborted' ? CLIENT_CLOSED_REQUEST : statusCode);
    this.#inFlight.end(exchange);
  }
}
