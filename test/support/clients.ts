/** Clients of services without an application around them. */

import { resolve } from '../../src/base/options-check.js';
import { ServiceClients, type ServiceClient } from '../../src/mesh/service-client.js';
import type { CallSettings } from '../../src/mesh/call.js';
import { MESH } from '../../src/mesh/settings.js';
import { createSenders, type ServiceSender } from '../../src/mesh/service-sender.js';

/** Clients for services, by name and URL. */
export function clientsOf(
  urls: Readonly<Record<string, string>>,
  options: Partial<CallSettings> = {},
): ServiceClients<ServiceSender> {
  const settings = { ...resolve('a test', {}, MESH), ...options };
  return new ServiceClients(Object.keys(urls), () => createSenders(new Map(Object.entries(urls)), settings));
}

/** A client for one service, called billing. */
export function clientOf({ url }: { readonly url: string }, options?: Partial<CallSettings>): ServiceClient {
  return clientsOf({ billing: url }, options).client('billing');
}
