/* Finds what `JSON.stringify` drops without a word: a Map or a Promise becomes `{}`, and a function nothing at all. */

/** A value cannot be sent. The message has the place in the value and the remedy; the pipeline adds the route. */
export class UnsendableError extends TypeError {}

const BY_ITSELF = 'return it by itself, or';

/** Objects that become `{}`, by their tag, with a value to use instead. */
const REMEDIES: Readonly<Record<string, string>> = {
  Map: 'give Object.fromEntries(map)',
  Set: 'give [...set]',
  'Map Iterator': 'give [...iterator]',
  'Set Iterator': 'give [...iterator]',
  'Array Iterator': 'give [...iterator]',
  Generator: 'give [...generator]',
  AsyncGenerator: `${BY_ITSELF} collect it first`,
  ReadableStream: `${BY_ITSELF} collect it first`,
  Promise: 'await it first',
  Blob: `${BY_ITSELF} give await blob.text()`,
  File: `${BY_ITSELF} give await file.text()`,
  FormData: `${BY_ITSELF} give Object.fromEntries(form)`,
  URLSearchParams: `${BY_ITSELF} give Object.fromEntries(params)`,
  ArrayBuffer: `${BY_ITSELF} give it as base64`,
  SharedArrayBuffer: 'give it as base64',
  DataView: `${BY_ITSELF} give it as base64`,
  WeakMap: 'leave it out',
  WeakSet: 'leave it out',
};

/** How many elements of each array are looked at: elements of a list are mostly of one kind. */
const SAMPLE = 10;
/** Maximum depth of the search. */
const MAX_DEPTH = 100;

/**
 * Costs a tenth of `JSON.stringify` or less: every element of an array is looked at only if the text has a `{}`,
 * which a Map, a Promise and the like turn into. Functions leave nothing, and are looked for in the first ten elements.
 *
 * @param json the value as `JSON.stringify` wrote it
 * @throws {TypeError} when a member of the value is lost in it
 */
export function assertNothingLost(value: unknown, json: string): void {
  if (typeof value !== 'object' || value === null) return;
  const lost = findLost(value, json.includes('{}') ? Infinity : SAMPLE, MAX_DEPTH);
  if (lost === undefined) return;
  // Nobody else awaits a promise in a lost value, so its rejection would end the process.
  JSON.stringify(value, (_name, member) => (member instanceof Promise ? void member.catch(() => {}) : member));
  throw new UnsendableError(lost.replace(/^\.?(?= )/, 'the value').replace(/^\./, ''));
}

/**
 * @param most elements of each array that are looked at
 * @returns `.users[0].roles is a Map, which JSON loses; …`; ` is a Map, …` for the value itself
 */
function findLost(value: object, most: number, depth: number): string | undefined {
  // The result of `toJSON` is written instead of the object, as the object wants it.
  if (depth === 0 || ('toJSON' in value && typeof value.toJSON === 'function')) return undefined;
  if (Array.isArray(value)) {
    const count = Math.min(value.length, most);
    for (let i = 0; i < count; i += 1) {
      const lost = lostMember(value[i], most, depth);
      if (lost !== undefined) return `[${i}]${lost}`;
    }
    return undefined;
  }
  let isEmpty = true;
  for (const name in value) {
    // `for in` visits own names before inherited ones.
    if (isEmpty && !Object.hasOwn(value, name)) break;
    isEmpty = false;
    const lost = lostMember((value as Record<string, unknown>)[name], most, depth);
    if (lost !== undefined && Object.hasOwn(value, name)) return `.${name}${lost}`;
  }
  if (!isEmpty) return undefined;
  // A Map and the like, unlike an object that is really empty, is known by its tag.
  const what = Object.prototype.toString.call(value).slice('[object '.length, -1);
  return Object.hasOwn(REMEDIES, what) ? ` is a ${what}, which JSON loses; ${REMEDIES[what]}` : undefined;
}

function lostMember(member: unknown, most: number, depth: number): string | undefined {
  if (typeof member === 'object') return member === null ? undefined : findLost(member, most, depth - 1);
  if (typeof member !== 'function' || 'toJSON' in member) return undefined;
  return ' is a function, which JSON loses; call it, or leave it out';
}
