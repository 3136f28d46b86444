/* Adds what a user wrote to what was derived from routes. */

import { isRecord } from '../base/options-check.js';

/** Merges objects member by member. Every other value of `extra` replaces the value in `base`. @internal */
export function mergeJson<Base extends object>(base: Base, extra: object): Base {
  const added = Object.entries(extra).map(([name, value]): [string, unknown] => {
    const own: unknown = Object.hasOwn(base, name) ? Reflect.get(base, name) : undefined;
    return [name, isRecord(own) && isRecord(value) ? mergeJson(own, value) : value];
  });
  return { ...base, ...Object.fromEntries(added) };
}
