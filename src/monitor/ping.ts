/* The ping endpoint: replies for itself and, to a depth, for the connected services (SPEC 2.4, 4.2). */

import { elapsedSince, monotonicNow } from '../base/clock.js';
import { BadRequest } from '../base/errors.js';
import { logSafely, type Logger } from '../base/log.js';
import { callError, ServiceError } from '../mesh/service-error.js';
import type { WholeAnswer } from '../mesh/answer.js';
import type { PingRequest } from '../mesh/service-client.js';
import { toErrorBody } from '../payload/error-body.js';
import type { MonitoringSettings } from './monitoring-options.js';
import { callOf, foreignEntry, noPing, pingRequest, readPing } from './ping-document.js';
import type { PingDocument, PingEntry } from './ping-document.js';

/** Options of the endpoint. */
export interface PingOptions extends Pick<MonitoringSettings, 'maxPingDepth' | 'pingTimeout'> {
  /** The services that are pinged, each with the path that is asked in place of its ping endpoint. */
  readonly services: ReadonlyMap<string, string | undefined>;
  /** Sends a ping to one of the services. */
  readonly sendPing: (request: PingRequest) => Promise<WholeAnswer>;
  /** Logs when the pings of a service begin to fail, with the reason, and when they succeed again. */
  readonly logger: Logger;
}

/**
 * Creates the handler of the endpoint. `?depth=N` is from 0 to `maxPingDepth`. Its reply never fails because of another
 * service.
 *
 * @returns a handler that throws a {@link BadRequest} for any other depth
 */
export function createPing(options: PingOptions): (ctx: { readonly query: URLSearchParams }) => Promise<PingDocument> {
  const pingMesh = createMeshPing(options);
  return async ({ query }) => {
    const startedAtMs = monotonicNow();
    const depth = parseDepth(query.getAll('depth'), options.maxPingDepth);
    const isAlone = depth === 0 || options.services.size === 0;
    const response = isAlone ? 'pong' : await pingMesh(depth - 1);
    return { response, process_time: elapsedSince(startedAtMs) };
  };
}

function parseDepth(given: readonly string[], max: number): number {
  const [text = '0', ...more] = given;
  const depth = /^(?:0|[1-9]\d*)$/.test(text) ? Number(text) : Infinity;
  if (more.length > 0 || depth > max) throw new BadRequest(`Invalid depth. Allowed: 0 to ${max}`);
  return depth;
}

/**
 * At most one ping for each service and depth is in flight, so that circular and dense meshes cost each edge one
 * request per level.
 *
 * @returns a function that pings every connected service, each of which pings its own down to a depth
 */
function createMeshPing(options: PingOptions): (depth: number) => Promise<Record<string, PingEntry>> {
  const { services, sendPing, pingTimeout, logger } = options;
  const inFlight = new Map<string, Promise<PingEntry>>();
  const failing = new Set<string>();
  /** @throws {ServiceError} for an answer that is not usable */
  const ask = async (service: string, depth: number, startedAtMs: number): Promise<PingEntry> => {
    const path = services.get(service);
    const request = pingRequest(service, depth, pingTimeout, path);
    const answer = await sendPing(request);
    if (path !== undefined) return foreignEntry(request, answer, elapsedSince(startedAtMs));
    let isOdd = false;
    const document = readPing(service, answer, depth, () => (isOdd = true));
    // This service would pass odd parts on as its own.
    if (document === undefined || isOdd) throw noPing(service, answer.status);
    return { response: document, status_code: answer.status, request_time: elapsedSince(startedAtMs) };
  };
  const ping = async (service: string, depth: number): Promise<PingEntry> => {
    const startedAtMs = monotonicNow();
    try {
      const entry = await ask(service, depth, startedAtMs);
      // Only a change is logged: a mesh that is watched is pinged every two seconds.
      if (failing.delete(service)) logSafely(logger, 'warn', { service }, 'ping recovered');
      return entry;
    } catch (error) {
      const failure =
        error instanceof ServiceError
          ? error
          : callError(callOf(service), 502, `${service} could not be pinged`, { cause: error });
      if (!failing.has(service)) logSafely(logger, 'warn', { err: failure, service }, 'ping failed');
      failing.add(service);
      const response = toErrorBody(failure);
      return { response, status_code: failure.statusCode, request_time: elapsedSince(startedAtMs) };
    }
  };
  const pingOnce = (service: string, depth: number): Promise<PingEntry> => {
    const key = `${depth} ${service}`;
    const started = inFlight.get(key) ?? ping(service, depth).finally(() => inFlight.delete(key));
    inFlight.set(key, started);
    return started;
  };
  return async (depth) => {
    // All at once: a service whose turn came after others had timed out would make the hops before it fail.
    const entries = [...services.keys()].map(async (service) => [service, await pingOnce(service, depth)] as const);
    // A copy: another request may share a ping, and middleware may change its reply.
    return structuredClone(Object.fromEntries(await Promise.all(entries)));
  };
}
