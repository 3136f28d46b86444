/* Writes the parts that all configurations share: comments, blocks, and the bodies of refusals. */

import { refusal } from '../base/errors.js';
import { toErrorBody } from '../payload/error-body.js';
import type { Plan, PlannedService, PublicRoute } from './plan.js';

/** Reply of the gateway itself: a status and the uniform body (SPEC 2.5) as JSON, without `'` and `` ` ``. */
export interface Refusal {
  readonly status: number;
  readonly body: string;
}

export const BAD_REQUEST: Refusal = createRefusal(400, 'The request is malformed.');
export const NOT_FOUND: Refusal = createRefusal(404, 'No public route matches this path.');
export const METHOD_NOT_ALLOWED: Refusal = createRefusal(405, 'The path has no public route for this method.');
/** Refusals while the service does not answer. No text names an address. */
export const UNAVAILABLE: readonly Refusal[] = [
  createRefusal(502, 'The service did not answer as it should.'),
  createRefusal(503, 'The service can not be reached.'),
  createRefusal(504, 'The service did not answer in time.'),
];

/** Headers that a gateway removes: a client must not state who it is or what a call may cost. */
export const REMOVED = ['Forwarded', 'Baggage', 'X-Envoy-Expected-Rq-Timeout-Ms', 'X-Envoy-Overloaded'] as const;

/** Formats the comment at the top of a configuration. */
export function formatHeader({ services }: Plan): string {
  const counts = services.map((service) => `${titleOf(service)}: ${service.routes.length} of ${service.total}`);
  return `# Public routes of ${counts.join(', ')}.
# Written by Postern; change the routes and write it anew. The service decides which requests it serves: the header
# X-Postern-Scope tells it that a request is from the public. The paths here only find the service.`;
}

/** Names a service for a comment: `billing below /billing`. */
export function titleOf({ name, prefix }: PlannedService): string {
  return prefix === '' ? name : `${name} below ${prefix}`;
}

/** Lists the methods of a route. `GET?`: only the service knows whether the route has the path. */
export function listMethods({ methods, certain }: Pick<PublicRoute, 'methods' | 'certain'>): string {
  return methods.map((method) => (certain ? method : `${method}?`)).join();
}

/** Formats a block with indented lines: `server {` … `}`. */
export function formatBlock(head: string, blocks: readonly string[]): string[] {
  return [`${head} {`, ...indent(blocks), '}'];
}

/** Indents lines, or blocks of lines, by two columns. */
export function indent(blocks: readonly string[]): string[] {
  return blocks.flatMap((block) => block.split('\n')).map((line) => (line === '' ? '' : `  ${line}`));
}

function createRefusal(status: number, description: string): Refusal {
  return { status, body: JSON.stringify(toErrorBody(refusal(status, description))) };
}
