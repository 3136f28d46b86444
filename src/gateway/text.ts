/* Writes what the configurations of all gateways have in common: comments, and the bodies of refusals. */

import { refusal } from '../base/errors.js';
import { toErrorBody } from '../payload/error-body.js';
import type { Plan, PlannedService, PublicRoute } from './plan.js';

/** A status that a gateway answers with by itself, and the uniform body (SPEC 2.5) as JSON, without `'` and `` ` ``. */
export interface Refusal {
  readonly status: number;
  readonly body: string;
}

export const BAD_REQUEST: Refusal = createRefusal(400, 'The request is malformed.');
export const NOT_FOUND: Refusal = createRefusal(404, 'No public route matches this path.');
export const METHOD_NOT_ALLOWED: Refusal = createRefusal(405, 'The path has no public route for this method.');
/** The service does not answer; no text names an address. */
export const UNAVAILABLE: readonly Refusal[] = [
  createRefusal(502, 'The service did not answer as it should.'),
  createRefusal(503, 'The service can not be reached.'),
  createRefusal(504, 'The service did not answer in time.'),
];

/** Headers of a client that no service gets: only a gateway may say who the client is, and what a call may cost. */
export const REMOVED: readonly string[] = [
  'Forwarded',
  'Baggage',
  'X-Envoy-Expected-Rq-Timeout-Ms',
  'X-Envoy-Overloaded',
];

/** Formats the comment at the top of a configuration. */
export function formatHeader({ services }: Plan): string {
  const counts = services.map((service) => `${titleOf(service)}: ${service.routes.length} of ${service.total}`);
  return `# Public routes of ${counts.join(', ')}.
# Written by Postern; change the routes and write it anew. The service decides which requests it serves: the header
# X-Postern-Scope tells it that a request is from the public. The paths here only find the service.`;
}

/** `billing below /billing` */
export function titleOf({ name, prefix }: PlannedService): string {
  return prefix === '' ? name : `${name} below ${prefix}`;
}

/** Lists the methods of a route; a question mark says that only the service can tell whether it has the path. */
export function listMethods({ methods, certain }: Pick<PublicRoute, 'methods' | 'certain'>): string {
  return methods.map((method) => (certain ? method : `${method}?`)).join();
}

/** Indents lines, or blocks of lines, by two columns. */
export function indent(blocks: readonly string[]): string[] {
  return blocks.flatMap((block) => block.split('\n')).map((line) => (line === '' ? '' : `  ${line}`));
}

function createRefusal(status: number, description: string): Refusal {
  return { status, body: JSON.stringify(toErrorBody(refusal(status, description))) };
}
