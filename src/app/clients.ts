/* The clients of an application for its connected services. */

import { FRAMEWORK_VERSION } from '../base/version.js';
import { ServiceClients } from '../mesh/service-client.js';
import { serviceUrlsOf } from '../mesh/settings.js';
import type { CallSettings } from '../mesh/call.js';
import { createSenders, type ServiceSender } from '../mesh/service-sender.js';
import type { ResolvedOptions } from './options.js';

/** @param observe gets each attempt of each call */
export function createClients(
  { name, version, settings, services, maxConnectionAge, maxServiceRequests }: ResolvedOptions,
  observe: NonNullable<CallSettings['observe']>,
): ServiceClients<ServiceSender> {
  const urls = serviceUrlsOf(settings);
  const userAgent = `${name}/${version.replace(/[^\w.~+-]+/g, '_')} postern/${FRAMEWORK_VERSION}`;
  const options = { maxConnectionAge, maxServiceRequests, userAgent, observe };
  return new ServiceClients([...new Set([...urls.keys(), ...services.keys()])], () =>
    createSenders(urls, options, services),
  );
}
