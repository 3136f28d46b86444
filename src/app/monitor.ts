/*
 * The endpoints for monitoring, and their private listener (option `monitor`).
 */

import type { Handler } from '../http/context.js';
import type { OpenApiDocument, OpenApiSource } from '../openapi/document.js';
import type { Router } from '../routing/router.js';
import type { Listening, ListenOptions, MonitorOptions } from './address.js';
import type { Listener } from './listener.js';

/**
 * Adds the monitoring endpoints. Health and ping are on both ports: a monitoring port that answers must not hide a main
 * port that does not.
 */
export function addMonitoringEndpoints(
  name: string,
  main: Router<Handler>,
  monitor: Listener | null,
  handlers: Readonly<Record<'health' | 'metrics' | 'openapi' | 'ping', Handler>>,
): void {
  for (const [endpoint, handler] of Object.entries(handlers)) {
    const path = `/${name}/${endpoint}/`;
    if (monitor === null || endpoint === 'health' || endpoint === 'ping') main.reserve(path, handler);
    monitor?.routes.router.reserve(path, handler);
  }
}

/**
 * The handler of `GET /<name>/openapi/`: the OpenAPI document of the application.
 *
 * @param app whose routes may still grow: the document is made again when they did
 */
export function createOpenApiEndpoint(app: OpenApiSource): Handler {
  let made: { readonly routes: number; readonly document: OpenApiDocument } | undefined;
  return async () => {
    const routes = app.router.routes.length;
    if (made?.routes !== routes) {
      // Loaded when it is asked for: a service that nobody asks starts without it.
      const { toOpenApi } = await import('../openapi/document.js');
      made = { routes, document: toOpenApi(app) };
    }
    return made.document;
  };
}

/**
 * Opens the listener for monitoring first, so that a start can be watched. If one cannot be opened, neither stays open.
 *
 * @param from where the port of the main listener came from, for messages
 */
export async function openListeners(
  main: Listener,
  where: ListenOptions,
  from: string,
  monitor: Listener | null,
  monitorWhere: MonitorOptions | null,
): Promise<Listening> {
  if (monitor === null || monitorWhere === null) return main.open(where, from);
  const address = await monitor.open(monitorWhere, 'monitor.port or MONITOR_PORT');
  try {
    return { ...(await main.open(where, from)), monitor: address };
  } catch (error) {
    await monitor.revoke();
    throw error;
  }
}
