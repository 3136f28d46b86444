/*
 * Runs a call: its tries, and the pauses between them, in the time that is left.
 */

import { monotonicNow } from '../base/clock.js';
import { retryAfterOf } from './answer.js';
import type { PeerAnswer } from './peer-answer.js';
import { isUnavailable, NO_RETRY_HEADER, pause, pauseBefore } from './retry.js';
import { callError, ServiceError } from './service-error.js';
import type { Caller, Service } from './service.js';
import type { TryLimit } from './try-limit.js';
import { beginTry, type TryRequest } from './try.js';

/** What is called, ready to be sent. */
export interface Call extends TryRequest {
  /** Most tries, the first included. */
  readonly tries: number;
}

/** How much of an answer that is not wanted is read, so that its connection can be used again. */
const MAX_DISCARDED_BYTES = 65_536;

/**
 * @param caller on whose behalf; undefined outside of a request
 * @param read takes what it wants of the answer; what it throws is a failed try
 * @returns what `read` made of the last answer, whatever its status
 * @throws {ServiceError} 502 to 504 without an answer
 * @throws the reason of the first signal that aborts
 */
export async function runCall<T>(
  service: Service,
  caller: Caller | undefined,
  call: Call,
  read: (answer: PeerAnswer, limit: TryLimit) => Promise<T>,
): Promise<T> {
  service.budget.addCall();
  for (let attempt = 1; ; attempt += 1) {
    const leftMs = timeLeft(caller);
    assertPossible(service, call, leftMs);
    const one = beginTry(service, caller, call, attempt, leftMs);
    let pauseMs: number | undefined;
    try {
      const answer = await one.open();
      const { status, headers } = answer;
      if (isUnavailable(status) && headers[NO_RETRY_HEADER] === undefined)
        pauseMs = pauseOf(service, call, attempt, timeLeft(caller), retryAfterOf(headers));
      if (pauseMs === undefined) {
        const value = await read(answer, one.limit);
        one.succeed(status);
        return value;
      }
      await answer.bytes(MAX_DISCARDED_BYTES).catch(() => undefined);
      one.succeed(status);
    } catch (error) {
      one.fail(error);
      if (error instanceof ServiceError && isUnavailable(error.statusCode))
        pauseMs = pauseOf(service, call, attempt, timeLeft(caller), undefined);
      if (pauseMs === undefined) throw error;
    }
    await pause(pauseMs, call.signals);
  }
}

function timeLeft(caller: Caller | undefined): number {
  return caller?.deadlineMs === undefined ? Infinity : caller.deadlineMs - monotonicNow();
}

/** @throws why no request can be sent: an aborted signal, no time left, or too many requests under way */
function assertPossible(service: Service, { callee, signals }: Call, leftMs: number): void {
  for (const signal of signals) signal.throwIfAborted();
  if (leftMs < 1) throw callError(callee, 504, `the time was up before ${service.name} was called`);
  if (service.active < service.limits.maxServiceRequests) return;
  const headers = { [NO_RETRY_HEADER]: 'true' };
  throw callError(callee, 503, `${service.name} has ${service.active} requests under way, and gets no more`, {
    headers,
  });
}

/** How long to wait before the next try; undefined for no other, or none in time. */
function pauseOf(
  service: Service,
  { tries, timeoutMs }: Call,
  attempt: number,
  leftMs: number,
  retryAfter: string | undefined,
): number | undefined {
  if (attempt >= tries) return undefined;
  const pauseMs = pauseBefore(attempt, retryAfter);
  return pauseMs <= timeoutMs && pauseMs < leftMs && service.budget.take() ? pauseMs : undefined;
}
