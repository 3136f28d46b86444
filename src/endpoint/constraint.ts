/*
 * Compiles the regular expression of `:name(regex)` into the test of a segment and the group of the route's pattern.
 *
 * A constraint is a regular expression in the strict sense: characters, classes, escapes, groups, alternation and
 * quantifiers. A backtracking matcher takes linear time for it because of its shape: after each character of a repeat
 * without a limit, the next one shows how to continue. Two exceptions are allowed outside of repeats: one long repeat
 * may run into what follows it (`.+\.png`), and in two places the next character need not decide (`jpg|jpeg`, `a?a`).
 */

/** A checked constraint of one path segment. */
export interface Constraint {
  /** Tests a whole percent-decoded segment, which must not be empty. */
  readonly regexp: RegExp;
  /** The constraint as one group of the route's pattern; it matches neither a slash nor the empty text. */
  readonly pattern: string; // "\d+" → "(\d+)"; "(.)-a" → "((?:[^/])-a)"
}

/** A part of a constraint. A set of characters is a number, one bit for each character of a sample. */
interface Part {
  /** Characters that it may begin with, that may continue it where it could have ended, and that it has anywhere. */
  readonly first: bigint;
  readonly next: bigint;
  readonly chars: bigint;
  /** Characters of its long repeats. */
  readonly loops: bigint;
  readonly nullable: boolean;
  /** Places where the next character does not decide how to continue. */
  readonly choices: number;
  /** Whether a long repeat runs into what follows it. */
  readonly isLoose: boolean;
}

const NOTHING: Part = { first: 0n, next: 0n, chars: 0n, loops: 0n, nullable: true, choices: 0, isLoose: false };
const MAX_CHOICES = 2;
/** A repeat of more turns is a long one. */
const LONG = 64;
/** Beyond U+0100, `\s` starts or ends at these units (ECMA-262, section 22.2.2.9). */
const SPACES = '\u1680\u2000\u200b\u2028\u202a\u202f\u205f\u3000\ufeff';

const ESCAPE = String.raw`\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|c[A-Za-z]|0(?!\d)|[dDfnrsStvwW]|[^A-Za-z\d])`;
const CLASS = String.raw`\[(?:${ESCAPE}|\\b|[^\]\\])*\]`;
const CHARACTERS = new RegExp(String.raw`${ESCAPE}|${CLASS}|[^\\[]`, 'sy');
/** The parts of a constraint that may differ in the pattern. */
const REWRITTEN = new RegExp(String.raw`${ESCAPE}|${CLASS}|[./]|\((?!\?)`, 'g');

