/*
 * Runs a call: its attempts, and the pauses between them, in the time that is left.
 */

import { builtin } from '../base/builtin.js';
import { monotonicNow } from '../base/clock.js';
import type { CallingRequest, ServiceFetchOptions } from '../client/service-client.js';
import { callError, isUnavailable, NO_RETRY_HEADER, ServiceError } from '../client/service-error.js';
import { DEADLINE_HEADER } from '../base/deadline.js';
import { beginCallSpan, passedHeaders, spanHeaders } from '../propagation/trace-context.js';
import { retryAfterOf, toServiceError, type Answer } from './answer.js';
import { areCallsTraced, endTrace, traceCall, type CallTraceMessage } from './call-tracing.js';
import { Limit, pause } from './limit.js';
import { formatHeaders, formatTarget, isRepeatable, toRequestBody } from './request.js';
import type { ServiceRequest, Transport } from './request.js';
import { pauseBefore, type RetryBudget } from './retry.js';

/** A service with what all of its calls share. */
export interface ConnectedService {
  readonly name: string;
  readonly transport: Transport;
  readonly budget: RetryBudget;
  readonly userAgent: string | undefined;
  readonly maxServiceRequests: number;
  readonly observe: (service: string, method: string, statusCode: number, seconds: number) => void;
  /** Attempts in flight. */
  active: number;
}

/** A call, ready to be sent. */
export interface Call extends ServiceRequest {
  /** The path pattern of a typed call. */
  readonly route: string | undefined;
  /** Each ends the call with its own reason. */
  readonly signals: readonly AbortSignal[];
  /** Time limit of one attempt. */
  readonly timeoutMs: number;
  /** When the call must end, on the clock of `performance.now()`. */
  readonly deadlineMs: number;
  /** Maximum attempts. */
  readonly attempts: number;
}

const TIMEOUT_MS = 5000;
/** How much of an unwanted answer is read, so that its connection can be used again. */
const MAX_DISCARDED_BYTES = 65_536;
/** nginx's status for a client that disconnected; never sent, only counted. */
const CLIENT_CLOSED_REQUEST = 499;

/** @throws {TypeError} for a path, header or body that cannot be sent */
export function createCall(
  { name, userAgent }: ConnectedService,
  method: string,
  path: string,
  route: string | undefined,
  { timeout = TIMEOUT_MS, retry = 0, signal, ...options }: ServiceFetchOptions,
  by: CallingRequest | undefined,
): Call {
  const body = toRequestBody(options.json, options.body);
  const target = formatTarget(path, options.query);
  const headers = formatHeaders(options.headers, method, body);
  if (userAgent !== undefined) headers['user-agent'] ??= userAgent;
  const isRepeated = retry > 0 && isRepeatable({ method, body });
  const signals = signal == null ? [] : [signal];
  if (signal !== null && by !== undefined && by.signal !== signal) signals.push(by.signal);
  return {
    ...{ service: name, method, path: target.replace(/\?.*/s, ''), route, target, headers, body, signals, isRepeated },
    timeoutMs: timeout,
    deadlineMs: signal === null ? Infinity : (by?.deadlineMs ?? Infinity),
    attempts: isRepeated ? retry + 1 : 1,
  };
}

/**
 * @param by the request that makes the call; undefined outside a request
 * @param read reads what it needs of the last answer, whatever its status. If it throws, the attempt has failed; if it
 * returns a `ServiceError`, that is what the service answered.
 * @throws {ServiceError} what `read` returned, or 502 to 504 without an answer
 * @throws the reason of the first signal that aborts
 */
export async function runCall<T>(
  service: ConnectedService,
  by: CallingRequest | undefined,
  call: Call,
  read: (answer: Answer, limit: Limit) => Promise<T | ServiceError>,
): Promise<T> {
  service.budget.addCall();
  for (let number = 1; ; number += 1) {
    assertPossible(service, call);
    const attempt = beginAttempt(service, by, call, number);
    let pauseMs: number | undefined;
    let value: T | ServiceError | undefined;
    try {
      const answer = await attempt.open();
      const { status, headers } = answer;
      if (isUnavailable(status) && headers[NO_RETRY_HEADER] === undefined)
        pauseMs = pauseOf(service, call, number, retryAfterOf(headers));
      if (pauseMs === undefined) value = await read(answer, attempt.limit);
      else value = await answer.whole(MAX_DISCARDED_BYTES).then((whole) => toServiceError(call, whole), ignore);
      attempt.succeed(status, value instanceof ServiceError ? value : undefined);
    } catch (error) {
      attempt.fail(error);
      if (error instanceof ServiceError && isUnavailable(error.statusCode))
        pauseMs = pauseOf(service, call, number, undefined);
      if (pauseMs === undefined) throw error;
    }
    if (pauseMs !== undefined) await pause(pauseMs, call.signals);
    else if (value instanceof ServiceError) throw value;
    else return value as T;
  }
}

