/**
 * Reads off a JSON Schema which members of an object are lists: a query that names one of them once gives a list too.
 */

/** Members that are lists. */
export interface ListNames {
  readonly named: ReadonlySet<string>;
  /** Whether members that the schema doesn't name are. */
  readonly others: boolean;
}

/** @param schema of any draft; `$ref`s are followed inside the document */
export function listNames(schema: unknown): ListNames {
  const named = new Set<string>();
  let others = false;
  const reader = new SchemaReader(schema);
  for (const part of reader.partsOf(schema)) {
    const { properties, additionalProperties } = part;
    if (isObject(properties))
      for (const [name, member] of Object.entries(properties)) if (reader.isList(member)) named.add(name);
    if (reader.isList(additionalProperties)) others = true;
  }
  return { named, others };
}

/** Recursive schemas end here. */
const MAX_DEPTH = 16;

class SchemaReader {
  readonly #root: unknown;

  constructor(root: unknown) {
    this.#root = root;
  }

  /** A schema with those that it is made of. */
  *partsOf(schema: unknown, depth = 0): Generator<Record<string, unknown>> {
    if (!isObject(schema) || depth > MAX_DEPTH) return;
    yield schema;
    if (schema['$ref'] !== undefined) yield* this.partsOf(this.#resolve(schema['$ref']), depth + 1);
    for (const keyword of ['allOf', 'anyOf', 'oneOf'])
      for (const part of listOf(schema[keyword])) yield* this.partsOf(part, depth + 1);
  }

  /** Whether nothing but a list fits, null aside: a query has no null. */
  isList(schema: unknown, depth = 0): boolean {
    if (!isObject(schema) || depth > MAX_DEPTH) return false;
    const isListToo = (part: unknown): boolean => this.isList(part, depth + 1);
    if (schema['$ref'] !== undefined && isListToo(this.#resolve(schema['$ref']))) return true;
    const types = listOf(schema['type']).filter((type) => type !== 'null');
    if (types.length > 0) return types.every((type) => type === 'array');
    if (listOf(schema['allOf']).some(isListToo)) return true;
    for (const keyword of ['anyOf', 'oneOf']) {
      const choices = listOf(schema[keyword]).filter((choice) => !isObject(choice) || choice['type'] !== 'null');
      if (choices.length > 0 && choices.every(isListToo)) return true;
    }
    return false;
  }

  #resolve(reference: unknown): unknown {
    if (typeof reference !== 'string' || !reference.startsWith('#')) return undefined;
    let target: unknown = this.#root;
    for (const token of decodeURIComponent(reference.slice(1)).split('/').slice(1))
      target = isObject(target) ? target[token.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined;
    return target;
  }
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
