/*
 * Middleware of the `(req, res, next)` kind, as middleware of ours: helmet, cors, compression, morgan, multer.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Middleware } from '../http/context.js';
import { reply } from '../http/reply.js';

/** What Connect and Express call a middleware. */
export type ConnectMiddleware<
  Req extends IncomingMessage = IncomingMessage,
  Res extends ServerResponse = ServerResponse,
> = (req: Req, res: Res, next: (error?: unknown) => void) => unknown;

/**
 * Makes middleware of one that was written for Connect or Express, and needs no more than the pair of `node:http`.
 *
 * Headers that it sets stand on whatever reply follows, errors included. What it gives to `next` is thrown. A reply
 * that it writes itself is the reply.
 *
 * @throws {TypeError} when it is no function
 */
export function connect<Req extends IncomingMessage, Res extends ServerResponse>(
  middleware: ConnectMiddleware<Req, Res>,
): Middleware {
  if (typeof middleware !== 'function') throw new TypeError('connect takes a middleware (req, res, next)');
  return async (ctx, next) => {
    const { req, res } = ctx.raw;
    const goesOn = await new Promise<boolean>((resolve, reject) => {
      const onClose = (): void => resolve(false);
      res.once('finish', onClose).once('close', onClose);
      const proceed = (error?: unknown): void => {
        res.off('finish', onClose).off('close', onClose);
        if (error === undefined || error === null) resolve(true);
        else reject(error);
      };
      // A middleware that is typed for Express's request and response gets those of `node:http`.
      const returned = middleware(req as Req, res as Res, proceed);
      if (returned instanceof Promise) returned.catch(reject);
      if (res.writableEnded) resolve(false);
    });
    return goesOn ? next() : reply();
  };
}
