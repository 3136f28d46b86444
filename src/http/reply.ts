/**
 * Turns whatever a handler returned into what goes on the wire.
 *
 * A plain value becomes JSON, a string text, bytes and streams octets, `undefined` an empty 204.
 */

/** Whatever `new Headers()` takes. */
export type HeadersLike = ConstructorParameters<typeof Headers>[0];

/** What `reply` may set besides the body; the shape of `ResponseInit`. */
export interface ReplyInit {
  /** 200 to 599; 200 unless given, 204 without a body. */
  status?: number;
  statusText?: string;
  headers?: HeadersLike;
}

/** Status, headers and body on their way out; middleware may change all three. */
export class Reply {
  status: number;
  statusText: string;
  body: unknown;
  readonly #init: HeadersLike;
  #headers: Headers | undefined;

  constructor(body: unknown, init: ReplyInit = {}) {
    this.status = init.status ?? (body === undefined ? 204 : 200);
    this.statusText = init.statusText ?? '';
    this.body = body;
    this.#init = init.headers;
  }

  /** Made when first asked for: loading `Headers` costs a process more than a plain service ever needs. */
  get headers(): Headers {
    return (this.#headers ??= new Headers(this.#init));
  }

  /** The headers if there are any. */
  get ownHeaders(): Headers | undefined {
    return this.#headers ?? (this.#init === undefined ? undefined : this.headers);
  }
}

/** What may be streamed. */
export type Stream = AsyncIterable<unknown>;

/** A reply in the form that a connection writes: header names and values by turns. @internal */
export interface Outgoing {
  readonly status: number;
  readonly statusText: string;
  /** The values of a repeated name in one array. */
  readonly headers: (string | string[])[];
  readonly body: string | Uint8Array | Stream | null;
  /** Of the body, in bytes; -1 for one that goes out without a `content-length`. */
  readonly length: number;
}

/**
 * A reply with a status, headers, or both.
 *
 * @param body anything that a handler may return
 * @param init the status and headers; a given `content-type` beats the default of the body's kind
 */
export function reply(body?: unknown, init?: ReplyInit): Reply {
  return new Reply(body, init);
}

/** What a handler returned, as a `Reply`; a `Response` keeps its status and headers. */
export function toReply(value: unknown): Reply {
  if (value instanceof Reply) return value;
  if (isResponse(value)) return new Reply(value.body ?? undefined, value);
  return new Reply(value);
}

/**
 * What a handler returned, ready to be written.
 *
 * @param method of the request: a reply to HEAD may tell the length of a body that it does not have
 * @throws {TypeError} when the value can't be sent: a function, a symbol, a bigint, a cycle, a reply inside a reply
 * @throws {RangeError} when its status is not an integer from 200 to 599
 * @throws the value itself when it is an `Error`: returning one is raising it
 * @internal
 */
export function toOutgoing(value: unknown, method: string): Outgoing {
  if (value instanceof Reply) return replyToOutgoing(value, method);
  if (isResponse(value)) return replyToOutgoing(toReply(value), method);
  if (value === undefined) return { status: 204, statusText: '', headers: [], body: null, length: -1 };
  const { body, type, length } = encodeBody(value);
  return { status: 200, statusText: '', headers: ['content-type', type], body, length };
}

/** Whether a body is a stream rather than something whose length is known. */
export function isStream(body: unknown): body is Stream {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

/** Whether a handler returned a promise. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

interface EncodedBody {
  readonly body: string | Uint8Array | Stream;
  readonly type: string;
  readonly length: number;
}

function encodeBody(value: unknown): EncodedBody {
  if (typeof value === 'string') return { body: value, type: 'text/plain; charset=utf-8', length: Buffer.byteLength(value) };
  if (typeof value === 'object' && value !== null) {
    if (value instanceof Uint8Array) return { body: value, type: 'application/octet-stream', length: value.byteLength };
    if (isStream(value)) return { body: value, type: 'application/octet-stream', length: -1 };
    if (value instanceof Error) throw value;
  }
  const json = JSON.stringify(value) as string | undefined;
  if (json === undefined) throw new TypeError(`a handler returned a ${typeof value}, which has no JSON form`);
  return { body: json, type: 'application/json', length: Buffer.byteLength(json) };
}

function replyToOutgoing({ status, statusText, body: value, ownHeaders }: Reply, method: string): Outgoing {
  if (!Number.isInteger(status) || status < 200 || status > 599) throw new RangeError(`${String(status)} is no status of a reply; use an integer from 200 to 599`);
  const bodiless = status === 204 || status === 205 || status === 304;
  if (bodiless || value === undefined) {
    // Only HEAD and 304 tell the length of what they leave out (RFC 9110, section 8.6): others would swallow the next reply.
    const tellsLength = status === 304 || (method === 'HEAD' && status !== 204 && ownHeaders?.has('content-length') === true);
    return { status, statusText, headers: flatten(ownHeaders, !tellsLength), body: null, length: status === 204 || tellsLength ? -1 : 0 };
  }
  if (value instanceof Reply || isResponse(value)) throw new TypeError('a reply is the body of another; return it as it is');
  const { body, type, length } = encodeBody(value);
  const headers = flatten(ownHeaders, length !== -1);
  if (!ownHeaders?.has('content-type')) headers.push('content-type', type);
  return { status, statusText, headers, body, length };
}

/** Framing is the connection's: a `transfer-encoding`, or a length beside a known one, would break it. */
function flatten(headers: Headers | undefined, lengthKnown: boolean): (string | string[])[] {
  const flat: (string | string[])[] = [];
  for (const [name, value] of headers ?? []) {
    if (name === 'transfer-encoding' || name === 'set-cookie' || (lengthKnown && name === 'content-length')) continue;
    if (name === 'content-length' && !/^\d+$/.test(value)) throw new TypeError(`content-length is ${JSON.stringify(value)}; give a whole number`);
    flat.push(name, value);
  }
  // As one: beside a header set by hand, node:http 20 would keep the last of several.
  const cookies = headers?.getSetCookie() ?? [];
  if (cookies.length > 0) flat.push('set-cookie', cookies);
  return flat;
}

/** By tag first: naming the global `Response` loads it. */
function isResponse(value: unknown): value is Response {
  return Object.prototype.toString.call(value) === '[object Response]' && value instanceof Response;
}
