/*
 * Pings the connected services. Loaded with the first ping of a service that has connections.
 *
 * At most one ping for each service and depth is in flight, so that circular and dense meshes cost each edge one
 * request per level.
 */

import { elapsedSince, monotonicNow } from '../base/clock.js';
import { logSafely, type Logger } from '../base/log.js';
import { callError, ServiceError, type CallName } from '../client/service-error.js';
import { readJson, toServiceError, type WholeAnswer } from '../mesh/answer.js';
import type { PingRequest } from '../mesh/service-connection.js';
import { toErrorBody, type ErrorBody } from '../payload/error-body.js';
import {
  callOf,
  noPing,
  pingRequest,
  readPingDocument,
  type PingDocument,
  type PingEntry,
} from './ping-document.js';

/** Options of the endpoint. */
export interface PingOptions {
  readonly services: { readonly names: readonly string[] };
  /** Sends a ping to one of the services. */
  readonly exchange: (service: string, request: PingRequest) => Promise<WholeAnswer>;
  readonly maxPingDepth: number;
  /** Time limit for one level of depth: a ping of depth N waits N times as long for each service. */
  readonly pingTimeout: number;
  /** Logs the reason of every ping without a usable answer. */
  readonly logger?: Logger;
}

/** Services that one request pings at a time. */
const CONCURRENCY = 64;
const MAX_BYTES = 4 * 1024 * 1024;

/** Pings one service, which pings its own services down to `depth`. */
type Probe = (service: string, depth: number) => Promise<PingEntry>;

/** @returns a function that pings every connected service, each of which pings its own down to a depth */
export function createMeshPing(options: PingOptions): (depth: number) => Promise<Record<string, PingEntry>> {
  const probe = shareInFlight(createProbe(options));
  return (depth) => probeAll(options.services.names, (service) => probe(service, depth));
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

function createProbe({ exchange, pingTimeout, logger }: PingOptions): Probe {
  return async (service, depth) => {
    const startedMs = monotonicNow();
    const call = callOf(service);
    const toEntry = (status: number, response: PingDocument | ErrorBody): PingEntry => ({
      response,
      status_code: status,
      request_time: elapsedSince(startedMs),
    });
    try {
      const answer = await exchange(service, pingRequest(service, depth, pingTimeout, MAX_BYTES));
      return toEntry(answer.status, readPing(call, answer, depth));
    } catch (error) {
      const failure =
        error instanceof ServiceError
          ? error
          : callError(call, 502, `${service} could not be pinged`, { cause: error });
      if (logger !== undefined) logSafely(logger, 'warn', { err: failure, service }, 'ping failed');
      return toEntry(failure.statusCode, toErrorBody(failure));
    }
  };
}

/**
 * @throws {ServiceError} the error of an answer from 400 on; 502 for an answer that is not a ping document or has odd
 * parts, which this service would pass on as its own
 */
function readPing(call: CallName, answer: WholeAnswer, depth: number): PingDocument {
  if (answer.status >= 400) throw toServiceError(call, answer);
  let isOdd = false;
  const onOdd = (): void => void (isOdd = true);
  const document = answer.status === 200 ? readPingDocument(readJson(answer), depth, onOdd) : undefined;
  if (document === undefined || isOdd) throw noPing(call.service, answer.status);
  return document;
}
