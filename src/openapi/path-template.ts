/* Paths of routes in the words of OpenAPI: `/users/:id` is `/users/{id}`; and the error of what OpenAPI cannot say. */

import { compilePath } from '../endpoint/pattern.js';

/** One parameter of a path. */
export interface PathParameter {
  /** In the template. */
  readonly name: string;
  /** In the route. */
  readonly routeName: string;
  /** Pattern that matches its whole segment; undefined for anything. */
  readonly pattern: string | undefined;
}

/** @throws {OpenApiError} for a static segment that a template would take for a parameter */
export function toTemplate(path: string): { template: string; parameters: readonly PathParameter[] } {
  const parameters: PathParameter[] = [];
  const parts = compilePath(path).map((segment) => {
    if (segment.kind === 'static') {
      if (/[{}?#]/.test(segment.text)) throw new OpenApiError(path, 'a template has no { } ? # of its own; rename it');
      return segment.text;
    }
    const routeName = segment.name;
    // A bare `*` has no name, and a template needs one.
    const name = routeName === '*' ? freeName('rest', parameters.map((other) => other.name)) : routeName;
    const pattern = segment.kind === 'param' ? segment.constraint?.pattern : undefined;
    parameters.push({ name, routeName, pattern: pattern === undefined ? undefined : `^${pattern}$` });
    return `{${name}}`;
  });
  return { template: `/${parts.join('/')}`, parameters };
}

/** A name that is not taken: `rest`, or `rest_` next to a `rest`. */
export function freeName(name: string, taken: readonly string[]): string {
  return taken.includes(name) ? freeName(`${name}_`, taken) : name;
}

/** The shape of a template: equal for templates that differ only in the names of their parameters. */
export function shapeOf(template: string): string {
  return template.replace(/\{[^}]*\}/g, '{}');
}

/** A route that the document can't describe; nothing of the document is given out then. */
export class OpenApiError extends Error {
  /** The path of the route as registered: `/users/:id`. */
  readonly route: string;
  /** The part that OpenAPI can't describe, and how to change it. */
  readonly reason: string;

  constructor(route: string, reason: string, options?: ErrorOptions) {
    super(`${route}: ${reason}`, options);
    this.name = 'OpenApiError';
    this.route = route;
    this.reason = reason;
  }
}
