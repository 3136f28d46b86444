/*
 * Spells characters the way they stand in the path that a gateway compares, as pieces of regular expressions.
 *
 * Printed is only what PCRE, RE2 and Rust's engine read alike, and no character that a configuration file would read
 * as its own: quotes, spaces, `$`, braces, `#`, `;` and backslashes become `\xHH`. Spec: RFC 3986, section 2
 * "Characters".
 */

import { complement, type CharRange } from './regex-tree.js';

/** How the gateway sees a path. */
export interface Spelling {
  /** ASCII that may stand as itself. */
  readonly literal: ReadonlySet<number>;
  /** ASCII that may stand as `%HH`. */
  readonly escaped: ReadonlySet<number>;
  /** Whether characters beyond ASCII are escaped, or stand as themselves. */
  readonly escapesUnicode: boolean;
  /** ASCII whose escapes never get as far as a comparison, because such requests are refused before. */
  readonly neverEscaped: ReadonlySet<number>;
}

/** A set of UTF-16 units, spelled. */
export interface SpelledSet {
  /** Class of the units that stand as one byte; empty when there are none. */
  readonly plain: string;
  /** Spellings of the other units, as alternatives. */
  readonly others: readonly string[];
  /** Spellings that count for another number of units than the engine sees; empty when there are none. */
  readonly wide: readonly string[];
  /** Whether the set has every character but the slash. */
  readonly everything: boolean;
  /** Whether each of its characters can be sent in one way only, as itself. */
  readonly unambiguous: boolean;
}

const codes = (text: string): number[] => [...text].map((char) => char.charCodeAt(0));
const between = (low: number, high: number): number[] => Array.from({ length: high - low + 1 }, (_, i) => low + i);

/** Letters, digits and `-._`, whose escapes are refused; `~` is not among them, since old clients do escape it. */
const PLAIN = [...between(0x30, 0x39), ...between(0x41, 0x5a), ...between(0x61, 0x7a), ...codes('-._')];
const REFUSED = codes('\0/\\');

/** A path as it was sent. */
export const SENT: Spelling = {
  literal: new Set(between(0x21, 0x7e).filter((code) => !codes('%/?#\\').includes(code))),
  escaped: new Set(between(0x01, 0x7f).filter((code) => !PLAIN.includes(code) && !REFUSED.includes(code))),
  escapesUnicode: true,
  neverEscaped: new Set([...PLAIN, ...REFUSED]),
};

/** As {@link SENT}, where nothing can be refused before. */
export const SENT_UNGUARDED: Spelling = { ...SENT, neverEscaped: new Set() };

/** A path as Kong normalizes it: reserved characters as sent, all others decoded (`kong/tools/uri.lua`). */
export const NORMALIZED: Spelling = {
  literal: new Set(between(0x20, 0x7e).filter((code) => !codes('%/?#\\').includes(code))),
  escaped: new Set(codes("!*'();:@&=+$,?%#[]")),
  escapesUnicode: false,
  neverEscaped: new Set([...PLAIN, ...REFUSED]),
};

/** What no request can spell, or what a gateway's engines read differently; the message completes "it has …". */
export class Unspellable extends Error {}

/**
 * Text as it may be sent, one spelling after another: `a b` is `a%20b`, `@` is `(?:@|%40)`.
 *
 * @throws {Unspellable} for dots alone, a backslash and the like, whose requests are refused
 */
export function spellText(text: string, spelling: Spelling): string {
  if (text === '.' || text === '..') throw new Unspellable('a dot segment');
  let spelled = '';
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    if (code >= 0xd800 && code <= 0xdfff) throw new Unspellable('half of a character');
    if (code < 0x80)
      spelled += oneOf([...(spelling.literal.has(code) ? [quote(code)] : []), ...printEscapes([code], spelling)]);
    else
      spelled += spelling.escapesUnicode
        ? [...new TextEncoder().encode(char)].flatMap((byte) => printEscapes([byte], spelling)).join('')
        : char;
  }
  return spelled;
}

/**
 * Spells a set of UTF-16 units; a slash in it is left out.
 *
 * @throws {Unspellable} when it holds some surrogates and not all, or what engines read differently
 */
export function spellSet(ranges: readonly CharRange[], negated: boolean, spelling: Spelling): SpelledSet {
  const outside = negated ? ranges : complement(ranges);
  const inside = complement(outside);
  const has = (low: number, high: number): boolean => inside.some(([from, to]) => from <= low && high <= to);
  const touches = (low: number, high: number): boolean => inside.some(([from, to]) => from <= high && low <= to);
  const literal = [...spelling.literal].filter((code) => has(code, code));
  const escaped = [...spelling.escaped].filter((code) => has(code, code));
  const wholeUnicode = beyondAscii(complement([])).every(([low, high]) => has(low, high));
  const surrogates = touches(0xd800, 0xdfff);
  if (surrogates && !has(0xd800, 0xdfff)) throw new Unspellable('half of a character beyond U+FFFF');
  if (!spelling.escapesUnicode && wholeUnicode !== surrogates)
    throw new Unspellable('a part of the characters beyond ASCII');
  const others = printEscapes(escaped, spelling);
  const wide: string[] = [];
  if (wholeUnicode)
    (spelling.escapesUnicode ? others : wide).push(
      spelling.escapesUnicode ? `%[C-Ec-e]${HEX}(?:%${TAIL}){1,2}` : '[^\\x00-\\x7F]',
    );
  else {
    for (const [low, high] of beyondAscii(inside)) {
      if (!spelling.escapesUnicode && low !== high) throw new Unspellable('a range of characters beyond ASCII');
      others.push(...(spelling.escapesUnicode ? spellRange(low, high) : [String.fromCharCode(low)]));
    }
  }
  if (surrogates && spelling.escapesUnicode) wide.push(`%[Ff][0-4](?:%${TAIL}){3}`);
  return {
    plain: printSet(literal, spelling),
    others,
    wide,
    everything:
      literal.length === spelling.literal.size &&
      escaped.length === spelling.escaped.size &&
      wholeUnicode &&
      surrogates,
    unambiguous: escaped.length === 0 && !touches(0x80, 0xffff),
  };
}

