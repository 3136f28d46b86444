/* The configured listen address and the bound one. */

import type { AddressInfo } from 'node:net';
import { assertOptions, STRING, wholeNumber, type Kind, type Kinds } from '../base/options-check.js';
import { SCOPE, type ScopeOptions } from '../wire/scope.js';

/** Where to listen, and for whom. */
export interface ListenOptions extends ScopeOptions {
  /** Port to listen on. Default: 8000. 0: any free port. */
  port?: number | undefined;
  /** Host to listen on. Default: all interfaces. */
  host?: string | undefined;
}

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

/** Where an application listens. */
export interface Listening extends Address {
  /** Where its monitoring endpoints are, with the option `monitor`. */
  readonly monitor?: Address;
}

export const PORT: Kind = wholeNumber(0, 65_535);
const MONITOR: Kinds<MonitorOptions> = { port: PORT, host: STRING };
export const LISTEN: Kinds<ListenOptions> = { ...MONITOR, ...SCOPE };

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
  if (!/^\d{1,9}$/.test(text) || !accepts(Number(text)))
    throw new TypeError(`${variable} is ${JSON.stringify(text)}; give ${give}`);
  return Number(text);
}

/** The address that a server is bound to. */
export function addressOf({ address, port }: AddressInfo): Address {
  const host = address === '::' || address === '0.0.0.0' ? '127.0.0.1' : address;
  const authority = host.includes(':') ? `[${host}]` : host;
  return { url: `http://${authority}:${port}`, host: address, port };
}
