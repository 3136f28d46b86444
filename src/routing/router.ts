/*
 * Finds the route of a method and a path, and reports the public ones (SPEC 2.7).
 *
 * The table is here; the trie finds paths in it. The router knows patterns, methods and flags, never requests.
 */

import { HttpError } from '../base/errors.js';
import type { Constraint } from '../endpoint/constraint.js';
import { assertMethod } from '../endpoint/endpoint-definition.js';
import { compilePath, formatPattern } from '../endpoint/pattern.js';
import type { Exposure } from '../endpoint/public-facing.js';
import { readDeclaration, type DeclaredOptions } from '../endpoint/route-options.js';
import { assertHeaderNames, assertParameters, inputOf } from '../payload/json-schema.js';
import { propsOf } from '../payload/standard-schema.js';
import { Trie } from './trie.js';

/** One row of `router.routes`. */
export interface RouteInfo {
  /** The method, upper-case. */
  readonly method: string;
  /** As registered: `/users/:id`. */
  readonly path: string;
  /** Anchored at both ends: `^/users/([^/]+)$`. */
  readonly pattern: string;
  /** Whether the public may use the route. */
  readonly public: boolean;
  /** Allowed query parameters; null when any are. */
  readonly params: readonly string[] | null;
  /** The route option of that name, where it was given. */
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** Properties of a route that a request may see. */
export interface MatchedRoute extends Pick<RouteInfo, 'method' | 'path' | 'pattern' | 'public'> {
  /** The route option of that name; empty where it was not given. */
  readonly meta: Readonly<Record<string, unknown>>;
}

const NO_META: Readonly<Record<string, unknown>> = Object.freeze({});

/** One registered route. */
export class Route<Handler = unknown> {
  /** Whether the route is a monitoring endpoint. @internal */
  isMonitoring = false;
  /** The part that requests see. @internal */
  readonly matched: MatchedRoute;

  /** @internal */
  constructor(
    /** The method, upper-case. */
    readonly method: string,
    /** As registered: `/users/:id`. */
    readonly path: string,
    pattern: string,
    /** The handler that was added. */
    readonly handler: Handler,
    /** @internal */
    readonly options: DeclaredOptions,
    /** @internal */
    readonly exposure: Exposure,
    /** @internal */
    readonly paramNames: readonly string[],
  ) {
    this.matched = Object.freeze({ method, path, pattern, public: exposure.public, meta: options.meta ?? NO_META });
  }

  /** Anchored at both ends: `^/users/([^/]+)$`. */
  get pattern(): string {
    return this.matched.pattern;
  }
}

/** Parameters of one matched path, percent-decoded; the object does not inherit from `Object.prototype`. */
export type Params = Readonly<Record<string, string>>;

/** Result of {@link Router.find}. */
export interface Found<Handler> {
  /** The handler of the best route. */
  readonly handler: Handler;
  /** The parameters of the path, percent-decoded. */
  readonly params: Params;
}

/** Public methods of each pattern, in alphabetical order. */
export type RoutesPublic = Record<string, { public_methods: string[] }>;

/** A route with the parameters of one path; null without parameters if no route was found. */
export interface Match<Handler> {
  readonly route: Route<Handler> | null;
  readonly params: Params;
}

/** Names come from route authors, values from clients: neither may meet `Object.prototype`. */
class ParamValues {
  [name: string]: string;
}
Reflect.deleteProperty(ParamValues.prototype, 'constructor');
Object.setPrototypeOf(ParamValues.prototype, null);

/** The parameters of a path that has none. */
export const NO_PARAMS: Params = Object.freeze(new ParamValues());
const NO_MATCH: Match<never> = { route: null, params: NO_PARAMS };

/** A table of routes. Routes may be added at any time. */
export class Router<Handler = unknown> {
  /** Methods that at least one route has. @internal */
  readonly methods: Set<string> = new Set();
  /** Every route as the router holds it, in order of registration. @internal */
  readonly entries: Route<Handler>[] = [];
  readonly #trie = new Trie<Route<Handler>>();
  /** Routes by method and pattern: `:a(.+)` and `:b` have one pattern, but two places in the trie. */
  readonly #byPattern = new Map<string, Route<Handler>>();
  /** Paths of monitoring endpoints. */
  readonly #reserved = new Set<string>();
  readonly #constraints = new Map<string, Constraint>();

  /**
   * Adds a route; its options and the flag of `publicFacing` are read off the handler.
   *
   * @param method any of `http.METHODS`, upper-case
   * @throws {TypeError} when the path is invalid, a constraint could backtrack without a bound, the method is unknown,
   * or the pattern has the method already or is reserved
   */
  add(method: string, path: string, handler: Handler): Route<Handler> {
    if (handler === undefined) throw new TypeError(`${method} ${path} has no handler; give it as the third argument`);
    return this.prepare(method, path, handler)();
  }

