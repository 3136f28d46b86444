/* Clients for other services, as handlers see them. */

import { TIME_LIMIT } from '../base/deadline.js';
import { createFirsts } from '../base/firsts.js';
import { ANYTHING, assertOptions, OBJECT, show, wholeNumber, type Kind, type Kinds } from '../base/options-check.js';
import { nearestName } from '../base/nearest-name.js';
import type { CallInput, CallResult, EndpointDefinition } from '../endpoint/endpoint-definition.js';
import type { MaybeResponse, MaybeSchema } from '../endpoint/schemas.js';
import { discardStream, isStream, letFail } from '../payload/bytes.js';
import { dropConnectionHeaders } from '../payload/headers.js';
import { NO_RETRY_HEADER } from '../propagation/mesh-headers.js';
import type { WholeAnswer } from './answer.js';
import { callWhole, createCall, runCall } from './call.js';
import type { CallingRequest, CallSettings, ConnectedService } from './call.js';
import type {
  ServiceBodyOptions,
  ServiceCallOptions,
  ServiceFetchOptions,
  ServiceRequestOptions,
  ServiceResponse,
} from './call-options.js';
import { createHttpTransport } from './http-transport.js';
import { Limit } from './limit.js';
import type { ServiceRequest } from './request.js';
import { createRetryBudget } from './retry.js';
import { callError, isUnavailable, ServiceError } from './service-error.js';
import { createStandInTransport } from './stand-in.js';
import { callEndpoint } from './typed-call.js';

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Methods that a client of this kind cannot send (Fetch, "forbidden method"). */
const FORBIDDEN: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK']);

const SIGNAL: Kind = {
  accepts: (value) => value === null || value instanceof AbortSignal,
  give: 'the signal of a controller, or null',
};
const METHOD: Kind = {
  accepts: (value) => typeof value === 'string' && TOKEN.test(value) && !FORBIDDEN.has(value.toUpperCase()),
  give: 'an HTTP method other than CONNECT, TRACE and TRACK',
};
const MANUAL: Kind = { accepts: (value) => value === 'manual', give: "'manual': redirects are not followed" };
const HEADERS: Kind = {
  accepts: (value) => typeof value === 'object' && value !== null,
  give: 'an object, pairs or Headers',
};
const CALL_KINDS: Kinds<ServiceCallOptions> = {
  headers: HEADERS,
  timeout: TIME_LIMIT,
  signal: SIGNAL,
  retry: wholeNumber(0),
};
const REQUEST_KINDS: Kinds<ServiceRequestOptions> = { ...CALL_KINDS, query: OBJECT };
const BODY_KINDS: Kinds<ServiceBodyOptions> = { ...REQUEST_KINDS, json: ANYTHING, body: ANYTHING };
const FETCH_KINDS: Kinds<ServiceFetchOptions> = { ...BODY_KINDS, method: METHOD, redirect: MANUAL, duplex: ANYTHING };

/** The arguments of `call` after the endpoint; the input may be left out if nothing in it is required. */
export type CallArguments<Input> = object extends Input
  ? readonly [input?: Input, options?: ServiceCallOptions]
  : readonly [input: Input, options?: ServiceCallOptions];

/** A ping of another service. @internal */
export interface PingRequest extends ServiceRequest {
  /** Time from before the connection to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

/** The connected services of one application, and clients for them. @internal */
export class ServiceClients {
  /** In order of first mention. */
  readonly names: readonly string[];
  readonly #connected = new Map<string, ConnectedService>();

  /** @param urls by name, as `serviceUrlsOf` returns them; a stand-in overrides the URL of its name */
  constructor(
    readonly urls: ReadonlyMap<string, string>,
    readonly options: CallSettings,
  ) {
    this.names = [...new Set([...urls.keys(), ...options.services.keys()])];
  }

  /** The services that the ping of the mesh asks, each with the path that is asked in place of its ping endpoint. */
  get pinged(): Map<string, string | undefined> {
    const paths = this.names.flatMap((name) => {
      const { ping } = this.options.connections.get(name) ?? {};
      return ping === false ? [] : [[name, ping] as const];
    });
    return new Map(paths);
  }

