/*
 * The members that middleware written for Express expects of a request and a response beyond `node:http`.
 *
 * Source: Express 5 documentation, "Request" and "Response".
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Date } from '../base/clock.js';
import { builtin } from '../base/builtin.js';
import { toPlainAddress } from '../http/client-address.js';
import { Context } from '../http/context.js';

const { STATUS_CODES } = builtin('node:http');

/** Adds the members, unless an earlier middleware of the same request has them already. */
export function addExpressMembers(ctx: Context, req: IncomingMessage, res: ServerResponse): void {
  if ('ips' in req) return;
  const { trustProxy } = Context.optionsOf(ctx);
  const originalUrl = req.url ?? '';
  const settings: Readonly<Record<string, unknown>> = {
    // Not `true`, which in Express stands for any proxy: express-rate-limit warns of that.
    'trust proxy': trustProxy(req.socket.remoteAddress ?? '') && trustProxy,
    'trust proxy fn': trustProxy,
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
  const { trustProxy } = Context.optionsOf(ctx);
  if (!trustProxy(ctx.raw.req.socket.remoteAddress ?? '')) return [];
  const addresses = String(ctx.headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((entry) => toPlainAddress(entry.trim()));
  const client = addresses.lastIndexOf(ctx.ip);
  return client === -1 ? [] : addresses.slice(client);
}

/** The path of a target, percent-encoded. */
function pathOf(target: string): string {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '').replace(/\?.*$/s, '');
  return path === '' ? '/' : path;
}

/** Attributes of a cookie, as in Express. */
interface CookieOptions {
  /** In ms. */
  readonly maxAge?: number;
  readonly expires?: Date;
  readonly domain?: string;
  readonly path?: string;
  readonly httpOnly?: boolean;
  readonly secure?: boolean;
  readonly partitioned?: boolean;
  readonly priority?: string;
  readonly sameSite?: boolean | string;
  /** With the secret that `cookie-parser` was given. */
  readonly signed?: boolean;
  readonly encode?: (value: string) => string;
}

/** A response with the methods of this file. */
interface Response extends ServerResponse, Methods {}
type Methods = typeof RESPONSE;

const TYPES: Readonly<Record<string, string>> = {
  bin: 'application/octet-stream',
  css: 'text/css',
  csv: 'text/csv',
  html: 'text/html',
  js: 'text/javascript',
  json: 'application/json',
  png: 'image/png',
  svg: 'image/svg+xml',
  text: 'text/plain',
  txt: 'text/plain',
  xml: 'application/xml',
};

const RESPONSE = {
  status(this: Response, code: number): Response {
    this.statusCode = code;
    return this;
  },

  sendStatus(this: Response, code: number): Response {
    return this.status(code).type('txt').send(STATUS_CODES[code] ?? String(code));
  },

  set(this: Response, name: string | Readonly<Record<string, unknown>>, value?: unknown): Response {
    if (typeof name !== 'string') for (const [each, own] of Object.entries(name)) this.set(each, own);
    else if (Array.isArray(value)) this.setHeader(name, value.map(String));
    else this.setHeader(name, /^content-type$/i.test(name) ? withCharset(String(value)) : String(value));
    return this;
  },

  get(this: Response, name: string): number | string | string[] | undefined {
    return this.getHeader(name);
  },

  /** @param type a media type, or a file's extension */
  type(this: Response, type: string): Response {
    const isMediaType = type.includes('/');
    return this.set('content-type', isMediaType ? type : (TYPES[type.replace(/^.*\./, '')] ?? TYPES['bin']));
  },

  json(this: Response, body: unknown): Response {
    if (!this.hasHeader('content-type')) this.type('json');
    return this.send(JSON.stringify(body) as string | undefined);
  },

  send(this: Response, body?: unknown): Response {
    if (typeof body !== 'string' && body != null && !(body instanceof Uint8Array)) return this.json(body);
    if (this.statusCode === 204 || this.statusCode === 304) {
      for (const name of ['content-type', 'content-length', 'transfer-encoding']) this.removeHeader(name);
      return this.end();
    }
    if (body != null && !this.hasHeader('content-type')) this.type(typeof body === 'string' ? 'html' : 'bin');
    const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? Buffer.alloc(0));
    this.setHeader('content-length', bytes.byteLength);
    return this.end(bytes);
  },

  redirect(this: Response, ...[first, second]: [url: string] | [status: number, url: string]): void {
    const [status, url] = second === undefined ? [302, String(first)] : [Number(first), second];
    // Existing escapes stay unchanged.
    const location = encodeURI(url.toWellFormed()).replaceAll('%25', '%');
    this.status(status).set({ location }).type('txt').send(`${STATUS_CODES[status]}. Redirecting to ${location}`);
  },

  cookie(this: Response, name: string, value: unknown, options: CookieOptions = {}): Response {
    const text = typeof value === 'object' ? `j:${JSON.stringify(value)}` : String(value);
    const { secret } = this.req as { secret?: string };
    if (options.signed && secret === undefined)
      throw new TypeError('a signed cookie needs a secret; run cookie-parser with one before');
    return this.appendHeader('set-cookie', toCookie(name, options.signed ? sign(text, String(secret)) : text, options));
  },
};

/** A media type of a text says how it is encoded. */
function withCharset(type: string): string {
  return /^(?:text\/|application\/json)[^;]*$/i.test(type) ? `${type}; charset=utf-8` : type;
}

/** @throws {TypeError} for a name or an attribute that would end early (RFC 6265, section 4.1.1) */
function toCookie(name: string, value: string, options: CookieOptions): string {
  const { maxAge, domain, path = '/', sameSite, priority, encode = encodeURIComponent } = options;
  const expires = maxAge == null ? options.expires : new Date(Date.now() + maxAge);
  if (!/^[!#-'*+.^`|~\w-]+$/.test(name))
    throw new TypeError(`${JSON.stringify(name)} cannot be the name of a cookie; use letters, digits and - _ .`);
  const attributes = {
    'Max-Age': maxAge == null ? undefined : Math.floor(maxAge / 1000),
    Domain: domain,
    Path: path,
    Expires: expires?.toUTCString(),
    HttpOnly: options.httpOnly,
    Secure: options.secure,
    Partitioned: options.partitioned,
    Priority: priority,
    SameSite: sameSite === true ? 'Strict' : sameSite,
  };
  const parts = [`${name}=${encode(value)}`];
  for (const [attribute, given] of Object.entries(attributes)) {
    if (given === undefined || given === false) continue;
    const text = String(given);
    if (/[;\u0000-\u001f\u007f]/.test(text))
      throw new TypeError(`${attribute} of the cookie ${name} is ${JSON.stringify(text)}; leave control characters and ; out`);
    const isWord = attribute === 'SameSite' || attribute === 'Priority';
    parts.push(given === true ? attribute : `${attribute}=${isWord ? text[0]?.toUpperCase() + text.slice(1) : text}`);
  }
  return parts.join('; ');
}

/** As `cookie-parser` reads it. */
function sign(value: string, secret: string): string {
  const digest = builtin('node:crypto').createHmac('sha256', secret).update(value).digest('base64');
  return `s:${value}.${digest.replace(/=+$/, '')}`;
}
