/**
 * What a service is to its clients: something that takes a request and gives the answer to it, over HTTP or in memory.
 */

import type { IncomingHttpHeaders } from 'node:http';
import { isRepeatable, type RequestBody } from './request-body.js';
import { callError, type Callee } from './service-error.js';
import type { TryLimit } from './try-limit.js';

/** One request. */
export interface PeerRequest extends Callee {
  /** From the `/` on, query included; goes behind the path of the service's URL. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: RequestBody | undefined;
}

/** The head of an answer with a status from 200 to 599; its body is read once, by one of the methods. */
export interface PeerAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values by turns, as they came. */
  readonly rawHeaders: readonly string[];
  /**
   * The whole body.
   *
   * @throws {ServiceError} 502 beyond `maxBytes`, 503 when the connection fails
   * @throws the reason for which the try was ended
   */
  bytes(maxBytes: number): Promise<Buffer>;
  /** The body as it comes, which fails as {@link bytes} does; null where a status or method has none. */
  stream(): ReadableStream<Uint8Array> | null;
}

/** A connected service. */
export interface Peer {
  /**
   * Sends a request and waits for the head of the answer, whatever its status. The limit is released with the end of
   * the answer, or of the try.
   *
   * @throws {ServiceError} 503 when the connection fails, 502 for an answer that breaks HTTP
   * @throws the reason for which the try was ended
   */
  open(request: PeerRequest, limit: TryLimit): Promise<PeerAnswer>;
  /** Cuts every connection, in use or not. */
  close(): void;
}

/** Methods that may be sent twice without harm (RFC 9110, section 9.2.2; RFC 10008 for QUERY). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'QUERY']);

/** Statuses without a body (Fetch, "null body status"). */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** Whether a request can be sent twice: by its method, and by its body. */
export function isIdempotent({ method, body }: Pick<PeerRequest, 'method' | 'body'>): boolean {
  return IDEMPOTENT.has(method) && isRepeatable(body);
}

/** Whether there is a body to an answer. */
export function hasBody(method: string, status: number): boolean {
  return method !== 'HEAD' && !BODILESS.has(status);
}

/** An answer that is larger than wanted. */
export function tooLarge(callee: Callee, maxBytes: number): Error {
  return callError(callee, 502, `${callee.service} answered with more than ${maxBytes} bytes`);
}

/** An answer whose status is none. */
export function oddStatus(callee: Callee, status: number): Error {
  return callError(callee, 502, `${callee.service} answered with the status ${status}`);
}
