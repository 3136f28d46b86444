/*
 * Asks a service's ping endpoint for the mesh below it (SPEC 4.2).
 *
 * Any service may have written any part of the answer. The parts that are used have the right type, and lie within the
 * depth that was asked for; their texts must be made visible before they are printed.
 */

import { elapsedSince, monotonicNow } from '../base/clock.js';
import { resolve } from '../base/options-check.js';
import { ServiceError } from '../mesh/service-error.js';
import { isServiceName, MESH } from '../mesh/settings.js';
import { ServiceClients } from '../mesh/service-client.js';
import { pingRequest, readPing, unusableEntry, type PingEntry } from '../monitor/ping-document.js';
import { toErrorBody } from '../payload/error-body.js';
import { UsageError } from './command.js';

/** One service with the entry that another service has for it. */
export interface PingEdge {
  readonly from: string;
  readonly to: string;
  readonly entry: PingEntry;
}

/**
 * Asks for the mesh, as an application would; a service without a usable answer is an entry that says so, with 502 to
 * 504 for its status.
 *
 * @param levelTimeoutMs time limit for each level of depth; a mesh of depth N has N + 1 times as long
 */
export async function askMesh(root: MeshRoot, depth: number, levelTimeoutMs: number): Promise<PingEntry> {
  const { service } = root;
  const clients = clientsOf(root);
  const startedAtMs = monotonicNow();
  try {
    const answer = await clients.ping(pingRequest(service, depth, levelTimeoutMs));
    const response = readPing(service, answer, depth, () => undefined);
    const request_time = elapsedSince(startedAtMs);
    return response === undefined
      ? unusableEntry(service, answer.status, request_time)
      : { response, status_code: answer.status, request_time };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { cause, description, statusCode: status_code } = error;
    // `ECONNREFUSED` helps the person who mistyped a port.
    const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
    const response = { ...toErrorBody(error), description: `${description}${code}` };
    return { response, status_code, request_time: elapsedSince(startedAtMs) };
  } finally {
    clients.close();
  }
}

/** Clients of one service. Unlike the global `fetch`, they ask on every port, such as 10080 or 6666. */
export function clientsOf({ service, base }: MeshRoot): ServiceClients {
  return new ServiceClients(new Map([[service, base]]), resolve('the command', {}, MESH));
}

/** Every edge below a service, each before those further down. */
export function edgesBelow(from: string, { response }: PingEntry): PingEdge[] {
  return servicesBelow(response).flatMap(([to, entry]) => [{ from, to, entry }, ...edgesBelow(to, entry)]);
}

/** Services that a service is connected to; empty if it did not answer. */
export function servicesBelow(answer: PingEntry['response']): [string, PingEntry][] {
  return 'process_time' in answer && answer.response !== 'pong' ? Object.entries(answer.response) : [];
}

/** The asked service, and the URL before its paths: `http://mesh:8000/users/ping/` is `users` at `http://mesh:8000`. */
export interface MeshRoot {
  readonly service: string;
  readonly base: string;
}

/** Default of the number of levels of a mesh that are asked for. */
export const DEFAULT_DEPTH = 3;

/** @throws {UsageError} for a URL that names no service, such as a bare origin */
export function parseServiceUrl(text: string): MeshRoot {
  const remedy = 'give http://host:port/<service>/';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new UsageError(`${JSON.stringify(text)} is not an http or https URL; ${remedy}`);
  if (url.username !== '' || url.password !== '')
    throw new UsageError(`the URL has credentials, which are not sent; ${remedy}`);
  if (url.search !== '' || url.hash !== '')
    throw new UsageError(`${JSON.stringify(text)} has a query or fragment; ${remedy}, and the depth as --depth`);
  const segments = url.pathname.split('/').filter((segment) => segment !== '');
  // A service may be called ping as well.
  if (segments.length > 1 && segments.at(-1) === 'ping') segments.pop();
  const service = segments.pop();
  if (!isServiceName(service)) throw new UsageError(`${JSON.stringify(text)} names no service; ${remedy}`);
  return { service, base: [url.origin, ...segments].join('/') };
}
