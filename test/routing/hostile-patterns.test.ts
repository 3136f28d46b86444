/** Advisories about paths and regular expressions that take long, or grow. */

import { describe, expect, test } from 'vitest';
import { Router } from 'postern';
import { assertGrowth, timed } from '../support/growth.js';
import { createApp } from '../support/serve.js';

/** What makes a matcher that tries readings try all of them: `n` characters or so, and an end that does not fit. */
const HOSTILE: readonly ((n: number) => string)[] = [
  (n) => `/${'-'.repeat(n)}a`,
  (n) => `/${'a'.repeat(n)}!`,
  (n) => `/${'a-'.repeat(n / 2)}!`,
  (n) => `/${'a.'.repeat(n / 2)}/`,
  (n) => `/a${'%'.repeat(n)}`,
  (n) => `/${'%2D'.repeat(n / 3)}a`,
  (n) => `/${'%2F'.repeat(n / 3)}`,
  (n) => '/'.repeat(n),
  (n) => `${'/a'.repeat(n / 2)}/`,
  (n) => `/x/${'0'.repeat(n)}x`,
];
const LENGTH = 16_000;

/** Asks for every hostile path with and without its route's method, and matches the pattern that the router reports. */
async function assertMatchesLinearly(path: string): Promise<void> {
  const router = new Router<string>();
  const { pattern } = router.add('GET', path, path);
  const regexp = new RegExp(pattern, 's');
  for (const make of HOSTILE) {
    const targets = new Map([LENGTH, 4 * LENGTH].map((n) => [n, make(n)]));
    const targetOf = (n: number): string => targets.get(n) ?? '';
    const what = `${path} with ${targetOf(LENGTH).slice(0, 12)}`;
    await assertGrowth(`find of ${what}`, (n) => timed(() => attempt(() => router.find('GET', targetOf(n)))), LENGTH);
    await assertGrowth(
      `methods of ${what}`,
      (n) => timed(() => attempt(() => router.allowedMethods(targetOf(n)))),
      LENGTH,
    );
    await assertGrowth(`pattern of ${what}`, (n) => timed(() => regexp.test(targetOf(n))), LENGTH);
  }
}

/** A malformed escape throws; here only the time counts. */
function attempt(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
  }
}

function isRefused(path: string): boolean {
  try {
    new Router<string>().add('GET', path, path);
    return false;
  } catch (error) {
    expect(error, path).toBeInstanceOf(TypeError);
    return true;
  }
}

const SEPARATORS: readonly (readonly [text: string, escaped: string])[] = [
  ['-', '-'],
  ['.', '\\.'],
  ['_', '_'],
  ['~', '~'],
  [':', ':'],
];
const parameters = SEPARATORS.flatMap(([text, escaped]) => [2, 3, 4].map((count) => ({ text, escaped, count })));

describe('several parameters in a segment (CVE-2024-45296, CVE-2024-52798, CVE-2026-4867, CVE-2024-45813)', () => {
  test.for(parameters)(
    '$count parameters between "$text" are no segment, and the expression that others make of them is refused',
    ({ text, escaped, count }) => {
      const names = Array.from({ length: count }, (_, i) => `:p${i}`);
      expect(isRefused(`/${names.join(text)}`)).toBe(true);
      expect(isRefused(`/x/${names.join(text)}/y`)).toBe(true);
      expect(isRefused(`/:x(${names.map(() => '([^/]+?)').join(escaped)})`)).toBe(true);
    },
  );

  test.for(parameters)(
    '$count parts between "$text", each without it, match in linear time',
    async ({ text, escaped, count }) => {
      await assertMatchesLinearly(`/:x(${Array.from({ length: count }, () => `[^${text}]+`).join(escaped)})`);
    },
  );

  const misplaced = ['/*foo-*bar-:baz', '/x/*a-:b/*c/y', '/*a/*b', '/*a/x', '/:a*b', '/*a:b', '/x-/*a-b'];
  test.for(misplaced)('%s, a wildcard that is not the last segment, is refused (CVE-2026-4923)', (path) => {
    expect(isRefused(path)).toBe(true);
  });

  test.for([
    '/:a', '/:a/:b/:c/:d', '/*rest', '/:a/:b/*rest', '/x/:n(\\d+)', '/:file(.+\\.png)',
    '/:slug([a-z0-9]+(?:-[a-z0-9]+)*)', '/:x([^-]+(?:-[^-]+){0,3})',
    '/:x([^-]+(?:-[^-]+)?)/*rest',
  ])('%s matches in linear time', async (path) => {
    await assertMatchesLinearly(path);
  });
});

