/*
 * The URL of a request, as its client knows it.
 */

import type { IncomingMessage } from 'node:http';
import { HttpError } from '../base/errors.js';
import type { AddressResolver } from './client-address.js';
import { isHost, type Target } from './request.js';

/** @throws {HttpError} 400 when the host can't be part of a URL */
export function requestUrl(req: IncomingMessage, { path, search, authority }: Target, addresses: AddressResolver): URL {
  const { socket, headers } = req;
  const isProxied = addresses.isTrusted(socket.remoteAddress ?? '');
  const scheme = isProxied ? last(headers['x-forwarded-proto'])?.toLowerCase() : undefined;
  const forwarded = isProxied ? last(headers['x-forwarded-host']) : undefined;
  const own = 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http';
  const host =
    forwarded !== undefined && isHost(forwarded) ? forwarded : (authority ?? headers.host ?? ownAddress(req));
  // Put together as text: resolved against a base, a path of `//name/` would name another host.
  const url = `${scheme === 'http' || scheme === 'https' ? scheme : own}://${host}${path === '*' ? '' : path}`;
  try {
    return new URL(search === '' ? url : `${url}?${search}`);
  } catch {
    throw new HttpError(400, 'The Host header is malformed.');
  }
}

/** The last entry of a list, which is the nearest proxy's: each proxy appends its own entry. */
function last(header: string | string[] | undefined): string | undefined {
  const text = String(header ?? '');
  const entry = text.slice(text.lastIndexOf(',') + 1).trim();
  return entry === '' ? undefined : entry;
}

/** The address that the client connected to, for a request of HTTP/1.0, which needs no `Host`. */
function ownAddress({ socket: { localAddress = 'localhost', localPort = 80 } }: IncomingMessage): string {
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
