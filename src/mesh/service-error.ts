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
  method?: string | undefined;
  /** The path of the call, without its query. Default: empty. */
  path?: string | undefined;
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

/** Whether another attempt may succeed after this status. @internal */
export function isUnavailable(status: number): boolean {
  return status === 503 || status === 504;
}
