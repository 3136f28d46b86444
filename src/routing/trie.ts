/*
 * Finds routes by path and method: a radix tree over the static text of paths, whose nodes also hold the parameters and
 * wildcards that follow them. Nodes part where texts do: `users` and `usage` have a node for `us` in common, and below
 * it a node for each of `ers` and `age`. A look-up reads the path once, and makes neither strings nor hashes of its
 * parts.
 *
 * All nodes are cells of one array of integers, and a node is known by the number of its first cell. A look-up among
 * ten thousand paths costs the memory that it touches, which objects would spread far and wide.
 *
 * Routes are numbers from 0. Paths, registered or searched for, are in one spelling: decoded, but for `%25` and `%2F`.
 */

import type { Constraint } from '../endpoint/constraint.js';
import type { Segment } from '../endpoint/pattern.js';

/** A constrained parameter as the next segment, and the node after it. */
interface Choice {
  readonly constraint: Constraint;
  readonly node: number;
}

// The cells of a node; 0 means nothing in all of them.

/** The GET route that ends here, plus 1: most requests look for one. */
const GET = 0;
/** Index of the other routes that end here, each plus 1. */
const OTHERS = 1;
/** Cells of what may follow that is not static. */
const DYNAMIC = 2;
/** Table of the nodes below, each at the masked code of its first character. */
const CHILDREN = 3;
/** The low bits of a code that give each of these nodes a place of its own in the table. */
const MASK = 4;
/** How long the text is that leads here from the node above. */
const LENGTH = 5;
/** The codes of its characters. */
const TEXT = 6;

// The cells of what is not static.

/** Index of the constrained parameters. */
const CHOICES = 0;
/** The node after a plain parameter. */
const PARAM = 1;
/** The node after a wildcard. */
const WILDCARD = 2;
const DYNAMIC_SIZE = 3;

/** The node of the empty text: paths without their first slash. The cells before it stand for "no node". */
const ROOT: number = TEXT;

/** A method that no route has: the search visits every matching route. */
const ANY = '';

/** Paths with the routes that each has for its methods. */
export class Trie {
  /** Replaced by a larger array when it is full. */
  #cells: Int32Array = new Int32Array(128);
  #size = ROOT + TEXT;
  readonly #others: Map<string, number>[] = [new Map()];
  readonly #choices: Choice[][] = [[]];
  /** Where the parameters of the route found last start and end, alternately. */
  readonly #bounds: number[] = [];
  #methods = new Set<string>();

  /** Adds a path unless it is there; returns its end, which stays the same for good. */
  insert(segments: readonly Segment[]): number {
    let node = ROOT;
    let text = '';
    let slash = '';
    for (const segment of segments) {
      text += slash;
      slash = '/';
      if (segment.kind === 'static') text += segment.text.replaceAll('%', '%25');
      else {
        node = this.#obtainDynamic(this.#obtain(node, text), segment);
        text = '';
      }
    }
    return this.#obtain(node, text);
  }

  /** The route that the end of a path has for a method, or -1. */
  routeAt(end: number, method: string): number {
    return (method === 'GET' ? this.#read(end + GET) : (this.#othersOf(end).get(method) ?? 0)) - 1;
  }

  /** Gives the end of a path a route for a method. */
  claim(end: number, method: string, route: number): void {
    if (method === 'GET') this.#cells[end + GET] = route + 1;
    else {
      if (this.#read(end + OTHERS) === 0) this.#cells[end + OTHERS] = this.#others.push(new Map()) - 1;
      this.#othersOf(end).set(method, route + 1);
    }
  }

  /** The methods of all routes that match, found in one search. */
  methods(path: string): Set<string> {
    this.#methods = new Set();
    if (path.startsWith('/')) this.search(path, ANY);
    return this.#methods;
  }

  /** One parameter of the route found last, by its index, decoded; `path` is the one that was searched for. */
  param(path: string, index: number): string {
    const text = path.slice(this.#bounds[2 * index], this.#bounds[2 * index + 1]);
    return text.includes('%') ? decodeURIComponent(text) : text;
  }

  /**
   * Finds the best route of those that match and have the method; HEAD is answered by GET, too. Depth first, in the
   * order of precedence: static text, constrained parameters in the order of their registration, a plain parameter, a
   * wildcard. It calls itself only where there are other ways to come back to.
   *
   * @param node where to continue
   * @param at where in the path that is
   * @param params how many there are so far
   * @returns the route plus 1, or 0
   */
  search(path: string, method: string, node: number = ROOT, at: number = 1, params: number = 0): number {
    const cells = this.#cells;
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
          const found = this.search(path, method, child, next, params);
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
            const found = this.search(path, method, param, end, params + 1);
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
    const segment = this.param(path, params);
    for (const { constraint, node } of this.#choices[choices] as Choice[]) {
      if (!constraint.regexp.test(segment)) continue;
      const found = this.search(path, method, node, end, params + 1);
      if (found !== 0) return found;
    }
    return 0;
  }

  #accept(end: number, method: string): number {
    const get = this.#cells[end + GET] as number;
    if (method === 'GET') return get;
    const others = this.#othersOf(end);
    if (method !== ANY) return others.get(method) ?? (method === 'HEAD' ? get : 0);
    if (get !== 0) this.#methods.add('GET');
    for (const other of others.keys()) this.#methods.add(other);
    return 0;
  }

  #othersOf(end: number): Map<string, number> {
    return this.#others[this.#read(end + OTHERS)] as Map<string, number>;
  }

  #read(cell: number): number {
    return this.#cells[cell] as number;
  }

