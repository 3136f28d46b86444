/**
 * Parses regular expressions into a tree, which prints back letter for letter.
 *
 * Understood is JavaScript's syntax without the flags `i`, `m`, `u` and `v`, less what only its Annex B tolerates:
 * octal escapes, escapes of letters that mean nothing, lone brackets and braces, repeated lookaheads. Spec: ECMA-262,
 * section 22.2.1 "Patterns".
 */

import { complement, type CharactersNode, type CharRange, type RegexNode } from './regex-tree.js';

/**
 * Parses `source`. What it accepts, `new RegExp(source, 's')` accepts and reads the same way.
 *
 * @throws {TypeError} with the position and the remedy
 */
export function parseRegex(source: string): RegexNode {
  return new Parser(source).parse();
}

const DIGITS: readonly CharRange[] = [[0x30, 0x39]];
const WORD: readonly CharRange[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
const SPACE: readonly CharRange[] = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
const CLASS_ESCAPES = new Map([
  ['d', DIGITS],
  ['w', WORD],
  ['s', SPACE],
]);
const CONTROL_ESCAPES = new Map([
  ['t', 9],
  ['n', 10],
  ['v', 11],
  ['f', 12],
  ['r', 13],
]);

/** Deeper groups are refused, so that no later walk over the tree can exhaust the stack. */
const MAX_DEPTH = 100;

class Parser {
  readonly #source: string;
  #at = 0;
  #depth = 0;
  #captures = 0;
  readonly #names = new Map<string, number>();
  readonly #references: {
    readonly node: { raw: string; group: number };
    readonly target: string;
    readonly index: number;
  }[] = [];

  constructor(source: string) {
    this.#source = source;
  }

  parse(): RegexNode {
    const node = this.#alternation();
    if (this.#at < this.#source.length) this.#fail('")" without "("', 'escape it: \\)');
    for (const { node: reference, target, index } of this.#references) {
      reference.group = /^\d/.test(target) ? Number(target) : (this.#names.get(target) ?? Infinity);
      if (reference.group > this.#captures)
        this.#fail(`reference to a missing group, "${reference.raw}"`, 'refer to a group of this constraint', index);
    }
    return node;
  }

  #alternation(): RegexNode {
    const items = [this.#sequence()];
    while (this.#take('|')) items.push(this.#sequence());
    return items.length === 1 && items[0] !== undefined ? items[0] : { type: 'alternation', items };
  }

  #sequence(): RegexNode {
    const items: RegexNode[] = [];
    while (this.#at < this.#source.length && !this.#sees('|') && !this.#sees(')')) items.push(this.#quantified());
    return items.length === 1 && items[0] !== undefined ? items[0] : { type: 'sequence', items };
  }

  #quantified(): RegexNode {
    const index = this.#at;
    const body = this.#atom();
    const quantifier = this.#match(/(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})\??/y);
    if (quantifier === null) return body;
    const [raw, from, comma, to] = quantifier;
    if (body.type === 'look' || body.type === 'assertion')
      this.#fail(`quantifier "${raw}" after an assertion`, 'remove it', index);
    const min = from === undefined ? (raw.startsWith('+') ? 1 : 0) : Number(from);
    const max =
      from === undefined
        ? raw.startsWith('?')
          ? 1
          : Infinity
        : comma === undefined
          ? min
          : to
            ? Number(to)
            : Infinity;
    if (min > max) this.#fail(`quantifier "${raw}" out of order`, 'put the smaller number first', index);
    return { type: 'repeat', body, min, max, raw, index };
  }

  #atom(): RegexNode {
    const index = this.#at;
    const char = this.#source.charAt(index);
    if (char === '(') return this.#group();
    if (char === '[') return this.#class();
    if (char === '\\') {
      const assertion = this.#match(/\\[bB]/y);
      if (assertion !== null) return { type: 'assertion', raw: assertion[0] };
      const reference = this.#match(/\\(?:([1-9]\d*)|k<([^>\d][^>]*)>)/y);
      if (reference !== null) {
        const node = { type: 'backreference' as const, raw: reference[0], group: 0 };
        this.#references.push({ node, target: reference[1] ?? reference[2] ?? '', index });
        return node;
      }
      const { ranges, negated } = this.#escape();
      return { type: 'characters', raw: this.#source.slice(index, this.#at), index, ranges, negated };
    }
    this.#at += 1;
    if (char === '^' || char === '$') return { type: 'assertion', raw: char };
    if ('*+?'.includes(char)) this.#fail(`quantifier "${char}" on nothing`, `escape it: \\${char}`, index);
    if ('{}]'.includes(char)) this.#fail(`unbalanced "${char}"`, `escape it: \\${char}`, index);
    return { type: 'characters', raw: char, index, ranges: char === '.' ? [] : single(char), negated: char === '.' };
  }

  #group(): RegexNode {
    const index = this.#at;
    const [open = '', name] = this.#match(/\((?:\?(?:[:=!]|<[=!]|<([A-Za-z_$][\w$]*)>))?/y) ?? [];
    if (this.#sees('?'))
      this.#fail('unknown kind of group', 'use (x), (?:x), (?<name>x), (?=x), (?!x), (?<=x) or (?<!x)', index);
    const look = /[=!]$/.test(open);
    const capture = look || open === '(?:' ? 0 : ++this.#captures;
    if (name !== undefined) {
      if (this.#names.has(name)) this.#fail(`duplicate group "${name}"`, 'rename one', index);
      this.#names.set(name, capture);
    }
    if (++this.#depth > MAX_DEPTH) this.#fail(`more than ${MAX_DEPTH} groups inside each other`, 'simplify it', index);
    const body = this.#alternation();
    this.#depth -= 1;
    if (!this.#take(')')) this.#fail('"(" without ")"', 'close it, or escape it: \\(', index);
    return look ? { type: 'look', open, behind: open.startsWith('(?<'), body } : { type: 'group', open, capture, body };
  }

  #class(): CharactersNode {
    const index = this.#at;
    const negated = this.#match(/\[\^?/y)?.[0] === '[^';
    const ranges: CharRange[] = [];
    while (!this.#take(']')) {
      const start = this.#at;
      const from = this.#member(index);
      if (!this.#sees('-') || this.#source[this.#at + 1] === ']') {
        ranges.push(...from);
        continue;
      }
      this.#at += 1;
      const to = this.#member(index);
      const [low, high] = [from[0]?.[0] ?? 0, to[0]?.[0] ?? 0];
      if (!isSingle(from) || !isSingle(to) || low > high)
        this.#fail(
          `invalid range "${this.#source.slice(start, this.#at)}"`,
          'put the smaller character first, or escape the hyphen: \\-',
          start,
        );
      ranges.push([low, high]);
    }
    return { type: 'characters', raw: this.#source.slice(index, this.#at), index, ranges, negated };
  }

  #member(classIndex: number): readonly CharRange[] {
    if (this.#match(/\\b/y) !== null) return single('\b');
    if (this.#sees('\\')) {
      const { ranges, negated } = this.#escape();
      return negated ? complement(ranges) : ranges;
    }
    const char = this.#source.charAt(this.#at++);
    if (char === '') this.#fail('"[" without "]"', 'close it, or escape it: \\[', classIndex);
    return single(char);
  }

  #escape(): { ranges: readonly CharRange[]; negated: boolean } {
    const index = this.#at;
    const [raw, unit, letter, other = ''] =
      this.#match(/\\(?:x([\da-fA-F]{2})|c([A-Za-z])|(0(?!\d)|[^xuc1-90]))/sy) ??
      this.#match(/\\u([\da-fA-F]{4})/y) ??
      [];
    if (raw === undefined)
      this.#fail(
        `invalid escape "${this.#source.slice(index, index + 2)}"`,
        'write the character itself, or \\xHH or \\uHHHH',
        index,
      );
    const range = (code: number): { ranges: readonly CharRange[]; negated: boolean } => ({
      ranges: [[code, code]],
      negated: false,
    });
    if (unit !== undefined) return range(parseInt(unit, 16));
    if (letter !== undefined) return range(letter.charCodeAt(0) % 32);
    if (other === '0') return range(0);
    const control = CONTROL_ESCAPES.get(other);
    if (control !== undefined) return range(control);
    const ranges = CLASS_ESCAPES.get(other.toLowerCase());
    if (ranges !== undefined) return { ranges, negated: other < 'a' };
    if (/[A-Za-z]/.test(other)) this.#fail(`unknown escape "\\${other}"`, 'write the character itself', index);
    return { ranges: single(other), negated: false };
  }

  #sees(char: string): boolean {
    return this.#source[this.#at] === char;
  }

  #take(char: string): boolean {
    const seen = this.#sees(char);
    if (seen) this.#at += 1;
    return seen;
  }

  #match(sticky: RegExp): RegExpExecArray | null {
    sticky.lastIndex = this.#at;
    const found = sticky.exec(this.#source);
    if (found !== null) this.#at = sticky.lastIndex;
    return found;
  }

  #fail(what: string, remedy: string, index: number = this.#at): never {
    throw new TypeError(`${what} at index ${index} of constraint "${this.#source}"; ${remedy}`);
  }
}

function single(char: string): readonly CharRange[] {
  const code = char.charCodeAt(0);
  return [[code, code]];
}

function isSingle(ranges: readonly CharRange[]): boolean {
  return ranges.length === 1 && ranges[0]?.[0] === ranges[0]?.[1];
}
