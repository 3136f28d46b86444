/*
 * Turns a handler's result into the bytes that are sent.
 *
 * A plain value becomes JSON, a string text, bytes and streams octets, `undefined` an empty 204.
 */

import type { AsyncResource } from 'node:async_hooks';
import { isBranded, setBrand } from '../base/brand.js';
import { builtin } from '../base/builtin.js';
import { ignoreRejection, isThenable } from '../base/promises.js';
import { isStatus } from '../base/errors.js';
import { ANYTHING, assertOptions, STRING, type Kind, type Kinds } from '../base/options-check.js';
import { isBodiless } from '../payload/bodiless.js';
import { discardStream, isResponse, isStream, letFail, streamOf, tagOf, type Stream } from '../payload/bytes.js';
import { toJson, UnsendableError } from '../payload/lost-members.js';
import { CODING_HEADERS, dropConnectionHeaders } from '../payload/headers.js';
import type { Outgoing } from '../wire/outgoing.js';

/** Headers as in `fetch`: a `Headers`, an object, or a list of pairs. */
// Written out: the type of the parameter of `new Headers()` is one of undici-types, which users do not depend on.
export type HeadersLike = Headers | Readonly<Record<string, string>> | [name: string, value: string][];

/** Status and headers for `reply`; the shape of `ResponseInit`. */
export interface ReplyInit<Status extends number = number> {
  /** Status, 200 to 599. Default: 200, or 204 without a body. */
  status?: Status | undefined;
  /** The reason phrase. Default: the usual one of the status. */
  statusText?: string | undefined;
  /** Headers as in `fetch`: a `Headers`, an object, or a list of pairs. */
  headers?: HeadersLike | undefined;
}

const STATUS: Kind = { accepts: (value) => isStatus(value, 200), give: 'a status from 200 to 599, such as 201' };
const INIT: Kinds<ReplyInit> = { status: STATUS, statusText: STRING, headers: ANYTHING };

/** A thrown value. Wrapped, because `undefined` can be thrown, too. */
interface Failure {
  readonly thrown: unknown;
}

/** Status, headers and body on their way out; middleware may change all three. */
export class Reply<Body = unknown, Status extends number = number> {
  /** The status, 200 to 599. */
  status: Status;
  /** The reason phrase; empty for the usual one of the status. */
  statusText: string;
  /** The value or stream that becomes the body. */
  body: Body;
  #init: HeadersLike | undefined;
  #headers: Headers | undefined;
  /** The request that it belongs to, if a middleware has seen it. */
  #request: object | undefined;
  #context: AsyncResource | undefined;
  #failure: Failure | undefined;
  /** The failure of the reply that middleware replaced with this one. */
  #replaced: Failure | undefined;

  /** @throws {TypeError} for an unknown or invalid option */
  constructor(body: Body, init?: ReplyInit<Status>) {
    if (init !== undefined) assertOptions('reply()', init, INIT);
    // The types of `reply` say the same.
    this.status = (init?.status ?? (body === undefined ? 204 : 200)) as Status;
    this.statusText = init?.statusText ?? '';
    this.body = body;
    this.#init = init?.headers;
  }

