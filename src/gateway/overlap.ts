/*
 * Tells whether two patterns match some path together.
 *
 * Constraints are compared as automata over UTF-16 units, walked in step. On the safe side: an automaton accepts more
 * than its constraint (see {@link createAutomaton}), and what is too large to walk overlaps.
 */

import { createAutomaton, START, type Automaton, type State } from './automaton.js';
import type { Constraint } from '../endpoint/constraint.js';
import type { Segment } from '../endpoint/pattern.js';
import { parseRegex } from './regex-syntax.js';
import type { CharRange } from './regex-tree.js';

/** Whether some path may match both; never false when one does. */
export function pathsOverlap(a: readonly Segment[], b: readonly Segment[]): boolean {
  return compare(a, b, segmentsOverlap, true);
}

/** Whether `outer` is known to match every path that `inner` matches. */
export function pathIncludes(outer: readonly Segment[], inner: readonly Segment[]): boolean {
  return compare(outer, inner, segmentIncludes, false);
}

/** Whether some path of a pattern may be `prefix` or below it: `/:x/y` and `/*rest` are, of `/billing`. */
export function isBelow(segments: readonly Segment[], prefix: string): boolean {
  const texts = prefix.split('/').slice(1);
  return pathsOverlap(
    segments.slice(0, texts.length),
    texts.map((text) => ({ kind: 'static', text })),
  );
}

type Single = Exclude<Segment, { kind: 'wildcard' }>;

/** Counted repeats up to this many states are compared by their counts. */
const MAX_STATES = 2000;
const MAX_PAIRS = 20_000;

/** @param rest whether a wildcard in `b` counts as a match for any other segment of `a` in its place */
function compare(
  a: readonly Segment[],
  b: readonly Segment[],
  single: (left: Single, right: Single) => boolean,
  rest: boolean,
): boolean {
  for (let i = 0; ; i += 1) {
    const [left, right] = [a[i], b[i]];
    if (left === undefined || right === undefined) return left === right;
    // A wildcard takes one character at least.
    if (left.kind === 'wildcard') return !isEmpty(right);
    if (right.kind === 'wildcard') return rest && !isEmpty(left);
    if (!single(left, right)) return false;
  }
}

function isEmpty(segment: Segment): boolean {
  return segment.kind === 'static' && segment.text === '';
}

function segmentsOverlap(a: Single, b: Single): boolean {
  if (a.kind === 'static')
    return b.kind === 'static' ? a.text === b.text : a.text !== '' && accepts(b.constraint, a.text);
  if (b.kind === 'static') return b.text !== '' && accepts(a.constraint, b.text);
  if (a.constraint === null || b.constraint === null || a.constraint === b.constraint) return true;
  return constraintsOverlap(a.constraint, b.constraint);
}

function segmentIncludes(outer: Single, inner: Single): boolean {
  if (inner.kind === 'static') return segmentsOverlap(outer, inner);
  return outer.kind === 'param' && (outer.constraint === null || outer.constraint === inner.constraint);
}

function accepts(constraint: Constraint | null, text: string): boolean {
  return constraint === null || constraint.regexp.test(text);
}

function constraintsOverlap(a: Constraint, b: Constraint): boolean {
  const [left, right] = [a, b].map(({ source }) => createAutomaton(parseRegex(source), MAX_STATES)) as [
    Automaton,
    Automaton,
  ];
  if (Math.max(left.states.length, right.states.length) > 2 * MAX_STATES) return true;
  const seen = new Set<number>();
  const queue: (readonly [State | undefined, State | undefined])[] = [[left.states[START], right.states[START]]];
  for (const [x, y] of queue) {
    for (const to of x?.follow.keys() ?? []) {
      for (const other of y?.follow.keys() ?? []) {
        const [next, twin] = [left.states[to], right.states[other]];
        const pair = to * right.states.length + other;
        if (next === undefined || twin === undefined || seen.has(pair) || !meet(next.ranges, twin.ranges)) continue;
        if (next.follow.has(left.end) && twin.follow.has(right.end)) return true;
        seen.add(pair);
        if (seen.size > MAX_PAIRS) return true;
        queue.push([next, twin]);
      }
    }
  }
  return false;
}

function meet(a: readonly CharRange[], b: readonly CharRange[]): boolean {
  return a.some(([low, high]) => b.some(([from, to]) => low <= to && from <= high));
}