/**
 * Joins alternatives into one piece of a sequence.
 *
 * @param alternatives none of them has a `|` outside of a group: a single one is not put into a group
 * @throws {Unspellable} when there are none
 */
export function oneOf(alternatives: readonly string[]): string {
  const given = alternatives.filter((text) => text !== '');
  if (given.length === 0) throw new Unspellable('a character that no request may have');
  return given.length === 1 ? given.join('') : `(?:${given.join('|')})`;
}

const HEX = '[0-9A-Fa-f]';
const TAIL = `[89ABab]${HEX}`;

function beyondAscii(ranges: readonly CharRange[]): CharRange[] {
  const cut: CharRange[] = ranges.flatMap(([low, high]): CharRange[] => [
    [Math.max(low, 0x80), Math.min(high, 0xd7ff)],
    [Math.max(low, 0xe000), high],
  ]);
  return cut.filter(([low, high]) => low <= high);
}

/** Escapes of a range of characters up to U+FFFF, as alternatives of UTF-8 sequences (RFC 3629, section 4). */
function spellRange(low: number, high: number): string[] {
  if (low <= 0x7ff && high > 0x7ff) return [...spellRange(low, 0x7ff), ...spellRange(0x800, high)];
  for (const mask of high > 0x7ff ? [0x3f, 0xfff] : [0x3f]) {
    if ((low & ~mask) === (high & ~mask)) continue;
    if ((low & mask) !== 0) return [...spellRange(low, low | mask), ...spellRange((low | mask) + 1, high)];
    if ((high & mask) !== mask) return [...spellRange(low, (high & ~mask) - 1), ...spellRange(high & ~mask, high)];
  }
  const encoder = new TextEncoder();
  const [from, to] = [encoder.encode(String.fromCharCode(low)), encoder.encode(String.fromCharCode(high))];
  return [[...from].map((byte, i) => oneOf(printEscapes(between(byte, to[i] ?? byte), null))).join('')];
}

/** Writes `%HH` for each code, as alternatives; codes with the same low digits share one. */
function printEscapes(bytes: readonly number[], spelling: Spelling | null): string[] {
  const wanted = new Set(bytes.filter((byte) => byte >= 0x80 || spelling === null || spelling.escaped.has(byte)));
  const rows = new Map<string, number[]>();
  for (const high of between(0, 15)) {
    const row = between(high * 16, high * 16 + 15);
    const lows = row.filter((byte) => wanted.has(byte));
    if (lows.length === 0) continue;
    // Escapes that are refused before may as well match, if that makes the row whole: `%2[0-9A-Fa-f]`.
    const whole = lows.length > 1 && row.every((byte) => wanted.has(byte) || spelling?.neverEscaped.has(byte) === true);
    const key = printDigits(whole ? between(0, 15) : lows.map((byte) => byte % 16));
    rows.set(key, [...(rows.get(key) ?? []), high]);
  }
  return [...rows].map(([low, highs]) => `%${printDigits(highs)}${low}`);
}

function printDigits(values: readonly number[]): string {
  // 0 is 0x30, A is 0x41, and a is 0x61.
  const digits = values.flatMap((value) => (value < 10 ? [value + 0x30] : [value + 0x37, value + 0x57]));
  const text = printRuns(digits.sort((a, b) => a - b));
  return text.length === 1 ? text : `[${text}]`;
}

/** A set of literal characters; by what it lacks, where only literal characters get as far as a comparison. */
function printSet(members: readonly number[], { literal, neverEscaped, escapesUnicode }: Spelling): string {
  if (members.length === 0) return '';
  const [only] = members;
  if (escapesUnicode && neverEscaped.size > 0 && literal.size - members.length < 8) {
    return `[^%/${printRuns([...literal].filter((code) => !members.includes(code)))}]`;
  }
  return members.length === 1 && only !== undefined ? quote(only) : `[${printRuns(members)}]`;
}

function printRuns(members: readonly number[]): string {
  let text = '';
  for (let i = 0; i < members.length; i += 1) {
    const from = members[i] ?? 0;
    let to = from;
    while (members[i + 1] === to + 1) to = members[(i += 1)] ?? to;
    text += quoteInClass(from) + (to - from > 1 ? '-' : '') + (to > from ? quoteInClass(to) : '');
  }
  return text;
}

function quoteInClass(code: number): string {
  const char = String.fromCharCode(code);
  return /[A-Za-z0-9_.,:@=!*+()|%/]/.test(char) ? char : hex(code);
}

function quote(code: number): string {
  const char = String.fromCharCode(code);
  if (/[.*+?()|[\]^]/.test(char)) return `\\${char}`;
  return /[A-Za-z0-9_,:@=!~&-]/.test(char) ? char : hex(code);
}

function hex(code: number): string {
  return `\\x${code.toString(16).toUpperCase().padStart(2, '0')}`;
}
