/*
 * The access log: one line at info for each request, whatever its outcome.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { isSilent, logSafely, type Logger } from '../base/log.js';
import { targetOf } from './failure-log.js';

/** Fields of one request's line. If the request could not be parsed, unknown fields are null. */
export interface AccessEntry {
  readonly method: string | null;
  /** As registered; null where no route matched. */
  readonly route: string | null;
  /** As sent, without its query. */
  readonly target: string | null;
  /** 499 for a client that left. */
  readonly status: number;
  readonly ms: number;
  /** Bytes of the body, before chunked coding. */
  readonly bytes: number;
  readonly request_id: string | null;
}

/** The outcome of a request. */
export interface Access {
  /** Null for a request that could not be parsed. */
  readonly req: IncomingMessage | null;
  readonly route: string | null;
  readonly id: string | null;
  readonly status: number;
  readonly seconds: number;
  readonly bytes: number;
}

/** Writes a line of the access log. Never throws. */
export function logAccess(logger: Logger, { req, route, id, status, seconds, bytes }: Access): void {
  if (isSilent(logger, 'info')) return;
  const target = req === null ? null : targetOf(req);
  const ms = Math.round(seconds * 1e6) / 1e3;
  const entry: AccessEntry = { method: req?.method ?? null, route, target, status, ms, bytes, request_id: id };
  logSafely(logger, 'info', entry, 'request');
}

/**
 * Counts the bytes of a reply's body while they are written, by whomever: a handler may use `ctx.raw.res`.
 *
 * @returns how many there are so far
 */
export function countBytes({ method }: IncomingMessage, res: ServerResponse): () => number {
  let count = 0;
  const write = res.write.bind(res) as (...args: unknown[]) => boolean;
  const end = res.end.bind(res) as (...args: unknown[]) => ServerResponse;
  // Where a body is not allowed, node:http drops what is written.
  const add = (chunk: unknown, encoding: unknown): void => {
    if (method === 'HEAD' || res.statusCode === 204 || res.statusCode === 304) return;
    if (typeof chunk === 'string') count += Buffer.byteLength(chunk, encoding as BufferEncoding);
    else if (chunk instanceof Uint8Array) count += chunk.byteLength;
  };
  // `end` of node:http does not call `write`.
  res.write = (...args: unknown[]) => {
    add(args[0], args[1]);
    return write(...args);
  };
  res.end = (...args: unknown[]) => {
    add(args[0], args[1]);
    return end(...args);
  };
  return () => count;
}
