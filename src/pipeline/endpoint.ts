/**
 * Routes as the pipeline runs them: each handler with the query check and the middleware around it.
 *
 * What can be decided when a route is registered is not decided again for each request: a route is compiled once, when
 * it is first used.
 */

import { BadRequest, FrameworkErrorCodes, HttpError, refusal } from '../errors.js';
import type { Context, Handler, Middleware } from '../http/context.js';
import { ROUTE_NOT_FOUND, routeNotFound } from '../http/error-mapper.js';
import { reply, toReply, type Reply } from '../http/reply.js';
import type { LoadShedder } from '../monitor/load-shedder.js';
import type { RequestMetrics, RouteMetrics } from '../monitor/request-metrics.js';
import type { Match, Route, Router } from '../routing/router.js';

/** What a request runs into. */
export interface Endpoint {
  readonly run: Handler;
  readonly metrics: RouteMetrics;
  /** Null for requests without a route. */
  readonly route: Route<Handler, Endpoint> | null;
}

/** The routes of one application with their middleware. */
export class Endpoints {
  readonly router: Router<Handler, Endpoint>;
  readonly #metrics: RequestMetrics;
  readonly #shedder: LoadShedder | null;
  /** By path; each is static, so that no other path has its pattern. */
  readonly #monitors = new Map<string, Route<Handler, Endpoint>>();
  readonly #middleware: Middleware[] = [];
  readonly #groups = new WeakMap<Route<Handler, Endpoint>, readonly (readonly Middleware[])[]>();
  #unmatched: Endpoint | undefined;

  /** @param shedder null to let every request in */
  constructor(router: Router<Handler, Endpoint>, metrics: RequestMetrics, shedder: LoadShedder | null) {
    this.router = router;
    this.#metrics = metrics;
    this.#shedder = shedder;
  }

  /**
   * Adds a route with the middleware of its groups, outermost first; the lists may grow until {@link recompile}.
   *
   * @throws {TypeError} when the path is a monitoring endpoint's, or what the router refuses
   */
  add(method: string, path: string, handler: Handler, groups: readonly (readonly Middleware[])[]): void {
    if (this.#monitors.has(path)) throw new TypeError(`${path} is a monitoring endpoint; use another path, or attachMonitorEndpoints: false`);
    this.#groups.set(this.router.add(method, path, handler), groups);
  }

  /** Adds a monitoring endpoint, which is answered under any load. */
  addMonitor(path: string, handler: Handler): void {
    this.#monitors.set(path, this.router.add('GET', path, handler));
  }

  /** Adds middleware around every request. */
  use(middleware: Middleware): void {
    this.#middleware.push(middleware);
    this.recompile();
  }

  /** Makes every route compile again on its next use, after middleware was added. */
  recompile(): void {
    this.#unmatched = undefined;
    for (const route of this.router.entries) route.compiled = undefined;
  }

  /** What runs for a matched route, or for none. */
  of(match: Match<Handler, Endpoint> | null): Endpoint {
    if (match === null) return (this.#unmatched ??= this.#compileUnmatched());
    return (match.route.compiled ??= this.#compile(match.route));
  }

  #compile(route: Route<Handler, Endpoint>): Endpoint {
    const groups = this.#groups.get(route) ?? [];
    const handler = route.params === null ? route.handler : checkQuery(route.handler, route.params);
    const composed = compose([...this.#middleware, ...groups.flat()], handler);
    const run = this.#monitors.get(route.path) === route ? composed : this.#guard(composed);
    return { run, metrics: this.#metrics.forRoute(route.path), route };
  }

  /** What answers a path or a method without a route: 404, 405, or the `Allow` of OPTIONS, inside the middleware. */
  #compileUnmatched(): Endpoint {
    const hasMiddleware = this.#middleware.length > 0;
    const handler: Handler = ({ method, target }) => {
      const allowed = target.path === '*' ? ['OPTIONS'] : this.router.allowedMethods(target.path);
      if (allowed.length === 0) return hasMiddleware ? routeNotFound() : ROUTE_NOT_FOUND;
      return answerWithMethods(method, allowed);
    };
    return { run: this.#guard(compose(this.#middleware, handler)), metrics: this.#metrics.unmatched, route: null };
  }

  #guard(run: Handler): Handler {
    return this.#shedder === null ? run : this.#shedder.guard(run);
  }
}

/** Query parameters outside the allowed set (SPEC 7.3). */
class InvalidQueryParams extends BadRequest {
  static override errorCode = FrameworkErrorCodes.framework_invalid_query_params;
}

/** Puts middleware around a handler, the first one outermost; without middleware the handler comes back as it is. */
function compose(middleware: readonly Middleware[], handler: Handler): Handler {
  if (middleware.length === 0) return handler;
  const innermost = async (ctx: Context): Promise<Reply> => {
    const result = await handler(ctx);
    if (result instanceof Error) throw result;
    return toReply(result);
  };
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

/** Refuses query parameters that are not allowed, before the handler runs (SPEC 4.3). */
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

/** Answers a method that a path has no route for, with those that it has: OPTIONS, or 405 (RFC 9110, section 15.5.6). */
function answerWithMethods(method: string, allowed: readonly string[]): Reply | HttpError {
  const allow = allowed.join(', ');
  if (method === 'OPTIONS') return reply(undefined, { headers: { allow } });
  return refusal(405, `${method} is not allowed here. Allowed: ${allow}`, { headers: { allow } });
}
