/** Clients of services without an application around them. */

import { resolve } from '../../src/base/options-check.js';
import { ServiceClients, type ServiceClient } from '../../src/mesh/service-client.js';
import type { CallSettings } from '../../src/mesh/call.js';
import { MESH } from '../../src/mesh/settings.js';

/** Clients for services, by name and URL. */
export function clientsOf(
  urls: Readonly<Record<string, string>>,
  options: Partial<CallSettings> = {},
): ServiceClients {
  return new ServiceClients(new Map(Object.entries(urls)), { ...resolve('a test', {}, MESH), ...options });
}

/** A client for one service, called billing. */
export function clientOf({ url }: { readonly url: string }, options?: Partial<CallSettings>): ServiceClient {
  return clientsOf({ billing: url }, options).client('billing');
}
