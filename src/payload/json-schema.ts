/* Reads JSON Schemas, of any draft and from anyone: what is not in the expected form counts as absent. */

import { isRecord } from '../base/options-check.js';
import type { JsonSchemaConverter, StandardProps } from './standard-schema.js';

/** A JSON Schema that is an object; `true` and `false` say nothing about members. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Recursive schemas end at this depth. */
const MAX_DEPTH = 16;
/** Keywords with schemas for the same value, or with variants of it. */
export const COMBINING: readonly string[] = ['allOf', 'anyOf', 'oneOf'];

/**
 * A schema and the schemas that hold for the same value, by `$ref` and `allOf`.
 *
 * @param root the document that `$ref`s lead into
 * @param keywords which lists of schemas are followed. Default: `allOf` only
 */
export function* appliedSchemas(
  schema: unknown,
  root: unknown,
  keywords: readonly string[] = ['allOf'],
  depth = 0,
): Generator<JsonSchema> {
  if (!isRecord(schema) || depth > MAX_DEPTH) return;
  yield schema;
  const others = [resolveReference(schema['$ref'], root), ...keywords.flatMap((keyword) => asList(schema[keyword]))];
  for (const other of others) yield* appliedSchemas(other, root, keywords, depth + 1);
}

/** The target of a `$ref` inside a document (RFC 6901, as a URI fragment); undefined if it leads nowhere. */
export function resolveReference(reference: unknown, root: unknown): unknown {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return undefined;
  // zod does not escape a percent sign.
  return follow(reference, root) ?? follow(decodeReference(reference), root);
}

function follow(pointer: string, root: unknown): unknown {
  let target = root;
  for (const token of pointer.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    target = isRecord(target) || Array.isArray(target) ? Reflect.get(target, name) : undefined;
  }
  return target;
}

/** Decodes a reference; returns a malformed one, such as zod's to the name `100%`, unchanged. */
export function decodeReference(reference: string): string {
  try {
    return decodeURIComponent(reference);
  } catch {
    return reference;
  }
}

/** Options of zod, valibot and arktype: a member that JSON Schema lacks, such as a date, is `{}`, and the rest stays. */
const LENIENT = { unrepresentable: 'any', errorMode: 'ignore', fallback: ({ base }: { base: unknown }) => base };

/** One side of a schema. @throws what its library throws for a schema that it cannot convert at all */
export function toJsonSchema(converter: JsonSchemaConverter, side: 'input' | 'output'): JsonSchema {
  return converter[side]({ target: 'draft-2020-12', libraryOptions: LENIENT });
}

/** The JSON Schema of a schema's input; undefined if it has none. */
export function inputOf({ jsonSchema }: StandardProps): unknown {
  try {
    return jsonSchema && toJsonSchema(jsonSchema, 'input');
  } catch {
    return undefined;
  }
}

/** @throws {TypeError} when a schema of an object names a member that a path has no parameter for */
export function assertParameters(what: string, schema: unknown, names: readonly string[]): void {
  const strange = namesIn(schema).find((name) => !names.includes(name));
  if (strange === undefined) return;
  throw new TypeError(`params of ${what} names "${strange}"; the path has ${names.join(', ') || 'no parameters'}`);
}

/** @throws {TypeError} when a schema of an object names a header in upper case: a request has lower-case names only */
export function assertHeaderNames(what: string, schema: unknown): void {
  const strange = namesIn(schema).find((name) => name !== name.toLowerCase());
  if (strange === undefined) return;
  throw new TypeError(`headers of ${what} names "${strange}"; write "${strange.toLowerCase()}"`);
}

function namesIn(schema: unknown): string[] {
  const applied = [...appliedSchemas(schema, schema, COMBINING)];
  return applied.flatMap(({ properties }) => (isRecord(properties) ? Object.keys(properties) : []));
}

/**
 * The members that a schema of an object declares as lists: a query that has such a member once holds a list, too.
 *
 * @returns `others`: whether members that the schema does not name are lists
 */
export function listNames(schema: unknown): { named: ReadonlySet<string>; others: boolean } {
  const named = new Set<string>();
  let others = false;
  for (const { properties, additionalProperties } of appliedSchemas(schema, schema, COMBINING)) {
    if (isRecord(properties))
      for (const [name, member] of Object.entries(properties)) if (isList(member, schema)) named.add(name);
    if (isList(additionalProperties, schema)) others = true;
  }
  return { named, others };
}

/** Whether only a list fits. `null` is ignored, because a query cannot contain it. */
function isList(schema: unknown, root: unknown, depth = 0): boolean {
  if (!isRecord(schema) || depth > MAX_DEPTH) return false;
  const isListToo = (other: unknown): boolean => isList(other, root, depth + 1);
  if (isListToo(resolveReference(schema['$ref'], root))) return true;
  const { type } = schema;
  const types = (typeof type === 'string' ? [type] : asList(type)).filter((each) => each !== 'null');
  if (types.length > 0) return types.every((each) => each === 'array');
  if (asList(schema['allOf']).some(isListToo)) return true;
  return ['anyOf', 'oneOf'].some((keyword) => {
    const choices = asList(schema[keyword]).filter((choice) => !isRecord(choice) || choice['type'] !== 'null');
    return choices.length > 0 && choices.every(isListToo);
  });
}

/** A value if it is a list, else an empty list. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
