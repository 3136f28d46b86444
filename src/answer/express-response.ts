/*
 * The methods that middleware written for Express expects of a response beyond `node:http`.
 *
 * Source: Express 5 documentation, "Response".
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { builtin } from '../base/builtin.js';
import { Date } from '../base/clock.js';
import { parseList } from '../payload/accept.js';
import { endsAtHead, isBodiless } from '../payload/bodiless.js';
import { cookieValue, toCookie, type CookieOptions } from './cookies.js';
import { toContentType } from './media-types.js';
import { entityTag, isFresh, preferTypes } from './negotiation.js';

const { STATUS_CODES } = builtin('node:http');

/** A response with the methods of this file. */
interface Response extends ServerResponse, Methods {}
type Methods = typeof RESPONSE_METHODS;

type HeaderValue = number | string | readonly string[];

/** Methods of a response. */
export const RESPONSE_METHODS = {
  set,
  header: set,

  status(this: Response, code: number): Response {
    if (!Number.isInteger(code)) throw new TypeError(`${JSON.stringify(code)} is not a status; give an integer`);
    if (code < 100 || code > 999) throw new RangeError(`${code} is not a status; give an integer from 100 to 999`);
    this.statusCode = code;
    return this;
  },

  sendStatus(this: Response, code: number): Response {
    return this.status(code).type('txt').send(STATUS_CODES[code] ?? String(code));
  },

  get(this: Response, name: string): number | string | string[] | undefined {
    return this.getHeader(name);
  },

  /** Adds values to those that a header has. */
  append(this: Response, name: string, value: HeaderValue): Response {
    const before = this.getHeader(name);
    return this.set(name, before === undefined ? value : [before, value].flat());
  },

  /** Adds names of request headers that the reply depends on. */
  vary(this: Response, names: string | readonly string[]): Response {
    const added = typeof names === 'string' ? namesIn(names) : names;
    if (added.some((name) => !TOKEN.test(name)))
      throw new TypeError(`vary takes names of headers, not ${JSON.stringify(names)}`);
    const listed = [this.getHeader('vary') ?? []].flat().join(', ');
    const known = listed === '' ? [] : namesIn(listed);
    if (known.includes('*') || added.includes('*')) return this.setHeader('vary', '*');
    for (const name of added)
      if (!known.some((each) => each.toLowerCase() === name.toLowerCase())) known.push(name);
    return known.length === 0 ? this : this.setHeader('vary', known.join(', '));
  },

  /** @param type a media type, or a file's extension */
  type(this: Response, type: string): Response {
    return this.set('content-type', toContentType(type) ?? 'application/octet-stream');
  },

  json(this: Response, body: unknown): Response {
    if (!this.getHeader('content-type')) this.type('json');
    return this.send(JSON.stringify(body) as string | undefined);
  },

  send(this: Response, body?: unknown): Response {
    const isBytes = ArrayBuffer.isView(body);
    if (typeof body !== 'string' && body != null && !isBytes) return this.json(body);
    const type = this.getHeader('content-type');
    if (typeof body === 'string') this.set('content-type', type ? withUtf8(String(type)) : 'html');
    else if (isBytes && !type) this.type('bin');
    const bytes = isBytes ? Buffer.from(body.buffer, body.byteOffset, body.byteLength) : Buffer.from(body ?? '');
    if (body !== undefined && !this.getHeader('transfer-encoding')) this.setHeader('content-length', bytes.length);
    if (body !== undefined && !this.getHeader('etag')) this.setHeader('etag', entityTag(bytes));
    if (isFresh(this.req, this)) this.status(304);
    const { statusCode } = this;
    if (endsAtHead(statusCode))
      for (const name of ['content-type', 'content-length', 'transfer-encoding']) this.removeHeader(name);
    else if (statusCode === 205) this.setHeader('content-length', 0).removeHeader('transfer-encoding');
    const isEmpty = isBodiless(statusCode) || this.req.method === 'HEAD';
    return isEmpty ? this.end() : this.end(bytes);
  },

  location(this: Response, url: string): Response {
    return this.set('location', encodeUrl(String(url)));
  },

  redirect(this: Response, ...[first, second]: [url: string] | [status: number, url: string]): void {
    const [status, url] = second === undefined ? [302, String(first)] : [Number(first), second];
    this.location(url).vary('Accept');
    const [form] = preferTypes(this.req.headers.accept, ['text', 'html']);
    const reason = STATUS_CODES[status] ?? '';
    const to = `${reason}. Redirecting to `;
    let body = '';
    const target = String(this.get('location'));
    if (form === 'text') body = to + target;
    else if (form === 'html')
      body = `<!DOCTYPE html><head><title>${reason}</title></head><body><p>${to}${escapeHtml(target)}</p></body>`;
    if (form !== undefined) this.type(form);
    this.status(status).setHeader('content-length', Buffer.byteLength(body)).end(body);
  },

  /** Has the reply saved as a file. */
  attachment(this: Response, path?: string): Response {
    if (!path) return this.set('content-disposition', 'attachment');
    const { basename, extname } = builtin('node:path');
    const name = basename(path);
    return this.type(extname(name)).set('content-disposition', toDisposition(name));
  },

  cookie(this: Response, name: string, value: unknown, options: CookieOptions = {}): Response {
    const { secret } = this.req as IncomingMessage & { readonly secret?: string };
    return this.append('set-cookie', toCookie(name, cookieValue(value, options.signed === true, secret), options));
  },

  clearCookie(this: Response, name: string, options: CookieOptions = {}): Response {
    return this.cookie(name, '', { path: '/', ...options, expires: new Date(1), maxAge: undefined });
  },
};

