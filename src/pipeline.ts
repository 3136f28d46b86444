/**
 * One request in, one reply out: head, route, middleware, handler, reply or error, observation.
 *
 * What can be decided when a route is registered is not decided again for each request: a route is compiled once, with
 * its middleware and its query check, when it is first used.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { BadRequest, FrameworkErrorCodes, HttpError } from './errors.js';
import { abandon, closeAfter, parserErrorOf, send, sendRaw, type Outcome, type ParserError } from './http/connection.js';
import { Context, type Environment, type Handler, type HandlerResult, type Middleware } from './http/context.js';
import { errorToOutgoing, mapError } from './http/error-mapper.js';
import { reply, toOutgoing, toReply, type Outgoing, type Reply } from './http/reply.js';
import { assertRequestHead, parseTarget, requestId } from './http/request.js';
import { logSafely } from './log.js';
import { RequestMetrics, RouteMetrics } from './monitor/request-metrics.js';
import type { Params, Route, Router } from './routing/router.js';

/** A route as the pipeline runs it. */
export interface Endpoint {
  readonly run: Handler;
  readonly metrics: RouteMetrics;
}

/** Query parameters outside the allowed set (SPEC 7.3). */
class InvalidQueryParams extends BadRequest {
  static override errorCode = FrameworkErrorCodes.framework_invalid_query_params;
}

/** One request under way. */
interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly startedAt: number;
  metrics: RouteMetrics;
  ctx: Context | null;
  /** Set with the reply: whatever the handler does later is ignored. */
  answered: boolean;
}

/** nginx's status for a client that left; never sent, only counted. */
const CLIENT_CLOSED_REQUEST = 499;

const NO_PARAMS: Params = Object.freeze(Object.create(null) as Params);

/** The path of a request through one application. */
export class Pipeline {
  /** Whether replies end their connections, because the application drains. */
  closing = false;

  readonly #router: Router<Handler, Endpoint>;
  readonly #env: Environment;
  readonly #metrics: RequestMetrics;
  readonly #middleware: Middleware[] = [];
  readonly #groups = new WeakMap<Route<Handler, Endpoint>, readonly (readonly Middleware[])[]>();
  readonly #inFlight = new Set<Exchange>();
  /** The latest request, which may wait for replies before it to be written. */
  #last: Exchange | undefined;
  #active = 0;
  #unmatched: Endpoint;
  #whenIdle: (() => void)[] = [];

  constructor(router: Router<Handler, Endpoint>, env: Environment, metrics: RequestMetrics) {
    this.#router = router;
    this.#env = env;
    this.#metrics = metrics;
    this.#unmatched = this.#compileUnmatched();
  }

  /** Requests that have no complete reply yet. */
  get active(): number {
    return this.#active;
  }

  /** Adds middleware around every request; routes are compiled anew. */
  use(middleware: Middleware): void {
    this.#middleware.push(middleware);
    this.recompile();
  }

