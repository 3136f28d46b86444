/* The ping endpoint: replies for itself and, to a depth, for the connected services (SPEC 2.4, 4.2). */

import { elapsedSince, monotonicNow } from '../base/clock.js';
import { BadRequest } from '../base/errors.js';
import { createMeshPing, type PingOptions } from './mesh-ping.js';
import type { PingDocument } from './ping-document.js';

/**
 * Creates the handler of the endpoint. `?depth=N` is from 0 to `maxPingDepth`. Its reply never fails because of another
 * service.
 *
 * @returns a handler that throws a {@link BadRequest} for any other depth
 */
export function createPing(options: PingOptions): (ctx: { readonly query: URLSearchParams }) => Promise<PingDocument> {
  const pingMesh = createMeshPing(options);
  return async ({ query }) => {
    const startedAtMs = monotonicNow();
    const depth = parseDepth(query.getAll('depth'), options.maxPingDepth);
    if (depth === 0 || options.services.size === 0)
      return { response: 'pong', process_time: elapsedSince(startedAtMs) };
    const response = await pingMesh(depth - 1);
    return { response, process_time: elapsedSince(startedAtMs) };
  };
}

function parseDepth(given: readonly string[], max: number): number {
  const [text = '0', ...more] = given;
  const depth = /^(?:0|[1-9]\d*)$/.test(text) ? Number(text) : Infinity;
  if (more.length > 0 || depth > max) throw new BadRequest(`Invalid depth. Allowed: 0 to ${max}`);
  return depth;
}
