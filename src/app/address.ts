/* The configured listen address and the bound one. */

import type { AddressInfo } from 'node:net';
import { assertOptions, STRING, wholeNumber, type Kind, type Kinds } from '../base/options-check.js';
import { DEFAULT_PORT } from '../mesh/settings.js';
import { SCOPE, type ScopeOptions } from '../wire/scope.js';

/** Where to listen, and for whom. */
export interface ListenOptions extends ScopeOptions {
  /** Port to listen on. Default: 8000. 0: any free port. */
  port?: number | undefined;
  /** Host to listen on. Default: all interfaces. */
  host?: string | undefined;
}

/** A Unix socket to listen on. */
export interface PathOptions extends ScopeOptions {
  /** Path of the socket, `/run/users.sock`. It is removed when the application is closed. */
  path: string;
}

/** A socket to listen on that the parent process has opened, such as systemd. */
export interface DescriptorOptions extends ScopeOptions {
  /** File descriptor of the socket; the first one of systemd is 3. */
  fd: number;
}

/** One of the ways to say where to listen. */
export type Where = ListenOptions & Partial<Omit<PathOptions & DescriptorOptions, 'scope'>>;

/** The listener for monitoring; what is left out comes from `MONITOR_PORT` and `MONITOR_HOST`. */
export interface MonitorOptions {
  /** Port to listen on. 0: any free port. */
  port?: number | undefined;
  /** Host to listen on. Default: all interfaces. */
  host?: string | undefined;
}

/** Where a server listens. */
export interface Address {
  /** With the loopback address where it listens on all interfaces. */
  readonly url: string;
  /** The address on which it listens. */
  readonly host: string;
  /** The port on which it listens: the free one that was found for port 0. */
  readonly port: number;
}

/** A Unix socket on which a server listens. */
export interface PathAddress {
  /** A Unix socket has no URL. */
  readonly url: null;
  /** Path of the socket; null for an inherited one. */
  readonly path: string | null;
}

/** Where the monitoring endpoints are. */
export interface Monitored {
  /** Where its monitoring endpoints are, with the option `monitor`. */
  readonly monitor?: Address;
}

/** Where an application listens. */
export interface Listening extends Address, Monitored {}

/** The Unix socket on which an application listens. */
export interface ListeningOnPath extends PathAddress, Monitored {}

export const PORT: Kind = wholeNumber(0, 65_535);
const MONITOR: Kinds<MonitorOptions> = { port: PORT, host: STRING };
const PATH: Kind = { accepts: (value) => typeof value === 'string' && value !== '', give: 'the path of a socket' };
const LISTEN: Kinds<Where> = { ...MONITOR, ...SCOPE, path: PATH, fd: wholeNumber(0) };

/** Adds the default port, except to a path or a descriptor. */
export function withPort(where: Where): Where {
  const { path, fd, port = DEFAULT_PORT } = where;
  return path === undefined && fd === undefined ? { ...where, port } : where;
}

/** @throws {TypeError} for an unknown or wrong option, or two ways to say where */
export function assertWhere(what: string, options: Where, more: Kinds<object> = {}): void {
  assertOptions(what, options, { ...LISTEN, ...more });
  const { port, host, path, fd } = options;
  const ways = [port ?? host, path, fd].filter((way) => way !== undefined);
  if (ways.length > 1) throw new TypeError(`${what} got several of port and host, path, and fd; give one`);
}

/**
 * Where the listener for monitoring listens; null without one.
 *
 * @throws {TypeError} for an unknown option, no port, and an environment that holds none
 */
export function resolveMonitor(options: MonitorOptions | undefined, env: NodeJS.ProcessEnv): MonitorOptions | null {
  if (options !== undefined) assertOptions('monitor', options, MONITOR);
  const port = options?.port ?? numberOf(env, 'MONITOR_PORT', PORT);
  const host = options?.host ?? (env['MONITOR_HOST'] || undefined);
  if (port !== undefined) return { port, host };
  if (options === undefined) return null;
  throw new TypeError('monitor has no port; give it one, or MONITOR_PORT');
}

/** The number in a variable; undefined if it is unset or empty. @throws {TypeError} for any other text */
export function numberOf(env: NodeJS.ProcessEnv, variable: string, { accepts, give }: Kind): number | undefined {
  const { [variable]: text = '' } = env;
  if (text === '') return undefined;
  if (!/^\d+$/.test(text) || !accepts(Number(text)))
    throw new TypeError(`${variable} is ${JSON.stringify(text)}; give ${give}`);
  return Number(text);
}

/** The address that a server is bound to; node:net does not know the path of an inherited Unix socket. */
export function addressOf(bound: AddressInfo | string | null): Address | PathAddress {
  if (bound === null || typeof bound === 'string') return { url: null, path: bound };
  const { address, port } = bound;
  const host = address === '::' || address === '0.0.0.0' ? '127.0.0.1' : address;
  const authority = host.includes(':') ? `[${host}]` : host;
  return { url: `http://${authority}:${port}`, host: address, port };
}
