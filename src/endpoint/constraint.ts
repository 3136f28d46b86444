/* Compiles the regular expression of `:name(regex)` into the test of a segment and the group of the route's pattern. */

import { assertLinear } from './ambiguity.js';
import { parseRegex, type CharactersNode, type RegexNode } from './regex-syntax.js';

/** A checked constraint of one path segment. */
export interface Constraint {
  /** Tests a whole percent-decoded segment, which must not be empty. */
  readonly regexp: RegExp;
  /** The constraint as one group of the route's pattern; it matches neither a slash nor the empty text. */
  readonly pattern: string; // "\d+" → "(\d+)"; "(.)-a" → "((?:[^/])-a)"
}

/**
 * Compiles `source`; equal sources have equal results, so a router keeps one for all its routes.
 *
 * @throws {TypeError} if a constraint may not have this syntax, no segment can match, or matching could take more than
 * linear time
 * @internal
 */
export function compileConstraint(source: string): Constraint {
  if (source === '') throw new TypeError('empty constraint "()"; remove it, or write what the segment has to match');
  const tree = parseRegex(source);
  const { nullable, matchesText } = assertLinear(tree, source);
  if (!matchesText)
    throw new TypeError(
      `constraint "${source}" matches no segment, since a segment has at least one character; let it match one`,
    );
  const embedded = embed(tree, source);
  // A "|" at the top would leave the lookahead to its first alternative.
  const text = !nullable ? embedded : `(?=[^/])${tree.type === 'alternation' ? `(?:${embedded})` : embedded}`;
  return { regexp: new RegExp(`^(?:${source})$`, 's'), pattern: `(${text})` };
}

/** Prints a tree so that it means the same inside a path: without groups that capture and without a slash. */
function embed(node: RegexNode, source: string): string {
  if (node.type === 'characters') return embedCharacters(node, source);
  if (node.type === 'group') return `(?:${embed(node.body, source)})`;
  if (node.type === 'repeat') return embed(node.body, source) + node.quantifier;
  return node.items.map((item) => embed(item, source)).join(node.type === 'alternation' ? '|' : '');
}

const SLASH = 0x2f;

function embedCharacters({ text, units, index }: CharactersNode, source: string): string {
  if (!units.has(SLASH)) return text;
  if (text === '.') return '[^/]';
  // "[^-x]" must not become a range.
  if (text.startsWith('[^')) return `[^/${text[2] === '-' ? '\\' : ''}${text.slice(2)}`;
  if (/^\\[DWS]$/.test(text)) return `[^/${text.toLowerCase()}]`;
  if (/\/|\\x2f|\\u002f/i.test(text))
    throw new TypeError(
      `"/" at index ${index} of constraint "${source}" never matches, since a constraint is about one segment; write several segments, or a wildcard`,
    );
  return `(?:(?!/)${text})`;
}
