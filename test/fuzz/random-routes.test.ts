/** Every path is routed as the anchored patterns and the rules of precedence say. */

import { expect, test } from 'vitest';
import { Router } from 'postern';
import { createRandom } from '../support/random.js';

const STATIC = ['a', 'b', 'ab', 'a.b', '(', ''];
const DYNAMIC = [':x', ':n(\\d+)', ':w([ab]+)', ':any(.+)', ':alt(a|7)'];
const SEGMENTS = ['a', 'b', 'ab', 'a.b', 'axb', '(', '7', '77', 'a7', '-', '.', 'ü', ' ', '?', '\n'];

/** A path's segments without the names of its parameters. */
function shape(path: string): string[] {
  return path.slice(1).split('/').map((segment) => segment.replace(/^([:*])\w+/, '$1'));
}

/**
 * 0 static, 1 to 2 constrained, 2 plain, 3 wildcard; compared segment by segment from the left.
 * Constraints at one place rank in order of their registration.
 */
function rank(path: string, registered: readonly string[]): number[] {
  const segments = shape(path);
  return segments.map((segment, index) => {
    if (segment.startsWith('*')) return 3;
    if (!segment.startsWith(':')) return 0;
    if (!segment.includes('(')) return 2;
    const before = segments.slice(0, index).join('/');
    const rivals = registered.map(shape).filter((other) => other.slice(0, index).join('/') === before)
      .map((other) => other[index] ?? '');
    return 1 + rivals.indexOf(segment) / rivals.length;
  });
}

test('the trie finds what the patterns match, best first', () => {
  const seed = Number(process.env['SEED'] ?? 20_261_121);
  const random = createRandom(seed);
  for (let round = 0; round < 400; round += 1) {
    const router = new Router<string>();
    const paths: string[] = [];
    for (let count = random.int(8) + 1; count > 0; count -= 1) {
      const length = random.int(3) + 1;
      const segments = Array.from({ length }, (_, index) => {
        const text = random.int(2) === 0 ? random.pick(STATIC) : random.pick(DYNAMIC).replace(/^:(\w+)/, `:$1${index}`);
        return text === '' && index < length - 1 ? 'a' : text;
      });
      const path = `/${segments.join('/')}${random.int(5) === 0 && segments.at(-1) !== '' ? '/*rest' : ''}`;
      try {
        router.add('GET', path, path);
        paths.push(path);
      } catch (error) {
        expect(String(error), `seed ${seed}`).toMatch(/registered already/);
      }
    }
    const table = router.routes.map(({ path, pattern }) => ({ path, regexp: new RegExp(pattern, 's') }));
    for (let tries = 0; tries < 40; tries += 1) {
      const decoded = `/${Array.from({ length: random.int(4) + 1 }, () => (random.int(12) === 0 ? '' : random.pick(SEGMENTS))).join('/')}`;
      const target = decoded.split('/').map((segment) => encodeURIComponent(segment)).join('/');
      const matching = table.filter(({ regexp }) => regexp.test(decoded)).map(({ path }) => path);
      const found = router.find('GET', target)?.handler ?? null;
      const context = `seed ${seed}: ${JSON.stringify({ paths, decoded, matching, found })}`;
      expect(found === null, context).toBe(matching.length === 0);
      if (found === null) continue;
      expect(matching, context).toContain(found);
      for (const other of matching) {
        const [mine, theirs] = [rank(found, paths), rank(other, paths)];
        const differing = mine.findIndex((value, index) => value !== theirs[index]);
        if (differing !== -1) expect(mine[differing], context).toBeLessThan(theirs[differing] ?? 4);
      }
      expect(router.allowedMethods(target), context).toEqual(['GET', 'HEAD', 'OPTIONS']);
    }
  }
});

test('a path built from parameters gives them back', () => {
  const seed = Number(process.env['SEED'] ?? 7);
  const random = createRandom(seed);
  const router = new Router<string>();
  router.add('GET', '/u/:id/p/:post/*rest', 'x');
  const alphabet = ['a', '/', '%', '?', '#', ' ', 'ü', '漢', '😀', '\\', '+', '&', '\u0000', '.', '"'];
  const text = (): string => Array.from({ length: random.int(6) + 1 }, () => random.pick(alphabet)).join('');
  for (let round = 0; round < 2000; round += 1) {
    const params = { id: text(), post: text(), rest: text() };
    const target = `/u/${encodeURIComponent(params.id)}/p/${encodeURIComponent(params.post)}/${encodeURIComponent(params.rest)}`;
    expect({ ...router.find('GET', target)?.params }, `seed ${seed}`).toEqual(params);
  }
});
