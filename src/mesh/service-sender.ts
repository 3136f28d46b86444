/* Sends the calls of other services, each with the state that all of its calls share. */

import { TIME_LIMIT } from '../base/deadline.js';
import { createFirsts } from '../base/firsts.js';
import { ApiError, FrameworkErrorCodes } from '../base/errors.js';
import { ANYTHING, assertOptions, OBJECT, wholeNumber, type Kind, type Kinds } from '../base/options-check.js';
import type {
  CallingRequest,
  CallSender,
  Query,
  ServiceBodyOptions,
  ServiceCallOptions,
  ServiceFetchOptions,
  ServiceRequestOptions,
  ServiceResponse,
} from './service-client.js';
import { callError, ServiceError } from './service-error.js';
import { isEndpointDefinition, type EndpointDefinition } from '../endpoint/endpoint-definition.js';
import { formatPath } from '../endpoint/path-parameter.js';
import type { ErrorType } from '../endpoint/route-options.js';
import { responseSchema } from '../endpoint/schemas.js';
import { dropConnectionHeaders } from '../payload/headers.js';
import { check, describeFindings } from '../payload/schema-check.js';
import { propsOf } from '../payload/standard-schema.js';
import type { WholeAnswer } from './answer.js';
import { callWhole, createCall, runCall, type ConnectedService, type CallSettings } from './call.js';
import { createHttpTransport } from './http-transport.js';
import { Limit } from './limit.js';
import { toHeaders, type ServiceRequest, type Transport } from './request.js';
import { createRetryBudget } from './retry.js';
import { createStandInTransport } from './stand-in.js';

/** A ping of another service. */
export interface PingRequest extends ServiceRequest {
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

/** Sends the calls of one connected service. */
export interface ServiceSender extends CallSender {
  /**
   * Sends one request unchanged, and returns the answer whatever its status. It counts for no limit and no metric.
   *
   * @throws {ServiceError} 502 to 504 without an answer
   */
  sendPing(request: PingRequest): Promise<WholeAnswer>;
}

/**
 * Creates a sender for each service; it opens connections when it is used.
 *
 * @param urls by name, as `serviceUrlsOf` returns them; a stand-in overrides the URL of its name
 */
export function createSenders(urls: ReadonlyMap<string, string>, options: CallSettings): Map<string, ServiceSender> {
  const transports = new Map<string, Transport>();
  for (const [name, url] of urls) transports.set(name, createHttpTransport(url, options.maxConnectionAge));
  for (const [name, standIn] of options.services) transports.set(name, createStandInTransport(name, standIn));
  const senders = [...transports].map(([name, transport]) => {
    const state = { budget: createRetryBudget(), isFirstCall: createFirsts(), active: 0 };
    const defaults = options.connections.get(name) ?? {};
    return [name, createSender({ name, defaults, transport, options, ...state })] as const;
  });
  return new Map(senders);
}

function createSender(service: ConnectedService): ServiceSender {
  const { name, transport } = service;
  return {
    async send(verb, path, options, by) {
      assertOptions(`${verb}()`, options, verb === 'get' ? REQUEST_KINDS : BODY_KINDS);
      return callWhole(service, await createCall(service, verb.toUpperCase(), path, options, by));
    },
    async call(endpoint, input, options, by) {
      assertOptions('call()', options, CALL_KINDS);
      return callEndpoint(service, endpoint, input, options, by);
    },
    async fetch(path, init, by) {
      assertOptions('fetch()', init, FETCH_KINDS);
      const call = await createCall(service, (init.method ?? 'GET').toUpperCase(), path, init, by);
      return runCall(service, call, async (answer, limit) => {
        limit.liftTime();
        const { status, statusText } = answer;
        const headers = answer.toHeaders();
        // A handler may return the response, and the connection to the service is not its client's.
        dropConnectionHeaders(headers);
        return new Response(answer.stream(), { status, statusText, headers });
      });
    },
    async sendPing(request) {
      const { timeoutMs, maxBytes } = request;
      const toTimeout = (): Error => callError(request, 504, `${name} did not answer within ${timeoutMs} ms`);
      return (await transport.open(request, new Limit(timeoutMs, toTimeout, []))).whole(maxBytes);
    },
    close: () => transport.close(),
  };
}

/**
 * Calls an endpoint that both services know: sends what its schemas accept, returns what they produce, and throws the
 * error types that it declares.
 *
 * @throws {TypeError} if `endpoint` is not an endpoint, or the input has an unknown member
 * @throws {ServiceError} 502 for a body that does not match, and for a status that is not declared
 */
async function callEndpoint(
  service: ConnectedService,
  endpoint: object,
  given: unknown,
  options: ServiceCallOptions,
  by: CallingRequest | undefined,
): Promise<ServiceResponse> {
  if (!isEndpointDefinition(endpoint)) throw new TypeError('call() takes an endpoint made by defineEndpoint');
  const input = given ?? {};
  assertOptions('the input of call()', input, ['params', 'query', 'headers', 'body']);
  const { params, query, headers, body } = input as Record<'params' | 'query' | 'headers', object | undefined> & {
    body?: unknown;
  };
  const { method, path } = endpoint;
  const target = formatPath(path, { ...params });
  // A header of the options overrides the same header of the input.
  const merged = headers && Object.fromEntries([...toHeaders({ ...headers }), ...toHeaders(options.headers ?? {})]);
  const sent = { ...options, query: { ...query } as Query, headers: merged ?? options.headers, json: body };
  try {
    const answer = await callWhole(service, await createCall(service, method, target, sent, by, path));
    return await toDeclared(service.name, endpoint, answer);
  } catch (error) {
    throw toDeclaredError(endpoint, error);
  }
}

/** Replaces the body of an answer by the output of the schema of its status. */
async function toDeclared(
  service: string,
  { method, path, options: { response } }: EndpointDefinition,
  answer: ServiceResponse,
): Promise<ServiceResponse> {
  if (response === undefined) return answer;
  const { status, body } = answer;
  try {
    const schema = status > 299 ? undefined : responseSchema(response, status);
    if (schema === undefined) throw new Error(`the status ${status} is not declared`);
    if (schema === null && body !== undefined)
      throw new Error(`the answer has a body, but ${status} is declared without one`);
    const props = propsOf(schema);
    if (props === undefined) return answer;
    const result = await check(`response of ${method} ${path}`, props, body);
    if (result.issues !== undefined) throw new Error(describeFindings('body', result.issues, 1));
    return { ...answer, body: result.value };
  } catch (cause) {
    const errorCode = FrameworkErrorCodes.framework_invalid_response;
    // The cause is only logged: the text may contain another service's data.
    const fields = { errorCode, method, path, cause };
    throw new ServiceError(service, `${service} answered ${method} ${path} with something else than it declares`, fields);
  }
}

/** Converts an error to the type that the endpoint declares for its status and code; returns others unchanged. */
function toDeclaredError({ options }: EndpointDefinition, error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  const { statusCode, errorCode, message, description, headers = {} } = error;
  const isSame = (type: ErrorType): boolean =>
    type.statusCode === statusCode &&
    type.errorCode.name === errorCode.name &&
    type.errorCode.value === errorCode.value;
  const type = options.errors?.find(isSame);
  if (type === undefined) return error;
  // Not `new type()`: the constructor of a type may take other arguments.
  return Reflect.construct(ApiError, [description, { statusCode, message, headers, cause: error, errorCode }], type);
}
