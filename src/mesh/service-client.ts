/* Clients for other services, as handlers see them. */

import type { IncomingHttpHeaders } from 'node:http';
import { show } from '../base/options-check.js';
import { nearestName } from '../base/nearest-name.js';
import type { TraceSpan } from '../propagation/trace-context.js';
import type { CallInput, CallResult, EndpointDefinition } from '../endpoint/endpoint-definition.js';
import type { MaybeResponse, MaybeSchema } from '../endpoint/schemas.js';
import type { ByteStream } from '../payload/bytes.js';
import type { CallMaker } from '../story/calls.js';
import type { CallExport } from './call-tracing.js';
import { ServiceError } from './service-error.js';

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

/** The arguments of `call` after the endpoint; the input may be left out if nothing in it is required. */
export type CallArguments<Input> = object extends Input
  ? readonly [input?: Input, options?: ServiceCallOptions]
  : readonly [input: Input, options?: ServiceCallOptions];

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
  /** Sent as `application/json`. */
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
   * Parsed if it is JSON; a string, decoded from its charset, if it is `text/*`, XML or a form; else a `Uint8Array`;
   * undefined if it is empty. Not checked.
   */
  readonly body: T;
}

/** The request that makes a call. */
export interface CallingRequest extends CallMaker {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  /** Undefined while nobody records the spans of requests. */
  readonly span: TraceSpan | undefined;
  /** Null while nothing exports the spans of its application. */
  readonly spanExport: CallExport | null;
  /** Aborts when the client disconnects, and when the time of the request is over. */
  readonly signal: AbortSignal;
  /** When its calls must end, on the clock of `performance.now()`; Infinity: never. */
  readonly deadlineMs: number;
}

/** Sends the calls of one service. @internal */
export interface CallSender {
  /** Reads the whole reply. @param verb the client's method, `get` */
  send(verb: string, path: string, options: ServiceBodyOptions, by: Caller): Promise<ServiceResponse>;
  call(endpoint: object, input: unknown, options: ServiceCallOptions, by: Caller): Promise<ServiceResponse>;
  fetch(path: string, options: ServiceFetchOptions, by: Caller): Promise<Response>;
  /** Closes every connection. */
  close(): void;
}

/** The request that makes a call; undefined outside a request. */
type Caller = CallingRequest | undefined;

/** Whether a name is a URL path segment that no URL parser changes. @internal */
export function isServiceName(name: unknown): name is string {
  return typeof name === 'string' && /^[A-Za-z0-9._~-]+$/.test(name) && name !== '.' && name !== '..';
}

/** @throws {TypeError} for any other name @internal */
export function assertServiceName(name: unknown): asserts name is string {
  if (!isServiceName(name))
    throw new TypeError(`service name ${JSON.stringify(name)} is not a URL path segment; use letters, digits and . _ ~ -`);
}

/** Creates the clients of one application. @internal */
export class ServiceClients<Sender extends CallSender = CallSender> {
  #senders: ReadonlyMap<string, Sender> | undefined;

  /**
   * @param names in order of first mention
   * @param createSenders returns a sender for each of the names; called once, with the first call
   */
  constructor(
    readonly names: readonly string[],
    readonly createSenders: () => ReadonlyMap<string, Sender>,
  ) {}

  /**
   * @param by the request that makes the calls: they pass on its id and trace, and end with it
   * @throws {TypeError} when no connection of that name is configured
   */
  client(name: string, by?: CallingRequest): ServiceClient {
    if (!this.names.includes(name)) {
      const connected = this.names.length === 0 ? 'no service is connected' : `connected: ${this.names.join(', ')}`;
      const nearest = nearestName(String(name), this.names);
      const remedy = nearest === undefined ? 'add it to SERVICE_CONNECTIONS' : `did you mean "${nearest}"?`;
      throw new TypeError(`service ${show(name)} is not connected (${connected}); ${remedy}`);
    }
    return new ServiceClient(() => this.sender(name), by);
  }

