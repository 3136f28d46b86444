/*
 * Compiles the path of a route, as its author wrote it, into segments, and these into one anchored pattern.
 *
 * ```
 * "/users/:id"    → ^/users/([^/]+)$
 * "/n/:n(\\d+)"   → ^/n/(\d+)$
 * "/files/*rest"  → ^/files/(.+)$
 * ```
 *
 * A pattern matches the percent-decoded path, and needs the `s` flag of regular expressions.
 */

import { show } from '../base/options-check.js';
import { compileConstraint, type Constraint } from './constraint.js';

/** One segment of a compiled path. @internal */
export type Segment =
  | { readonly kind: 'static'; readonly text: string }
  | { readonly kind: 'param'; readonly name: string; readonly constraint: Constraint | null }
  | { readonly kind: 'wildcard'; readonly name: string };

type Dynamic = Exclude<Segment, { kind: 'static' }>;

/** Parameters of a path literal: `ParamsOf<'/users/:id'>` is `{ readonly id: string }`. */
export type ParamsOf<Path extends string> = string extends Path
  ? Readonly<Record<string, string>>
  : { readonly [Name in NamesOf<Path>]: string };

/**
 * Compiles one path into segments, in order; the path `/` is one empty static segment, and so is a last slash.
 *
 * @param constraints constraints compiled before, by their text; added to
 * @throws {TypeError} when the path is invalid; the message has the position and the remedy
 * @internal
 */
export function compilePath(path: string, constraints: Map<string, Constraint> = new Map()): readonly Segment[] {
  assertPath(path);
  const segments: Segment[] = [];
  /** Where the segment at hand ends. */
  let end = 0;
  while (end < path.length) {
    const start = end + 1;
    const slash = path.indexOf('/', start);
    end = slash === -1 ? path.length : slash;
    const sign = path[start];
    if (sign !== ':' && sign !== '*') {
      const text = path.slice(start, end);
      if (text === '' && end < path.length) fail(start, 'empty segment', 'remove one slash');
      if (text === '.' || text === '..') fail(start, `dot segment "${text}"`, 'remove it: clients resolve it');
      if (/[^\w.~-]/.test(text)) assertNotForeign(text, start);
      segments.push({ kind: 'static', text });
      continue;
    }
    const segment = sign === ':' ? parseParam(start) : parseWildcard(start);
    const { name } = segment;
    if (segments.some((other) => other.kind !== 'static' && other.name === name))
      fail(start, `duplicate parameter "${name}"`, 'rename one');
    if (segment.kind === 'wildcard' && end < path.length)
      fail(start, `wildcard "${path.slice(start, end)}" before the end`, 'move it to the last segment');
    segments.push(segment);
  }
  return segments;

  /** Refuses other routers' syntax, which no request has as text. `/Products(1)`, `/c++` and `/a{b}` stay text. */
  function assertNotForeign(text: string, start: number): void {
    for (const [pattern, what, remedy] of FORMS) {
      const found = pattern.exec(end === path.length ? text : `${text}/`);
      if (found === null) continue;
      const [part, name = ''] = found;
      fail(start + found.index, `${what} "${part.replace(/\/$/, '')}"`, remedy.replaceAll('$1', () => name));
    }
  }

  function parseWildcard(start: number): Dynamic {
    const name = path.slice(start + 1, end);
    if (!/^(?:[A-Za-z_]\w*)?$/.test(name)) fail(start, `invalid wildcard name "${name}"`, 'use letters, digits and _');
    return { kind: 'wildcard', name: name || '*' };
  }

  function parseParam(start: number): Dynamic {
    const text = path.slice(start + 1, end);
    const [name] = /^[A-Za-z_]\w*/.exec(text) ?? [];
    if (name === undefined) fail(start, 'parameter without a name', 'write :name, of letters, digits and _');
    if (name === text) return { kind: 'param', name, constraint: null };
    const open = start + 1 + name.length;
    const rest = text.slice(name.length);
    if (!rest.startsWith('(')) fail(open, `"${rest}" after parameter "${name}"`, remedyAfter(name, rest));
    const close = closingParenthesis(path, open);
    if (close === -1) fail(open, 'constraint without an end', 'close the parenthesis');
    // There may be slashes in it.
    end = close + 1;
    if (end < path.length && path[end] !== '/')
      fail(end, `text after the constraint of "${name}"`, 'move it into the constraint');
    const source = path.slice(open + 1, close);
    let constraint = constraints.get(source);
    if (constraint === undefined) constraints.set(source, (constraint = compileConstraint(source)));
    return { kind: 'param', name, constraint };
  }

  function fail(index: number, what: string, remedy: string): never {
    throw new TypeError(`${what} at index ${index} in "${path}"; ${remedy}`);
  }
}

