/*
 * The configured listen address and the bound one.
 */

import type { AddressInfo } from 'node:net';
import { logSafely, type Logger } from '../base/log.js';
import { assertOptions, STRING, wholeNumber, type Kinds } from '../base/options-check.js';
import { SCOPE, type Scope, type ScopeOptions } from '../http/scope.js';

/** Where to listen. */
export interface ListenOptions extends ScopeOptions {
  /** Port to listen on. Default: 8000. 0: any free port. */
  port?: number | undefined;
  /** Host to listen on. Default: all interfaces. */
  host?: string | undefined;
}

/** The listener for monitoring; what is left out comes from `MONITOR_PORT` and `MONITOR_HOST`. */
export interface MonitorOptions {
  /** 0 picks a free one. */
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

const MONITOR: Kinds<MonitorOptions> = { port: wholeNumber(0, 65_535), host: STRING };
export const LISTEN: Kinds<ListenOptions> = { ...MONITOR, ...SCOPE };

/**
 * Where the listener for monitoring goes; null for none.
 *
 * @throws {TypeError} for an unknown option, no port, and an environment that holds none
 */
export function resolveMonitor(options: MonitorOptions | undefined, env: NodeJS.ProcessEnv): MonitorOptions | null {
  if (options !== undefined) assertOptions('monitor', options, MONITOR);
  const port = options?.port ?? portOf(env, 'MONITOR_PORT');
  const host = options?.host ?? (env['MONITOR_HOST'] || undefined);
  if (port !== undefined) return { port, host };
  if (options === undefined) return null;
  throw new TypeError('monitor has no port; give it one, or MONITOR_PORT');
}

/** The port in a variable; undefined if it is unset or empty. @throws {TypeError} for an invalid port */
export function portOf(env: NodeJS.ProcessEnv, variable: string): number | undefined {
  return numberIn(env, variable, 65_535, 'a number from 0 to 65535');
}

/** A time in ms in a variable; undefined if it is unset or empty. @throws {TypeError} for an invalid time */
export function delayOf(env: NodeJS.ProcessEnv, variable: string): number | undefined {
  return numberIn(env, variable, 999_999_999, 'ms, 0 or more');
}

function numberIn(env: NodeJS.ProcessEnv, variable: string, most: number, give: string): number | undefined {
  const { [variable]: text = '' } = env;
  if (text === '') return undefined;
  if (!/^\d{1,9}$/.test(text) || Number(text) > most)
    throw new TypeError(`${variable} is ${JSON.stringify(text)}; give ${give}`);
  return Number(text);
}

/** Warns about monitoring endpoints on a listener for the public, which does not serve them. */
export function warnIfUnreachable(logger: Logger, scope: Scope): void {
  const remedy = 'set the option monitor, or MONITOR_PORT';
  if (scope === 'public') logSafely(logger, 'warn', { scope }, `nothing can reach the monitoring endpoints; ${remedy}`);
}

/** The address that a server is bound to. */
export function addressOf({ address, family, port }: AddressInfo): Address {
  const host = address === '::' || address === '0.0.0.0' ? '127.0.0.1' : address;
  const authority = family === 'IPv6' && host.includes(':') ? `[${host}]` : host;
  return { url: `http://${authority}:${port}`, host: address, port };
}
