/* The failures a request can end in: API exceptions, the server's own, and the framework's with their codes (SPEC 7). */

import { builtin } from './builtin.js';
import { isInstance, setBrand } from './brand.js';
import { defineErrorCodes, isErrorCode, type ErrorCode } from './error-codes.js';
import { ANYTHING, assertOptions, isRecord, LIST, STRING, type Kind, type Kinds } from './options-check.js';

const { STATUS_CODES } = builtin('node:http');

/** The framework's own codes. */
export const FrameworkErrorCodes = defineErrorCodes({
  framework_error_unspecified: 999998,
  framework_unknown_error: 999999,
  framework_invalid_query_params: 999400,
  framework_invalid_request: 999401,
  framework_invalid_response: 999502,
  framework_overloaded: 999503,
  framework_timeout: 999504,
});

/** Options of an {@link HttpError}, besides its description. */
export interface HttpErrorOptions {
  /** Headers of the error reply, such as `allow` or `retry-after`. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** The error that led to this one. Only the log has it, never the client. */
  cause?: unknown;
}

/** Options of one {@link ApiError}; each replaces the default of its type. */
export interface ApiErrorOptions extends HttpErrorOptions {
  /** An integer from 400 to 599. */
  statusCode?: number | undefined;
  /** The code in the error body, made by `defineErrorCodes`. */
  errorCode?: ErrorCode | undefined;
  /** The summary in the error body: the same text for every error of a type. */
  message?: string | undefined;
}

const TEXTS_BY_NAME: Kind = {
  accepts: (value) =>
    isRecord(value) && !(Symbol.iterator in value) && Object.values(value).every((text) => typeof text === 'string'),
  give: "an object of strings, { allow: 'GET' }",
};

const HTTP_ERROR: Kinds<HttpErrorOptions> = { headers: TEXTS_BY_NAME, cause: ANYTHING };
// Members marked ANYTHING are checked where they are used: a number out of range is a RangeError.
const API_ERROR: Kinds<ApiErrorOptions> = { ...HTTP_ERROR, statusCode: ANYTHING, errorCode: ANYTHING, message: STRING };

/**
 * An error that a handler throws, with the status and the texts of its reply. Subclasses fix their defaults as static
 * members; a type without a description uses its message.
 *
 * @example
 * const Codes = defineErrorCodes({ too_slow: 10002 });
 * class TooSlow extends ApiError {
 *   static override statusCode = 408;
 *   static override description = 'Too slow!';
 *   static override errorCode = Codes.too_slow;
 * }
 * app.get('/slow', () => {
 *   throw new TooSlow();
 * });
 */
export class ApiError extends Error {
  /** Default status of this type: an integer from 400 to 599. */
  static statusCode: number = 500;
  /** Default message of this type. */
  static message: string = 'An unknown error occurred';
  /** Default description of this type. Default: its message. */
  static description: string | undefined = undefined;
  /** Default code of this type, made by `defineErrorCodes`. */
  static errorCode: ErrorCode = FrameworkErrorCodes.framework_error_unspecified;

  /** Status of the error reply. */
  readonly statusCode: number;
  /** Text for the client about this one error; member `description` of the error body. */
  readonly description: string;
  /** Code of the error body; `{ name, value }`. */
  readonly errorCode: ErrorCode;
  /** Headers of the error reply, such as `retry-after`. */
  readonly headers: Readonly<Record<string, string>> | undefined;

  /** An error of another copy of Postern is an instance, too; so it is for the types below. @internal */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isInstance(this, value);
  }

  /**
   * @param description replaces the type's own for this raise
   * @throws {RangeError} when the status is not an integer from 400 to 599
   * @throws {TypeError} for an unknown or invalid option, such as an error code that did not come from
   * {@link defineErrorCodes}
   */
  constructor(description?: string, options?: ApiErrorOptions) {
    const type = new.target;
    if (options !== undefined) assertOptions(`new ${type.name}()`, options, API_ERROR);
    const message = String(options?.message ?? type.message);
    const text = description ?? type.description ?? message;
    // Two texts need a stack of their own, so the usual one need not be collected.
    const { stackTraceLimit } = Error;
    if (text !== message) setStackTraceLimit(0);
    super(message, options);
    this.name = type.name;
    if (text !== message) {
      setStackTraceLimit(stackTraceLimit);
      beginStackWith(this, `${message} ${String(text)}`, type);
    }
    const { statusCode = type.statusCode, errorCode = type.errorCode, headers } = options ?? {};
    this.statusCode = assertErrorStatus(statusCode);
    this.description = text;
    this.errorCode = errorCode;
    if (!isErrorCode(this.errorCode))
      throw new TypeError('errorCode must be a member of an enumeration made by defineErrorCodes');
    this.headers = headers;
  }
}