function ignore(): undefined {
  return undefined;
}

/** @throws why no request can be sent: an aborted signal, no time left, or too many requests in flight */
function assertPossible({ name, active, maxServiceRequests }: ConnectedService, call: Call): void {
  for (const signal of call.signals) signal.throwIfAborted();
  if (timeLeft(call) < 1) throw callError(call, 504, `the time was up before ${name} was called`);
  if (active < maxServiceRequests) return;
  const headers = { [NO_RETRY_HEADER]: 'true' };
  throw callError(call, 503, `${name} has ${active} requests in flight, the maximum`, { headers });
}

function timeLeft({ deadlineMs }: Call): number {
  return deadlineMs - monotonicNow();
}

/** How long to wait before the next attempt, in ms; undefined if there is none, or not in time. */
function pauseOf(
  { budget }: ConnectedService,
  call: Call,
  number: number,
  retryAfter: string | undefined,
): number | undefined {
  if (number >= call.attempts) return undefined;
  const pauseMs = pauseBefore(number, retryAfter);
  return pauseMs <= call.timeoutMs && pauseMs < timeLeft(call) && budget.take() ? pauseMs : undefined;
}

/** An attempt, in flight from the moment it is made. */
interface Attempt {
  readonly limit: Limit;
  /** @throws as `Transport.open` does */
  open(): Promise<Answer>;
  /** The answer was read as far as it is needed. @param error of an answer from 400 on */
  succeed(statusCode: number, error: ServiceError | undefined): void;
  /** There was no answer, or only a part of it. */
  fail(error: unknown): void;
}

/** @param number from 1 */
function beginAttempt(
  service: ConnectedService,
  by: CallingRequest | undefined,
  call: Call,
  number: number,
): Attempt {
  const { name, transport } = service;
  const { method, path, route } = call;
  const startedMs = monotonicNow();
  const timeoutMs = Math.min(call.timeoutMs, timeLeft(call));
  const isTraced = areCallsTraced();
  const trace = isTraced && by?.span !== undefined ? beginCallSpan(by.span.span) : undefined;
  const headers = { ...(by === undefined ? undefined : passedOn(by, trace)), ...call.headers };
  headers[DEADLINE_HEADER] ??= String(Math.max(1, Math.floor(timeoutMs)));
  const message: CallTraceMessage | undefined = isTraced
    ? { service: name, method, path, attempt: number, url: transport.url + path, route, headers, trace }
    : undefined;
  const toTimeout = (): Error => callError(call, 504, `${name} did not answer within ${Math.round(timeoutMs)} ms`);
  let onOver: ((failure?: { reason: unknown }) => void) | undefined;
  const limit = new Limit(timeoutMs, toTimeout, call.signals, (failure) => {
    service.active -= 1;
    onOver?.(failure);
  });
  service.active += 1;
  const open = (): Promise<Answer> => transport.open({ ...call, headers }, limit);
  const observe = (statusCode: number): void =>
    service.observe(name, method, statusCode, (monotonicNow() - startedMs) / 1000);
  return {
    limit,
    open: () => (message === undefined ? open() : traceCall(message, open)),
    succeed: (statusCode, error) => {
      observe(statusCode);
      if (message === undefined) return;
      const trace = (failure?: { reason: unknown }): void => {
        if (failure !== undefined) message.error = failure.reason;
        message.statusCode = statusCode;
        if (error !== undefined) message.errorCode = error.errorCode;
        endTrace(message);
      };
      // A streamed answer ends with its last byte, in an event of the socket: outside the caller's async context.
      if (limit.isOver) trace();
      else onOver = builtin('node:async_hooks').AsyncResource.bind(trace);
    },
    fail: (error) => {
      limit.release();
      observe(hasClientLeft(by, error) ? CLIENT_CLOSED_REQUEST : 0);
      if (message !== undefined) endTrace(Object.assign(message, { error }));
    },
  };
}

/** Whether an attempt ended because the client of the request disconnected, and not because its time was up. */
function hasClientLeft(by: CallingRequest | undefined, error: unknown): boolean {
  return by?.signal.aborted === true && error === by.signal.reason && (error as Error).name === 'AbortError';
}

/** The headers that a call passes on from the request that makes it. */
function passedOn({ id, headers, span }: CallingRequest, attempt = span?.span): Record<string, string> {
  const trace =
    attempt === undefined
      ? passedHeaders(headers, ['traceparent', 'tracestate'])
      : spanHeaders(attempt, span?.tracestate);
  // Baggage belongs to the application; nobody may change it on the way.
  return { 'x-request-id': id, ...trace, ...passedHeaders(headers, ['baggage']) };
}
