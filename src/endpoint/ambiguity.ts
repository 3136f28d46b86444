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
 */

import { createAutomaton, START, type State, type Ways } from './automaton.js';
import type { RegexNode } from './regex-syntax.js';

/** Findings about an expression whose matching is linear. */
export interface Analysis {
  /** Whether it may match the empty text. */
  readonly nullable: boolean;
  /** Whether it may match a text that is not empty. */
  readonly matchesText: boolean;
}

const MIN_READINGS = 32;
const MAX_EXPLORED = 1000;

const REMEDY =
  'leave one way: no repeat inside or next to a repeat of the same characters, as in [a-z]+(?:-[a-z]+)*';

/**
 * Analyses the tree of `source`, for a backtracking matcher that is anchored at both ends.
 *
 * More readings include what fewer can do, so only the largest numbers are followed.
 *
 * @throws {TypeError} if matching could take more than linear time; the message has the part and the remedy
 */
export function assertLinear(node: RegexNode, source: string): Analysis {
  const limit = Math.max(MIN_READINGS, source.length);
  const { states, end } = createAutomaton(node, source);
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
        const [most] = [...next].sort((a, b) => b[1] - a[1]);
        refuse(states[most?.[0] ?? START], source);
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
  const sets = new Map([...readers.values()].map((indexes) => [indexes.join(), indexes]));
  const letters: Set<number>[] = [];
  for (const indexes of [...sets.values()].sort((a, b) => b.length - a.length)) {
    if (!letters.some((larger) => indexes.every((state) => larger.has(state)))) letters.push(new Set(indexes));
  }
  return letters.reverse();
}

/** The readings after one more character. */
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
