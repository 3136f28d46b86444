/*
 * Publishes each request that reaches a handler on the tracing channel `postern.request` of `node:diagnostics_channel`.
 *
 * Spec: Node.js documentation, "TracingChannel". Without subscribers nothing is made.
 */

import { tracingChannel } from 'node:diagnostics_channel';
import type { ErrorCode } from '../base/error-codes.js';
import type { MatchedRoute } from '../routing/router.js';
import { Context } from './context.js';
import { beginRequestSpan, type TraceSpan } from '../propagation/trace-context.js';

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
/** `start` and the last event of each request, for exporters: each exports the spans of one application of the process. */
const exported = tracingChannel<string, RequestTraceMessage>('postern.export');

/** The events of one request. */
class RequestTrace {
  readonly #message: RequestTraceMessage;
  #isAsync = false;

  constructor(ctx: Context) {
    const trace = beginRequestSpan(ctx.headers);
    // The exporter of another application records nothing of this one, whose calls must not name a span of it.
    if (channel.hasSubscribers || Context.optionsOf(ctx).exportsTraces) ctx.span = trace;
    this.#message = { ctx, method: ctx.method, trace, route: ctx.route };
  }

  /** `start`, around the handler, so that stores bound to it hold for everything that the handler starts. */
  run<T>(handler: (ctx: Context) => T): T {
    exported.start.publish(this.#message);
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
    exported.end.publish(this.#message);
  }
}

/** Begins to publish a request. */
export function beginTrace(ctx: Context): RequestTrace {
  ctx.exchange.keepContext();
  return (ctx.trace = new RequestTrace(ctx));
}

/** Whether anyone listens. */
export function isTraced(): boolean {
  return channel.hasSubscribers || exported.hasSubscribers;
}
