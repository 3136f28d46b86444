/* Turns what a call was given into a request that means the same: target, headers, body. */

import type { CallName } from './service-error.js';
import type { Query, RequestHeaders, ServiceBody, ServiceStream } from './call-options.js';
import { builtin } from '../base/builtin.js';
import { show } from '../base/options-check.js';
import { ignoreRejection } from '../base/promises.js';
import { streamOf } from '../payload/bytes.js';
import { dropConnectionHeaders } from '../payload/headers.js';
import { toJson } from '../payload/lost-members.js';
import type { Answer } from './answer.js';
import type { Limit } from './limit.js';

/** A body that is ready to be sent: bytes, which can be sent again, or a stream. */
interface RequestBody {
  readonly content: Uint8Array | ServiceStream;
  /** The content type if the call sets none; undefined where Fetch has none either. */
  readonly type: string | undefined;
}

export interface ServiceRequest extends CallName {
  /** From the `/` on, query included; appended to the path of the service's URL. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: RequestBody | undefined;
}

/** Sends requests to one service: over HTTP, or in memory. */
export interface Transport {
  /** The URL of the service, without query and trailing slash. */
  readonly url: string;
  /**
   * Sends a request and waits for the head of the answer, whatever its status. The limit is released with the end of
   * the answer, or of the attempt.
   *
   * @throws {ServiceError} 503 when the connection fails, 502 for an answer that breaks HTTP
   * @throws the reason for which the attempt was ended
   */
  open(request: ServiceRequest, limit: Limit): Promise<Answer>;
  /** Closes every connection, in use or not. */
  close(): void;
}

/** Methods that may be sent twice without harm (RFC 9110, section 9.2.2; RFC 10008 for QUERY). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'QUERY']);

const ACCEPT = 'application/json, */*;q=0.5';

/** Methods with `content-length: 0` if they have no body (RFC 9110, section 8.6). */
const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['PATCH', 'POST', 'PUT']);

/** Whether a request can be sent twice: its method is idempotent, and its body is not a stream. */
export function isRepeatable({ method, body }: Pick<ServiceRequest, 'method' | 'body'>): boolean {
  return IDEMPOTENT.has(method) && (body === undefined || body.content instanceof Uint8Array);
}

/**
 * A path with its query, percent-encoded where necessary: `('/a b', { q: [1, 2] })` → `/a%20b?q=1&q=2`.
 *
 * @throws {TypeError} for a path that does not start with exactly one `/`, has a `.` or `..` segment in any spelling, a
 * backslash, a fragment or a control character: a path built from a request must not lead elsewhere
 */
