/// <reference types="node" preserve="true" />
/* The package entry `postern/openapi`: an application as an OpenAPI document. */

export { toOpenApi, type OpenApiDocument, type OpenApiOptions, type OpenApiSource } from './openapi/document.js';
export { OpenApiError } from './openapi/operation.js';
export type { RouteInfo } from './routing/router.js';
