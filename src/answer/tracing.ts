/*
 * Publishes each request that reaches a handler on the tracing channel `postern.request` of `node:diagnostics_channel`,
 * and passes each sampled one to the exporter of its application. Without either nothing is made.
 *
 * Spec: Node.js documentation, "TracingChannel".
 */

import { tracingChannel } from 'node:diagnostics_channel';
import type { ErrorCode } from '../base/error-codes.js';
import type { Context, RequestTrace, RequestTraceMessage } from './context.js';
import { beginRequestSpan, isSampled, RequestSpan } from '../propagation/trace-context.js';

const channel = tracingChannel<string, RequestTraceMessage>('postern.request');

/** Publishes `start` around the handler, so that stores bound to it hold for everything that the handler starts. */
export function runTraced<T>({ message }: RequestTrace, handler: (ctx: Context) => T): T {
  return channel.start.runStores(message, () => handler(message.ctx));
}

/** Publishes `end`, when the handler has returned and its promise is not settled. */
export function suspendTrace(trace: RequestTrace): void {
  trace.isAsync = true;
  channel.end.publish(trace.message);
}

/** Notes the code of an error reply, and publishes `error` if the service is at fault: a 404 is not a failure of it. */
export function failTrace({ message }: RequestTrace, error: unknown, errorCode: ErrorCode, status: number): void {
  message.errorCode = errorCode;
  if (status >= 500) channel.error.publish(Object.assign(message, { error }));
}

/** Publishes `end`, or `asyncStart` and `asyncEnd`. */
export function finishTrace({ message, isAsync }: RequestTrace, statusCode: number): void {
  message.statusCode = statusCode;
  if (isAsync) {
    channel.asyncStart.publish(message);
    channel.asyncEnd.publish(message);
  } else channel.end.publish(message);
  message.ctx.spanExport?.addRequest(message);
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
  const message = { ctx, method: ctx.method, trace: span, route: ctx.route };
  return (ctx.trace = { message, isAsync: false });
}
