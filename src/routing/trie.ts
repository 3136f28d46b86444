/**
 * Finds routes by path and method, in a radix trie.
 *
 * Nodes part where paths do: `/v1/users` and `/v1/teams` have a node for `/v1/` in common, with one below it for each of
 * `users` and `teams`. A look-up reads the path once and makes neither strings nor hashes of its parts. All nodes are cells
 * of one array of integers: a table of ten thousand routes is as fast as the memory that a look-up touches is small.
 *
 * Routes are numbers from 0. Paths, registered or searched for, are in one spelling: decoded, but for `%25` and `%2F`.
 */

import type { Constraint } from './constraint.js';
import type { Segment } from './pattern.js';
import { GET, OTHERS, DYNAMIC, CHILDREN, MASK, LENGTH, TEXT, CHOICES, PARAM, WILDCARD, DYNAMIC_SIZE, ROOT } from './trie-cells.js';

/** A constrained parameter as the next segment. */
interface Choice {
  readonly constraint: Constraint;
  /** The node behind it. */
  readonly node: number;
}

/** Stands for a method that no route has, to go through all that match. */
const ANY = '';

/** Paths with the routes that each has for its methods. */
export class Trie {
  #cells = new Int32Array(128);
  #size = ROOT + TEXT;
  readonly #others: Map<string, number>[] = [new Map()];
  readonly #choices: Choice[][] = [[]];
  /** Where the parameters of the route found last start and end, by turns. */
  readonly #bounds: number[] = [];
  #methods: string[] = [];

  /** Adds a path unless it is there; gives its end. */
  insert(segments: readonly Segment[]): number {
    let node = ROOT;
    let text = '';
    let slash = '';
    for (const segment of segments) {
      text += slash;
      slash = '/';
      if (segment.kind === 'static') text += segment.text;
      else {
        node = this.#obtainDynamic(this.#obtainStatic(node, text), segment);
        text = '';
      }
    }
    return this.#obtainStatic(node, text);
  }

