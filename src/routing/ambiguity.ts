/**
 * Refuses regular expressions that a backtracking matcher may need more than linear time for.
 *
 * The matcher tries readings of its input: paths through the Glushkov automaton of the expression, which has a state for
 * each character of the source. All inputs are explored at once, as the numbers of readings alive in each state, until no
 * larger numbers turn up. After any character of any input at most `max(32, source.length)` readings may be alive, which
 * bounds the steps for one character by that number times the ways on from a state. Exponential and polynomial ambiguity
 * have no such bound, and thirty `a?` in a row none that small.
 *
 * On the safe side: assertions hold; a lookaround is a reading that ends with its body; a backreference, and the body of a
 * lookbehind that has no limit, may take any text; what is too complicated to explore is refused.
 */

import { complement, printRegex, type CharactersNode, type CharRange, type RegexNode, type RepeatNode } from './regex-syntax.js';

/** What is known of an expression whose matching is linear. */
export interface Analysis {
  /** It may match the empty text. */
  readonly nullable: boolean;
  /** It may match a text that is not empty. */
  readonly matchesText: boolean;
}

/**
 * Analyses the tree of `source` without timing anything; a backtracking matcher anchored at both ends is assumed.
 *
 * @throws {TypeError} when matching could take more than linear time; the message has the part and the remedy
 */
export function assertLinear(node: RegexNode, source: string): Analysis {
  const limit = Math.max(MIN_READINGS, source.length);
  if (isPlain(node, limit)) return { nullable: isNullable(node), matchesText: true };
  const builder = new Builder(source, limit);
  const { empty } = builder.build(node);
  return { nullable: empty > 0, matchesText: explore(builder, limit) };
}

/** How often one may go from a state, or into one, at once. */
type Counts = ReadonlyMap<number, number>;

/** States to enter and to leave a part by, and the number of ways through it that read nothing. */
interface Fragment {
  readonly first: Counts;
  readonly last: Counts;
  readonly empty: number;
}

interface State {
  readonly ranges: readonly CharRange[];
  readonly follow: Map<number, number>;
  /** What to name in a message. */
  readonly part: RepeatNode | CharactersNode | null;
}

const MIN_READINGS = 32;
/** Counted repeats are written out while there are fewer states; beyond, they count as repeats without a limit. */
const MAX_STATES = 256;
const MAX_EXPLORED = 1000;

const ANY: readonly CharRange[] = [[0, 0xffff]];
/** Of a state that ends a body: readings are counted on their way into it only. */
const NO_CHARACTER: readonly CharRange[] = [];
const START = 0;
const NONE: Counts = new Map();
const NOTHING: Fragment = { first: NONE, last: NONE, empty: 1 };
const REMEDY = 'leave one way: no repeat inside or next to a repeat of the same characters, as in [a-z]+(?:-[a-z]+)* or (?=.*x).+';

/** Alternatives of characters, each with at most one repeat: too little for readings to multiply. */
function isPlain(node: RegexNode, limit: number): boolean {
  let width = 0;
  let repeats = 0;
  for (const branch of node.type === 'alternation' ? node.items : [node]) {
    let repeated = false;
    for (const item of branch.type === 'sequence' ? branch.items : [branch]) {
      const { body, min, max } = item.type === 'repeat' ? item : { body: item, min: 1, max: 1 };
      if (body.type !== 'characters' || max === 0 || (!body.negated && body.ranges.length === 0)) return false;
      width += min === max ? max : 1;
      if (min === max) continue;
      if (repeated) return false;
      repeated = true;
      repeats += 1;
    }
    if (branch.type === 'sequence' && branch.items.length === 0) return false;
  }
  return repeats === 0 || width <= limit;
}

function isNullable(node: RegexNode): boolean {
  if (node.type === 'alternation') return node.items.some(isNullable);
  if (node.type === 'sequence') return node.items.every(isNullable);
  return node.type === 'repeat' && node.min === 0;
}

class Builder {
  readonly states: State[] = [{ ranges: NO_CHARACTER, follow: new Map(), part: null }];
  readonly #source: string;
  readonly #limit: number;
  #end = START;
  #loops = 0;
  #part: RepeatNode | null = null;

  constructor(source: string, limit: number) {
    this.#source = source;
    this.#limit = limit;
  }

  /** The state that stands for a match of the whole. */
  get end(): number {
    return this.#end;
  }

  build(node: RegexNode): Fragment {
    const whole = this.#fragment(node, false);
    const end = this.#state(NO_CHARACTER, null);
    this.#end = this.states.length - 1;
    this.#connect(new Map([[START, 1]]), this.#sequence(whole, end).first);
    return whole;
  }

  /** @throws {TypeError} naming the state's part */
  refuse(state: number): never {
    const part = this.states[state]?.part ?? null;
    const where = part === null ? 'as a whole' : `at "${printRegex(part)}" (index ${part.index})`;
    throw new TypeError(`constraint "${this.#source}" can read the same text in too many ways, ${where}; ${REMEDY}`);
  }

