/*
 * Reads `x-forwarded-for` as far as its entries come from trusted proxies. Loaded with the option `trustProxy`.
 */

import type { BlockList } from 'node:net';
import { builtin } from '../base/builtin.js';

/** Finds the client's address from the socket's and `x-forwarded-for`. */
export interface AddressResolver {
  (socketAddress: string, forwardedFor: string | readonly string[] | undefined): string;
  /** Whether the `x-forwarded-*` headers that come from this address are believed. */
  readonly isTrusted: (socketAddress: string) => boolean;
}

/**
 * @param toPlainAddress turns an IPv4 address in IPv6 notation into IPv4
 * @throws {TypeError} for a network that is neither a CIDR nor an address
 */
export function createTrustingResolver(
  networks: readonly string[],
  toPlainAddress: (address: string) => string,
): AddressResolver {
  const { BlockList, isIP, isIPv4 } = builtin('node:net');
  const trusted = new BlockList();
  for (const network of networks) addNetwork(trusted, network, isIP);
  const isTrusted = (address: string): boolean =>
    isIP(address) !== 0 && trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');

  const resolve = (socketAddress: string, forwardedFor: string | readonly string[] = ''): string => {
    const list = String(forwardedFor);
    let client = toPlainAddress(socketAddress);
    let end = list.length;
    while (end >= 0 && isTrusted(client)) {
      const comma = end === 0 ? -1 : list.lastIndexOf(',', end - 1);
      const entry = toPlainAddress(list.slice(comma + 1, end).trim());
      if (isIP(entry) === 0) break;
      client = entry;
      end = comma;
    }
    return client;
  };
  return Object.assign(resolve, { isTrusted: (address: string) => isTrusted(toPlainAddress(address)) });
}

function addNetwork(list: BlockList, network: string, isIP: (text: string) => number): void {
  const [address = '', prefix, ...rest] = String(network).split('/');
  const family = isIP(address);
  const bits = family === 4 ? 32 : 128;
  const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : -1;
  if (family === 0 || rest.length > 0 || length < 0 || length > bits) {
    throw new TypeError(`trustProxy holds ${JSON.stringify(network)}; give CIDRs such as "10.0.0.0/8"`);
  }
  list.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6');
}
