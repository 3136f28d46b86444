/*
 * Refuses regular expressions that a backtracking matcher may need more than linear time for.
 *
 * Such a matcher tries one reading of the text after another, a reading being a path through the automaton of the
 * expression. `(?:a+)+` reads `aaa` in four ways, as aaa, a-aa, aa-a and a-a-a, and in twice as many with each further
 * a; when the text then ends in b, all of them are tried before the match fails. So what is bounded here is the number
 * of readings that have the same text behind them: at most `max(32, source.length)`, whatever the text is. Exponential
 * and polynomial ambiguity have no such bound, and thirty `a?` in a row none that small.
 *
 * All texts are explored at once, each as the numbers of readings that are in each state behind it, until no text turns
 * up larger numbers.
 *
 * On the safe side: what {@link createAutomaton} takes to match is more than what does, and what is too complicated to
 * explore is refused.
 */

import { createAutomaton, START, type Automaton, type State, type Ways } from './automaton.js';
import { isNullable, partsOf, printRegex, type RegexNode } from './regex-tree.js';

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
  const nullable = isNullable(node);
  if (isPlain(node, limit)) return { nullable, matchesText: true };
  assertRepeats(node, source);
  return { nullable, matchesText: explore(createAutomaton(node, MAX_STATES), source, limit) };
}

const MIN_READINGS = 32;
/** Counted repeats are written out while there are fewer states; beyond, they count as repeats without a limit. */
const MAX_STATES = 256;
const MAX_EXPLORED = 1000;

const REMEDY =
  'leave one way: no repeat inside or next to a repeat of the same characters, as in [a-z]+(?:-[a-z]+)* or (?=.*x).+';

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

/** @throws {TypeError} for the innermost repeat of what may match nothing: a matcher could turn there for ever */
function assertRepeats(node: RegexNode, source: string): void {
  if (node.type === 'repeat' && node.max === 0) return;
  for (const part of partsOf(node)) assertRepeats(part, source);
  if (node.type === 'repeat' && node.max > 1 && isNullable(node.body))
    throw new TypeError(
      `constraint "${source}" repeats what may match nothing, at "${printRegex(node)}" (index ${node.index}); let each turn take a character`,
    );
}

/**
 * Tells whether a text that is not empty matches. More readings include what fewer can do, so only the most are
 * followed.
 *
 * @throws {TypeError} when more readings than the limit have one text behind them
 */
function explore({ states, end }: Automaton, source: string, limit: number): boolean {
  for (const { follow } of states) {
    for (const [to, ways] of follow) if (ways > limit) refuse(states[to], source);
  }
  const letters = lettersOf(states);
  const known = states.map((): Ways[] => []);
  const pending: Ways[] = [new Map([[START, 1]])];
  let budget = MAX_EXPLORED + 4 * states.length;
  let matchesText = false;
  for (let readings = pending.pop(); readings !== undefined; readings = pending.pop()) {
    for (const letter of letters) {
      const next = read(states, readings, letter);
      let total = 0;
      for (const count of next.values()) total += count;
      if (total > limit || budget === 0) {
        const byCount = [...next].filter(([state]) => states[state]?.part !== null).sort((a, b) => b[1] - a[1]);
        refuse(states[byCount[0]?.[0] ?? START], source);
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

/** @throws {TypeError} naming the state's part */
function refuse(state: State | undefined, source: string): never {
  const part = state?.part ?? null;
  const where = part === null ? 'as a whole' : `at "${printRegex(part)}" (index ${part.index})`;
  throw new TypeError(`constraint "${source}" can read the same text in too many ways, ${where}; ${REMEDY}`);
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

/** The readings behind one more character. */
function read(states: readonly State[], readings: Ways, letter: ReadonlySet<number>): Ways {
  const next = new Map<number, number>();
  for (const [from, count] of readings) {
    for (const [to, ways] of states[from]?.follow ?? []) {
      if (letter.has(to)) next.set(to, (next.get(to) ?? 0) + count * ways);
    }
  }
  return next;
}

function includes(readings: Ways, fewer: Ways): boolean {
  for (const [state, count] of fewer) {
    if ((readings.get(state) ?? 0) < count) return false;
  }
  return true;
}
