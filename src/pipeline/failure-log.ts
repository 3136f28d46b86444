/**
 * The log line of a request that failed or was refused.
 */

import type { IncomingMessage } from 'node:http';
import type { MappedError } from '../http/error-mapper.js';
import { isSilent, logSafely, type Logger } from '../log.js';
import { Overloaded } from '../monitor/load-shedder.js';

/** The shedder has logged that it began; a line for each request that it refuses would be load of its own. */
export function levelOf(error: MappedError): 'debug' | 'error' {
  return error.statusCode >= 500 && !(error instanceof Overloaded) ? 'error' : 'debug';
}

/** Never throws. @param req null for one that could not be parsed; else `id` is its own */
export function logFailure(logger: Logger, level: 'debug' | 'error', thrown: unknown, statusCode: number, req: IncomingMessage | null, id: string | null): void {
  if (isSilent(logger, level)) return;
  const request = req === null ? {} : { request_id: id, method: req.method, target: req.url };
  logSafely(logger, level, { err: thrown, status_code: statusCode, ...request }, level === 'error' ? 'request failed' : 'request refused');
}
