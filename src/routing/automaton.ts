/**
 * Builds the automaton of a regular expression: one state for each character of the source, and from each state the
 * states of the characters that may be read next (Glushkov's construction). Every way on is counted, so that the
 * automaton also tells in how many ways a backtracking matcher can read a text.
 *
 * It accepts all that the expression matches, and more: assertions and lookarounds hold, and a backreference reads any
 * text. A lookaround is a reading of its own, which ends with the body.
 */

import { complement, type CharactersNode, type CharRange, type RegexNode, type RepeatNode } from './regex-tree.js';

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

/**
 * Builds the automaton of a tree.
 *
 * @param maxStates counted repeats are written out while there are fewer states; beyond, they count as repeats without
 * a limit
 */
export function createAutomaton(node: RegexNode, maxStates: number): Automaton {
  return new Builder(maxStates).build(node);
}

/** States to enter and to leave a part by, and the number of ways through it that read nothing. */
interface Fragment {
  readonly first: Ways;
  readonly last: Ways;
  readonly empty: number;
}

const ANY: readonly CharRange[] = [[0, 0xffff]];
const NO_CHARACTER: readonly CharRange[] = [];
const NONE: Ways = new Map();
const NOTHING: Fragment = { first: NONE, last: NONE, empty: 1 };
/** More ways than anybody tells apart, and few enough that products stay numbers. */
const MANY = 2 ** 40;

class Builder {
  readonly #states: State[] = [{ ranges: NO_CHARACTER, follow: new Map(), part: null }];
  readonly #maxStates: number;
  /** Repeats without a limit so far. */
  #loops = 0;
  #part: RepeatNode | null = null;

  constructor(maxStates: number) {
    this.#maxStates = maxStates;
  }

  build(node: RegexNode): Automaton {
    const whole = this.#sequence(this.#fragment(node, false), this.#state(NO_CHARACTER, null));
    this.#connect(new Map([[START, 1]]), whole.first);
    return { states: this.#states, end: this.#states.length - 1 };
  }

  #fragment(node: RegexNode, backwards: boolean): Fragment {
    switch (node.type) {
      case 'alternation':
        return node.items.map((item) => this.#fragment(item, backwards)).reduce(either);
      case 'sequence': {
        const items = backwards ? node.items.toReversed() : node.items;
        return items.reduce<Fragment>(
          (before, item) => this.#sequence(before, this.#fragment(item, backwards)),
          NOTHING,
        );
      }
      case 'repeat':
        return this.#repeat(node, backwards);
      case 'group':
        return this.#fragment(node.body, backwards);
      case 'look': {
        const loops = this.#loops;
        const body = this.#sequence(this.#fragment(node.body, node.behind), this.#state(NO_CHARACTER, null));
        // A lookbehind that has no limit may begin anywhere in what was read before.
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
    const before = this.#states.length;
    let copy = this.#fragment(node.body, backwards);
    const { first, empty } = copy;
    const copies = max === Infinity ? Math.max(min, 1) : max;
    const fits = before + copies * (this.#states.length - before) <= this.#maxStates;
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
    const only: Ways = new Map([[this.#states.length, 1]]);
    this.#states.push({ ranges, follow: new Map(), part: this.#part ?? node });
    return { first: only, last: only, empty: 0 };
  }

  #sequence(a: Fragment, b: Fragment): Fragment {
    this.#connect(a.last, b.first);
    const empty = Math.min(a.empty * b.empty, MANY);
    return { first: sum(a.first, b.first, a.empty), last: sum(b.last, a.last, b.empty), empty };
  }

  #connect(last: Ways, first: Ways): void {
    for (const [from, ways] of last) {
      const follow = this.#states[from]?.follow;
      for (const [to, more] of first) follow?.set(to, Math.min((follow.get(to) ?? 0) + ways * more, MANY));
    }
  }
}

function either(a: Fragment, b: Fragment): Fragment {
  return { first: sum(a.first, b.first), last: sum(a.last, b.last), empty: Math.min(a.empty + b.empty, MANY) };
}

function sum(a: Ways, b: Ways, times = 1): Ways {
  if (times === 0 || b.size === 0) return a;
  const total = new Map(a);
  for (const [state, count] of b) total.set(state, Math.min((total.get(state) ?? 0) + count * times, MANY));
  return total;
}
