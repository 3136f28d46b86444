/* The package entry `postern/openapi`: an application as an OpenAPI document. */

export { toOpenApi } from '../openapi/document.js';
export type { OpenApiDocument, OpenApiOptions, OpenApiSource } from '../openapi/document.js';
export { OpenApiError } from '../openapi/path-template.js';