  /** The route that the end of a path has for a method, or -1. */
  get(end: number, method: string): number {
    return (method === 'GET' ? this.#read(end + GET) : (this.#othersOf(end).get(method) ?? 0)) - 1;
  }

  /** Gives the end of a path a route for a method. */
  set(end: number, method: string, route: number): void {
    if (method === 'GET') this.#write(end + GET, route + 1);
    else {
      if (this.#read(end + OTHERS) === 0) this.#write(end + OTHERS, this.#others.push(new Map()) - 1);
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

  /** The methods of all routes that match, in no order; some may be there more than once. */
  methods(path: string): readonly string[] {
    this.#methods = [];
    this.search(path, ANY);
    return this.#methods;
  }

  /**
   * Depth first, best kind of segment first; it calls itself only where there are other ways to come back to.
   *
   * @param from where in the path the node is
   * @param index of the next parameter
   */
  #search(path: string, method: string, start: number, from: number, index: number): number {
    const cells = this.#cells;
    let node = start;
    let at = from;
    let params = index;
    while (at < path.length) {
      const dynamic = cells[node + DYNAMIC] as number;
      const code = path.charCodeAt(at);
      const child = cells[(cells[node + CHILDREN] as number) + (code & (cells[node + MASK] as number))] as number;
      if (child !== 0 && cells[child + TEXT] === code) {
        const end = at + (cells[child + LENGTH] as number);
        const text = child + TEXT - at;
        let next = at + 1;
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
    const get = this.#read(end + GET);
    if (method === 'GET') return get;
    const others = this.#othersOf(end);
    if (method === ANY) {
      if (get !== 0) this.#methods.push('GET');
      this.#methods.push(...others.keys());
      return 0;
    }
    return others.get(method) ?? (method === 'HEAD' ? get : 0);
  }

  #obtainDynamic(node: number, segment: Exclude<Segment, { kind: 'static' }>): number {
    if (this.#read(node + DYNAMIC) === 0) this.#write(node + DYNAMIC, this.#allocate(DYNAMIC_SIZE));
    const dynamic = this.#read(node + DYNAMIC);
    if (segment.kind === 'wildcard') return this.#obtainNode(dynamic + WILDCARD);
    const { constraint } = segment;
    if (constraint === null) return this.#obtainNode(dynamic + PARAM);
    if (this.#read(dynamic + CHOICES) === 0) this.#write(dynamic + CHOICES, this.#choices.push([]) - 1);
    const choices = this.#choices[this.#read(dynamic + CHOICES)] as Choice[];
    let choice = choices.find((other) => other.constraint === constraint);
    if (choice === undefined) choices.push((choice = { constraint, node: this.#createNode(0) }));
    return choice.node;
  }

  #obtainNode(cell: number): number {
    if (this.#read(cell) === 0) this.#write(cell, this.#createNode(0));
    return this.#read(cell);
  }

  /** Goes down along a text, and adds what is not there. */
  #obtainStatic(start: number, plain: string): number {
    const text = plain.includes('%') ? plain.replaceAll('%', '%25') : plain;
    let node = start;
    for (let at = 0; at < text.length; ) {
      const child = this.#read(this.#placeOf(node, text.charCodeAt(at)));
      const shared = this.#countShared(child, text, at);
      if (shared === 0) return this.#append(node, text.slice(at));
      node = shared === this.#read(child + LENGTH) ? child : this.#split(node, child, shared);
      at += shared;
    }
    return node;
  }

  /** How many characters a text has in common with the one that leads to a node. */
  #countShared(node: number, text: string, at: number): number {
    const length = this.#read(node + LENGTH);
    let shared = 0;
    while (shared < length && this.#read(node + TEXT + shared) === text.charCodeAt(at + shared)) shared += 1;
    return shared;
  }

  #append(parent: number, text: string): number {
    const node = this.#createNode(text.length);
    for (let i = 0; i < text.length; i += 1) this.#write(node + TEXT + i, text.charCodeAt(i));
    this.#link(parent, node);
    return node;
  }

  /** Puts a node on the way to a child, which keeps its number. */
  #split(parent: number, child: number, shared: number): number {
    const node = this.#createNode(shared);
    const text = child + TEXT;
    this.#cells.copyWithin(node + TEXT, text, text + shared);
    this.#link(parent, node);
    const length = this.#read(child + LENGTH);
    this.#cells.copyWithin(text, text + shared, text + length);
    this.#write(child + LENGTH, length - shared);
    this.#link(node, child);
    return node;
  }

  #createNode(length: number): number {
    const node = this.#allocate(TEXT + length);
    this.#write(node + LENGTH, length);
    return node;
  }

  /** Puts a child in the place of the one with the same first character, or in a place of its own. */
  #link(node: number, child: number): void {
    const code = this.#read(child + TEXT);
    const other = this.#read(this.#placeOf(node, code));
    const otherCode = other === 0 ? code : this.#read(other + TEXT);
    if (this.#read(node + CHILDREN) === 0 || otherCode !== code) this.#widen(node, otherCode ^ code);
    this.#write(this.#placeOf(node, code), child);
  }

  /** Moves the children to a table that has two places for codes which differ in the given bits. */
  #widen(node: number, difference: number): void {
    const oldTable = this.#read(node + CHILDREN);
    const oldMask = this.#read(node + MASK);
    let mask = oldMask;
    while (difference !== 0 && (difference & mask) === 0) mask = 2 * mask + 1;
    const table = this.#allocate(mask + 1);
    for (let place = oldTable; place <= oldTable + oldMask; place += 1) {
      const child = this.#read(place);
      if (child !== 0) this.#write(table + (this.#read(child + TEXT) & mask), child);
    }
    this.#write(node + CHILDREN, table);
    this.#write(node + MASK, mask);
  }

  #placeOf(node: number, code: number): number {
    return this.#read(node + CHILDREN) + (code & this.#read(node + MASK));
  }

  #othersOf(end: number): Map<string, number> {
    return this.#others[this.#read(end + OTHERS)] as Map<string, number>;
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

  #read(cell: number): number {
    return this.#cells[cell] as number;
  }

  #write(cell: number, value: number): void {
    this.#cells[cell] = value;
  }
}

/** What a part of a path means, once a slash in it can do no harm. */
export function toPlain(text: string): string {
  return text.includes('%') ? decodeURIComponent(text) : text;
}
