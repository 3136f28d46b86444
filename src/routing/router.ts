/**
 * Finds the route of a method and a path, and reports the public ones (SPEC 2.7).
 *
 * Static paths are found by one map look-up, the others in a trie over segments, whose constraints alone are regular
 * expressions; so a look-up costs the same with ten routes as with ten thousand. The router knows patterns, methods and
 * flags, never requests.
 */

import { METHODS } from 'node:http';
import { HttpError } from '../errors.js';
import { isPublic } from '../public-facing.js';
import type { Constraint } from './constraint.js';
import { compilePath, type CompiledPath, type Segment } from './pattern.js';

/** Parameters of one matched path, percent-decoded; the object has no `Object.prototype` behind it. */
export type Params = Readonly<Record<string, string>>;

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
}

/** Public methods of each pattern, in alphabetical order. */
export type RoutesPublic = Record<string, { public_methods: string[] }>;

/**
 * One registered route.
 *
 * `compiled` is the owner's: what it made of the handler when the route was first used. The router never reads it.
 */
export class Route<Handler = unknown, Compiled = unknown> implements RouteInfo {
  compiled: Compiled | undefined = undefined;
  readonly public: boolean;
  readonly params: readonly string[] | null;
  readonly paramNames: readonly string[];
  readonly pattern: string;
  /** The match of a path without parameters, made once. */
  readonly plainMatch: Match<Handler, Compiled>;

  /** @internal */
  constructor(
    readonly method: string,
    readonly path: string,
    compiledPath: CompiledPath,
    readonly handler: Handler,
  ) {
    this.pattern = compiledPath.pattern;
    this.paramNames = compiledPath.paramNames;
    this.public = isPublic(handler);
    this.params = isPublic(handler) ? handler.params : null;
    this.plainMatch = { route: this, params: NO_PARAMS };
  }
}

/** A route with the parameters of one path. */
export interface Match<Handler, Compiled> {
  readonly route: Route<Handler, Compiled>;
  readonly params: Params;
}

/** The routes of one pattern, by method. */
type Leaf<Handler, Compiled> = Map<string, Route<Handler, Compiled>>;

interface Node<Handler, Compiled> {
  statics: Map<string, Node<Handler, Compiled>> | null;
  constrained: { readonly constraint: Constraint; readonly node: Node<Handler, Compiled> }[] | null;
  param: Node<Handler, Compiled> | null;
  wildcard: Leaf<Handler, Compiled> | null;
  leaf: Leaf<Handler, Compiled> | null;
}

/** Names of parameters come from route authors, values from clients: neither may meet `Object.prototype`. */
class ParamValues {
  [name: string]: string;
}
Reflect.deleteProperty(ParamValues.prototype, 'constructor');
Object.setPrototypeOf(ParamValues.prototype, null);

const NO_PARAMS: Params = Object.freeze(new ParamValues());
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);

/** A table of routes. Routes may be added at any time. */
export class Router<Handler = unknown, Compiled = unknown> {
  readonly #routes: Route<Handler, Compiled>[] = [];
  readonly #byPattern = new Map<string, Leaf<Handler, Compiled>>();
  readonly #static = new Map<string, Leaf<Handler, Compiled>>();
  readonly #root: Node<Handler, Compiled> = createNode();
  readonly #constraints = new Map<string, Constraint>();

