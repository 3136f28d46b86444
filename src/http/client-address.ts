/*
 * The address of a client whose requests come through trusted proxies.
 *
 * Only addresses in the configured networks are believed, and compared as numbers, never as text.
 */

import * as trustedProxies from './trusted-proxies.js';
import type { AddressResolver } from './trusted-proxies.js';

export type { AddressResolver } from './trusted-proxies.js';

/**
 * Compiles the `trustProxy` option.
 *
 * The resolver walks `x-forwarded-for` from the right while the address before is trusted: it returns the rightmost
 * untrusted one, or the leftmost if all are trusted. An entry that is not an address ends the walk.
 *
 * @param networks CIDRs or single addresses, `['10.0.0.0/8', '::1']`
 * @throws {TypeError} for one that is neither
 */
export function createAddressResolver(networks: readonly string[]): AddressResolver {
  if (networks.length === 0)
    return Object.assign((socketAddress: string) => toPlainAddress(socketAddress), { isTrusted: () => false });
  return trustedProxies.createTrustingResolver(networks, toPlainAddress);
}

/** IPv4 as such, also where a dual-stack socket shows it as IPv6 (RFC 4291, section 2.5.5.2). */
function toPlainAddress(address: string): string {
  return /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(address)?.[1] ?? address;
}
