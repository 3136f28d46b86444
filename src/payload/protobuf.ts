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

/** Writes a value in JSON; in protobuf a value of a type, or a field with its tag. */
export type Writers<T> = Readonly<Record<Form, (value: T) => string>>;

/** A type of protobuf. Its wire type: 0 variable length, 1 64 bits, 2 with its length first, 5 32 bits. */
export interface Kind<T> extends Writers<T> {
  readonly wire: 0 | 1 | 2 | 5;
}

/** A value of an attribute, or the body of a log record. */
export type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value };

/** Attributes by name; undefined is left out. */
export type Attributes = Readonly<Record<string, Value | undefined>>;

/** The values of a table of fields. */
export type Structure<Fields> = {
  readonly [Name in keyof Fields]?: Fields[Name] extends Writers<infer T> ? T | undefined : never;
};

export const TEXT: Kind<string> = { wire: 2, json: quote, protobuf: (text) => withLength(toUtf8(text)) };
/** Bytes in hexadecimal. */
export const ID: Kind<string> = {
  wire: 2,
  json: (id) => `"${id}"`,
  protobuf: (id) => withLength(Buffer.from(id, 'hex').toString('latin1')),
};
export const BOOLEAN: Kind<boolean> = { wire: 0, json: String, protobuf: (value) => varint(Number(value)) };
export const NUMBER: Kind<number> = { wire: 0, json: String, protobuf: varint };
const INT_64: Kind<number> = { wire: 0, json: (value) => `"${value}"`, protobuf: varint };
export const FIXED_32: Kind<number> = { wire: 5, json: String, protobuf: fixed32 };
/** In ms since the Unix epoch; sent in nanoseconds. */
export const TIME: Kind<number> = {
  wire: 1,
  // V8 formats whole numbers of 32 bits many times faster than larger ones.
  json: (ms) => `"${secondsOf(ms)}${String(1e9 + nanosOf(ms)).slice(1)}"`,
  protobuf: (ms) => fixed64(secondsOf(ms), 1e9, nanosOf(ms)),
};
/** A whole number of 64 bits. */
export const COUNT: Kind<number> = {
  wire: 1,
  json: (count) => `"${count}"`,
  protobuf: (count) => fixed64(0, 0, count),
};
export const DOUBLE: Kind<number> = {
  wire: 1,
  json: (value) => (Number.isFinite(value) ? String(value) : `"${value}"`),
  protobuf(value) {
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeDoubleLE(value);
    return bytes.toString('latin1');
  },
};
/** AnyValue. */
export const VALUE: Kind<Value> = {
  wire: 2,
  json: (value) => `{${writeValue('json', value)}}`,
  protobuf: (value) => withLength(writeValue('protobuf', value)),
};
const PAIR = message({ key: field(1, TEXT), value: field(2, VALUE) });
const ANY = {
  stringValue: field(1, TEXT),
  boolValue: field(2, BOOLEAN),
  intValue: field(3, INT_64),
  doubleValue: field(4, DOUBLE),
  arrayValue: field(5, message({ values: list(1, VALUE) })),
  kvlistValue: field(6, message({ values: attributes(1) })),
};

/** @param number of the field */
export function field<T>(number: number, { wire, json, protobuf }: Kind<T>): Writers<T> {
  const tag = varint((number << 3) | wire);
  return { json, protobuf: (value) => tag + protobuf(value) };
}

export function list<T>(number: number, kind: Kind<T>): Writers<readonly T[]> {
  const { json, protobuf } = field(number, kind);
  return {
    json: (values) => `[${values.map(json).join(',')}]`,
    protobuf: (values) => values.map(protobuf).join(''),
  };
}

/** A list of numbers. */
export function packed<T>(kind: Kind<T>): Kind<readonly T[]> {
  return {
    wire: 2,
    json: (values) => `[${values.map(kind.json).join(',')}]`,
    protobuf: (values) => withLength(values.map(kind.protobuf).join('')),
  };
}

/** A list of attributes. A text is one that {@link encodeAttributes} returned for the same field. */
export function attributes(number: number): Writers<Attributes | string> {
  const pair = pairField(number);
  const encode = (form: Form, given: Attributes | string): string =>
    typeof given === 'string' ? given : encodeAttributes(form, pair, given);
  return { json: (given) => `[${encode('json', given)}]`, protobuf: (given) => encode('protobuf', given) };
}

/** One attribute of a list of attributes. */
export function pairField(number: number): Writers<Pair> {
  return field(number, PAIR);
}

interface Pair {
  readonly key?: string | undefined;
  readonly value?: Value | undefined;
}

/** @param pair the field @param before attributes of the same field, encoded */
export function encodeAttributes(form: Form, pair: Writers<Pair>, given: Attributes, before = ''): string {
  const { json, protobuf } = pair;
  let text = before;
  for (const key in given) {
    const value = given[key];
    if (value === undefined) continue;
    text += form === 'protobuf' ? protobuf({ key, value }) : (text === '' ? '' : ',') + json({ key, value });
  }
  return text;
}

/** Fields that are undefined are left out. */
export function message<F extends Readonly<Record<string, Writers<never>>>>(fields: F): Kind<Structure<F>> {
  const entries = Object.entries(fields).map(([name, writers]) => ({ name, ...writers }));
  return {
    wire: 2,
    json(given) {
      let text = '';
      for (const { name, json } of entries) {
        const value = given[name];
        if (value !== undefined) text += `${text === '' ? '' : ','}"${name}":${json(value as never)}`;
      }
      return `{${text}}`;
    },
    protobuf(given) {
      let text = '';
      for (const { name, protobuf } of entries) {
        const value = given[name];
        if (value !== undefined) text += protobuf(value as never);
      }
      return withLength(text);
    },
  };
}

/** Writes the one member that an AnyValue has. */
function writeValue(form: Form, value: Value): string {
  const write = <T>(name: keyof typeof ANY, writers: Writers<T>, given: T): string =>
    form === 'json' ? `"${name}":${writers.json(given)}` : writers.protobuf(given);
  if (typeof value === 'string') return write('stringValue', ANY.stringValue, value);
  if (typeof value === 'boolean') return write('boolValue', ANY.boolValue, value);
  if (typeof value === 'number') {
    const isWhole = Number.isSafeInteger(value);
    return isWhole ? write('intValue', ANY.intValue, value) : write('doubleValue', ANY.doubleValue, value);
  }
  if (value === null) return '';
  if (isList(value)) return write('arrayValue', ANY.arrayValue, { values: value });
  return write('kvlistValue', ANY.kvlistValue, { values: value });
}

/** `Array.isArray` does not tell a readonly array from an object. */
function isList(value: object): value is readonly Value[] {
  return Array.isArray(value);
}

/** An id, if the value is one. @param digits hexadecimal, not all of them 0 */
export function toId(value: unknown, digits: 16 | 32): string | undefined {
  const isId = typeof value === 'string' && value.length === digits && /^(?!0*$)[0-9a-f]+$/.test(value);
  return isId ? value : undefined;
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

function secondsOf(ms: number): number {
  return Math.floor(ms / 1000);
}

function nanosOf(ms: number): number {
  return Math.min(999_999_999, Math.round((ms - secondsOf(ms) * 1000) * 1e6));
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
