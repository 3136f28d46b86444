/*
 * Routes as the pipeline runs them: each handler with the query check and the middleware around it.
 *
 * Decisions that only depend on the route are not made again for each request: a route is compiled once, when it is
 * first used.
 */

import type { IncomingMessage } from 'node:http';
import { Date } from '../base/clock.js';
import { HttpError, InvalidQueryParams, refusal } from '../base/errors.js';
import { createFirsts } from '../base/firsts.js';
import { logSafely, OwnLog } from '../base/log.js';
import { Context, type Handler, type Middleware } from './context.js';
import { scopeOf, type Scope } from '../wire/scope.js';
import { ROUTE_NOT_FOUND, routeNotFound } from './errors.js';
import { letResultFail, reply } from './reply.js';
import { parseTarget } from './target.js';
import type { Overload } from '../overload/overload.js';
import { Admissions, clientLeft, Gate, hold } from './gate.js';
import { compose } from './middleware.js';
import type { ConnectMiddleware } from './connect.js';
import { addMount, findMount, type Mount, mountMiddleware } from './mounts.js';
import { type InputHandler, withInput, withReply } from './schema-checks.js';
import { TimeLimit } from './time-limit.js';
import type { Deprecation } from '../endpoint/route-options.js';
import { NO_PARAMS, type Match, type Route, type Router } from '../routing/router.js';
import { PARTS } from '../endpoint/schemas.js';

/** A route as requests run it. */
interface CompiledRoute {
  readonly run: Handler;
  /** The value of the label `route`. */
  readonly label: string;
}

/** Middleware of the groups around a route, outermost first. The lists may grow until the routes are recompiled. */
export type Groups = readonly (readonly Middleware[])[];

/** A route or another answer to a request, as it runs. */
interface Found extends Match<Handler> {
  readonly compiled: CompiledRoute;
}

/** The routes of one listener with their middleware. */
export class CompiledRoutes {
  readonly #middleware: Middleware[] = [];
  readonly #groups = new Map<Route<Handler>, Groups>();
  /** The compiled form of each route and mount, and of the errors 404 and 405, by the groups around them or null. */
  readonly #compiled = new Map<Route<Handler> | Mount | Groups | null, CompiledRoute>();
  /** Kept when routes are compiled again: their limiters know what the routes can take. */
  readonly #gates = new Map<Route<Handler>, Gate>();
  readonly #mounts: Mount[] = [];
  readonly #admissions: Admissions | null;
  readonly #isFirstCall = createFirsts();

  /** @param overload null to refuse no request */
  constructor(
    readonly router: Router<Handler>,
    overload: Overload | null,
    readonly validateResponses: boolean | 'output',
  ) {
    this.#admissions = overload && new Admissions(overload);
  }

  /**
   * Checks a route inside groups, and returns the function that adds it. Throws as {@link Router.prepare} does.
   *
   * @internal
   */
  prepare(groups: Groups, ...route: Parameters<Router<Handler>['prepare']>): () => void {
    const add = this.router.prepare(...route);
    return () => this.#groups.set(add(), groups);
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

  /**
   * Finds what answers a method and a path: a route, a mount, or the errors 404 and 405 inside the groups of the best
   * route of the path. A path with a malformed escape has none of them, but its 400.
   */
  find(req: IncomingMessage, method: string, path: string, scope: Scope): Found {
    try {
      const { route, params } = this.router.match(method, path, scope);
      if (route === null) return this.#findOther(req, method, path, scope);
      let compiled = this.#compiled.get(route);
      if (compiled === undefined) this.#compiled.set(route, (compiled = this.#compile(route)));
      return { route, params, compiled };
    } catch (malformed) {
      const run = compose(this.#middleware, () => {
        throw malformed;
      });
      return { route: null, params: NO_PARAMS, compiled: { run, label: '' } };
    }
  }

  #findOther({ headers }: IncomingMessage, method: string, path: string, scope: Scope): Found {
    // The public reaches no mount.
    const mount = scope === undefined && this.#mounts.length > 0 ? findMount(this.#mounts, path) : undefined;
    // Before a browser sends some methods it asks whether it may (Fetch, "CORS-preflight fetch").
    const wanted = method === 'OPTIONS' ? headers['access-control-request-method'] : undefined;
    const { route, params } = this.router.nearest(path, scope, wanted);
    const groups = route === null ? [] : (this.#groups.get(route) ?? []);
    const source = mount ?? (groups.some(({ length }) => length > 0) ? groups : null);
    let compiled = this.#compiled.get(source);
    if (compiled === undefined) this.#compiled.set(source, (compiled = this.#compileOther(source)));
    return { route: null, params: mount === undefined ? params : NO_PARAMS, compiled };
  }

