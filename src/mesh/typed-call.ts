/* Calls of an endpoint that both services know. */

import { ApiError, FrameworkErrorCodes } from '../base/errors.js';
import { assertOptions } from '../base/options-check.js';
import { isEndpointDefinition, type EndpointDefinition } from '../endpoint/endpoint-definition.js';
import { formatPath } from '../endpoint/path-parameter.js';
import type { ErrorType } from '../endpoint/route-options.js';
import { responseSchema } from '../endpoint/schemas.js';
import { check, describeFindings } from '../payload/schema-check.js';
import { propsOf } from '../payload/standard-schema.js';
import { callWhole, createCall, type CallingRequest, type ConnectedService } from './call.js';
import type { Query, ServiceCallOptions, ServiceResponse } from './call-options.js';
import { toHeaders } from './request.js';
import { ServiceError } from './service-error.js';

/**
 * Calls an endpoint that both services know: sends what its schemas accept, returns what they produce, and throws the
 * error types that it declares.
 *
 * @throws {TypeError} if `endpoint` is not an endpoint, or the input has an unknown member
 * @throws {ServiceError} 502 for a body that does not match, and for a status that is not declared
 */
export async function callEndpoint(
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
    if (schema === null) {
      if (hasContent(body)) throw new Error(`the answer has a body, but ${status} is declared without one`);
      return { ...answer, body: undefined };
    }
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

/** Whether the body of an answer has a byte: frameworks send a content type with no body, too. */
function hasContent(body: unknown): boolean {
  return typeof body === 'string' || body instanceof Uint8Array ? body.length > 0 : body !== undefined;
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
