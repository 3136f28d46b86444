/* The endpoints for monitoring, on the main listener or on a private one (option `monitor`). */

import type { Handler } from '../answer/context.js';
import { toOpenApi, type OpenApiDocument, type OpenApiSource } from '../openapi/document.js';
import type { Router } from '../routing/router.js';
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
    main.reserve(path, monitor === null || endpoint === 'health' || endpoint === 'ping' ? handler : null);
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
  return () => {
    const routes = app.router.routes.length;
    if (made?.routes !== routes) made = { routes, document: toOpenApi(app) };
    // A copy: middleware may change the reply.
    return structuredClone(made.document);
  };
}
