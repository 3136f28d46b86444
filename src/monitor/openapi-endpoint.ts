/*
 * `GET /<name>/openapi/`: the OpenAPI document of the application.
 */

import type { Handler } from '../http/context.js';
import type { OpenApiDocument, OpenApiSource } from '../openapi/document.js';

/** @param app whose routes may still grow: the document is made again when they did */
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
