/** Clients of services without an application around them. */

import { ServiceClients, type ServiceClient } from '../../src/client/service-client.js';
import type { ConnectionOptions } from '../../src/mesh/call.js';
import { connectServices, type ServiceConnection } from '../../src/mesh/service-connection.js';

/** Clients for services, by name and URL. */
export function clientsOf(
  urls: Readonly<Record<string, string>>,
  options?: ConnectionOptions,
): ServiceClients<ServiceConnection> {
  return new ServiceClients(Object.keys(urls), async () => connectServices(new Map(Object.entries(urls)), options));
}

/** A client for one service, called billing. */
export function clientOf({ url }: { readonly url: string }, options?: ConnectionOptions): ServiceClient {
  return clientsOf({ billing: url }, options).client('billing');
}
