/* Headers of the mesh: the id of a request, how long its caller waits, and which of them only services inside may send. */

import type { IncomingHttpHeaders } from 'node:http';
import { randomUuid } from '../base/clock.js';
import { TRACE_HEADERS } from './trace-context.js';

/** How long the caller waits, in ms. */
export const DEADLINE_HEADER = 'x-envoy-expected-rq-timeout-ms';

/**
 * Tells callers further up that repeating is useless: this hop has repeated already, or the service has too much to do.
 * Without it, if A calls B and B calls C with three attempts each, C gets nine requests. Envoy honours it, too.
 */
export const NO_RETRY_HEADER = 'x-envoy-overloaded';

/** The calls of a failing or slow request, as JSON, on its reply to another service. */
export const CALLS_HEADER = 'x-postern-calls';

/** Headers of replies that the public never gets. */
export const HIDDEN_HEADERS = [NO_RETRY_HEADER, CALLS_HEADER] as const;

/** Headers that only services inside may send. Gateways remove them, and the scope of the public ignores them. */
export const MESH_HEADERS = [DEADLINE_HEADER, NO_RETRY_HEADER, 'baggage'] as const;

/** Pattern of a request id that is fit to be logged and passed on; gateways keep an id that fits, too. */
export const REQUEST_ID = '[A-Za-z0-9._-]{1,128}';
const ONLY_REQUEST_ID = new RegExp(`^${REQUEST_ID}$`);

/** The request's own `x-request-id` if it is a {@link REQUEST_ID}, else a new one. */
export function requestId({ headers }: { readonly headers: IncomingHttpHeaders }): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && ONLY_REQUEST_ID.test(given) ? given : randomUuid();
}

/** Headers of a request that the calls made for it pass on. */
export const PASSED_ON: readonly string[] = ['x-request-id', ...TRACE_HEADERS];

/** The deadline in ms; undefined without the header, and if its value is not a positive integer. */
export function readDeadlineHeader({ [DEADLINE_HEADER]: value }: IncomingHttpHeaders): number | undefined {
  return typeof value === 'string' && /^0*[1-9]\d*$/.test(value) ? Number(value) : undefined;
}
