/* Middleware of the `(req, res, next)` kind, as middleware of ours: what is on npm for Connect and Express. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { logSafely } from '../base/log.js';
import { Context, type Middleware } from '../http/context.js';
import { Reply } from '../http/reply.js';
import { addExpressMembers } from './express-members.js';

/** A middleware of Connect and Express. */
export type ConnectMiddleware<
  Req extends IncomingMessage = IncomingMessage,
  Res extends ServerResponse = ServerResponse,
> = (req: Req, res: Res, next: (error?: unknown) => void) => unknown;

/**
 * Adapts a middleware that was written for Connect or Express: helmet, cors, multer, express-rate-limit, serve-static.
 *
 * Headers that it sets are on whatever reply follows, errors included. What it passes to `next` is thrown. A reply
 * that it writes itself is the reply, and outer middleware sees its status and headers; to set a header then is an
 * error in the log. It finds the members that Express adds to request and response.
 *
 * @throws {TypeError} if it is not a function
 *
 * @example
 * app.use(connect(helmet()));
 */
export function connect<Req extends IncomingMessage, Res extends ServerResponse>(
  middleware: ConnectMiddleware<Req, Res>,
): Middleware {
  if (typeof middleware !== 'function') throw new TypeError('connect takes a middleware (req, res, next)');
  return async (ctx, next) => {
    const { req, res } = ctx.raw;
    addExpressMembers(ctx, req, res);
    const goesOn = await new Promise<boolean>((resolve, reject) => {
      const onClose = (): void => resolve(false);
      res.once('finish', onClose).once('close', onClose);
      const proceed = (error?: unknown): void => {
        res.off('finish', onClose).off('close', onClose);
        if (error === undefined || error === null) resolve(true);
        else reject(error);
      };
      // A middleware that is typed for Express's request and response gets `node:http`'s.
      const returned = middleware(req as Req, res as Res, proceed);
      if (returned instanceof Promise) returned.catch(reject);
      if (res.writableEnded || res.destroyed) resolve(false);
    });
    return goesOn ? next() : writtenReply(ctx, res, middleware.name);
  };
}

/** The reply that was written, for outer middleware to look at. */
function writtenReply(ctx: Context, res: ServerResponse, middleware: string): Reply {
  const { statusCode: status, statusMessage: statusText } = res;
  const headers = Object.entries(res.getHeaders()).flatMap(([name, value]) =>
    [value ?? []].flat().map((each): [string, string] => [name, String(each)]),
  );
  const written = Reply.ownedBy(ctx, new Reply(undefined, { status, statusText, headers }));
  const complain = (header: string): void =>
    logSafely(
      Context.loggerOf(ctx),
      'error',
      { header, middleware, request_id: ctx.id, err: new Error('set it before this middleware runs') },
      'a header was set after the reply was written',
    );
  for (const name of ['set', 'append', 'delete']) Object.defineProperty(written.headers, name, { value: complain });
  return written;
}
