/*
 * Translates the constraint of a parameter, which speaks of a decoded segment, into a regular expression on the
 * segment as sent.
 *
 * The translation matches a segment when the constraint does, with two exceptions, both of them segments that a
 * request seldom has: one with a character beyond U+FFFF, which JavaScript counts as two, in a constraint that counts;
 * and one with escapes, in a constraint with backreferences, which compare text as sent. Such a segment is doubtful,
 * and the result says so by coming in two versions, one that matches too little and one that matches too much.
 */

import type { Constraint } from '../routing/constraint.js';
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
} from '../routing/regex-tree.js';
import { GatewayError } from './error.js';
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
  /** Groups that have taken part by now. */
  readonly set: Set<number>;
  readonly repeated: boolean;
  readonly behind: boolean;
}

/** Go's limit. */
const MAX_REPEAT = 1000;
/**
 * PCRE compiles at most 64 KiB, which two and a half times this text comes to; counted repeats are written out there.
 */
const MAX_SIZE = 25_000;

/** What the constraints of one path come to together. */
export interface PathCounts {
  /** Groups that are referred to, which are numbered one after another. */
  groups: number;
  /** Characters, counted repeats written out. */
  size: number;
}

/** Translates a constraint, once. */
export class ConstraintTranslator {
  readonly #path: string;
  readonly #dialect: Dialect;
  /** Number in the printed expression of each group that is referred to. */
  #numbers = new Map<number, number>();
  readonly #counts: PathCounts;
  #factor = 1;
  #looks = false;
  #boundaries = false;
  #ambiguous = false;
  #wide = 0;
  #counted = false;

  constructor(path: string, dialect: Dialect, counts: PathCounts) {
    this.#path = path;
    this.#dialect = dialect;
    this.#counts = counts;
  }