  /** The node after a segment that is not static. */
  #obtainDynamic(node: number, segment: Exclude<Segment, { kind: 'static' }>): number {
    const dynamic = this.#obtainCells(node + DYNAMIC, DYNAMIC_SIZE);
    if (segment.kind === 'wildcard') return this.#obtainCells(dynamic + WILDCARD, TEXT);
    const { constraint } = segment;
    if (constraint === null) return this.#obtainCells(dynamic + PARAM, TEXT);
    if (this.#read(dynamic + CHOICES) === 0) this.#cells[dynamic + CHOICES] = this.#choices.push([]) - 1;
    const choices = this.#choices[this.#read(dynamic + CHOICES)] as Choice[];
    let choice = choices.find((other) => other.constraint === constraint);
    if (choice === undefined) choices.push((choice = { constraint, node: this.#allocate(TEXT) }));
    return choice.node;
  }

  /** The cells that a cell points to, such as a node after a parameter; made if it points to none. */
  #obtainCells(cell: number, size: number): number {
    const start = this.#read(cell) || this.#allocate(size);
    this.#cells[cell] = start;
    return start;
  }

  #allocate(size: number): number {
    const start = this.#size;
    this.#size += size;
    if (this.#size > this.#cells.length) {
      const cells = new Int32Array(2 * this.#size);
      cells.set(this.#cells);
      this.#cells = cells;
    }
    return start;
  }

  /** The node that a text leads to from another, made if there is none. */
  #obtain(start: number, text: string): number {
    let node = start;
    for (let at = 0; at < text.length;) {
      const cells = this.#cells;
      const child = cells[cellOf(cells, node, text.charCodeAt(at))] as number;
      const length = cells[child + LENGTH] as number;
      const most = Math.min(length, text.length - at);
      let shared = 0;
      while (shared < most && cells[child + TEXT + shared] === text.charCodeAt(at + shared)) shared += 1;
      if (shared === 0) return this.#attach(node, this.#create(text.slice(at)));
      node = shared === length ? child : this.#split(node, child, text.slice(at, at + shared));
      at += shared;
    }
    return node;
  }

  #create(text: string): number {
    const node = this.#allocate(TEXT + text.length);
    this.#cells[node + LENGTH] = text.length;
    for (let i = 0; i < text.length; i += 1) this.#cells[node + TEXT + i] = text.charCodeAt(i);
    return node;
  }

  /** Puts a node above a child, for the text with which that child's own begins. */
  #split(parent: number, child: number, text: string): number {
    const node = this.#create(text);
    const cells = this.#cells;
    const own = child + TEXT;
    cells[cellOf(cells, parent, cells[own] as number)] = node;
    cells.copyWithin(own, own + text.length, own + (cells[child + LENGTH] as number));
    cells[child + LENGTH] = (cells[child + LENGTH] as number) - text.length;
    this.#attach(node, child);
    return node;
  }

  /** Puts a node below another, which gets a larger table if that place is taken. @returns the node */
  #attach(parent: number, node: number): number {
    const code = this.#read(node + TEXT);
    const oldTable = this.#read(parent + CHILDREN);
    const oldMask = this.#read(parent + MASK);
    const other = this.#read(cellOf(this.#cells, parent, code));
    if (oldTable === 0 || other !== 0) {
      let mask = oldMask;
      while (other !== 0 && ((this.#read(other + TEXT) ^ code) & mask) === 0) mask = 2 * mask + 1;
      const table = this.#allocate(mask + 1);
      const cells = this.#cells;
      for (let place = oldTable; place <= oldTable + oldMask; place += 1) {
        const child = cells[place] as number;
        if (child !== 0) cells[table + ((cells[child + TEXT] as number) & mask)] = child;
      }
      cells[parent + CHILDREN] = table;
      cells[parent + MASK] = mask;
    }
    this.#cells[cellOf(this.#cells, parent, code)] = node;
    return node;
  }
}

/** Where a node has the child whose text begins with a code, if it has one. */
function cellOf(cells: Int32Array, node: number, code: number): number {
  return (cells[node + CHILDREN] as number) + (code & (cells[node + MASK] as number));
}
