/*
 * Writes JSON, and refuses what `JSON.stringify` drops without a word: a Map or a promise becomes `{}`, a function
 * nothing at all.
 */

import { Date } from '../base/clock.js';
import { ignoreRejection } from '../base/promises.js';

/** A value cannot be sent. The message has the place in the value and the remedy; the answering side adds the route. */
export class UnsendableError extends TypeError {}

const BY_ITSELF = 'return it by itself, or';

/** Objects of which JSON keeps nothing, by their tag, with a value to use instead. */
const REMEDIES: Readonly<Record<string, string>> = {
  Map: 'give Object.fromEntries(map)',
  Set: 'give [...set]',
  Generator: 'give [...generator]',
  AsyncGenerator: `${BY_ITSELF} collect it first`,
  ReadableStream: `${BY_ITSELF} collect it first`,
  Promise: 'await it first',
  Blob: `${BY_ITSELF} give await blob.text()`,
  File: `${BY_ITSELF} give await file.text()`,
  FormData: `${BY_ITSELF} give Object.fromEntries(form)`,
  Headers: 'give Object.fromEntries(headers)',
  URLSearchParams: `${BY_ITSELF} give Object.fromEntries(params)`,
  Response: `${BY_ITSELF} give its body`,
  ArrayBuffer: `${BY_ITSELF} give it as base64`,
  SharedArrayBuffer: 'give it as base64',
  DataView: `${BY_ITSELF} give it as base64`,
  BigInt: 'give String(bigint)',
  Symbol: 'give its description',
};

/** Tags of objects that JSON writes as the primitive in them. */
const BOXED: ReadonlySet<string> = new Set(['String', 'Number', 'Boolean']);

/**
 * A value as JSON. Everything is looked at: a lost member may be in any row.
 *
 * @throws {UnsendableError} when the value or a member of it is lost: a function, a symbol, a bigint, an error, and any
 * object of which JSON keeps nothing and that is neither a plain object nor an array
 * @throws {TypeError} for a cycle
 */
export function toJson(value: unknown): string {
  if (typeof value === 'object' && isKept(value, MAX_PLAIN_DEPTH)) return JSON.stringify(value);
  const search = new Search();
  if (!search.visitAll(value)) {
    // Somewhere a `toJSON` decides, and what it returns is seen only while JSON is written.
    const json = JSON.stringify(value, search.replacer) as string | undefined;
    search.assertNothingLost();
    return json ?? 'null';
  }
  search.assertNothingLost();
  return JSON.stringify(value);
}

/** Maximum depth of a value that is not searched by {@link Search}. */
const MAX_PLAIN_DEPTH = 50;

/**
 * Whether a value has only primitives that JSON keeps, dates, and plain objects and arrays of them. Costs an eighth
 * of `JSON.stringify`.
 */
function isKept(value: unknown, depth: number): boolean {
  if (typeof value !== 'object') return typeof value !== 'function' && !isBare(value);
  if (value === null) return true;
  if (depth === 0) return false;
  if (Array.isArray(value)) return areKept(value, depth);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype) return prototype === Date.prototype && isDate(value);
  for (const name in value) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    if (typeof member === 'string' || typeof member === 'number') continue;
    if (name === 'toJSON' || !isKept(member, depth - 1)) return false;
  }
  return true;
}

function areKept(elements: readonly unknown[], depth: number): boolean {
  // By index: the names of an array's elements are texts, which are made for `for … in`.
  for (let i = 0; i < elements.length; i += 1) {
    const element = elements[i];
    if (typeof element !== 'string' && typeof element !== 'number' && !isKept(element, depth - 1)) return false;
  }
  return true;
}

/** One search for lost members. */
class Search {
  /** The first lost member: `a Map, which JSON loses; …`, and the names and indices that lead to it. */
  #lost: { readonly what: string; readonly path: readonly string[] } | undefined;
  readonly #path: string[] = [];
  /** Where objects are, while JSON is written. */
  readonly #places = new Map<unknown, { readonly holder: unknown; readonly name: string }>();

  /** @returns false if an object has a `toJSON`: then only {@link replacer} sees everything */
  visitAll(value: unknown): boolean {
    try {
      return this.#visit(value);
    } catch (error) {
      // A cycle, which JSON.stringify reports with its place, or a value that is too deep.
      if (error instanceof RangeError) return true;
      throw error;
    }
  }

