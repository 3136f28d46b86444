/*
 * Parses regular expressions into a tree, which prints back letter for letter.
 *
 * Understood is JavaScript's syntax without the flags `i`, `m`, `u` and `v`, less what only its Annex B tolerates:
 * octal escapes, escapes of letters that mean nothing, lone brackets and braces, repeated lookaheads. Spec: ECMA-262,
 * section 22.2.1 "Patterns".
 */

import { rangesOf, unitOf, type CharactersNode, type CharRange, type RegexNode } from './regex-tree.js';

/** What the escapes of classes stand for (ECMA-262, section 22.2.2.9). */
const CLASSES = new Map([
  ['d', '[0-9]'],
  ['w', '[0-9A-Z_a-z]'],
  ['s', '[\\t-\\r \\xa0\\u1680\\u2000-\\u200a\\u2028-\\u2029\\u202f\\u205f\\u3000\\ufeff]'],
]);
/** Escapes of the units from 8 on; `\b` is one inside of a class. */
const CONTROLS = 'btnvfr';

/** Deeper groups are refused, so that no later walk over the tree can exhaust the stack. */
const MAX_DEPTH = 100;

/**
 * Parses `source`. What it accepts, `new RegExp(source, 's')` accepts and reads the same way.
 *
 * @throws {TypeError} with the position and the remedy
 */
