/*
 * Writes messages of Protocol Buffers from tables of their fields, as bytes or as JSON, as OpenTelemetry's protocol has
 * them.
 *
 * Both are texts in which each character is one byte. So the length of a message is the length of its text, parts of
 * messages are put together like any text, and a batch is turned into bytes by copying.
 *
 * Spec: opentelemetry-proto 1.x; Protocol Buffers, "Encoding"; OTLP, "JSON Protobuf Encoding".
 */

export type Form = 'json' | 'protobuf';

/** A type of protobuf: writes a value in JSON, or in protobuf with the tag of its field. */
export interface Kind<T> extends Readonly<Record<Form, (value: T, tag: string) => string>> {
  /** 0: variable length. 1: 64 bits. 2: with its length first. 5: 32 bits. */
  readonly wire: 0 | 1 | 2 | 5;
}

/** A value of an attribute, or the body of a log record. */
export type Value = string | number | boolean | null | Value[] | { readonly [key: string]: Value };

/** Attributes by name; undefined is left out. */
export type Attributes = Readonly<Record<string, Value | undefined>>;

/** The fields of a message by name, each with its number. */
type Fields = Readonly<Record<string, readonly [number: number, kind: Kind<never>]>>;

/** The values of a table of fields; undefined is left out. */
export type Structure<F extends Fields> = {
  readonly [Name in keyof F]?: F[Name] extends readonly [number, Kind<infer T>] ? T | undefined : never;
};

export const TEXT: Kind<string> = scalar(2, quote, (text) => withLength(toUtf8(text)));
/** Bytes in hexadecimal. */
export const ID: Kind<string> = scalar<string>(2, inQuotes, (id) => withLength(hexBytes(id)));
export const BOOLEAN: Kind<boolean> = scalar(0, String, (value) => varint(Number(value)));
export const NUMBER: Kind<number> = scalar(0, String, varint);
const INT_64: Kind<number> = scalar(0, inQuotes, varint);
export const FIXED_32: Kind<number> = scalar(5, String, fixed32);
/** A whole number of 64 bits. */
export const COUNT: Kind<number> = scalar<number>(1, inQuotes, (count) => fixed64(0, 0, count));
/** In ms since the Unix epoch; sent in nanoseconds. */
export const TIME: Kind<number> = scalar(
  1,
  (ms) => `"${Math.floor(ms)}${String(1e6 + nanosIn(ms)).slice(1)}"`,
  (ms) => fixed64(Math.floor(ms), 1e6, nanosIn(ms)),
);
export const DOUBLE: Kind<number> = scalar(1, (value) => (isFinite(value) ? String(value) : inQuotes(value)), double);
/** AnyValue. */
export const VALUE: Kind<Value> = {
  wire: 2,
  json: (value, tag) => ofAny(value).json(value as never, tag),
  protobuf: (value, tag) => ofAny(value).protobuf(value as never, tag),
};
/** A list of KeyValue. A text is one that {@link encodeAttributes} returned. */
export const ATTRIBUTES: Kind<Attributes | string> = {
  wire: 2,
  json: (given, tag) => `[${typeof given === 'string' ? given : encodeAttributes('json', given, tag)}]`,
  protobuf: (given, tag) => (typeof given === 'string' ? given : encodeAttributes('protobuf', given, tag)),
};
const PAIR = message({ key: [1, TEXT], value: [2, VALUE] });
/** The messages of an AnyValue, each with the one member that it may have. */
const ANY = {
  text: only('stringValue', 1, TEXT), boolean: only('boolValue', 2, BOOLEAN), whole: only('intValue', 3, INT_64),
  number: only('doubleValue', 4, DOUBLE), list: only('arrayValue', 5, only('values', 1, list(VALUE))),
  record: only('kvlistValue', 6, only('values', 1, ATTRIBUTES)), nothing: message({}),
};

export function message<F extends Fields>(fields: F): Kind<Structure<F>> {
  const entries = Object.entries(fields).map(([name, [number, kind]]) => ({ name, kind, tag: tagOf(number, kind) }));
  const write = (form: Form, given: Structure<F>): string => {
    let text = '';
    for (const { name, kind, tag } of entries) {
      const value = given[name];
      if (value === undefined) continue;
      if (form === 'json') text += `${text === '' ? '' : ','}"${name}":`;
      text += kind[form](value as never, tag);
    }
    return text;
  };
  return {
    wire: 2,
    json: (given) => `{${write('json', given)}}`,
    protobuf: (given, tag) => tag + withLength(write('protobuf', given)),
  };
}

