/**
 * A route as the pipeline runs it: its handler with the query check and the middleware around it, put together once.
 */

import { BadRequest, FrameworkErrorCodes, HttpError } from './errors.js';
import type { Context, Handler, Middleware } from './http/context.js';
import { reply, toReply, type Reply } from './http/reply.js';
import type { RouteMetrics } from './monitor/request-metrics.js';
import type { Route } from './routing/router.js';

/** What a request runs into. */
export interface Endpoint {
  readonly run: Handler;
  readonly metrics: RouteMetrics;
  /** Null for requests without a route. */
  readonly route: Route<Handler, Endpoint> | null;
}

/** Query parameters outside the allowed set (SPEC 7.3). */
class InvalidQueryParams extends BadRequest {
  static override errorCode = FrameworkErrorCodes.framework_invalid_query_params;
}

/** Puts middleware around a handler, the first one outermost; without middleware the handler comes back as it is. */
export function compose(middleware: readonly Middleware[], handler: Handler): Handler {
  if (middleware.length === 0) return handler;
  const innermost = async (ctx: Context): Promise<Reply> => toReply(await handler(ctx));
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
export function checkQuery(handler: Handler, allowed: readonly string[]): Handler {
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
 * Answers a method and path without a route.
 *
 * @param allowed methods that the path has; none means that nothing matches it
 * @throws {HttpError} 404, or 405 with `Allow` (RFC 9110, section 15.5.6)
 */
export function answerWithoutRoute(method: string, allowed: readonly string[]): Reply {
  if (allowed.length === 0) throw new HttpError(404, 'No route matches this path.');
  const allow = allowed.join(', ');
  if (method === 'OPTIONS') return reply(undefined, { headers: { allow } });
  throw new HttpError(405, `${method} is not allowed here. Allowed: ${allow}`, { headers: { allow } });
}
