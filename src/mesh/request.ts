/*
 * Turns a call's path, query and headers into a request that says what the caller meant, and nothing else.
 */

import type { RequestBody } from './request-body.js';

/** One value of a query; null and undefined are left out. */
export type QueryValue = string | number | boolean | bigint | null | undefined;

/** A query: an array gives its name once for each value. */
export type Query = URLSearchParams | Readonly<Record<string, QueryValue | readonly QueryValue[]>>;

/** Headers, as `Headers`, as pairs, or by name; undefined values are left out. */
export type RequestHeaders =
  Iterable<readonly [string, string]> | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Headers that belong to one connection (RFC 9110, section 7.6.1) or frame the body, which callers don't set. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const ACCEPT = 'application/json, */*;q=0.5';

/** Methods that say `content-length: 0` when they have no body (RFC 9110, section 8.6). */
const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['PATCH', 'POST', 'PUT']);

/**
 * A path with its query, percent-encoded where it must be: `('/a b', { q: [1, 2] })` gives `/a%20b?q=1&q=2`.
 *
 * @throws {TypeError} for a path that starts with anything but one `/`, has a `.` or `..` segment in any spelling, or
 * holds a backslash, a fragment or a control character: what is put together from a request must not lead elsewhere
 *
 * @internal
 */
export function formatTarget(path: string, query: Query | undefined): string {
  const refuse = (what: string): never => {
    throw new TypeError(`path ${JSON.stringify(path)} ${what}`);
  };
  if (typeof path !== 'string' || !/^\/(?!\/)/.test(path)) refuse('must start with one /');
  if (/[\\#\x00-\x1f\x7f]/.test(path)) refuse('has a backslash, a # or a control character; encode it');
  if (/\/(?:\.|%2e){1,2}(?![^/?])/i.test(path.replace(/\?.*/s, '')))
    refuse('has a dot segment; give the path it leads to');
  let encoded = '';
  try {
    // Escapes that are there already stay as they are.
    encoded = encodeURI(path).replaceAll('%25', '%');
  } catch {
    refuse('has half a surrogate pair');
  }
  const search = query === undefined ? '' : toSearchParams(query).toString();
  return search === '' ? encoded : `${encoded}${path.includes('?') ? '&' : '?'}${search}`;
}

/**
 * The headers of a request, names in lower case. The caller's beat the defaults; they go without those that belong to a
 * connection, or are named by the caller's own `connection`. Those that frame the body come from the body.
 *
 * @throws {TypeError} for a name or value that HTTP can't carry
 *
 * @internal
 */
export function formatHeaders(
  given: RequestHeaders | undefined,
  method: string,
  body: RequestBody | undefined,
): Record<string, string> {
  return {
    accept: ACCEPT,
    ...(body?.type === undefined ? {} : { 'content-type': body.type }),
    ...(given === undefined ? {} : passedOn(toHeaders(given))),
    ...framing(method, body),
  };
}

/** @throws {TypeError} for a name or value that HTTP can't carry @internal */
export function toHeaders(given: RequestHeaders): Headers {
  return appendAll(new Headers(), isIterable(given) ? given : Object.entries(given));
}

function passedOn(headers: Headers): Record<string, string> {
  const named = (headers.get('connection') ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim());
  return Object.fromEntries([...headers].filter(([name]) => !CONNECTION_HEADERS.has(name) && !named.includes(name)));
}

/** The header that frames the body. Without it, `node:http` frames only bodies of methods that usually have one. */
function framing(method: string, body: RequestBody | undefined): Record<string, string> {
  if (body === undefined) return METHODS_WITH_BODY.has(method) ? { 'content-length': '0' } : {};
  const { content } = body;
  return content instanceof Uint8Array
    ? { 'content-length': String(content.byteLength) }
    : { 'transfer-encoding': 'chunked' };
}

function toSearchParams(query: Query): URLSearchParams {
  return query instanceof URLSearchParams ? query : appendAll(new URLSearchParams(), Object.entries(query));
}

/** Every value under its name, each of a list; what is undefined or null is left out. */
function appendAll<T extends Headers | URLSearchParams>(target: T, given: Iterable<readonly [string, unknown]>): T {
  for (const [name, values] of given)
    for (const value of Array.isArray(values) ? (values as unknown[]) : [values])
      if (value !== undefined && value !== null) target.append(name, String(value));
  return target;
}

function isIterable(headers: RequestHeaders): headers is Iterable<readonly [string, string]> {
  return Symbol.iterator in headers;
}
