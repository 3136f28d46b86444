/*
 * Computes from a route table what of it is public, as a list that a gateway can follow.
 *
 * The router goes through the patterns that match a path, best first, and takes the first that has the method. So for
 * each method a list of patterns in that order, each open or closed, gives the router's answer: that of the first
 * that matches.
 */

import type { Constraint } from '../endpoint/constraint.js';
import { compilePath, type Segment } from '../endpoint/pattern.js';
import { sortByPrecedence } from '../routing/precedence.js';
import type { RouteInfo } from '../routing/router.js';
import { GatewayError } from './error.js';
import { pathsOverlap } from './overlap.js';

/** What the exporters need of a `Router`. */
export interface RouteTable {
  /** In order of registration. */
  readonly routes: readonly RouteInfo[];
}

/** A path of the table, with the routes that have it. @internal */
export interface RoutePattern {
  /** As first registered. */
  readonly path: string;
  readonly segments: readonly Segment[];
  readonly routes: readonly RouteInfo[];
}

/** A pattern that makes a difference. @internal */
export interface Leaf extends RoutePattern {
  /** Methods that are public here, HEAD among them where GET answers it. */
  readonly opens: ReadonlySet<string>;
  /** Methods that are private here, and public at some pattern further down that matches some of the same paths. */
  readonly closes: ReadonlySet<string>;
}

/** What is public of a table. @internal */
export interface Surface {
  /** Best first, as the router prefers them; without those that make no difference. */
  readonly leaves: readonly Leaf[];
  /** Every pattern of the table, best first. */
  readonly patterns: readonly RoutePattern[];
  /** Methods that are public at some pattern and have decisions of their own, sorted; OPTIONS is not among them. */
  readonly methods: readonly string[];
  /** Whether OPTIONS has routes of its own, which answer wherever they match; else it is public where any method is. */
  readonly ownOptions: boolean;
  /** {@link methods} and OPTIONS, each with the methods it answers for, `GET` with `HEAD`; none if nothing is public. */
  readonly answers: readonly (readonly [method: string, names: readonly string[]])[];
  /** How many routes the table has, and how many of them are public. */
  readonly total: number;
  readonly open: number;
}

/**
 * Computes the public surface of a route table.
 *
 * @param constraints those of other tables, by their text; added to
 * @throws {GatewayError} for a public CONNECT route, which no gateway passes on
 *
 * @internal
 */
export function createSurface({ routes }: RouteTable, constraints: Map<string, Constraint>): Surface {
  const ownHead = routes.some((route) => route.method === 'HEAD');
  const patterns = rank(routes, constraints);
  const leaves = patterns.map(({ path, segments, routes: own }) => {
    const opens = new Set<string>();
    const closes = new Set<string>();
    for (const { method, public: open } of own) {
      if (open && method === 'CONNECT')
        throw new GatewayError(path, 'CONNECT asks a gateway for a tunnel, which is never passed on; make it private');
      (open ? opens : closes).add(method);
      if (method === 'GET' && !own.some((route) => route.method === 'HEAD')) (open ? opens : closes).add('HEAD');
    }
    return { path, segments, routes: own, opens, closes };
  });
  for (const [i, leaf] of leaves.entries()) {
    for (const method of [...leaf.closes]) {
      // A private OPTIONS route also takes the place of the answer that the router gives for public methods.
      const matters = leaves.some(
        (other, j) =>
          (method === 'OPTIONS' ? other.opens.size > 0 : j > i && other.opens.has(method)) &&
          pathsOverlap(leaf.segments, other.segments),
      );
      if (!matters) leaf.closes.delete(method);
    }
  }
  const open = new Set(leaves.flatMap(({ opens }) => [...opens]));
  const methods = [...open].filter((method) => method !== 'OPTIONS' && (method !== 'HEAD' || ownHead)).sort();
  return {
    leaves: leaves.filter(({ opens, closes }) => opens.size + closes.size > 0),
    patterns,
    methods,
    answers: [...methods, ...(open.size > 0 ? ['OPTIONS'] : [])].map((method) => [
      method,
      method === 'GET' && !ownHead ? ['GET', 'HEAD'] : [method],
    ]),
    ownOptions: leaves.some(({ opens, closes }) => opens.has('OPTIONS') || closes.has('OPTIONS')),
    total: routes.length,
    open: routes.filter((route) => route.public).length,
  };
}

/** A route and its query parameters in one line: `GET /users/:id (query: q, page)`. @internal */
export function describeRoute({ method, path, public: open, params }: RouteInfo): string {
  const query = params === null ? 'any' : params.length === 0 ? 'none' : params.join(', ');
  return toLine(`${method} ${path} (${open ? `query: ${query}` : 'private'})`);
}

/** The patterns of a table, best first. */
function rank(routes: readonly RouteInfo[], constraints: Map<string, Constraint>): RoutePattern[] {
  const byPattern = new Map<string, RoutePattern & { readonly routes: RouteInfo[] }>();
  for (const route of routes) {
    let pattern = byPattern.get(route.pattern);
    if (pattern === undefined) {
      pattern = { path: route.path, segments: compilePath(route.path, constraints).segments, routes: [] };
      byPattern.set(route.pattern, pattern);
    }
    pattern.routes.push(route);
  }
  return sortByPrecedence(byPattern.values());
}

/** Route texts may hold anything: a comment must end where its line ends, and Caddy reads `{$NAME}` even there. */
function toLine(text: string): string {
  const visible = text.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Cf}]/gu,
    (char) => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
  return visible.replaceAll('{$', '{ $');
}
