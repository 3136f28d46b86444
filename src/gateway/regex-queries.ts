/** Questions about the tree of a constraint that its translation depends on. */

import type { RegexNode } from '../routing/regex-syntax.js';

/** The only unit of a node, or -1. */
export function unitOf(node: RegexNode | undefined): number {
  if (node?.type !== 'characters' || node.negated || node.ranges.length !== 1) return -1;
  const [low, high] = node.ranges[0] ?? [-1, -2];
  return low === high ? low : -1;
}

/** A constraint matches whole segments, so `^` before each alternative and `$` after it say nothing. */
export function trimAnchors(node: RegexNode): RegexNode {
  if (node.type === 'alternation') return { ...node, items: node.items.map(trimAnchors) };
  if (node.type !== 'sequence') return node;
  const isAnchor = (item: RegexNode | undefined, raw: string): boolean => item?.type === 'assertion' && item.raw === raw;
  return { ...node, items: node.items.slice(isAnchor(node.items[0], '^') ? 1 : 0, isAnchor(node.items.at(-1), '$') ? -1 : undefined) };
}

/** Whether a node may match nothing; assertions and backreferences count as such. */
export function isNullable(node: RegexNode): boolean {
  if (node.type === 'alternation') return node.items.some(isNullable);
  if (node.type === 'sequence') return node.items.every(isNullable);
  if (node.type === 'group') return isNullable(node.body);
  if (node.type === 'repeat') return node.min === 0 || isNullable(node.body);
  return node.type !== 'characters';
}

/** Whether a node has a lookaround somewhere. */
export function hasLook(node: RegexNode): boolean {
  if (node.type === 'look') return true;
  return 'items' in node ? node.items.some(hasLook) : 'body' in node && hasLook(node.body);
}

/** Numbers of the groups that backreferences in a node refer to. */
export function referredGroups(node: RegexNode): Set<number> {
  if (node.type === 'backreference') return new Set([node.group]);
  const parts = 'items' in node ? node.items : 'body' in node ? [node.body] : [];
  return new Set(parts.flatMap((part) => [...referredGroups(part)]));
}

/** How many characters a node always takes; null when that varies. */
export function fixedWidth(node: RegexNode): number | null {
  switch (node.type) {
    case 'characters':
      return 1;
    case 'look':
    case 'assertion':
      return 0;
    case 'group':
      return fixedWidth(node.body);
    case 'backreference':
      return null;
    case 'repeat': {
      const width = fixedWidth(node.body);
      return width === null || node.min !== node.max ? null : width * node.min;
    }
    case 'sequence':
      return node.items.map(fixedWidth).reduce((sum, width) => (sum === null || width === null ? null : sum + width), 0);
    case 'alternation': {
      const [first = 0, ...others] = node.items.map(fixedWidth);
      return others.every((width) => width === first) ? first : null;
    }
  }
}
