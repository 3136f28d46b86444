/*
 * Finds routes by path and method: a tree of segments, whose nodes lead on by static text, by parameters and by
 * wildcards.
 *
 * Paths, registered or searched for, are in one spelling: decoded, but for `%25` and `%2F`.
 */

import type { Constraint } from '../endpoint/constraint.js';
import type { Segment } from '../endpoint/pattern.js';

/** A place in the paths; most have few of the members. */
class Node<Route> {
  /** The routes of the path that ends here, by method. */
  routes: Map<string, Route> | undefined;
  /** The nodes after static segments, by their text. */
  children: Map<string, Node<Route>> | undefined;
  /** The nodes after a constrained parameter, in order of registration. */
  choices: Map<Constraint, Node<Route>> | undefined;
  /** The node after a plain parameter. */
  param: Node<Route> | undefined;
  /** The node after a wildcard. */
  wildcard: Node<Route> | undefined;
}

/** A method that no route has: the search visits every matching route. */
const ANY = '';

/** Paths with the routes that each has for its methods. */
export class Trie<Route> {
  /** The node of no segment: paths begin after their first slash. */
  readonly #root = new Node<Route>();
  /** Where the parameters of the route found last start and end, alternately. */
  readonly #bounds: number[] = [];
  #methods = new Set<string>();

  /** Adds the route of a path for a method. */
  add(segments: readonly Segment[], method: string, route: Route): void {
    let node = this.#root;
    for (const segment of segments) node = nodeAfter(node, segment);
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
   * @param at where the next segment begins; beyond the end of the path after the last one
   * @param params how many there are so far
   */
  #search(path: string, method: string, node: Node<Route>, at: number, params: number): Route | undefined {
    const { routes, children, choices, param, wildcard } = node;
    if (at > path.length) {
      if (method === ANY) for (const each of routes?.keys() ?? []) this.#methods.add(each);
      return routes?.get(method) ?? (method === 'HEAD' ? routes?.get('GET') : undefined);
    }
    const slash = path.indexOf('/', at);
    const end = slash === -1 ? path.length : slash;
    const child = children?.get(path.slice(at, end));
    const below = child && this.#search(path, method, child, end + 1, params);
    if (below !== undefined) return below;
    const bounds = this.#bounds;
    bounds[2 * params] = at;
    bounds[2 * params + 1] = end;
    if (end > at) {
      if (choices !== undefined) {
        const segment = this.param(path, params);
        for (const [{ regexp }, after] of choices) {
          const found = regexp.test(segment) ? this.#search(path, method, after, end + 1, params + 1) : undefined;
          if (found !== undefined) return found;
        }
      }
      const found = param && this.#search(path, method, param, end + 1, params + 1);
      if (found !== undefined) return found;
    }
    if (wildcard === undefined || at === path.length) return undefined;
    bounds[2 * params + 1] = path.length;
    return this.#search(path, method, wildcard, path.length + 1, params + 1);
  }
}

/** The node after a segment, made if there is none. */
function nodeAfter<Route>(node: Node<Route>, segment: Segment): Node<Route> {
  if (segment.kind === 'wildcard') return (node.wildcard ??= new Node());
  if (segment.kind === 'param' && segment.constraint === null) return (node.param ??= new Node());
  if (segment.kind === 'param') return nodeAt((node.choices ??= new Map()), segment.constraint);
  return nodeAt((node.children ??= new Map()), segment.text.replaceAll('%', '%25'));
}

/** The node of a key, made if there is none. */
function nodeAt<Key, Route>(nodes: Map<Key, Node<Route>>, key: Key): Node<Route> {
  const node = nodes.get(key) ?? new Node<Route>();
  nodes.set(key, node);
  return node;
}
