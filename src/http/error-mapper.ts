/**
 * Maps anything thrown while a request was handled to the reply that the client gets (spec 7.1).
 */

import { STATUS_CODES } from 'node:http';
import { ApiError, FrameworkErrorCodes, HttpError, refusal, type ErrorCode } from '../errors.js';
import type { Outgoing } from './reply.js';

/** A failure, mapped. */
export interface MappedError {
  readonly statusCode: number;
  readonly message: string;
  readonly description: string;
  readonly errorCode: ErrorCode;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** Headers of an error reply that the error itself can't set. */
const OWN_HEADERS: ReadonlySet<string> = new Set(['content-type', 'content-length', 'transfer-encoding', 'x-request-id']);

/** Whatever a service raises by mistake. */
const SERVER_ERROR: MappedError = Object.freeze({
  statusCode: 500,
  message: 'Server Error',
  description: 'Something has blown up really bad. Somebody should be notified?',
  errorCode: FrameworkErrorCodes.framework_unknown_error,
  headers: undefined,
});

/** The one of every request without a route, where nothing but the log gets to see it. */
export const ROUTE_NOT_FOUND: HttpError = routeNotFound();

/** Bodies of what is raised most. */
const BODIES: ReadonlyMap<MappedError, string> = new Map([SERVER_ERROR, ROUTE_NOT_FOUND].map((error) => [error, formatErrorBody(error)]));

/** The error of a request without a route. */
export function routeNotFound(): HttpError {
  return refusal(404, 'No route matches this path.');
}

/**
 * @param thrown an `ApiError`, an `HttpError`, any other `Error`, or a value that is no error at all
 * @returns status 400 to 599; of a foreign error nothing but the fixed text, unless it says `expose` (http-errors)
 */
export function mapError(thrown: unknown): MappedError {
  try {
    // Looked at here, where a proxy or a getter may throw, and a subclass or a later change may have made it another.
    if ((thrown instanceof ApiError || thrown instanceof HttpError) && isErrorStatus(thrown.statusCode) && isCode(thrown.errorCode)) return thrown;
    if (thrown instanceof Error && 'expose' in thrown && thrown.expose === true) return mapExposed(thrown);
  } catch {
    // A getter or a proxy of what was thrown threw in its turn.
  }
  return SERVER_ERROR;
}

/** A mapped error as the uniform body (spec 2.5); `id` goes out as `x-request-id`. */
export function errorToOutgoing(error: MappedError, id: string | null): Outgoing {
  const body = BODIES.get(error) ?? formatErrorBody(error);
  const headers = ['content-type', 'application/json'];
  if (id !== null) headers.push('x-request-id', id);
  if (error.headers !== undefined) {
    for (const [name, value] of Object.entries(error.headers)) {
      if (!OWN_HEADERS.has(name.toLowerCase())) headers.push(name, value);
    }
  }
  // Said outright: a reply that failed before may have left another reason phrase on the response.
  return { status: error.statusCode, statusText: STATUS_CODES[error.statusCode] ?? 'Unknown Error', headers, body, length: Buffer.byteLength(body) };
}

/** The uniform body of an error, as JSON text (spec 2.5). */
export function formatErrorBody({ message, description, errorCode }: Pick<MappedError, 'message' | 'description' | 'errorCode'>): string {
  return JSON.stringify({ message: String(message), description: String(description), error_code: { name: errorCode.name, value: errorCode.value } });
}

function mapExposed(error: Error): MappedError {
  for (const key of ['status', 'statusCode'] as const) {
    const statusCode: unknown = Reflect.get(error, key);
    if (isErrorStatus(statusCode)) return new HttpError(statusCode, String(error.message));
  }
  return SERVER_ERROR;
}

function isErrorStatus(statusCode: unknown): statusCode is number {
  return typeof statusCode === 'number' && Number.isInteger(statusCode) && statusCode >= 400 && statusCode <= 599;
}

function isCode({ name, value }: ErrorCode): boolean {
  return typeof name === 'string' && Number.isInteger(value);
}
