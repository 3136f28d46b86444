/* Tells the cause of a failing or slow request: the header with its calls, the line of the log, the story. */

import { Date } from '../base/clock.js';
import { CALLS_HEADER, DEADLINE_HEADER } from '../propagation/mesh-headers.js';
import { logSafely } from '../base/log.js';
import type { RecentRequest, Story } from '../story/story.js';
import type { Exchange } from '../wire/exchange.js';
import { hasStream, type Outgoing } from '../wire/outgoing.js';
import { Context, PATIENCE_MS } from './context.js';
import type { Observer } from './observers.js';

/** Adds the calls of a request to its reply, if it failed or was slow and another service has sent it. */
export function tellCalls(ctx: Context, outgoing: Outgoing): Outgoing {
  const { status, headers } = outgoing;
  const told = ctx.toldCalls(status, hasStream(outgoing));
  if (told === null) return outgoing;
  // A handler may have set one.
  const others = headers.filter((_, i) => String(headers[i - (i % 2)]).toLowerCase() !== CALLS_HEADER);
  return { ...outgoing, headers: [...others, CALLS_HEADER, told] };
}

/** A request, as far as it is known before its end. */
export type RequestSummary = Pick<RecentRequest, 'id' | 'method' | 'route' | 'caller' | 'calls'>;

/** Describes a request. The calls are a copy: more may follow. */
export function summarize({ exchange, method, label, caller, calls }: Context): RequestSummary {
  return { id: exchange.id, method, route: label || null, caller: caller?.name ?? null, calls: [...(calls ?? [])] };
}

/** Follows the requests that failed or were slow. */
export class StoryObserver implements Observer {
  constructor(readonly story: Story) {}

  settled(exchange: Exchange<Context>, status: number, ms: number): void {
    const { req, handling } = exchange;
    // Any other request costs these comparisons.
    if (status < 500 && ms * 2 <= PATIENCE_MS && req.headers[DEADLINE_HEADER] === undefined) return;
    if (handling === null) return;
    const { patienceMs: patience_ms } = handling;
    if (status < 500 && (ms * 2 <= patience_ms || isStreamed(exchange, status))) return;
    if (Context.isMonitoring(handling)) return;
    const error_code = status < 500 ? null : handling.errorCode;
    const at = new Date().toISOString();
    // On Node.js 20, members after a spread take some 10 µs, and a service may refuse thousands of requests a second.
    const { id, method, route, caller, calls } = summarize(handling);
    const request = { id, method, route, caller, calls, status, error_code, ms: Math.round(ms), at };
    this.story.add(request);
    this.#log(handling, request, patience_ms);
  }

  /** A request that threw has its line already. */
  #log(ctx: Context, { id: request_id, method, route, status, ms, calls }: RecentRequest, patience_ms: number): void {
    if (status < 500 ? !this.story.mayLogSlow() : ctx.errorCode !== null || !this.story.mayLogFailure()) return;
    const entry = { status_code: status, request_id, method, route, ms };
    const told = calls.length === 0 ? {} : { calls };
    const logger = Context.loggerOf(ctx);
    if (status < 500) logSafely(logger, 'warn', { ...entry, patience_ms, ...told }, 'request slow');
    else logSafely(logger, 'error', { ...entry, ...told }, 'request failed');
  }
}

/** Whether a reply, or the part of it that was sent until its client left, is a stream, which may take any time. */
function isStreamed({ outgoing, req, res, raw }: Exchange, status: number): boolean {
  if (outgoing !== null) return hasStream(outgoing);
  if (status === 499) return res.headersSent;
  return res.chunkedEncoding || raw === 'piped' || (req.httpVersionMinor === 0 && !res.hasHeader('content-length'));
}