/** Values that each have the tag. */
export function list<T>({ wire, json, protobuf }: Kind<T>): Kind<readonly T[]> {
  return {
    wire,
    json: (values, tag) => `[${values.map((value) => json(value, tag)).join(',')}]`,
    protobuf: (values, tag) => values.map((value) => protobuf(value, tag)).join(''),
  };
}

/** Numbers after one tag. */
export function packed(kind: Kind<number>): Kind<readonly number[]> {
  const { json, protobuf } = list(kind);
  return { wire: 2, json, protobuf: (values, tag) => tag + withLength(protobuf(values, '')) };
}

/** @param tag of the list @param before attributes of the same list, encoded */
export function encodeAttributes(form: Form, given: Attributes, tag: string, before = ''): string {
  let text = before;
  for (const key in given) {
    const value = given[key];
    if (value === undefined) continue;
    if (form === 'json' && text !== '') text += ',';
    text += PAIR[form]({ key, value }, tag);
  }
  return text;
}

/** Begins a field. Default: of a message. */
export function tagOf(number: number, { wire }: Pick<Kind<never>, 'wire'> = { wire: 2 }): string {
  return varint((number << 3) | wire);
}

/** An id, if the value is one. @param digits hexadecimal, not all of them 0 */
export function toId(value: unknown, digits: 16 | 32): string | undefined {
  const isId = typeof value === 'string' && value.length === digits && /^(?!0*$)[0-9a-f]+$/.test(value);
  return isId ? value : undefined;
}

function scalar<T>(wire: Kind<T>['wire'], json: (value: T) => string, protobuf: (value: T) => string): Kind<T> {
  return { wire, json, protobuf: (value, tag) => tag + protobuf(value) };
}

function only<T>(name: string, number: number, kind: Kind<T>): Kind<T> {
  const own = tagOf(number, kind);
  return {
    wire: 2,
    json: (value) => `{"${name}":${kind.json(value, own)}}`,
    protobuf: (value, tag) => tag + withLength(kind.protobuf(value, own)),
  };
}

function ofAny(value: Value): Kind<never> {
  if (typeof value === 'string') return ANY.text;
  if (typeof value === 'boolean') return ANY.boolean;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? ANY.whole : ANY.number;
  if (value === null) return ANY.nothing;
  return Array.isArray(value) ? ANY.list : ANY.record;
}

function withLength(text: string): string {
  return varint(text.length) + text;
}

/** A whole number in groups of seven bits, the lowest first; ten groups if it is negative, as 64 bits have. */
export function varint(value: number): string {
  let text = '';
  let rest = value;
  for (let count = 1; (rest < 0 || rest > 127) && count < 10; count += 1) {
    text += String.fromCharCode((rest & 127) | 128);
    rest = Math.floor(rest / 128);
  }
  return text + String.fromCharCode(rest < 0 ? 1 : rest);
}

function fixed32(value: number): string {
  return String.fromCharCode(value & 255, (value >>> 8) & 255, (value >>> 16) & 255, value >>> 24);
}

/** `factor * times + more`, in parts: a number is exact up to 53 bits only, and a BigInt takes four times as long. */
function fixed64(factor: number, times: number, more: number): string {
  const upper = Math.floor(factor / 65_536) * times;
  const lower = (upper % 65_536) * 65_536 + (factor % 65_536) * times + more;
  return fixed32(lower % 2 ** 32) + fixed32(Math.floor(upper / 65_536) + Math.floor(lower / 2 ** 32));
}

function hexBytes(id: string): string {
  return Buffer.from(id, 'hex').toString('latin1');
}

function double(value: number): string {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeDoubleLE(value);
  return bytes.toString('latin1');
}

/** The nanoseconds after the last whole millisecond. */
function nanosIn(ms: number): number {
  return Math.min(999_999, Math.round((ms % 1) * 1e6));
}

function inQuotes(value: number | string): string {
  return `"${value}"`;
}

/** @returns a JSON string of ASCII */
function quote(text: string): string {
  // Half of a surrogate pair has no UTF-8 form: collectors reject the whole batch for it.
  const json = JSON.stringify(text.toWellFormed());
  if (Buffer.byteLength(json) === json.length) return json;
  return json.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** @returns the bytes of a text in UTF-8, each as a character */
function toUtf8(text: string): string {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1');
}
