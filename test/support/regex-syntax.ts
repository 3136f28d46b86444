/*
 * Parses a constraint into a tree, for tests that count the steps of a backtracking matcher.
 *
 * A constraint is a regular expression in the strict sense: characters, classes, escapes, groups, alternation and
 * quantifiers. What a single character matches is asked of the platform's own `RegExp` with the flag `s`, so both read
 * it alike. Octal escapes, lone brackets and meaningless escapes (ECMA-262, Annex B) are refused.
 */

/** One character of a set: a literal, an escape, a class, or the dot. */
export interface CharactersNode {
  readonly type: 'characters';
  /** As written: `[^x]`. */
  readonly text: string;
  readonly index: number;
  /** The units that it matches, of a sample: two sets of one constraint that have a unit in common have one here. */
  readonly units: ReadonlySet<number>;
}

/** A body, repeated. */
export interface RepeatNode {
  readonly type: 'repeat';
  readonly body: RegexNode;
  readonly min: number;
  /** Infinity for no limit. */
  readonly max: number;
  /** As written: `{2,}?`. */
  readonly quantifier: string;
  /** As written, with the body: `\d{2,}?`. */
  readonly text: string;
  readonly index: number;
}

/** A regular expression or a part of it. Indexes count from the start of the source. */
export type RegexNode =
  | { readonly type: 'alternation' | 'sequence'; readonly items: readonly RegexNode[] }
  | { readonly type: 'group'; readonly body: RegexNode }
  | CharactersNode
  | RepeatNode;

/** Deeper groups are refused, so that no later walk over the tree can exhaust the stack. */
const MAX_DEPTH = 100;

const ESCAPE = String.raw`\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|c[A-Za-z]|0(?!\d)|[dDfnrsStvwW]|[^A-Za-z\d])`;
const CHARACTERS = new RegExp(String.raw`${ESCAPE}|\[(?:${ESCAPE}|\\b|[^\]\\])*\]|[^\\[]`, 'sy');

/** Syntax that a constraint can't have at the start of an atom. */
const REFUSED = /[$^*+?{}\]]|\\(?:[bB1-9]|k<[^>]*>)|\(\?(?!:)/y;

/**
 * Parses `source`. What it accepts, `new RegExp(source, 's')` accepts and reads the same way.
 *
 * @throws {TypeError} with the position and the remedy
 */
export function parseRegex(source: string): RegexNode {
  const samples = samplesOf(source);
  const sets = new Map<string, ReadonlySet<number>>();
  let at = 0;
  let depth = 0;

  const whole = alternation();
  if (at < source.length) fail('")" without "("', 'escape it: \\)');
  return whole;

  function alternation(): RegexNode {
    const items = [sequence()];
    while (match(/\|/y)) items.push(sequence());
    return join('alternation', items);
  }

  function sequence(): RegexNode {
    const items: RegexNode[] = [];
    while (at < source.length && source[at] !== '|' && source[at] !== ')') items.push(quantified());
    return join('sequence', items);
  }

  function quantified(): RegexNode {
    const index = at;
    const body = atom(index);
    const found = match(/(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/y);
    if (found === null) return body;
    const [quantifier, from, comma, to] = found;
    const min = Number(from ?? quantifier.startsWith('+'));
    const max = comma === '' ? min : quantifier.startsWith('?') ? 1 : Number(to || Infinity);
    if (min > max) fail(`quantifier "${quantifier}" out of order`, 'put the smaller number first', index);
    return { type: 'repeat', body, min, max, quantifier, text: source.slice(index, at), index };
  }

  function atom(index: number): RegexNode {
    if (match(REFUSED)) fail('it is not in the grammar', 'the messages are those of constraint.ts', index);
    if (match(/\((?:\?:)?/y)) {
      if (++depth > MAX_DEPTH) fail(`more than ${MAX_DEPTH} groups inside each other`, 'simplify it', index);
      const body = alternation();
      depth -= 1;
      if (!match(/\)/y)) fail('"(" without ")"', 'close it, or escape it: \\(', index);
      return { type: 'group', body };
    }
    const [text] = match(CHARACTERS) ?? [];
    if (text !== undefined) return { type: 'characters', text, index, units: unitsOf(text, index) };
    const [part] = match(/\[(?:\\.|[^\]\\])*\]|\\.?/sy) ?? [];
    if (part === undefined) fail('"[" without "]"', 'close it, or escape it: \\[', index);
    fail(`invalid escape in "${part}"`, 'write the character itself, or \\xHH or \\uHHHH', index);
  }

  function unitsOf(text: string, index: number): ReadonlySet<number> {
    let units = sets.get(text);
    if (units !== undefined) return units;
    try {
      const regexp = new RegExp(`^${text}$`, 's');
      sets.set(text, (units = new Set(samples.filter((unit) => regexp.test(String.fromCharCode(unit))))));
      return units;
    } catch {
      fail(`invalid range in "${text}"`, 'put the smaller character first, or escape the hyphen: \\-', index);
    }
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

/** Beyond U+0100, `\s` starts or ends at these units (ECMA-262, section 22.2.2.9). */
const SPACES = '\u1680\u2000\u200b\u2028\u202a\u202f\u205f\u3000\ufeff';

/** Units at which any set of a constraint can start or end: units that it names, and bounds of the class escapes. */
function samplesOf(source: string): readonly number[] {
  const named = source.replace(/\\u([\da-fA-F]{4})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  const units = new Set(Array.from({ length: 0x101 }, (_, unit) => unit));
  for (const char of (named + SPACES).split('')) units.add(char.charCodeAt(0)).add((char.charCodeAt(0) + 1) % 0x10000);
  return [...units];
}

function join(type: 'alternation' | 'sequence', items: readonly RegexNode[]): RegexNode {
  const [only] = items;
  return items.length === 1 && only !== undefined ? only : { type, items };
}
