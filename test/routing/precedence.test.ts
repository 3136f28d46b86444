/** Precedence, as whoever reads a table has it, is the order in which the router searches. */

import { expect, test } from 'vitest';
import { compilePath, formatPattern } from '../../src/endpoint/pattern.js';
import { sortByPrecedence } from '../../src/routing/precedence.js';
import { Router } from '../../src/routing/router.js';
import { createRandom } from '../support/random.js';

function sorted(paths: readonly string[]): string[] {
  const constraints = new Map();
  return sortByPrecedence(paths.map((path) => ({ path, segments: compilePath(path, constraints).segments }))).map(({ path }) => path);
}

test('static beats constrained beats plain beats wildcard, segment by segment from the left', () => {
  expect(sorted(['/*rest', '/:a/b', '/:a', '/:a(\\d+)/*rest', '/:a(\\w+)', '/:a(\\d+)', '/a/:b', '/a/b'])).toEqual(['/a/b', '/a/:b', '/:a(\\d+)', '/:a(\\d+)/*rest', '/:a(\\w+)', '/:a', '/:a/b', '/*rest']);
});

test('the router finds the first in this order of the routes that match', () => {
  const seed = Number(process.env['SEED'] ?? 20_261_123);
  const random = createRandom(seed);
  const segments = ['a', 'b', 'ab', ':x', ':x', ':d(\\d+)', ':w([ab]+)', ':any(.+)', ':alt(a|7)'];
  for (let round = 0; round < 300; round += 1) {
    const router = new Router<string>();
    for (let count = 2 + random.int(8); count > 0; count -= 1) {
      const parts = Array.from({ length: 1 + random.int(3) }, (_, i) => random.pick(segments).replace(/^:(\w+)/, `:$1${i}`));
      const path = `/${parts.join('/')}${random.int(5) === 0 ? '/*rest' : ''}`;
      if (!router.routes.some((route) => route.pattern === formatPattern(compilePath(path, new Map()).segments))) router.add('GET', path, path);
    }
    const order = sorted(router.routes.map(({ path }) => path));
    const patternOf = new Map(router.routes.map(({ path, pattern }) => [path, new RegExp(pattern, 's')]));
    for (let tries = 0; tries < 30; tries += 1) {
      const target = `/${Array.from({ length: 1 + random.int(4) }, () => random.pick(['a', 'b', 'ab', '7', '77', 'x'])).join('/')}`;
      const expected = order.find((path) => patternOf.get(path)?.test(target));
      expect(router.find('GET', target)?.handler, `seed ${seed}: ${target} of ${order.join(' ')}`).toBe(expected);
    }
  }
});
