/*
 * What another service answered. None of it is trusted: every part is checked before it is used.
 */

import type { IncomingHttpHeaders } from 'node:http';
import { builtin } from '../base/builtin.js';
import { adoptErrorCode } from '../base/error-codes.js';
import { decodeUtf8 } from '../payload/bytes.js';
import { isJsonType, mediaTypeOf } from '../payload/content-type.js';
import { readErrorBody } from '../payload/error-body.js';
import { parseJson, parseShallowJson } from '../payload/json.js';
import { NO_RETRY_HEADER } from './retry.js';
import { callError, retryHeaders, ServiceError, type Callee } from './service-error.js';

/** A complete answer with a status from 200 to 599. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Larger bodies are no uniform error: nothing that explains an error needs as much. */
const MAX_ERROR_BYTES = 65_536;

/** Whole seconds, or a date in the form that every server sends (RFC 9110, sections 10.2.3 and 5.6.7). */
const RETRY_AFTER = /^(?:\d{1,9}|[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT)$/;

/**
 * The body: JSON parsed, `application/octet-stream` as bytes, all else as text in UTF-8, nothing as undefined.
 *
 * @throws {ServiceError} 502 for a content coding, for invalid JSON, and for what is refused in the JSON of a request,
 * too, such as the key `__proto__`
 */
export function readBody(callee: Callee, answer: Answer): unknown {
  const { body } = answer;
  const { service } = callee;
  if (body.length === 0) return undefined;
  if (isCoded(answer)) throw callError(callee, 502, `${service} answered in a content coding that was not asked for`);
  const type = mediaTypeOf(answer.headers['content-type']);
  if (type === 'application/octet-stream') return new Uint8Array(body.buffer, body.byteOffset, body.length);
  if (!isJsonType(type)) return decodeUtf8(body);
  try {
    return parseJson(decodeJson(body));
  } catch (cause) {
    throw callError(callee, 502, `${service} answered with invalid JSON`, { cause });
  }
}

/** The body as JSON, or undefined when it isn't; its keys are not checked. */
export function readJson(answer: Answer): unknown {
  if (isCoded(answer) || !isJsonType(mediaTypeOf(answer.headers['content-type']))) return undefined;
  try {
    return parseShallowJson(decodeJson(answer.body));
  } catch {
    return undefined;
  }
}

/** `Retry-After` if it is valid. */
export function retryAfterOf({ 'retry-after': value }: IncomingHttpHeaders): string | undefined {
  return value !== undefined && RETRY_AFTER.test(value) ? value : undefined;
}

/** The error that an answer of 400 or more stands for; without the uniform body, one that tells the status alone. */
export function toServiceError(callee: Callee, answer: Answer): ServiceError {
  const { service, method, path } = callee;
  const { status } = answer;
  const headers = { ...survivingHeaders(answer.headers), ...retryHeaders(callee, status) };
  const body = answer.body.length > MAX_ERROR_BYTES ? undefined : readErrorBody(readJson(answer));
  if (body === undefined) return callError(callee, status, `${service} answered ${status}`, { headers });
  const { message, description, error_code: code } = body;
  const errorCode = adoptErrorCode(code.name, code.value);
  return new ServiceError(service, description, { statusCode: status, message, errorCode, method, path, headers });
}

/** The headers that tell callers further up when to try again, and whether to. */
function survivingHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const surviving: Record<string, string> = {};
  const retryAfter = retryAfterOf(headers);
  if (retryAfter !== undefined) surviving['retry-after'] = retryAfter;
  if (headers[NO_RETRY_HEADER] !== undefined) surviving[NO_RETRY_HEADER] = 'true';
  return surviving;
}

function isCoded({ headers }: Answer): boolean {
  return (headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity';
}

function decodeJson(body: Buffer): string {
  if (!builtin('node:buffer').isUtf8(body)) throw new SyntaxError('not UTF-8');
  return decodeUtf8(body);
}
