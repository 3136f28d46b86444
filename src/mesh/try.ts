/*
 * One try of a call: what goes out with it, what ends it, and who is told of it.
 */

import { monotonicNow } from '../base/clock.js';
import { areCallsTraced, traceAnswer, traceCall, traceFailure, type CallTraceMessage } from './call-tracing.js';
import { DEADLINE_HEADER } from '../propagation/deadline-header.js';
import type { PeerAnswer } from './peer-answer.js';
import type { RequestBody } from './request-body.js';
import { callError, type Callee } from './service-error.js';
import type { Caller, Service } from './service.js';
import { beginCallSpan, passedHeaders, spanHeaders, type TraceSpan } from '../propagation/trace-context.js';
import { TryLimit } from './try-limit.js';

/** What is sent. */
export interface TryRequest {
  readonly callee: Callee;
  /** From the `/` on, query included. */
  readonly target: string;
  readonly body: RequestBody | undefined;
  /** The caller's own and those that frame the body. */
  readonly headers: Readonly<Record<string, string>>;
  /** Each ends the try with its own reason. */
  readonly signals: readonly AbortSignal[];
  readonly timeoutMs: number;
}

/** A try, under way from the moment it is made. */
export interface Try {
  readonly limit: TryLimit;
  /** @throws as a `Peer` does */
  open(): Promise<PeerAnswer>;
  /** There was an answer, and it was read as far as it is wanted now. */
  succeed(statusCode: number): void;
  /** There was no answer, or not the whole of it. */
  fail(error: unknown): void;
}

/**
 * @param attempt its number, from 1
 * @param leftMs of the time of the request on whose behalf it is made; Infinity without a deadline
 */
export function beginTry(
  service: Service,
  caller: Caller | undefined,
  { callee, target, body, signals, ...given }: TryRequest,
  attempt: number,
  leftMs: number,
): Try {
  const startedMs = monotonicNow();
  const timeoutMs = Math.min(given.timeoutMs, leftMs);
  const trace = caller?.span === undefined ? undefined : beginCallSpan(caller.span.span);
  const passed = caller === undefined ? undefined : passedOn(caller, trace);
  const headers: Record<string, string> = { ...passed, ...given.headers };
  if (leftMs !== Infinity) headers[DEADLINE_HEADER] ??= String(Math.floor(timeoutMs));
  const { service: name, method, path } = callee;
  const message: CallTraceMessage | undefined = areCallsTraced()
    ? { service: name, method, path, attempt, headers, trace }
    : undefined;
  const toTimeout = (): Error => callError(callee, 504, `${name} did not answer within ${Math.round(timeoutMs)} ms`);
  const limit = new TryLimit(timeoutMs, toTimeout, signals, () => (service.active -= 1));
  service.active += 1;
  const open = (): Promise<PeerAnswer> => service.peer.open({ ...callee, target, headers, body }, limit);
  const observe = (statusCode: number): void =>
    service.limits.observe(name, method, statusCode, (monotonicNow() - startedMs) / 1000);
  return {
    limit,
    open: () => (message === undefined ? open() : traceCall(message, open)),
    succeed: (statusCode) => {
      observe(statusCode);
      if (message !== undefined) traceAnswer(message, statusCode);
    },
    fail: (error) => {
      limit.release();
      observe(0);
      if (message !== undefined) traceFailure(message, error);
    },
  };
}

/** What goes on of the request on whose behalf a call is made. */
function passedOn({ id, headers, span: own }: Caller, span: TraceSpan | undefined): Record<string, string> {
  const trace =
    span === undefined ? passedHeaders(headers, ['traceparent', 'tracestate']) : spanHeaders(span, own?.tracestate);
  // Baggage belongs to the application, and is nobody's to change on the way.
  return { 'x-request-id': id, ...trace, ...passedHeaders(headers, ['baggage']) };
}
