/*
 * Refuses regular expressions that a backtracking matcher may need more than linear time for.
 *
 * Such a matcher tries one reading of the text after another; a reading is a path through the automaton. `(?:a+)+`
 * reads `aaa` in four ways (aaa, a-aa, aa-a, a-a-a) and in twice as many with each further a; before the matcher can
 * fail at a final b, it tries them all. So the readings of one text are limited to `max(32, source.length)`, whatever
 * the text is. Exponential and polynomial ambiguity exceed any limit, and thirty `a?` in a row exceed this one.
 *
 * All texts are explored at once, each as the numbers of readings that end in each state, until no text has larger
 * numbers. An expression that is too complicated to explore is refused.
 *
 * The automaton has one state for each character of the source, and from each state the states of the characters that
 * may be read next (Glushkov's construction). Each transition counts the ways in which the matcher can take it.
 */

import type { CharactersNode, RegexNode, RepeatNode } from './regex-syntax.js';

/** States, each with the number of ways that lead there at once. */
type Ways = ReadonlyMap<number, number>;

/** One character of the source. */
interface State {
  /** The units that it reads; empty for the start and the end. */
  readonly units: ReadonlySet<number>;
  readonly follow: Map<number, number>;
  /** The outermost repeat around it, or the character itself: the part to name in a message. */
  readonly part: RepeatNode | CharactersNode | null;
}

/** The first state of every automaton; the last one is that after a match of the whole expression. */
const START = 0;

/** States to enter and to leave a part by, and the number of ways through it that read nothing. */
interface Fragment {
  readonly first: Ways;
  readonly last: Ways;
  readonly empty: number;
}

const NONE: Ways = new Map();
const NOTHING: Fragment = { first: NONE, last: NONE, empty: 1 };
/** Counted repeats are written out while there are fewer states; beyond, they count as repeats without a limit. */
const MAX_STATES = 256;
/** Caps the counts, which could grow to Infinity: more than any limit of ours. */
const MANY = 2 ** 40;

const MIN_READINGS = 32;
const MAX_EXPLORED = 1000;

const REMEDY = 'leave one way: no repeat inside or next to a repeat of the same characters, as in [a-z]+(?:-[a-z]+)*';

/**
 * Analyses the tree of `source`, for a backtracking matcher that is anchored at both ends.
 *
 * More readings include what fewer can do, so only the largest numbers are followed.
 *
 * @returns whether it may match the empty text, and whether it may match a text that is not empty
 * @throws {TypeError} if matching could take more than linear time; the message has the part and the remedy
 */
export function assertLinear(node: RegexNode, source: string): { nullable: boolean; matchesText: boolean } {
  const limit = Math.max(MIN_READINGS, source.length);
  const states = createAutomaton(node, source);
  const end = states.length - 1;
  for (const { follow } of states) {
    for (const [to, ways] of follow) if (ways > limit) refuse(states[to], source);
  }
  const letters = lettersOf(states);
  const known = states.map((): Ways[] => []);
  const pending: Ways[] = [new Map([[START, 1]])];
  let budget = MAX_EXPLORED + 4 * states.length;
  let matchesText = false;
  for (let readings = pending.pop(); readings !== undefined; readings = pending.pop()) {
    const reached = new Map<number, number>();
    for (const [from, count] of readings) add(reached, states[from]?.follow ?? NONE, count);
    matchesText ||= !readings.has(START) && reached.has(end);
    for (const letter of letters) {
      const next = new Map<number, number>();
      let total = 0;
      for (const [state, count] of reached) {
        if (!letter.has(state)) continue;
        next.set(state, count);
        total += count;
      }
      if (total > limit || budget === 0) {
        const [most] = [...next].sort((a, b) => b[1] - a[1]);
        refuse(states[most?.[0] ?? START], source);
      }
      const [some] = next.keys();
      if (some === undefined || known[some]?.some((other) => includes(other, next))) continue;
      for (const state of next.keys()) known[state]?.push(next);
      pending.push(next);
      budget -= 1;
    }
  }
  return { nullable: states[START]?.follow.has(end) === true, matchesText };
}