/** Syntax that a constraint can't have at the start of an atom, with its name and the remedy. */
const REFUSED: readonly (readonly [syntax: RegExp, what: string, remedy: string])[] = [
  [/[$^]/y, 'anchor', 'remove it: a constraint always matches a whole segment'],
  [/\\[bB]/y, 'anchor', 'write the characters that may come before and after it'],
  [/\(\?<?[=!]/y, 'lookaround', 'register the exception as a route of its own, or check the value in the handler'],
  [/\\(?:[1-9]\d*|k<[^>]*>)/y, 'backreference', 'compare the parts in the handler'],
  [/\(\?<[^>]*>?/y, 'named group', 'write (?:x): only the parameter has a name'],
  [/\(\?(?!:)/y, 'unknown kind of group', 'use (x) or (?:x)'],
  [/[*+?]/y, 'quantifier without a character,', 'escape it with \\'],
  [/[{}\]]/y, 'unbalanced', 'escape it with \\'],
];

const REMEDY = 'leave one way: no repeat inside or next to a repeat of the same characters, as in [a-z]+(?:-[a-z]+)*';

/**
 * Compiles `source`; equal sources have equal results, so a router keeps one for all its routes.
 *
 * @throws {TypeError} if a constraint may not have this syntax, no segment can match, or matching could take more than
 * linear time; the message has the position and the remedy
 * @internal
 */
export function compileConstraint(source: string): Constraint {
  if (source === '') throw new TypeError('empty constraint "()"; remove it, or write what the segment has to match');
  const samples = samplesOf(source);
  const sets = new Map<string, bigint>();
  let at = 0;

  const { chars, nullable, choices } = alternation();
  if (at < source.length) fail('")" without "("', 'escape it: \\)');
  if (choices > MAX_CHOICES) refuse(0);
  if (chars === 0n)
    throw new TypeError(
      `constraint "${source}" matches no segment, since a segment has at least one character; let it match one`,
    );
  const text = source.replace(REWRITTEN, (part, index: number) => (part === '(' ? '(?:' : withoutSlash(part, index)));
  // A "|" outside of groups would leave the lookahead to its first alternative.
  const pattern = nullable ? `(?=[^/])${text.includes('|') ? `(?:${text})` : text}` : text;
  return { regexp: new RegExp(`^(?:${source})$`, 's'), pattern: `(${pattern})` };

  function alternation(): Part {
    let all = sequence();
    let isShared = false;
    while (match(/\|/y)) {
      const a = all;
      const b = sequence();
      isShared ||= (a.first & b.first) !== 0n || (a.nullable && b.nullable);
      all = {
        ...union(a, b),
        first: a.first | b.first,
        next: a.next | b.next | (a.nullable ? b.first : 0n) | (b.nullable ? a.first : 0n),
        nullable: a.nullable || b.nullable,
        choices: Math.max(a.choices, b.choices),
      };
    }
    return { ...all, choices: all.choices + Number(isShared) };
  }

  function sequence(): Part {
    let a = NOTHING;
    while (at < source.length && source[at] !== '|' && source[at] !== ')') {
      const index = at;
      const b = quantified();
      const meets = (a.next & b.first) !== 0n;
      const both = union(a, b);
      const runsOn = a.isLoose || (meets && a.loops !== 0n);
      // From each place where such a repeat may stop, the rest is tried.
      if (runsOn && (a.loops & b.loops) !== 0n) refuse(index);
      a = {
        ...both,
        first: a.first | (a.nullable ? b.first : 0n),
        next: b.next | (b.nullable ? a.next : 0n),
        nullable: a.nullable && b.nullable,
        choices: a.choices + b.choices + Number(meets && a.loops === 0n),
        isLoose: both.isLoose || runsOn,
      };
    }
    return a;
  }

  function quantified(): Part {
    const index = at;
    const body = atom(index);
    const found = match(/(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/y);
    if (found === null) return body;
    const [quantifier, from, comma, to] = found;
    const min = Number(from ?? quantifier.startsWith('+'));
    const max = comma === '' ? min : quantifier.startsWith('?') ? 1 : Number(to || Infinity);
    if (min > max) fail(`quantifier "${quantifier}" out of order`, 'put the smaller number first', index);
    if (max === 0) return NOTHING;
    const { first, next, chars, nullable, choices, isLoose } = body;
    if (nullable && max > 1)
      throw new TypeError(
        `constraint "${source}" repeats what may match nothing, at "${source.slice(index, at)}" (index ${index}); let each turn take a character`,
      );
    if (max > 1 && (isLoose || choices > 0 || (next & first) !== 0n)) refuse(index);
    return {
      ...body,
      next: min === max ? next : next | first,
      loops: max > LONG ? chars : body.loops,
      nullable: nullable || min === 0,
      choices: choices + Number(nullable && min === 0),
    };
  }

  function atom(index: number): Part {
    for (const [syntax, what, remedy] of REFUSED) {
      const found = match(syntax);
      if (found !== null) fail(`${what} "${found[0]}"`, remedy, index);
    }
    if (match(/\((?:\?:)?/y)) {
      const body = alternation();
      if (!match(/\)/y)) fail('"(" without ")"', 'close it, or escape it: \\(', index);
      return body;
    }
    const [text] = match(CHARACTERS) ?? [];
    if (text !== undefined) {
      const chars = setOf(text, index);
      return { ...NOTHING, first: chars, chars, nullable: false };
    }
    const [part] = match(/\[(?:\\.|[^\]\\])*\]|\\.?/sy) ?? [];
    if (part === undefined) fail('"[" without "]"', 'close it, or escape it: \\[', index);
    fail(`invalid escape in "${part}"`, 'write the character itself, or \\xHH or \\uHHHH', index);
  }

  /** The characters that a set matches, by the platform's own `RegExp`, so that both read it alike. */
  function setOf(text: string, index: number): bigint {
    let set = sets.get(text);
    if (set !== undefined) return set;
    try {
      const regexp = new RegExp(`^${text}$`, 's');
      const bits = samples.map((unit) => (regexp.test(String.fromCharCode(unit)) ? '1' : '0'));
      sets.set(text, (set = BigInt(`0b${bits.reverse().join('')}`)));
      return set;
    } catch {
      fail(`invalid range in "${text}"`, 'put the smaller character first, or escape the hyphen: \\-', index);
    }
  }

  /** A set of characters without the slash, which no segment has. */
  function withoutSlash(text: string, index: number): string {
    if (!new RegExp(text, 's').test('/')) return text;
    if (text === '.') return '[^/]';
    // "[^-x]" must not become a range.
    if (text.startsWith('[^')) return `[^/${text[2] === '-' ? '\\' : ''}${text.slice(2)}`;
    if (/^\\[DWS]$/.test(text)) return `[^/${text.toLowerCase()}]`;
    if (/\/|\\x2f|\\u002f/i.test(text))
      throw new TypeError(
        `"/" at index ${index} of constraint "${source}" never matches, since a constraint is about one segment; write several segments, or a wildcard`,
      );
    return `(?:(?!/)${text})`;
  }

  function refuse(index: number): never {
    const part = source.slice(index, at);
    const where = part === source ? 'as a whole' : `at "${part}" (index ${index})`;
    throw new TypeError(`constraint "${source}" can read the same text in too many ways, ${where}; ${REMEDY}`);
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

/** Members that two parts in a row and two alternatives have in common. */
function union(a: Part, b: Part): Part {
  return { ...a, chars: a.chars | b.chars, loops: a.loops | b.loops, isLoose: a.isLoose || b.isLoose };
}

/** Units at which any set of a constraint can start or end: units that it names, and bounds of the class escapes. */
function samplesOf(source: string): readonly number[] {
  const named = source.replace(/\\u([\da-fA-F]{4})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  const units = new Set(Array.from({ length: 0x101 }, (_, unit) => unit));
  for (const char of (named + SPACES).split('')) units.add(char.charCodeAt(0)).add((char.charCodeAt(0) + 1) % 0x10000);
  return [...units];
}
