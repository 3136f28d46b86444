/*
 * Finds the route of a method and a path, and reports the public ones (SPEC 2.7).
 *
 * The table is here; where a path leads, the trie knows. The router knows patterns, methods and flags, never requests.
 */

import { HttpError } from '../errors.js';
import type { Constraint } from './constraint.js';
import { NO_PARAMS, ParamValues, type Params } from './params.js';
import { assertMethod } from './method.js';
import { compilePath } from './pattern.js';
import { toRecord, type DeclaredOptions, type RouteRecord } from './route-options.js';
import { toPlain, Trie } from './trie.js';

export type { Params } from './params.js';

/** What {@link Router.find} found. */
export interface Found<Handler> {
  readonly handler: Handler;
  readonly params: Params;
}

/** One row of {@link Router.routes}. */
export interface RouteInfo {
  readonly method: string;
  /** As registered: `/users/:id`. */
  readonly path: string;
  /** Anchored at both ends: `^/users/([^/]+)$`. */
  readonly pattern: string;
  readonly public: boolean;
  /** Allowed query parameters; null when any are. */
  readonly params: readonly string[] | null;
  /** The route option of that name, where it was given. */
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** Public methods of each pattern, in alphabetical order. */
export type RoutesPublic = Record<string, { public_methods: string[] }>;

/** What a request may know of its route. */
export interface MatchedRoute extends Pick<RouteInfo, 'method' | 'path' | 'pattern' | 'public'> {
  /** The route option of that name; empty where it was not given. */
  readonly meta: Readonly<Record<string, unknown>>;
}

/** One registered route. */
export interface Route<Handler = unknown> {
  /** Its place in {@link Router.entries}. @internal */
  readonly index: number;
  readonly method: string;
  readonly path: string;
  readonly pattern: string;
  readonly handler: Handler;
  /** @internal */
  readonly options: RouteRecord;
  /** What requests know of it. @internal */
  readonly matched: MatchedRoute;
}

/** A route with the parameters of one path. @internal */
export interface Match<Handler> {
  readonly route: Route<Handler>;
  readonly params: Params;
}

const NO_META: Readonly<Record<string, unknown>> = Object.freeze({});

/** A table of routes. Routes may be added at any time. */
export class Router<Handler = unknown> {
  readonly #methods = new Set<string>();
  readonly #routes: Route<Handler>[] = [];
  // What a look-up needs of each route, side by side: of ten thousand routes, few are in the cache of the processor.
  readonly #handlers: Handler[] = [];
  readonly #paramNames: (readonly string[])[] = [];
  readonly #trie = new Trie();
  /** Where each pattern ends in the trie, in order of its first registration. */
  readonly #ends = new Map<string, number>();
  readonly #reserved = new Set<string>();
  /** Lists of names, by their text; routes of one list share it, so that a look-up finds it in the cache. */
  readonly #nameLists = new Map<string, readonly string[]>();
  readonly #constraints = new Map<string, Constraint>();

  /**
   * Adds a route; its options and the flag of `publicFacing` are read off the handler.
   *
   * @param method any of `http.METHODS`, upper-case
   * @throws {TypeError} when the path is invalid, a constraint could backtrack without a bound, the method is unknown,
   * or the pattern has the method already or is reserved
   */
  add(method: string, path: string, handler: Handler): Route<Handler> {
    return this.register(method, path, handler);
  }