  /**
   * Adds a route; the flag of {@link publicFacing} is read off the handler.
   *
   * @param method any of `http.METHODS`, upper-case
   * @throws {TypeError} when the path is invalid, a constraint could backtrack without a bound, the method is unknown,
   * or the pattern has the method already
   */
  add(method: string, path: string, handler: Handler): Route<Handler, Compiled> {
    if (!KNOWN_METHODS.has(method)) throw new TypeError(`unknown method ${JSON.stringify(method)}; use one of http.METHODS, in upper case`);
    const compiledPath = compilePath(path, this.#constraints);
    const { pattern, segments } = compiledPath;
    let leaf = this.#byPattern.get(pattern);
    const existing = leaf?.get(method);
    if (existing !== undefined) throw new TypeError(`${method} ${path} is registered already, as ${method} ${existing.path}; remove one`);
    if (leaf === undefined) {
      leaf = new Map();
      this.#byPattern.set(pattern, leaf);
      insert(this.#root, segments, leaf);
      if (compiledPath.paramNames.length === 0) this.#static.set(path, leaf);
    }
    const route = new Route<Handler, Compiled>(method, path, compiledPath, handler);
    leaf.set(method, route);
    this.#routes.push(route);
    return route;
  }

  /**
   * Finds the handler of a method and a percent-encoded path; HEAD finds GET.
   *
   * @throws {HttpError} 400 when the path has a malformed escape
   */
  find(method: string, path: string): Found<Handler> | null {
    const match = this.match(method, path);
    return match === null ? null : { handler: match.route.handler, params: match.params };
  }

  /**
   * As {@link find}, with the route itself.
   *
   * @throws {HttpError} 400 when the path has a malformed escape
   */
  match(method: string, path: string): Match<Handler, Compiled> | null {
    if (!path.startsWith('/')) return null;
    const encoded = path.includes('%');
    if (encoded) decodePath(path);
    else {
      // A wholly static route beats every other that matches its path, so the trie is asked only without one.
      const leaf = this.#static.get(path);
      const route = leaf === undefined ? undefined : routeOf(leaf, method);
      if (route !== undefined) return route.plainMatch;
    }
    const values: string[] = [];
    const route = search(this.#root, path, 1, encoded, method, values);
    if (route === undefined) return null;
    const { paramNames } = route;
    if (paramNames.length === 0) return route.plainMatch;
    const params = new ParamValues();
    for (let i = 0; i < paramNames.length; i += 1) params[paramNames[i] as string] = values[i] as string;
    return { route, params };
  }

  /**
   * Methods that any route of this path answers, sorted: the value of `Allow` (RFC 9110, section 15.5.6).
   * OPTIONS is among them as soon as there is one, HEAD as soon as there is GET; without any route the list is empty.
   */
  allowedMethods(path: string): string[] {
    const methods = new Set<string>();
    if (path.startsWith('/')) collect(this.#root, path, 1, path.includes('%'), methods);
    if (methods.size === 0) return [];
    if (methods.has('GET')) methods.add('HEAD');
    methods.add('OPTIONS');
    return [...methods].sort();
  }

  /** Whether a pattern has a route already. */
  hasPattern(pattern: string): boolean {
    return this.#byPattern.has(pattern);
  }

  /** Every route, in order of registration. */
  get routes(): RouteInfo[] {
    return this.#routes.map(({ method, path, pattern, public: isOpen, params }) => ({ method, path, pattern, public: isOpen, params }));
  }

  /** Every route as the router holds it, in order of registration. */
  get entries(): readonly Route<Handler, Compiled>[] {
    return this.#routes;
  }

  /** The public methods of each pattern (SPEC 2.7), patterns in order of their first registration. */
  get routesPublic(): RoutesPublic {
    const result: RoutesPublic = {};
    for (const [pattern, leaf] of this.#byPattern) {
      const methods = [...leaf.values()].filter((route) => route.public).map((route) => route.method);
      if (methods.length > 0) result[pattern] = { public_methods: methods.sort() };
    }
    return result;
  }
}

/**
 * A percent-encoded path, decoded.
 *
 * @throws {HttpError} 400 when an escape is malformed or is no UTF-8
 */
export function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new HttpError(400, 'The path has a malformed percent-escape.');
  }
}

function createNode<Handler, Compiled>(): Node<Handler, Compiled> {
  return { statics: null, constrained: null, param: null, wildcard: null, leaf: null };
}

function insert<Handler, Compiled>(root: Node<Handler, Compiled>, segments: readonly Segment[], leaf: Leaf<Handler, Compiled>): void {
  let node = root;
  for (const segment of segments) {
    if (segment.kind === 'wildcard') {
      node.wildcard = leaf;
      return;
    }
    node = childOf(node, segment);
  }
  node.leaf = leaf;
}

function childOf<Handler, Compiled>(node: Node<Handler, Compiled>, segment: Exclude<Segment, { kind: 'wildcard' }>): Node<Handler, Compiled> {
  if (segment.kind === 'static') {
    node.statics ??= new Map();
    let child = node.statics.get(segment.text);
    if (child === undefined) node.statics.set(segment.text, (child = createNode()));
    return child;
  }
  const { constraint } = segment;
  if (constraint === null) return (node.param ??= createNode());
  node.constrained ??= [];
  let entry = node.constrained.find((other) => other.constraint === constraint);
  if (entry === undefined) node.constrained.push((entry = { constraint, node: createNode() }));
  return entry.node;
}

function routeOf<Handler, Compiled>(leaf: Leaf<Handler, Compiled>, method: string): Route<Handler, Compiled> | undefined {
  const route = leaf.get(method);
  return route === undefined && method === 'HEAD' ? leaf.get('GET') : route;
}

/** Depth first, best kind of segment first; `values` holds the parameters of the way down to the route found. */
function search<Handler, Compiled>(
  node: Node<Handler, Compiled>,
  path: string,
  start: number,
  encoded: boolean,
  method: string,
  values: string[],
): Route<Handler, Compiled> | undefined {
  if (start > path.length) return node.leaf === null ? undefined : routeOf(node.leaf, method);
  const slash = path.indexOf('/', start);
  const end = slash === -1 ? path.length : slash;
  const raw = path.slice(start, end);
  const segment = encoded ? decodeURIComponent(raw) : raw;
  const child = node.statics?.get(segment);
  if (child !== undefined) {
    const route = search(child, path, end + 1, encoded, method, values);
    if (route !== undefined) return route;
  }
  if (segment !== '') {
    if (node.constrained !== null) {
      for (const { constraint, node: next } of node.constrained) {
        if (!constraint.regexp.test(segment)) continue;
        values.push(segment);
        const route = search(next, path, end + 1, encoded, method, values);
        if (route !== undefined) return route;
        values.pop();
      }
    }
    if (node.param !== null) {
      values.push(segment);
      const route = search(node.param, path, end + 1, encoded, method, values);
      if (route !== undefined) return route;
      values.pop();
    }
  }
  if (node.wildcard !== null && start < path.length) {
    const route = routeOf(node.wildcard, method);
    if (route !== undefined) values.push(encoded ? decodeURIComponent(path.slice(start)) : path.slice(start));
    return route;
  }
  return undefined;
}

/** Adds the methods of every route that matches. */
function collect<Handler, Compiled>(node: Node<Handler, Compiled>, path: string, start: number, encoded: boolean, methods: Set<string>): void {
  if (start > path.length) {
    for (const method of node.leaf?.keys() ?? []) methods.add(method);
    return;
  }
  const slash = path.indexOf('/', start);
  const end = slash === -1 ? path.length : slash;
  const raw = path.slice(start, end);
  const segment = encoded ? decodeURIComponent(raw) : raw;
  const child = node.statics?.get(segment);
  if (child !== undefined) collect(child, path, end + 1, encoded, methods);
  if (segment !== '') {
    for (const { constraint, node: next } of node.constrained ?? []) {
      if (constraint.regexp.test(segment)) collect(next, path, end + 1, encoded, methods);
    }
    if (node.param !== null) collect(node.param, path, end + 1, encoded, methods);
  }
  if (start < path.length) {
    for (const method of node.wildcard?.keys() ?? []) methods.add(method);
  }
}
