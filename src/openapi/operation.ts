/* One route as an operation: its path as a template, its parameters, its body, its replies. */

import { builtin } from '../base/builtin.js';
import { InvalidQueryParams, InvalidRequest } from '../base/errors.js';
import { isRecord } from '../base/options-check.js';
import { compilePath } from '../endpoint/pattern.js';
import type { ErrorType } from '../endpoint/route-options.js';
import { isSchema, PARTS, type MaybeResponse, type Part } from '../endpoint/schemas.js';
import { COMBINING, asList, appliedSchemas, toJsonSchema, type JsonSchema } from '../payload/json-schema.js';
import { propsOf } from '../payload/standard-schema.js';
import type { Route } from '../routing/router.js';
import type { Components } from './components.js';

const { STATUS_CODES } = builtin('node:http');

type Json = Readonly<Record<string, unknown>>;

/** One parameter of a path. */
interface PathParameter {
  /** In the template. */
  readonly name: string;
  /** In the route. */
  readonly routeName: string;
  /** Pattern that matches its whole segment; undefined for anything. */
  readonly pattern: string | undefined;
}

/** @throws {OpenApiError} for a static segment that a template would take for a parameter */
export function toTemplate(path: string): { template: string; parameters: readonly PathParameter[] } {
  const parameters: PathParameter[] = [];
  const segments = compilePath(path).map((segment) => {
    if (segment.kind === 'static') {
      if (/[{}?#]/.test(segment.text)) throw new OpenApiError(path, 'a template has no { } ? # of its own; rename it');
      return segment.text;
    }
    const routeName = segment.name;
    // A bare `*` has no name, and a template needs one.
    const name = routeName === '*' ? freeName('rest', parameters.map((other) => other.name)) : routeName;
    const pattern = segment.kind === 'param' ? segment.constraint?.pattern : undefined;
    parameters.push({ name, routeName, pattern: pattern === undefined ? undefined : `^${pattern}$` });
    return `{${name}}`;
  });
  return { template: `/${segments.join('/')}`, parameters };
}

/** A name that is not taken: `rest`, or `rest_` next to a `rest`. */
function freeName(name: string, taken: readonly string[]): string {
  return taken.includes(name) ? freeName(`${name}_`, taken) : name;
}

/** The shape of a template: equal for templates that differ only in the names of their parameters. */
export function shapeOf(template: string): string {
  return template.replace(/\{[^}]*\}/g, '{}');
}

/** A route that the document can't describe; nothing of the document is given out then. */
export class OpenApiError extends Error {
  /** The path of the route as registered: `/users/:id`. */
  readonly route: string;
  /** The part that OpenAPI can't describe, and how to change it. */
  readonly reason: string;

  constructor(route: string, reason: string, options?: ErrorOptions) {
    super(`${route}: ${reason}`, options);
    this.name = 'OpenApiError';
    this.route = route;
    this.reason = reason;
  }
}

/** Headers that must not be parameters: OpenAPI describes them elsewhere ("Parameter Object", `name`). */
const OWN_HEADERS: ReadonlySet<string> = new Set(['accept', 'content-type']);

/**
 * @param parameters of the path, under the names of the template
 * @param sent the side of a `response` schema that is sent
 * @throws {OpenApiError} when a schema can't be converted
 * @internal
 */
export function toOperation(
  { method, path, options, exposure }: Route,
  parameters: readonly PathParameter[],
  components: Components,
  sent: 'input' | 'output',
): Json {
  const { summary, description, tags = [], operationId, deprecated = false, errors = [], body, response } = options;
  /** One side of a schema; undefined without JSON Schema. */
  const schemaOf = (part: string, given: unknown): JsonSchema | undefined => {
    const converter = propsOf(given)?.jsonSchema;
    if (converter === undefined) return undefined;
    const name = `${method.toLowerCase()}${path.replace(/[^A-Za-z0-9]+/g, '_')}_${part.replace(' ', '_')}`;
    try {
      return components.lift(toJsonSchema(converter, part.startsWith('response') ? sent : 'input'), name);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new OpenApiError(path, `the schema of its ${part} has no JSON Schema: ${reason}`, { cause });
    }
  };
  const isChecked = PARTS.some((part) => options[part] !== undefined);
  const membersOf = (part: Part): Members => collectMembers(schemaOf(part, options[part]), { components });
  const headers = membersOf('headers');
  if (headers.isUnion) throw new OpenApiError(path, 'its headers are a union; declare one object with all of them');
  const all = [
    ...pathParameters(parameters, options.params, membersOf('params')),
    ...queryParameters(membersOf('query'), exposure.params),
    ...headerParameters(headers),
  ];
  const content = { 'application/json': { schema: schemaOf('body', body) ?? {} } };
  const operation = {
    ...defined({ operationId, summary, description }),
    ...(tags.length === 0 ? {} : { tags }),
    ...(deprecated === false ? {} : { deprecated: true }),
    ...(exposure.public ? { 'x-public': true } : {}),
    ...(all.length === 0 ? {} : { parameters: all }),
    ...(body === undefined ? {} : { requestBody: { required: !takesNothing(body), content } }),
    responses: {
      ...successes(response, schemaOf, { components }),
      ...declaredErrors([
        ...errors,
        ...(isChecked ? [InvalidRequest] : []),
        ...(exposure.params === null ? [] : [InvalidQueryParams]),
      ]),
      default: { description: 'An error.', content: errorContent([]) },
    },
  };
  return mergeJson(operation, options.openapi || {});
}

function pathParameters(parameters: readonly PathParameter[], given: unknown, { properties }: Members): Json[] {
  // A schema that has no JSON Schema may take anything.
  const isSilent = given !== undefined && propsOf(given)?.jsonSchema === undefined;
  return parameters.map(({ name, routeName, pattern }) => {
    const unsaid = isSilent ? {} : defined({ type: 'string', pattern });
    return parameter('path', name, properties.get(routeName) ?? unsaid, true);
  });
}

function queryParameters(members: Members, allowed: readonly string[] | null): Json[] {
  const { schemas, properties, required, others } = members;
  // Names that depend on the variant, or other names: an object whose members are the parameters.
  if (members.isUnion && allowed === null) return [parameter('query', 'others', schemas[0], false)];
  const declared = [...properties].filter(([name]) => allowed === null || allowed.includes(name));
  const undeclared = (allowed ?? []).filter((name) => !properties.has(name));
  const any = { type: 'object', additionalProperties: others };
  const further = freeName('others', [...properties.keys()]);
  return [
    ...declared.map(([name, schema]) => parameter('query', name, schema, required.has(name))),
    ...undeclared.map((name) => parameter('query', name, { type: 'string' }, false)),
    ...(others === undefined || allowed !== null ? [] : [parameter('query', further, any, false)]),
  ];
}

function headerParameters({ properties, required }: Members): Json[] {
  const declared = [...properties].filter(([name]) => !OWN_HEADERS.has(name.toLowerCase()));
  return declared.map(([name, schema]) => parameter('header', name, schema, required.has(name)));
}

function parameter(location: 'path' | 'query' | 'header', name: string, schema: unknown, required: boolean): Json {
  return { name, in: location, ...(required ? { required } : {}), schema };
}

/** Whether a schema fits a request without a body, as far as it says so at once. */
function takesNothing(schema: unknown): boolean {
  try {
    const result = propsOf(schema)?.validate(undefined);
    // Nobody waits for a result that comes later: its rejection would end the process.
    Promise.resolve(result).catch(() => undefined);
    return result !== undefined && 'value' in result && result.issues === undefined;
  } catch {
    return false;
  }
}

function successes(
  response: MaybeResponse,
  schemaOf: (part: string, given: unknown) => JsonSchema | undefined,
  root: unknown,
): Json {
  if (response === undefined) return { '2XX': { description: 'Success' } };
  const byStatus = isSchema(response) ? { 200: response } : response;
  const entries = Object.entries(byStatus).map(([status, given]): [string, Json] => {
    const description = STATUS_CODES[status] ?? 'Success';
    if (given === null) return [status, { description }];
    const schema = schemaOf(`response ${status}`, given) ?? {};
    const content = Object.fromEntries(mediaTypesOf(schema, root).map((type) => [type, { schema }]));
    return [status, { description, content }];
  });
  return Object.fromEntries(entries);
}

/** A text that a handler returns is sent unchanged, not as JSON. */
function mediaTypesOf(schema: JsonSchema, root: unknown): readonly string[] {
  const types = [...appliedSchemas(schema, root, COMBINING)].flatMap(({ type, const: value, enum: values }) =>
    type ?? [...asList(values), ...(value === undefined ? [] : [value])].map((each) => typeof each));
  const isText = (type: unknown): boolean => type === 'string';
  if (!types.some(isText)) return ['application/json'];
  return types.every(isText) ? ['text/plain'] : ['text/plain', 'application/json'];
}

function declaredErrors(errors: readonly Pick<ErrorType, 'statusCode' | 'errorCode'>[]): Json {
  const responses: Record<number, Json> = {};
  for (const status of new Set(errors.map(({ statusCode }) => statusCode))) {
    const codes = errors.filter(({ statusCode }) => statusCode === status).map(({ errorCode }) => errorCode.name);
    const names = [...new Set(codes)];
    const description = `${STATUS_CODES[status] ?? 'Error'}: ${names.join(', ')}`;
    responses[status] = { description, content: errorContent(names) };
  }
  return responses;
}

/** @param names of codes; none for any */
function errorContent(names: readonly string[]): Json {
  const contentOf = (name: string): Json => {
    const $ref = `#/components/schemas/${name}`;
    if (names.length === 0) return { schema: { $ref } };
    const code = { type: 'object', properties: { name: { enum: names } } };
    return { schema: { allOf: [{ $ref }, { type: 'object', properties: { error_code: code } }] } };
  };
  return { 'application/json': contentOf('Error'), 'application/problem+json': contentOf('Problem') };
}

/** Members of a schema, merged with the members of the schemas that apply with it. */
export interface Members {
  readonly schemas: readonly JsonSchema[];
  readonly properties: ReadonlyMap<string, unknown>;
  readonly required: ReadonlySet<string>;
  /** Schema of members without a name of their own; undefined if there are none. */
  readonly others: unknown;
  /** Whether variants (`anyOf`, `oneOf`) have further members. */
  readonly isUnion: boolean;
}

/** @param root the document that references lead into */
export function collectMembers(schema: unknown, root: unknown): Members {
  const schemas = [...appliedSchemas(schema, root)];
  const [properties, others] = membersIn(schemas);
  const [all, allOthers] = membersIn([...appliedSchemas(schema, root, COMBINING)]);
  return {
    schemas,
    properties,
    required: new Set(schemas.flatMap(({ required }) => asList(required).map(String))),
    others,
    isUnion: all.size > properties.size || (others === undefined && allOthers !== undefined),
  };
}

function membersIn(schemas: readonly JsonSchema[]): [Members['properties'], Members['others']] {
  const others = schemas.map((schema) => schema['additionalProperties']);
  return [
    new Map(schemas.flatMap(({ properties }) => (isRecord(properties) ? Object.entries(properties) : []))),
    others.findLast((each) => isRecord(each) && Object.keys(each).length > 0),
  ];
}

/** The members that are not undefined. */
export function defined(members: Json): Json {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** Merges objects member by member. Every other value of `extra` replaces the value in `base`. */
export function mergeJson<Base extends object>(base: Base, extra: object): Base {
  const added = Object.entries(extra).map(([name, value]): [string, unknown] => {
    const own: unknown = Object.hasOwn(base, name) ? Reflect.get(base, name) : undefined;
    return [name, isRecord(own) && isRecord(value) ? mergeJson(own, value) : value];
  });
  return { ...base, ...Object.fromEntries(added) };
}