/** Twenty parts that may be left out, in the spellings of other routers, and as a constraint. */
const OPTIONAL: readonly { what: string; path: (n: number) => string; refused: boolean }[] = [
  { what: 'groups in braces', path: (n) => `/a${'{-b}'.repeat(n)}`, refused: false },
  { what: 'segments in braces', path: (n) => `/a${'{/b}'.repeat(n)}`, refused: true },
  { what: 'groups in parentheses', path: (n) => `/a${'(b)?'.repeat(n)}`, refused: true },
  {
    what: 'parameters in braces',
    path: (n) => `/a${Array.from({ length: n }, (_, i) => `{/:p${i}}`).join('')}`,
    refused: true,
  },
  { what: 'parameters with a question mark', path: (n) => Array.from({ length: n }, (_, i) => `/:p${i}?`).join(''),
    refused: true },
  {
    what: 'parts of one constraint that differ',
    path: (n) => `/:x(${Array.from({ length: n }, (_, i) => `(?:\\u00${(0x41 + i).toString(16)}-\\d+)?`).join('')})`,
    refused: false,
  },
  { what: 'parts of one constraint that are alike', path: (n) => `/:x(${'(?:-[a-z]+)?'.repeat(n)})`, refused: true },
  { what: 'parts of one constraint inside each other', path: (n) => `/:x(${'(?:-\\d'.repeat(n)}${')?'.repeat(n)})`,
    refused: false },
];

describe('optional parts (CVE-2026-4926)', () => {
  // Four times as many parts would take 2^15 times as long if each combination were written out.
  test.for(OPTIONAL)(
    'twenty $what are refused or registered as one pattern, never as their combinations',
    async ({ path, refused }) => {
      expect(isRefused(path(20))).toBe(refused);
      await assertGrowth(path(1), (n) => timed(() => isRefused(path(n))), 5, 500);
      if (refused) return;
      const router = new Router<string>();
      const [ten, twenty] = [router.add('GET', path(10), 'x'), router.add('GET', path(20), 'x')];
      expect(router.routes).toHaveLength(2);
      expect(twenty.pattern.length).toBeLessThan(2.5 * ten.pattern.length);
    },
  );
});

/** Expressions of published reports, of answers that are copied everywhere, and of everyday use. */
const CONSTRAINTS: readonly (readonly [source: string, outcome: 'refused' | 'linear'])[] = [
  ['(([a-zA-Z0-9])+)+', 'refused'],
  ['(([a-z])+.)+[A-Z]([a-z])+', 'refused'],
  ['([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))',
    'refused'],
  ['(.+)+@(.+)+', 'refused'],
  ['[^@]+@[^@]+\\.[^@]+', 'refused'],
  ['(?:[a-z]+-?)*', 'refused'],
  ['(?:\\s*,\\s*)+', 'refused'],
  ['(\\d+\\.?)+', 'refused'],
  ['(?:ab|a|b)+', 'refused'],
  ['(.*)-(.*)', 'refused'],
  ['[^@]+@[^@.]+(?:\\.[^@.]+)+', 'linear'],
  ['\\s*\\w+\\s*', 'linear'],
  ['-?\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?', 'linear'],
  ['(?:[A-Za-z0-9+]{4})*(?:[A-Za-z0-9+]{2}==|[A-Za-z0-9+]{3}=)?', 'linear'],
  ['(?:0|[1-9]\\d*)\\.(?:0|[1-9]\\d*)\\.(?:0|[1-9]\\d*)(?:-[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?', 'linear'],
  ['(?:(?:[a-z0-9]|[a-z0-9][a-z0-9-]*[a-z0-9])\\.)*(?:[a-z0-9]|[a-z0-9][a-z0-9-]*[a-z0-9])', 'refused'],
  ['[a-z0-9]+(?:-+[a-z0-9]+)*(?:\\.[a-z0-9]+(?:-+[a-z0-9]+)*)*', 'linear'],
];

describe('constraints that backtrack', () => {
  test.for(CONSTRAINTS)('%s is %s', async ([source, outcome]) => {
    const path: string = `/:x(${source})`;
    if (outcome === 'linear') return assertMatchesLinearly(path);
    const app = createApp();
    expect(() => app.get(path, () => 'x')).toThrow(/^constraint ".*" can read the same text in too many ways/);
    expect((await app.request('/aaaa')).status).toBe(404);
  });
});
