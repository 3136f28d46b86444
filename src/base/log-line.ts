/*
 * One entry of the log as one line of JSON, for any value in it. A value that JSON can't express is described in
 * words, and the rest of the entry is written as usual.
 */

import { builtin } from './builtin.js';
import { isRecord } from './options-check.js';

/** Maximum depth of the causes of an error, and maximum errors of an `AggregateError` that are written. */
const MAX_CAUSES = 5;
const MAX_ERRORS = 10;

/** Members of an error that are not enumerable, and are texts unless somebody has changed them. */
const TEXTS = ['name', 'message', 'stack'];

/** C0, U+007F, C1 and bidirectional controls, line separators. JSON escapes the first of these only. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Escapes the characters that a terminal or a log viewer acts on; in JSON they are in strings only. */
export function escapeControls(text: string): string {
  return text.replace(UNSAFE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * @param head its members come first, and fields of the same name don't replace them
 * @returns a line, its end included
 */
export function formatLine(head: object, fields: object, message: string | undefined): string {
  const entry: Record<string, unknown> = { ...head, ...fields, ...head };
  if (message !== undefined) entry['msg'] = message;
  // JSON.stringify would write the result of this function instead of the entry.
  if (typeof entry['toJSON'] === 'function') delete entry['toJSON'];
  try {
    return `${escapeControls(JSON.stringify(entry, replaceValue))}\n`;
  } catch {
    // A cycle, a getter that throws, a revoked proxy and the like.
    const members = Object.entries(entry).map(([name, value]) => `${JSON.stringify(name)}:${formatMember(value)}`);
    return `${escapeControls(`{${members.join(',')}}`)}\n`;
  }
}

/** A value in words; never throws. */
export function inspectSafely(value: unknown): string {
  try {
    return builtin('node:util').inspect(value, { depth: 2 });
  } catch {
    return 'unprintable';
  }
}

/** The own members of an object, as far as they can be read. */
export function membersOf(object: object): object {
  let names: string[];
  try {
    names = Object.keys(object);
  } catch {
    return { entry: inspectSafely(object) };
  }
  return Object.fromEntries(names.map((name) => [name, read(object, name)]));
}

/** An entry that any logger can write: an error as the texts of its name, message and stack, other objects in words. */
export function plainEntry(entry: object): object {
  const plain = (value: unknown): unknown => {
    if (value instanceof Error) {
      const texts = TEXTS.map((name) => [name, String(read(value, name))]);
      // Without a prototype, so that pino takes the name for the type.
      return Object.assign(Object.create(null), Object.fromEntries(texts));
    }
    return value === null || !/^(?:object|function|bigint|symbol)$/.test(typeof value) ? value : inspectSafely(value);
  };
  return Object.fromEntries(Object.entries(membersOf(entry)).map(([name, value]) => [name, plain(value)]));
}

function read(object: object, name: string): unknown {
  try {
    return Reflect.get(object, name);
  } catch (error) {
    return `unreadable: ${inspectSafely(error)}`;
  }
}

function formatMember(value: unknown): string {
  try {
    return (JSON.stringify(value, replaceValue) as string | undefined) ?? 'null';
  } catch {
    return JSON.stringify(inspectSafely(value));
  }
}

/** @param value what the `toJSON` of the value returned, if it has one: of an error that would be without its stack */
function replaceValue(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  const given = this[key];
  if (given instanceof Error) return describeError(given, MAX_CAUSES);
  return typeof value === 'bigint' ? String(value) : value;
}

function describeError(error: Error, depth: number): object {
  const [name, ownMessage, stack, cause, errors] = [...TEXTS, 'cause', 'errors'].map((member) => read(error, member));
  const inner: unknown[] = Array.isArray(errors) ? errors.slice(0, MAX_ERRORS) : [];
  const describe = (value: unknown): unknown => {
    if (!(value instanceof Error)) return value;
    return depth > 0 ? describeError(value, depth - 1) : String(value.message);
  };
  // An own `type`, as errors of body-parser have, would take the place of the class, and a `toJSON` of everything.
  const { type: _type, toJSON: _toJSON, ...members } = ownMembersOf(error) as Record<string, unknown>;
  return {
    type: typeof name === 'string' ? name : 'Error',
    ...members,
    // The message of an AggregateError is empty, such as when both addresses of a host refuse a connection.
    message: ownMessage || inner.map((one) => (one instanceof Error ? one.message : inspectSafely(one))).join('; '),
    stack,
    ...(cause === undefined ? {} : { cause: describe(cause) }),
    ...(inner.length === 0 ? {} : { errors: inner.map(describe) }),
  };
}

/** The members of an error besides its texts: those that its `toJSON` chooses, as axios leaves out the connection. */
function ownMembersOf(error: Error): object {
  try {
    const { toJSON } = error as { toJSON?: unknown };
    const chosen: unknown = typeof toJSON === 'function' ? toJSON.call(error) : undefined;
    if (isRecord(chosen)) return membersOf(chosen);
  } catch {
    // It has its own members.
  }
  return membersOf(error);
}