  /**
   * Checks a route, and returns the function that adds it, which throws no more: of several routes of one path, all are
   * added or none.
   *
   * @param options override the handler's
   * @param shared defaults of its groups, checked
   * @throws {TypeError} as {@link add} does, and for an invalid option
   * @internal
   */
  prepare(
    method: string,
    path: string,
    handler: Handler,
    options?: DeclaredOptions,
    shared?: DeclaredOptions,
  ): () => Route<Handler> {
    assertMethod(method);
    const segments = compilePath(path, this.#constraints);
    if (this.#reserved.has(path))
      throw new TypeError(`${path} is a monitoring endpoint; use another path, or attachMonitorEndpoints: false`);
    const [declared, exposure] = readDeclaration(`${method} ${path}`, handler, options, shared);
    const names = segments.flatMap((segment) => (segment.kind === 'static' ? [] : [segment.name]));
    const [params, headers] = [propsOf(declared.params), propsOf(declared.headers)];
    if (params !== undefined) assertParameters(`${method} ${path}`, inputOf(params), names);
    if (headers !== undefined) assertHeaderNames(`${method} ${path}`, inputOf(headers));
    const pattern = formatPattern(segments);
    const key = `${method} ${pattern}`;
    const existing = this.#byPattern.get(key);
    if (existing !== undefined)
      throw new TypeError(`${method} ${path} is registered already, as ${method} ${existing.path}; remove one`);
    const route = new Route(method, path, pattern, handler, declared, exposure, names);
    return () => {
      this.#trie.add(segments, method, route);
      this.#byPattern.set(key, route);
      this.entries.push(route);
      this.methods.add(method);
      return route;
    };
  }

  /** Adds the only route of a path without parameters, a monitoring endpoint; null: another listener has it. @internal */
  reserve(method: string, path: string, handler: Handler | null): void {
    if (handler !== null) this.prepare(method, path, handler)().isMonitoring = true;
    this.#reserved.add(path);
  }

  /** Whether a path is one of a monitoring endpoint. @internal */
  isReserved({ path }: { readonly path: string }): boolean {
    return this.#reserved.has(path);
  }

  /**
   * Finds the handler of a method and a percent-encoded path; HEAD finds GET.
   *
   * @throws {HttpError} 400 when the path has a malformed escape
   */
  find(method: string, path: string): Found<Handler> | null {
    const { route, params } = this.match(method, path);
    return route === null ? null : { handler: route.handler, params };
  }

  /**
   * Finds as {@link find} does, and returns the route itself.
   *
   * @param scope `'public'` finds no route that is not public
   * @throws {HttpError} 400 when the path has a malformed escape
   * @internal
   */
  match(method: string, path: string, scope?: 'public'): Match<Handler> {
    const text = path.includes('%') ? respell(path) : path;
    const route = this.#search(text, method, scope);
    if (route === undefined) return NO_MATCH;
    const { paramNames } = route;
    if (paramNames.length === 0) return { route, params: NO_PARAMS };
    const params = new ParamValues();
    for (let i = 0; i < paramNames.length; i += 1) params[paramNames[i] as string] = this.#trie.param(text, i);
    return { route, params };
  }

  /**
   * Methods that any route of this path answers, sorted: the value of `Allow` (RFC 9110, section 15.5.6).
   * OPTIONS is among them as soon as there is one, HEAD as soon as there is GET; without any route the list is empty.
   *
   * @param scope `'public'` leaves out the methods for which a private route is chosen
   * @throws {HttpError} 400 when the path has a malformed escape
   */
  allowedMethods(path: string, scope?: 'public'): string[] {
    const text = path.includes('%') ? respell(path) : path;
    const methods = this.#trie.methods(text);
    if (methods.has('GET')) methods.add('HEAD');
    if (scope !== undefined)
      for (const method of methods) if (this.#search(text, method, scope) === undefined) methods.delete(method);
    return methods.size === 0 ? [] : [...methods.add('OPTIONS')].sort();
  }

  /**
   * Finds the best of the routes that match a path, whatever their methods.
   *
   * @param wanted a method whose route is found before, if there is one
   * @throws {HttpError} 400 when the path has a malformed escape
   * @internal
   */
  nearest(path: string, scope: 'public' | undefined, wanted = ''): Match<Handler> {
    const text = path.includes('%') ? respell(path) : path;
    // The search adds the methods of the best path first.
    for (const method of [wanted, ...this.#trie.methods(text)])
      if (method !== '' && this.#search(text, method, scope) !== undefined) return this.match(method, path, scope);
    return NO_MATCH;
  }

  /** Every route, in order of registration. */
  get routes(): RouteInfo[] {
    return this.entries.map(({ method, path, pattern, exposure, options: { meta } }) => ({
      method,
      path,
      pattern,
      ...exposure,
      ...(meta === undefined ? {} : { meta }),
    }));
  }

  /** The public methods of each pattern, patterns in order of their first registration. */
  get routesPublic(): RoutesPublic {
    const byPattern = new Map(this.entries.map(({ pattern }): [string, string[]] => [pattern, []]));
    for (const route of this.entries) if (route.exposure.public) byPattern.get(route.pattern)?.push(route.method);
    const result: RoutesPublic = {};
    for (const [pattern, methods] of byPattern)
      if (methods.length > 0) result[pattern] = { public_methods: methods.sort() };
    return result;
  }

  #search(text: string, method: string, scope: 'public' | undefined): Route<Handler> | undefined {
    const route = this.#trie.find(text, method);
    return scope === undefined || route?.exposure.public === true ? route : undefined;
  }
}

/**
 * A percent-encoded path, decoded.
 *
 * @throws {HttpError} 400 when an escape is malformed or is not UTF-8
 */
export function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new HttpError(400, 'The path has a malformed percent-escape.');
  }
}

/** A path in the spelling of the trie: no escape but `%2F` hides a slash, and none hides static text. */
function respell(path: string): string {
  if (!path.startsWith('/')) return path;
  const decoded = decodePath(path);
  if (!/%2[5F]/i.test(path)) return decoded;
  return path
    .split('/')
    .map((segment) => decodeURIComponent(segment).replace(/[%/]/g, encodeURIComponent))
    .join('/');
}
