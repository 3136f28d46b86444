/* Adds what a user wrote to what was derived from routes. */

import { isRecord } from '../base/options-check.js';

type Json = Readonly<Record<string, unknown>>;

/** Merges objects member by member; other values of `extra` replace those of `base`. @internal */
export function mergeJson(base: Json, extra: Json): Json {
  const merged: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(extra)) {
    const own = Object.hasOwn(base, name) ? base[name] : undefined;
    merged[name] = isRecord(own) && isRecord(value) ? mergeJson(own, value) : value;
  }
  return merged;
}
