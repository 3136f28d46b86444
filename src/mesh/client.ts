/*
 * Calls one service: the verbs, which read a whole answer, and `fetch`, which streams.
 */

import { TIME_LIMIT } from '../base/deadline.js';
import { ANYTHING, assertOptions, wholeNumber, type Kind, type Kinds } from '../base/options-check.js';
import type { CallInput, CallResult, EndpointDefinition } from '../routing/endpoint-definition.js';
import type { MaybeResponse, MaybeSchema } from '../routing/schemas.js';
import { readBody, toServiceError, type Answer } from './answer.js';
import { runCall } from './call.js';
import type { PeerAnswer } from './peer-answer.js';
import { isIdempotent } from './peer.js';
import { formatHeaders, formatTarget, type Query, type RequestHeaders } from './request.js';
import { toRequestBody, type ServiceBody } from './request-body.js';
import { ServiceError, type Callee } from './service-error.js';
import type { Caller, Service } from './service.js';
import type { TryLimit } from './try-limit.js';
import { toDeclaredError, toRequest, toResult } from './typed-call.js';

/** What a call may set. */
export interface ServiceRequestOptions {
  /** Goes behind the path; an array gives its name once for each value, null and undefined are left out. */
  query?: Query | undefined;
  /** Beat the headers that the client sets; those of a connection, such as `transfer-encoding`, are not sent. */
  headers?: RequestHeaders | undefined;
  /**
   * Time in ms for each try, from before the connection to the last byte (of `fetch`: to the end of the head); 5,000
   * unless given, and never more than is left of the time of the request on whose behalf it is made.
   */
  timeout?: number | undefined;
  /**
   * Ends the call, pauses between tries included. Calls of `ctx.service` end with the client of the request, too,
   * unless this is null.
   */
  signal?: AbortSignal | null | undefined;
  /**
   * How often an idempotent method is repeated after 503, 504 and connection errors, after `Retry-After` or a pause
   * that grows from 50 ms, while the service's retry budget lasts; 0 unless given. What is neither GET, HEAD, PUT,
   * DELETE, OPTIONS nor QUERY is never repeated, nor is a body that is a stream.
   */
  retry?: number | undefined;
}

/** What a call with a body may set. */
export interface ServiceBodyOptions extends ServiceRequestOptions {
  /** Sent as `application/json`. */
  json?: unknown;
  /** Sent as it is, instead of `json`. */
  body?: ServiceBody | null | undefined;
}

/** What `call` may set beside the input. */
export type ServiceCallOptions = Omit<ServiceRequestOptions, 'query'>;

/** What `fetch` may set. */
export interface ServiceFetchOptions extends ServiceBodyOptions {
  /** GET unless given. */
  method?: string | undefined;
  /** For an init of `fetch` that is passed on: redirects are never followed. */
  redirect?: 'manual' | undefined;
  /** For an init of `fetch` that is passed on: bodies always stream. */
  duplex?: 'half' | undefined;
}

/** An answer of 200 to 399. */
export interface ServiceResponse<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  /**
   * JSON parsed, `application/octet-stream` a `Uint8Array`, all else a string, undefined when empty. The caller
   * vouches for its type.
   */
  readonly body: T;
}

const TIMEOUT_MS = 5000;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** What a client of this kind can't do (Fetch, "forbidden method"). */
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
const CALL_KINDS: Kinds<ServiceCallOptions> = {
  headers: ANYTHING,
  timeout: TIME_LIMIT,
  signal: SIGNAL,
  retry: wholeNumber(0),
};
const REQUEST_KINDS: Kinds<ServiceRequestOptions> = { ...CALL_KINDS, query: ANYTHING };
const BODY_KINDS: Kinds<ServiceBodyOptions> = { ...REQUEST_KINDS, json: ANYTHING, body: ANYTHING };
const FETCH_KINDS: Kinds<ServiceFetchOptions> = { ...BODY_KINDS, method: METHOD, redirect: MANUAL, duplex: ANYTHING };

/**
 * Calls one service. A path starts with one `/` and goes behind the service's URL. A 3xx is a result, and a 4xx or 5xx
 * rejects with a {@link ServiceError}; so does a service that is unreachable (503) or silent (504), and an answer
 * that is too large or broken (502). An aborted `signal` rejects with its reason, a wrong argument with a
 * `TypeError`.
 */
export class ServiceClient {
  readonly #service: Service;
  readonly #caller: Caller | undefined;

  /** @internal */
  constructor(service: Service, caller: Caller | undefined) {
    this.#service = service;
    this.#caller = caller;
  }

  get<T = unknown>(path: string, options: ServiceRequestOptions = {}): Promise<ServiceResponse<T>> {
    return this.#whole('GET', path, options, REQUEST_KINDS, this.get);
  }

  post<T = unknown>(path: string, options: ServiceBodyOptions = {}): Promise<ServiceResponse<T>> {
    return this.#whole('POST', path, options, BODY_KINDS, this.post);
  }

  put<T = unknown>(path: string, options: ServiceBodyOptions = {}): Promise<ServiceResponse<T>> {
    return this.#whole('PUT', path, options, BODY_KINDS, this.put);
  }

