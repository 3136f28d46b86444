/*
 * One service that an application is connected to: what its calls are held to, and what all of them share.
 */

import type { IncomingHttpHeaders } from 'node:http';
import type { Peer } from './peer.js';
import type { RetryBudget } from './retry.js';
import type { RequestSpan } from '../propagation/trace-context.js';

/** The request on whose behalf another service is called. */
export interface Caller {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  /** Undefined while nobody records its span. */
  readonly span: RequestSpan | undefined;
  /** Aborts when its client leaves. */
  readonly signal: AbortSignal;
  /** When its time is up, on the clock of `performance.now()`; undefined for never. */
  readonly deadlineMs: number | undefined;
}

/** What the calls of one service are held to, and who is told of them. */
export interface ServiceLimits {
  /** Most bytes of an answer that is read whole. */
  readonly maxBytes: number;
  /** Most requests under way. */
  readonly maxServiceRequests: number;
  /** Gets each try: the status of its answer, 0 without one, and its time. */
  readonly observe: (service: string, method: string, statusCode: number, seconds: number) => void;
}

/** One service, and what all calls of it share. */
export interface Service {
  readonly name: string;
  readonly peer: Peer;
  readonly limits: ServiceLimits;
  readonly budget: RetryBudget;
  /** Tries under way. */
  active: number;
}
