/* The clients of an application for its connected services. */

import { ServiceClients } from '../mesh/service-client.js';
import { serviceUrlsOf } from '../mesh/settings.js';
import type { CallSettings } from '../mesh/call.js';
import { createSenders, type ServiceSender } from '../mesh/service-sender.js';
import { formatUserAgent } from '../propagation/caller.js';
import type { ResolvedOptions } from './options.js';

/** @param observe gets each attempt of each call */
export function createClients(
  app: ResolvedOptions,
  observe: NonNullable<CallSettings['observe']>,
): ServiceClients<ServiceSender> {
  const urls = serviceUrlsOf(app.settings);
  const names = new Set([...urls.keys(), ...app.services.keys()]);
  const settings = { ...app, userAgent: formatUserAgent(app), observe };
  return new ServiceClients([...names], () => createSenders(urls, settings));
}

/** The services that the ping of the mesh asks, each with the path that is asked in place of its ping endpoint. */
export function pingedServices(
  names: readonly string[],
  connections: ResolvedOptions['connections'],
): Map<string, string | undefined> {
  const pinged = new Map<string, string | undefined>();
  for (const name of names) {
    const { ping } = connections.get(name) ?? {};
    if (ping !== false) pinged.set(name, ping);
  }
  return pinged;
}
