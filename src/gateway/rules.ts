/*
 * Writes the public surface as rules for gateways: each says which methods of the paths of one pattern are public and
 * which are private. For each method, the first rule that matches a path and speaks of the method decides, as the
 * router prefers its routes.
 */

import { endOf, type Dialect } from './constraint-pattern.js';
import { compilePathPattern } from './path-pattern.js';
import type { PlannedService } from './plan.js';
import { describeRoute, type Surface } from './surface.js';
import { escape } from './text.js';

/** What is said of the paths of one pattern. */
export interface PathRule {
  /** Of its routes, as registered. */
  readonly path: string;
  /** Lines for the reader: the routes that the rule is for. */
  readonly notes: readonly Note[];
  /** The path as sent, when it is but one. */
  readonly exact: string | null;
  /** What a path as sent has to match. */
  readonly pattern: string;
  /** An expression that matches the same paths and more, without groups. */
  readonly shape: string;
  /** Methods, sorted; HEAD is among them only where it has rules of its own. */
  readonly opens: readonly string[];
  readonly closes: readonly string[];
}

/** A line about a route, or about all methods. */
export interface Note {
  readonly method: string | null;
  readonly text: string;
}

/** A reason to refuse a path as it was sent, before any rule. */
export interface Guard {
  readonly note: string;
  /** Found anywhere in the path. */
  readonly pattern: string;
}

/**
 * The rules of a service, best first, on the paths that the gateway gets; no two of one pattern speak of one method.
 *
 * @throws {GatewayError} for a route that the dialect can't express
 */
export function createRules(service: PlannedService, dialect: Dialect): PathRule[] {
  const said = new Set<string>();
  return [...createInnerRules(service, dialect), ...createOwnRules(service, dialect)].flatMap((rule) => {
    const unsaid = (methods: readonly string[]): string[] =>
      methods.filter((method) => said.size < said.add(`${method} ${rule.pattern}`).size);
    const [opens, closes] = [unsaid(rule.opens), unsaid(rule.closes)];
    return opens.length + closes.length > 0 ? [{ ...rule, opens, closes }] : [];
  });
}

/** What is below a longer prefix is another service's. */
function createInnerRules({ prefix, inner, surface }: PlannedService, dialect: Dialect): PathRule[] {
  return inner.map((other) => {
    const pattern = `^${escape(other)}(?:/|${endOf(dialect)})`;
    const notes = [{ method: null, text: `what is below ${other} is another service's` }];
    return { path: prefix, notes, exact: null, pattern, shape: pattern, opens: [], closes: ruledMethods(surface) };
  });
}

function createOwnRules({ prefix, surface }: PlannedService, dialect: Dialect): PathRule[] {
  const below = (pattern: string): string => `^${escape(prefix)}${pattern.slice(1)}`;
  return surface.leaves.flatMap((leaf): PathRule[] => {
    const { path, routes, opens, closes } = leaf;
    const pattern = compilePathPattern(leaf, dialect);
    if (pattern === null) return [];
    const notes = routes
      .filter(({ method }) => opens.has(method) || closes.has(method))
      .map((route) => ({ method: route.method, text: describeRoute(route) }));
    const ruled = ruledMethods(surface);
    const rule = {
      path,
      notes,
      exact: pattern.exact === null ? null : prefix + pattern.exact,
      pattern: below(pattern.within),
      shape: below(pattern.shape),
      opens: ruled.filter((method) => opens.has(method)),
      closes: ruled.filter((method) => closes.has(method)),
    };
    if (pattern.within === pattern.around) return [rule];
    const refused = { ...rule, pattern: below(pattern.around), opens: [], closes: [...rule.opens, ...rule.closes] };
    return opens.size === 0 ? [refused] : [rule, { ...refused, notes: [DOUBTFUL] }];
  });
}

/** Methods that rules speak of, OPTIONS last. */
export function ruledMethods({ methods, ownOptions }: Surface): string[] {
  return ownOptions ? [...methods, 'OPTIONS'] : [...methods];
}

/**
 * Paths that two programs could read differently. What is left has, of each route, the spellings that the rules know.
 */
export const GUARDS: readonly Guard[] = [
  { note: 'characters that have to be escaped', pattern: '[^!-~]|[#\\x5C]' },
  { note: 'empty segments and dot segments', pattern: '//|/\\.\\.?/|/\\.\\.?$' },
  { note: 'malformed escapes', pattern: '%[^0-9A-Fa-f]|%.[^0-9A-Fa-f]|%.?$' },
  {
    note: 'escapes of letters, digits and -._, and of slash, backslash and NUL',
    pattern: '%2[D-Fd-f]|%3[0-9]|%[46][1-9A-Fa-f]|%[57][0-9Aa]|%5[CcFf]|%00',
  },
  {
    note: 'escapes that are no UTF-8',
    pattern: [
      `%(?:[Cc][01]|[Ff][5-9A-Fa-f]|[Ee]0%[89]|[Ee][Dd]%[ABab]|[Ff]0%8|[Ff]4%[9ABab])`,
      // A lead byte with too few bytes after it, ...
      `%[C-Fc-f].(?:$|[^%]|%[^89ABab])`,
      `%[EFef].%..(?:$|[^%]|%[^89ABab])`,
      `%[Ff].%..%..(?:$|[^%]|%[^89ABab])`,
      // ... or a byte that follows none, or too many.
      `(?:^..?|[^%]..|%[0-7].)%[89ABab]`,
      `%[CDcd].%..%[89ABab]`,
      `%[Ee].%..%..%[89ABab]`,
      `%[Ff].%..%..%..%[89ABab]`,
    ].join('|'),
  },
];

const DOUBTFUL: Note = {
  method: null,
  text: 'and else private: not every spelling of this path can be told apart here',
};
