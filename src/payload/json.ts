/* Parses JSON that comes from a client, without what could later bring the process down or change its prototypes. */

import { builtin } from '../base/builtin.js';
import { HttpError } from '../base/errors.js';
import { isRecord } from '../base/options-check.js';
import { decodeUtf8 } from './bytes.js';

/** Not by an `import` of `node:buffer`, which would load `File`, too. */
const { isUtf8 } = builtin('node:buffer');

/** Honest documents are flatter by far, and code that recurses over this many levels does not run out of stack. */
const MAX_DEPTH = 1000;

/**
 * A text without any of these has no key that is refused, such as `"constructor":{"prototype":…}`, not even with
 * escapes; its value need not be searched. None begins with a quote, where a search would stop at each string.
 */
const SUSPECTS = ['__proto__', 'constructor"', '\\u'];

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** The text of JSON, without a byte order mark. @throws {HttpError} 400 for what is not UTF-8 */
export function decodeJson(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new HttpError(400, 'The body is not valid UTF-8.');
  return decodeUtf8(bytes);
}

/**
 * @throws {HttpError} 400 for what is not JSON, is nested more than 1,000 deep, or has a key that a merge into another
 * object would take for its prototype: `__proto__`, or `prototype` in a `constructor`
 */
export function parseJson(text: string): unknown {
  const value = parseShallowJson(text);
  // An escape may spell a key that the text does not show.
  if (SUSPECTS.some((suspect) => text.includes(suspect))) assertKeys(value);
  return value;
}

/**
 * JSON with whatever keys, for what is read field by field and handed to nobody.
 *
 * @throws {HttpError} 400 for what is not JSON, or is nested more than 1,000 deep
 */
export function parseShallowJson(text: string): unknown {
  // A shorter text can't be that deep.
  if (text.length > 2 * MAX_DEPTH) assertDepth(text);
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpError(400, 'The body is not valid JSON.');
  }
}

function assertDepth(text: string): void {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (inString) {
      if (char === BACKSLASH) i += 1;
      else if (char === QUOTE) inString = false;
    } else if (char === QUOTE) inString = true;
    else if (char === OPEN_BRACKET || char === OPEN_BRACE) {
      depth += 1;
      if (depth > MAX_DEPTH) throw new HttpError(400, `The body is nested more than ${MAX_DEPTH} deep.`);
    } else if (char === CLOSE_BRACKET || char === CLOSE_BRACE) depth -= 1;
  }
}

function assertKeys(root: unknown): void {
  const waiting: unknown[] = [root];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (typeof value !== 'object' || value === null) continue;
    const own: unknown = Object.getOwnPropertyDescriptor(value, 'constructor')?.value;
    if (Object.hasOwn(value, '__proto__') || (isRecord(own) && Object.hasOwn(own, 'prototype')))
      throw new HttpError(400, 'The body has a key that is not allowed.');
    for (const child of Object.values(value)) waiting.push(child);
  }
}
