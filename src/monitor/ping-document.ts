/*
 * The ping document (SPEC 2.4, 4.2), and the one reader of another service's document: each service below may have
 * written a part of it.
 */

import { MAX_TIMEOUT_MS } from '../base/deadline.js';
import { isStatus } from '../base/errors.js';
import { callError, type CallName, type ServiceError } from '../mesh/service-error.js';
import { isServiceName } from '../mesh/settings.js';
import { readJson, toServiceError, type WholeAnswer } from '../mesh/answer.js';
import { formatTarget } from '../mesh/request.js';
import type { PingRequest } from '../mesh/service-client.js';
import { isRecord } from '../base/options-check.js';
import { readErrorBody, toErrorBody, type ErrorBody } from '../payload/error-body.js';

/** `pong`, or each connected service's answer. */
export interface PingDocument {
  /** `pong`, or an entry for each connected service. */
  readonly response: 'pong' | Readonly<Record<string, PingEntry>>;
  /** `<integer> ms` */
  readonly process_time: string;
}

/** How one service answered, or why it did not. */
export interface PingEntry {
  /** The ping document of the service, or the body of an error. */
  readonly response: PingDocument | ErrorBody;
  /** The status that it answered with; 502 to 504 when there is no answer to use. */
  readonly status_code: number;
  /** `<integer> ms` */
  readonly request_time: string;
}

/** Maximum length of an answer. */
const MAX_BYTES = 4 * 1024 * 1024;
const DURATION = /^\d{1,15} ms$/;

/**
 * The known fields of an answer, to at most the depth that was asked for. An entry without a usable answer becomes one
 * that says so, so that one odd entry hides no other.
 *
 * @param onOdd called for each entry that was changed so, and for each service name or time that is not a valid one.
 * Such names and times are kept unchanged: another service made them up, so use them for nothing but text to show
 * @returns undefined for anything but a ping document
 * @throws {ServiceError} the error of an answer from 400 on
 * @internal
 */
export function readPing(
  service: string,
  answer: WholeAnswer,
  depth: number,
  onOdd: () => void,
): PingDocument | undefined {
  if (answer.status >= 400) throw toServiceError(callOf(service), answer);
  return answer.status === 200 ? readDocument(readJson(answer), depth, onOdd) : undefined;
}

function readDocument(value: unknown, depth: number, onOdd: () => void): PingDocument | undefined {
  if (!isRecord(value) || typeof value['process_time'] !== 'string') return undefined;
  const { response, process_time } = value;
  if (!DURATION.test(process_time)) onOdd();
  if (response === 'pong') return { response, process_time };
  if (depth === 0 || !isRecord(response)) return undefined;
  const entries = Object.entries(response).map(([service, entry]) => {
    if (!isServiceName(service)) onOdd();
    return [service, readEntry(service, entry, depth - 1, onOdd)] as const;
  });
  return { response: Object.fromEntries(entries), process_time };
}

/** The entry for a service whose answer is unusable. @param status that it answered with @internal */
export function unusableEntry(service: string, status: number, request_time: string): PingEntry {
  const response = toErrorBody(noPing(service, status));
  return { response, status_code: status === 200 ? 502 : status, request_time };
}

/** @param status of an answer that is not a ping document @internal */
export function noPing(service: string, status: number): ServiceError {
  return callError(callOf(service), 502, `${service} answered ${status} with something else than a ping`);
}

/** The ping endpoint of a service, as errors name it. @internal */
export function callOf(service: string): CallName {
  return { service, method: 'GET', path: `/${service}/ping/` };
}

/**
 * The entry of a service that is not built with Postern, and was asked something else than a ping.
 *
 * @throws {ServiceError} for a status outside 2xx
 * @internal
 */
export function foreignEntry(call: CallName, answer: WholeAnswer, request_time: string): PingEntry {
  if (answer.status >= 400) throw toServiceError(call, answer);
  if (answer.status > 299) throw noPing(call.service, answer.status);
  return { response: { response: 'pong', process_time: request_time }, status_code: 200, request_time };
}

/**
 * The request that pings a service.
 *
 * @param levelTimeoutMs time for each level of depth
 * @param path asked in place of the ping endpoint
 * @internal
 */
export function pingRequest(
  service: string,
  depth: number,
  levelTimeoutMs: number,
  path?: string,
): PingRequest {
  const call = callOf(service);
  return {
    ...call,
    ...(path === undefined
      ? { target: `${call.path}?depth=${depth}`, headers: { accept: 'application/json' } }
      : { path, target: formatTarget(path, undefined), headers: { accept: '*/*' } }),
    body: undefined,
    timeoutMs: Math.min((depth + 1) * levelTimeoutMs, MAX_TIMEOUT_MS),
    maxBytes: MAX_BYTES,
  };
}

function readEntry(service: string, value: unknown, depth: number, onOdd: () => void): PingEntry {
  const { response, status_code, request_time } = isRecord(value) ? value : {};
  const status = isStatus(status_code, 100) ? status_code : 502;
  const time = typeof request_time === 'string' ? request_time : '? ms';
  const body = status === 200 ? readDocument(response, depth, onOdd) : readErrorBody(response);
  if (body === undefined || status !== status_code || !DURATION.test(time)) onOdd();
  return body === undefined
    ? unusableEntry(service, status, time)
    : { response: body, status_code: status, request_time: time };
}
