/**
 * A failed call of another service, with the error that it raised.
 */

import { ApiError, FrameworkErrorCodes, type ApiErrorOptions, type ErrorCode } from '../errors.js';

/**
 * Another service answered with an error, or not at all. Left uncaught it goes out as it came, so that an error keeps
 * its status, message, description and code through any number of services.
 */
export class ServiceError extends ApiError {
  static override statusCode = 502;
  static override message = 'Bad Gateway';
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_error_unspecified;

  /** The service that was called, by the name it is connected under. */
  readonly service: string;

  /** @throws as {@link ApiError} does */
  constructor(service: string, description?: string, options: ApiErrorOptions = {}) {
    super(description ?? `${service} failed`, options);
    this.service = service;
  }
}
