/**
 * Asks a service's ping endpoint for the mesh below it (SPEC 4.2).
 *
 * Any service may have written any part of the answer: what is used has its type and lies within the depth that was asked
 * for, and no text is fit to be printed as it is.
 */

import { Postern } from '../app/app.js';
import { isRecord, readErrorBody, statusError, toErrorBody, type ErrorBody } from '../mesh/answer.js';
import { ServiceError } from '../mesh/service.js';
import type { PingDocument, PingEntry } from '../monitor/ping.js';

/** Where the ping endpoint is, and what to ask it for. */
export interface MeshQuery {
  readonly service: string;
  /** What the path `/<service>/ping/` goes behind. */
  readonly base: string;
  readonly depth: number;
  /** How long a level of depth may take; the whole gets one more. */
  readonly levelTimeoutMs: number;
}

/** One service as another one saw it. */
export interface Edge {
  readonly from: string;
  readonly to: string;
  readonly entry: PingEntry;
}

/** Asks for the mesh, as an application would; a service without a usable answer is an entry that says so, with 502 to 504 for its status. */
export async function askMesh({ service, base, depth, levelTimeoutMs }: MeshQuery): Promise<PingEntry> {
  const settings = { SERVICE_CONNECTIONS: [`${service}=${base}`], REQUIRED_SERVICE_CONNECTIONS: [], SERVICE_URL_TEMPLATE: 'http://{service}' };
  const app = new Postern('postern', { settings, logger: false, attachMonitorEndpoints: false });
  const startedMs = performance.now();
  const elapsed = (): string => `${Math.floor(performance.now() - startedMs)} ms`;
  try {
    const { status, body } = await app.service(service).get(`/${service}/ping/`, { query: { depth }, timeout: (depth + 1) * levelTimeoutMs });
    return toEntry(service, status, status === 200 ? readDocument(body, depth) : undefined, elapsed());
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return toEntry(service, error.statusCode, { ...toErrorBody(error), description: describe(error) }, elapsed());
  }
}

/** Every edge below a service, each before those further down. */
export function* walkMesh(from: string, { response }: PingEntry): Generator<Edge> {
  for (const [to, entry] of servicesBelow(response)) {
    yield { from, to, entry };
    yield* walkMesh(to, entry);
  }
}

/** What a service is connected to; nothing for one that did not answer. */
export function servicesBelow(answer: PingEntry['response']): [string, PingEntry][] {
  return 'process_time' in answer && answer.response !== 'pong' ? Object.entries(answer.response) : [];
}

/** @param response undefined when what was answered is of no use */
function toEntry(service: string, status: number, response: PingDocument | ErrorBody | undefined, request_time: string): PingEntry {
  if (response !== undefined) return { response, status_code: status, request_time };
  const error = toErrorBody(statusError(service, 502, `${service} answered ${status} with something else than a ping`));
  return { response: error, status_code: status === 200 ? 502 : status, request_time };
}

/** `ECONNREFUSED` helps the person who mistyped a port. */
function describe({ description, cause }: ServiceError): string {
  return cause instanceof Error && 'code' in cause ? `${description} (${String(cause.code)})` : description;
}

function readDocument(value: unknown, depth: number): PingDocument | undefined {
  if (!isRecord(value) || typeof value['process_time'] !== 'string') return undefined;
  const { response, process_time } = value;
  if (response === 'pong') return { response, process_time };
  if (depth === 0 || !isRecord(response)) return undefined;
  const entries = Object.entries(response).map(([service, given]) => [service, readEntry(service, given, depth - 1)] as const);
  return { response: Object.fromEntries(entries), process_time };
}

/** As lenient as can be: one odd entry must not hide the others. */
function readEntry(service: string, value: unknown, depth: number): PingEntry {
  const { response, status_code, request_time } = isRecord(value) ? value : {};
  const status = typeof status_code === 'number' && Number.isSafeInteger(status_code) ? status_code : 502;
  const body = status === 200 ? readDocument(response, depth) : readErrorBody(response);
  return toEntry(service, status, body, typeof request_time === 'string' ? request_time : '? ms');
}