/** Sets a header, or several. */
function set(this: Response, name: string | Readonly<Record<string, unknown>>, value?: unknown): Response {
  if (typeof name !== 'string') {
    for (const [each, own] of Object.entries(name)) this.set(each, own);
    return this;
  }
  const isType = name.toLowerCase() === 'content-type';
  if (isType && Array.isArray(value)) throw new TypeError('a response has one content type; give a text');
  if (Array.isArray(value)) return this.setHeader(name, value.map(String));
  return this.setHeader(name, isType ? (toContentType(String(value)) ?? String(value)) : String(value));
}

const TOKEN = /^[!#-'*+.^`|~\w-]+$/;

/** The names in a list such as `Vary`. */
function namesIn(list: string): string[] {
  return list.split(',').map((name) => name.trim());
}

/** A media type whose text is encoded in UTF-8, whatever it said before. */
function withUtf8(type: string): string {
  const [item] = parseList(type);
  if (item === undefined) return type;
  const { name, parameters } = item;
  const all = Object.entries({ ...Object.fromEntries(parameters), charset: 'utf-8' });
  return [name, ...all.map(([parameter, value]) => `${parameter}=${quoted(value)}`)].join('; ');
}

/** The value of a parameter, in quotes if it has to be. */
function quoted(value: string): string {
  return TOKEN.test(value) ? value : `"${value.replace(/[\\"]/g, '\\$&')}"`;
}

/** A URL whose other characters are escaped; existing escapes stay unchanged. */
function encodeUrl(url: string): string {
  return url.toWellFormed().replace(/(?:[^!#-;=?-_a-z|~]|%(?![\dA-Fa-f]{2}))+/g, encodeURI);
}

function escapeHtml(text: string): string {
  return text.replace(/["&'<>]/g, (character) => `&${{ '"': 'quot', '&': 'amp', '<': 'lt', '>': 'gt' }[character] ?? '#39'};`);
}

/** `attachment; filename=a.txt` (RFC 6266); other characters than ASCII are also in `filename*` (RFC 8187). */
function toDisposition(name: string): string {
  const isAscii = /^[ -~]*$/.test(name) && !/%[\dA-Fa-f]{2}/.test(name);
  if (isAscii) return `attachment; filename=${quoted(name)}`;
  const encoded = encodeURIComponent(name.toWellFormed())
    .replace(/["'()*,/:;<=>?@[\\\]{}]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename=${quoted(name.replace(/[^ -~]/g, '?'))}; filename*=UTF-8''${encoded}`;
}
