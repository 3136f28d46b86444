/*
 * Builds the automaton of a regular expression: one state for each character of the source, and from each state the
 * states of the characters that may be read next (Glushkov's construction). Every way on is counted, so that the
 * automaton also tells in how many ways a backtracking matcher can read a text.
 *
 * It accepts all that the expression matches, and more: assertions and lookarounds hold, and a backreference reads any
 * text. A lookaround is a reading of its own, which ends with the body.
 */

import { rangesOf, type CharactersNode, type CharRange, type RegexNode, type RepeatNode } from './regex-tree.js';

/** States, each with the number of ways that lead there at once. */
export type Ways = ReadonlyMap<number, number>;

/** One character of the source. */
export interface State {
  /** What it reads; nothing at the start, and where a reading ends. */
  readonly ranges: readonly CharRange[];
  readonly follow: Map<number, number>;
  /** The outermost repeat around it, or the character itself: what to name in a message. */
  readonly part: RepeatNode | CharactersNode | null;
}

/** An automaton; it starts in {@link START}. */
export interface Automaton {
  readonly states: readonly State[];
  /** The state that stands for a match of the whole. */
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

const ANY: readonly CharRange[] = [[0, 0xffff]];
const NONE: Ways = new Map();
const NOTHING: Fragment = { first: NONE, last: NONE, empty: 1 };
/** More ways than anybody tells apart, and few enough that products stay numbers. */
const MANY = 2 ** 40;

/**
 * Builds the automaton of a tree.
 *
 * @param maxStates counted repeats are written out while there are fewer states; beyond, they count as repeats without
 * a limit
 */
export function createAutomaton(whole: RegexNode, maxStates: number): Automaton {
  const states: State[] = [];
  /** Repeats without a limit so far. */
  let loops = 0;
  let part: RepeatNode | null = null;

  sequence(sequence(state([], null), fragment(whole, false)), state([], null));
  return { states, end: states.length - 1 };

  function fragment(node: RegexNode, backwards: boolean): Fragment {
    switch (node.type) {
      case 'alternation':
        return node.items.map((item) => fragment(item, backwards)).reduce(either);
      case 'sequence': {
        const items = backwards ? node.items.toReversed() : node.items;
        return items.reduce((before, item) => sequence(before, fragment(item, backwards)), NOTHING);
      }
      case 'repeat':
        return repeat(node, backwards);
      case 'group':
        return fragment(node.body, backwards);
      case 'look': {
        const before = loops;
        const body = sequence(fragment(node.body, node.behind), state([], null));
        // A lookbehind that has no limit may begin anywhere in what was read before.
        const { first } = node.behind && loops > before ? either(body, anything()) : body;
        return { first, last: NONE, empty: 1 };
      }
      case 'assertion':
        return NOTHING;
      case 'backreference':
        return { ...anything(), empty: 1 };
      case 'characters':
        return state(rangesOf(node), node);
    }
  }

  function repeat(node: RepeatNode, backwards: boolean): Fragment {
    const { min, max } = node;
    if (max === 0) return NOTHING;
    const outer = part;
    part ??= node;
    const before = states.length;
    let copy = fragment(node.body, backwards);
    const { first, empty } = copy;
    const copies = max === Infinity ? Math.max(min, 1) : max;
    const fits = before + copies * (states.length - before) <= maxStates;
    let { last } = copy;
    for (let turn = 2; fits && turn <= copies; turn += 1) {
      const next = fragment(node.body, backwards);
      connect(copy.last, next.first);
      last = turn > min ? sum(last, next.last) : next.last;
      copy = next;
    }
    if (max === Infinity || !fits) loop(copy);
    part = outer;
    return { first, last, empty: empty + (min === 0 ? 1 : 0) };
  }

  function anything(): Fragment {
    const any = state(ANY, null);
    loop(any);
    return any;
  }

  function loop(body: Fragment): void {
    connect(body.last, body.first);
    loops += 1;
  }

  function state(ranges: readonly CharRange[], node: CharactersNode | null): Fragment {
    const only: Ways = new Map([[states.length, 1]]);
    states.push({ ranges, follow: new Map(), part: part ?? node });
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
