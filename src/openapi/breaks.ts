/* Compares two OpenAPI documents of a service: what the newer document broke for clients of the older one. */

import { FrameworkErrorCodes } from '../base/errors.js';
import { isRecord } from '../base/options-check.js';
import { asList, type JsonSchema } from '../payload/json-schema.js';
import type { OpenApiDocument } from './document.js';
import { collectMembers, shapeOf, type Members } from './operation.js';

/**
 * Finds what broke for clients: what they may no longer send, and what they no longer get. Both documents may be
 * anyone's; what is not in the form that is looked for counts as absent.
 *
 * @returns a line for each break, in the order of the document before
 */
export function findBreaks(before: OpenApiDocument, after: OpenApiDocument): string[] {
  const now = operationsOf(after);
  return [...operationsOf(before)].flatMap(([key, { name, operation }]) => {
    const other = now.get(key)?.operation;
    const lines = other === undefined ? ['was removed'] : compareOperations({ before, after }, operation, other);
    return lines.map((line) => `${name} ${line}`);
  });
}

/** Whether a value has the members of a document that are read here. */
export function isDocument(value: unknown): value is OpenApiDocument {
  return isRecord(value) && typeof value['openapi'] === 'string' && isRecord(value['paths']);
}

const METHOD = /^(?:get|put|post|delete|options|head|patch|trace|query)$/;

/** By method and the shape of the path: parameters may be renamed. */
function operationsOf({ paths }: OpenApiDocument): Map<string, { readonly name: string; readonly operation: unknown }> {
  const operations = new Map<string, { readonly name: string; readonly operation: unknown }>();
  for (const [path, item] of Object.entries(paths)) {
    const { additionalOperations, ...members } = asObject(item);
    const named = Object.entries(members).filter(([name]) => METHOD.test(name));
    for (const [name, operation] of [...named, ...Object.entries(asObject(additionalOperations))]) {
      const method = name.toUpperCase();
      if (isRecord(operation)) operations.set(`${method} ${shapeOf(path)}`, { name: `${method} ${path}`, operation });
    }
  }
  return operations;
}

/** Two documents, for the references in them. */
type Documents = Readonly<Record<'before' | 'after', OpenApiDocument>>;

function compareOperations(both: Documents, before: unknown, after: unknown): string[] {
  const [known, taken] = [inputsOf(before), inputsOf(after)];
  const [old, now] = [asObject(asObject(before)['responses']), asObject(asObject(after)['responses'])];
  // Other query parameters are ignored, unless the route has a list of the allowed ones.
  const areListed = codesOf(now['400'], both.after).includes(framework_invalid_query_params.name);
  const gone = [...known.keys()].filter((key) => areListed && key.startsWith('query ') && !taken.has(key));
  const inputs = [...taken].flatMap(([key, { required, schema }]) => {
    const was = known.get(key);
    const needed = required && was?.required !== true ? [`now requires ${key === 'body' ? 'a body' : key}`] : [];
    return [...needed, ...compareSchemas(both, true, was?.schema, schema, key)];
  });
  const replies = Object.entries(old).flatMap(([status, was]) => {
    if (!isBare(was) && isBare(now[status] ?? was)) return `no longer returns a body with ${status}`;
    if (now[status] !== undefined) return compareSchemas(both, false, schemaOf(was), schemaOf(now[status]), status);
    // `2XX` means every success that is not declared by itself.
    const isMeant = Object.keys(now).some((other) => other === '2XX' || (status === '2XX' && other[0] === '2'));
    // A route that checks less refuses less.
    const codes = codesOf(was, both.before);
    const isCheck = codes.length > 0 && codes.every((code) => CHECKS.includes(code));
    return (status.startsWith('2') && isMeant) || isCheck ? [] : `no longer declares ${status}`;
  });
  return [...gone.map((key) => `no longer takes ${key}`), ...inputs, ...replies];
}

/** Whether a reply has no body. A reference may be to a reply that has one. */
function isBare(reply: unknown): boolean {
  return !['content', '$ref'].some((member) => member in asObject(reply));
}

const { framework_invalid_request, framework_invalid_query_params } = FrameworkErrorCodes;
/** Codes of the checks that a route declares by its schemas and its query parameters. */
const CHECKS: readonly unknown[] = [framework_invalid_request.name, framework_invalid_query_params.name];

/** Names of the error codes that a reply declares. */
function codesOf(reply: unknown, root: OpenApiDocument): readonly unknown[] {
  const code = collectMembers(schemaOf(reply), root).properties.get('error_code');
  return asList(asObject(collectMembers(code, root).properties.get('name'))['enum']);
}

/** @param sent whether clients send it; else they get it */
function compareSchemas(both: Documents, sent: boolean, was: unknown, is: unknown, at: string): string[] {
  return [...new Set(comparePair({ ...both, sent, results: new Map() }, was, is, at))];
}

/** A comparison of two schemas and the schemas below. */
interface Comparison extends Documents {
  readonly sent: boolean;
  /** By the schema before and the schema after: a pair that is in many places is compared once. */
  readonly results: Map<JsonSchema, Map<JsonSchema, string[]>>;
}

