/**
 * Writes the public surface as rules for gateways that can remember something about a request: one after another, each says
 * which methods of a path are public or private, and a later rule overrules an earlier one. So the router's best is the last.
 */

import { GatewayError } from './error.js';
import { compilePathPattern, type Dialect } from './path-pattern.js';
import { SENT } from './spelling.js';
import { describeRoute, type Surface } from './surface.js';

/** What is said of the paths of one pattern. */
export interface Rule {
  /** Of its routes, as registered. */
  readonly path: string;
  /** Lines for the reader: the routes that the rule is for. */
  readonly notes: readonly string[];
  readonly test: PathTest;
  /** An expression that matches the same paths and more, without groups. */
  readonly shape: string;
  readonly opens: readonly string[];
  readonly closes: readonly string[];
}

/** A path as sent: itself, or an expression that it has to match. */
export type PathTest = { readonly exact: string } | { readonly pattern: string };

/** A reason to refuse a path as it was sent, before any rule. */
export interface Guard {
  readonly note: string;
  /** Found anywhere in the path. */
  readonly pattern: string;
}

/** nginx and HAProxy. */
export const PCRE: Omit<Dialect, 'gateway'> = { spelling: SENT, pcre: true, end: '\\z', unroll: false };
/** Caddy. */
export const RE2: Omit<Dialect, 'gateway'> = { spelling: SENT, pcre: false, end: '$', unroll: false };

/**
 * The rules of a surface, best last.
 *
 * @throws {GatewayError} for a route that the dialect can't express
 */
export function createRules(surface: Surface, dialect: Dialect): Rule[] {
  return surface.leaves.toReversed().flatMap(({ path, segments, routes, opens, closes }): Rule[] => {
    const test = compilePathPattern(path, segments, dialect);
    if (test === null) {
      if (opens.size > 0) throw new GatewayError(path, 'a segment of it can\'t be sent in one reading: gateways and clients resolve ".", "..", backslashes and NUL; rename it');
      return [];
    }
    const notes = routes.filter(({ method }) => opens.has(method) || closes.has(method)).map(describeRoute);
    const flags = (methods: ReadonlySet<string>): string[] => [...methods].filter((method) => surface.methods.has(method) || method === 'OPTIONS').sort();
    const [open, closed] = [flags(opens), flags(closes)];
    const rule = { path, notes, shape: test.shape, opens: open, closes: closed };
    if (test.exact !== null) return [{ ...rule, test: { exact: test.exact } }];
    if (test.within === test.around) return [{ ...rule, test: { pattern: test.within } }];
    const refused = { ...rule, notes: [...notes, DOUBTFUL], test: { pattern: test.around }, opens: [], closes: [...open, ...closed].sort() };
    return open.length === 0 ? [refused] : [refused, { ...rule, test: { pattern: test.within } }];
  });
}

/** Paths that two programs could read differently. What is left has, of each route, the spellings that the rules know. */
export const GUARDS: readonly Guard[] = [
  { note: 'characters that have to be escaped', pattern: '[^!-~]|[#\\x5C]' },
  { note: 'empty segments and dot segments', pattern: '//|/\\.\\.?/|/\\.\\.?$' },
  { note: 'malformed escapes', pattern: '%[^0-9A-Fa-f]|%.[^0-9A-Fa-f]|%.?$' },
  { note: 'escapes of letters, digits and -._, and of slash, backslash and NUL', pattern: '%2[D-Fd-f]|%3[0-9]|%[46][1-9A-Fa-f]|%[57][0-9Aa]|%5[CcFf]|%00' },
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

/** Methods of a rule or a reply: `GET, HEAD`. */
export function methodsOf(surface: Surface, methods: readonly string[]): string[] {
  return methods.flatMap((method) => surface.methods.get(method) ?? []);
}

/** Lines at the head of a configuration. */
export function headerLines(surface: Surface, service: string): string[] {
  return [
    `Public routes of the service ${service}: ${surface.open} of ${surface.total}. Written by Postern from its route table;`,
    'change the routes and write it anew. Query parameters are checked by the service itself.',
  ];
}

const DOUBTFUL = 'private unless the next rule says otherwise: not every spelling of this path can be told apart here';
