/**
 * Where an application listens: as it is told, and as it came to be.
 */

import type { AddressInfo } from 'node:net';
import { assertOptions, STRING, wholeNumber, type Kinds } from '../options-check.js';

/** Where to listen. */
export interface ListenOptions {
  /** 8000 unless given; 0 picks a free one. */
  port?: number;
  /** All interfaces unless given. */
  host?: string;
}

/** The listener for monitoring; what is left out comes from `MONITOR_PORT` and `MONITOR_HOST`. */
export interface MonitorOptions {
  /** 0 picks a free one. */
  port?: number;
  /** All interfaces unless given. */
  host?: string;
}

/** Where a server listens. */
export interface Address {
  /** With the loopback address where it listens on all interfaces. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
}

/** @internal */
export const LISTEN: Kinds<ListenOptions> = { port: wholeNumber(0, 65_535), host: STRING };

/**
 * Where the listener for monitoring goes; null for none.
 *
 * @throws {TypeError} for an unknown option, no port, and an environment that holds none
 *
 * @internal
 */
export function resolveMonitor(options: MonitorOptions | undefined, env: NodeJS.ProcessEnv): MonitorOptions | null {
  if (options !== undefined) assertOptions('monitor', options, LISTEN);
  const port = options?.port ?? portOf('MONITOR_PORT', env['MONITOR_PORT']);
  const host = options?.host ?? (env['MONITOR_HOST'] || undefined);
  if (port !== undefined) return host === undefined ? { port } : { port, host };
  if (options === undefined) return null;
  throw new TypeError('monitor has no port; give it one, or MONITOR_PORT');
}

/** @throws {TypeError} for a variable that is no port; an empty one is none @internal */
export function portOf(variable: string, text = ''): number | undefined {
  if (text === '') return undefined;
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new TypeError(`${variable} is ${JSON.stringify(text)}; give a number from 0 to 65535`);
  return port;
}

/** What a server says of where it listens. @internal */
export function addressOf({ address, family, port }: AddressInfo): Address {
  const host = address === '::' || address === '0.0.0.0' ? '127.0.0.1' : address;
  const authority = family === 'IPv6' && host.includes(':') ? `[${host}]` : host;
  return { url: `http://${authority}:${port}`, host: address, port };
}