  /** Makes every route compile again on its next use, after middleware was added. */
  recompile(): void {
    this.#unmatched = this.#compileUnmatched();
    for (const route of this.#router.entries) route.compiled = undefined;
  }

  /** Puts the middleware of groups, outermost first, around one route. Lists may grow until {@link recompile}. */
  setGroups(route: Route<Handler, Endpoint>, groups: readonly (readonly Middleware[])[]): void {
    this.#groups.set(route, groups);
  }

  /** Answers one request; never throws. */
  handle(req: IncomingMessage, res: ServerResponse, awaitsContinue: boolean): void {
    const exchange: Exchange = { req, res, startedAt: performance.now(), metrics: this.#metrics.unmatched, ctx: null, answered: false };
    this.#last = exchange;
    this.#active += 1;
    let result: HandlerResult | Promise<HandlerResult>;
    try {
      assertRequestHead(req);
      const method = req.method as string;
      const target = parseTarget(req.url as string, method);
      const match = this.#router.match(method, target.path);
      const endpoint = match === null ? this.#unmatched : (match.route.compiled ??= this.#compile(match.route));
      exchange.metrics = endpoint.metrics;
      exchange.ctx = new Context(req, res, target, match === null ? NO_PARAMS : match.params, this.#env, awaitsContinue);
      result = endpoint.run(exchange.ctx);
    } catch (thrown) {
      this.#fail(exchange, thrown);
      return;
    }
    if (!isThenable(result)) {
      this.#finish(exchange, result);
      return;
    }
    this.#inFlight.add(exchange);
    Promise.resolve(result).then(
      (value) => this.#finish(exchange, value),
      (thrown: unknown) => this.#fail(exchange, thrown),
    );
  }

  /** Answers a request that `node:http` itself would refuse; never throws. */
  refuse(req: IncomingMessage, res: ServerResponse, error: HttpError): void {
    this.#active += 1;
    this.#fail({ req, res, startedAt: performance.now(), metrics: this.#metrics.unmatched, ctx: null, answered: false }, error);
  }

  /** Answers on a socket that has no response object, and closes it. */
  refuseRaw(socket: Duplex, error: HttpError): void {
    this.#metrics.unparsed(error.statusCode);
    this.#log(error, error.statusCode, null);
    sendRaw(socket, errorToOutgoing(error, null));
  }

  /** Resolves as soon as no request is under way; one whose client has left counts no more. */
  idle(): Promise<void> {
    for (const exchange of this.#inFlight) {
      const { res } = exchange;
      if (res.destroyed) this.#settle(exchange, res.statusCode, 'aborted');
      else res.once('close', () => this.#settle(exchange, res.statusCode, res.writableFinished ? 'sent' : 'aborted'));
    }
    if (this.#active === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** Answers what `node:http` raised as a `clientError`: a request that it could not parse, or one that took too long. */
  handleParserError(error: ParserError, socket: Duplex): void {
    const failure = parserErrorOf(error);
    const pending = [...this.#inFlight].filter(({ req }) => req.socket === socket);
    const latest = pending.at(-1) ?? (this.#last?.req.socket === socket ? this.#last : undefined);
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else if (latest !== undefined && !latest.req.complete) {
      // The body of a request that has reached its handler is broken: its own reply says so, if it has none yet.
      if (latest.answered) closeAfter(latest.res, socket);
      else this.#fail(latest, failure);
    } else if (latest !== undefined && !latest.res.writableFinished) {
      // Replies go out in the order of their requests.
      latest.res.once('finish', () => this.refuseRaw(socket, failure));
    } else if (socket.writableLength > 0) socket.destroy();
    else this.refuseRaw(socket, failure);
  }

  #compile(route: Route<Handler, Endpoint>): Endpoint {
    const groups = this.#groups.get(route) ?? [];
    const handler = route.params === null ? route.handler : checkQuery(route.handler, route.params);
    return { run: compose([...this.#middleware, ...groups.flat()], handler), metrics: this.#metrics.forRoute(route.path, route.method) };
  }

  /** What answers a path or a method without a route: 404, 405, or the `Allow` of OPTIONS, inside the middleware. */
  #compileUnmatched(): Endpoint {
    const handler: Handler = ({ method, raw }) => {
      const { path } = parseTarget(raw.req.url as string, method);
      return answerWithoutRoute(method, path === '*' ? ['OPTIONS'] : this.#router.allowedMethods(path));
    };
    return { run: compose(this.#middleware, handler), metrics: this.#metrics.unmatched };
  }

  #finish(exchange: Exchange, value: HandlerResult): void {
    if (exchange.answered) return;
    const { req, res } = exchange;
    if (res.headersSent || res.writableEnded) {
      // The handler wrote to `res` itself.
      this.#settle(exchange, res.statusCode);
      return;
    }
    let outgoing: Outgoing;
    let outcome: Outcome | Promise<Outcome>;
    try {
      outgoing = toOutgoing(value);
      outcome = send(req, res, outgoing, this.closing);
    } catch (thrown) {
      this.#fail(exchange, thrown);
      return;
    }
    const { status } = outgoing;
    if (typeof outcome === 'string') this.#settle(exchange, status, outcome);
    else {
      this.#inFlight.add(exchange);
      outcome.then(
        (ended) => this.#settle(exchange, status, ended),
        (thrown: unknown) => this.#fail(exchange, thrown),
      );
    }
  }

  #fail(exchange: Exchange, thrown: unknown): void {
    if (exchange.answered) return;
    const { req, res, ctx } = exchange;
    if (res.destroyed) {
      this.#settle(exchange, res.statusCode, 'aborted');
      return;
    }
    const error = mapError(thrown);
    const id = ctx === null ? requestId(req) : ctx.id;
    this.#log(thrown, error.statusCode, { id, method: req.method, path: req.url });
    if (res.headersSent) {
      abandon(res);
      this.#settle(exchange, res.statusCode, 'aborted');
      return;
    }
    try {
      send(req, res, errorToOutgoing(error, id), this.closing);
      this.#settle(exchange, error.statusCode);
    } catch (invalid) {
      // A header of the error can't be sent.
      this.#log(invalid, 500, { id, method: req.method, path: req.url });
      send(req, res, errorToOutgoing(mapError(invalid), id), true);
      this.#settle(exchange, 500);
    }
  }

  #settle(exchange: Exchange, statusCode: number, outcome: Outcome = 'sent'): void {
    if (exchange.answered) return;
    exchange.answered = true;
    this.#active -= 1;
    this.#inFlight.delete(exchange);
    const seconds = (performance.now() - exchange.startedAt) / 1000;
    exchange.metrics.observe(exchange.req.method as string, outcome === 'aborted' ? CLIENT_CLOSED_REQUEST : statusCode, seconds);
    if (this.#active === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  #log(thrown: unknown, statusCode: number, request: { id: string; method: string | undefined; path: string | undefined } | null): void {
    const entry = { err: thrown, status_code: statusCode, ...(request === null ? {} : { request_id: request.id, method: request.method, target: request.path }) };
    if (statusCode >= 500) logSafely(this.#env.logger, 'error', entry, 'request failed');
    else logSafely(this.#env.logger, 'debug', entry, 'request refused');
  }
}

/**
 * Puts middleware around a handler, the first one outermost; without middleware the handler comes back as it is.
 */
export function compose(middleware: readonly Middleware[], handler: Handler): Handler {
  if (middleware.length === 0) return handler;
  const innermost = async (ctx: Context): Promise<Reply> => toReply(await handler(ctx));
  return middleware.reduceRight<(ctx: Context) => Promise<Reply>>((inner, around) => async (ctx) => {
    let called = false;
    const next = (): Promise<Reply> => {
      if (called) throw new Error('next() was called twice by one middleware; call it once and keep its reply');
      called = true;
      const replied = inner(ctx);
      // A middleware that does not wait for its reply must not take the process down with it.
      replied.catch(() => undefined);
      return replied;
    };
    return toReply(await around(ctx, next));
  }, innermost);
}

function checkQuery(handler: Handler, allowed: readonly string[]): Handler {
  const names: ReadonlySet<string> = new Set(allowed);
  const description = `Invalid query params. Allowed: ${allowed.length === 0 ? 'none' : allowed.join(', ')}`;
  return (ctx) => {
    for (const name of ctx.query.keys()) {
      if (!names.has(name)) throw new InvalidQueryParams(description);
    }
    return handler(ctx);
  };
}

function answerWithoutRoute(method: string, allowed: readonly string[]): Reply {
  if (allowed.length === 0) throw new HttpError(404, 'No route matches this path.');
  const allow = allowed.join(', ');
  if (method === 'OPTIONS') return reply(undefined, { headers: { allow } });
  throw new HttpError(405, `${method} is not allowed here. Allowed: ${allow}`, { headers: { allow } });
}

function isThenable(value: unknown): value is PromiseLike<HandlerResult> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
