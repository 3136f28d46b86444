/* The error of a failed call to another service. */

import type { ErrorCode } from '../base/error-codes.js';
import { setBrand } from '../base/brand.js';
import { ApiError, FrameworkErrorCodes, reasonOf, type ApiErrorOptions } from '../base/errors.js';
import { NO_RETRY_HEADER } from '../propagation/mesh-headers.js';

/** A call, as its errors name it. @internal */
export interface CallName {
  readonly service: string;
  readonly method: string;
  /** As sent, without the query. */
  readonly path: string;
  /** Whether the call is repeated while the service is unavailable; then nobody further up needs to. */
  readonly isRepeated?: boolean;
}

/** Options of a {@link ServiceError}. */
export interface ServiceErrorOptions extends ApiErrorOptions {
  /** The method of the call. Default: empty. */
  method?: string;
  /** The path of the call, without its query. Default: empty. */
  path?: string;
}

/**
 * Another service replied with an error, or not at all. If nobody catches it, the client receives it unchanged: an
 * error keeps its status, message, description and code through any number of services. Its stack names the caller.
 */
export class ServiceError extends ApiError {
  static override statusCode = 502;
  static override message = 'Bad Gateway';
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_error_unspecified;

  /** The name of the called service, as configured. */
  readonly service: string;
  /** Upper-case; empty for an error that no call raised. */
  readonly method: string;
  /** Percent-encoded, without the query; empty for an error that no call raised. */
  readonly path: string;

  /** @throws as {@link ApiError} does */
  constructor(service: string, description?: string, options: ServiceErrorOptions = {}) {
    const { method = '', path = '', ...rest } = options;
    super(description ?? `${service} failed`, rest);
    this.service = service;
    this.method = method;
    this.path = path;
  }
}

// The public gets less of it, also of one that another copy of Postern made (`forScope`).
setBrand(ServiceError.prototype, 'ServiceError');

/** Creates the error of a call; its message is the reason phrase of its status by default. @internal */
export function callError(
  { service, method, path, isRepeated = false }: CallName,
  statusCode: number,
  description: string,
  options: Omit<ApiErrorOptions, 'statusCode'> = {},
): ServiceError {
  const isFinal = isRepeated && isUnavailable(statusCode);
  const headers = { ...options.headers, ...(isFinal ? { [NO_RETRY_HEADER]: 'true' } : undefined) };
  const fields = { message: reasonOf(statusCode), ...options, statusCode, method, path, headers };
  return new ServiceError(service, description, fields);
}

/** Maximum bytes of a text of a failed call in the log, and of all its texts, so that its line has at most 500. */
const MAX_TEXT = 48;
const MAX_TEXTS = 100;

/**
 * A failed call as the log has it: with the code or the message of its cause, and without a stack. While a service is
 * down its line is one of thousands, and where the call was made adds nothing to service, method and path.
 *
 * @internal
 */
export function toLogged(error: ServiceError): Error {
  const { name, message, description, service, method, path, errorCode, cause } = error;
  let left = MAX_TEXTS;
  const shorten = (given: unknown): string => {
    const text = String(given);
    let shown = text.slice(0, MAX_TEXT);
    while (Buffer.byteLength(shown) > Math.min(left, MAX_TEXT)) shown = shown.slice(0, -1);
    left -= Buffer.byteLength(shown);
    return shown === text ? text : `${shown}…`;
  };
  const { value } = errorCode;
  const isSpecified = value !== FrameworkErrorCodes.framework_error_unspecified.value;
  const reason: unknown = cause instanceof Error ? (Reflect.get(cause, 'code') ?? cause.message) : undefined;
  // In the order of their use to the reader: a text gets the space that the texts before it left.
  const code = isSpecified && { errorCode: { name: shorten(errorCode.name), value } };
  const where = { service, method, path: shorten(path) };
  const what = { description: shorten(description) };
  const why = reason !== undefined && { cause: shorten(reason) };
  const own = { name: { value: name }, message: { value: shorten(message) }, stack: { value: undefined } };
  return Object.assign(Object.create(ServiceError.prototype, own) as Error, what, where, why, code);
}

/** Whether another attempt may succeed after this status. @internal */
export function isUnavailable(status: number): boolean {
  return status === 503 || status === 504;
}
