/*
 * Publishes each attempt of a call on the tracing channel `postern.call` of `node:diagnostics_channel`.
 *
 * Spec: Node.js documentation, "TracingChannel". Without subscribers no message is made.
 */

import { tracingChannel } from 'node:diagnostics_channel';
import type { ErrorCode } from '../base/error-codes.js';
import type { TraceSpan } from '../propagation/trace-context.js';

/** The message of `postern.call`, one object for all events of an attempt. */
export interface CallTraceMessage {
  /** The name of the called service, as configured. */
  readonly service: string;
  /** The method, upper-case. */
  readonly method: string;
  /** Percent-encoded, without the query. */
  readonly path: string;
  /** From 1. */
  readonly attempt: number;
  /** The service's URL with the path, without credentials and query. */
  readonly url: string;
  /** The path pattern of a typed call. */
  readonly route: string | undefined;
  /** Headers that will be sent, names in lower case. At `start` a subscriber may set more. */
  readonly headers: Record<string, string>;
  /** Undefined outside a request, and while its span is not exported and nobody subscribes to `postern.request`. */
  readonly trace: TraceSpan | undefined;
  /** Status of the answer, from `asyncEnd` on. */
  statusCode?: number;
  /** Code in the body of an answer from 400 on, from `asyncEnd` on; `fetch` does not read it. */
  errorCode?: ErrorCode;
  /** Why there was no answer, or only a part of it, from `error` on. */
  error?: unknown;
}

/** Exports the spans of calls. */
export interface CallExport {
  /** Gets each attempt when it has ended. @param startedAtMs on the clock of `performance.now()` */
  addCall(message: CallTraceMessage, startedAtMs: number): void;
}

const channel = tracingChannel<CallTraceMessage, CallTraceMessage>('postern.call');

/** Whether anyone subscribes. */
export function areCallsTraced(): boolean {
  return channel.hasSubscribers;
}

/** Publishes `start` around the sending of the request, and `end` after it; only sends it without a message. */
export function traceCall<T>(message: CallTraceMessage | undefined, send: () => Promise<T>): Promise<T> {
  if (message === undefined) return send();
  return channel.start.runStores(message, () => {
    const sent = send();
    channel.end.publish(message);
    return sent;
  });
}

/** Publishes `asyncStart` and `asyncEnd` of an attempt, after `error` if it failed. */
export function endTrace(message: CallTraceMessage, failure?: { reason: unknown }): void {
  if (failure !== undefined) channel.error.publish(Object.assign(message, { error: failure.reason }));
  channel.asyncStart.publish(message);
  channel.asyncEnd.publish(message);
}
