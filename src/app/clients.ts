/* The clients of an application for its connected services. */

import { FRAMEWORK_VERSION } from '../base/version.js';
import { ServiceClients } from '../client/service-client.js';
import { connectionsOf } from '../client/settings.js';
import type { ConnectionOptions } from '../mesh/call.js';
import type { ServiceConnection } from '../mesh/service-connection.js';
import type { ResolvedOptions } from './options.js';

/** @param observe gets each attempt of each call */
export function createClients(
  { name, version, settings, services, maxConnectionAge, maxServiceRequests }: ResolvedOptions,
  observe: NonNullable<ConnectionOptions['observe']>,
): ServiceClients<ServiceConnection> {
  const urls = connectionsOf(settings);
  const userAgent = `${name}/${version.replace(/[^\w.~+-]+/g, '_')} postern/${FRAMEWORK_VERSION}`;
  const options = { maxConnectionAge, maxServiceRequests, userAgent, observe };
  return new ServiceClients([...new Set([...urls.keys(), ...services.keys()])], async () => {
    const { connectServices } = await import('../mesh/service-connection.js');
    return connectServices(urls, options, services);
  });
}
