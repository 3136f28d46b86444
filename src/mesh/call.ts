/* Runs a call: its attempts, and the pauses between them, in the time that is left. */

import type { IncomingHttpHeaders } from 'node:http';
import { builtin } from '../base/builtin.js';
import { monotonicNow } from '../base/clock.js';
import { CLIENT_CLOSED_REQUEST } from '../wire/exchange.js';
import { logSafely, type Logger, type LogLevel } from '../base/log.js';
import { show } from '../base/options-check.js';
import type { RequestHeaders, ServiceFetchOptions, ServiceResponse } from './call-options.js';
import type { ConnectionOptions, MeshSettings } from './settings.js';
import { ApiError } from '../base/errors.js';
import { callError, isUnavailable, ServiceError } from './service-error.js';
import { DEADLINE_HEADER, NO_RETRY_HEADER } from '../propagation/mesh-headers.js';
import { noteCall, type CallMaker, type CallTuple } from '../story/calls.js';
import { beginCallSpan, isSampled, outgoingHeaders, traceIds, type TraceSpan } from '../propagation/trace-context.js';
import { decodeAnswer, readBody, retryAfterOf, toServiceError, type Answer } from './answer.js';
import { areCallsTraced, endTrace, traceCall, type CallExport, type CallTraceMessage } from './call-tracing.js';
import { Limit, pause, type AttemptOutcome } from './limit.js';
import { formatHeaders, formatTarget, isRepeatable, toRequestBody } from './request.js';
import type { ServiceRequest, Transport } from './request.js';
import { pauseBefore, type RetryBudget } from './retry.js';

/** Defaults, limits, user agent and observer of the calls of one application. */
export interface CallSettings extends Omit<MeshSettings, 'settings'> {
  /** Maximum bytes of an answer that is read whole. Default: 10 MiB. */
  readonly maxBytes?: number;
  /** The header `user-agent` of calls. Default: none. */
  readonly userAgent?: string;
  /** Gets a line for each route of another service that is deprecated. Default: none. */
  readonly logger?: Logger;
  /** Gets what such a line says without a path. Default: none. */
  readonly note?: (level: LogLevel, entry: object, msg: string) => void;
  /** Gets each attempt: its status (0: no answer, 499: the client of the request disconnected) and its duration. */
  readonly observe?: (service: string, method: string, statusCode: number, seconds: number) => void;
}

/** The request that makes a call. */
export interface CallingRequest extends CallMaker {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  /** Undefined while nobody records the spans of requests. */
  readonly span: TraceSpan | undefined;
  /** Null while nothing exports the spans of its application. */
  readonly spanExport: CallExport | null;
  /** Aborts when the client disconnects, and when the time of the request is over. */
  readonly signal: AbortSignal;
  /** When its calls must end, on the clock of `performance.now()`; Infinity: never. */
  readonly deadlineMs: number;
}

/** A service with the state that all of its calls share. */
export interface ConnectedService {
  readonly name: string;
  readonly defaults: ConnectionOptions;
  readonly transport: Transport;
  readonly options: CallSettings;
  readonly budget: RetryBudget;
  /** Whether a deprecated route is called for the first time. */
  readonly isFirstCall: (route: string) => boolean;
  /** Attempts in flight. */
  active: number;
}

