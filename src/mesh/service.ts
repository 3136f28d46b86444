/**
 * Clients for the services that this one is connected to: address, deadline, retries, trace, and errors carried over.
 */

import type { IncomingHttpHeaders } from 'node:http';
import { MAX_TIMEOUT_MS } from '../deadline.js';
import { readBody, toServiceError, type Answer } from './answer.js';
import { Peer, type ExchangeRequest } from './exchange.js';
import { formatHeaders, formatJson, formatTarget, type OutgoingHeaders, type Query } from './request.js';
import { ServiceError } from './service-error.js';
import { parseTraceContext, traceHeaders, type TraceContext } from './trace-context.js';

export { ServiceError } from './service-error.js';
export type { OutgoingHeaders, Query, QueryValue } from './request.js';

/** What a call may set. */
export interface ServiceRequestOptions {
  /** Goes behind the path; an array gives its name once for each value, null and undefined are left out. */
  query?: Query;
  /** Beat the headers that the client sets; those of a connection, such as `transfer-encoding`, are not sent. */
  headers?: OutgoingHeaders;
  /** Time in ms for each try, from before the connection to the last byte; 5,000 unless given. */
  timeout?: number;
  /** Ends the call, pauses between tries included. */
  signal?: AbortSignal;
  /**
   * How often a GET, PUT or DELETE is repeated after 503, 504 and connection errors, after a pause that grows from 50 ms,
   * or after `Retry-After` if that is no longer than `timeout`; 0 unless given. Other methods are never repeated.
   */
  retry?: number;
}

/** What a call with a body may set. */
export interface ServiceBodyOptions extends ServiceRequestOptions {
  /** Sent as `application/json`. */
  json?: unknown;
}

/** An answer of 200 to 399. */
export interface ServiceResponse<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  /** JSON parsed, `application/octet-stream` a `Uint8Array`, all else a string, undefined when empty. The caller vouches for its type. */
  readonly body: T;
}

/** The request on whose behalf another service is called. @internal */
export interface Caller {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
}

const TIMEOUT_MS = 5000;
const MAX_BYTES = 10 * 1024 * 1024;
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'PUT', 'DELETE']);
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1000;

/** The connected services, each with one pool of connections, which opens when it is first used. @internal */
export class ServiceDirectory {
  readonly #peers: ReadonlyMap<string, Peer>;
  readonly #maxBytes: number;
  /** By the headers of a request, so that all its calls are of one trace. */
  readonly #traces = new WeakMap<IncomingHttpHeaders, TraceContext>();

  /**
   * @param connections names and URLs, as `connectionsOf` gives them
   * @param maxBytes most of an answer
   */
  constructor(connections: ReadonlyMap<string, string>, maxBytes: number = MAX_BYTES) {
    this.#peers = new Map(Array.from(connections, ([name, url]) => [name, new Peer(name, url)]));
    this.#maxBytes = maxBytes;
  }

  /** In order of first mention. */
  get names(): string[] {
    return [...this.#peers.keys()];
  }

  /**
   * @param caller its id and trace are passed on; without one, nothing is
   * @throws {TypeError} when no connection of that name is configured
   */
  client(name: string, caller?: Caller): ServiceClient {
    return new ServiceClient(this.#peer(name), this.#maxBytes, caller === undefined ? () => ({}) : () => this.#passedOn(caller));
  }

  /**
   * Sends one request as it is, and gives the answer whatever its status.
   *
   * @throws {TypeError} when no connection of that name is configured
   * @throws {ServiceError} 502 to 504, as {@link Peer} does
   */
  async exchange(name: string, request: ExchangeRequest): Promise<Answer> {
    return this.#peer(name).exchange(request);
  }

  /** Cuts every connection. */
  close(): void {
    for (const peer of this.#peers.values()) peer.close();
  }

  #peer(name: string): Peer {
    const peer = this.#peers.get(name);
    if (peer === undefined) throw new TypeError(`service ${JSON.stringify(name)} is not connected; add it to SERVICE_CONNECTIONS`);
    return peer;
  }

  #passedOn({ id, headers }: Caller): Record<string, string> {
    let trace = this.#traces.get(headers);
    if (trace === undefined) {
      trace = parseTraceContext(headers);
      this.#traces.set(headers, trace);
    }
    return { 'x-request-id': id, ...traceHeaders(trace) };
  }
}

/**
 * Calls one service. A path starts with one `/` and goes behind the service's URL. A 3xx is a result, and a 4xx or 5xx
 * rejects with a {@link ServiceError}; so does a service that is unreachable (503) or silent (504), and an answer that is
 * too large or broken (502). An aborted `signal` rejects with its reason, a wrong argument with a `TypeError`.
 */
export class ServiceClient {
  readonly #peer: Peer;
  readonly #maxBytes: number;
  readonly #passedOn: () => Record<string, string>;

