/*
 * Calls an endpoint that both services know: its parts go out as its schemas take them, its reply comes in as they give
 * it, its errors are thrown as the types that it declares.
 */

import { FrameworkErrorCodes } from '../base/error-codes.js';
import { ApiError } from '../base/errors.js';
import { assertOptions } from '../base/options-check.js';
import { describeFindings } from '../payload/findings.js';
import { check } from '../payload/schema-check.js';
import { propsOf, type AnySchema } from '../payload/standard-schema.js';
import { isEndpointDefinition, type EndpointDefinition } from '../routing/endpoint-definition.js';
import { formatPath } from '../routing/path-parameter.js';
import type { ErrorType } from '../routing/route-options.js';
import { responseSchema, type SchemasByStatus } from '../routing/schemas.js';
import { toHeaders, type Query, type RequestHeaders } from './request.js';
import { ServiceError } from './service-error.js';

/** The parts of a request, whatever their types. */
export interface AnyInput {
  readonly params?: object;
  readonly query?: object;
  readonly headers?: object;
  readonly body?: unknown;
}

/** A request, as the client sends it. */
export interface TypedRequest {
  readonly path: string;
  readonly query: Query | undefined;
  readonly headers: RequestHeaders | undefined;
  readonly json: unknown;
}

/** An answer of 200 to 399. */
export interface PlainAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/**
 * Builds the request of a call.
 *
 * @throws {TypeError} when the endpoint is none, or the input has no place in a request
 */
export function toRequest(
  endpoint: EndpointDefinition,
  given: unknown,
  extra: RequestHeaders | undefined,
): TypedRequest {
  if (!isEndpointDefinition(endpoint)) throw new TypeError('call() takes an endpoint made by defineEndpoint');
  const input = given ?? {};
  assertOptions('the input of call()', input, ['params', 'query', 'headers', 'body']);
  const { params = {}, query, headers, body } = input as AnyInput;
  return {
    path: formatPath(endpoint.path, { ...params }),
    query: query === undefined ? undefined : ({ ...query } as Query),
    headers: headers === undefined ? extra : withHeaders({ ...headers }, extra),
    json: body,
  };
}

/**
 * The body of an answer, as the schema of its status gives it.
 *
 * @throws {ServiceError} 502 for a body that doesn't fit, and for a status that is not declared
 */
export async function toResult(
  { method, path, options }: EndpointDefinition,
  service: string,
  answer: PlainAnswer,
): Promise<PlainAnswer> {
  if (options.response === undefined) return answer;
  try {
    return { ...answer, body: await declaredBody(`response of ${method} ${path}`, options.response, answer) };
  } catch (cause) {
    throw new ServiceError(service, `${service} answered ${method} ${path} with something else than it declares`, {
      errorCode: FrameworkErrorCodes.framework_invalid_response,
      method,
      path,
      // For the log alone: it may tell of what another service holds.
      cause,
    });
  }
}

/** The error as one of the types that the endpoint declares, or as it is. */
export function toDeclaredError({ options }: EndpointDefinition, error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  const { statusCode, errorCode, message, description, headers = {} } = error;
  const isSame = (type: ErrorType): boolean =>
    type.statusCode === statusCode &&
    type.errorCode.name === errorCode.name &&
    type.errorCode.value === errorCode.value;
  const type = options.errors?.find(isSame);
  if (type === undefined) return error;
  const fields = { statusCode, message, headers, cause: error, errorCode };
  // Not `new type()`: the constructor of a type may take other arguments.
  const declared: unknown = Reflect.construct(ApiError, [description, fields], type);
  if (declared instanceof Error && error.stack !== undefined) declared.stack = error.stack;
  return declared;
}

/** @throws what is wrong with the answer */
async function declaredBody(
  what: string,
  response: AnySchema | SchemasByStatus,
  { status, body }: PlainAnswer,
): Promise<unknown> {
  const schema = status > 299 ? undefined : responseSchema(response, status);
  if (schema === undefined) throw new Error(`the status ${status} is not declared`);
  if (schema === null && body !== undefined) throw new Error(`there is a body with ${status}`);
  const props = propsOf(schema);
  if (props === undefined) return body;
  const result = await check(what, props, body);
  if (result.issues === undefined) return result.value;
  throw new Error(describeFindings('body', result.issues, 1));
}

/** Those of the call beat those of the input. */
function withHeaders(own: RequestHeaders, extra: RequestHeaders | undefined): RequestHeaders {
  const headers = toHeaders(own);
  for (const [name, value] of toHeaders(extra ?? {})) headers.set(name, value);
  return headers;
}
