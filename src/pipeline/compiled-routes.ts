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
import { Context, type Handler, type Middleware } from '../http/context.js';
import { scopeOf, type Scope } from '../http/scope.js';
import { ROUTE_NOT_FOUND, routeNotFound } from '../http/error-mapper.js';
import { reply } from '../http/reply.js';
import { parseTarget } from '../http/request.js';
import type { Overload } from '../overload/overload.js';
import { hold, RouteGuard } from '../overload/route-guard.js';
import { compose } from './middleware.js';
import type { ConnectMiddleware } from './connect.js';
import { addMount, findMount, type Mount, mountMiddleware } from './mounts.js';
import { type InputHandler, withInput, withReply } from './schema-checks.js';
import { TimeLimit } from './time-limit.js';
import type { Deprecation } from '../endpoint/route-options.js';
import { Route, type Router } from '../routing/router.js';
import { PARTS } from '../endpoint/schemas.js';

/** A route as requests run it. */
export interface CompiledRoute {
  readonly run: Handler;
  /** The value of the label `route`. */
  readonly label: string;
}

/** Middleware of the groups around a route, outermost first. The lists may grow until the routes are recompiled. */
export type Groups = readonly (readonly Middleware[])[];

/** The routes of one listener with their middleware. */
export class CompiledRoutes {
  readonly #middleware: Middleware[] = [];
  readonly #groups = new Map<Route<Handler>, Groups>();
  /** The compiled form of each route and mount, and of the errors 404 and 405, by null. */
  readonly #compiled = new Map<Route<Handler> | Mount | null, CompiledRoute>();
  readonly #mounts: Mount[] = [];

  /** @param overload null to refuse no request */
  constructor(
    readonly router: Router<Handler>,
    readonly overload: Overload | null,
    readonly validateResponses: boolean | 'output',
  ) {}

  /** Adds a route inside groups; the rest is what {@link Router.register} takes. @internal */
  add(groups: Groups, ...route: Parameters<Router<Handler>['register']>): void {
    this.#groups.set(this.router.register(...route), groups);
  }

  /** Adds middleware around every request. */
  use(middleware: Middleware): void {
    this.#middleware.push(middleware);
    this.recompile();
  }

  /** Makes every route compile again on its next use, after middleware was added. */
  recompile(): void {
    this.#compiled.clear();
  }

  /**
   * Lets a listener answer the requests below a prefix that no route answers, except those from the public.
   *
   * @throws {TypeError} as `addMount` does
   */
  mount(prefix: string, listener: ConnectMiddleware): void {
    addMount(this.#mounts, prefix, listener);
  }

  /** The compiled form of a route; without a route, of the mount of a path, or of the errors 404 and 405. */
  of(route: Route<Handler> | null, path: string, scope: Scope): CompiledRoute {
    let source: Route<Handler> | Mount | null = route;
    // The public reaches no mount.
    if (route === null && scope === undefined && this.#mounts.length > 0)
      source = findMount(this.#mounts, path) ?? null;
    const known = this.#compiled.get(source);
    if (known !== undefined) return known;
    const compiled = source instanceof Route ? this.#compile(source) : this.#compileOther(source);
    this.#compiled.set(source, compiled);
    return compiled;
  }

  #compile(route: Route<Handler>): CompiledRoute {
    const { method, path, options } = route;
    const { params, schemas, timeout, deprecated } = options;
    const what = `${method} ${path}`;
    const overload = this.router.isReserved(route) ? null : this.overload;
    const guard = overload === null ? undefined : new RouteGuard(overload, route);
    const limit = timeout === undefined ? undefined : new TimeLimit(timeout);

    let handler: InputHandler = route.handler;
    if (guard !== undefined) handler = guard.inTime(handler);
    const mode = this.validateResponses;
    if (mode !== false && schemas.response !== undefined)
      handler = withReply(what, schemas.response, mode, handler);
    if (PARTS.some((part) => schemas[part] !== undefined)) handler = withInput(what, schemas, handler);
    if (params !== null) handler = checkQuery(handler, params);

    const middleware = this.#groups.get(route)?.flat() ?? [];
    if (limit !== undefined) middleware.push(limit.within);
    if (limit !== undefined && guard !== undefined) middleware.push(hold);
    // Where the option is declared its type is this one; `routing` knows no middleware.
    middleware.push(...(options.middleware as readonly Middleware[]));
    const inner = compose(middleware, handler);
    // Inside application middleware, so that its headers (CORS) are on the 503 of a refused request, too.
    const composed = compose(this.#middleware, guard === undefined ? inner : guard.around(inner));
    const limited = limit === undefined ? composed : limit.around(composed);
    const run = typeof deprecated === 'object' ? compose([announce(deprecated)], limited) : limited;
    return { run, label: path };
  }

  /** Compiles what answers without a route: a mount; null for the errors 404 and 405. */
  #compileOther(mount: Mount | null): CompiledRoute {
    const label = mount === null ? '' : `${mount.prefix}/*`;
    const handler =
      mount === null ? this.#refuse : compose([mountMiddleware(mount)], routeNotFound);
    const isExempt: Router['isReserved'] = (target) => this.router.isReserved(target);
    const guarded = this.overload?.guardOthers(label, handler, isExempt) ?? handler;
    return { run: compose(this.#middleware, guarded), label };
  }

  /** Answers a path or a method without a route: 404, 405, or the `Allow` of OPTIONS, inside the middleware. */
  readonly #refuse: Handler = ({ method, target, scope }) => {
    const allowed = target.path === '*' ? ['OPTIONS'] : this.router.allowedMethods(target.path, scope);
    if (allowed.length === 0)
      return this.#middleware.length > 0 ? routeNotFound() : ROUTE_NOT_FOUND;
    if (method === 'OPTIONS') return reply(undefined, { headers: { allow: allowed.join(', ') } });
    return notAllowed(method, allowed);
  };

  /** The refusal of an upgrade; null if its listeners may have it. @throws {HttpError} 400 for a malformed target */
  refuseUpgrade(req: IncomingMessage): HttpError | null {
    const { method = '', url = '' } = req;
    const { path } = parseTarget(url, method);
    if (scopeOf(req) === undefined) return null;
    const allowed = this.router.allowedMethods(path, 'public');
    if (method === 'GET' && allowed.includes('GET')) return null;
    return allowed.length === 0 ? routeNotFound() : notAllowed(method, allowed);
  }
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
    for (const name of ctx.query.keys()) if (!names.has(name)) throw new InvalidQueryParams(description);
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
