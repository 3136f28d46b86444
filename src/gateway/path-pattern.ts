/*
 * Translates the pattern of a route, which speaks of the decoded path, into a regular expression on the path as sent;
 * in two versions where a constraint comes in two (see {@link translateConstraint}).
 */

import { ANY_SEGMENT, certain, endOf, translateConstraint, type Dialect } from './constraint-pattern.js';
import { GatewayError } from './error.js';
import { spellText, Unspellable, type Spelling } from './spelling.js';
import type { Leaf } from './surface.js';
import { escape } from './text.js';

/** A route's pattern on the path as sent. */
export interface PathPattern {
  /** The one spelling of the path, when there is but one; then the other two say the same. */
  readonly exact: string | null;
  /** Matches nothing that the route does not match. */
  readonly within: string;
  /** Matches everything that the route matches; equal to `within` unless a segment can be doubtful. */
  readonly around: string;
  /** As `around`, with every constraint taken for none: without alternation or groups. */
  readonly shape: string;
}

/** Whether an engine that matches on a small stack may run out of it: a group is repeated ten times or more. */
export function repeatsGroup(pattern: string): boolean {
  return /\)(?:[*+]|\{(?:\d+,)?(?:\d{2,})?\})/.test(pattern);
}

/**
 * Translates the path of a route.
 *
 * @returns null when no request that gets through can have the path: a static segment is `..` or has a backslash
 * @throws {GatewayError} when that is public, and when a constraint has what the dialect lacks
 */
export function compilePathPattern({ path, segments, opens }: Leaf, dialect: Dialect): PathPattern | null {
  let exact = true;
  let [within, around, shape] = ['^', '^', '^'];
  const counts = { groups: 0, size: 0 };
  for (const segment of segments) {
    let piece = certain(segment.kind === 'param' ? ANY_SEGMENT : '.+');
    if (segment.kind === 'static') {
      const text = spellStatic(segment.text, dialect.spelling);
      if (text === null) {
        if (opens.size === 0) return null;
        throw new GatewayError(
          path,
          'a segment of it can\'t be sent in one reading: ".", "..", backslashes and control characters are resolved or refused on the way; rename it',
        );
      }
      piece = certain(text);
      exact &&= text === escape(segment.text);
    } else {
      exact = false;
      if (segment.kind === 'param' && segment.constraint !== null)
        piece = translateConstraint(segment.constraint, path, dialect, counts);
    }
    within += `/${piece.within}`;
    around += `/${piece.around}`;
    shape += `/${segment.kind === 'param' ? ANY_SEGMENT : piece.around}`;
  }
  const end = endOf(dialect);
  return {
    exact: exact ? path : null,
    within: within + end,
    around: around + end,
    shape: shape + end,
  };
}

function spellStatic(text: string, spelling: Spelling): string | null {
  try {
    return spellText(text, spelling);
  } catch (error) {
    if (error instanceof Unspellable) return null;
    throw error;
  }
}