/**
 * An error of the server itself: unknown route, wrong method, malformed request and the like.
 * `message` is the reason phrase of the status, `errorCode` the unspecified code.
 *
 * @example
 * app.get('/reports', () => {
 *   throw new HttpError(503, 'down for repairs', { headers: { 'retry-after': '60' } });
 * });
 */
export class HttpError extends Error {
  /** Status of the error reply. */
  readonly statusCode: number;
  /** Text for the client about this one error; member `description` of the error body. */
  readonly description: string;
  /** Code of the error body: always `framework_error_unspecified`. */
  readonly errorCode: ErrorCode = FrameworkErrorCodes.framework_error_unspecified;
  /** Headers of the error reply, such as `retry-after`. */
  readonly headers: Readonly<Record<string, string>> | undefined;

  /** An error of another copy of Postern is an instance, too. @internal */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isInstance(this, value);
  }

  /**
   * @param description what went wrong, for the client. Default: the reason phrase of the status
   * @throws {RangeError} when the status is not an integer from 400 to 599
   * @throws {TypeError} for an unknown or invalid option
   */
  constructor(statusCode: number, description?: string, options?: HttpErrorOptions) {
    if (options !== undefined) assertOptions(`new ${new.target.name}()`, options, HTTP_ERROR);
    super(reasonOf(assertErrorStatus(statusCode)), options);
    this.name = new.target.name;
    this.statusCode = statusCode;
    this.description = description ?? this.message;
    this.headers = options?.headers;
  }
}

/**
 * An {@link HttpError} of the framework's own without a stack, which would say nothing and cost more than the reply.
 *
 * @throws {RangeError} as `HttpError` does
 */
export function refusal(statusCode: number, description: string, options?: HttpErrorOptions): HttpError {
  const { stackTraceLimit } = Error;
  setStackTraceLimit(0);
  try {
    return new HttpError(statusCode, description, options);
  } finally {
    setStackTraceLimit(stackTraceLimit);
  }
}

/** Not an assignment: it would throw where intrinsics are frozen. */
function setStackTraceLimit(limit: number): void {
  Reflect.set(Error, 'stackTraceLimit', limit);
}

/** 400; the base for bad requests with a code of their own. */
export class BadRequest extends ApiError {
  static override statusCode = 400;
  static override message = 'Bad request.';
}

/** 401; give the challenge as the header `www-authenticate` (RFC 9110, section 15.5.2). */
export class Unauthorized extends ApiError {
  static override statusCode = 401;
  static override message = 'Unauthorized.';
}

/** 403. */
export class Forbidden extends ApiError {
  static override statusCode = 403;
  static override message = 'Forbidden.';
}

/**
 * 404.
 *
 * @example
 * throw new NotFound('There is no user 7.');
 */
export class NotFound extends ApiError {
  static override statusCode = 404;
  static override message = 'Not found.';
}

/** 409. */
export class Conflict extends ApiError {
  static override statusCode = 409;
  static override message = 'Conflict.';
}

/** Options of a {@link TooManyRequests} or {@link ServiceUnavailable}. */
export interface RetryOptions extends ApiErrorOptions {
  /** Seconds until another attempt makes sense, sent as `retry-after` (RFC 9110, section 10.2.3). */
  retryAfter?: number | undefined;
}

const RETRY: Kinds<RetryOptions> = { ...API_ERROR, retryAfter: ANYTHING };

/**
 * 429 (RFC 6585, section 4).
 *
 * @example
 * throw new TooManyRequests('Slow down.', { retryAfter: 30 }); // seconds
 */
export class TooManyRequests extends ApiError {
  static override statusCode = 429;
  static override message = 'Too many requests.';

  constructor(description?: string, options: RetryOptions = {}) {
    super(description, withRetryAfter(new.target.name, options));
  }
}

