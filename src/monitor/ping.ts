/*
 * The ping endpoint: answers for itself, and to a depth for the services it is connected to (SPEC 2.4, 4.2).
 *
 * In flight there is at most one ping for each service and depth, so that circular and dense meshes cost each edge one
 * request per level.
 */

import { monotonicNow } from '../base/clock.js';
import { BadRequest } from '../base/errors.js';
import { logSafely, type Logger } from '../base/log.js';
import { readJson, toServiceError, type Answer } from '../mesh/answer.js';
import type { ServiceDirectory } from '../mesh/directory.js';
import { callError, ServiceError, type Callee } from '../mesh/service-error.js';
import { toErrorBody, type ErrorBody } from '../payload/error-body.js';
import {
  calleeOf,
  elapsedSince,
  noPing,
  pingRequest,
  readPingDocument,
  type PingDocument,
  type PingEntry,
} from './ping-document.js';

/** What the endpoint is made of. */
export interface PingOptions {
  readonly directory: Pick<ServiceDirectory, 'names' | 'exchange'>;
  readonly maxPingDepth: number;
  /** Time for one level of depth: a ping of depth N waits N times as long for each service. */
  readonly pingTimeout: number;
  /** Gets the reason of every ping without a usable answer. */
  readonly logger?: Logger;
}

/** Services that one request pings at a time. */
const CONCURRENCY = 64;
const MAX_BYTES = 4 * 1024 * 1024;

/** Pings one service; `depth` is what is left for it to go on with. */
type Probe = (service: string, depth: number) => Promise<PingEntry>;

/**
 * Makes the handler of the endpoint. `?depth=N` goes from 0 to `maxPingDepth`; its reply never fails because of another
 * service.
 *
 * @returns a handler that throws a {@link BadRequest} for any other depth
 */
export function createPing(options: PingOptions): (ctx: { readonly query: URLSearchParams }) => Promise<PingDocument> {
  const { names } = options.directory;
  const probe = shareInFlight(createProbe(options));
  return async ({ query }) => {
    const startedMs = monotonicNow();
    const depth = parseDepth(query.getAll('depth'), options.maxPingDepth);
    const response =
      depth === 0 || names.length === 0 ? 'pong' : await probeAll(names, (service) => probe(service, depth - 1));
    return { response, process_time: elapsedSince(startedMs) };
  };
}

function parseDepth(given: readonly string[], max: number): number {
  const [text = '0', ...more] = given;
  const depth = /^(?:0|[1-9]\d*)$/.test(text) ? Number(text) : Infinity;
  if (more.length > 0 || depth > max) throw new BadRequest(`Invalid depth. Allowed: 0 to ${max}`);
  return depth;
}

async function probeAll(
  services: readonly string[],
  probe: (service: string) => Promise<PingEntry>,
): Promise<Record<string, PingEntry>> {
  const entries = new Map<string, PingEntry>();
  const queue = services.values();
  const work = async (): Promise<void> => {
    for (const service of queue) entries.set(service, await probe(service));
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, services.length) }, work));
  return Object.fromEntries(services.map((service) => [service, entries.get(service) as PingEntry]));
}

function shareInFlight(probe: Probe): Probe {
  const inFlight = new Map<string, Promise<PingEntry>>();
  return (service, depth) => {
    const key = `${depth} ${service}`;
    const started = inFlight.get(key) ?? probe(service, depth).finally(() => inFlight.delete(key));
    inFlight.set(key, started);
    return started;
  };
}

function createProbe({ directory, pingTimeout, logger }: PingOptions): Probe {
  return async (service, depth) => {
    const startedMs = monotonicNow();
    const callee = calleeOf(service);
    const toEntry = (status: number, response: PingDocument | ErrorBody): PingEntry => ({
      response,
      status_code: status,
      request_time: elapsedSince(startedMs),
    });
    try {
      const answer = await directory.exchange(service, pingRequest(service, depth, pingTimeout, MAX_BYTES));
      return toEntry(answer.status, readPing(callee, answer, depth));
    } catch (error) {
      const failure =
        error instanceof ServiceError
          ? error
          : callError(callee, 502, `${service} could not be pinged`, { cause: error });
      if (logger !== undefined) logSafely(logger, 'warn', { err: failure, service }, 'ping failed');
      return toEntry(failure.statusCode, toErrorBody(failure));
    }
  };
}

/**
 * @throws {ServiceError} what a status other than 200 stands for, or 502 for an answer that is no ping document or has
 * odd parts: this service would pass them on as its own answer
 */
function readPing(callee: Callee, answer: Answer, depth: number): PingDocument {
  if (answer.status >= 400) throw toServiceError(callee, answer);
  let isOdd = false;
  const onOdd = (): void => void (isOdd = true);
  const document = answer.status === 200 ? readPingDocument(readJson(answer), depth, onOdd) : undefined;
  if (document === undefined || isOdd) throw noPing(callee.service, answer.status);
  return document;
}