  /** Looks at each value that JSON.stringify writes. */
  get replacer(): (this: unknown, name: string, value: unknown) => unknown {
    const check = (holder: unknown, name: string, value: unknown): unknown => {
      if (typeof value === 'object' && value !== null) this.#places.set(value, { holder, name });
      const what = lossOf(value);
      if (what === undefined) return value;
      const path = [name];
      for (let at = this.#places.get(holder); at !== undefined; at = this.#places.get(at.holder)) path.unshift(at.name);
      // Without the first name, the empty one under which the whole value is visited.
      this.#report(value, what, path.slice(1));
      return undefined;
    };
    return function (name, value) {
      return check(this, name, value);
    };
  }

  assertNothingLost(): void {
    if (this.#lost === undefined) return;
    const { what, path } = this.#lost;
    const where = path.length === 0 ? 'the value' : path.map((name) => `/${name}`).join('');
    throw new UnsendableError(`${where} is ${what}`);
  }

  /** @returns whether no `toJSON` was met */
  #visit(value: unknown): boolean {
    if (!isCompound(value)) return true;
    if (typeof value !== 'symbol' && typeof value !== 'bigint' && hasToJson(value)) return isDate(value);
    const what = lossOf(value);
    if (what !== undefined) {
      this.#report(value, what, this.#path);
      return true;
    }
    let isWhole = true;
    if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i += 1)
        if (isCompound(value[i])) isWhole = this.#enter(String(i), value[i]) && isWhole;
      return isWhole;
    }
    if (typeof value !== 'object') return true;
    for (const name in value) {
      const member: unknown = Reflect.get(value, name);
      if (isCompound(member) && Object.hasOwn(value, name)) isWhole = this.#enter(name, member) && isWhole;
    }
    return isWhole;
  }

  #enter(name: string, member: unknown): boolean {
    this.#path.push(name);
    const isWhole = this.#visit(member);
    this.#path.pop();
    return isWhole;
  }

  #report(value: unknown, what: string, path: readonly string[]): void {
    // Nobody else awaits a promise in a value, so its rejection would end the process.
    ignoreRejection(value);
    this.#lost ??= { what, path: [...path] };
  }
}

/** Whether JSON may lose a value, or something in it. */
function isCompound(value: unknown): value is object | symbol | bigint {
  return (typeof value === 'object' && value !== null) || typeof value === 'function' || isBare(value);
}

function isBare(value: unknown): value is symbol | bigint {
  return typeof value === 'symbol' || typeof value === 'bigint';
}

/** Describes a value that JSON loses as a whole, with the remedy; undefined for any other value. */
function lossOf(value: unknown): string | undefined {
  if (isBare(value)) {
    // Programs define BigInt.prototype.toJSON.
    if (hasToJson(Object(value) as object)) return undefined;
    return `a ${typeof value}, which JSON loses; give ${typeof value === 'bigint' ? 'String(bigint)' : 'its description'}`;
  }
  if (typeof value === 'function')
    return hasToJson(value) ? undefined : 'a function, which JSON loses; call it, or leave it out';
  if (typeof value !== 'object' || value === null || Array.isArray(value) || hasToJson(value)) return undefined;
  const prototype = Object.getPrototypeOf(value) as object | null;
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  if (isPlain && tag === 'Object') return undefined;
  if (value instanceof Error || tag === 'Error') return 'an Error, which JSON loses; throw it, or give its message';
  if (BOXED.has(tag) || Object.keys(value).length > 0) return undefined;
  const iterator = tag.endsWith('Iterator') || tag.endsWith('Iterator Helper') ? 'give [...iterator]' : undefined;
  const remedy = REMEDIES[tag] ?? iterator ?? 'give plain values, or an object with toJSON';
  const what = tag === 'Object' ? `an instance of ${classNameOf(value)}` : tag === 'BigInt' ? 'a bigint object' : `a ${tag}`;
  return `${what}, which JSON loses; ${remedy}`;
}

function classNameOf(value: object): string {
  const name: unknown = Reflect.get(value, 'constructor')?.name;
  return typeof name === 'string' && name !== '' ? name : 'a class without a name';
}

function hasToJson(value: object): boolean {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}

/** Whether a value has the `toJSON` of dates, which returns a text. */
function isDate(value: object): boolean {
  return value instanceof Date && Reflect.get(value, 'toJSON') === Date.prototype.toJSON;
}