/** @throws {TypeError} naming the state's part */
function refuse(state: State | undefined, source: string): never {
  const part = state?.part ?? null;
  const where = part === null ? 'as a whole' : `at "${part.text}" (index ${part.index})`;
  throw new TypeError(`constraint "${source}" can read the same text in too many ways, ${where}; ${REMEDY}`);
}

/** The sets of states that read one character, without those that are part of another set; the largest last. */
function lettersOf(states: readonly State[]): ReadonlySet<number>[] {
  const readers = new Map<number, number[]>();
  for (const [index, { units }] of states.entries()) {
    for (const unit of units) readers.set(unit, [...(readers.get(unit) ?? []), index]);
  }
  const letters: Set<number>[] = [];
  for (const indexes of [...readers.values()].sort((a, b) => b.length - a.length)) {
    if (!letters.some((larger) => indexes.every((state) => larger.has(state)))) letters.push(new Set(indexes));
  }
  return letters.reverse();
}

function includes(readings: Ways, fewer: Ways): boolean {
  for (const [state, count] of fewer) {
    if ((readings.get(state) ?? 0) < count) return false;
  }
  return true;
}

/** @throws {TypeError} for a repeat whose body may match nothing: a matcher could turn there without an end */
function createAutomaton(whole: RegexNode, source: string): readonly State[] {
  const states: State[] = [];
  let part: RepeatNode | null = null;

  sequence(sequence(state(new Set(), null), fragment(whole)), state(new Set(), null));
  return states;

  function fragment(node: RegexNode): Fragment {
    if (node.type === 'characters') return state(node.units, node);
    if (node.type === 'repeat') return repeat(node);
    if (node.type === 'group') return fragment(node.body);
    const parts = node.items.map(fragment);
    return node.type === 'alternation' ? parts.reduce(either) : parts.reduce(sequence, NOTHING);
  }

  function repeat(node: RepeatNode): Fragment {
    const { min, max } = node;
    if (max === 0) return NOTHING;
    const outer = part;
    part ??= node;
    const before = states.length;
    let copy = fragment(node.body);
    const { first, empty } = copy;
    if (empty > 0 && max > 1)
      throw new TypeError(
        `constraint "${source}" repeats what may match nothing, at "${node.text}" (index ${node.index}); let each turn take a character`,
      );
    const copies = max === Infinity ? Math.max(min, 1) : max;
    const fits = before + copies * (states.length - before) <= MAX_STATES;
    let { last } = copy;
    for (let turn = 2; fits && turn <= copies; turn += 1) {
      const next = fragment(node.body);
      connect(copy.last, next.first);
      last = turn > min ? sum(last, next.last) : next.last;
      copy = next;
    }
    if (max === Infinity || !fits) connect(copy.last, copy.first);
    part = outer;
    return { first, last, empty: empty + (min === 0 ? 1 : 0) };
  }

  function state(units: ReadonlySet<number>, node: CharactersNode | null): Fragment {
    const only: Ways = new Map([[states.length, 1]]);
    states.push({ units, follow: new Map(), part: part ?? node });
    return { first: only, last: only, empty: 0 };
  }

  function sequence(a: Fragment, b: Fragment): Fragment {
    connect(a.last, b.first);
    const empty = Math.min(a.empty * b.empty, MANY);
    return { first: sum(a.first, b.first, a.empty), last: sum(b.last, a.last, b.empty), empty };
  }

  function connect(last: Ways, first: Ways): void {
    for (const [from, ways] of last) {
      const follow = states[from]?.follow;
      if (follow !== undefined) add(follow, first, ways);
    }
  }
}

function either(a: Fragment, b: Fragment): Fragment {
  return { first: sum(a.first, b.first), last: sum(a.last, b.last), empty: Math.min(a.empty + b.empty, MANY) };
}

function sum(a: Ways, b: Ways, times = 1): Ways {
  if (times === 0 || b.size === 0) return a;
  const total = new Map(a);
  add(total, b, times);
  return total;
}

function add(total: Map<number, number>, ways: Ways, times: number): void {
  for (const [state, count] of ways) total.set(state, Math.min((total.get(state) ?? 0) + count * times, MANY));
}
