/* A request that the limiter of its route has admitted, until its handler ends. */

import { monotonicNow } from '../base/clock.js';
import type { Ending, RouteLimiter, Ticket } from '../overload/route-limiter.js';
import { Reply } from './reply.js';

/** One admitted request. */
export interface Admission {
  readonly limiter: RouteLimiter;
  /** When its caller stops waiting; Infinity for never. */
  readonly deadlineMs: number;
  /** Null until its body has arrived. */
  ticket: Ticket | null;
  /** Whether the handler may outlive the reply, and counts until it ends. */
  isHeld: boolean;
  isOver: boolean;
}

/** Ends a request whose reply is known, or whose handler outlived a 504 and has ended. @param result of the handler */
export function end(admission: Admission, result: unknown, nowMs: number): void {
  const { limiter, ticket, isHeld, isOver } = admission;
  if (isOver) return;
  admission.isOver = !isHeld;
  if (ticket === null) return;
  if (isHeld) limiter.abandon(ticket, nowMs, true);
  else limiter.end(ticket, nowMs, endingOf(result));
}

/** Ends a request although it may be held: its handler has ended, or has written the head of the reply itself. */
export function release(admission: Admission, result?: unknown): void {
  admission.isHeld = false;
  end(admission, result, monotonicNow());
}

/** Nobody can receive the reply any more. */
export function leave({ limiter, ticket, isOver }: Admission): void {
  if (!isOver && ticket !== null) limiter.abandon(ticket, monotonicNow());
}

/** An error with 4xx may be quick, and says nothing about the queue; an error with 5xx may have done no work at all. */
function endingOf(result: unknown): Ending {
  if (typeof result !== 'object' || result === null) return 'done';
  try {
    const status = result instanceof Reply ? result.status : result instanceof Error ? statusOf(result) : 200;
    return status < 400 ? 'done' : status < 500 ? 'failed' : 'cancelled';
  } catch {
    // Looking at the value throws, for example at a Proxy: the reply is the fixed 500.
    return 'cancelled';
  }
}

function statusOf(error: Error): number {
  return 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : 500;
}
