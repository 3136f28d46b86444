/**
 * The ping endpoint: answers for itself, and to a depth for the services it is connected to (SPEC 2.4, 4.2).
 *
 * In flight there is at most one ping for each service and depth, so that circular and dense meshes cost each edge one
 * request per level.
 */

import { MAX_TIMEOUT_MS } from '../deadline.js';
import { BadRequest } from '../errors.js';
import { logSafely, type Logger } from '../log.js';
import { isRecord, readErrorBody, readJson, statusError, toErrorBody, toServiceError, type Answer, type ErrorBody } from '../mesh/answer.js';
import { ServiceError, type ServiceDirectory } from '../mesh/service.js';
import { isServiceName } from '../mesh/settings.js';

/** `pong`, or each connected service's answer. */
export interface PingDocument {
  readonly response: 'pong' | Readonly<Record<string, PingEntry>>;
  /** `<integer> ms` */
  readonly process_time: string;
}

/** How one service answered, or why it did not. */
export interface PingEntry {
  readonly response: PingDocument | ErrorBody;
  /** The status that it answered with; 502 to 504 when there is no answer to use. */
  readonly status_code: number;
  /** `<integer> ms` */
  readonly request_time: string;
}

/** What the endpoint is made of. @internal */
export interface PingOptions {
  readonly directory: Pick<ServiceDirectory, 'names' | 'exchange'>;
  readonly maxPingDepth: number;
  /** What one level of depth is worth: a ping of depth N waits N times as long for each service. */
  readonly pingTimeoutMs: number;
  /** Gets the reason of every ping without a usable answer. */
  readonly logger?: Logger;
}

/** Services that one request pings at a time. */
const CONCURRENCY = 64;
const MAX_BYTES = 4 * 1024 * 1024;
const DURATION = /^\d{1,15} ms$/;

/** Pings one service; `depth` is what is left for it to go on with. */
type Probe = (service: string, depth: number) => Promise<PingEntry>;

/**
 * Makes the handler of the endpoint. `?depth=N` goes from 0 to `maxPingDepth`; its reply never fails because of another
 * service.
 *
 * @returns a handler that throws a {@link BadRequest} for any other depth
 * @internal
 */
export function createPing(options: PingOptions): (ctx: { readonly query: URLSearchParams }) => Promise<PingDocument> {
  const { names } = options.directory;
  const probe = shareInFlight(createProbe(options));
  return async ({ query }) => {
    const startedMs = performance.now();
    const depth = parseDepth(query.getAll('depth'), options.maxPingDepth);
    const response = depth === 0 || names.length === 0 ? 'pong' : await probeAll(names, (service) => probe(service, depth - 1));
    return { response, process_time: elapsedSince(startedMs) };
  };
}

function parseDepth(given: readonly string[], max: number): number {
  const [text = '0', ...more] = given;
  const depth = /^(?:0|[1-9]\d*)$/.test(text) ? Number(text) : Infinity;
  if (more.length > 0 || depth > max) throw new BadRequest(`Invalid depth. Allowed: 0 to ${max}`);
  return depth;
}

async function probeAll(services: readonly string[], probe: (service: string) => Promise<PingEntry>): Promise<Record<string, PingEntry>> {
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
    const running = inFlight.get(key);
    if (running !== undefined) return running;
    const started = probe(service, depth).finally(() => inFlight.delete(key));
    inFlight.set(key, started);
    return started;
  };
}

function createProbe({ directory, pingTimeoutMs, logger }: PingOptions): Probe {
  return async (service, depth) => {
    const startedMs = performance.now();
    const toEntry = (status: number, response: PingDocument | ErrorBody): PingEntry => ({ response, status_code: status, request_time: elapsedSince(startedMs) });
    try {
      const answer = await directory.exchange(service, {
        method: 'GET',
        path: `/${service}/ping/?depth=${depth}`,
        headers: { accept: 'application/json' },
        timeoutMs: Math.min((depth + 1) * pingTimeoutMs, MAX_TIMEOUT_MS),
        maxBytes: MAX_BYTES,
      });
      return toEntry(answer.status, readPing(service, answer, depth));
    } catch (error) {
      const failure = error instanceof ServiceError ? error : statusError(service, 502, `${service} could not be pinged`, { cause: error });
      if (logger !== undefined) logSafely(logger, 'warn', { err: failure, service }, 'ping failed');
      return toEntry(failure.statusCode, toErrorBody(failure));
    }
  };
}

/**
 * @throws {ServiceError} what a status other than 200 stands for, or 502 for an answer that is no ping document
 */
function readPing(service: string, answer: Answer, depth: number): PingDocument {
  if (answer.status >= 400) throw toServiceError(service, answer);
  const document = answer.status === 200 ? readDocument(readJson(answer), depth) : undefined;
  if (document === undefined) throw statusError(service, 502, `${service} answered ${answer.status} with something else than a ping`);
  return document;
}

/** The known fields of a ping document, to at most the depth that was asked for; undefined for anything else. */
function readDocument(value: unknown, depth: number): PingDocument | undefined {
  if (!isRecord(value) || !isDuration(value['process_time'])) return undefined;
  const process_time = value['process_time'];
  if (value['response'] === 'pong') return { response: 'pong', process_time };
  if (depth === 0 || !isRecord(value['response'])) return undefined;
  const entries: [string, PingEntry][] = [];
  for (const [service, given] of Object.entries(value['response'])) {
    const entry = isServiceName(service) ? readEntry(given, depth - 1) : undefined;
    if (entry === undefined) return undefined;
    entries.push([service, entry]);
  }
  return { response: Object.fromEntries(entries), process_time };
}

function readEntry(value: unknown, depth: number): PingEntry | undefined {
  if (!isRecord(value) || !isDuration(value['request_time'])) return undefined;
  const { status_code: status, request_time } = value;
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 100 || status > 599) return undefined;
  const response = status === 200 ? readDocument(value['response'], depth) : readErrorBody(value['response']);
  return response === undefined ? undefined : { response, status_code: status, request_time };
}

function isDuration(value: unknown): value is string {
  return typeof value === 'string' && DURATION.test(value);
}

function elapsedSince(startedMs: number): string {
  return `${Math.floor(performance.now() - startedMs)} ms`;
}