  /** @param passedOn headers of every try @internal */
  constructor(peer: Peer, maxBytes: number, passedOn: () => Record<string, string>) {
    this.#peer = peer;
    this.#maxBytes = maxBytes;
    this.#passedOn = passedOn;
  }

  get<T = unknown>(path: string, options?: ServiceRequestOptions): Promise<ServiceResponse<T>> {
    return this.#call('GET', path, options);
  }

  post<T = unknown>(path: string, options?: ServiceBodyOptions): Promise<ServiceResponse<T>> {
    return this.#call('POST', path, options);
  }

  put<T = unknown>(path: string, options?: ServiceBodyOptions): Promise<ServiceResponse<T>> {
    return this.#call('PUT', path, options);
  }

  patch<T = unknown>(path: string, options?: ServiceBodyOptions): Promise<ServiceResponse<T>> {
    return this.#call('PATCH', path, options);
  }

  delete<T = unknown>(path: string, options?: ServiceBodyOptions): Promise<ServiceResponse<T>> {
    return this.#call('DELETE', path, options);
  }

  async #call<T>(method: string, path: string, options: ServiceBodyOptions = {}): Promise<ServiceResponse<T>> {
    const { timeout = TIMEOUT_MS, retry = 0, signal } = options;
    if (!(timeout > 0 && timeout <= MAX_TIMEOUT_MS)) throw new TypeError(`timeout is ${String(timeout)}; give ms, more than 0`);
    if (!Number.isSafeInteger(retry) || retry < 0) throw new TypeError(`retry is ${String(retry)}; give a whole number of 0 or more`);
    if (signal !== undefined && !(signal instanceof AbortSignal)) throw new TypeError('signal is no AbortSignal; give the signal of a controller');
    const body = options.json === undefined ? undefined : formatJson(options.json);
    const given = formatHeaders(options.headers);
    const target = formatTarget(path, options.query);
    const tries = REPEATABLE.has(method) ? retry + 1 : 1;
    for (let attempt = 1; ; attempt += 1) {
      const headers = { ...defaultHeaders(method, body), ...this.#passedOn(), ...given };
      try {
        return await this.#try<T>({ method, path: target, headers, body, timeoutMs: timeout, maxBytes: this.#maxBytes, signal });
      } catch (error) {
        const pauseMs = attempt < tries ? pauseBefore(attempt, error, timeout) : undefined;
        if (pauseMs === undefined) throw error;
        await wait(pauseMs, signal);
      }
    }
  }

  async #try<T>(request: ExchangeRequest): Promise<ServiceResponse<T>> {
    const answer = await this.#peer.exchange(request);
    const { service } = this.#peer;
    if (answer.status >= 400) throw toServiceError(service, answer);
    return { status: answer.status, headers: toHeaders(answer.rawHeaders), body: readBody(service, answer) as T };
  }
}

function defaultHeaders(method: string, body: Uint8Array | undefined): Record<string, string> {
  const accept = { accept: 'application/json, */*;q=0.5' };
  if (body !== undefined) return { ...accept, 'content-type': 'application/json', 'content-length': String(body.byteLength) };
  return method === 'GET' || method === 'DELETE' ? accept : { ...accept, 'content-length': '0' };
}

/** In ms; undefined for an error that another try does not help, and for a service that asks for more patience than a try has. */
function pauseBefore(attempt: number, error: unknown, longestMs: number): number | undefined {
  if (!(error instanceof ServiceError) || (error.statusCode !== 503 && error.statusCode !== 504)) return undefined;
  const retryAfter = error.headers?.['retry-after'];
  if (retryAfter !== undefined) {
    const ms = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : Math.max(0, Date.parse(retryAfter) - Date.now());
    return ms <= longestMs ? ms : undefined;
  }
  // Spread out, so that callers that failed together don't come back together.
  return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
}

function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', finish);
      if (signal?.aborted === true) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(finish, ms);
    if (signal?.aborted === true) finish();
    else signal?.addEventListener('abort', finish);
  });
}

function toHeaders(rawHeaders: readonly string[]): Headers {
  const headers = new Headers();
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i] as string, rawHeaders[i + 1] as string);
  return headers;
}
