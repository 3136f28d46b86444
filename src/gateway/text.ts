/* Writes the parts that all configurations share: comments, blocks, and the bodies of refusals. */

import { refusal } from '../base/errors.js';
import { MESH_HEADERS } from '../propagation/mesh-headers.js';
import { toErrorBody } from '../payload/error-body.js';
import type { Plan, PlannedService, PublicRoute } from './plan.js';

/** Reasons for replies of a gateway itself. No text names an address, or has a `'` or `` ` ``. */
const REASONS = {
  400: 'The request is malformed.',
  404: 'No public route matches this path.',
  405: 'The path has no public route for this method.',
  502: 'The service did not answer as it should.',
  503: 'The service can not be reached.',
  504: 'The service did not answer in time.',
} as const;

/** Formats the body of a reply of the gateway itself: the uniform body (SPEC 2.5) as JSON. */
export function formatRefusal(status: keyof typeof REASONS): string {
  return JSON.stringify(toErrorBody(refusal(status, REASONS[status])));
}

/** Headers that a gateway removes: a client must not state who it is or what a call may cost. */
export const REMOVED: readonly string[] = ['forwarded', ...MESH_HEADERS].map((name) =>
  name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()),
);

/** Formats the comment at the top of a configuration. */
export function formatHeader({ services }: Plan): string {
  const counts = services.map((one) => `${titleOf(one)}: ${one.routes.length} of ${one.router.routes.length}`);
  return `# Public routes of ${counts.join(', ')}.
# Written by Postern; change the routes and write it anew. The service decides which requests it serves: the header
# X-Postern-Scope marks a request as one from the public. The paths here only find the service.`;
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
