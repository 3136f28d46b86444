/*
 * Adds the members that middleware written for Express expects of a request and a response beyond `node:http`, to the
 * requests that run such middleware.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from './context.js';
import { contextOf, KEPT_VALUES, paramsOf, REQUEST_METHODS, REQUEST_VALUES, setContext } from './express-request.js';
import { RESPONSE_METHODS } from './express-response.js';

/** Adds the members, unless an earlier middleware of the same request has them already. */
export function addExpressMembers(ctx: Context, req: IncomingMessage, res: ServerResponse): void {
  if (contextOf(req) !== undefined) return;
  setContext(req, ctx);
  // Own, so that a mounted application of Express finds it.
  if (!('originalUrl' in req)) Object.assign(req, { originalUrl: originalUrlOf(ctx, req) });
  // In a server of Express both have its members; `params` has the parameters of the path where the application is.
  if ('ips' in req) Object.assign(req, { params: paramsOf(ctx) });
  else {
    extend(req, addRequestMembers);
    extend(res, addResponseMembers);
  }
}

/** The target as sent, also after middleware of Postern has changed `req.url`. */
function originalUrlOf({ target: { path, search } }: Context, { url = '' }: IncomingMessage): string {
  const sent = search === '' ? path : `${path}?${search}`;
  // The absolute form and an empty query are not in the parsed target.
  return url.replace(/\?$/, '').endsWith(sent) ? url : sent;
}

/** Prototypes with the members, each by the prototype that it extends. */
const EXTENDED = new WeakMap<object, object>();

/**
 * Gives an object members on a prototype of their own: an Express application below a mount sets another prototype, and
 * finds its own members.
 */
function extend(target: object, addMembers: (prototype: object) => void): void {
  const prototype = Object.getPrototypeOf(target) as object;
  let extended = EXTENDED.get(prototype);
  if (extended === undefined) {
    extended = Object.create(prototype) as object;
    addMembers(extended);
    EXTENDED.set(prototype, extended);
  }
  Object.setPrototypeOf(target, extended);
}

function addRequestMembers(prototype: object): void {
  const contextAt = (req: IncomingMessage): Context => contextOf(req) as Context;
  for (const [name, read] of Object.entries(REQUEST_VALUES))
    addValue<IncomingMessage>(prototype, name, (req) => read(req, contextAt(req)));
  for (const [name, make] of Object.entries(KEPT_VALUES))
    addValue<IncomingMessage>(prototype, name, (req) => keep(req, name, make(contextAt(req))));
  Object.assign(prototype, REQUEST_METHODS);
}

function addResponseMembers(prototype: object): void {
  // A mounted application keeps the locals that a response has.
  addValue<ServerResponse>(prototype, 'locals', (res) => keep(res, 'locals', Object.create(null)));
  Object.assign(prototype, RESPONSE_METHODS);
}

/** Adds a value that is computed when it is read, and that middleware may replace. */
function addValue<Target extends object>(prototype: object, name: string, read: (target: Target) => unknown): void {
  Object.defineProperty(prototype, name, {
    get(this: Target): unknown {
      return read(this);
    },
    set(this: Target, value: unknown) {
      keep(this, name, value);
    },
    configurable: true,
    enumerable: true,
  });
}

/** Makes a value the object's own. */
function keep<Value>(target: object, name: string, value: Value): Value {
  Object.defineProperty(target, name, { value, configurable: true, enumerable: true, writable: true });
  return value;
}
