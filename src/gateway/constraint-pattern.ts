/*
 * Translates the constraint of a parameter, which speaks of a decoded segment, into a regular expression on the
 * segment as sent.
 *
 * The translation matches a segment when the constraint does, with two exceptions, both of them segments that a
 * request seldom has: one with a character beyond U+FFFF, which JavaScript counts as two, in a constraint that counts;
 * and one with escapes, in a constraint with backreferences, which compare text as sent. Such a segment is doubtful,
 * and the result says so by coming in two versions, one that matches too little and one that matches too much.
 */

import type { Constraint } from '../endpoint/constraint.js';
import {
  fixedWidth,
  hasLook,
  isNullable,
  referencedGroups,
  trimAnchors,
  unitOf,
  type CharactersNode,
  type RegexNode,
  type RepeatNode,
} from './regex-tree.js';
import { GatewayError } from './error.js';
import { parseRegex } from './regex-syntax.js';
import { oneOf, spellSet, spellText, Unspellable, type SpelledSet, type Spelling } from './spelling.js';

/** What a gateway's regular expressions are like. */
export interface Dialect {
  /** For messages. */
  readonly gateway: string;
  readonly spelling: Spelling;
  /** Has lookaround and backreferences. */
  readonly pcre?: boolean;
  /** Avoids alternation inside a repeat, for an engine whose stack it would exhaust. */
  readonly unroll?: boolean;
}

/** A segment on the path as sent. */
export interface SegmentPattern {
  /** Matches nothing that the constraint does not match. */
  readonly within: string;
  /** Matches everything that the constraint matches; equal to `within` unless a segment can be doubtful. */
  readonly around: string;
}

/** Matches the end of the path, and nothing else. */
export function endOf({ pcre }: Dialect): string {
  return pcre === true ? '\\z' : '$';
}

/** A pattern that leaves no doubt. */
export function certain(text: string): SegmentPattern {
  return { within: text, around: text };
}

/** Any segment that is not empty. */
export const ANY_SEGMENT = '[^/]+';

/** Where a node stands. */
interface Place {
  /** Groups that have matched before the node is reached. */
  readonly set: Set<number>;
  readonly repeated: boolean;
  readonly behind: boolean;
}

/** Go's limit of a counted repeat, `{1000}`. */
const MAX_REPEAT = 1000;
/**
 * Most characters of the constraints of a path, counted repeats written out. PCRE compiles an expression to 64 KiB at
 * most, and makes some two and a half bytes of a character.
 */
const MAX_SIZE = 25_000;

/** What the constraints of one path come to together. */
export interface PathCounts {
  /** Groups that are referred to, which are numbered one after another. */
  groups: number;
  /** Characters of their expressions, counted repeats written out. */
  size: number;
}

/**
 * Translates a constraint.
 *
 * @param path of its route, for messages
 * @param counts those of the path; added to
 * @throws {GatewayError} when the constraint has what the dialect lacks
 */
