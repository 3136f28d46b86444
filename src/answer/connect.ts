/* Middleware of the `(req, res, next)` kind, as middleware of ours: what is on npm for Connect and Express. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { logSafely } from '../base/log.js';
import { Context, type Middleware } from './context.js';
import { clientLeft } from './gate.js';
import { routeNotFound } from './errors.js';
import { dropLateHeaders } from '../wire/node-internals.js';
import { Reply } from './reply.js';
import { addExpressMembers } from './express-members.js';

/** The remedy for an error handler `(error, req, res, next)`, for messages. */
export const HANDLE_ERRORS: string =
  'handle errors in middleware of Postern: app.use(async (ctx, next) => { const reply = await next(); … reply.error … })';

/** A middleware of Connect and Express. */
export type ConnectMiddleware<
  Req extends IncomingMessage = IncomingMessage,
  Res extends ServerResponse = ServerResponse,
> = (req: Req, res: Res, next: (error?: unknown) => void) => unknown;

/**
 * Adapts a middleware that was written for Connect or Express: helmet, cors, multer, express-rate-limit, serve-static.
 *
 * Headers that it sets are on whatever reply follows, errors included. A reply that it writes itself is the reply, and
 * outer middleware sees its status and headers; to set a header then is an error in the log. An error that it throws or
 * passes to `next` has its own 4xx or 5xx `status` or `statusCode`, and sends its `headers`. It finds the members that
 * Express adds to request and response.
 *
 * @throws {TypeError} if it is not a function, or handles errors: `(error, req, res, next)`
 *
 * @example
 * app.use(connect(helmet()));
 */
export function connect<Req extends IncomingMessage, Res extends ServerResponse>(
  middleware: ConnectMiddleware<Req, Res>,
): Middleware {
  if (typeof middleware !== 'function') throw new TypeError('connect takes a middleware (req, res, next)');
  // Express, too, knows an error handler by its number of parameters.
  if (middleware.length > 3)
    throw new TypeError(`connect takes middleware (req, res, next), not an error handler; ${HANDLE_ERRORS}`);
  // A middleware that is typed for Express's request and response gets `node:http`'s.
  return adapt(middleware as ConnectMiddleware, middleware.name);
}

/** Does what {@link connect} does, without its checks. @param name of the middleware, for the log */
export function adapt(middleware: ConnectMiddleware, name: string): Middleware {
  return (ctx, next) =>
    new Promise<Reply>((resolve, reject) => {
      if (ctx.isAborted) return reject(clientLeft());
      const { req, res } = ctx.raw;
      addExpressMembers(ctx, req, res);
      let hasContinued = false;
      let outcome: 'open' | 'replied' | 'failed' = 'open';
      const stopWaiting = (): unknown => res.off('finish', onWritten).off('close', onWritten);
      const settle = (reply: Reply): void => {
        if (outcome === 'open') outcome = 'replied';
        resolve(reply);
      };
      const onWritten = (): void => {
        stopWaiting();
        settle(writtenReply(ctx, res, name));
      };
      const fail = (error: unknown): void => {
        stopWaiting();
        if (!res.headersSent) clearForError(res);
        const { expressError } = ctx;
        ctx.expressError = error;
        // After `next()` a head that is sent belongs to the handler, whose reply must not break off.
        const isInTime = outcome === 'open' && !(hasContinued && res.headersSent);
        if (isInTime || (outcome === 'replied' && replaceReply(ctx, error))) {
          outcome = 'failed';
          return reject(error as Error);
        }
        ctx.expressError = expressError;
        logLateError(ctx, res, name, error);
      };
      const proceed = (error?: unknown): void => {
        if (error === 'router') return fail(routeNotFound());
        // As in Express, any falsy value continues.
        if (error && error !== 'route') return fail(error);
        stopWaiting();
        if (outcome !== 'open' || hasContinued) return;
        hasContinued = true;
        // Called in here, so that the handler runs in the async context from which the middleware calls `next`.
        void next().then(settle);
      };
      res.once('finish', onWritten).once('close', onWritten);
      try {
        const returned = middleware(req, res, proceed);
        // An object with `then` rejects as well, such as a promise of another realm.
        if (typeof returned === 'object' || typeof returned === 'function') Promise.resolve(returned).catch(fail);
      } catch (thrown) {
        fail(thrown);
      }
      if (!hasContinued && (res.writableEnded || res.destroyed)) onWritten();
    });
}

/** Answers with an error that came after the reply was known. @returns false if it is too late for that */
function replaceReply(ctx: Context, thrown: unknown): boolean {
  const { exchange, isAnswered } = ctx;
  if (exchange.isHandedOver) return false;
  if (exchange.state === 'sending') exchange.carrier.replace(exchange, thrown);
  // Outer middleware that still runs may set headers.
  else if (exchange.state === 'running' && !isAnswered) ctx.late = { thrown };
  else return false;
  return true;
}

/** Prepares a response for an error in place of another reply, which a handler or a middleware may still begin. */
function clearForError(res: ServerResponse): void {
  dropLateHeaders(res);
  // They describe a body that is not sent.
  for (const header of ['content-encoding', 'content-language', 'content-range']) res.removeHeader(header);
}

function logLateError(ctx: Context, res: ServerResponse, middleware: string, error: unknown): void {
  const { id, method, target } = ctx;
  // After a client has left, middleware that reads the body fails: if it were an error, any client could fill the log.
  const level = !res.headersSent && ctx.exchange.isCut ? 'debug' : 'error';
  const entry = { err: error, middleware, request_id: id, method, target: target.path };
  logSafely(Context.loggerOf(ctx), level, entry, 'middleware failed too late to change the reply');
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
