/**
 * An application as an OpenAPI document, 3.1 or 3.2 (https://spec.openapis.org).
 */

import { assertOptions, oneOf, STRING, type Kinds } from '../options-check.js';
import type { RouteInfo } from '../routing/router.js';
import { Components } from './components.js';
import { OpenApiError } from './error.js';
import { toOperation, type DocumentedRoute } from './operation.js';
import { shapeOf, toTemplate, type PathTemplate } from './path-template.js';

/** What a document is made of; a `Postern` is. */
export interface OpenApiSource {
  readonly name: string;
  readonly version: string;
  readonly router: { readonly routes: readonly RouteInfo[] };
}

/** How a document is made. */
export interface OpenApiOptions {
  /** Every route, or those that are public; all unless given. */
  scope?: 'all' | 'public' | undefined;
  /** 3.1 unless given. */
  version?: '3.1' | '3.2' | undefined;
  /** URLs under which the service can be reached. */
  servers?: readonly (string | URL)[] | undefined;
  /** The application's name unless given. */
  title?: string | undefined;
}

/** A document; JSON. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly servers?: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Readonly<Record<string, unknown>>>> };
}

const VERSIONS = { '3.1': '3.1.1', '3.2': '3.2.0' } as const;
const METHODS: readonly string[] = ['GET', 'PUT', 'POST', 'DELETE', 'OPTIONS', 'HEAD', 'PATCH', 'TRACE'];

const KINDS: Kinds<OpenApiOptions> = {
  scope: oneOf(['all', 'public']),
  version: oneOf(Object.keys(VERSIONS)),
  servers: {
    accepts: (value) => Array.isArray(value) && value.every((url) => URL.canParse(String(url))),
    give: 'a list of URLs',
  },
  title: STRING,
};

const ERROR_CODE = {
  type: 'object',
  required: ['name', 'value'],
  properties: { name: { type: 'string' }, value: { type: 'integer' } },
};
const FINDINGS = {
  type: 'array',
  description: 'What does not fit, of a request that does not.',
  items: {
    type: 'object',
    required: ['in', 'pointer', 'detail'],
    properties: {
      in: { enum: ['params', 'query', 'headers', 'body'] },
      pointer: { type: 'string', description: 'RFC 6901, as a URI fragment.' },
      detail: { type: 'string' },
    },
  },
};
const ERROR = {
  type: 'object',
  required: ['message', 'description', 'error_code'],
  properties: {
    message: { type: 'string' },
    description: { type: 'string' },
    error_code: ERROR_CODE,
    errors: FINDINGS,
  },
};
const PROBLEM = {
  type: 'object',
  description: 'Problem details (RFC 9457).',
  required: ['type', 'title', 'status', 'detail', 'error_code'],
  properties: {
    type: { type: 'string', format: 'uri-reference' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    error_code: ERROR_CODE,
    errors: FINDINGS,
  },
};

/**
 * @returns the same document for the same routes; monitoring endpoints are left out
 * @throws {TypeError} for what is no application, and for an unknown or invalid option
 * @throws {OpenApiError} for what a document can't say
 */
export function toOpenApi(app: OpenApiSource, options: OpenApiOptions = {}): OpenApiDocument {
  assertOptions('toOpenApi()', options, KINDS);
  const { scope = 'all', version = '3.1', servers, title = app.name } = options;
  const components = new Components();
  components.add('Error', ERROR);
  components.add('Problem', PROBLEM);
  const paths = new Paths(version);
  const operationIds = new Map<string, string>();
  for (const route of routesOf(app)) {
    if (scope === 'public' && !route.options.public) continue;
    assertUnique(route, operationIds);
    const { template, parameters } = paths.templateOf(route);
    const named = toTemplate(route.path).parameters.map((own, index) => ({
      ...own,
      name: parameters[index]?.name ?? own.name,
    }));
    paths.add(template, route, toOperation(route, named, components));
  }
  return {
    openapi: VERSIONS[version],
    info: { title, version: app.version },
    ...(servers === undefined ? {} : { servers: servers.map((url) => ({ url: String(url) })) }),
    paths: paths.items,
    components: { schemas: components.schemas },
  };
}

/** What a router holds of each route, also one of another copy of the package. */
interface Table {
  readonly entries: readonly (DocumentedRoute & { readonly pattern: string })[];
  readonly isReserved: (route: { readonly pattern: string }) => boolean;
}

function routesOf(app: OpenApiSource): (DocumentedRoute & { readonly pattern: string })[] {
  const router = app.router as unknown as Partial<Table> | undefined;
  if (!Array.isArray(router?.entries) || typeof router.isReserved !== 'function')
    throw new TypeError('toOpenApi() takes a Postern application');
  const table = router as Table;
  return table.entries.filter((route) => !table.isReserved(route));
}

function assertUnique({ method, path, options: { operationId } }: DocumentedRoute, taken: Map<string, string>): void {
  if (operationId === undefined) return;
  const other = taken.get(operationId);
  if (other !== undefined)
    throw new OpenApiError(path, `its operationId "${operationId}" is that of ${other}; rename one`);
  taken.set(operationId, `${method} ${path}`);
}

/** The `paths` of a document. */
class Paths {
  readonly items: Record<string, Record<string, unknown>> = {};
  readonly #version: keyof typeof VERSIONS;
  /** By pattern: the path as it was registered first. */
  readonly #templates = new Map<string, PathTemplate>();
  /** By what a template looks like without its names: the pattern that has it. */
  readonly #patterns = new Map<string, { readonly pattern: string; readonly path: string }>();

  constructor(version: keyof typeof VERSIONS) {
    this.#version = version;
  }

  /** @throws {OpenApiError} when a route with another pattern has the same template */
  templateOf({ path, pattern }: { readonly path: string; readonly pattern: string }): PathTemplate {
    const known = this.#templates.get(pattern);
    if (known !== undefined) return known;
    const made = toTemplate(path);
    const shape = shapeOf(made.template);
    const other = this.#patterns.get(shape);
    if (other !== undefined)
      throw new OpenApiError(path, `it and ${other.path} are one templated path, ${made.template}; change one of them`);
    this.#patterns.set(shape, { pattern, path });
    this.#templates.set(pattern, made);
    return made;
  }

  /** @throws {OpenApiError} for a method that the version does not have */
  add(template: string, { method, path }: DocumentedRoute, operation: Readonly<Record<string, unknown>>): void {
    const item = (this.items[template] ??= {});
    if (METHODS.includes(method) || (method === 'QUERY' && this.#version === '3.2'))
      item[method.toLowerCase()] = operation;
    else if (this.#version === '3.2')
      item['additionalOperations'] = { ...(item['additionalOperations'] as object | undefined), [method]: operation };
    else throw new OpenApiError(path, `OpenAPI ${this.#version} has no ${method}; 3.2 has`);
  }
}
