/*
 * Publishes each try of a call on the tracing channel `postern.call` of `node:diagnostics_channel`.
 *
 * Spec: Node.js documentation, "TracingChannel". Without subscribers nothing is made.
 */

import { tracingChannel } from 'node:diagnostics_channel';
import type { TraceSpan } from '../propagation/trace-context.js';

/** What subscribers get, one object for all events of a try. */
export interface CallTraceMessage {
  readonly service: string;
  readonly method: string;
  /** Percent-encoded, without the query. */
  readonly path: string;
  /** From 1 on. */
  readonly attempt: number;
  /** What will be sent; at `start` a subscriber may set more, names in lower case. */
  readonly headers: Record<string, string>;
  /** Undefined outside of a request, and while nobody records the spans of requests. */
  readonly trace: TraceSpan | undefined;
  /** Of the answer, from `asyncEnd` on. */
  statusCode?: number;
  /** Why there was no answer, from `error` on. */
  error?: unknown;
}

const channel = tracingChannel<CallTraceMessage, CallTraceMessage>('postern.call');

/** Whether anyone listens. @internal */
export function areCallsTraced(): boolean {
  return channel.hasSubscribers;
}

/** `start`, around the sending of the request; `end` behind it. @internal */
export function traceCall<T>(message: CallTraceMessage, send: () => T): T {
  return channel.start.runStores(message, () => {
    try {
      return send();
    } finally {
      channel.end.publish(message);
    }
  });
}

/** `asyncStart` and `asyncEnd`, with the answer's status. @internal */
export function traceAnswer(message: CallTraceMessage, statusCode: number): void {
  message.statusCode = statusCode;
  channel.asyncStart.publish(message);
  channel.asyncEnd.publish(message);
}

/** `error`, `asyncStart` and `asyncEnd`, where there is no answer. @internal */
export function traceFailure(message: CallTraceMessage, error: unknown): void {
  message.error = error;
  channel.error.publish(message);
  channel.asyncStart.publish(message);
  channel.asyncEnd.publish(message);
}
