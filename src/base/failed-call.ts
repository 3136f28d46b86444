/* The error of a failed call to another service, as the log has it: in one line of at most 500 bytes. */

import { isBranded, isInstance } from './brand.js';
import { ApiError, FrameworkErrorCodes, isNativeError } from './errors.js';

/** Maximum bytes of a text of a failed call in the log, and of all its texts, so that its line has at most 500. */
const MAX_TEXT = 48;
const MAX_TEXTS = 100;

/** A `ServiceError`, of whatever copy of Postern. */
interface FailedCall extends ApiError {
  readonly service: string;
  readonly method: string;
  readonly path: string;
}

/**
 * Converts an error of a failed call, or an `ApiError` that has one as its `cause`, to one with the code or the message
 * of its own cause, and without a stack. While a service is down its line is one of thousands, and where the call was
 * made adds nothing to service, method and path. Returns other values unchanged.
 *
 * @throws whatever a getter or a Proxy throws
 */
export function toLogged(thrown: unknown): unknown {
  if (!isNativeError(thrown) || !isInstance(ApiError, thrown)) return thrown;
  const error = thrown as ApiError;
  const call = failedCallOf(error);
  if (call === undefined) return error;
  const { name, message, description, errorCode } = error;
  const { service, method, path, cause } = call;
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
  // Before the description, which of a reply that its schema refuses says only that.
  const why = reason !== undefined && { cause: shorten(reason) };
  const what = { description: shorten(description) };
  const own = { name: { value: name }, message: { value: shorten(message) }, stack: { value: undefined } };
  return Object.assign(Object.create(Object.getPrototypeOf(error) as object, own) as Error, what, where, why, code);
}

/** The error of a failed call: an error itself, or its `cause`. @throws whatever a getter or a Proxy throws */
export function failedCallOf(error: { readonly cause?: unknown }): FailedCall | undefined {
  return [error, error.cause].find((each): each is FailedCall => isBranded(each, 'ServiceError'));
}
