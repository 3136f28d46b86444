/* What gateways say themselves, in the uniform body (SPEC 2.5). */

import { refusal } from '../base/errors.js';
import { toErrorBody } from '../payload/error-body.js';

/** A status with its body as JSON, which has no quote but `"`. */
export interface Refusal {
  readonly status: number;
  readonly body: string;
}

/** Of a path or a method that is not public. */
export const NOT_FOUND: Refusal = createRefusal(404, 'No public route matches this path.');
export const METHOD_NOT_ALLOWED: Refusal = createRefusal(405, 'The path has no public route for this method.');

/** Of a request that the gateway itself can't read. */
export const BAD_REQUEST: Refusal = createRefusal(400, 'The request is malformed.');

/** Of a service that does not answer; nothing here names an address. */
export const UNAVAILABLE: readonly Refusal[] = [
  createRefusal(502, 'The service did not answer as it should.'),
  createRefusal(503, 'The service can not be reached.'),
  createRefusal(504, 'The service did not answer in time.'),
];

function createRefusal(status: number, description: string): Refusal {
  return { status, body: JSON.stringify(toErrorBody(refusal(status, description))) };
}
