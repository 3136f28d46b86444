/** Clients of services without an application around them. */

import { ServiceClients, type ServiceClient } from '../../src/mesh/service-client.js';
import type { CallSettings } from '../../src/mesh/call.js';
import { createSenders, type ServiceSender } from '../../src/mesh/service-sender.js';

/** Clients for services, by name and URL. */
export function clientsOf(
  urls: Readonly<Record<string, string>>,
  options?: CallSettings,
): ServiceClients<ServiceSender> {
  return new ServiceClients(Object.keys(urls), () => createSenders(new Map(Object.entries(urls)), options));
}

/** A client for one service, called billing. */
export function clientOf({ url }: { readonly url: string }, options?: CallSettings): ServiceClient {
  return clientsOf({ billing: url }, options).client('billing');
}
