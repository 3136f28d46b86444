/* Maps anything thrown while a request was handled to the reply that the client gets (spec 7.1). */

import { isBrandedAtAll, isOwnInstance } from '../base/brand.js';
import { builtin } from '../base/builtin.js';
import { isErrorCode } from '../base/error-codes.js';
import { ApiError, FrameworkErrorCodes, HttpError, InvalidRequest } from '../base/errors.js';
import { isNativeError, isStatus, reasonOf, refusal } from '../base/errors.js';
import { failedCallOf } from '../base/failed-call.js';
import { prefersProblem } from '../payload/accept.js';
import { toErrorBody, toProblem, type ErrorFields } from '../payload/error-body.js';
import { Context } from './context.js';
import { flatten, isError, Reply } from './reply.js';
import type { Outgoing } from '../wire/outgoing.js';
import type { Scope } from '../wire/scope.js';
import { addHeader } from '../wire/writer.js';

const { validateHeaderName, validateHeaderValue } = builtin('node:http');

/** A failure, mapped. */
export interface MappedError extends ErrorFields {
  readonly headers: Readonly<Record<string, string | readonly string[]>> | undefined;
}

/** Headers of an error reply that the error itself can't set. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'content-type',
  'content-length',
  'transfer-encoding',
  'x-request-id',
]);

/** The client's reply to anything that is thrown by mistake, such as a `TypeError`. */
export const SERVER_ERROR: MappedError = Object.freeze({
  statusCode: 500,
  message: 'Server Error',
  description: 'Something has blown up really bad. Somebody should be notified?',
  errorCode: FrameworkErrorCodes.framework_unknown_error,
  headers: undefined,
});

/** One error for all requests without a route, where there is no middleware that could change it. */
export const ROUTE_NOT_FOUND: HttpError = Object.freeze(routeNotFound());

/** The error of a request without a route. */
export function routeNotFound(): HttpError {
  return refusal(404, 'No route matches this path.');
}

/**
 * @param thrown an `ApiError`, an `HttpError`, any other `Error`, or a value that is not an error at all
 * @param ctx of the request; null without one
 * @returns status 400 to 599; for a foreign error the fixed text, unless its member `expose` is true (http-errors),
 * middleware for Express failed with it, or the body broke off: then that is why
 */
export function mapError(thrown: unknown, ctx: Context | null = null): MappedError {
  try {
    // Inside the `try`: a Proxy or a getter may throw. The constructor has checked status and code, but a subclass or a
    // later assignment may have changed them.
    if (isBrandedAtAll(thrown) && (thrown instanceof ApiError || thrown instanceof HttpError)) {
      // A Proxy may throw when it is looked at once more.
      const isOurs = isOwnInstance(ApiError, thrown) || isOwnInstance(HttpError, thrown);
      if (!isOurs || !isNativeError(thrown)) return copyOf(thrown);
      readAll(thrown);
      return isStatus(thrown.statusCode, 400) && isErrorCode(thrown.errorCode) ? thrown : SERVER_ERROR;
    }
    if (ctx?.expressError === thrown || (isError(thrown) && 'expose' in thrown && thrown.expose === true))
      return mapForeign(thrown);
  } catch {
    // A getter or a proxy of what was thrown threw in its turn.
  }
  return ctx?.exchange.body?.failure ?? SERVER_ERROR;
}

/**
 * A mapped error as the uniform body (spec 2.5), or as problem details to a client that would rather have those.
 *
 * @param id sent as `x-request-id`
 * @param accept of the request
 * @param types the option `errorTypes`
 */
export function errorToOutgoing(
  error: MappedError,
  id: string | null,
  accept: string | undefined,
  types: string | null,
): Outgoing {
  const isProblem = prefersProblem(accept);
  const status = error.statusCode;
  const body = JSON.stringify(errorBodyOf(error, isProblem, types));
  const headers = headersOf(error, isProblem, id);
  // The reason phrase is always given: a reply that could not be written may have left its own on `res`.
  return { status, statusText: reasonOf(status), headers, body, length: Buffer.byteLength(body) };
}

/**
 * The error that the client gets. The public gets nothing of another service's 5xx, whose texts may name hosts and
 * internals, but status, code and `Retry-After`. An error that a typed call declares has these texts, too.
 */
export function forScope(scope: Scope, thrown: unknown, error: MappedError): MappedError {
  const { statusCode, errorCode, headers } = error;
  if (scope === undefined || error === SERVER_ERROR || statusCode < 500) return error;
  if (!isBrandedAtAll(thrown) || failedCallOf(thrown)?.description !== error.description) return error;
  const reason = reasonOf(statusCode);
  const kept = Object.entries(headers ?? {}).filter(([name]) => name.toLowerCase() === 'retry-after');
  return { statusCode, message: reason, description: reason, errorCode, headers: Object.fromEntries(kept) };
}

/**
 * An error as the reply that middleware gets to see, whose body is an object.
 *
 * @param shown the error that the client gets, if what was thrown cannot be sent
 */