/** 503. */
export class ServiceUnavailable extends ApiError {
  static override statusCode = 503;
  static override message = 'Service unavailable.';

  constructor(description?: string, options: RetryOptions = {}) {
    super(description, withRetryAfter(new.target.name, options));
  }
}

/** 400 for a query parameter that a public route does not allow (SPEC 7.3). @internal */
export class InvalidQueryParams extends BadRequest {
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_invalid_query_params;
}

/** One thing that is wrong with a request, as the client may see it. */
export interface Finding {
  /** RFC 6901, as a URI fragment: `#/address/street`, or `#` for the whole. */
  readonly pointer: string;
  /** In the words of the schema's author, on one line; at most 200 characters. */
  readonly detail: string;
}

/** One finding in a request. */
export interface RequestFinding extends Finding {
  /** The part of the request that it is in. */
  readonly in: 'params' | 'query' | 'headers' | 'body';
}

const INVALID_REQUEST = { ...API_ERROR, findings: LIST };

/** 400 for a request that does not fit the schemas of its route. The body has the findings. */
export class InvalidRequest extends BadRequest {
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_invalid_request;

  /** The first 32 findings, as the member `errors` of the body. */
  readonly findings: readonly RequestFinding[];

  constructor(description?: string, options: ApiErrorOptions & { readonly findings?: readonly RequestFinding[] } = {}) {
    assertOptions(`new ${new.target.name}()`, options, INVALID_REQUEST);
    const { findings = [], ...others } = options;
    super(description, others);
    this.findings = findings;
  }
}

/** The service has more to do than it can; the request was not run. @internal */
export class Overloaded extends ServiceUnavailable {
  static override description: string = 'The service has more to do than it can; try again later.';
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_overloaded;
}

/** The time of a request is over: the `timeout` of its route, or the deadline that its caller sent. @internal */
export class TimedOut extends ApiError {
  static override statusCode = 504;
  static override message = 'Gateway timeout.';
  static override errorCode: ErrorCode = FrameworkErrorCodes.framework_timeout;
}

/** Nobody waits for the reply any more; the handler was not run. @internal */
export class DeadlinePassed extends TimedOut {
  static override description = 'The deadline of the request passed before it could be handled.';
}

const TYPES = { ApiError, HttpError, BadRequest, Unauthorized, Forbidden, NotFound, Conflict, TooManyRequests };
// By key: a bundler may give classes other names.
for (const [name, type] of Object.entries({ ...TYPES, ServiceUnavailable })) setBrand(type.prototype, name);

/** The reason phrase of a status of an error. */
export function reasonOf(statusCode: number): string {
  return STATUS_CODES[statusCode] ?? 'Unknown Error';
}

/** Whether a value is an error of any realm. A Proxy of one is not, and is not looked at: it may throw. */
export function isNativeError(value: unknown): value is Error {
  return builtin('node:util').types.isNativeError(value);
}

/** Whether a value is a status: an integer from `least` to 599. */
export function isStatus(value: unknown, least: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= 599;
}

/** Has the stack of an error begin with more than its message. V8 writes the text of a stack when it is first read. */
function beginStackWith(error: Error, message: string, type: Function): void {
  const site: Error = { name: error.name, message };
  Error.captureStackTrace(site, type);
  const set = (value: unknown): void =>
    void Object.defineProperty(error, 'stack', { value, configurable: true, writable: true });
  Object.defineProperty(error, 'stack', { get: () => site.stack, set, configurable: true });
}

function assertErrorStatus(statusCode: number): number {
  if (isStatus(statusCode, 400)) return statusCode;
  throw new RangeError(`${String(statusCode)} is not a status of an error; use an integer from 400 to 599`);
}

function withRetryAfter(type: string, given: RetryOptions): ApiErrorOptions {
  assertOptions(`new ${type}()`, given, RETRY);
  const { retryAfter, ...options } = given;
  if (retryAfter === undefined) return options;
  if (!Number.isInteger(retryAfter) || retryAfter < 0)
    throw new RangeError(`retryAfter is ${String(retryAfter)}; give whole seconds`);
  const others = Object.entries(options.headers ?? {}).filter(([name]) => name.toLowerCase() !== 'retry-after');
  return { ...options, headers: { ...Object.fromEntries(others), 'retry-after': String(retryAfter) } };
}
