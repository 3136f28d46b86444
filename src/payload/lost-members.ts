/*
 * Writes JSON, and refuses what `JSON.stringify` drops without a word: a Map or a promise becomes `{}`, a function
 * nothing at all.
 */

import { Date } from '../base/clock.js';
import { ignoreRejection } from '../base/promises.js';
import { discardStream, isNodeStream, isStream } from './bytes.js';

/** A value cannot be sent. The message has the place in the value and the remedy; the answering side adds the route. */
export class UnsendableError extends TypeError {}

const BY_ITSELF = 'send it by itself, or';

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
};

/** Tags of objects that JSON writes as the primitive in them. */
const BOXED: ReadonlySet<string> = new Set(['String', 'Number', 'Boolean']);

/**
 * A value as JSON. Everything is looked at: a lost member may be in any row.
 *
 * @param name of the value, which begins the places in messages: `json/items/3`
 * @throws {UnsendableError} when the value or a member of it is lost: a function, a symbol, a bigint, an error, and any
 * object of which JSON keeps nothing and that is neither a plain object nor an array
 * @throws {TypeError} for a cycle
 */
export function toJson(value: unknown, name = ''): string {
  const losses: string[] = [];
  const replacer = isKept(value, MAX_DEPTH) ? undefined : createSearch(losses, name);
  const json = JSON.stringify(value, replacer) as string | undefined;
  const [first] = losses;
  if (first !== undefined) throw new UnsendableError(first);
  return json ?? 'null';
}

/** Maximum depth at which {@link isKept} looks. */
const MAX_DEPTH = 50;

/** Whether JSON surely keeps a value and everything in it. Costs an eighth of `JSON.stringify`. */
function isKept(value: unknown, depth: number): boolean {
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') return false;
  if (typeof value !== 'object' || value === null) return true;
  if (depth === 0) return false;
  if (Array.isArray(value)) return areKept(value, depth);
  const isPlain = Object.getPrototypeOf(value) === Object.prototype;
  if (!isPlain && (hasToJson(value) || lossOf(value) !== undefined)) return isDate(value);
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

/**
 * Looks at each value that JSON.stringify writes: what a `toJSON` returns is seen only then.
 *
 * @param losses a line is added for each lost value: `/items/3/tags is a Map, which JSON loses; …`
 */
function createSearch(losses: string[], root: string): (this: unknown, name: string, value: unknown) => unknown {
  const places = new Map<unknown, { readonly holder: unknown; readonly name: string }>();
  return function (name, value) {
    const what = lossOf(value);
    if (what === undefined) {
      places.set(value, { holder: this, name });
      return value;
    }
    // Nobody else awaits a promise in a value, or reads a stream: its failure would end the process.
    if (isStream(value)) discardStream(value);
    else ignoreRejection(value);
    const path = [name];
    for (let at = places.get(this); at !== undefined; at = places.get(at.holder)) path.unshift(at.name);
    // The first name is the empty one of the whole value.
    losses.push(`${[root, ...path.slice(1)].join('/') || 'the value'} is ${what}`);
    return undefined;
  };
}

/** Describes a value that JSON loses as a whole, with the remedy; undefined for any other value. */
function lossOf(value: unknown): string | undefined {
  // Programs define BigInt.prototype.toJSON.
  if (value === null || value === undefined || hasToJson(Object(value) as object)) return undefined;
  if (typeof value === 'bigint') return 'a bigint, which JSON loses; give String(bigint)';
  if (typeof value === 'symbol') return 'a symbol, which JSON loses; give its description';
  if (typeof value === 'function') return 'a function, which JSON loses; call it, or leave it out';
  if (typeof value !== 'object' || Array.isArray(value)) return undefined;
  const prototype = Object.getPrototypeOf(value) as object | null;
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  if (isPlain && tag === 'Object') return undefined;
  if (value instanceof Error || tag === 'Error') return 'an Error, which JSON loses; throw it, or give its message';
  if (isNodeStream(value)) return `a stream, which JSON loses; ${BY_ITSELF} collect it first`;
  if (BOXED.has(tag) || Object.values(value).some((member) => member !== undefined)) return undefined;
  const iterator = tag.endsWith('Iterator') || tag.endsWith('Iterator Helper') ? 'give [...iterator]' : undefined;
  const remedy = REMEDIES[tag] ?? iterator ?? 'give plain values, or an object with toJSON';
  return `${tag === 'Object' ? `an instance of ${classNameOf(value)}` : `a ${tag}`}, which JSON loses; ${remedy}`;
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
