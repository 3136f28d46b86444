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
  const { settings, services, logger, maxConnectionAge, maxServiceRequests } = app;
  const urls = serviceUrlsOf(settings);
  const options = { maxConnectionAge, maxServiceRequests, logger, userAgent: formatUserAgent(app), observe };
  return new ServiceClients([...new Set([...urls.keys(), ...services.keys()])], () =>
    createSenders(urls, options, services),
  );
}