  patch<T = unknown>(path: string, options: ServiceBodyOptions = {}): Promise<ServiceResponse<T>> {
    return this.#whole('PATCH', path, options, BODY_KINDS, this.patch);
  }

  delete<T = unknown>(path: string, options: ServiceBodyOptions = {}): Promise<ServiceResponse<T>> {
    return this.#whole('DELETE', path, options, BODY_KINDS, this.delete);
  }

  /**
   * Calls an endpoint that both services know, made by `defineEndpoint`.
   *
   * @param input what its schemas take, and the parameters of its path
   * @throws {TypeError} for a parameter of the path that is empty or a dot segment
   * @throws {ServiceError} as the verbs do, but for errors that the endpoint declares: those are thrown as their own
   * types, with the `ServiceError` as the cause; and 502 for a reply that does not fit its `response`
   */
  async call<
    Path extends string,
    P extends MaybeSchema,
    Q extends MaybeSchema,
    H extends MaybeSchema,
    B extends MaybeSchema,
    R extends MaybeResponse,
  >(
    endpoint: EndpointDefinition<Path, P, Q, H, B, R>,
    input?: CallInput<Path, P, Q, H, B>,
    options: ServiceCallOptions = {},
  ): Promise<CallResult<R>> {
    assertOptions('call()', options, CALL_KINDS);
    const { path, query, headers, json } = toRequest(endpoint, input, options.headers);
    try {
      const sent = { ...options, query, headers, json };
      const answer = await this.#whole(endpoint.method, path, sent, BODY_KINDS, this.call);
      // The schemas have made it what its type says.
      return (await toResult(endpoint, this.#service.name, answer)) as CallResult<R>;
    } catch (error) {
      throw toDeclaredError(endpoint, error);
    }
  }

  /**
   * As the global `fetch`: resolves to a `Response` of whatever status, which streams, as may the body. The call lasts
   * until that is read or cancelled, and counts for `maxServiceRequests`.
   */
  async fetch(path: string, init: ServiceFetchOptions = {}): Promise<Response> {
    const read = async (answer: PeerAnswer, limit: TryLimit): Promise<Response> => {
      limit.liftTime();
      const { status, statusText } = answer;
      return new Response(answer.stream(), { status, statusText, headers: answer.toHeaders() });
    };
    return this.#run(init.method ?? 'GET', path, init, FETCH_KINDS, this.fetch, read, (response) => response);
  }

  #whole<T>(
    method: string,
    path: string,
    options: ServiceBodyOptions,
    kinds: Readonly<Record<string, Kind>>,
    verb: Function,
  ): Promise<ServiceResponse<T>> {
    const { maxBytes } = this.#service.limits;
    const read = async (peer: PeerAnswer): Promise<[PeerAnswer, Answer]> => [
      peer,
      { status: peer.status, headers: peer.headers, body: await peer.bytes(maxBytes) },
    ];
    return this.#run(method, path, options, kinds, verb, read, ([peer, answer], callee) => {
      const { status } = answer;
      if (status >= 400) throw toServiceError(callee, answer);
      return { status, headers: peer.toHeaders(), body: readBody(callee, answer) as T };
    });
  }

  /**
   * @param verb the public method; the stack of an error begins where that was called
   * @param finish what becomes of what was read; what it throws ends the call, and is no failed try
   */
  async #run<Read, Result>(
    given: string,
    path: string,
    options: ServiceFetchOptions,
    kinds: Readonly<Record<string, Kind>>,
    verb: Function,
    read: (answer: PeerAnswer, limit: TryLimit) => Promise<Read>,
    finish: (read: Read, callee: Callee) => Result,
  ): Promise<Result> {
    assertOptions(`${verb.name}()`, options, kinds);
    const method = given.toUpperCase();
    const { timeout: timeoutMs = TIMEOUT_MS, retry = 0 } = options;
    const body = toRequestBody(options.json, options.body);
    const target = formatTarget(path, options.query);
    const isRepeated = retry > 0 && isIdempotent({ method, body });
    const callee = { service: this.#service.name, method, path: target.replace(/\?.*/s, ''), isRepeated };
    const headers = formatHeaders(options.headers, method, body);
    const signals = signalsOf(options.signal, this.#caller);
    const call = { callee, target, body, headers, signals, timeoutMs, tries: isRepeated ? retry + 1 : 1 };
    const site: { stack?: unknown } = {};
    Error.captureStackTrace(site, verb);
    try {
      return finish(await runCall(this.#service, this.#caller, call, read), callee);
    } catch (error) {
      // The error was made in a timer or an event of a socket, whose stack helps nobody: it gets that of the call.
      if (error instanceof ServiceError && typeof site.stack === 'string')
        error.stack = `${error.name}: ${error.message}${site.stack.replace(/^.*/, '')}`;
      throw error;
    }
  }
}

function signalsOf(given: AbortSignal | null | undefined, caller: Caller | undefined): AbortSignal[] {
  if (given === null) return [];
  const signals = given === undefined ? [] : [given];
  if (caller !== undefined && caller.signal !== given) signals.push(caller.signal);
  return signals;
}
