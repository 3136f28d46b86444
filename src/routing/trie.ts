/*
 * Finds routes by path and method: a radix tree over the static text of paths, whose nodes also hold the parameters and
 * wildcards that follow them. A look-up reads the path once, and makes neither strings nor hashes of its parts.
 *
 * Routes are numbers from 0. Paths, registered or searched for, are in one spelling: decoded, but for `%25` and `%2F`.
 */

import type { Constraint } from '../endpoint/constraint.js';
import type { Segment } from '../endpoint/pattern.js';
import { CHILDREN, LENGTH, MASK, RadixTree, ROOT, TEXT } from './radix-tree.js';

/** A constrained parameter as the next segment. */
interface Choice {
  readonly constraint: Constraint;
  /** The node after it. */
  readonly node: number;
}

// The cells of a node that are not the tree's.

/** The GET route that ends here, plus 1: most requests look for one. */
const GET = 0;
/** Index of the other routes that end here, each plus 1. */
const OTHERS = 1;
/** Cells of what may follow that is not static. */
const DYNAMIC = 2;
/** As many as a node has that no text leads to. */
const NODE_SIZE: number = TEXT;

// The cells of what is not static.

/** Index of the constrained parameters. */
const CHOICES = 0;
/** The node after a plain parameter. */
const PARAM = 1;
/** The node after a wildcard. */
const WILDCARD = 2;
const DYNAMIC_SIZE = 3;

/** Paths with the routes that each has for its methods. */
export class Trie {
  /** From {@link ROOT} on, paths are without their first slash. */
  readonly #tree = new RadixTree();
  readonly #others: Map<string, number>[] = [new Map()];
  readonly #choices: Choice[][] = [[]];
  /** Where the parameters of the route found last start and end, alternately. */
  readonly #bounds: number[] = [];

  /** Adds a path unless it is there; returns its end. */
  insert(segments: readonly Segment[]): number {
    let node = ROOT;
    let text = '';
    let slash = '';
    for (const segment of segments) {
      text += slash;
      slash = '/';
      if (segment.kind === 'static') text += segment.text.replaceAll('%', '%25');
      else {
        node = this.#obtainDynamic(node, text, segment);
        text = '';
      }
    }
    return this.#tree.obtain(node, text);
  }

  /** The route that the end of a path has for a method, or -1. */
  get(end: number, method: string): number {
    return (method === 'GET' ? this.#tree.read(end + GET) : (this.#othersOf(end).get(method) ?? 0)) - 1;
  }

  /** Gives the end of a path a route for a method. */
  set(end: number, method: string, route: number): void {
    const tree = this.#tree;
    if (method === 'GET') tree.write(end + GET, route + 1);
    else {
      if (tree.read(end + OTHERS) === 0) tree.write(end + OTHERS, this.#others.push(new Map()) - 1);
      this.#othersOf(end).set(method, route + 1);
    }
  }

  /** The best route of those that match and have the method, or -1; HEAD is answered by GET, too. */
  search(path: string, method: string): number {
    return path.startsWith('/') ? this.#search(path, method, ROOT, 1, 0) - 1 : -1;
  }

  /** One parameter of the route found last, by its index; `path` is the one that was searched for. */
  param(path: string, index: number): string {
    return path.slice(this.#bounds[2 * index], this.#bounds[2 * index + 1]);
  }

  /**
   * Depth first, in the order of precedence: static text, constrained parameters in the order of their registration, a
   * plain parameter, a wildcard. It calls itself only where there are other ways to come back to.
   *
   * @param node where to continue
   * @param at where in the path that is
   * @param params how many there are so far
   * @returns the route plus 1, or 0
   */
  #search(path: string, method: string, node: number, at: number, params: number): number {
    const { cells } = this.#tree;
    while (at < path.length) {
      const dynamic = cells[node + DYNAMIC] as number;
      const code = path.charCodeAt(at);
      const child = cells[(cells[node + CHILDREN] as number) + (code & (cells[node + MASK] as number))] as number;
      if (child !== 0 && cells[child + TEXT] === code) {
        const end = at + (cells[child + LENGTH] as number);
        const text = child + TEXT - at;
        let next = at + 1;
        // V8 gives up its fast code for a function that has once asked for a character beyond the end.
        if (end <= path.length) while (next < end && path.charCodeAt(next) === cells[text + next]) next += 1;
        if (next === end) {
          if (dynamic === 0) {
            node = child;
            at = next;
            continue;
          }
          const found = this.#search(path, method, child, next, params);
          if (found !== 0) return found;
        }
      }
      if (dynamic === 0) return 0;

      const choices = cells[dynamic + CHOICES] as number;
      const param = cells[dynamic + PARAM] as number;
      const wildcard = cells[dynamic + WILDCARD] as number;
      if ((choices | param) !== 0) {
        const slash = path.indexOf('/', at);
        const end = slash === -1 ? path.length : slash;
        if (end > at) {
          this.#bounds[2 * params] = at;
          this.#bounds[2 * params + 1] = end;
          if (choices !== 0) {
            const found = this.#searchChoices(path, method, choices, end, params);
            if (found !== 0) return found;
          }
          if (param !== 0) {
            if (wildcard === 0) {
              node = param;
              at = end;
              params += 1;
              continue;
            }
            const found = this.#search(path, method, param, end, params + 1);
            if (found !== 0) return found;
          }
        }
      }
      if (wildcard === 0) return 0;
      this.#bounds[2 * params] = at;
      this.#bounds[2 * params + 1] = path.length;
      return this.#accept(wildcard, method);
    }
    return this.#accept(node, method);
  }

  #searchChoices(path: string, method: string, choices: number, end: number, params: number): number {
    const segment = toPlain(this.param(path, params));
    for (const { constraint, node } of this.#choices[choices] as Choice[]) {
      if (!constraint.regexp.test(segment)) continue;
      const found = this.#search(path, method, node, end, params + 1);
      if (found !== 0) return found;
    }
    return 0;
  }

  #accept(end: number, method: string): number {
    const get = this.#tree.read(end + GET);
    if (method === 'GET') return get;
    return this.#othersOf(end).get(method) ?? (method === 'HEAD' ? get : 0);
  }

  #othersOf(end: number): Map<string, number> {
    return this.#others[this.#tree.read(end + OTHERS)] as Map<string, number>;
  }

  /** The node after a segment that is not static, which follows a text that is static. */
  #obtainDynamic(start: number, text: string, segment: Exclude<Segment, { kind: 'static' }>): number {
    const tree = this.#tree;
    const dynamic = tree.obtainCells(tree.obtain(start, text) + DYNAMIC, DYNAMIC_SIZE);
    if (segment.kind === 'wildcard') return tree.obtainCells(dynamic + WILDCARD, NODE_SIZE);
    const { constraint } = segment;
    if (constraint === null) return tree.obtainCells(dynamic + PARAM, NODE_SIZE);
    if (tree.read(dynamic + CHOICES) === 0) tree.write(dynamic + CHOICES, this.#choices.push([]) - 1);
    const choices = this.#choices[tree.read(dynamic + CHOICES)] as Choice[];
    let choice = choices.find((other) => other.constraint === constraint);
    if (choice === undefined) choices.push((choice = { constraint, node: tree.allocate(NODE_SIZE) }));
    return choice.node;
  }
}

/** Decodes a part of a path completely, once a slash in it can do no harm. */
export function toPlain(text: string): string {
  return text.includes('%') ? decodeURIComponent(text) : text;
}
