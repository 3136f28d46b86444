/*
 * A failed call of another service, with the error that it raised.
 */

import { STATUS_CODES } from 'node:http';
import { FrameworkErrorCodes, type ErrorCode } from '../base/error-codes.js';
import { ApiError, type ApiErrorOptions } from '../base/errors.js';
import { isUnavailable, NO_RETRY_HEADER } from './retry.js';

/** What was called. @internal */
export interface Callee {
  readonly service: string;
  readonly method: string;
  /** As sent, without the query. */
  readonly path: string;
  /** Whether the call is repeated while the service is unavailable; then nobody further up needs to. */
  readonly isRepeated?: boolean;
}

/** What one raise of a {@link ServiceError} may set. */
export interface ServiceErrorOptions extends ApiErrorOptions {
  method?: string;
  path?: string;
}

/**
 * Another service answered with an error, or not at all. Left uncaught it goes out as it came, so that an error keeps
 * its status, message, description and code through any number of services. Its stack is that of the call.
 */
export class ServiceError extends ApiError {
  static override statusCode = 502;
  static override message = 'Bad Gateway';
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_error_unspecified;

  /** The service that was called, by the name it is connected under. */
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

/** An error that this side raises about a call: its message is the reason phrase of its status. @internal */
export function callError(
  callee: Callee,
  statusCode: number,
  description: string,
  { headers = {}, ...options }: Pick<ApiErrorOptions, 'headers' | 'cause'> = {},
): ServiceError {
  const { service, method, path } = callee;
  const message = STATUS_CODES[statusCode] ?? 'Unknown Error';
  return new ServiceError(service, description, {
    statusCode,
    message,
    method,
    path,
    headers: { ...headers, ...retryHeaders(callee, statusCode) },
    ...options,
  });
}

/** What a final error of a call tells callers further up about repeating theirs. @internal */
export function retryHeaders({ isRepeated = false }: Callee, statusCode: number): Record<string, string> {
  return isRepeated && isUnavailable(statusCode) ? { [NO_RETRY_HEADER]: 'true' } : {};
}
