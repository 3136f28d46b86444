/* The arguments and the result of a call. */

import type { ByteStream } from '../payload/bytes.js';

/** One value of a query; a Date is sent as ISO 8601, null and undefined are left out. */
export type QueryValue = string | number | boolean | bigint | Date | null | undefined;

/** A query; an array repeats its name for each value. */
export type Query = URLSearchParams | Readonly<Record<string, QueryValue | readonly QueryValue[]>>;

/** Headers, as `Headers`, as pairs, or by name; undefined values are left out. */
export type RequestHeaders =
  Iterable<readonly [string, string]> | Readonly<Record<string, string | readonly string[] | undefined>>;

/** A stream that a call may send: a `Readable`, a `ReadableStream`, or another source of bytes or strings. */
export type ServiceStream = AsyncIterable<Uint8Array | string> | ByteStream;

/** A body that a call may send. `Blob` and `FormData` are sent as `fetch` would send them. */
export type ServiceBody = string | Uint8Array | ArrayBuffer | URLSearchParams | Blob | FormData | ServiceStream;

/** An application, or a function like `fetch`, that answers calls in memory. */
export type ServiceStandIn =
  | { request(target: string, init: RequestInit): Promise<Response> }
  | ((request: Request) => Response | Promise<Response>);

/** Options of a call. */
export interface ServiceRequestOptions {
  /**
   * Appended to the path. An array repeats its name for each value, a Date is sent as ISO 8601, null and undefined are
   * left out. Any other object, NaN, an infinite number and an invalid Date are a `TypeError`.
   */
  query?: Query | undefined;
  /**
   * Override the headers that the client sets. Headers of a connection, such as `transfer-encoding`, are not sent. With
   * `accept-encoding`, an answer in gzip, deflate or br is decoded, except by `fetch`.
   */
  headers?: RequestHeaders | undefined;
  /**
   * Time limit of each attempt in ms, from before the connection to the last byte (of `fetch`: to the end of the head).
   * Default: 5,000, or the time that is left to the request that makes the call, if that is less.
   */
  timeout?: number | undefined;
  /**
   * Ends the call, pauses between attempts included. Calls of `ctx.service` also end when the client of the request
   * disconnects or its deadline is over. `null` lifts both, for work that outlives the request.
   */
  signal?: AbortSignal | null | undefined;
  /**
   * How often an idempotent method is repeated after 503, 504 and connection errors. Default: 0. Postern waits as long
   * as `Retry-After` says, else from 50 ms up, and stops when the service's retry budget is spent. Only GET, HEAD, PUT,
   * DELETE, OPTIONS and QUERY are repeated, and never with a stream as body.
   */
  retry?: number | undefined;
}

/** Options of a call with a body. */
export interface ServiceBodyOptions extends ServiceRequestOptions {
  /** Sent as `application/json`. A value that JSON would lose, such as a promise, is a `TypeError`. */
  json?: unknown;
  /** Sent unchanged, instead of `json`. */
  body?: ServiceBody | null | undefined;
}

/** Options of `call`. */
export type ServiceCallOptions = Omit<ServiceRequestOptions, 'query'>;

/** Options of `fetch`. */
export interface ServiceFetchOptions extends ServiceBodyOptions {
  /** Default: GET. */
  method?: string | undefined;
  /** Accepted because an init of `fetch` may have it: redirects are never followed. */
  redirect?: 'manual' | undefined;
  /** Accepted because an init of `fetch` may have it: bodies always stream. */
  duplex?: 'half' | undefined;
}

/** A reply with a status from 200 to 399. */
export interface ServiceResponse<T = unknown> {
  /** The status of the answer. */
  readonly status: number;
  /** The headers of the answer. */
  readonly headers: Headers;
  /**
   * Parsed if it is JSON; a string, decoded from its charset, if it is `text/*`, XML or a form; else a `Uint8Array`.
   * Undefined for an answer without a byte that has no content type, or the one of JSON. Not checked.
   */
  readonly body: T;
}
