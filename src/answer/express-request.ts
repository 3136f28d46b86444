/*
 * The members that middleware written for Express expects of a request beyond `node:http`.
 *
 * Source: Express 5 documentation, "Request".
 */

import type { IncomingMessage } from 'node:http';
import { builtin } from '../base/builtin.js';
import { peerOf, toPlainAddress } from './client-address.js';
import { Context } from './context.js';
import {
  entityTag,
  isFresh,
  parseRange,
  preferCharsets,
  preferEncodings,
  preferLanguages,
  preferTypes,
  typeOfBody,
  type Ranges,
} from './negotiation.js';

const CONTEXT: unique symbol = Symbol('postern.context');
type Known = IncomingMessage & { readonly [CONTEXT]?: Context };

/** The context of a request that has these members; undefined for any other. */
export function contextOf(req: Known): Context | undefined {
  return req[CONTEXT];
}

export function setContext(req: IncomingMessage, ctx: Context): void {
  Object.defineProperty(req, CONTEXT, { value: ctx });
}

/** Values that are computed when they are read. */
export const REQUEST_VALUES: Readonly<Record<string, (req: IncomingMessage, ctx: Context) => unknown>> = {
  res: (_req, { exchange }) => exchange.res,
  baseUrl: () => '',
  ip: (_req, { ip }) => ip,
  ips: (_req, ctx) => addressesFrom(ctx),
  protocol: (_req, { url }) => url.protocol.slice(0, -1),
  secure: (_req, { url }) => url.protocol === 'https:',
  host: (_req, { url }) => url.host,
  hostname: (_req, { url }) => url.hostname,
  subdomains: (_req, { url }) => subdomainsOf(url.hostname),
  path: (req) => pathOf(req.url ?? ''),
  query: (req) => builtin('node:querystring').parse(/\?(.*)$/s.exec(req.url ?? '')?.[1] ?? ''),
  xhr: (req) => String(req.headers['x-requested-with']).toLowerCase() === 'xmlhttprequest',
  fresh: (req, { exchange }) => isFresh(req, exchange.res),
  stale: (req, { exchange }) => !isFresh(req, exchange.res),
};

/** Values that are made when they are read for the first time. */
export const KEPT_VALUES = { app: createApplication, params: paramsOf };

/** Path parameters of the route, which middleware may change; the handler has its own. */
export function paramsOf({ params }: Context): object {
  return Object.assign(Object.create(null) as object, params);
}

/** Several texts, or one list of them. */
type Offers = readonly (string | readonly string[])[];

/** Methods of a request. */
export const REQUEST_METHODS = {
  get: header,
  header,

  // Offers of types may be extensions.
  accepts: chooser('accept', preferTypes),
  acceptsEncodings: chooser('accept-encoding', preferEncodings),
  acceptsCharsets: chooser('accept-charset', preferCharsets),
  acceptsLanguages: chooser('accept-language', preferLanguages),

  /** The first of several types that the body has. */
  is(this: IncomingMessage, ...types: Offers): string | false | null {
    return typeOfBody(this.headers, types.flat());
  },

  /** @returns -1 if the body has none of the parts, -2 for a malformed header */
  range(this: IncomingMessage, size: number, options?: { readonly combine?: boolean }): Ranges | -1 | -2 | undefined {
    const { range } = this.headers;
    return range ? parseRange(size, range, options?.combine === true) : undefined;
  },
};

/** A header, whose name may be in any case; `Referer` in both spellings. */
function header(this: IncomingMessage, name: string): string | string[] | undefined {
  const { headers } = this;
  if (typeof name !== 'string' || name === '') throw new TypeError('req.get takes the name of a header');
  const lower = name.toLowerCase();
  return lower === 'referer' || lower === 'referrer' ? (headers['referrer'] ?? headers.referer) : headers[lower];
}

/** Makes a method that returns the best of several offers by a header, or false; without offers, the client's list. */
function chooser(
  header: string,
  prefer: typeof preferTypes,
): (this: IncomingMessage, ...offers: Offers) => string | false | string[] {
  return function (...offers) {
    const list = offers.flat();
    const preferred = prefer(this.headers[header], list);
    return list.length === 0 ? preferred : (preferred[0] ?? false);
  };
}

/** An application of Express, as far as middleware asks it for settings. */
function createApplication(ctx: Context): object {
  const { trustProxy } = Context.optionsOf(ctx);
  const settings: Readonly<Record<string, unknown>> = {
    // Not `true`, which in Express stands for any proxy: express-rate-limit warns of that.
    'trust proxy': trustProxy(peerOf(ctx.raw.req.socket)) && trustProxy,
    'trust proxy fn': trustProxy,
    env: process.env['NODE_ENV'] ?? 'development',
    etag: 'weak',
    'etag fn': entityTag,
    'query parser': 'simple',
    'query parser fn': builtin('node:querystring').parse,
    'subdomain offset': 2,
  };
  return {
    settings,
    get: (name: string) => settings[name],
    enabled: (name: string) => Boolean(settings[name]),
    disabled: (name: string) => !settings[name],
  };
}

/** The addresses of the client and of the proxies between it and the last one, if that is trusted. */
function addressesFrom(ctx: Context): string[] {
  const { trustProxy } = Context.optionsOf(ctx);
  if (!trustProxy(peerOf(ctx.raw.req.socket))) return [];
  const addresses = String(ctx.headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((entry) => toPlainAddress(entry.trim()));
  const client = addresses.lastIndexOf(ctx.ip);
  return client === -1 ? [] : addresses.slice(client);
}

/** The parts of a host's name before its domain, which has two, the last one first. */
function subdomainsOf(hostname: string): string[] {
  const isAddress = hostname.startsWith('[') || builtin('node:net').isIP(hostname) !== 0;
  return isAddress ? [] : hostname.split('.').reverse().slice(2);
}

/** The path of a target, percent-encoded. */
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '').replace(/\?.*$/s, '');
  return path === '' ? '/' : path;
}
