/* An application as an OpenAPI document, 3.1 or 3.2 (https://spec.openapis.org). */

import { assertOptions, listOf, oneOf, STRING, type Kinds } from '../base/options-check.js';
import { OPENAPI, type OpenApiSettings } from '../endpoint/document-settings.js';
import type { JsonSchema } from '../payload/json-schema.js';
import type { Route, RouteInfo, Router } from '../routing/router.js';
import { Components } from './components.js';
import { defined, mergeJson, OpenApiError, shapeOf, toOperation, toTemplate } from './operation.js';

/** Source of a document, such as a `Postern`. */
export interface OpenApiSource {
  /** The name of the service. */
  readonly name: string;
  /** The version of the service. */
  readonly version: string;
  /** The route table. */
  readonly router: { readonly routes: readonly RouteInfo[] };
  /** @internal */
  readonly [OPENAPI]?: OpenApiSettings;
}

/** How a document is made. */
export interface OpenApiOptions {
  /** Whether the document has every route, or only the public routes. Default: `all`. */
  scope?: 'all' | 'public' | undefined;
  /** Version of OpenAPI. Default: 3.1. */
  version?: '3.1' | '3.2' | undefined;
  /** URLs under which the service can be reached. */
  servers?: readonly (string | URL)[] | undefined;
  /** Title of the document. Default: the application's name. */
  title?: string | undefined;
}

/** A document; JSON. */
export interface OpenApiDocument {
  /** The version of OpenAPI: `3.1.1` or `3.2.0`. */
  readonly openapi: string;
  /** Title and version of the service. */
  readonly info: { readonly title: string; readonly version: string };
  /** The URLs in the option `servers`. */
  readonly servers?: readonly { readonly url: string }[];
  /** The operations, by path template and method in lower case. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** The schemas that operations refer to. */
  readonly components: { readonly schemas: Readonly<Record<string, Readonly<Record<string, unknown>>>> };
}

const VERSIONS = { '3.1': '3.1.1', '3.2': '3.2.0' } as const;
const METHODS: readonly string[] = ['GET', 'PUT', 'POST', 'DELETE', 'OPTIONS', 'HEAD', 'PATCH', 'TRACE'];

const KINDS: Kinds<OpenApiOptions> = {
  scope: oneOf(['all', 'public']),
  version: oneOf(Object.keys(VERSIONS)),
  servers: listOf((url) => URL.canParse(String(url)), 'a list of URLs, such as ["https://api.example"]'),
  title: STRING,
};

const TEXT = { type: 'string' };
const INTEGER = { type: 'integer' };

/** The schema of an object with members that are always there, and others. */
function objectOf(required: JsonSchema, others: JsonSchema = {}, description?: string): JsonSchema {
  const words = description === undefined ? {} : { description };
  return { type: 'object', ...words, required: Object.keys(required), properties: { ...required, ...others } };
}

const ERROR_CODE = objectOf({ name: TEXT, value: INTEGER });
const FINDINGS = {
  type: 'array',
  description: 'The findings, for a request that does not fit its schemas.',
  items: objectOf({
    in: { enum: ['params', 'query', 'headers', 'body'] },
    pointer: { ...TEXT, description: 'RFC 6901, as a URI fragment.' },
    detail: TEXT,
  }),
};
const ERROR = objectOf({ message: TEXT, description: TEXT, error_code: ERROR_CODE }, { errors: FINDINGS });
const PROBLEM = objectOf(
  { type: { ...TEXT, format: 'uri-reference' }, title: TEXT, status: INTEGER, detail: TEXT, error_code: ERROR_CODE },
  { errors: FINDINGS },
  'Problem details (RFC 9457).',
);

/**
 * Describes an application as an OpenAPI document.
 *
 * @returns the same document for the same routes; monitoring endpoints are left out
 * @throws {TypeError} when `app` is not an application, and for an unknown or invalid option
 * @throws {OpenApiError} when OpenAPI can't describe a route
 *
 * @example
 * import { toOpenApi } from 'postern/openapi';
 * console.log(JSON.stringify(toOpenApi(app, { scope: 'public' })));
 */
export function toOpenApi(app: OpenApiSource, options: OpenApiOptions = {}): OpenApiDocument {
  assertOptions('toOpenApi()', options, KINDS);
  const { scope = 'all', version = '3.1', servers, title } = options;
  const routes = routesOf(app);
  const { extras = {}, sent = 'input' } = app[OPENAPI] ?? {};
  const components = new Components({ Error: ERROR, Problem: PROBLEM });
  const paths: Record<string, Record<string, unknown> & { additionalOperations?: Record<string, unknown> }> = {};
  const operationIds = new Map<unknown, string>();
  // The templates, each with the names of the route that came first, by their text without names.
  const templates = new Map<string, ReturnType<typeof toTemplate> & Pick<Route, 'path' | 'pattern'>>();
  for (const route of routes) {
    const { method, path, pattern, exposure, options: own } = route;
    if ((scope === 'public' && !exposure.public) || own.openapi === false) continue;
    const given = toTemplate(path);
    const { template } = given;
    const shape = shapeOf(template);
    const known = templates.get(shape) ?? { ...given, path, pattern };
    if (known.pattern !== pattern)
      throw new OpenApiError(path, `it and ${known.path} are one templated path, ${template}; change one of them`);
    templates.set(shape, known);
    const parameters = given.parameters.map((each, i) => ({ ...each, name: known.parameters[i]?.name ?? each.name }));
    const item = (paths[known.template] ??= {});
    const operation = toOperation(route, parameters, components, sent);
    const { operationId } = operation;
    const twin = operationIds.get(operationId);
    if (twin !== undefined)
      throw new OpenApiError(path, `its operationId "${String(operationId)}" is also used by ${twin}; rename one`);
    if (operationId !== undefined) operationIds.set(operationId, `${method} ${path}`);
    if (METHODS.includes(method) || (method === 'QUERY' && version === '3.2')) item[method.toLowerCase()] = operation;
    else if (version === '3.1')
      throw new OpenApiError(path, `OpenAPI 3.1 has no ${method}; use 3.2, or leave the route out by openapi: false`);
    else (item.additionalOperations ??= {})[method] = operation;
  }
  const overrides = defined({ info: defined({ title }), servers: servers?.map((url) => ({ url: String(url) })) });
  const added = mergeJson(extras, overrides);
  const own: OpenApiDocument = {
    openapi: VERSIONS[version],
    info: { title: app.name, version: app.version },
    // In this place of the document.
    ...defined({ servers: added.servers }),
    paths,
    components: { schemas: components.schemas },
  };
  // A copy: to change the document changes nothing that another one is made of.
  return JSON.parse(JSON.stringify(mergeJson(own, added))) as OpenApiDocument;
}

function routesOf(app: OpenApiSource | null | undefined): Route[] {
  // The application may come from another copy of the package, or from none.
  const table = app?.router as Router | undefined;
  if (!Array.isArray(table?.entries) || typeof table.isReserved !== 'function')
    throw new TypeError('toOpenApi() takes a Postern application');
  return table.entries.filter((route) => !table.isReserved(route));
}
