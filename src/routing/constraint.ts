/* Compiles the regular expression in `:name(regex)` to what the router tests and what the route's pattern shows. */

import { assertLinear } from './ambiguity.js';
import { parseRegex } from './regex-syntax.js';
import {
  complement,
  printRegex,
  referencedGroups,
  type CharactersNode,
  type CharRange,
  type RegexNode,
} from './regex-tree.js';

/** A checked constraint of one path segment. */
export interface Constraint {
  /** As written between the parentheses. */
  readonly source: string;
  readonly ast: RegexNode;
  /** Tests a whole percent-decoded segment, which must not be empty. */
  readonly regexp: RegExp;
  /** How many capturing groups `pattern` has inside its own. */
  readonly groups: number;
  /**
   * The constraint as one group of a route's anchored pattern; it never matches a slash, and never nothing.
   *
   * @param group the number that this group has in the whole pattern; the first is 1
   */
  pattern(group: number): string; // "\d+" → "(\d+)"; "(.)-\1" → "(([^/])-\2)" for group 1
}

/**
 * Compiles `source`; equal sources give equal results, so one may be kept for all.
 *
 * @throws {TypeError} when the syntax is not understood, no segment can match, or matching one could take more than
 * linear time
 *
 * @internal
 */
export function compileConstraint(source: string): Constraint {
  if (source === '') throw new TypeError('empty constraint "()"; remove it, or write what the segment has to match');
  const ast = parseRegex(source);
  const { nullable, matchesText } = assertLinear(ast, source);
  if (!matchesText)
    throw new TypeError(
      `constraint "${source}" matches no segment, since a segment has at least one character; let it match one`,
    );
  const kept = referencedGroups(ast);
  const prefix = nullable ? '(?=[^/])' : '';
  // A "|" at the top would leave the prefix to its first alternative.
  const [open, close] = nullable && ast.type === 'alternation' ? ['(?:', ')'] : ['', ''];
  const embed = (group: number): string => `(${prefix}${open}${embedNode(ast, source, kept, group)}${close})`;
  const pattern = embed(1);
  return {
    source,
    ast,
    regexp: new RegExp(`^(?:${source})$`, 's'),
    groups: kept.length,
    pattern: kept.length === 0 ? () => pattern : embed,
  };
}

const SLASH = 0x2f;

/** Prints a tree so that it means, between slashes, what it means for a segment of its own. */
function embedNode(node: RegexNode, source: string, kept: readonly number[], group: number): string {
  const print = (part: RegexNode): string => embedNode(part, source, kept, group);
  switch (node.type) {
    case 'sequence':
      return node.items.reduce((text, item, i) => {
        const next = print(item);
        // A digit would become part of the backreference's number.
        return node.items[i - 1]?.type === 'backreference' && /^\d/.test(next) ? `${text}(?:)${next}` : text + next;
      }, '');
    case 'group':
      return `${kept.includes(node.capture) ? '(' : '(?:'}${print(node.body)})`;
    case 'assertion':
      if (node.raw === '^') return '(?<![^/])';
      return node.raw === '$' ? '(?![^/])' : node.raw;
    case 'backreference':
      return `\\${group + 1 + kept.indexOf(node.group)}`;
    case 'characters':
      return embedCharacters(node, source);
    default:
      return printRegex(node, print);
  }
}

function embedCharacters({ raw, ranges, negated, index }: CharactersNode, source: string): string {
  if (ranges.some(([low, high]) => low <= SLASH && SLASH <= high) === negated) return raw;
  if (negated) {
    if (raw === '.') return '[^/]';
    if (raw.startsWith('\\')) return `[^/${raw.toLowerCase()}]`;
    // "[^-x]" must not become a range.
    return `[^/${raw[2] === '-' ? '\\' : ''}${raw.slice(2)}`;
  }
  if (ranges.some(([low, high]) => low === SLASH && high === SLASH)) {
    throw new TypeError(
      `"/" at index ${index} of constraint "${source}" never matches, since a constraint is about one segment; write several segments, or a wildcard`,
    );
  }
  const outside: CharRange[] = [...complement(ranges), [SLASH, SLASH]];
  const inside = complement(outside);
  return inside.at(-1)?.[1] === 0xffff ? `[^${printRanges(outside)}]` : `[${printRanges(inside)}]`;
}

function printRanges(ranges: readonly CharRange[]): string {
  return ranges.map(([low, high]) => (low === high ? printUnit(low) : `${printUnit(low)}-${printUnit(high)}`)).join('');
}

function printUnit(unit: number): string {
  const char = String.fromCharCode(unit);
  return /[!-~]/.test(char) && !'[\\]^-'.includes(char) ? char : `\\u${unit.toString(16).padStart(4, '0')}`;
}