  /**
   * As {@link add}, with options that beat those of the handler.
   *
   * @param source the handler that carries options, where it is not the one that runs
   * @throws {TypeError} as `add` does, and for an invalid option
   * @internal
   */
  register(
    method: string,
    path: string,
    handler: Handler,
    options?: DeclaredOptions,
    source: unknown = handler,
  ): Route<Handler> {
    assertMethod(method);
    const { pattern, segments, paramNames } = compilePath(path, this.#constraints);
    if (this.#reserved.has(pattern))
      throw new TypeError(`${path} is a monitoring endpoint; use another path, or attachMonitorEndpoints: false`);
    const record = toRecord(`${method} ${path}`, source, options);
    let end = this.#ends.get(pattern);
    if (end === undefined) this.#ends.set(pattern, (end = this.#trie.insert(segments)));
    const existing = this.#routes[this.#trie.get(end, method)];
    if (existing !== undefined)
      throw new TypeError(`${method} ${path} is registered already, as ${method} ${existing.path}; remove one`);
    const { public: isOpen, meta = NO_META } = record;
    const matched = Object.freeze({ method, path, pattern, public: isOpen, meta });
    const route = { index: this.#routes.length, method, path, pattern, handler, options: record, matched };
    this.#trie.set(end, method, this.#routes.push(route) - 1);
    this.#methods.add(method);
    this.#handlers.push(handler);
    this.#paramNames.push(this.#shared(paramNames));
    return route;
  }

  /** Adds the only route of a pattern: a monitoring endpoint. @internal */
  reserve(method: string, path: string, handler: Handler): Route<Handler> {
    const route = this.register(method, path, handler);
    this.#reserved.add(route.pattern);
    return route;
  }

  /** Whether a route is a monitoring endpoint. @internal */
  isReserved({ pattern }: { readonly pattern: string }): boolean {
    return this.#reserved.has(pattern);
  }

  /**
   * Finds the handler of a method and a percent-encoded path; HEAD finds GET.
   *
   * @throws {HttpError} 400 when the path has a malformed escape
   */
  find(method: string, path: string): Found<Handler> | null {
    const encoded = isEncoded(path);
    const text = encoded ? respell(path) : path;
    const route = this.#trie.search(text, method);
    return route === -1
      ? null
      : { handler: this.#handlers[route] as Handler, params: this.#paramsOf(route, text, encoded) };
  }

  /**
   * As {@link find}, with the route itself.
   *
   * @throws {HttpError} 400 when the path has a malformed escape
   * @internal
   */
  match(method: string, path: string): Match<Handler> | null {
    const encoded = isEncoded(path);
    const text = encoded ? respell(path) : path;
    const route = this.#trie.search(text, method);
    return route === -1
      ? null
      : { route: this.#routes[route] as Route<Handler>, params: this.#paramsOf(route, text, encoded) };
  }

  /**
   * Methods that any route of this path answers, sorted: the value of `Allow` (RFC 9110, section 15.5.6).
   * OPTIONS is among them as soon as there is one, HEAD as soon as there is GET; without any route the list is empty.
   *
   * @throws {HttpError} 400 when the path has a malformed escape
   */
  allowedMethods(path: string): string[] {
    const found = this.#trie.methods(isEncoded(path) ? respell(path) : path);
    if (found.length === 0) return [];
    const methods = new Set(found).add('OPTIONS');
    if (methods.has('GET')) methods.add('HEAD');
    return [...methods].sort();
  }

  /** Those that any route has. @internal */
  get methods(): ReadonlySet<string> {
    return this.#methods;
  }

  /** Every route, in order of registration. */
  get routes(): RouteInfo[] {
    return this.#routes.map(({ method, path, pattern, options: { public: isOpen, params, meta } }) => ({
      method,
      path,
      pattern,
      public: isOpen,
      params,
      ...(meta === undefined ? {} : { meta }),
    }));
  }

  /** Every route as the router holds it, in order of registration. @internal */
  get entries(): readonly Route<Handler>[] {
    return this.#routes;
  }

  /** The public methods of each pattern (SPEC 2.7), patterns in order of their first registration. */
  get routesPublic(): RoutesPublic {
    const byPattern = new Map([...this.#ends.keys()].map((pattern): [string, string[]] => [pattern, []]));
    for (const route of this.#routes) if (route.options.public) byPattern.get(route.pattern)?.push(route.method);
    const result: RoutesPublic = {};
    for (const [pattern, methods] of byPattern)
      if (methods.length > 0) result[pattern] = { public_methods: methods.sort() };
    return result;
  }

  #shared(names: readonly string[]): readonly string[] {
    const key = names.join('/');
    const known = this.#nameLists.get(key);
    if (known === undefined) this.#nameLists.set(key, names);
    return known ?? names;
  }

  /** The parameters of the path that the trie has just found a route for. */
  #paramsOf(route: number, text: string, encoded: boolean): Params {
    const names = this.#paramNames[route] as readonly string[];
    if (names.length === 0) return NO_PARAMS;
    const params = new ParamValues();
    for (let i = 0; i < names.length; i += 1) {
      const value = this.#trie.param(text, i);
      params[names[i] as string] = encoded ? toPlain(value) : value;
    }
    return params;
  }
}

/**
 * A percent-encoded path, decoded.
 *
 * @throws {HttpError} 400 when an escape is malformed or is no UTF-8
 *
 * @internal
 */
export function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new HttpError(400, 'The path has a malformed percent-escape.');
  }
}

function isEncoded(path: string): boolean {
  return path.includes('%') && path.startsWith('/');
}

/**
 * A percent-encoded path in the spelling of the trie: no escape but `%2F` hides a slash, and none hides static text.
 *
 * @throws {HttpError} 400 when an escape is malformed or is no UTF-8
 */
function respell(path: string): string {
  const decoded = decodePath(path);
  if (!/%2[5F]/i.test(path)) return decoded;
  return path
    .split('/')
    .map((segment) => decodeURIComponent(segment).replace(/[%/]/g, encodeURIComponent))
    .join('/');
}
