/*
 * Connections to other services, each with what all of its calls share. Loaded with the first call.
 */

import { TIME_LIMIT } from '../base/deadline.js';
import { ANYTHING, assertOptions, wholeNumber, type Kind, type Kinds } from '../base/options-check.js';
import type {
  CallingRequest,
  CallSender,
  ServiceBodyOptions,
  ServiceCallOptions,
  ServiceFetchOptions,
  ServiceRequestOptions,
  ServiceResponse,
  ServiceStandIn,
} from '../client/service-client.js';
import { callError } from '../client/service-error.js';
import { readBody, toServiceError, type WholeAnswer } from './answer.js';
import { createCall, runCall, type ConnectedService } from './call.js';
import { createHttpTransport } from './http-transport.js';
import { Limit } from './limit.js';
import type { Transport } from './request.js';
import { createRetryBudget, type RetryBudget } from './retry.js';
import { createStandInTransport } from './stand-in.js';
import { toDeclaredError, toRequest, toResult } from './typed-call.js';

/** Limits of the calls of one service, and the listeners that learn of them. */
export interface ConnectionOptions {
  /** Maximum bytes of an answer that is read whole. Default: 10 MiB. */
  readonly maxBytes?: number;
  /** Maximum requests to one service at a time. Default: 1,024. */
  readonly maxServiceRequests?: number;
  /** Age at which a connection is retired, ± 10 %. Default: 60,000. */
  readonly maxConnectionAge?: number;
  /** The header `user-agent` of calls. Default: none. */
  readonly userAgent?: string;
  /** Gets each attempt: its status (0: no answer, 499: the client of the request disconnected) and its duration. */
  readonly observe?: (service: string, method: string, statusCode: number, seconds: number) => void;
}

/** A ping of another service. */
export interface PingRequest {
  readonly method: string;
  /** From the `/` on, query included. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Time from before the connection to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

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
const CALL: Kinds<ServiceCallOptions> = {
  headers: ANYTHING,
  timeout: TIME_LIMIT,
  signal: SIGNAL,
  retry: wholeNumber(0),
};
const REQUEST: Kinds<ServiceRequestOptions> = { ...CALL, query: ANYTHING };
const BODY: Kinds<ServiceBodyOptions> = { ...REQUEST, json: ANYTHING, body: ANYTHING };
const FETCH: Kinds<ServiceFetchOptions> = { ...BODY, method: METHOD, redirect: MANUAL, duplex: ANYTHING };

/** One connected service: its transport, its limits, its retry budget. */
export class ServiceConnection implements CallSender, ConnectedService {
  active = 0;
  readonly budget: RetryBudget = createRetryBudget();
  readonly maxServiceRequests: number;
  readonly userAgent: string | undefined;
  readonly observe: NonNullable<ConnectionOptions['observe']>;
  readonly #maxBytes: number;

  constructor(
    readonly name: string,
    readonly transport: Transport,
    options: ConnectionOptions,
  ) {
    this.maxServiceRequests = options.maxServiceRequests ?? 1024;
    this.userAgent = options.userAgent;
    this.observe = options.observe ?? (() => undefined);
    this.#maxBytes = options.maxBytes ?? 10 * 1024 * 1024;
  }

  async send(
    verb: string,
    method: string,
    path: string,
    options: ServiceBodyOptions,
    by: CallingRequest | undefined,
  ): Promise<ServiceResponse> {
    assertOptions(`${verb}()`, options, method === 'GET' ? REQUEST : BODY);
    return this.#whole(method, path, undefined, options, by);
  }

  async call(
    endpoint: object,
    input: unknown,
    options: ServiceCallOptions,
    by: CallingRequest | undefined,
  ): Promise<ServiceResponse> {
    assertOptions('call()', options, CALL);
    const { definition, path, ...sent } = toRequest(endpoint, input, options.headers);
    try {
      const { method, path: route } = definition;
      return await toResult(
        definition,
        this.name,
        await this.#whole(method, path, route, { ...options, ...sent }, by),
      );
    } catch (error) {
      throw toDeclaredError(definition, error);
    }
  }

  async fetch(path: string, init: ServiceFetchOptions, by: CallingRequest | undefined): Promise<Response> {
    assertOptions('fetch()', init, FETCH);
    const call = createCall(this, (init.method ?? 'GET').toUpperCase(), path, undefined, init, by);
    return runCall(this, by, call, async (answer, limit) => {
      limit.liftTime();
      const { status, statusText } = answer;
      return new Response(answer.stream(), { status, statusText, headers: answer.toHeaders() });
    });
  }

  /**
   * Sends one request unchanged, and returns the answer whatever its status. It counts for no limit and no metric.
   *
   * @throws {ServiceError} 502 to 504 without an answer
   */
  async exchange({ method, path, headers, timeoutMs, maxBytes }: PingRequest): Promise<WholeAnswer> {
    const call = { service: this.name, method, path, target: path, headers, body: undefined };
    const toTimeout = (): Error => callError(call, 504, `${this.name} did not answer within ${timeoutMs} ms`);
    const limit = new Limit(timeoutMs, toTimeout, [], () => undefined);
    return (await this.transport.open(call, limit)).whole(maxBytes);
  }

  close(): void {
    this.transport.close();
  }

  async #whole(
    method: string,
    path: string,
    route: string | undefined,
    options: ServiceBodyOptions,
    by: CallingRequest | undefined,
  ): Promise<ServiceResponse> {
    const call = createCall(this, method, path, route, options, by);
    const { head, answer } = await runCall(this, by, call, async (head) => {
      const answer = await head.whole(this.#maxBytes);
      return answer.status >= 400 ? toServiceError(call, answer) : { head, answer };
    });
    return { status: answer.status, headers: head.toHeaders(), body: readBody(call, answer) };
  }
}

/**
 * Opens a connection to each service with its first call.
 *
 * @param urls by name, as `connectionsOf` returns them
 * @param standIns answer in memory; one overrides the URL of its name
 */
export function connectServices(
  urls: ReadonlyMap<string, string>,
  options: ConnectionOptions = {},
  standIns: ReadonlyMap<string, ServiceStandIn> = new Map(),
): Map<string, ServiceConnection> {
  const { maxConnectionAge = 60_000 } = options;
  const connections = new Map<string, ServiceConnection>();
  for (const name of [...urls.keys(), ...standIns.keys()]) {
    const standIn = standIns.get(name);
    const transport =
      standIn === undefined
        ? createHttpTransport(urls.get(name) as string, maxConnectionAge)
        : createStandInTransport(name, standIn);
    connections.set(name, new ServiceConnection(name, transport, options));
  }
  return connections;
}
