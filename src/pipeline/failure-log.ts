/*
 * The log line of a request that failed or was refused.
 */

import type { IncomingMessage } from 'node:http';
import { HttpError } from '../base/errors.js';
import type { MappedError } from '../http/error-mapper.js';
import { isSilent, logSafely, type Logger } from '../base/log.js';
import { DeadlinePassed, Overloaded } from '../overload/refusals.js';

/** Never throws. @param req null for one that could not be parsed; else `id` is its own */
export function logFailure(
  logger: Logger,
  error: MappedError,
  thrown: unknown,
  statusCode: number,
  req: IncomingMessage | null,
  id: string | null,
): void {
  const level = levelOf(error, statusCode);
  if (isSilent(logger, level)) return;
  const request = req === null ? {} : { request_id: id, method: req.method, target: targetOf(req) };
  logSafely(
    logger,
    level,
    { err: thrown, status_code: statusCode, ...request },
    level === 'error' ? 'request failed' : 'request refused',
  );
}

/** The request-target for a log: as sent, without its query, which may hold a token. */
export function targetOf(req: IncomingMessage): string {
  // A mount, or middleware for Express, may have changed `url`.
  const sent = 'originalUrl' in req && typeof req.originalUrl === 'string' ? req.originalUrl : (req.url ?? '');
  const mark = sent.indexOf('?');
  return mark === -1 ? sent : sent.slice(0, mark);
}

/**
 * An unknown method or version (501, 505) is the client's mistake: logged as errors, any client could fill the log with
 * them. A refused request is counted, and the log has the begin of the overload; a line for each request would add to
 * the load.
 */
function levelOf(error: MappedError, statusCode: number): 'debug' | 'error' {
  if (statusCode < 500 || error instanceof Overloaded || error instanceof DeadlinePassed) return 'debug';
  return error instanceof HttpError && (statusCode === 501 || statusCode === 505) ? 'debug' : 'error';
}
