/*
 * Checks options objects: an unknown name is refused together with the nearest one that exists, and a value of the
 * wrong type together with the right one, so that a typo never passes for a default.
 */

import { ignoreRejection } from './promises.js';
import { nearestName } from './nearest-name.js';

/** The type that an option must have. */
export interface Kind {
  readonly accepts: (value: unknown) => boolean;
  /** The remedy in words, `true or false`. */
  readonly give: string;
}

/** Each option that exists, with what it has to be; an option that is undefined is one that was left out. */
export type Kinds<Options> = { readonly [Name in keyof Required<Options>]: Kind };

/** A kind, with what makes the value in use of the one that is given: undefined for an option that is left out. */
interface Option<Given, Value = unknown> extends Kind {
  readonly read: (given: Given) => Value;
}

/** Every option of an options object. The table is directly below the interface of the object. */
export type OptionTable<Options> = { readonly [Name in keyof Required<Options>]: Option<Options[Name] | undefined> };

/** The values in use of the options of a table. */
export type Resolved<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends Option<never, infer Value> ? Value : never;
};

export const BOOLEAN: Kind = { accepts: (value) => typeof value === 'boolean', give: 'true or false' };
export const STRING: Kind = { accepts: (value) => typeof value === 'string', give: 'a string' };
export const LIST: Kind = { accepts: (value) => Array.isArray(value), give: 'an array' };
export const OBJECT: Kind = { accepts: isRecord, give: 'an object' };
/** Accepts a value that is checked where it is used. */
export const ANYTHING: Kind = { accepts: () => true, give: 'anything' };

export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER): Kind {
  return {
    accepts: (value) => Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most,
    give: `a whole number ${most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`}`,
  };
}

export function listOf(accepts: (each: unknown) => boolean, give: string): Kind {
  return { accepts: (value) => Array.isArray(value) && value.every(accepts), give };
}

export function oneOf(values: readonly string[]): Kind {
  return { accepts: (value) => values.includes(value as string), give: `one of ${values.join(', ')}` };
}

export function booleanOr(other: string): Kind {
  return { accepts: (value) => typeof value === 'boolean' || value === other, give: `true, false or '${other}'` };
}

/** Declares an option and its default; without one, an option that is left out stays undefined. */
export function option<Given>(kind: Kind): Option<Given, Given>;
export function option<Given>(
  kind: Kind,
  fallback: NoInfer<Exclude<Given, undefined>>,
): Option<Given, Exclude<Given, undefined>>;
export function option(kind: Kind, fallback?: unknown): Option<unknown> {
  return { ...kind, read: (given) => (given === undefined ? fallback : given) };
}

/** Declares an option whose value in use is not the one that is given. */
export function converted<Given, Value>(kind: Kind, read: (given: Given) => Value): Option<Given, Value> {
  return { ...kind, read };
}

/**
 * Checks options, and returns the values in use.
 *
 * @throws {TypeError} as {@link assertOptions} does, and what the table's conversions throw
 */
export function resolve<Table extends Readonly<Record<string, Option<never>>>>(
  what: string,
  options: object,
  table: Table,
): Resolved<Table> {
  assertOptions(what, options, table);
  // Without what it inherits, which is not checked.
  const given: Readonly<Record<string, unknown>> = { ...options };
  const entries = Object.entries<Option<never>>(table).map(([name, { read }]) => [name, read(given[name] as never)]);
  return Object.fromEntries(entries) as Resolved<Table>;
}

/**
 * @param what whose options they are, as the user wrote it: `new Postern()`
 * @param known every option that exists, by name only or with its kind
 * @throws {TypeError} when `options` is not an object, has a name that does not exist, or a value of the wrong kind
 */
export function assertOptions(
  what: string,
  options: unknown,
  known: readonly string[] | Readonly<Record<string, Kind>>,
): asserts options is object {
  if (!isRecord(options)) throw new TypeError(`the options of ${what} are ${show(options)}; give an object`);
  const kinds = isRecord(known) ? known : Object.fromEntries(known.map((name) => [name, ANYTHING]));
  for (const name of Object.keys(options)) {
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    if (kind === undefined)
      throw new TypeError(`unknown option "${name}" of ${what}; ${remedy(name, Object.keys(kinds))}`);
    const value = options[name];
    if (value === undefined || kind.accepts(value)) continue;
    ignoreRejection(value);
    throw new TypeError(`${name} of ${what} is ${show(value)}; give ${kind.give}`);
  }
}

function remedy(name: string, names: readonly string[]): string {
  const nearest = nearestName(name, names);
  if (nearest !== undefined) return `did you mean "${nearest}"?`;
  return names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
}

/** An object, rather than an array or null. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value as an error message shows it: short, and a text in quotes. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}...` : value);
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object' || value === null) return String(value);
  return Array.isArray(value) ? 'an array' : 'an object';
}