export function parseRegex(source: string): RegexNode {
  let at = 0;
  let depth = 0;
  let captures = 0;
  const names = new Map<string, number>();
  const references: {
    readonly node: { raw: string; group: number };
    readonly target: string;
    readonly index: number;
  }[] = [];

  const whole = alternation();
  if (at < source.length) fail('")" without "("', 'escape it: \\)');
  for (const { node, target, index } of references) {
    node.group = names.get(target) ?? Number(target);
    if (!(node.group <= captures))
      fail(`reference to a missing group, "${node.raw}"`, 'refer to a group of this constraint', index);
  }
  return whole;

  function alternation(): RegexNode {
    const items = [sequence()];
    while (take('|')) items.push(sequence());
    return join('alternation', items);
  }

  function sequence(): RegexNode {
    const items: RegexNode[] = [];
    while (at < source.length && !sees('|') && !sees(')')) items.push(quantified());
    return join('sequence', items);
  }

  function quantified(): RegexNode {
    const index = at;
    const body = atom();
    const quantifier = match(/(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/y);
    if (quantifier === null) return body;
    const [raw, from, comma, to] = quantifier;
    if (body.type === 'look' || body.type === 'assertion')
      fail(`quantifier "${raw}" after an assertion`, 'remove it', index);
    const min = Number(from ?? raw.startsWith('+'));
    const max = comma === '' ? min : raw.startsWith('?') ? 1 : Number(to || Infinity);
    if (min > max) fail(`quantifier "${raw}" out of order`, 'put the smaller number first', index);
    return { type: 'repeat', body, min, max, raw, index };
  }

  function atom(): RegexNode {
    const index = at;
    const assertion = match(/[$^]|\\[bB]/y);
    if (assertion !== null) return { type: 'assertion', raw: assertion[0] };
    if (sees('(')) return group();
    if (sees('[')) return characterClass();
    const reference = match(/\\(?:([1-9]\d*)|k<([^>\d][^>]*)>)/y);
    if (reference !== null) {
      const node = { type: 'backreference' as const, raw: reference[0], group: 0 };
      references.push({ node, target: reference[1] ?? reference[2] ?? '', index });
      return node;
    }
    if (take('.')) return characters(index, [], true);
    const odd = match(/[*+?{}\]]/y)?.[0];
    if (odd !== undefined)
      fail(
        '{}]'.includes(odd) ? `unbalanced "${odd}"` : `quantifier "${odd}" on nothing`,
        `escape it: \\${odd}`,
        index,
      );
    return character();
  }

  function group(): RegexNode {
    const index = at;
    const [open = '', name] = match(/\((?:\?(?:[:=!]|<[=!]|<([A-Za-z_$][\w$]*)>))?/y) ?? [];
    if (sees('?')) fail('unknown kind of group', 'use (x), (?:x), (?<name>x), (?=x), (?!x), (?<=x) or (?<!x)', index);
    const look = /[=!]$/.test(open);
    const capture = look || open === '(?:' ? 0 : ++captures;
    if (name !== undefined) {
      if (names.has(name)) fail(`duplicate group "${name}"`, 'rename one', index);
      names.set(name, capture);
    }
    if (++depth > MAX_DEPTH) fail(`more than ${MAX_DEPTH} groups inside each other`, 'simplify it', index);
    const body = alternation();
    depth -= 1;
    if (!take(')')) fail('"(" without ")"', 'close it, or escape it: \\(', index);
    return look ? { type: 'look', open, behind: open.startsWith('(?<'), body } : { type: 'group', open, capture, body };
  }

  function characterClass(): CharactersNode {
    const index = at++;
    const negated = take('^');
    const ranges: CharRange[] = [];
    const member = (): CharactersNode => {
      if (at === source.length) fail('"[" without "]"', 'close it, or escape it: \\[', index);
      return character();
    };
    while (!take(']')) {
      const start = at;
      const from = member();
      if (!sees('-') || source[at + 1] === ']') {
        ranges.push(...rangesOf(from));
        continue;
      }
      at += 1;
      const [low, high] = [unitOf(from), unitOf(member())];
      if (low < 0 || low > high) {
        const remedy = 'put the smaller character first, or escape the hyphen: \\-';
        fail(`invalid range "${source.slice(start, at)}"`, remedy, start);
      }
      ranges.push([low, high]);
    }
    return characters(index, ranges, negated);
  }

  /** One that stands for itself, or an escape. */
  function character(): CharactersNode {
    const index = at;
    if (!sees('\\')) return unit(index, source.charCodeAt(at++));
    const [raw, two, four, letter, other = ''] =
      match(/\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|c([A-Za-z])|(0(?!\d)|[bdDfnrsStvwW]|[^A-Za-z\d]))/y) ?? [];
    if (raw === undefined) {
      const remedy = 'write the character itself, or \\xHH or \\uHHHH';
      fail(`invalid escape "${source.slice(index, index + 2)}"`, remedy, index);
    }
    const hex = two ?? four;
    if (hex !== undefined) return unit(index, parseInt(hex, 16));
    if (letter !== undefined) return unit(index, letter.charCodeAt(0) % 32);
    if (other === '0') return unit(index, 0);
    if (CONTROLS.includes(other)) return unit(index, CONTROLS.indexOf(other) + 8);
    const escaped = CLASSES.get(other.toLowerCase());
    if (escaped === undefined) return unit(index, other.charCodeAt(0));
    return characters(index, rangesOf(parseRegex(escaped)), other < 'a');
  }

  function unit(index: number, code: number): CharactersNode {
    return characters(index, [[code, code]], false);
  }

  function characters(index: number, ranges: readonly CharRange[], negated: boolean): CharactersNode {
    return { type: 'characters', raw: source.slice(index, at), index, ranges, negated };
  }

  function sees(char: string): boolean {
    return source[at] === char;
  }

  function take(char: string): boolean {
    const seen = sees(char);
    if (seen) at += 1;
    return seen;
  }

  function match(sticky: RegExp): RegExpExecArray | null {
    sticky.lastIndex = at;
    const found = sticky.exec(source);
    if (found !== null) at = sticky.lastIndex;
    return found;
  }

  function fail(what: string, remedy: string, index: number = at): never {
    throw new TypeError(`${what} at index ${index} of constraint "${source}"; ${remedy}`);
  }
}

function join(type: 'alternation' | 'sequence', items: readonly RegexNode[]): RegexNode {
  const [only] = items;
  return items.length === 1 && only !== undefined ? only : { type, items };
}
