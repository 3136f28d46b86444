/*
 * Builds the automaton of a regular expression: one state for each character of the source, and from each state the
 * states of the characters that may be read next (Glushkov's construction). Each transition counts the ways in which a
 * backtracking matcher can take it.
 */

import type { CharactersNode, RegexNode, RepeatNode } from './regex-syntax.js';

/** States, each with the number of ways that lead there at once. */
export type Ways = ReadonlyMap<number, number>;

/** One character of the source. */
export interface State {
  /** The units that it reads; empty for the start and the end. */
  readonly units: ReadonlySet<number>;
  readonly follow: Map<number, number>;
  /** The outermost repeat around it, or the character itself: the part to name in a message. */
  readonly part: RepeatNode | CharactersNode | null;
}

/** An automaton; it starts in {@link START}. */
export interface Automaton {
  readonly states: readonly State[];
  /** The state after a match of the whole expression. */
  readonly end: number;
}

/** The first state of every automaton. */
export const START = 0;

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
/** Caps the counts: more than any limit of ours, and few enough that products stay exact. */
const MANY = 2 ** 40;

/**
 * Builds the automaton of a tree.
 *
 * @throws {TypeError} for a repeat whose body may match nothing: a matcher could turn there without an end
 */
export function createAutomaton(whole: RegexNode, source: string): Automaton {
  const states: State[] = [];
  let part: RepeatNode | null = null;

  sequence(sequence(state(new Set(), null), fragment(whole)), state(new Set(), null));
  return { states, end: states.length - 1 };

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
