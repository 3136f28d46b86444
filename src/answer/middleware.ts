/* Middleware around a handler, composed once for each route. */

import { Context, type Handler, type Middleware } from './context.js';
import { errorToReply } from './errors.js';
import { endEventsWith } from './events.js';
import { discard, letResultFail, Reply } from './reply.js';
import { failWith, isStream, letFail } from '../payload/bytes.js';

/** The function that `next()` of a middleware runs. It never rejects, because a failure is a reply, too. */
type Inner = (ctx: Context) => Promise<Reply>;

/** Puts middleware around a handler, the first one outermost; without middleware, returns the handler itself. */
export function compose(middleware: readonly Middleware[], handler: Handler): Handler {
  if (middleware.length === 0) return handler;
  const innermost: Inner = async (ctx) => {
    try {
      const reply = Reply.ownedBy(ctx, await handler(ctx));
      if (isStream(reply.body)) reply.keepContext();
      // Middleware may put another stream around it.
      endEventsWith(Context.optionsOf(ctx).closing, reply.body);
      return reply;
    } catch (thrown) {
      return toErrorReply(ctx, thrown);
    }
  };
  return middleware.reduceRight<Inner>(wrap, innermost);
}

function wrap(run: Inner, around: Middleware): Inner {
  return async (ctx) => {
    let replied: Promise<Reply> | undefined;
    let inner: Reply | undefined;
    let innerBody: unknown;
    const next = (): Promise<Reply> => {
      if (replied !== undefined)
        throw new Error(`next() was called twice by ${nameOf(around, ctx)}; call it once and keep its reply`);
      replied = run(ctx);
      void replied.then((answered) => {
        inner = answered;
        innerBody = answered.body;
      });
      return replied;
    };
    let reply: Reply;
    try {
      const returned = around(ctx, next);
      letResultFail(returned);
      const result = await returned;
      if (result !== undefined) reply = Reply.ownedBy(ctx, result);
      else if (replied !== undefined) reply = Reply.ownedBy(ctx, await replied);
      else throw new Error(`${nameOf(around, ctx)} ${NOTHING_DONE}`);
    } catch (thrown) {
      reply = toErrorReply(ctx, thrown);
    }
    if (inner !== undefined && inner !== reply) reply.takeOver(inner);
    // Middleware that replies with another body leaves the handler's unsent: a stream would stay open. A new stream may
    // read the old one until the reply is over: `reply.body = upper(reply.body)`. A value does not.
    void replied?.then(() => {
      if (innerBody === reply.body) return;
      try {
        if (!isStream(innerBody)) return letFail(innerBody, true);
        if (!isStream(reply.body)) return discard(innerBody);
        failWith(innerBody, reply.body);
        ctx.exchange.onOver(() => discard(innerBody));
      } catch {
        // Reading the body can throw, for example from a Proxy.
      }
    });
    return reply;
  };
}

const NOTHING_DONE = 'neither called next() nor returned a reply; return next(), or a reply of its own';

/** `middleware "auth" of GET /users/:id` */
function nameOf({ name }: Middleware, ctx: Context): string {
  return `${name === '' ? 'a middleware without a name' : `middleware ${JSON.stringify(name)}`} of ${routeNameOf(ctx)}`;
}

/** The route of a request, for messages: `GET /users/:id` */
export function routeNameOf({ route, method }: Context): string {
  return route === null ? `${method} without a route` : `${route.method} ${route.path}`;
}

function toErrorReply(ctx: Context, thrown: unknown): Reply {
  // Logged with the reply that is sent in the end, even if that is another one.
  ctx.hasFailed = true;
  try {
    return errorToReply(ctx, thrown);
  } catch (invalid) {
    // A header of the error can't be sent.
    return errorToReply(ctx, thrown, invalid);
  }
}
