/*
 * One route of the router's table.
 */

import type { Constraint } from '../endpoint/constraint.js';
import { compilePath, formatPattern, type Segment } from '../endpoint/pattern.js';
import type { RouteRecord } from '../endpoint/route-options.js';

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

/** One registered route. Computes rarely used properties on first access. */
export class Route<Handler = unknown> {
  readonly #constraints: Map<string, Constraint>;
  #matched: MatchedRoute | undefined;

  /** @internal */
  constructor(
    readonly method: string,
    readonly path: string,
    readonly handler: Handler,
    /** @internal */
    readonly options: RouteRecord,
    /** @internal */
    readonly paramNames: readonly string[],
    constraints: Map<string, Constraint>,
  ) {
    this.#constraints = constraints;
  }

  /** @internal */
  get segments(): readonly Segment[] {
    return compilePath(this.path, this.#constraints);
  }

  get pattern(): string {
    return this.matched.pattern;
  }

  /** The part that requests see. @internal */
  get matched(): MatchedRoute {
    if (this.#matched === undefined) {
      const { method, path, segments, options } = this;
      const { public: isOpen, meta = NO_META } = options;
      this.#matched = Object.freeze({ method, path, pattern: formatPattern(segments), public: isOpen, meta });
    }
    return this.#matched;
  }
}
