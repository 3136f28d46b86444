/*
 * Routes as the pipeline runs them: each handler with the query check and the middleware around it.
 *
 * Decisions that only depend on the route are not made again for each request: a route is compiled once, when it is
 * first used.
 */

import type { IncomingMessage } from 'node:http';
import { Date } from '../base/clock.js';
import { FrameworkErrorCodes } from '../base/error-codes.js';
import { BadRequest, HttpError, refusal } from '../base/errors.js';
import { Context, type Handler, type HandlerResult, type Middleware } from '../http/context.js';
import type { Scope } from '../http/scope.js';
import * as errorMapper from '../http/error-mapper.js';
import { reply } from '../http/reply.js';
import { parseTarget } from '../http/request.js';
import type { RequestMetrics, RouteMetrics } from '../monitor/request-metrics.js';
import type { Overload } from '../overload/overload.js';
import type { InputHandler } from './checked-input.js';
import { compose } from './middleware.js';
import type { ConnectMiddleware } from './connect.js';
import type { Mount } from './mounts.js';
import * as mounting from './mounts.js';
import * as timeLimits from './time-limit.js';
import type { DeclaredOptions, Deprecation } from '../endpoint/route-options.js';
import { Route } from '../routing/route.js';
import type { Match, Router } from '../routing/router.js';
import { PARTS, type AnySchemas, type MaybeResponse } from '../endpoint/schemas.js';

/** A route as requests run it. */
export interface CompiledRoute {
  readonly run: Handler;
  readonly metrics: RouteMetrics;
}

/** Middleware of the groups around a route, outermost first. The lists may grow until the routes are recompiled. */
export type Groups = readonly (readonly Middleware[])[];

/** The routes of one application with their middleware. */
export class CompiledRoutes {
  readonly router: Router<Handler>;
  readonly #metrics: RequestMetrics;
  readonly #overload: Overload | null;
  readonly #validateResponses: boolean | 'output';
  readonly #middleware: Middleware[] = [];
  readonly #groups = new Map<Route<Handler>, Groups>();
  readonly #compiled = new Map<Route<Handler> | Mount, CompiledRoute>();
  #unmatched: CompiledRoute | undefined;
  readonly #mounts: Mount[] = [];

  /** @param overload null to refuse no request */
  constructor(
    router: Router<Handler>,
    metrics: RequestMetrics,
    overload: Overload | null,
    validateResponses: boolean | 'output',
  ) {
    this.router = router;
    this.#validateResponses = validateResponses;
    this.#metrics = metrics;
    this.#overload = overload;
  }

  /**
   * Adds a route inside groups.
   *
   * @param shared defaults of its groups, checked
   * @param source the handler that carries options, where it is not the one that runs
   * @throws {TypeError} what the router refuses, and an invalid option
   */
  add(
    method: string,
    path: string,
    handler: Handler,
    groups: Groups,
    options?: DeclaredOptions,
    shared?: DeclaredOptions,
    source: unknown = handler,
  ): void {
    this.#groups.set(this.router.register(method, path, handler, options, shared, source), groups);
  }

  /** Adds a monitoring endpoint, which is answered under any load. */
  addMonitor(path: string, handler: Handler): void {
    this.router.reserve('GET', path, handler);
  }

  /** Adds middleware around every request. */
  use(middleware: Middleware): void {
    this.#middleware.push(middleware);
    this.recompile();
  }

  /** Makes every route compile again on its next use, after middleware was added. */
  recompile(): void {
    this.#unmatched = undefined;
    this.#compiled.clear();
  }