  /** The sender for one of {@link names}. */
  sender(name: string): Sender {
    return (this.#senders ??= this.createSenders()).get(name) as Sender;
  }

  /** Closes every connection; a later call opens a new one. */
  close(): void {
    for (const sender of this.#senders?.values() ?? []) sender.close();
  }
}

/**
 * Calls one service. A path starts with exactly one `/` and is appended to the service's URL. A 3xx is a result. A 4xx
 * or 5xx rejects with a {@link ServiceError}, and so do an unreachable service (503), a timeout (504), and a reply
 * that is too large or invalid (502). An aborted `signal` rejects with its reason, a wrong argument with a `TypeError`.
 */
export class ServiceClient {
  readonly #sender: () => CallSender;
  readonly #by: Caller;

  /** @internal */
  constructor(sender: () => CallSender, by: Caller) {
    this.#sender = sender;
    this.#by = by;
  }

  /**
   * Sends a GET request.
   *
   * @param path starts with one `/`; it is appended to the URL of the service
   * @throws {ServiceError} for a status of 400 or more, and for no usable answer: 502, 503 or 504
   *
   * @example
   * const { body } = await ctx.service('billing').get('/invoices', { query: { page: '2' } });
   */
  get<T = unknown>(path: string, options: ServiceRequestOptions = {}): Promise<ServiceResponse<T>> {
    return this.#send(this.get, path, options);
  }

  /**
   * Sends a POST request; arguments and errors are as for `get`.
   *
   * @example
   * await ctx.service('billing').post('/invoices', { json: { amount: 7 } });
   */
  post<T = unknown>(path: string, options: ServiceBodyOptions = {}): Promise<ServiceResponse<T>> {
    return this.#send(this.post, path, options);
  }

  /** Sends a PUT request; arguments and errors are as for `get`. */
  put<T = unknown>(path: string, options: ServiceBodyOptions = {}): Promise<ServiceResponse<T>> {
    return this.#send(this.put, path, options);
  }

  /** Sends a PATCH request; arguments and errors are as for `get`. */
  patch<T = unknown>(path: string, options: ServiceBodyOptions = {}): Promise<ServiceResponse<T>> {
    return this.#send(this.patch, path, options);
  }

  /** Sends a DELETE request; arguments and errors are as for `get`. */
  delete<T = unknown>(path: string, options: ServiceBodyOptions = {}): Promise<ServiceResponse<T>> {
    return this.#send(this.delete, path, options);
  }

  /**
   * Calls an endpoint made by `defineEndpoint`.
   *
   * @param input the inputs of its schemas, and the parameters of its path
   * @throws {TypeError} for a parameter of the path that is empty or a dot segment (400 if a handler throws it)
   * @throws {ServiceError} as the other methods do, and 502 for a reply that does not match `response`. An error that
   * the endpoint declares is thrown as its own type, with the `ServiceError` as its cause.
   *
   * @example
   * const { body } = await ctx.service('users').call(getUser, { params: { id: '7' } });
   */
  call<
    Path extends string,
    P extends MaybeSchema,
    Q extends MaybeSchema,
    H extends MaybeSchema,
    B extends MaybeSchema,
    R extends MaybeResponse,
  >(
    endpoint: EndpointDefinition<Path, P, Q, H, B, R>,
    ...[input, options = {}]: CallArguments<CallInput<Path, P, Q, H, B>>
  ): Promise<CallResult<R>> {
    // The schemas have made the reply what its type says.
    return this.#use(this.call, (sender) => sender.call(endpoint, input, options, this.#by) as Promise<CallResult<R>>);
  }

  /**
   * Resolves, like the global `fetch`, to a `Response` of any status. Both bodies may stream. The call lasts until the
   * body is read or cancelled, and until then counts for `maxServiceRequests`.
   */
  fetch(path: string, init: ServiceFetchOptions = {}): Promise<Response> {
    return this.#use(this.fetch, (sender) => sender.fetch(path, init, this.#by));
  }

  #send<T>(verb: Function, path: string, options: ServiceBodyOptions): Promise<ServiceResponse<T>> {
    return this.#use(verb, (sender) => sender.send(verb.name, path, options, this.#by) as Promise<ServiceResponse<T>>);
  }

  /** @param verb the public method, which the stack of an error leaves out */
  async #use<T>(verb: Function, run: (sender: CallSender) => Promise<T>): Promise<T> {
    const site: { stack?: unknown } = {};
    Error.captureStackTrace(site, verb);
    try {
      return await run(this.#sender());
    } catch (error) {
      // A timer or a socket event created the error, so its stack is useless. Use the call's stack.
      const isOfCall = error instanceof ServiceError || (error instanceof Error && error.cause instanceof ServiceError);
      if (isOfCall && typeof site.stack === 'string')
        error.stack = (error.stack ?? '').replace(/\n {4}at [^]*/, '') + site.stack.replace(/^.*/, '');
      throw error;
    }
  }
}
