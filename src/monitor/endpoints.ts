/* The table of the monitoring endpoints, and how they are added to the listeners of an application. */

import type { Context, Handler } from '../answer/context.js';
import type { Logger } from '../base/log.js';
import { toOpenApi, type OpenApiDocument, type OpenApiSource } from '../openapi/document.js';
import type { Router } from '../routing/router.js';
import type { Story } from '../story/story.js';
import type { Exchange } from '../wire/exchange.js';
import { guard } from './guard.js';
import type { Health } from './health.js';
import { createLogLevel } from './log-level.js';
import { createMetricsEndpoint, type ServiceMetrics } from './metrics-endpoint.js';
import type { MonitoringSettings } from './monitoring-options.js';
import { createPing, type PingOptions } from './ping.js';
import { createProfile } from './profile.js';
import { createRequests } from './requests.js';
import type { Tasks } from './tasks.js';

/** The parts of an application that its endpoints report on. */
interface Monitored extends PingOptions, Pick<MonitoringSettings, 'diagnostics'> {
  readonly logger: Logger;
  readonly app: OpenApiSource;
  readonly health: Health;
  readonly metrics: ServiceMetrics;
  readonly tasks: Tasks;
  readonly story: Story;
  /** The requests of the main listener that are in flight. */
  readonly exchanges: ReadonlySet<Exchange<Context>>;
}

interface MonitoringEndpoint {
  /** Default: GET. */
  readonly method?: string;
  /**
   * `both`: the main listener and the one of the option `monitor`. `one`: the `monitor` listener, else the main one.
   * `private`: only the `monitor` listener; without it the endpoint does not exist.
   */
  readonly listener: 'both' | 'one' | 'private';
  /** @returns null if the options turn the endpoint off */
  readonly create: (of: Monitored) => Handler | null;
}

/**
 * The monitoring endpoints by name; the path is `/<service>/<name>/`. No endpoint of this table is public, traced,
 * refused under load or counted in alerts, and its successful requests are not in the access log.
 */
export const MONITORING_ENDPOINTS: Readonly<Record<string, MonitoringEndpoint>> = {
  // On both: a monitoring port that answers must not hide a main port that does not.
  health: { listener: 'both', create: ({ health }) => () => health.answer() },
  'log-level': {
    method: 'PUT',
    listener: 'private',
    create: ({ diagnostics, logger }) => {
      const handler = createLogLevel(logger);
      return handler && guard(diagnostics?.token, handler);
    },
  },
  metrics: { listener: 'one', create: ({ metrics, tasks }) => createMetricsEndpoint(metrics, tasks) },
  openapi: { listener: 'one', create: ({ app }) => createOpenApiEndpoint(app) },
  ping: { listener: 'both', create: createPing },
  profile: {
    method: 'POST',
    listener: 'private',
    create: ({ diagnostics, logger }) => diagnostics && guard(diagnostics.token, createProfile(logger)),
  },
  requests: { listener: 'private', create: ({ story, exchanges }) => createRequests(story, exchanges) },
};

/** @param monitor the routes of the listener of the option `monitor`; null without one */
export function addMonitoringEndpoints(
  name: string,
  main: Router<Handler>,
  monitor: Router<Handler> | null,
  of: Monitored,
): void {
  for (const [endpoint, { method = 'GET', listener, create }] of Object.entries(MONITORING_ENDPOINTS)) {
    if (listener === 'private' && monitor === null) continue;
    const handler = create(of);
    if (handler === null) continue;
    const path = `/${name}/${endpoint}/`;
    monitor?.reserve(method, path, handler);
    if (listener !== 'private') main.reserve(method, path, listener === 'both' || monitor === null ? handler : null);
  }
}

/**
 * The handler of `GET /<name>/openapi/`: the OpenAPI document of the application.
 *
 * @param app whose routes may still grow: the document is made again when they did
 */
function createOpenApiEndpoint(app: OpenApiSource): Handler {
  let made: { readonly routes: number; readonly document: OpenApiDocument } | undefined;
  return () => {
    const routes = app.router.routes.length;
    if (made?.routes !== routes) made = { routes, document: toOpenApi(app) };
    // A copy: middleware may change the reply.
    return structuredClone(made.document);
  };
}