  #compile(route: Route<Handler>): CompiledRoute {
    const { method, path, options, exposure } = route;
    const { timeout, deprecated, response } = options;
    const what = `${method} ${path}`;
    const guard = this.#gateOf(route);
    const limit = timeout === undefined ? undefined : new TimeLimit(timeout);

    const middleware = this.#groups.get(route)?.flat() ?? [];
    if (limit !== undefined) middleware.push(limit.within);
    if (limit !== undefined && guard !== undefined) middleware.push(hold);
    // Where the option is declared its type is this one; `routing` knows no middleware.
    middleware.push(...((options.middleware ?? []) as readonly Middleware[]));
    const hasInput = PARTS.some((part) => options[part] !== undefined);

    let handler: InputHandler = route.handler;
    // Before it begins and after it has returned, something may happen meanwhile.
    if (hasInput || middleware.length + this.#middleware.length > 0 || this.validateResponses !== false)
      handler = lateHandler(handler);
    // Otherwise the handler begins as soon as its request is admitted, in time.
    if (guard !== undefined && (hasInput || middleware.length > 0)) handler = guard.inTime(handler);
    const mode = this.validateResponses;
    if (mode !== false && response !== undefined) handler = withReply(what, response, mode, handler);
    if (hasInput) handler = withInput(what, options, handler);
    if (exposure.params !== null) handler = checkQuery(handler, exposure.params);

    const inner = compose(middleware, handler);
    // Inside application middleware, so that its headers (CORS) are on the 503 of a refused request, too.
    const composed = compose(this.#middleware, guard === undefined ? inner : guard.around(inner));
    const limited = limit === undefined ? composed : limit.around(composed);
    const announced = typeof deprecated === 'object' ? compose([announce(deprecated)], limited) : limited;
    return { run: deprecated ? this.#reportCallers(route, announced) : announced, label: path };
  }

  /** Logs who calls a deprecated route, once for each caller: somebody has to ask them to stop. */
  #reportCallers({ method, path }: Route<Handler>, run: Handler): Handler {
    return (ctx) => {
      const { id, caller } = ctx;
      if (this.#isFirstCall(`${method} ${path} ${caller?.name ?? ''}`)) {
        const entry = { method, route: path, request_id: id, ...(caller && { caller: caller.name }) };
        const logger = new OwnLog(ctx.log, Context.optionsOf(ctx).story.note);
        logSafely(logger, 'warn', entry, 'a deprecated route is called');
      }
      return run(ctx);
    };
  }

  /** The gate of a route; undefined if its requests are never refused. */
  #gateOf(route: Route<Handler>): Gate | undefined {
    let gate = this.#gates.get(route);
    if (gate === undefined && this.#admissions !== null && !route.isMonitoring)
      this.#gates.set(route, (gate = new Gate(this.#admissions, route)));
    return gate;
  }

  /** Compiles what answers without a route: a mount, or the errors 404 and 405 inside groups; null for no groups. */
  #compileOther(source: Mount | Groups | null): CompiledRoute {
    const isMount = source !== null && 'prefix' in source;
    const label = isMount ? `${source.prefix}/*` : '';
    const handler = isMount
      ? compose([mountMiddleware(source)], routeNotFound)
      : compose(source?.flat() ?? [], this.#refuse);
    const isExempt: Router['isReserved'] = (target) => this.router.isReserved(target);
    const guarded = this.#admissions?.guardOthers(label, handler, isExempt) ?? handler;
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
    // `new URL('//a/b', base)` takes `a` for a host, so its listener would see another path.
    if (url.startsWith('//')) return routeNotFound();
    const allowed = this.router.allowedMethods(path, 'public');
    if (method === 'GET' && allowed.includes('GET')) return null;
    return allowed.length === 0 ? routeNotFound() : notAllowed(method, allowed);
  }
}

/** Begins no handler whose client has left meanwhile, and lets a stream that it returns fail before it is read. */
function lateHandler(handler: InputHandler): InputHandler {
  return (ctx, input) => {
    if (ctx.isAborted) throw clientLeft();
    const result = handler(ctx, input);
    letResultFail(result);
    return result;
  };
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
  return async ({ exchange }, next) => {
    const { res } = exchange;
    const addToRaw = (): void => {
      if (exchange.outgoing !== null) return;
      for (const [name, value] of own) if (!res.hasHeader(name)) res.setHeader(name, value);
      if (page !== undefined) res.appendHeader('link', page);
    };
    exchange.onHead = [...exchange.onHead, addToRaw];
    const result = await next();
    const { headers } = result;
    if (res.headersSent) return result;
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
