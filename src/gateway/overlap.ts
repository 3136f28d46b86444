/**
 * Tells whether two patterns match some path together.
 *
 * Constraints are compared as automata over UTF-16 units, walked in step. On the safe side: assertions and lookarounds hold,
 * a backreference matches anything, and what is too large to walk overlaps.
 */

import type { Constraint } from '../routing/constraint.js';
import type { Segment } from '../routing/pattern.js';
import { complement, type CharRange, type RegexNode } from '../routing/regex-syntax.js';

/** Whether some path may match both; never false when one does. */
export function pathsOverlap(a: readonly Segment[], b: readonly Segment[]): boolean {
  for (let i = 0; ; i += 1) {
    const [left, right] = [a[i], b[i]];
    if (left === undefined || right === undefined) return left === right;
    if (left.kind === 'wildcard') return !isLastSlash(b, i);
    if (right.kind === 'wildcard') return !isLastSlash(a, i);
    if (!segmentsOverlap(left, right)) return false;
  }
}

/** Whether `outer` is known to match every path that `inner` matches. */
export function pathIncludes(outer: readonly Segment[], inner: readonly Segment[]): boolean {
  for (let i = 0; ; i += 1) {
    const [left, right] = [outer[i], inner[i]];
    if (left === undefined || right === undefined) return left === right;
    if (left.kind === 'wildcard') return !isLastSlash(inner, i);
    if (right.kind === 'wildcard') return false;
    if (left.kind === 'static' ? right.kind !== 'static' || left.text !== right.text : !includesSegment(left.constraint, right)) return false;
  }
}

type Single = Exclude<Segment, { kind: 'wildcard' }>;

/** An edge on a character, or, without ranges, on nothing. */
interface Edge {
  readonly ranges: readonly CharRange[] | null;
  readonly to: number;
}

const ANY: readonly CharRange[] = [[0, 0xffff]];
const MAX_STATES = 2000;
const MAX_PAIRS = 20_000;
const END = 0;

function isLastSlash(segments: readonly Segment[], index: number): boolean {
  const segment = segments[index];
  return segment?.kind === 'static' && segment.text === '';
}

function segmentsOverlap(a: Single, b: Single): boolean {
  if (a.kind === 'static') return b.kind === 'static' ? a.text === b.text : a.text !== '' && accepts(b.constraint, a.text);
  if (b.kind === 'static') return b.text !== '' && accepts(a.constraint, b.text);
  if (a.constraint === null || b.constraint === null || a.constraint === b.constraint) return true;
  return constraintsOverlap(a.constraint, b.constraint);
}

function includesSegment(outer: Constraint | null, inner: Single): boolean {
  if (inner.kind === 'static') return inner.text !== '' && accepts(outer, inner.text);
  return outer === null || outer === inner.constraint;
}

function accepts(constraint: Constraint | null, text: string): boolean {
  return constraint === null || constraint.regexp.test(text);
}

function constraintsOverlap(a: Constraint, b: Constraint): boolean {
  const [left, right] = [new Automaton(a.ast), new Automaton(b.ast)];
  const seen = new Set<string>();
  const queue: (readonly [number, number])[] = [];
  const visit = (a: number, b: number): boolean => {
    let ended = false;
    for (const x of left.closure(a)) {
      for (const y of right.closure(b)) {
        if (x === END && y === END) ended = true;
        if (seen.has(`${x} ${y}`)) continue;
        seen.add(`${x} ${y}`);
        queue.push([x, y]);
      }
    }
    return ended || seen.size > MAX_PAIRS;
  };
  if (left.tooLarge || right.tooLarge) return true;
  visit(left.start, right.start); // both may end here, but no segment is empty
  for (let pair = queue.pop(); pair !== undefined; pair = queue.pop()) {
    for (const x of left.edges(pair[0])) {
      for (const y of right.edges(pair[1])) {
        if (x.ranges !== null && y.ranges !== null && meet(x.ranges, y.ranges) && visit(x.to, y.to)) return true;
      }
    }
  }
  return false;
}

function meet(a: readonly CharRange[], b: readonly CharRange[]): boolean {
  return a.some(([low, high]) => b.some(([from, to]) => low <= to && from <= high));
}

class Automaton {
  readonly start: number;
  readonly #states: Edge[][] = [[]];

  constructor(node: RegexNode) {
    this.start = this.#build(node, END);
  }

  get tooLarge(): boolean {
    return this.#states.length > MAX_STATES;
  }

  edges(state: number): readonly Edge[] {
    return this.#states[state] ?? [];
  }

  /** The state and all that can be reached from it without a character. */
  closure(state: number): Set<number> {
    const reached = new Set([state]);
    for (const from of reached) {
      for (const { ranges, to } of this.edges(from)) if (ranges === null) reached.add(to);
    }
    return reached;
  }

  #state(edges: Edge[]): number {
    return this.#states.push(edges) - 1;
  }

  /** Adds the states of a part that goes on to `next`; gives the one to enter it by. */
  #build(node: RegexNode, next: number): number {
    if (this.tooLarge) return next;
    switch (node.type) {
      case 'sequence':
        return node.items.reduceRight((to, item) => this.#build(item, to), next);
      case 'alternation':
        return this.#state(node.items.map((item) => ({ ranges: null, to: this.#build(item, next) })));
      case 'group':
        return this.#build(node.body, next);
      case 'characters':
        return this.#state([{ ranges: node.negated ? complement(node.ranges) : node.ranges, to: next }]);
      case 'backreference':
        return this.#loop((to) => this.#state([{ ranges: ANY, to }]), next);
      case 'repeat': {
        const bounded = node.max === Infinity ? node.min : node.max;
        let entry = node.max === Infinity ? this.#loop((to) => this.#build(node.body, to), next) : next;
        for (let i = bounded; i > 0 && !this.tooLarge; i -= 1) {
          const body = this.#build(node.body, entry);
          entry = i > node.min ? this.#state([{ ranges: null, to: body }, { ranges: null, to: next }]) : body;
        }
        return entry;
      }
      default:
        return next;
    }
  }

  #loop(build: (to: number) => number, next: number): number {
    const edges: Edge[] = [{ ranges: null, to: next }];
    const head = this.#state(edges);
    edges.push({ ranges: null, to: build(head) });
    return head;
  }
}
