/* Error codes: enumerations whose members have a name and a value (SPEC 2.6). */

import { hasBrand, setBrand } from './brand.js';
import { isRecord, show } from './options-check.js';

/** One member of an error-code enumeration, of this service or of one that it calls; frozen. */
export interface ErrorCode<Name extends string = string> {
  /** The name of the code in the error body and in documents. */
  readonly name: Name;
  /** A safe integer, unique within its enumeration. */
  readonly value: number;
  /** Only the compiler knows it, so that an object written by hand is not an error code. */
  readonly [madeByDefineErrorCodes]: true;
}

declare const madeByDefineErrorCodes: unique symbol;

/** An error-code enumeration: each name with its {@link ErrorCode}. */
export type ErrorCodes<Source> = { readonly [Name in Extract<keyof Source, string>]: ErrorCode<Name> };

/**
 * Makes an enumeration of error codes.
 *
 * @param source names with their values, `{ too_slow: 10002 }`, or a TypeScript numeric enum
 * @returns a frozen object without a prototype: `{ too_slow: { name: 'too_slow', value: 10002 } }`
 * @throws {TypeError} for anything but an object, when two names share a value, or a value is not a safe integer
 *
 * @example
 * const Codes = defineErrorCodes({ too_slow: 10002 });
 * throw new ApiError('Too slow!', { statusCode: 408, errorCode: Codes.too_slow });
 */
export function defineErrorCodes<const Source extends Readonly<Record<string, number | string>>>(
  source: Source,
): ErrorCodes<Source> {
  if (!isRecord(source))
    throw new TypeError(`defineErrorCodes() got ${show(source)}; give names with their values, { too_slow: 10002 }`);
  const codes: Record<string, ErrorCode> = Object.create(null);
  const nameOf = new Map<number, string>();
  for (const [name, value] of Object.entries(source)) {
    // A numeric enum holds each value as a key too: `E[10002] === 'too_slow'`.
    if (typeof value === 'string' && String(Number(name)) === name && source[value] === Number(name)) continue;
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
      throw new TypeError(`error code "${name}" has the value ${String(value)}; give it a safe integer`);
    }
    const other = nameOf.get(value);
    if (other !== undefined)
      throw new TypeError(`error codes "${other}" and "${name}" share the value ${value}; renumber one`);
    nameOf.set(value, name);
    codes[name] = adoptErrorCode(name, value);
  }
  return Object.freeze(codes) as ErrorCodes<Source>;
}

/**
 * A code of another service's enumeration, kept unchanged. Only for the mesh: the package's entry does not export it,
 * so that a service can't raise codes that no enumeration has.
 */
export function adoptErrorCode(name: string, value: number): ErrorCode {
  const code = { name, value };
  setBrand(code, 'ErrorCode');
  return Object.freeze(code) as ErrorCode;
}

/** Whether a value came from {@link defineErrorCodes}, here or in another copy: looking like one is not enough. */
export function isErrorCode(value: unknown): value is ErrorCode {
  if (!isRecord(value) || !Object.isFrozen(value) || !hasBrand(value, 'ErrorCode')) return false;
  return typeof value['name'] === 'string' && Number.isSafeInteger(value['value']);
}

/** A name with its value, from anywhere. */
export type NamedValue = Pick<ErrorCode, 'name' | 'value'>;

/** Pairs that a reader of a log could confuse: one value with two names, or one name with two values. */
export function findClashes<Code extends NamedValue>(codes: readonly Code[]): [Code, Code][] {
  return codes.flatMap((b, index) => {
    const clashing = codes.slice(0, index).filter((a) => (a.value === b.value) !== (a.name === b.name));
    return clashing.map((a): [Code, Code] => [a, b]);
  });
}
