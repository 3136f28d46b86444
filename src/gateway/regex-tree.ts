/*
 * The tree of a regular expression: its nodes, its text, and what can be asked of it.
 */

/** UTF-16 units from the first to the second, both included. */
export type CharRange = readonly [number, number];

/** One character out of a set: a literal, an escape, a class, or the dot, which here matches line ends too. */
export interface CharactersNode {
  readonly type: 'characters';
  readonly raw: string;
  readonly index: number;
  /** As written: in that order, perhaps overlapping. */
  readonly ranges: readonly CharRange[];
  /** Matches what is outside of `ranges`. */
  readonly negated: boolean;
}

/** A body repeated; `max` may be infinite. */
export interface RepeatNode {
  readonly type: 'repeat';
  readonly body: RegexNode;
  readonly min: number;
  readonly max: number;
  /** As in `{2,}?`. */
  readonly raw: string;
  readonly index: number;
}

/** A parsed regular expression or a part of one. Indexes count from the start of the source. */
export type RegexNode =
  | { readonly type: 'alternation' | 'sequence'; readonly items: readonly RegexNode[] }
  /** `capture` is the number of the group, 0 for `(?:`; `open` is what it starts with. */
  | { readonly type: 'group'; readonly open: string; readonly capture: number; readonly body: RegexNode }
  | { readonly type: 'look'; readonly open: string; readonly behind: boolean; readonly body: RegexNode }
  | { readonly type: 'assertion'; readonly raw: string }
  | { readonly type: 'backreference'; readonly raw: string; readonly group: number }
  | CharactersNode
  | RepeatNode;

/**
 * Text of a node; `parseRegex` gives the same node back for it.
 *
 * @param print gives the text of the nodes right below it
 *
 * @internal
 */
export function printRegex(node: RegexNode, print: (part: RegexNode) => string = printRegex): string {
  const parts = partsOf(node).map((part) => print(part));
  switch (node.type) {
    case 'alternation':
      return parts.join('|');
    case 'sequence':
      return parts.join('');
    case 'group':
    case 'look':
      return `${node.open}${parts[0]})`;
    default:
      return parts.join('') + node.raw;
  }
}

/** The units that a node reads; none for one that is no character. @internal */
export function rangesOf(node: RegexNode): readonly CharRange[] {
  if (node.type !== 'characters') return [];
  return node.negated ? complement(node.ranges) : node.ranges;
}

/** Sorted, disjoint ranges of what is in none of `ranges`. @internal */
export function complement(ranges: readonly CharRange[]): CharRange[] {
  const gaps: CharRange[] = [];
  let next = 0;
  for (const [low, high] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (low > next) gaps.push([next, low - 1]);
    next = Math.max(next, high + 1);
  }
  if (next <= 0xffff) gaps.push([next, 0xffff]);
  return gaps;
}

/** The only unit of a node, or -1. @internal */
export function unitOf(node: RegexNode | undefined): number {
  if (node?.type !== 'characters' || node.negated || node.ranges.length !== 1) return -1;
  const [low, high] = node.ranges[0] ?? [-1, -2];
  return low === high ? low : -1;
}

/** A constraint matches whole segments, so `^` before each alternative and `$` after it say nothing. @internal */
export function trimAnchors(node: RegexNode): RegexNode {
  if (node.type === 'alternation') return { ...node, items: node.items.map(trimAnchors) };
  if (node.type !== 'sequence') return node;
  const isAnchor = (item: RegexNode | undefined, raw: string): boolean =>
    item?.type === 'assertion' && item.raw === raw;
  return {
    ...node,
    items: node.items.slice(isAnchor(node.items[0], '^') ? 1 : 0, isAnchor(node.items.at(-1), '$') ? -1 : undefined),
  };
}

/**
 * Whether a node may match the empty text. Lookarounds and assertions read nothing, and a backreference may refer to
 * nothing, so all of them count as such.
 *
 * @internal
 */
export function isNullable(node: RegexNode): boolean {
  if (node.type === 'alternation') return node.items.some(isNullable);
  if (node.type === 'sequence') return node.items.every(isNullable);
  if (node.type === 'group') return isNullable(node.body);
  if (node.type === 'repeat') return node.min === 0 || isNullable(node.body);
  return node.type !== 'characters';
}

/** The nodes right below a node. @internal */
export function partsOf(node: RegexNode): readonly RegexNode[] {
  return 'items' in node ? node.items : 'body' in node ? [node.body] : [];
}

/** Whether a node has a lookaround somewhere. @internal */
export function hasLook(node: RegexNode): boolean {
  return node.type === 'look' || partsOf(node).some(hasLook);
}

/** Numbers of the groups that backreferences in a node refer to, in ascending order. @internal */
export function referencedGroups(node: RegexNode): number[] {
  const groups = node.type === 'backreference' ? [node.group] : partsOf(node).flatMap(referencedGroups);
  return [...new Set(groups)].sort((a, b) => a - b);
}

/** How many characters a node always takes; NaN when that varies. @internal */
export function fixedWidth(node: RegexNode): number {
  const widths = partsOf(node).map(fixedWidth);
  const [first = 0] = widths;
  switch (node.type) {
    case 'characters':
      return 1;
    case 'group':
    case 'sequence':
      return widths.reduce((sum, width) => sum + width, 0);
    case 'repeat':
      return node.min === node.max ? first * node.min : NaN;
    case 'alternation':
      return widths.every((width) => width === first) ? first : NaN;
    case 'backreference':
      return NaN;
    default:
      return 0;
  }
}
