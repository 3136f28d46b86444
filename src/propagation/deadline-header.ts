/*
 * How long the caller of a request still waits for its reply, in ms: relative, because clocks differ.
 *
 * Source: Envoy documentation, "HTTP header manipulation", `x-envoy-expected-rq-timeout-ms`.
 */

import type { IncomingHttpHeaders } from 'node:http';

export const DEADLINE_HEADER = 'x-envoy-expected-rq-timeout-ms';

/** In ms; undefined without the header, and for a value that is no positive integer. */
export function readDeadlineHeader({ [DEADLINE_HEADER]: value }: IncomingHttpHeaders): number | undefined {
  return typeof value === 'string' && /^0*[1-9]\d*$/.test(value) ? Number(value) : undefined;
}