/** @throws {TypeError} for a value that is not a string, and for a path without its first slash @internal */
export function assertPath(path: unknown): asserts path is string {
  if (typeof path !== 'string')
    throw new TypeError(
      `path ${path instanceof RegExp ? String(path) : show(path)} is not a string; give one such as "/users/:id" or "/n/:n(\\\\d+)"`,
    );
  if (/\p{Surrogate}/u.test(path)) throw new TypeError(`path ${JSON.stringify(path)} has half a character; remove it`);
  if (!path.startsWith('/')) throw new TypeError(`path ${JSON.stringify(path)} does not start with "/"; add it`);
}

/** The pattern of a path: anchored at both ends, with one group for each parameter (SPEC 2.7). @internal */
export function formatPattern(segments: readonly Segment[]): string {
  let pattern = '^';
  for (const segment of segments) {
    if (segment.kind === 'static') pattern += `/${segment.text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}`;
    else if (segment.kind === 'wildcard') pattern += '/(.+)';
    else pattern += `/${segment.constraint?.pattern ?? '([^/]+)'}`;
  }
  return `${pattern}$`;
}

/** A path that begins with a variable may have any names. */
type NamesOf<Path extends string> = Path extends `/${infer Rest}` ? SegmentNames<Rest, never> : string;

type SegmentNames<Text extends string, Names> = Text extends `:${infer Param}/${infer Rest}`
  ? SegmentNames<Rest, Names | NameOf<Param>>
  : Text extends `:${infer Param}`
    ? Names | NameOf<Param>
    : Text extends `*${infer Name}`
      ? Names | (Name extends '' ? '*' : Name)
      : Text extends `${string}/${infer Rest}`
        ? SegmentNames<Rest, Names>
        : Names;

/** A constraint may have a slash, in `[^/]+`; the rest of it counts as static text. */
type NameOf<Param extends string> = Param extends `${infer Name}(${string}` ? Name : Param;

/** How to write a modifier that other routers allow after a parameter. */
function remedyAfter(name: string, text: string): string {
  if (text === '?') return 'register two paths, one with the parameter and one without it';
  if (text === '*' || text === '+') return `write *${name} as the last segment for the rest of the path`;
  const regex = /^(?:\{(.+)\}|<(.+)>)$/.exec(text);
  if (regex !== null) return `write :${name}(${regex[1] ?? regex[2] ?? ''})`;
  return 'a parameter is a whole segment; use a constraint, :name(regex), for a part of one';
}

/** Index of the parenthesis that closes the one at `open`, outside of classes and escapes; -1 if it is missing. */
function closingParenthesis(path: string, open: number): number {
  let depth = 0;
  for (const { 0: token, index } of path.slice(open).matchAll(/\\.|\[(?:\\.|[^\\\]])*|[()]/gs)) {
    if (token === '(') depth += 1;
    if (token === ')' && --depth === 0) return open + index;
  }
  return -1;
}

/** Syntax of other routers, and marks of URLs; `$1` in a remedy is the first group of the form. */
const FORMS: readonly (readonly [form: RegExp, what: string, remedy: string])[] = [
  [/%[0-9A-Fa-f]{2}/, 'percent-encoded', 'write the decoded character: paths are matched decoded'],
  [/^\{(?=\*|\w+(?:\*|:path)\})\*?([A-Za-z_]\w*)[^}]*\}\/?$/, 'parameter in braces', 'write *$1 as the last segment'],
  [/^\{([A-Za-z_]\w*)(?::[^}]*)?[?+]?\}\??\/?$/, 'parameter in braces', 'write :$1, or :$1(regex)'],
  [/(\([^)]*[\\[\]+*?|^$][^)]*\))/, 'expression without a parameter', 'give it a name: :name$1'],
  [/\([^)]*[\\[\]+*?|^$][^)]*$/, 'expression without a parameter', 'give it a name: :name(regex)'],
  [/\{\/|[\w)}\]]\?(?=\/?$)/, 'optional part', 'register two paths, one with the part and one without it'],
  [
    /(?<=.)\*(?=\/?$)/,
    'wildcard at the end of a segment,',
    'write :name(regex) for a part of a segment, or *name as the last segment for the rest of the path',
  ],
  [/[?#]/, 'character', 'end the path before it: a path has no query and no fragment'],
];