  /**
   * A handler's result as the reply of one request, which middleware may change: a handler may return one reply for
   * every request. Throws as {@link toReply} does. @internal
   */
  static ownedBy(request: object, value: unknown): Reply {
    const given = toReply(value);
    if (given.#request === request) return given;
    letFail(given.body);
    const own = Object.assign(new Reply(given.body), { status: given.status, statusText: given.statusText });
    own.#init = given.#headers ?? given.#init;
    own.#failure = given.#failure;
    own.#request = request;
    return own;
  }

  /** Has the body read in the present async context. @internal */
  keepContext(): void {
    const { AsyncResource } = builtin('node:async_hooks');
    this.#context ??= new AsyncResource('POSTERN_REPLY', { requireManualDestroy: true });
  }

  /** The async context to read the body in, if it is not the request's. @internal */
  static contextOf(reply: Reply): AsyncResource | undefined {
    return reply.#context;
  }

  /**
   * Takes over what belongs to the request rather than to the reply in whose place middleware sends this one: the
   * failure, which is not logged yet, and the async context, in which a new stream reads the handler's. @internal
   */
  takeOver(inner: Reply): void {
    this.#replaced = inner.#failure ?? inner.#replaced;
    this.#context ??= inner.#context;
  }

  /** The failure that led to a reply, also to one of middleware; undefined for any other value. @internal */
  static failureOf(value: unknown): Failure | undefined {
    // Not `instanceof`, which can throw, for example for a Proxy.
    if (typeof value !== 'object' || value === null || !(#failure in value)) return undefined;
    return value.#failure ?? value.#replaced;
  }

  /** The reply to a request that failed. @internal */
  static ofFailure(thrown: unknown, body: object, init: ReplyInit): Reply {
    const reply = new Reply<unknown>(body, init);
    reply.#failure = { thrown };
    return reply;
  }

  /** The value that a handler or inner middleware threw, on the reply to a failed request; undefined otherwise. */
  get error(): unknown {
    return this.#failure?.thrown;
  }

  /** Made when first asked for: loading `Headers` costs a process more than a plain service ever needs. */
  get headers(): Headers {
    if (this.#headers === undefined) ignoreRejection(this.#init);
    return (this.#headers ??= new Headers(this.#init));
  }

  /** The headers if there are any. @internal */
  get ownHeaders(): Headers | undefined {
    return this.#headers ?? (this.#init === undefined ? undefined : this.headers);
  }
}

// The tag is read of every value that a handler returns, so it is what finds replies; the brand then proves one.
setBrand(Reply.prototype, 'Reply');
Object.defineProperty(Reply.prototype, Symbol.toStringTag, { value: 'Reply' });
const REPLY_TAG = '[object Reply]';

/**
 * A reply with a status, headers, or both.
 *
 * @param body anything that a handler may return
 * @param init the status and headers; a given `content-type` overrides the default of the body's kind
 * @returns a reply of that status; of a status that may be one of several, one of several replies
 * @throws {TypeError} for an unknown or invalid option
 *
 * @example
 * app.post('/users', () => reply({ id: 7 }, { status: 201, headers: { location: '/users/7' } }));
 */
export function reply<const Body = undefined, Status extends number = Body extends undefined ? 204 : 200>(
  body?: Body,
  init?: ReplyInit<Status>,
): Status extends number ? Reply<Body, Status> : never;
export function reply(body?: unknown, init?: ReplyInit): Reply {
  return new Reply(body, init);
}

/**
 * Turns a handler's result into a `Reply`. A `Response` and a reply of another copy of Postern keep status and headers.
 *
 * @throws the value itself, or its body, when that is an `Error`: returning one is raising it
 */
export function toReply(value: unknown): Reply {
  const given = value instanceof Reply ? value : (toReplyByTag(value, tagOf(value)) ?? new Reply(value));
  if (isError(given.body)) throw given.body;
  return given;
}

/**
 * Turns a handler's result into a reply that is ready to be written.
 *
 * @param method of the request: a reply to HEAD may state the length of a body that it does not have
 * @throws {TypeError} when the value can't be sent: a function, a symbol, a bigint, a cycle, a member that JSON loses,
 * a reply inside a reply
 * @throws {RangeError} when its status is not an integer from 200 to 599
 * @throws the value itself when it is an `Error`: returning one is raising it
 */
export function toOutgoing(value: unknown, method: string): Outgoing {
  if (value === undefined) return { status: 204, statusText: '', headers: [], body: null, length: -1 };
  const tag = tagOf(value);
  if (!isPlain(tag)) {
    const given = value instanceof Reply ? value : toReplyByTag(value, tag);
    if (given !== undefined) return replyToOutgoing(given, method);
  }
  const { body, type, length } = encodeBody(value, tag);
  return { status: 200, statusText: '', headers: ['content-type', type], body, length };
}

/** Lets what is in a result fail before anybody reads it; see {@link letFail}. Of a promise, somebody awaits it. */
export function letResultFail(result: unknown): void {
  if (!isThenable(result)) letFail(result instanceof Reply ? result.body : result);
}

/** Whether a value is an error, also one of another realm, such as `vm` or Jest. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || tagOf(value) === '[object Error]';
}

/** Frees what is in a value that will not be sent, or was thrown; never throws, whatever the value. */
export function discard(value: unknown): void {
  try {
    if (isError(value)) return;
    const { body } = toReply(value);
    if (body instanceof Reply) discard(body);
    else if (isStream(body)) discardStream(body);
    else letFail(body, true);
  } catch {
    // Reading the value can throw, for example from a Proxy.
  }
}

/** A `Response`, or a reply of another copy; undefined for anything else. */
function toReplyByTag(value: unknown, tag: string): Reply | undefined {
  if (tag === REPLY_TAG) {
    if (!isBranded(value, 'Reply')) return undefined;
    const { status, statusText, headers, body } = value as Reply;
    return new Reply(body, { status, statusText, headers });
  }
  if (!isResponse(value)) return undefined;
  // Otherwise the rest of the body is sent, as if it were the whole.
  if (value.bodyUsed)
    throw new UnsendableError('the body of the Response was read already; use response.clone() where it is needed twice');
  const { status, statusText, url } = value;
  const headers = copyHeaders(value.headers);
  // The body that `fetch` returned is decoded, and its connection is not the client's.
  if (url !== '') {
    dropConnectionHeaders(headers);
    for (const name of CODING_HEADERS) headers.delete(name);
  }
  // The answer to a HEAD that `fetch` sent has no body, and a GET would have one of unknown length.
  return new Reply(streamOf(value) ?? (url === '' ? undefined : NO_CHUNKS), { status, statusText, headers });
}

const NO_CHUNKS: Stream = { async *[Symbol.asyncIterator]() {} };

/** Headers of any copy of Fetch, cookies one by one: some copies join them, and have a method `raw` of their own. */
function copyHeaders(given: Headers & { raw?: () => Readonly<Record<string, string[]>> }): Headers {
  const headers = new Headers();
  for (const [name, value] of given) if (name.toLowerCase() !== 'set-cookie') headers.append(name, value);
  const cookies = typeof given.getSetCookie === 'function' ? given.getSetCookie() : given.raw?.()['set-cookie'];
  for (const cookie of cookies ?? [given.get('set-cookie') ?? []].flat()) headers.append('set-cookie', cookie);
  return headers;
}

function replyToOutgoing(given: Reply, method: string): Outgoing {
  const { status, statusText, body: value, ownHeaders } = given;
  if (!isStatus(status, 200)) {
    ignoreRejection(status);
    throw new RangeError(`${String(status)} is not a status of a reply; use an integer from 200 to 599`);
  }
  if (isBodiless(status) || value === undefined) {
    // Only a reply to HEAD and a 304 may tell the length of a body that they leave out (RFC 9110, section 8.6). With
    // any other reply, the client would wait for that many bytes, and take the next reply for them.
    const tellsLength =
      status === 304 || (method === 'HEAD' && status !== 204 && ownHeaders?.has('content-length') === true);
    const length = status === 204 || tellsLength ? -1 : 0;
    return { status, statusText, headers: flatten(ownHeaders, !tellsLength), body: null, length };
  }
  const tag = tagOf(value);
  if (value instanceof Reply || toReplyByTag(value, tag) !== undefined)
    throw new TypeError('a reply is the body of another; return it as it is');
  const { body, type, length } = encodeBody(value, tag);
  const headers = flatten(ownHeaders, length !== -1);
  if (!ownHeaders?.has('content-type')) headers.push('content-type', type);
  return { status, statusText, headers, body, length, context: Reply.contextOf(given) };
}

/**
 * Names and values alternately, without the headers that frame the body: the writer sets them. A handler's
 * `transfer-encoding`, or a `content-length` other than the real one, would make the client read the reply wrongly.
 */
export function flatten(headers: Headers | undefined, lengthKnown: boolean): (string | string[])[] {
  const flat: (string | string[])[] = [];
  for (const [name, value] of headers ?? []) {
    if (name === 'transfer-encoding' || name === 'set-cookie' || (lengthKnown && name === 'content-length')) continue;
    if (name === 'content-length' && !/^\d+$/.test(value))
      throw new TypeError(`content-length is ${JSON.stringify(value)}; give a whole number`);
    flat.push(name, value);
  }
  // All cookies as one entry: of several, node:http 20 keeps only the last when a header was set on `res` by hand.
  const cookies = headers?.getSetCookie() ?? [];
  if (cookies.length > 0) flat.push('set-cookie', cookies);
  return flat;
}

/** The sent form of a body, with its content type unless one is given. */
type EncodedBody = Pick<Outgoing, 'body' | 'length'> & { readonly type: string };

const OCTETS = 'application/octet-stream';

/** Whether a tag is the default one: the value is an object or an array without a tag of its own. */
function isPlain(tag: string): boolean {
  return tag === '[object Object]' || tag === '[object Array]';
}

/** Throws as {@link toOutgoing} does. @param tag of the value */
function encodeBody(value: unknown, tag: string): EncodedBody {
  if (typeof value === 'string')
    return { body: value, type: 'text/plain; charset=utf-8', length: Buffer.byteLength(value) };
  if (typeof value === 'object' && value !== null) {
    if (!isPlain(tag)) {
      if (value instanceof Uint8Array) return { body: value, type: OCTETS, length: value.byteLength };
      if (isError(value)) throw value;
      const encoded = encodePlatformObject(value, tag);
      if (encoded !== undefined) return encoded;
    }
    if (Symbol.asyncIterator in value) {
      letFail(value);
      return { body: value as Stream, type: OCTETS, length: -1 };
    }
  }
  const json = toJson(value);
  return { body: json, type: 'application/json', length: Buffer.byteLength(json) };
}

/** Encodes what else `new Response()` takes (Fetch, "extract a body"). Bytes are octets here, of whatever class. */
function encodePlatformObject(value: object, tag: string): EncodedBody | undefined {
  if (tag === '[object URLSearchParams]' && value instanceof URLSearchParams) {
    const text = value.toString();
    return { body: text, type: 'application/x-www-form-urlencoded;charset=UTF-8', length: text.length };
  }
  if ((tag === '[object Blob]' || tag === '[object File]') && value instanceof Blob)
    return { body: value.stream(), type: value.type || OCTETS, length: value.size };
  if (tag === '[object FormData]' && value instanceof FormData) {
    const response = new Response(value);
    return { body: streamOf(response) as Stream, type: response.headers.get('content-type') as string, length: -1 };
  }
  if (value instanceof ArrayBuffer) return { body: new Uint8Array(value), type: OCTETS, length: value.byteLength };
  if (ArrayBuffer.isView(value)) {
    const { buffer, byteOffset, byteLength } = value;
    return { body: new Uint8Array(buffer, byteOffset, byteLength), type: OCTETS, length: byteLength };
  }
  return undefined;
}

/** 307 and 308 keep method and body; 303 makes a GET of it; 301 and 302 do either. */
export type RedirectStatus = 301 | 302 | 303 | 307 | 308;

const STATUSES: readonly number[] = [301, 302, 303, 307, 308] satisfies RedirectStatus[];
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const SCHEME = /^ *[a-z][a-z0-9+.-]*:/i;
/** Bases to resolve a text against, as browsers do. Two, because a text may name the host of one: `//a.invalid/x`. */
const SITES = ['http://a.invalid', 'http://b.invalid'];

/**
 * A redirect to a path of this site, or by `URL` to anywhere: `redirect('/login')`, `redirect(new URL(partner), 303)`.
 *
 * A text never leads to another site, so that one from a request (`?next=//evil.example`) can't.
 *
 * @throws {TypeError} for a text that leads off this site (`//host`, `/\host`, a scheme), or has a control character
 * @throws {RangeError} for a status that is not a redirect
 *
 * @example
 * app.get('/old', () => redirect('/new', 301));
 */
export function redirect<Status extends RedirectStatus = 302>(
  location: string | URL,
  status: Status = 302 as Status,
): Reply<undefined, Status> {
  if (!STATUSES.includes(status)) {
    throw new RangeError(`${String(status)} is not a redirect; use one of ${STATUSES.join(', ')}`);
  }
  const target = location instanceof URL ? location.href : sitePathOf(location);
  return reply(undefined, { status, headers: { location: target } });
}

function sitePathOf(location: unknown): string {
  if (typeof location !== 'string' || location === '')
    throw new TypeError(`a redirect to ${JSON.stringify(location)} leads nowhere; give a path, or a URL object`);
  const isHere = SITES.every((site) => URL.canParse(location, site) && new URL(location, site).origin === site);
  if (CONTROL.test(location) || SCHEME.test(location) || !isHere)
    throw new TypeError(`a redirect to ${JSON.stringify(location)} could leave this site; give a URL object for that`);
  return location.toWellFormed().replace(/[^!-~]+/g, encodeURIComponent);
}
