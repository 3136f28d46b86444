/* The uniform error body (SPEC 2.5): written by every service, read from every other. */

import type { ErrorCode } from '../base/error-codes.js';
import { isRecord } from '../base/options-check.js';

/** The body of an error reply, as every service sends it. */
export interface ErrorBody {
  /** The summary: the same text for every error of a type. */
  readonly message: string;
  /** Text about this one error. */
  readonly description: string;
  /** The code of the error. */
  readonly error_code: { readonly name: string; readonly value: number };
}

/** Members of an error that its body needs; an `ApiError` and an `HttpError` have them. */
export interface ErrorFields {
  readonly statusCode: number;
  readonly message: string;
  readonly description: string;
  readonly errorCode: ErrorCode;
}

/** An error as the uniform body. */
export function toErrorBody({ message, description, errorCode }: ErrorFields): ErrorBody {
  const { name, value } = errorCode;
  return { message: String(message), description: String(description), error_code: { name, value } };
}

/**
 * An error as problem details (RFC 9457).
 *
 * @param types a URL; followed by the name of the error's code, it is the `type`. Null for `about:blank`
 */
export function toProblem(error: ErrorFields, types: string | null): Record<string, unknown> {
  const { message, description, error_code } = toErrorBody(error);
  const type = types === null ? 'about:blank' : `${types}${encodeURIComponent(error_code.name)}`;
  return { type, title: message, status: error.statusCode, detail: description, error_code };
}

/** Reads an error body, in the uniform shape or as problem details; undefined for anything else. */
export function readErrorBody(value: unknown): ErrorBody | undefined {
  if (!isRecord(value) || !isRecord(value['error_code'])) return undefined;
  const { message = value['title'], description = value['detail'] } = value;
  const { name, value: code } = value['error_code'];
  if (typeof message !== 'string' || typeof description !== 'string') return undefined;
  if (typeof name !== 'string' || typeof code !== 'number' || !Number.isSafeInteger(code)) return undefined;
  return { message, description, error_code: { name, value: code } };
}