export function formatTarget(path: string, query: Query | undefined): string {
  const refuse = (what: string): never => {
    throw new TypeError(`path ${JSON.stringify(path)} ${what}`);
  };
  if (typeof path !== 'string' || !/^\/(?!\/)/.test(path)) refuse('must start with one /');
  if (/[\\#\x00-\x1f\x7f]/.test(path)) refuse('has a backslash, a # or a control character; encode it');
  if (/\/(?:\.|%2e){1,2}(?![^/?])/i.test(path.replace(/\?.*/s, '')))
    refuse('has a dot segment; give the path it leads to');
  if (!path.isWellFormed()) refuse('has half a surrogate pair');
  // Existing escapes stay unchanged.
  const encoded = encodeURI(path).replaceAll('%25', '%');
  const search = query === undefined ? '' : appendAll(new URLSearchParams(), query).toString();
  return search === '' ? encoded : `${encoded}${path.includes('?') ? '&' : '?'}${search}`;
}

/**
 * The headers of a request, names in lower case. Given headers override the defaults, and those before them; headers of
 * a connection, and those that a given `connection` names, are left out. The body decides the headers that frame it.
 *
 * @throws {TypeError} for a name or value that HTTP cannot carry
 */
export function formatHeaders(
  given: readonly (RequestHeaders | undefined)[],
  method: string,
  body: RequestBody | undefined,
): Record<string, string> {
  const headers: Record<string, string> = { accept: ACCEPT };
  if (body?.type !== undefined) headers['content-type'] = body.type;
  for (const each of given) {
    const own = toHeaders(each ?? {});
    dropConnectionHeaders(own);
    own.delete('content-length');
    Object.assign(headers, Object.fromEntries(own));
  }
  return Object.assign(headers, framing(method, body));
}

/**
 * @returns undefined for no body
 * @throws {TypeError} if both are given, for a value that JSON loses, and for a body of another type
 */
export function toRequestBody(json: unknown, body: ServiceBody | null | undefined): RequestBody | undefined {
  if (json !== undefined) {
    if (body !== undefined && body !== null) throw new TypeError('json and body are both given; keep one');
    return { content: Buffer.from(toJson(json, 'json')), type: 'application/json' };
  }
  if (body === undefined || body === null) return undefined;
  if (typeof body === 'string') return { content: Buffer.from(body), type: 'text/plain;charset=UTF-8' };
  if (body instanceof ArrayBuffer) return toRequestBody(undefined, new Uint8Array(body));
  if (body instanceof Uint8Array || (typeof body === 'object' && Symbol.asyncIterator in body))
    return { content: body, type: 'application/octet-stream' };
  if (body instanceof URLSearchParams) {
    const type = 'application/x-www-form-urlencoded;charset=UTF-8';
    return { content: Buffer.from(body.toString()), type };
  }
  // Naming the globals loads them, so they come last.
  if (body instanceof Blob || body instanceof FormData) {
    const response = new Response(body);
    return { content: streamOf(response) as ServiceStream, type: response.headers.get('content-type') ?? undefined };
  }
  throw new TypeError(
    `body is ${show(body)}; give a string, bytes, URLSearchParams or a stream, or json for a value`,
  );
}

/** @throws {TypeError} for a name or value that HTTP cannot carry */
export function toHeaders(given: RequestHeaders): Headers {
  return appendAll(new Headers(), given);
}

/** The header that frames the body. Without it, `node:http` frames only bodies of methods that usually have one. */
function framing(method: string, body: RequestBody | undefined): Record<string, string> {
  if (body === undefined) return METHODS_WITH_BODY.has(method) ? { 'content-length': '0' } : {};
  const { content } = body;
  return content instanceof Uint8Array
    ? { 'content-length': String(content.byteLength) }
    : { 'transfer-encoding': 'chunked' };
}

/** Appends each value under its name, and each element of a list; undefined and null are left out. */
function appendAll<T extends Headers | URLSearchParams>(target: T, given: Query | RequestHeaders): T {
  for (const [name, values] of Symbol.iterator in given ? given : Object.entries(given))
    for (const value of Array.isArray(values) ? (values as unknown[]) : [values])
      if (value !== undefined && value !== null) append(target, name, value);
  return target;
}

function append(target: Headers | URLSearchParams, name: string, value: unknown): void {
  const text = toText(name, value, target instanceof Headers);
  try {
    target.append(name, text);
  } catch {
    // The error of `Headers` shows a value, which may be a secret, or names no header.
    const what = 'has a character in its name or its value that HTTP does not carry';
    throw new TypeError(`header ${show(name)} ${what}; encode it, as by encodeURIComponent()`);
  }
}

/** @throws {TypeError} for a value that would arrive as something else: `[object Object]`, `NaN` */
function toText(name: string, value: unknown, isHeader: boolean): string {
  if (['string', 'boolean', 'bigint'].includes(typeof value) || Number.isFinite(value)) return String(value);
  const isDate = !isHeader && builtin('node:util').types.isDate(value);
  if (isDate && !Number.isNaN(value.getTime())) return value.toISOString();
  ignoreRejection(value);
  const [what, give] = isHeader ? ['header', 'a string'] : ['query parameter', 'a string, a number, a boolean or a date'];
  throw new TypeError(`${what} "${name}" is ${isDate ? 'an invalid time' : show(value)}; give ${give}, or a list of such`);
}
