/**
 * One try of a call: what goes out with it, what ends it, and who is told of it.
 */

import { areCallsTraced, traceAnswer, traceCall, traceFailure, type CallTraceMessage } from './call-tracing.js';
import { DEADLINE_HEADER } from './deadline-header.js';
import type { PeerAnswer } from './peer-answer.js';
import type { RequestBody } from './request-body.js';
import { callError, type Callee } from './service-error.js';
import type { Caller, Service } from './service.js';
import { beginCallSpan, passedHeaders, spanHeaders, type TraceSpan } from './trace-context.js';
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
export class Try {
  readonly limit: TryLimit;
  readonly #service: Service;
  readonly #request: TryRequest;
  readonly #headers: Record<string, string>;
  readonly #message: CallTraceMessage | undefined;
  readonly #startedMs = performance.now();

  /**
   * @param attempt its number, from 1
   * @param leftMs of the time of the request on whose behalf it is made; Infinity without a deadline
   */
  constructor(service: Service, caller: Caller | undefined, request: TryRequest, attempt: number, leftMs: number) {
    const { callee, signals } = request;
    const timeoutMs = Math.min(request.timeoutMs, leftMs);
    const span = caller?.span === undefined ? undefined : beginCallSpan(caller.span.span);
    const passed = caller === undefined ? undefined : passedOn(caller, span);
    this.#headers = { ...passed, ...request.headers };
    if (leftMs !== Infinity) this.#headers[DEADLINE_HEADER] ??= String(Math.floor(timeoutMs));
    this.#service = service;
    this.#request = request;
    this.#message = areCallsTraced() ? { ...named(callee), attempt, headers: this.#headers, trace: span } : undefined;
    service.active += 1;
    const toTimeout = (): Error =>
      callError(callee, 504, `${callee.service} did not answer within ${Math.round(timeoutMs)} ms`);
    this.limit = new TryLimit(timeoutMs, toTimeout, signals, () => (service.active -= 1));
  }

  /** @throws as a `Peer` does */
  open(): Promise<PeerAnswer> {
    const { callee, target, body } = this.#request;
    const open = (): Promise<PeerAnswer> =>
      this.#service.peer.open({ ...callee, target, headers: this.#headers, body }, this.limit);
    return this.#message === undefined ? open() : traceCall(this.#message, open);
  }

  /** There was an answer, and it was read as far as it is wanted now. */
  succeed(statusCode: number): void {
    this.#observe(statusCode);
    if (this.#message !== undefined) traceAnswer(this.#message, statusCode);
  }

  /** There was none, or not the whole of it. */
  fail(error: unknown): void {
    this.limit.release();
    this.#observe(0);
    if (this.#message !== undefined) traceFailure(this.#message, error);
  }

  #observe(statusCode: number): void {
    const { service, method } = this.#request.callee;
    this.#service.limits.observe(service, method, statusCode, (performance.now() - this.#startedMs) / 1000);
  }
}

/** What goes on of the request on whose behalf a call is made. */
function passedOn({ id, headers, span: own }: Caller, span: TraceSpan | undefined): Record<string, string> {
  const trace =
    span === undefined ? passedHeaders(headers, ['traceparent', 'tracestate']) : spanHeaders(span, own?.tracestate);
  // Baggage belongs to the application, and is nobody's to change on the way.
  return { 'x-request-id': id, ...trace, ...passedHeaders(headers, ['baggage']) };
}

function named({ service, method, path }: Callee): Callee {
  return { service, method, path };
}
