/*
 * The members that middleware written for Express expects of a request and a response beyond `node:http`. Loaded with
 * the first request that runs such middleware.
 *
 * Source: Express 5 documentation, "Request" and "Response".
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { builtin } from '../base/builtin.js';
import { Context } from '../http/context.js';
import { RESPONSE } from './express-response.js';

/** Adds the members, unless an earlier middleware of the same request has them already. */
export function addExpressMembers(ctx: Context, req: IncomingMessage, res: ServerResponse): void {
  if ('originalUrl' in req) return;
  const { trustProxy } = Context.environmentOf(ctx);
  const originalUrl = req.url ?? '';
  const settings: Readonly<Record<string, unknown>> = {
    // Not `true`, which in Express stands for any proxy: express-rate-limit warns of that.
    'trust proxy': trustProxy.isTrusted(req.socket.remoteAddress ?? '') && trustProxy.isTrusted,
    'trust proxy fn': trustProxy.isTrusted,
    env: process.env['NODE_ENV'] ?? 'development',
  };
  const header = (name: string): string | string[] | undefined => {
    const lower = name.toLowerCase();
    if (lower === 'referer' || lower === 'referrer') return req.headers['referrer'] ?? req.headers.referer;
    return req.headers[lower];
  };
  const locals: object = Object.create(null) as object;
  addMembers(req, {
    originalUrl: () => originalUrl,
    baseUrl: () => '',
    ip: () => ctx.ip,
    ips: () => addressesFrom(ctx),
    protocol: () => ctx.url.protocol.slice(0, -1),
    secure: () => ctx.url.protocol === 'https:',
    hostname: () => ctx.url.hostname,
    path: () => pathOf(req.url ?? ''),
    query: () => builtin('node:querystring').parse(ctx.target.search),
    get: () => header,
    header: () => header,
    app: () => ({ get: (name: string) => settings[name], settings }),
    res: () => res,
  });
  Object.assign(addMembers(res, { locals: () => locals }), RESPONSE);
}

/**
 * Adds members that are computed when they are read, and that middleware may replace. They are on a prototype of their
 * own: an Express application below a mount sets another prototype, and finds its own members.
 */
function addMembers(target: object, members: Readonly<Record<string, () => unknown>>): object {
  const added = Object.create(Object.getPrototypeOf(target) as object) as object;
  for (const [name, get] of Object.entries(members)) {
    const set = function (this: object, value: unknown): void {
      Object.defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
    };
    Object.defineProperty(added, name, { get, set, configurable: true, enumerable: true });
  }
  Object.setPrototypeOf(target, added);
  return added;
}

/** The addresses of the client and of the proxies between it and the last one, if that is trusted. */
function addressesFrom(ctx: Context): string[] {
  const { trustProxy } = Context.environmentOf(ctx);
  if (!trustProxy.isTrusted(ctx.raw.req.socket.remoteAddress ?? '')) return [];
  const addresses = String(ctx.headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((entry) => trustProxy(entry.trim(), undefined));
  const client = addresses.lastIndexOf(ctx.ip);
  return client === -1 ? [] : addresses.slice(client);
}

/** The path of a target, percent-encoded. */
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '').replace(/\?.*$/s, '');
  return path === '' ? '/' : path;
}
