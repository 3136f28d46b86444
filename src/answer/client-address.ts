/*
 * The address of a client and the URL that it asked for, also behind proxies.
 *
 * Only addresses in the configured networks are believed, and compared as numbers, never as text.
 */

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { builtin } from '../base/builtin.js';
import { HttpError } from '../base/errors.js';
import { type Target } from './target.js';
import { HOST } from '../wire/head.js';

/** Whether the `x-forwarded-*` headers that come from a peer are believed: an address, or {@link UNIX}. */
export type ProxyTrust = (peer: string) => boolean;

/** The peer of a Unix socket, which has no address. */
const UNIX = 'unix';

/**
 * Compiles the `trustProxy` option.
 *
 * @param networks CIDRs or single addresses, `['10.0.0.0/8', '::1']`, and `unix` for peers of Unix sockets
 * @throws {TypeError} for one that is neither
 */
export function trustNetworks(networks: readonly string[] = []): ProxyTrust {
  if (networks.length === 0) return () => false;
  const { BlockList, isIP, isIPv4 } = builtin('node:net');
  const trusted = new BlockList();
  for (const network of networks) {
    if (network === UNIX) continue;
    const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(network) ?? [];
    const family = isIP(address);
    const bits = family === 4 ? 32 : 128;
    const length = Number(prefix ?? bits);
    if (family === 0 || length > bits)
      throw new TypeError(`trustProxy holds ${JSON.stringify(network)}; give CIDRs such as "10.0.0.0/8", or "unix"`);
    trusted.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6');
  }
  return (peer) => {
    if (peer === UNIX) return networks.includes(UNIX);
    const address = toPlainAddress(peer);
    return isIP(address) !== 0 && trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  };
}

/** The address of a peer as the socket shows it; `unix` on a Unix socket, empty if it is not known any more. */
export function peerOf({ remoteAddress, localAddress, destroyed }: Peer): string {
  // A client that has reset its TCP connection leaves no remote address either, but a local one.
  return remoteAddress ?? (localAddress === undefined && destroyed !== true ? UNIX : '');
}

type Peer = Pick<Partial<Socket>, 'remoteAddress' | 'localAddress' | 'destroyed'>;

/**
 * Walks from the socket's address through `x-forwarded-for`, from the right, as long as addresses are trusted. Returns
 * the first untrusted address, or the leftmost one if all are trusted. An entry that is not an address ends the walk.
 * Empty for the peer of a Unix socket.
 */
export function clientAddress(
  { socket, headers }: Pick<IncomingMessage, 'headers'> & { readonly socket: Peer },
  isTrusted: ProxyTrust,
): string {
  let client = toPlainAddress(peerOf(socket));
  let rest = String(headers['x-forwarded-for'] ?? '');
  while (isTrusted(client)) {
    const entry = toPlainAddress(last(rest));
    if (builtin('node:net').isIP(entry) === 0) break;
    client = entry;
    rest = rest.slice(0, Math.max(0, rest.lastIndexOf(',')));
  }
  return client === UNIX ? '' : client;
}

/** IPv4 as such, also where a dual-stack socket shows it as IPv6 (RFC 4291, section 2.5.5.2). */
export function toPlainAddress(address: string): string {
  return /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(address)?.[1] ?? address;
}

/** The URL of a request. @throws {HttpError} 400 when the host can't be part of a URL */
export function requestUrl(req: IncomingMessage, target: Target, isTrusted: ProxyTrust): URL {
  const { path, search } = target;
  // Put together as text: resolved against a base, a path of `//name/` would name another host.
  const url = `${requestOrigin(req, target, isTrusted)}${path === '*' ? '' : path}`;
  try {
    return new URL(search === '' ? url : `${url}?${search}`);
  } catch {
    throw new HttpError(400, 'The Host header is malformed.');
  }
}

/** The beginning of a request's URL, `https://shop.example:8443`; the host may still be malformed. */
export function requestOrigin(req: IncomingMessage, { authority }: Target, isTrusted: ProxyTrust): string {
  const { socket, headers } = req;
  const isProxied = isTrusted(peerOf(socket));
  const scheme = isProxied ? last(headers['x-forwarded-proto']).toLowerCase() : '';
  const forwarded = isProxied ? last(headers['x-forwarded-host']) : '';
  const own = 'encrypted' in socket && socket.encrypted === true ? 'https' : 'http';
  const host = HOST.test(forwarded) ? forwarded : (authority ?? headers.host ?? ownAddress(req));
  return `${scheme === 'http' || scheme === 'https' ? scheme : own}://${host}`;
}

/** The last entry of a list, which is the nearest proxy's: each proxy appends its own entry. Empty without a list. */
function last(list: string | string[] | undefined): string {
  const text = String(list ?? '');
  return text.slice(text.lastIndexOf(',') + 1).trim();
}

/** The address that the client connected to, for a request of HTTP/1.0, which needs no `Host`. */
function ownAddress({ socket: { localAddress = 'localhost', localPort = 80 } }: IncomingMessage): string {
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