export function translateConstraint(
  { source }: Constraint,
  path: string,
  dialect: Dialect,
  counts: PathCounts,
): SegmentPattern {
  const ast = parseRegex(source);
  const { gateway, spelling, pcre = false, unroll = false } = dialect;
  /** Number in the printed expression of each group that is referred to. */
  const numbers = new Map(referencedGroups(ast).map((capture) => [capture, ++counts.groups]));
  const looks = hasLook(ast);
  let factor = 1;
  let boundaries = false;
  let ambiguous = false;
  let wideSets = 0;
  let counted = false;

  let text: string;
  try {
    text = printWhole(trimAnchors(ast));
  } catch (error) {
    if (error instanceof Unspellable)
      fail(`a constraint has ${error.message}, which ${gateway} can't be told; leave it out`);
    throw error;
  }
  if (boundaries && ambiguous)
    fail(
      '\\b and \\B next to characters that may be sent as escapes have no equivalent on the path as sent; write out what may stand there',
    );
  let doubt = '';
  if (numbers.size > 0 && ambiguous) doubt = '%';
  else if (counted || wideSets > 1 || (wideSets > 0 && looks)) doubt = '%[Ff]';
  if (doubt === '') return certain(text);
  if (!spelling.escapesUnicode)
    fail(
      `a constraint counts characters beyond ASCII, and the engines of ${gateway} count them differently; name the characters, as in [!-~]{2}, or leave the count to + or *`,
    );
  const strict = looks || numbers.size > 0 ? `(?![^/]*${doubt})` : '';
  return { within: strict + text, around: `(?:${text}|[^/]*${doubt}[^/]*)` };

  /** The whole constraint, which matches no empty segment. */
  function printWhole(node: RegexNode): string {
    // Only for a whole segment: as a part of one, it could end in the middle of an escape, behind the `%2` of `%20`.
    if (
      node.type === 'repeat' &&
      node.min <= 1 &&
      node.max === Infinity &&
      node.body.type === 'characters' &&
      spell(node.body).everything
    )
      return ANY_SEGMENT;
    const place: Place = { set: new Set(), repeated: false, behind: false };
    if (node.type === 'repeat' && node.min === 0 && !isNullable(node.body))
      return printRepeat({ ...node, min: 1 }, place);
    const text = print(node, place);
    const grouped = node.type === 'alternation' ? `(?:${text})` : text;
    if (!isNullable(node)) return grouped;
    if (!pcre)
      fail(
        `a constraint may match nothing, and without lookaround ${gateway} can't be told that a segment is not empty; let it match one character`,
      );
    return `(?=[^/])${grouped}`;
  }

  function print(node: RegexNode, place: Place): string {
    switch (node.type) {
      case 'alternation': {
        const sets = node.items.map(() => new Set(place.set));
        const texts = node.items.map((item, i) => print(item, { ...place, set: sets[i] ?? new Set() }));
        for (const capture of sets[0] ?? []) if (sets.every((set) => set.has(capture))) place.set.add(capture);
        return texts.join('|');
      }
      case 'sequence':
        return printSequence(node.items, place);
      case 'group': {
        const text = print(node.body, place);
        if (!numbers.has(node.capture)) return `(?:${text})`;
        place.set.add(node.capture);
        // Named, since HAProxy has no numbered groups here.
        return `(?<postern_${numbers.get(node.capture) ?? 0}>${text})`;
      }
      case 'repeat':
        return printRepeat(node, place);
      case 'characters':
        return place.behind ? printBehind(node) : printSet(node, 1, 1, '', place);
      case 'look': {
        if (!pcre) fail(`${gateway} has no lookaround; write the constraint without it`);
        if (node.behind)
          for (const branch of node.body.type === 'alternation' ? node.body.items : [node.body])
            if (Number.isNaN(fixedWidth(branch)))
              fail('a lookbehind of varying length is JavaScript only; give each alternative a fixed length');
        const set = new Set(place.set);
        const text = print(node.body, { set, repeated: true, behind: node.behind });
        if (node.open === '(?=') for (const capture of set) place.set.add(capture);
        return `${node.open}${text})`;
      }
      case 'assertion':
        if (node.raw.startsWith('\\')) {
          boundaries = true;
          return node.raw;
        }
        if (!pcre)
          fail(
            `${gateway} has no lookaround, which "${node.raw}" inside of a constraint needs; move it to the end or leave it out`,
          );
        return node.raw === '^' ? '(?<![^/])' : '(?![^/])';
      case 'backreference': {
        if (!pcre) fail(`${gateway} has no backreferences; write the constraint without them`);
        if (!place.set.has(node.group) || place.behind)
          fail(
            `"${node.raw}" may refer to a group without a match, which is empty in JavaScript only; let the group always match before it`,
          );
        return `\\k<postern_${numbers.get(node.group) ?? 0}>`;
      }
    }
  }

  function printSequence(items: readonly RegexNode[], place: Place): string {
    let text = '';
    for (let i = 0; i < items.length; i += 1) {
      const [item, next] = [items[i], items[i + 1]];
      const [high, low] = [unitOf(item), unitOf(next)];
      if (high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff) {
        ambiguous = true;
        text += spellText(String.fromCharCode(high, low), spelling);
        i += 1;
      } else if (item !== undefined) text += print(item, place);
    }
    return text;
  }

  function printRepeat({ body: inner, min, max, raw }: RepeatNode, place: Place): string {
    if (max === 0) return '';
    const times = max === Infinity ? min : max;
    if (times * factor > MAX_REPEAT)
      fail(
        `"${raw}" repeats more than ${MAX_REPEAT} times, the limit of ${gateway} with its repeats inside of each other multiplied; lower it`,
      );
    const quantifier =
      min === 0 && max === 1
        ? '?'
        : max !== Infinity
          ? `{${min}${max > min ? `,${max}` : ''}}`
          : min === 0
            ? '*'
            : min === 1
              ? '+'
              : `{${min},}`;
    let body = inner;
    while (body.type === 'group' && !numbers.has(body.capture)) body = body.body;
    if (body.type === 'characters' && !place.behind) return printSet(body, min, max, quantifier, place);
    const outer = factor;
    factor *= Math.max(times, 1);
    const set = new Set(place.set);
    const text = print(inner, { ...place, set, repeated: place.repeated || max > 1 });
    factor = outer;
    if (min > 0) for (const capture of set) place.set.add(capture);
    return (inner.type === 'characters' ? `(?:${text})` : text) + quantifier;
  }

  /** @param quantifier says `min` and `max`; empty for a set that is not repeated */
  function printSet(node: CharactersNode, min: number, max: number, quantifier: string, place: Place): string {
    const { plain, others, wide } = spell(node);
    const free = max === Infinity && min <= 1;
    if (wide.length > 0) {
      wideSets += 1;
      if (!free || place.repeated) counted = true;
    }
    const rest = free && !looks ? [...others, ...wide] : others;
    const all = oneOf([plain, ...rest]);
    const times = rest.length === 0 ? 1 : max === Infinity ? min + 1 : max;
    counts.size += (all.length + 6) * times * factor;
    if (counts.size > MAX_SIZE) fail(`its constraints are too large for ${gateway}; lower their counts`);
    if (rest.length === 0) return all + quantifier;
    if (plain === '' || !unroll || !free)
      return (plain === '' && rest.length === 1 && quantifier !== '' ? `(?:${all})` : all) + quantifier;
    const tail = `${plain}*(?:${oneOf(rest)}${plain}*)*`;
    return min === 0 ? tail : all + tail;
  }

  function printBehind(node: CharactersNode): string {
    const { plain, unambiguous } = spell(node);
    if (!unambiguous)
      fail(
        'a lookbehind over characters that may be sent as escapes has no equivalent on the path as sent; write the constraint without it',
      );
    // What looks like a digit may be the end of an escape, such as the `0` of `%20`.
    return `(?<!%)(?<!%[0-9A-Fa-f])${plain}`;
  }

  function spell({ ranges, negated }: CharactersNode): SpelledSet {
    const spelled = spellSet(ranges, negated, spelling);
    if (!spelled.unambiguous) ambiguous = true;
    return spelled;
  }

  function fail(reason: string): never {
    throw new GatewayError(path, reason);
  }
}
