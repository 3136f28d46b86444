/*
 * Reads off a JSON Schema which members of an object are lists: a query that names one of them once gives a list too.
 */

import { isRecord } from '../base/options-check.js';

/** Members that are lists. */
export interface ListNames {
  readonly named: ReadonlySet<string>;
  /** Whether members that the schema doesn't name are lists. */
  readonly others: boolean;
}

/** @param schema of any draft; `$ref`s are followed inside the document */
export function listNames(schema: unknown): ListNames {
  const named = new Set<string>();
  let others = false;
  for (const { properties, additionalProperties } of partsOf(schema, schema)) {
    if (isRecord(properties))
      for (const [name, member] of Object.entries(properties)) if (isList(member, schema)) named.add(name);
    if (isList(additionalProperties, schema)) others = true;
  }
  return { named, others };
}

/** Recursive schemas end here. */
const MAX_DEPTH = 16;

/** A schema with those that it is made of. */
function* partsOf(schema: unknown, root: unknown, depth = 0): Generator<Record<string, unknown>> {
  if (!isRecord(schema) || depth > MAX_DEPTH) return;
  yield schema;
  const parts = ['allOf', 'anyOf', 'oneOf'].flatMap((keyword) => listOf(schema[keyword]));
  for (const part of [resolve(schema['$ref'], root), ...parts]) yield* partsOf(part, root, depth + 1);
}

/** Whether nothing but a list fits, null aside: a query has no null. */
function isList(schema: unknown, root: unknown, depth = 0): boolean {
  if (!isRecord(schema) || depth > MAX_DEPTH) return false;
  const isListToo = (part: unknown): boolean => isList(part, root, depth + 1);
  if (isListToo(resolve(schema['$ref'], root))) return true;
  const types = listOf(schema['type']).filter((type) => type !== 'null');
  if (types.length > 0) return types.every((type) => type === 'array');
  if (listOf(schema['allOf']).some(isListToo)) return true;
  return ['anyOf', 'oneOf'].some((keyword) => {
    const choices = listOf(schema[keyword]).filter((choice) => !isRecord(choice) || choice['type'] !== 'null');
    return choices.length > 0 && choices.every(isListToo);
  });
}

function resolve(reference: unknown, root: unknown): unknown {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return undefined;
  let target = root;
  for (const token of decodeURIComponent(reference.slice(1)).split('/').slice(1))
    target = isRecord(target) ? target[token.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined;
  return target;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}