/** A call, ready to be sent. */
export interface Call extends ServiceRequest {
  /** The request that makes the call; undefined outside a request. */
  readonly by: CallingRequest | undefined;
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

/**
 * Reads what a call needs of its last answer, whatever its status. If it throws, the attempt has failed; if it returns
 * a `ServiceError`, that is what the service answered.
 */
type Reader<T> = (answer: Answer, limit: Limit) => Promise<T | ServiceError>;

const TIMEOUT_MS = 5000;
const MAX_BYTES = 10 * 1024 * 1024;
/** Part of the time left, in ms at least and at most, by which a call ends before the request that makes it. */
const MARGIN = { part: 0.05, minMs: 2, maxMs: 100 };
/** How much of an unwanted answer is read, so that its connection can be used again. */
const MAX_DISCARDED_BYTES = 65_536;
/** How much of a header of another service a line of the log has. */
const MAX_SHOWN = 100;

/** @param route the path pattern of a typed call @throws {TypeError} for a path, header or body that cannot be sent */
export async function createCall(
  { name, defaults, options: { userAgent } }: ConnectedService,
  method: string,
  path: string,
  { timeout = defaults.timeout ?? TIMEOUT_MS, retry = defaults.retry ?? 0, signal, ...options }: ServiceFetchOptions,
  by: CallingRequest | undefined,
  route?: string,
): Promise<Call> {
  const body = toRequestBody(options.json, options.body);
  const target = formatTarget(path, options.query);
  const attempts = isRepeatable({ method, body }) ? retry + 1 : 1;
  const signals = signal == null ? [] : [signal];
  if (signal !== null && by !== undefined && by.signal !== signal) signals.push(by.signal);
  const deadlineMs = signal === null || by === undefined ? Infinity : endBefore(by.deadlineMs);
  const call = {
    service: name,
    method,
    path: target.replace(/\?.*/s, ''),
    route,
    isRepeated: attempts > 1,
    target,
    headers: {},
    body,
    by,
    signals,
    timeoutMs: timeout,
    deadlineMs,
    attempts,
  };
  const shared = typeof defaults.headers === 'function' ? await askFor(defaults.headers, call) : defaults.headers;
  const headers = formatHeaders([shared, options.headers], method, body);
  if (userAgent !== undefined) headers['user-agent'] ??= userAgent;
  return { ...call, headers };
}

/**
 * The headers that a connection's function returns.
 *
 * @throws {ServiceError} 504 if that takes longer than an attempt of the call may
 * @throws the reason of the first signal that aborts, and what the function throws
 */
async function askFor(headers: () => RequestHeaders | Promise<RequestHeaders>, call: Call): Promise<RequestHeaders> {
  const timeoutMs = Math.min(call.timeoutMs, timeLeft(call));
  const what = `headers of connections.${call.service}`;
  const toTimeout = (): Error => callError(call, 504, `the ${what} were not there within ${Math.round(timeoutMs)} ms`);
  const limit = new Limit(timeoutMs, toTimeout, call.signals);
  try {
    // First: if it throws, nobody awaits a promise that has rejected, which would end the process.
    const asked = headers();
    const ended = new Promise<never>((_resolve, reject) => limit.whenEnded(reject));
    const given: unknown = await Promise.race([ended, asked]);
    if (typeof given === 'object' && given !== null) return given as RequestHeaders;
    throw new TypeError(`the ${what} are ${show(given)}; return an object`);
  } finally {
    limit.release();
  }
}

/** A little before a deadline, so that what the call says arrives before the caller of the request gives up. */
function endBefore(deadlineMs: number): number {
  const marginMs = (deadlineMs - monotonicNow()) * MARGIN.part;
  return deadlineMs - Math.min(MARGIN.maxMs, Math.max(MARGIN.minMs, marginMs));
}

/**
 * Runs a call whose answer is read whole.
 *
 * @throws {ServiceError} for an answer from 400 on, and 502 to 504 without a usable one
 */
export async function callWhole(service: ConnectedService, call: Call): Promise<ServiceResponse> {
  const { maxBytes = MAX_BYTES } = service.options;
  const { head, answer } = await runCall(service, call, async (head) => {
    const whole = await head.whole(maxBytes);
    // Nobody who does not ask gets a coding from an honest server.
    const answer = 'accept-encoding' in call.headers ? await decodeAnswer(call, whole, maxBytes) : whole;
    return answer.status >= 400 ? toServiceError(call, answer) : { head, answer };
  });
  return { status: answer.status, headers: head.toHeaders(), body: readBody(call, answer) };
}

/**
 * @throws {ServiceError} what `read` returned, or 502 to 504 without an answer
 * @throws the reason of the first signal that aborts
 */
export async function runCall<T>(service: ConnectedService, call: Call, read: Reader<T>): Promise<T> {
  service.budget.addCall();
  for (let number = 1; ; number += 1) {
    assertPossible(service, call);
    const { value, pauseMs } = await runAttempt(service, call, number, read);
    if (pauseMs !== undefined) await pause(pauseMs, call.signals);
    else if (value instanceof ServiceError) throw value;
    else return value as T;
  }
}

/** @throws why no request can be sent: an aborted signal, no time left, or too many requests in flight */
function assertPossible({ name, active, options }: ConnectedService, call: Call): void {
  for (const signal of call.signals) signal.throwIfAborted();
  if (timeLeft(call) < 1) throw callError(call, 504, `the time was up before ${name} was called`);
  if (active < options.maxServiceRequests) return;
  const headers = { [NO_RETRY_HEADER]: 'true' };
  throw callError(call, 503, `${name} has ${active} requests in flight, the maximum`, { headers });
}

function timeLeft({ deadlineMs }: Call): number {
  return deadlineMs - monotonicNow();
}

/**
 * Sends one attempt, which is counted and traced.
 *
 * @param number from 1
 * @returns the result, or how long to wait before the next attempt, in ms
 */
async function runAttempt<T>(
  service: ConnectedService,
  call: Call,
  number: number,
  read: Reader<T>,
): Promise<{ value?: T | ServiceError | undefined; pauseMs: number | undefined }> {
  const { name, transport, options } = service;
  const { method, path, route, by } = call;
  const startedAtMs = monotonicNow();
  const timeoutMs = Math.min(call.timeoutMs, timeLeft(call));
  const { span, spanExport = null } = by ?? {};
  const isTraced = areCallsTraced() || (spanExport !== null && span !== undefined && isSampled(span));
  const trace = isTraced && span !== undefined ? beginCallSpan(span) : undefined;
  const headers = callHeaders(call, timeoutMs, trace);
  const message: CallTraceMessage | undefined = isTraced
    ? { service: name, method, path, attempt: number, url: transport.url + path, route, headers, trace }
    : undefined;
  const end = (failure?: AttemptOutcome['failure']): void => {
    if (message === undefined) return;
    endTrace(message, failure);
    spanExport?.addCall(message, startedAtMs);
  };
  let calls: CallTuple[] = [];
  /** @param counted 0 without an answer @param status of the answer, or of the error in its place */
  const observe = (counted: number, outcome: unknown, status = counted): void => {
    const ms = monotonicNow() - startedAtMs;
    options.observe?.(name, method, counted, ms / 1000);
    const code = status >= 400 && outcome instanceof ApiError ? outcome.errorCode.name : null;
    if (by !== undefined) noteCall(by, [name, method, route ?? '', status, Math.round(ms), code, calls]);
  };
  const toTimeout = (): Error => callError(call, 504, `${name} did not answer within ${Math.round(timeoutMs)} ms`);
  const limit = new Limit(timeoutMs, toTimeout, call.signals);
  service.active += 1;
  limit.whenOver(() => (service.active -= 1));
  try {
    const answer = await traceCall(message, () => transport.open({ ...call, headers }, limit));
    const { status } = answer;
    calls = answer.calls;
    const { headers: answered } = answer.source;
    if (answered['deprecation'] !== undefined || answered['sunset'] !== undefined) reportEnd(service, call, answered);
    const pauseMs = pauseAfter(service, call, number, status, answered);
    const value = await (pauseMs === undefined ? read(answer, limit) : discardAnswer(call, answer));
    observe(status, value);
    if (message !== undefined) {
      message.statusCode = status;
      if (value instanceof ServiceError) message.errorCode = value.errorCode;
      // A streamed answer ends with its last byte, in an event of the socket: outside the caller's async context.
      // An attempt that is repeated was cut on purpose.
      const isRepeated = pauseMs !== undefined;
      const whenOver = ({ failure }: AttemptOutcome): void => end(isRepeated ? undefined : failure);
      limit.whenOver(limit.isOver ? whenOver : builtin('node:async_hooks').AsyncResource.bind(whenOver));
    }
    return { value, pauseMs };
  } catch (error) {
    limit.end(error);
    const counted = hasClientLeft(by, error) ? CLIENT_CLOSED_REQUEST : 0;
    observe(counted, error, error instanceof ApiError ? error.statusCode : counted);
    end({ reason: error });
    const pauseMs = error instanceof ServiceError ? pauseAfter(service, call, number, error.statusCode) : undefined;
    if (pauseMs === undefined) throw error;
    return { pauseMs };
  }
}

/** Logs that a route of another service is deprecated, once for each route: whoever calls it has to move on. */
function reportEnd({ name, options, isFirstCall }: ConnectedService, call: Call, answered: IncomingHttpHeaders): void {
  const { method, by } = call;
  const { logger, note } = options;
  // Without a pattern, the ids in paths would make a route of each call: `/invoices/7` → `/invoices/*`
  const route = call.route ?? call.path.replace(/[^/]*\d[^/]*/g, '*');
  if (logger === undefined || !isFirstCall(`${method} ${route}`)) return;
  const dates: Record<string, string> = {};
  for (const header of ['deprecation', 'sunset'])
    if (answered[header] !== undefined) dates[header] = String(answered[header]).slice(0, MAX_SHOWN);
  const text = 'a deprecated route of another service is called';
  const entry = { service: name, method, route, ...dates, ...(by && { request_id: by.id, ...traceIds(by) }) };
  logSafely(logger, 'warn', entry, text);
  // A path may be what a client sent.
  note?.('warn', { service: name, method, route: call.route }, text);
}

/** The headers of an attempt: its own, and the ones that it passes on from the request that makes the call. */
function callHeaders({ by, headers }: Call, timeoutMs: number, trace = by?.span): Record<string, string> {
  const own = { [DEADLINE_HEADER]: String(Math.max(1, Math.floor(timeoutMs))), ...headers };
  return by === undefined ? own : { ...outgoingHeaders(by, trace), ...own };
}

/** How long to wait before the next attempt, in ms; undefined if there is none, or not in time. */
function pauseAfter(
  { budget }: ConnectedService,
  call: Call,
  number: number,
  status: number,
  headers: IncomingHttpHeaders = {},
): number | undefined {
  if (number >= call.attempts || !isUnavailable(status) || headers[NO_RETRY_HEADER] === 'true') return undefined;
  const pauseMs = pauseBefore(number, retryAfterOf(headers));
  return pauseMs <= call.timeoutMs && pauseMs < timeLeft(call) && budget.take() ? pauseMs : undefined;
}

/** Reads an answer that is followed by another attempt. @returns its error, if it can be read */
function discardAnswer(call: Call, answer: Answer): Promise<ServiceError | undefined> {
  return answer.whole(MAX_DISCARDED_BYTES).then(
    (whole) => toServiceError(call, whole),
    () => undefined,
  );
}

/** Whether an attempt ended because the client of the request disconnected, and not because its time was up. */
function hasClientLeft(by: CallingRequest | undefined, error: unknown): boolean {
  return by?.signal.aborted === true && error === by.signal.reason && (error as Error).name === 'AbortError';
}
