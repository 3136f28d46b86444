/*
 * What a service is to its clients: something that takes a request and gives the answer to it, over HTTP or in memory.
 */

import type { PeerAnswer } from './peer-answer.js';
import { isRepeatable, type RequestBody } from './request-body.js';
import type { Callee } from './service-error.js';
import type { TryLimit } from './try-limit.js';

/** One request. */
export interface PeerRequest extends Callee {
  /** From the `/` on, query included; goes behind the path of the service's URL. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: RequestBody | undefined;
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

/** Whether a request can be sent twice: by its method, and by its body. @internal */
export function isIdempotent({ method, body }: Pick<PeerRequest, 'method' | 'body'>): boolean {
  return IDEMPOTENT.has(method) && isRepeatable(body);
}
