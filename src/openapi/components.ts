/*
 * The schemas that a document shares. References inside a schema lead only into that schema; here their targets are
 * lifted to the components, where the whole document can refer to it.
 */

import { isRecord } from '../base/options-check.js';
import { decodeReference, resolveReference, type JsonSchema } from '../payload/json-schema.js';

/** Keywords whose values are data rather than schemas: a `$ref` in them is not a reference. */
const DATA_KEYWORDS: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'example', 'examples']);
/** Keywords that hold schemas under names that the user chose: a member may be called `$ref`. */
const MAP_KEYWORDS: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'dependentSchemas', '$defs']);

/** The `components.schemas` of one document. */
export class Components {
  /** The text of each schema before it was lifted, so that equal ones are one; empty for ours. */
  readonly #sources: Map<string, string>;

  /** @param schemas ours, by name; the lifted ones are added */
  constructor(readonly schemas: Record<string, JsonSchema>) {
    this.#sources = new Map(Object.keys(schemas).map((name) => [name, '']));
  }

  /** A schema whose references lead to the components. @param name of the schema itself, should it refer to itself */
  lift(schema: JsonSchema, name: string): JsonSchema {
    const root = JSON.parse(JSON.stringify(schema)) as JsonSchema;
    /** The text of a target, and of each other target that it leads to, by reference. */
    const collectTexts = (reference: string, texts = new Map<string, string>()): Map<string, string> => {
      const text = JSON.stringify(resolveReference(reference, root)) ?? '';
      texts.set(reference, text);
      for (const [, next = ''] of text.matchAll(/"\$ref":"(#[^"]*)"/g)) if (!texts.has(next)) collectTexts(next, texts);
      return texts;
    };
    const liftTarget = (reference: string): string => {
      const target = resolveReference(reference, root);
      if (!isRecord(target)) throw new TypeError(`the reference ${JSON.stringify(reference)} leads nowhere`);
      const source = JSON.stringify([...collectTexts(reference)]);
      const wanted = reference === '#' ? name : (reference.split('/').at(-1) ?? name);
      const base = decodeReference(wanted).replace(/[^A-Za-z0-9._-]+/g, '_') || 'Schema';
      let own = base;
      for (let count = 2; (this.#sources.get(own) ?? source) !== source; count += 1) own = `${base}${count}`;
      if (!this.#sources.has(own)) {
        this.#sources.set(own, source);
        this.schemas[own] = rewrite(target, liftTarget);
      }
      return own;
    };
    return rewrite(root, liftTarget);
  }
}

function rewrite(schema: JsonSchema, liftTarget: (reference: string) => string): JsonSchema {
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    return isRecord(value) ? rewrite(value, liftTarget) : value;
  };
  const result: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (['$schema', '$defs', 'definitions', '$id'].includes(keyword)) continue;
    if (DATA_KEYWORDS.has(keyword)) result[keyword] = value;
    else if (keyword === '$ref' && typeof value === 'string' && value.startsWith('#'))
      result[keyword] = `#/components/schemas/${liftTarget(value)}`;
    else if (MAP_KEYWORDS.has(keyword) && isRecord(value))
      result[keyword] = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, walk(member)]));
    else result[keyword] = walk(value);
  }
  return result;
}
