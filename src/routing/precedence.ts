/*
 * Which of two routes is the better one for a path that both match: segment by segment from the left, what stands
 * there as it is written beats a constrained parameter beats a plain parameter beats a wildcard. Of two constraints at
 * one place, the one that was registered first is tried first.
 *
 * The trie searches in this order (its test compares the two); whoever reads a table from outside has it here.
 */

import type { Segment } from '../endpoint/pattern.js';

/**
 * Paths, best first.
 *
 * @param paths in order of registration, no two of them the same segments, but all of them the same before `at`
 */
export function sortByPrecedence<Path extends { readonly segments: readonly Segment[] }>(
  paths: Iterable<Path>,
  at = 0,
): Path[] {
  const ended: Path[] = [];
  const branches = new Map<string, Path[]>();
  for (const path of paths) {
    const segment = path.segments[at];
    if (segment === undefined) ended.push(path);
    else {
      const key = keyOf(segment);
      const branch = branches.get(key);
      if (branch === undefined) branches.set(key, [path]);
      else branch.push(path);
    }
  }
  const sorted = [...branches].sort(([a], [b]) => a.charCodeAt(0) - b.charCodeAt(0));
  return [...ended, ...sorted.flatMap(([, branch]) => sortByPrecedence(branch, at + 1))];
}

/** Equal for equal segments; the first character is the lower, the better the kind. */
function keyOf(segment: Segment): string {
  if (segment.kind === 'static') return `0${segment.text}`;
  if (segment.kind === 'wildcard') return '3';
  return segment.constraint === null ? '2' : `1${segment.constraint.source}`;
}