export function errorToReply(ctx: Context, thrown: unknown, shown: unknown = thrown): Reply {
  const error = forScope(ctx.scope, shown, mapError(shown, ctx));
  const isProblem = prefersProblem(ctx.headers.accept);
  const body = errorBodyOf(error, isProblem, Context.optionsOf(ctx).errorTypes);
  const headers = new Headers();
  const list = headersOf(error, isProblem, ctx.id);
  for (let i = 0; i < list.length; i += 2)
    for (const value of [list[i + 1] as string | string[]].flat()) headers.append(list[i] as string, value);
  return Reply.ofFailure(thrown, body, { status: error.statusCode, headers });
}

function errorBodyOf(error: MappedError, isProblem: boolean, types: string | null): object {
  const body = isProblem ? toProblem(error, types) : toErrorBody(error);
  return error instanceof InvalidRequest ? { ...body, errors: error.findings } : body;
}

/** Headers about the body of a reply, or its framing. */
const OF_BODY = /^(?:content-(?!security-policy)|trailer$|transfer-encoding$)/i;

/** Whether `node:http` sends a header. */
function isSendable(name: string, value: string | string[]): boolean {
  try {
    validateHeaderName(name);
    for (const each of [value].flat()) validateHeaderValue(name, each);
    return true;
  } catch {
    return false;
  }
}

/** The headers of a reply that could not be sent; none if looking at them throws. */
export function headersOfUnsent(value: unknown): Outgoing['headers'] {
  try {
    return value instanceof Reply ? flatten(value.ownHeaders, true) : [];
  } catch {
    return [];
  }
}

/**
 * An error in place of a reply that could not be sent. The headers of that reply stay, but for one that is the reason:
 * without CORS headers, a browser would not show the error to its page.
 */
export function withHeaders(unsent: Outgoing['headers'], outgoing: Outgoing): Outgoing {
  const headers = [...outgoing.headers];
  for (let i = 0; i < unsent.length; i += 2) {
    const [name, value] = [String(unsent[i]), unsent[i + 1] as string | string[]];
    if (!OF_BODY.test(name) && isSendable(name, value)) addHeader(headers, name, value);
  }
  return { ...outgoing, headers };
}

/** Names and values alternately. */
function headersOf(error: MappedError, isProblem: boolean, id: string | null): Outgoing['headers'] {
  const headers: Outgoing['headers'] = ['content-type', isProblem ? 'application/problem+json' : 'application/json'];
  if (id !== null) headers.push('x-request-id', id);
  let vary = 'accept';
  for (const [name, value] of Object.entries(error.headers ?? {})) {
    const lower = name.toLowerCase();
    // RFC 9110, section 12.5.5.
    if (lower === 'vary') vary = namesAccept(String(value)) ? String(value) : `${String(value)}, accept`;
    else if (!OWN_HEADERS.has(lower)) headers.push(name, typeof value === 'string' ? value : [...value]);
  }
  headers.push('vary', vary);
  return headers;
}

function namesAccept(vary: string): boolean {
  return /(?:^|,)\s*(?:\*|accept)\s*(?:,|$)/i.test(vary);
}

/** Maps an error of http-errors, or of middleware for Express, as Express does (finalhandler 2). */
function mapForeign(thrown: unknown): MappedError {
  const { status, statusCode, expose, message, headers }: Partial<Record<string, unknown>> = Object(thrown);
  const known = [status, statusCode].find((each) => isStatus(each, 400));
  if (known === undefined) return SERVER_ERROR;
  const reason = reasonOf(known);
  const isTextShown = expose === true && typeof message === 'string' && message !== '';
  return {
    statusCode: known,
    message: reason,
    description: isTextShown ? message : reason,
    errorCode: FrameworkErrorCodes.framework_error_unspecified,
    headers: toTexts(headers),
  };
}

/** The headers of a foreign error, whose values may be of any type. */
function toTexts(headers: unknown): MappedError['headers'] {
  if (typeof headers !== 'object' || headers === null) return undefined;
  const given = Object.entries(headers).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(
    given.map(([name, value]: [string, unknown]) => [name, Array.isArray(value) ? value.map(String) : String(value)]),
  );
}

/** Reads all that a reply needs. A getter of the error that throws does so here, where it is still mapped to a 500. */
function readAll(error: MappedError): void {
  const { message, description, headers } = error;
  if (typeof message !== 'string' || typeof description !== 'string') toErrorBody(error);
  if (headers !== undefined) headersOf(error, false, null);
}

/** An error of another copy of Postern, copied: its version may differ, so each field is read once and checked. */
function copyOf({ statusCode, message, description, errorCode, headers }: MappedError): MappedError {
  const texts = [message, description, ...Object.values(headers ?? {})];
  if (!isStatus(statusCode, 400) || !isErrorCode(errorCode) || !texts.every((text) => typeof text === 'string'))
    return SERVER_ERROR;
  return { statusCode, message, description, errorCode, headers: headers && { ...headers } };
}