  /**
   * Lets a listener answer the requests below a prefix that no route answers, except those from the public.
   *
   * @throws {TypeError} as `addMount` does
   */
  mount(prefix: string, listener: ConnectMiddleware): void {
    mounting.addMount(this.#mounts, prefix, listener);
  }

  /** The compiled route of a match; without a match, the route of a mount or of the errors 404 and 405. */
  of(match: Match<Handler> | null, path: string, scope: Scope): CompiledRoute {
    const hasMount = match === null && this.#mounts.length > 0 && scope === undefined;
    const target = hasMount ? mounting.findMount(this.#mounts, path) : match?.route;
    if (target === undefined) return (this.#unmatched ??= this.#compileUnmatched());
    const known = this.#compiled.get(target);
    if (known !== undefined) return known;
    const compiled = target instanceof Route ? this.#compile(target) : this.#compileMount(target);
    this.#compiled.set(target, compiled);
    return compiled;
  }

  #compileMount(mount: Mount): CompiledRoute {
    const path = `${mount.prefix === '/' ? '' : mount.prefix}/*`;
    const inner = compose([mounting.mountMiddleware(mount)], errorMapper.routeNotFound);
    const guarded = this.#overload === null ? inner : this.#overload.guardOthers(path, inner);
    return { run: compose(this.#middleware, guarded), metrics: this.#metrics.forRoute(path) };
  }

  #compile(route: Route<Handler>): CompiledRoute {
    const { params, schemas, middleware, timeout, deprecated } = route.options;
    const limit = timeout === undefined ? undefined : timeLimits.createTimeLimit(timeout);
    const groups = this.#groups.get(route) ?? [];
    const what = `${route.method} ${route.path}`;
    const { path } = route;
    const overload = this.router.isReserved(route) ? null : this.#overload;
    const guard = overload?.guard(route);
    const own = route.handler as InputHandler;
    const given = overload === null ? own : overload.inTime(path, own);
    const mode = this.#validateResponses;
    const replying = mode === false ? given : checkReplies(what, schemas.response, mode === 'output', given);
    const isChecked = PARTS.some((part) => schemas[part] !== undefined);
    const handler = isChecked ? checkInput(what, schemas, replying) : (replying as Handler);
    const checked = params === null ? handler : checkQuery(handler, params);
    const inner = compose(
      [
        ...groups.flat(),
        ...(limit === undefined ? [] : [limit.within]),
        ...(limit === undefined || guard === undefined ? [] : [guard.hold]),
        // Where the option is declared its type is this one; `routing` knows no middleware.
        ...(middleware as readonly Middleware[]),
      ],
      checked,
    );
    // Inside application middleware, so that its headers (CORS) are on the 503 of a refused request, too.
    const composed = compose(this.#middleware, guard === undefined ? inner : guard.around(inner));
    const limited = limit === undefined ? composed : limit.around(composed);
    const run = typeof deprecated === 'object' ? compose([announce(deprecated)], limited) : limited;
    return { run, metrics: this.#metrics.forRoute(path) };
  }

  /** Answers a path or a method without a route: 404, 405, or the `Allow` of OPTIONS, inside the middleware. */
  #compileUnmatched(): CompiledRoute {
    const hasMiddleware = this.#middleware.length > 0;
    const handler: Handler = ({ method, target, scope }) => {
      const allowed = target.path === '*' ? ['OPTIONS'] : this.router.allowedMethods(target.path, scope);
      if (allowed.length === 0) return hasMiddleware ? errorMapper.routeNotFound() : errorMapper.ROUTE_NOT_FOUND;
      if (method === 'OPTIONS') return reply(undefined, { headers: { allow: allowed.join(', ') } });
      return notAllowed(method, allowed);
    };
    const guarded = this.#overload === null ? handler : this.#overload.guardOthers('', handler);
    return { run: compose(this.#middleware, guarded), metrics: this.#metrics.unmatched };
  }

  /** The refusal of an upgrade from the public; null if a public GET route is chosen. */
  refuseUpgrade({ method = '', url = '' }: IncomingMessage): HttpError | null {
    try {
      const { path } = parseTarget(url, method);
      if (method === 'GET' && this.router.match(method, path, 'public') !== null) return null;
      const allowed = this.router.allowedMethods(path, 'public');
      return allowed.length === 0 ? errorMapper.routeNotFound() : notAllowed(method, allowed);
    } catch (error) {
      return error as HttpError;
    }
  }
}

/** Runs the handler after its schemas, which are set up with the first request. */
function checkInput(what: string, schemas: AnySchemas, handler: InputHandler): Handler {
  let ready: Handler | undefined;
  const load = async (ctx: Context): Promise<HandlerResult> => {
    const { withInput } = await import('./checked-input.js');
    return (ready ??= withInput(what, schemas, handler))(ctx);
  };
  return (ctx) => (ready ?? load)(ctx);
}

/** The handler with its replies held to their schema. */
function checkReplies(
  what: string,
  response: MaybeResponse,
  sendsOutput: boolean,
  handler: InputHandler,
): InputHandler {
  if (response === undefined) return handler;
  return async (ctx, input) => {
    const { checkReply } = await import('./checked-reply.js');
    return checkReply(what, response, sendsOutput, await handler(ctx, input));
  };
}

/** Query parameters outside the allowed set (SPEC 7.3). */
class InvalidQueryParams extends BadRequest {
  static override errorCode = FrameworkErrorCodes.framework_invalid_query_params;
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

/**
 * Announces the end of a route with every reply, errors too: `Deprecation` (RFC 9745), `Sunset` (RFC 8594), and a `Link`
 * in addition to others. Headers that the reply has itself stay.
 */
function announce({ at, sunset, link }: Deprecation): Middleware {
  const own: [name: string, value: string][] = [];
  if (at !== undefined) own.push(['deprecation', `@${Math.floor(new Date(at).getTime() / 1000)}`]);
  if (sunset !== undefined) own.push(['sunset', new Date(sunset).toUTCString()]);
  const page = link === undefined ? undefined : `<${new URL(link).href}>; rel="deprecation"`;
  return async (ctx, next) => {
    const result = await next();
    const { headers } = result;
    if (Context.exchangeOf(ctx).res.headersSent) return result;
    for (const [name, value] of own) if (!headers.has(name)) headers.set(name, value);
    if (page !== undefined) headers.append('link', page);
    return result;
  };
}

/** The error for a method that a path has no route for (RFC 9110, section 15.5.6). */
function notAllowed(method: string, allowed: readonly string[]): HttpError {
  const allow = allowed.join(', ');
  return refusal(405, `${method} is not allowed here. Allowed: ${allow}`, { headers: { allow } });
}
