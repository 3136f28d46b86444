/**
 * Which of two routes is the better one for a path that both match: segment by segment from the left, what stands
 * there as it is written beats a constrained parameter beats a plain parameter beats a wildcard. Of two constraints at
 * one place, the one that was registered first is tried first.
 *
 * The trie searches in this order (its test compares the two); whoever reads a table from outside has it here.
 */

import type { Segment } from './pattern.js';

/** Kinds of segments, best first. */
const PRECEDENCE = ['static', 'constrained', 'param', 'wildcard'] as const;

/** A kind of segment as precedence tells them apart. */
type SegmentKind = (typeof PRECEDENCE)[number];

/** The kind of a segment. */
function kindOf(segment: Segment): SegmentKind {
  return segment.kind === 'param' && segment.constraint !== null ? 'constrained' : segment.kind;
}

/**
 * Paths, best first.
 *
 * @param paths in order of registration, no two of them the same segments
 */
export function sortByPrecedence<Path extends { readonly segments: readonly Segment[] }>(
  paths: Iterable<Path>,
): Path[] {
  const root = new PathTree<Path>(0);
  for (const path of paths) path.segments.reduce((branch, segment) => branch.obtain(segment), root).path = path;
  return [...root.paths()];
}

/** What the paths with the same first segments have next. */
class PathTree<Path> {
  path: Path | null = null;
  readonly #next = new Map<string, PathTree<Path>>();

  constructor(readonly rank: number) {}

  obtain(segment: Segment): PathTree<Path> {
    const kind = kindOf(segment);
    const text = segment.kind === 'static' ? segment.text : segment.kind === 'param' ? segment.constraint?.source : '';
    const key = `${kind} ${text ?? ''}`;
    let branch = this.#next.get(key);
    if (branch === undefined) this.#next.set(key, (branch = new PathTree(PRECEDENCE.indexOf(kind))));
    return branch;
  }

  *paths(): Iterable<Path> {
    if (this.path !== null) yield this.path;
    for (const branch of [...this.#next.values()].sort((a, b) => a.rank - b.rank)) yield* branch.paths();
  }
}