  #fragment(node: RegexNode, backwards: boolean): Fragment {
    switch (node.type) {
      case 'alternation':
        return node.items.map((item) => this.#fragment(item, backwards)).reduce(either);
      case 'sequence': {
        const items = backwards ? node.items.toReversed() : node.items;
        return items.reduce<Fragment>((before, item) => this.#sequence(before, this.#fragment(item, backwards)), NOTHING);
      }
      case 'repeat':
        return this.#repeat(node, backwards);
      case 'group':
        return this.#fragment(node.body, backwards);
      case 'look': {
        const loops = this.#loops;
        const body = this.#sequence(this.#fragment(node.body, node.behind), this.#state(NO_CHARACTER, null));
        const { first } = node.behind && this.#loops > loops ? either(body, this.#anything()) : body;
        return { first, last: NONE, empty: 1 };
      }
      case 'assertion':
        return NOTHING;
      case 'backreference':
        return { ...this.#anything(), empty: 1 };
      case 'characters':
        return this.#state(node.negated ? complement(node.ranges) : node.ranges, node);
    }
  }

  #repeat(node: RepeatNode, backwards: boolean): Fragment {
    const { min, max } = node;
    if (max === 0) return NOTHING;
    const outer = this.#part;
    this.#part ??= node;
    const before = this.states.length;
    let copy = this.#fragment(node.body, backwards);
    if (max > 1 && copy.empty > 0) {
      throw new TypeError(`constraint "${this.#source}" repeats what may match nothing, at "${printRegex(node)}" (index ${node.index}); let each turn take a character`);
    }
    const { first, empty } = copy;
    const copies = max === Infinity ? Math.max(min, 1) : max;
    const fits = before + copies * (this.states.length - before) <= MAX_STATES;
    let last = copy.last;
    for (let turn = 2; fits && turn <= copies; turn += 1) {
      const next = this.#fragment(node.body, backwards);
      this.#connect(copy.last, next.first);
      last = turn > min ? sum(last, next.last) : next.last;
      copy = next;
    }
    if (max === Infinity || !fits) {
      this.#connect(copy.last, copy.first);
      this.#loops += 1;
    }
    this.#part = outer;
    return { first, last, empty: empty + (min === 0 ? 1 : 0) };
  }

  #anything(): Fragment {
    const any = this.#state(ANY, null);
    this.#connect(any.last, any.first);
    this.#loops += 1;
    return any;
  }

  #state(ranges: readonly CharRange[], node: CharactersNode | null): Fragment {
    const only: Counts = new Map([[this.states.length, 1]]);
    this.states.push({ ranges, follow: new Map(), part: this.#part ?? node });
    return { first: only, last: only, empty: 0 };
  }

  #sequence(a: Fragment, b: Fragment): Fragment {
    this.#connect(a.last, b.first);
    return { first: sum(a.first, b.first, a.empty), last: sum(b.last, a.last, b.empty), empty: a.empty * b.empty };
  }

  #connect(last: Counts, first: Counts): void {
    for (const [from, ways] of last) {
      const follow = this.states[from]?.follow;
      for (const [to, more] of first) {
        const total = (follow?.get(to) ?? 0) + ways * more;
        if (total > this.#limit) this.refuse(to);
        follow?.set(to, total);
      }
    }
  }
}

function either(a: Fragment, b: Fragment): Fragment {
  return { first: sum(a.first, b.first), last: sum(a.last, b.last), empty: a.empty + b.empty };
}

function sum(a: Counts, b: Counts, times = 1): Counts {
  if (times === 0 || b.size === 0) return a;
  const total = new Map(a);
  for (const [state, count] of b) total.set(state, (total.get(state) ?? 0) + count * times);
  return total;
}

/** Tells whether a text that is not empty reaches the end. More readings include what fewer can do: only the most are followed. */
function explore(builder: Builder, limit: number): boolean {
  const { states, end } = builder;
  const letters = lettersOf(states);
  const known = states.map((): Counts[] => []);
  const pending: Counts[] = [new Map([[START, 1]])];
  let budget = MAX_EXPLORED + 4 * states.length;
  let matchesText = false;
  for (let counts = pending.pop(); counts !== undefined; counts = pending.pop()) {
    for (const letter of letters) {
      const next = read(states, counts, letter);
      let total = 0;
      for (const count of next.values()) total += count;
      if (total > limit || budget === 0) {
        const byCount = [...next].filter(([state]) => states[state]?.part !== null).sort((a, b) => b[1] - a[1]);
        builder.refuse(byCount[0]?.[0] ?? START);
      }
      const [some] = next.keys();
      if (some === undefined || known[some]?.some((other) => includes(other, next))) continue;
      for (const state of next.keys()) {
        known[state]?.push(next);
        matchesText ||= states[state]?.follow.has(end) === true;
      }
      pending.push(next);
      budget -= 1;
    }
  }
  return matchesText;
}

/** The sets of states that one character can be read by, less those that are part of another; the largest last. */
function lettersOf(states: readonly State[]): ReadonlySet<number>[] {
  const bounds = new Set(states.flatMap(({ ranges }) => ranges.flatMap(([low, high]) => [low, high + 1])));
  const sets = new Map<string, Set<number>>();
  for (const unit of bounds) {
    const readers = new Set<number>();
    for (const [index, { ranges }] of states.entries()) {
      if (ranges.some(([low, high]) => low <= unit && unit <= high)) readers.add(index);
    }
    sets.set([...readers].join(), readers);
  }
  const letters: Set<number>[] = [];
  for (const readers of [...sets.values()].sort((a, b) => b.size - a.size)) {
    if (!letters.some((larger) => [...readers].every((state) => larger.has(state)))) letters.push(readers);
  }
  return letters.reverse();
}

function read(states: readonly State[], counts: Counts, letter: ReadonlySet<number>): Counts {
  const next = new Map<number, number>();
  for (const [from, readings] of counts) {
    for (const [to, ways] of states[from]?.follow ?? NONE) {
      if (letter.has(to)) next.set(to, (next.get(to) ?? 0) + readings * ways);
    }
  }
  return next;
}

function includes(counts: Counts, fewer: Counts): boolean {
  for (const [state, count] of fewer) {
    if ((counts.get(state) ?? 0) < count) return false;
  }
  return true;
}
