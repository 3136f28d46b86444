/*
 * Connections to other services, each with what all of its calls share. Loaded with the first call.
 */

import { TIME_LIMIT } from '../base/deadline.js';
import { ANYTHING, assertOptions, wholeNumber, type Kind, type Kinds } from '../base/options-check.js';
import type {
  CallSender,
  ServiceBodyOptions,
  ServiceCallOptions,
  ServiceFetchOptions,
  ServiceRequestOptions,
  ServiceStandIn,
} from '../client/service-client.js';
import { callError } from '../client/service-error.js';
import type { WholeAnswer } from './answer.js';
import { callWhole, createCall, runCall, type ConnectedService, type ConnectionOptions } from './call.js';
import { createHttpTransport } from './http-transport.js';
import { Limit } from './limit.js';
import type { Transport } from './request.js';
import { createRetryBudget } from './retry.js';
import { createStandInTransport } from './stand-in.js';
import { callEndpoint } from './typed-call.js';

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

/** Sends the calls of one connected service. */
export interface ServiceConnection extends CallSender {
  /**
   * Sends one request unchanged, and returns the answer whatever its status. It counts for no limit and no metric.
   *
   * @throws {ServiceError} 502 to 504 without an answer
   */
  exchange(request: PingRequest): Promise<WholeAnswer>;
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
  for (const [name, url] of urls)
    connections.set(name, connect(name, createHttpTransport(url, maxConnectionAge), options));
  for (const [name, standIn] of standIns)
    connections.set(name, connect(name, createStandInTransport(name, standIn), options));
  return connections;
}

function connect(name: string, transport: Transport, options: ConnectionOptions): ServiceConnection {
  const service: ConnectedService = { name, transport, options, budget: createRetryBudget(), active: 0 };
  return {
    async send(verb, path, options, by) {
      assertOptions(`${verb}()`, options, verb === 'get' ? REQUEST : BODY);
      return callWhole(service, verb.toUpperCase(), path, options, by);
    },
    async call(endpoint, input, options, by) {
      assertOptions('call()', options, CALL);
      return callEndpoint(service, endpoint, input, options, by);
    },
    async fetch(path, init, by) {
      assertOptions('fetch()', init, FETCH);
      const call = createCall(service, (init.method ?? 'GET').toUpperCase(), path, init, by);
      return runCall(service, call, async (answer, limit) => {
        limit.liftTime();
        const { status, statusText } = answer;
        return new Response(answer.stream(), { status, statusText, headers: answer.toHeaders() });
      });
    },
    async exchange({ method, path, headers, timeoutMs, maxBytes }) {
      const call = { service: name, method, path, target: path, headers, body: undefined };
      const toTimeout = (): Error => callError(call, 504, `${name} did not answer within ${timeoutMs} ms`);
      return (await transport.open(call, new Limit(timeoutMs, toTimeout, []))).whole(maxBytes);
    },
    close: () => transport.close(),
  };
}
