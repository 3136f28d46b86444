/* Tells the cause of a failing or slow request: the header with its calls, the line of the log, the story. */

import type { IncomingMessage } from 'node:http';
import { Date, monotonicNow } from '../base/clock.js';
import { DEADLINE_HEADER, readDeadlineHeader } from '../propagation/mesh-headers.js';
import { logSafely } from '../base/log.js';
import { CALLS_HEADER, formatCalls } from '../story/calls.js';
import type { Story } from '../story/story.js';
import type { Exchange } from '../wire/exchange.js';
import { hasStream, type Outgoing } from '../wire/outgoing.js';
import { Context } from './context.js';
import type { Observer } from './observers.js';

/** How long, in ms, a caller without a deadline is taken to wait. A request is slow after half of it. */
const PATIENCE_MS = 2000;

/** Adds the calls of a request to its reply, if it failed or was slow and another service has sent it. */
export function tellCalls(ctx: Context, outgoing: Outgoing): Outgoing {
  const { calls, exchange } = ctx;
  if (calls === null || ctx.caller === undefined) return outgoing;
  const { status, headers } = outgoing;
  const isSlow = !hasStream(outgoing) && monotonicNow() - exchange.startedAtMs > patienceOf(exchange.req) / 2;
  if (status < 500 && !isSlow) return outgoing;
  return { ...outgoing, headers: [...headers, CALLS_HEADER, formatCalls(calls)] };
}

/** Follows the requests that failed or were slow. */
export class StoryObserver implements Observer {
  constructor(readonly story: Story) {}

  settled(exchange: Exchange<Context>, status: number, ms: number): void {
    const { req, handling } = exchange;
    // Any other request costs these comparisons.
    if (status < 500 && ms * 2 <= PATIENCE_MS && req.headers[DEADLINE_HEADER] === undefined) return;
    const patienceMs = patienceOf(req);
    if (handling === null || (status < 500 && (ms * 2 <= patienceMs || isStreamed(exchange, status)))) return;
    if (Context.isMonitoring(handling)) return;
    const { method, label, caller, errorCode, calls } = handling;
    this.story.add({
      id: exchange.id,
      method,
      route: label || null,
      caller: caller?.name ?? null,
      status,
      error_code: status < 500 ? null : errorCode,
      ms: Math.round(ms),
      at: new Date().toISOString(),
      calls: calls ?? [],
    });
    this.#log(exchange, handling, status, Math.round(ms), patienceMs);
  }

  refused(): void {
    // Nothing that is not a request has a story.
  }

  /** A request that threw has its line already. A 5xx that a handler returned gets one if calls explain it. */
  #log({ id }: Exchange<Context>, ctx: Context, status: number, ms: number, patience_ms: number): void {
    const { method, label, calls, errorCode } = ctx;
    const request = { status_code: status, request_id: id, method, route: label || null, ms };
    const logger = Context.loggerOf(ctx);
    if (status < 500 && this.story.slow.take())
      logSafely(logger, 'warn', { ...request, patience_ms, ...(calls === null ? {} : { calls }) }, 'request slow');
    if (status >= 500 && errorCode === null && calls !== null && this.story.failures.take())
      logSafely(logger, 'error', { ...request, calls }, 'request failed');
  }
}

function patienceOf({ headers }: IncomingMessage): number {
  return readDeadlineHeader(headers) ?? PATIENCE_MS;
}

/** Whether a reply, or the part of it that was sent until its client left, is a stream, which may take any time. */
function isStreamed({ outgoing, res }: Exchange, status: number): boolean {
  if (outgoing !== null) return hasStream(outgoing);
  return status === 499 ? res.headersSent : res.chunkedEncoding;
}
