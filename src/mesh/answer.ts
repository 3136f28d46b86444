/**
 * What another service answered. None of it is trusted: every part is checked before it is used.
 */

import { STATUS_CODES, type IncomingHttpHeaders } from 'node:http';
import { adoptErrorCode, FrameworkErrorCodes } from '../errors.js';
import { decodeUtf8 } from '../payload/bytes.js';
import { JSON_TYPE } from '../payload/json.js';
import { ServiceError } from './service-error.js';

/** A complete answer with a status from 200 to 599. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Names and values by turns, as they came. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

/** The uniform error body (SPEC 2.5). */
export interface ErrorBody {
  readonly message: string;
  readonly description: string;
  readonly error_code: { readonly name: string; readonly value: number };
}

/** Larger bodies are no uniform error: nothing that explains an error needs as much. */
const MAX_ERROR_BYTES = 65_536;

/** Whole seconds, or a date in the form that every server sends (RFC 9110, sections 10.2.3 and 5.6.7). */
const RETRY_AFTER = /^(?:\d{1,9}|[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT)$/;

/**
 * The body: JSON parsed, `application/octet-stream` as bytes, all else as text in UTF-8, nothing as undefined.
 *
 * @throws {ServiceError} 502 for a content coding, and for JSON that is none
 */
export function readBody(service: string, answer: Answer): unknown {
  const { body } = answer;
  if (body.length === 0) return undefined;
  if (isCoded(answer)) throw new ServiceError(service, `${service} answered in a content coding that was not asked for`);
  const type = typeOf(answer);
  if (type === 'application/octet-stream') return new Uint8Array(body.buffer, body.byteOffset, body.length);
  if (!JSON_TYPE.test(type)) return decodeUtf8(body);
  try {
    return parseJson(body);
  } catch (cause) {
    throw new ServiceError(service, `${service} answered with invalid JSON`, { cause });
  }
}

/** The body as JSON, or undefined when it isn't. */
export function readJson(answer: Answer): unknown {
  if (isCoded(answer) || !JSON_TYPE.test(typeOf(answer))) return undefined;
  try {
    return parseJson(answer.body);
  } catch {
    return undefined;
  }
}

/** The error that an answer of 400 or more stands for; without the uniform body, one that tells the status alone. */
export function toServiceError(service: string, answer: Answer): ServiceError {
  const { status } = answer;
  const retryAfter = answer.headers['retry-after'];
  const headers = retryAfter !== undefined && RETRY_AFTER.test(retryAfter) ? { headers: { 'retry-after': retryAfter } } : {};
  const body = answer.body.length > MAX_ERROR_BYTES ? undefined : readErrorBody(readJson(answer));
  if (body === undefined) return statusError(service, status, `${service} answered ${status}`, headers);
  const { message, description, error_code: code } = body;
  return new ServiceError(service, description, { statusCode: status, message, errorCode: adoptErrorCode(code.name, code.value), ...headers });
}

/** An error whose message is the reason phrase of its status. */
export function statusError(service: string, statusCode: number, description: string, options: { headers?: Record<string, string>; cause?: unknown } = {}): ServiceError {
  return new ServiceError(service, description, { statusCode, message: STATUS_CODES[statusCode] ?? 'Unknown Error', errorCode: FrameworkErrorCodes.framework_error_unspecified, ...options });
}

/** The known fields of a uniform error body, or undefined for anything else. */
export function readErrorBody(value: unknown): ErrorBody | undefined {
  if (!isRecord(value) || !isRecord(value['error_code'])) return undefined;
  const { message, description } = value;
  const { name, value: code } = value['error_code'];
  if (typeof message !== 'string' || typeof description !== 'string') return undefined;
  if (typeof name !== 'string' || typeof code !== 'number' || !Number.isSafeInteger(code)) return undefined;
  return { message, description, error_code: { name, value: code } };
}

/** An error as the uniform body. */
export function toErrorBody({ message, description, errorCode }: ServiceError): ErrorBody {
  return { message, description, error_code: { name: errorCode.name, value: errorCode.value } };
}

/** A JSON object, rather than an array or null. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function typeOf({ headers }: Answer): string {
  const type = headers['content-type'] ?? '';
  const end = type.indexOf(';');
  return (end === -1 ? type : type.slice(0, end)).trim().toLowerCase();
}

function isCoded({ headers }: Answer): boolean {
  return (headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity';
}

function parseJson(body: Buffer): unknown {
  if (!process.getBuiltinModule('node:buffer').isUtf8(body)) throw new SyntaxError('not UTF-8');
  return JSON.parse(decodeUtf8(body));
}
