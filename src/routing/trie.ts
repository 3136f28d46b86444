/*
 * Finds routes by path and method: a radix tree over the static text of paths, whose nodes also hold the parameters and
 * wildcards that follow them. Nodes part where texts do: `users` and `usage` have a node for `us` in common, and below
 * it a node for each of `ers` and `age`. A look-up reads the path once, and makes no strings of its parts.
 *
 * Paths, registered or searched for, are in one spelling: decoded, but for `%25` and `%2F`.
 */

import type { Constraint } from '../endpoint/constraint.js';
import type { Segment } from '../endpoint/pattern.js';

/** A place in the paths; most have few of the members. */
class Node<Route> {
  /** The routes of the path that ends here, by method. */
  routes: Map<string, Route> | undefined;
  /** The nodes below for static text, by the code of its first character. */
  children: Map<number, Node<Route>> | undefined;
  /** The nodes after a constrained parameter, in order of registration. */
  choices: Map<Constraint, Node<Route>> | undefined;
  /** The node after a plain parameter. */
  param: Node<Route> | undefined;
  /** The node after a wildcard. */
  wildcard: Node<Route> | undefined;

  /** @param text the static text that leads here from the node above */
  constructor(public text: string) {}
}

/** A method that no route has: the search visits every matching route. */
const ANY = '';

/** Paths with the routes that each has for its methods. */
export class Trie<Route> {
  /** The node of the empty text: paths without their first slash. */
  readonly #root = new Node<Route>('');
  /** Where the parameters of the route found last start and end, alternately. */
  readonly #bounds: number[] = [];
  #methods = new Set<string>();

  /** Adds the route of a path for a method. */
  add(segments: readonly Segment[], method: string, route: Route): void {
    let node = this.#root;
    let text = '';
    let slash = '';
    for (const segment of segments) {
      text += slash;
      slash = '/';
      if (segment.kind === 'static') text += segment.text.replaceAll('%', '%25');
      else {
        node = nodeAfter(nodeOf(node, text), segment);
        text = '';
      }
    }
    node = nodeOf(node, text);
    (node.routes ??= new Map<string, Route>()).set(method, route);
  }

  /** The methods of all routes that match, found in one search. */
  methods(path: string): Set<string> {
    this.#methods = new Set();
    this.find(path, ANY);
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
   * wildcard.
   */
  find(path: string, method: string): Route | undefined {
    return path.startsWith('/') ? this.#search(path, method, this.#root, 1, 0) : undefined;
  }

  /**
   * @param at where in the path to continue
   * @param params how many there are so far
   */
  #search(path: string, method: string, node: Node<Route>, at: number, params: number): Route | undefined {
    const { routes, choices, param, wildcard } = node;
    if (at === path.length) {
      if (method === ANY) for (const each of routes?.keys() ?? []) this.#methods.add(each);
      return routes?.get(method) ?? (method === 'HEAD' ? routes?.get('GET') : undefined);
    }
    const child = node.children?.get(path.charCodeAt(at));
    if (child !== undefined && path.startsWith(child.text, at)) {
      const found = this.#search(path, method, child, at + child.text.length, params);
      if (found !== undefined) return found;
    }
    const bounds = this.#bounds;
    bounds[2 * params] = at;
    const slash = path.indexOf('/', at);
    const end = slash === -1 ? path.length : slash;
    if (end > at) {
      bounds[2 * params + 1] = end;
      if (choices !== undefined) {
        const segment = this.param(path, params);
        for (const [{ regexp }, after] of choices) {
          const found = regexp.test(segment) ? this.#search(path, method, after, end, params + 1) : undefined;
          if (found !== undefined) return found;
        }
      }
      const found = param && this.#search(path, method, param, end, params + 1);
      if (found !== undefined) return found;
    }
    bounds[2 * params + 1] = path.length;
    return wildcard && this.#search(path, method, wildcard, path.length, params + 1);
  }
}

/** The node that a text leads to from another, made if there is none. */
function nodeOf<Route>(start: Node<Route>, text: string): Node<Route> {
  let node = start;
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at);
    const children = (node.children ??= new Map<number, Node<Route>>());
    let child = children.get(code);
    if (child === undefined) children.set(code, (child = new Node(text.slice(at))));
    let shared = 1;
    while (shared < child.text.length && child.text[shared] === text[at + shared]) shared += 1;
    node = shared === child.text.length ? child : new Node(child.text.slice(0, shared));
    if (node !== child) {
      // The child keeps the end of its text, below a node for the text that both have.
      child.text = child.text.slice(shared);
      node.children = new Map([[child.text.charCodeAt(0), child]]);
      children.set(code, node);
    }
    at += shared;
  }
  return node;
}

/** The node after a segment that is not static. */
function nodeAfter<Route>(node: Node<Route>, segment: Exclude<Segment, { kind: 'static' }>): Node<Route> {
  if (segment.kind === 'wildcard') return (node.wildcard ??= new Node(''));
  if (segment.constraint === null) return (node.param ??= new Node(''));
  node.choices ??= new Map<Constraint, Node<Route>>();
  const after = node.choices.get(segment.constraint) ?? new Node('');
  node.choices.set(segment.constraint, after);
  return after;
}