function comparePair(on: Comparison, was: unknown, is: unknown, at: string): string[] {
  const [old, now] = [collectMembers(was, on.before), collectMembers(is, on.after)];
  const [key, keyNow] = [keyOf(old), keyOf(now)];
  if (key === undefined || keyNow === undefined) return [];
  const known = on.results.get(key) ?? new Map<JsonSchema, string[]>();
  const result = known.get(keyNow);
  if (result !== undefined) return result;
  // A schema that refers to itself adds nothing to its own result.
  on.results.set(key, known.set(keyNow, []));
  const [variants, variantsNow] = [variantsOf(old, was), variantsOf(now, is)];
  const lines = variants === undefined && variantsNow === undefined
    ? compareMembers(on, old, now, at)
    : compareVariants(on, variants ?? [was], variantsNow ?? [is], at);
  known.set(keyNow, lines);
  return lines;
}

/** The new document must take each of the old variants, and return none but the old variants. */
function compareVariants(on: Comparison, was: readonly unknown[], is: readonly unknown[], at: string): string[] {
  const [narrow, wide] = on.sent ? [was, is] : [is, was];
  return narrow.flatMap((one, i) => {
    const found = wide.map((other) => (on.sent ? comparePair(on, one, other, at) : comparePair(on, other, one, at)));
    if (found.some((lines) => lines.length === 0)) return [];
    return (was.length === is.length && found[i]) || [anotherType(on, at)];
  });
}

function compareMembers(on: Comparison, old: Members, now: Members, at: string): string[] {
  // Clients break when the new document asks for more, and when it returns less than the old document promised.
  const [one, other] = on.sent ? [now, old] : [old, now];
  const below = (was: unknown, is: unknown, name: string): string[] => comparePair(on, was, is, `${at}/${name}`);
  const [type, typeNow] = [firstOf(old, 'type'), firstOf(now, 'type')];
  const [wide, narrow] = on.sent ? [typeNow, type] : [type, typeNow];
  const isOther = wide !== undefined && narrow !== undefined && wide !== narrow;
  const places = asList(firstOf(now, 'prefixItems'));
  return [
    ...(isOther && !(wide === 'number' && narrow === 'integer') ? [anotherType(on, at)] : []),
    ...[...one.properties.keys()].flatMap((name) => {
      if (!on.sent && !now.properties.has(name)) return `no longer returns ${at}/${name}`;
      if (one.required.has(name) && !other.required.has(name))
        return `${on.sent ? 'now requires' : 'no longer always returns'} ${at}/${name}`;
      return below(old.properties.get(name), now.properties.get(name), name);
    }),
    ...below(old.others, now.others, '*'),
    ...below(firstOf(old, 'items'), firstOf(now, 'items'), '*'),
    ...asList(firstOf(old, 'prefixItems')).flatMap((place, i) => below(place, places[i], String(i))),
  ];
}

function anotherType({ sent }: Comparison, at: string): string {
  return `${sent ? 'takes' : 'returns'} another type at ${at}`;
}

/** The schema that a reference leads to; the schema itself if it is more than a reference. */
function keyOf({ schemas }: Members): JsonSchema | undefined {
  return schemas.find((schema) => Object.keys(schema).some((keyword) => keyword !== '$ref')) ?? schemas[0];
}

/** The variants of a union, or a schema for each of several types; undefined for another schema. */
function variantsOf(members: Members, schema: unknown): readonly unknown[] | undefined {
  const variants = members.schemas.flatMap(({ anyOf, oneOf }) => [...asList(anyOf), ...asList(oneOf)]);
  // Variants beside members are only a part of what holds.
  if (variants.length > 0 && members.properties.size === 0) return variants;
  const type = firstOf(members, 'type');
  return Array.isArray(type) ? type.map((each: unknown) => ({ ...asObject(schema), type: each })) : undefined;
}

/** The first value of a keyword in the schemas that hold for the same value. */
function firstOf({ schemas }: Members, keyword: string): unknown {
  return schemas.find((schema) => schema[keyword] !== undefined)?.[keyword];
}

/** Parameters that are not in the path, and the body. */
function inputsOf(operation: unknown): Map<string, { readonly required: boolean; readonly schema: unknown }> {
  const { parameters, requestBody } = asObject(operation);
  const inputs = new Map<string, { required: boolean; schema: unknown }>();
  for (const { in: location, name, required, schema } of asList(parameters).map(asObject)) {
    const key = `${String(location)} ${JSON.stringify(name)}`;
    if (location !== 'path') inputs.set(key, { required: required === true, schema });
  }
  const { required } = asObject(requestBody);
  return inputs.set('body', { required: required === true, schema: schemaOf(requestBody) });
}

/** The schema of the first content type. The other content types in a document of ours say the same. */
function schemaOf(holder: unknown): unknown {
  return asObject(Object.values(asObject(asObject(holder)['content']))[0])['schema'];
}

function asObject(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}