  /**
   * @param by the request that makes the calls: they pass on its id and trace, and end with it
   * @throws {TypeError} when no connection of that name is configured
   */
  client(name: string, by?: CallingRequest): ServiceClient {
    return new ServiceClient(this.#connect(name), by);
  }

  /**
   * Sends one request unchanged, and returns the answer whatever its status. It counts for no limit and no metric.
   *
   * @throws {ServiceError} 502 to 504 without an answer
   */
  async ping(request: PingRequest): Promise<WholeAnswer> {
    const { service, timeoutMs, maxBytes } = request;
    const toTimeout = (): Error => callError(request, 504, `${service} did not answer within ${timeoutMs} ms`);
    const { transport } = this.#connect(service);
    return (await transport.open(request, new Limit(timeoutMs, toTimeout, []))).whole(maxBytes);
  }

  /** Closes every connection; a later call opens a new one. */
  close(): void {
    for (const { transport } of this.#connected.values()) transport.close();
  }

  #connect(name: string): ConnectedService {
    const known = this.#connected.get(name);
    if (known !== undefined) return known;
    const { options } = this;
    const standIn = options.services.get(name);
    const transport =
      standIn === undefined
        ? createHttpTransport(this.#urlOf(name), options.maxConnectionAge)
        : createStandInTransport(name, standIn);
    const defaults = options.connections.get(name) ?? {};
    const state = { budget: createRetryBudget(), isFirstCall: createFirsts(), active: 0 };
    const service = { name, defaults, transport, options, ...state };
    this.#connected.set(name, service);
    return service;
  }

  #urlOf(name: string): string {
    const url = this.urls.get(name);
    if (url !== undefined) return url;
    const connected = this.names.length === 0 ? 'no service is connected' : `connected: ${this.names.join(', ')}`;
    const nearest = nearestName(String(name), this.names);
    const remedy = nearest === undefined ? 'add it to SERVICE_CONNECTIONS' : `did you mean "${nearest}"?`;
    throw new TypeError(`service ${show(name)} is not connected (${connected}); ${remedy}`);
  }
}

/**
 * Calls one service. A path starts with exactly one `/` and is appended to the service's URL. A 3xx is a result. A 4xx
 * or 5xx rejects with a {@link ServiceError}, and so do an unreachable service (503), a timeout (504), and a reply
 * that is too large or invalid (502). An aborted `signal` rejects with its reason, a wrong argument with a `TypeError`.
 */
export class ServiceClient {
  readonly #service: ConnectedService;
  readonly #by: CallingRequest | undefined;

  /** @internal */
  constructor(service: ConnectedService, by: CallingRequest | undefined) {
    this.#service = service;
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
    return this.#withStack(this.call, {}, () => {
      assertOptions('call()', options, CALL_KINDS);
      // The schemas have made the reply what its type says.
      return callEndpoint(this.#service, endpoint, input, options, this.#by) as Promise<CallResult<R>>;
    });
  }

  /**
   * Resolves, like the global `fetch`, to a `Response` of any status. Both bodies may stream. The call lasts until the
   * body is read or cancelled, and until then counts for `maxServiceRequests`.
   */
  fetch(path: string, init: ServiceFetchOptions = {}): Promise<Response> {
    return this.#withStack(this.fetch, init, async () => {
      assertOptions('fetch()', init, FETCH_KINDS);
      const call = await createCall(this.#service, (init.method ?? 'GET').toUpperCase(), path, init, this.#by);
      return runCall(this.#service, call, async (answer, limit) => {
        limit.liftTime();
        const { status, statusText } = answer;
        const headers = answer.toHeaders();
        // A handler may return the response, and the connection to the service is not its client's.
        dropConnectionHeaders(headers);
        // The caller of that handler must not repeat all this.
        if (call.isRepeated === true && isUnavailable(status)) headers.set(NO_RETRY_HEADER, 'true');
        return new Response(answer.stream(), { status, statusText, headers });
      });
    });
  }

  #send<T>(verb: Function, path: string, options: ServiceBodyOptions): Promise<ServiceResponse<T>> {
    return this.#withStack(verb, options, async () => {
      assertOptions(`${verb.name}()`, options, verb === this.get ? REQUEST_KINDS : BODY_KINDS);
      const call = await createCall(this.#service, verb.name.toUpperCase(), path, options, this.#by);
      return callWhole(this.#service, call) as Promise<ServiceResponse<T>>;
    });
  }

  /**
   * @param verb the public method, which the stack of an error leaves out
   * @param options whose body, a stream, is freed if the call fails
   */
  async #withStack<T>(verb: Function, options: object, run: () => Promise<T>): Promise<T> {
    const site: { stack?: unknown } = {};
    Error.captureStackTrace(site, verb);
    const { body }: { readonly body?: unknown } = Object(options);
    // It may fail before it is sent, while the headers of the connection are awaited: that must not end the process.
    letFail(body);
    try {
      return await run();
    } catch (error) {
      // A call that is not sent would leave its file open.
      if (isStream(body)) discardStream(body);
      // A timer or a socket event created the error, so its stack is useless. Use the call's stack.
      const isOfCall = error instanceof ServiceError || (error instanceof Error && error.cause instanceof ServiceError);
      if (isOfCall && typeof site.stack === 'string')
        error.stack = (error.stack ?? '').replace(/\n {4}at [^]*/, '') + site.stack.replace(/^.*/, '');
      throw error;
    }
  }
}
