/*
 * Publishes each request that reaches a handler on the tracing channel `postern.request` of `node:diagnostics_channel`,
 * and passes each sampled one to the exporter of its application. Without either nothing is made.
 *
 * Spec: Node.js documentation, "TracingChannel".
 */

import { tracingChannel } from 'node:diagnostics_channel';
import type { ErrorCode } from '../base/error-codes.js';
import type { MatchedRoute } from '../routing/router.js';
import type { Context } from './context.js';
import { beginRequestSpan, isSampled, RequestSpan, type TraceSpan } from '../propagation/trace-context.js';

/** Message to subscribers: one object for all events of a request. */
export interface RequestTraceMessage {
  /** The request. */
  readonly ctx: Context;
  /** The method, upper-case. */
  readonly method: string;
  /** Its span, in the caller's trace or a new one; the calls that it makes are below it. */
  readonly trace: TraceSpan;
  /** The matched route; null for a 404, a 405 and the like. */
  readonly route: MatchedRoute | null;
  /** The thrown value, from the event `error` on. */
  error?: unknown;
  /** The code in the error body, from the event `error` on. */
  errorCode?: ErrorCode;
  /** From the last event on: `end`, or `asyncEnd` where the handler returned a promise. */
  statusCode?: number;
}

const channel = tracingChannel<string, RequestTraceMessage>('postern.request');

/** The events of one request. */
class RequestTrace {
  readonly #message: RequestTraceMessage;
  #isAsync = false;

  constructor(ctx: Context, trace: TraceSpan) {
    this.#message = { ctx, method: ctx.method, trace, route: ctx.route };
  }

  /** `start`, around the handler, so that stores bound to it hold for everything that the handler starts. */
  run<T>(handler: (ctx: Context) => T): T {
    return channel.start.runStores(this.#message, () => handler(this.#message.ctx));
  }

  /** `end`, when the handler has returned and its promise is not settled. */
  suspend(): void {
    this.#isAsync = true;
    channel.end.publish(this.#message);
  }

  /** `error`. */
  fail(error: unknown, errorCode: ErrorCode): void {
    channel.error.publish(Object.assign(this.#message, { error, errorCode }));
  }

  /** `end`, or `asyncStart` and `asyncEnd`. */
  finish(statusCode: number): void {
    this.#message.statusCode = statusCode;
    if (this.#isAsync) {
      channel.asyncStart.publish(this.#message);
      channel.asyncEnd.publish(this.#message);
    } else channel.end.publish(this.#message);
    this.#message.ctx.spanExport?.addRequest(this.#message);
  }
}

/** Begins the span of a request. @returns null if nobody will hear of the request */
export function beginTrace(ctx: Context): RequestTrace | null {
  const { spanExport } = ctx;
  const hasSubscribers = channel.hasSubscribers;
  if (!hasSubscribers && spanExport === null) return null;
  const sample = spanExport?.sample;
  // A subscriber may copy the span, and a copy has no getters.
  const span = hasSubscribers ? beginRequestSpan(ctx.headers, sample) : new RequestSpan(ctx.headers, sample);
  ctx.span = span;
  if (hasSubscribers) ctx.exchange.keepContext();
  else if (!isSampled(span)) return null;
  return (ctx.trace = new RequestTrace(ctx, span));
}