  /** @throws {GatewayError} when the constraint has what the dialect lacks */
  translate({ ast }: Constraint): SegmentPattern {
    this.#numbers = new Map(referencedGroups(ast).map((capture) => [capture, ++this.#counts.groups]));
    this.#looks = hasLook(ast);
    let text: string;
    try {
      text = this.#whole(trimAnchors(ast));
    } catch (error) {
      if (error instanceof Unspellable)
        this.#fail(`a constraint has ${error.message}, which ${this.#dialect.gateway} can't be told; leave it out`);
      throw error;
    }
    if (this.#boundaries && this.#ambiguous)
      this.#fail(
        '\\b and \\B next to characters that may be sent as escapes have no equivalent on the path as sent; write out what may stand there',
      );
    let doubt = '';
    if (this.#numbers.size > 0 && this.#ambiguous) doubt = '%';
    else if (this.#counted || this.#wide > 1 || (this.#wide > 0 && this.#looks)) doubt = '%[Ff]';
    if (doubt === '') return certain(text);
    if (!this.#dialect.spelling.escapesUnicode)
      this.#fail(
        `a constraint counts characters beyond ASCII, and the engines of ${this.#dialect.gateway} count them differently; name the characters, as in [!-~]{2}, or leave the count to + or *`,
      );
    const strict = this.#looks || this.#numbers.size > 0 ? `(?![^/]*${doubt})` : '';
    return { within: strict + text, around: `(?:${text}|[^/]*${doubt}[^/]*)` };
  }

  /** The whole constraint, which matches no empty segment. */
  #whole(node: RegexNode): string {
    // Only as a whole: inside of a constraint, it could end in the middle of an escape.
    if (
      node.type === 'repeat' &&
      node.min <= 1 &&
      node.max === Infinity &&
      node.body.type === 'characters' &&
      this.#spell(node.body).everything
    )
      return ANY_SEGMENT;
    const place: Place = { set: new Set(), repeated: false, behind: false };
    if (node.type === 'repeat' && node.min === 0 && !isNullable(node.body))
      return this.#repeat({ ...node, min: 1 }, place);
    const text = this.#print(node, place);
    const grouped = node.type === 'alternation' ? `(?:${text})` : text;
    if (!isNullable(node)) return grouped;
    if (!this.#dialect.pcre)
      this.#fail(
        `a constraint may match nothing, and without lookaround ${this.#dialect.gateway} can't be told that a segment is not empty; let it match one character`,
      );
    return `(?=[^/])${grouped}`;
  }

  #print(node: RegexNode, place: Place): string {
    switch (node.type) {
      case 'alternation': {
        const sets = node.items.map(() => new Set(place.set));
        const texts = node.items.map((item, i) => this.#print(item, { ...place, set: sets[i] ?? new Set() }));
        for (const capture of sets[0] ?? []) if (sets.every((set) => set.has(capture))) place.set.add(capture);
        return texts.join('|');
      }
      case 'sequence':
        return this.#sequence(node.items, place);
      case 'group': {
        const text = this.#print(node.body, place);
        if (!this.#numbers.has(node.capture)) return `(?:${text})`;
        place.set.add(node.capture);
        // Named, since HAProxy has no numbered groups here.
        return `(?<postern_${this.#numbers.get(node.capture) ?? 0}>${text})`;
      }
      case 'repeat':
        return this.#repeat(node, place);
      case 'characters':
        return place.behind ? this.#behind(node) : this.#set(node, 1, 1, '', place);
      case 'look': {
        if (!this.#dialect.pcre)
          this.#fail(`${this.#dialect.gateway} has no lookaround; write the constraint without it`);
        if (node.behind)
          for (const branch of node.body.type === 'alternation' ? node.body.items : [node.body])
            if (fixedWidth(branch) === null)
              this.#fail('a lookbehind of varying length is JavaScript only; give each alternative a fixed length');
        const set = new Set(place.set);
        const text = this.#print(node.body, { set, repeated: true, behind: node.behind });
        if (node.open === '(?=') for (const capture of set) place.set.add(capture);
        return `${node.open}${text})`;
      }
      case 'assertion':
        if (node.raw.startsWith('\\')) {
          this.#boundaries = true;
          return node.raw;
        }
        if (!this.#dialect.pcre)
          this.#fail(
            `${this.#dialect.gateway} has no lookaround, which "${node.raw}" inside of a constraint needs; move it to the end or leave it out`,
          );
        return node.raw === '^' ? '(?<![^/])' : '(?![^/])';
      case 'backreference': {
        if (!this.#dialect.pcre)
          this.#fail(`${this.#dialect.gateway} has no backreferences; write the constraint without them`);
        if (!place.set.has(node.group) || place.behind)
          this.#fail(
            `"${node.raw}" may refer to a group without a match, which is empty in JavaScript only; let the group always match before it`,
          );
        return `\\k<postern_${this.#numbers.get(node.group) ?? 0}>`;
      }
    }
  }

  #sequence(items: readonly RegexNode[], place: Place): string {
    let text = '';
    for (let i = 0; i < items.length; i += 1) {
      const [item, next] = [items[i], items[i + 1]];
      const [high, low] = [unitOf(item), unitOf(next)];
      if (high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff) {
        this.#ambiguous = true;
        text += spellText(String.fromCharCode(high, low), this.#dialect.spelling);
        i += 1;
      } else if (item !== undefined) text += this.#print(item, place);
    }
    return text;
  }

  #repeat({ body: inner, min, max, raw }: RepeatNode, place: Place): string {
    if (max === 0) return '';
    const times = max === Infinity ? min : max;
    if (times * this.#factor > MAX_REPEAT)
      this.#fail(
        `"${raw}" repeats more than ${MAX_REPEAT} times, the limit of ${this.#dialect.gateway} with its repeats inside of each other multiplied; lower it`,
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
    while (body.type === 'group' && !this.#numbers.has(body.capture)) body = body.body;
    if (body.type === 'characters' && !place.behind) return this.#set(body, min, max, quantifier, place);
    const outer = this.#factor;
    this.#factor *= Math.max(times, 1);
    const set = new Set(place.set);
    const text = this.#print(inner, { ...place, set, repeated: place.repeated || max > 1 });
    this.#factor = outer;
    if (min > 0) for (const capture of set) place.set.add(capture);
    return (inner.type === 'characters' ? `(?:${text})` : text) + quantifier;
  }

  /** @param quantifier says `min` and `max`; empty for a set that is not repeated */
  #set(node: CharactersNode, min: number, max: number, quantifier: string, place: Place): string {
    const { plain, others, wide } = this.#spell(node);
    const free = max === Infinity && min <= 1;
    if (wide.length > 0) {
      this.#wide += 1;
      if (!free || place.repeated) this.#counted = true;
    }
    const rest = free && !this.#looks ? [...others, ...wide] : others;
    const all = oneOf([plain, ...rest]);
    this.#grow(all, rest.length === 0 ? 1 : max === Infinity ? min + 1 : max);
    if (rest.length === 0) return all + quantifier;
    if (plain === '' || !this.#dialect.unroll || !free)
      return (plain === '' && rest.length === 1 && quantifier !== '' ? `(?:${all})` : all) + quantifier;
    const tail = `${plain}*(?:${oneOf(rest)}${plain}*)*`;
    return min === 0 ? tail : all + tail;
  }

  #behind(node: CharactersNode): string {
    const { plain, unambiguous } = this.#spell(node);
    if (!unambiguous)
      this.#fail(
        'a lookbehind over characters that may be sent as escapes has no equivalent on the path as sent; write the constraint without it',
      );
    // A digit may be the end of an escape.
    return `(?<!%)(?<!%[0-9A-Fa-f])${plain}`;
  }

  #spell({ ranges, negated }: CharactersNode): SpelledSet {
    const spelled = spellSet(ranges, negated, this.#dialect.spelling);
    if (!spelled.unambiguous) this.#ambiguous = true;
    return spelled;
  }

  /** Counts what a piece comes to when it is compiled. */
  #grow(text: string, times: number): string {
    this.#counts.size += (text.length + 6) * times * this.#factor;
    if (this.#counts.size > MAX_SIZE)
      this.#fail(`its constraints are too large for ${this.#dialect.gateway}; lower their counts`);
    return text;
  }

  #fail(reason: string): never {
    throw new GatewayError(this.#path, reason);
  }
}
