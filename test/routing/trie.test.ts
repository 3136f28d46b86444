/** What the trie makes of texts that share characters, and of many names: every route stays the one it was. */

import { expect, test } from 'vitest';
import { Router } from 'postern';
import { createRandom } from '../support/random.js';

/** Codes that are equal in their low bits, the end of the code units, and a character of two of them. */
const CHARACTERS = ['a', 'b', 'A', 'á', 'š', '\u0000', '\u8061', '\uffff', '😀'];

function shuffled<T>(items: readonly T[], seed: number): T[] {
  const random = createRandom(seed);
  return items.map((item) => ({ item, key: random.next() })).sort((a, b) => a.key - b.key).map(({ item }) => item);
}

test.for([1, 2, 3])(
  'every text finds its own route, whatever it shares with others and whichever came first (seed %d)',
  (seed) => {
    const words = CHARACTERS.flatMap((a) => [
      a,
      ...CHARACTERS.flatMap((b) => [a + b, ...CHARACTERS.map((c) => a + b + c)]),
    ]);
    const registered = words.filter((_, i) => i % 3 !== seed % 3);
    const others = words.filter((_, i) => i % 3 === seed % 3);
    const router = new Router<string>();
    for (const word of shuffled(registered, seed)) router.add('GET', `/w/${word}/x`, word);
    expect(registered.filter((word) => router.find('GET', `/w/${word}/x`)?.handler !== word)).toEqual([]);
    expect(others.filter((word) => router.find('GET', `/w/${word}/x`) !== null)).toEqual([]);
  },
);

test('a look-up between registrations finds what is there by then', () => {
  const router = new Router<string>();
  const paths = ['/users', '/users/:id', '/user', '/us', '/usage/*rest', '/users/:id(\\d+)', '/users/me', '/'];
  const targets = {
    '/users': 0,
    '/users/x': 1,
    '/user': 2,
    '/us': 3,
    '/usage/a': 4,
    '/users/7': 5,
    '/users/me': 6,
    '/': 7,
  };
  for (const [count, path] of paths.entries()) {
    router.add('GET', path, path);
    for (const [target, index] of Object.entries(targets)) {
      const expected =
        index <= count ? paths[index] : count >= 1 && target.startsWith('/users/') ? '/users/:id' : undefined;
      expect(router.find('GET', target)?.handler, `${target} after ${path}`).toBe(expected);
    }
  }
});

test.for([
  ['/100%25', 'static'],
  ['/1%30%30%25', 'static'],
  ['/100%2525', 'param 100%25'],
  ['/a/b', 'two'],
  ['/a%2Fb', 'param a/b'],
  ['/%61/%62', 'two'],
  ['/a%252Fb', 'param a%2Fb'],
  ['/f/a%2Fb%25/c', 'rest a/b%/c'],
  ['/n/%25', 'percent %'],
  ['/n/%2525', null],
] as const)('%s is %s: escapes neither hide static text nor make it', ([target, expected]) => {
  const router = new Router<string>();
  router.add('GET', '/100%', 'static');
  router.add('GET', '/:param', 'param');
  router.add('GET', '/a/b', 'two');
  router.add('GET', '/f/*rest', 'rest');
  router.add('GET', '/n/:percent([^a-z])', 'percent');
  const found = router.find('GET', target);
  expect(found === null ? null : [found.handler, ...Object.values(found.params)].join(' ')).toBe(expected);
});

test('parameters keep their names however many lists of names there are, and their values when another path is looked up', () => {
  const router = new Router<number>();
  const lists = Array.from({ length: 40 }, (_, i) => Array.from({ length: (i % 4) + 1 }, (_name, j) => `p${i}_${j}`));
  for (const [i, names] of lists.entries()) router.add('GET', `/${i}/${names.map((name) => `:${name}`).join('/')}`, i);
  const found = lists.map((names, i) => router.find('GET', `/${i}/${names.map((name) => `v${name}`).join('/')}`));
  expect(found.map((each) => ({ ...each?.params })))
    .toEqual(lists.map((names) => Object.fromEntries(names.map((name) => [name, `v${name}`]))));
});

test('a way that fails leaves no trace in the parameters of the one that is found', () => {
  const router = new Router<string>();
  router.add('GET', '/:a/b/:c(\\d+)/:d/e', 'long');
  router.add('GET', '/:a/:b/*rest', 'rest');
  expect(router.find('GET', '/x/b/7/y/f')).toEqual({ handler: 'rest', params: { a: 'x', b: 'b', rest: '7/y/f' } });
  expect(router.find('GET', '/x/b/7/y/e')).toEqual({ handler: 'long', params: { a: 'x', c: '7', d: 'y' } });
});

test('methods other than GET have routes, names and Allow of their own at one path', () => {
  const router = new Router<string>();
  router.add('PUT', '/a/:put', 'put');
  router.add('POST', '/a/:post(\\d+)', 'post');
  router.add('GET', '/a/7', 'get');
  expect(['GET', 'HEAD', 'PUT', 'POST', 'PATCH', ''].map((method) => router.find(method, '/a/7')?.handler))
    .toEqual(['get', 'get', 'put', 'post', undefined, undefined]);
  expect(router.find('PUT', '/a/7')?.params).toEqual({ put: '7' });
  expect(router.allowedMethods('/a/7')).toEqual(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT']);
  expect(router.allowedMethods('/a/x')).toEqual(['OPTIONS', 'PUT']);
  expect(router.allowedMethods('/b/7')).toEqual([]);
});

test.for(['', 'a', '*', 'a%2Fb', 'a%ZZ', '%2Fa', '%'])('%j, without a first slash, matches nothing', (path) => {
  const router = new Router<string>();
  for (const each of ['/', '/a', '/:x', '/*']) router.add('GET', each, each);
  expect(router.find('GET', path)).toBeNull();
  expect(router.allowedMethods(path)).toEqual([]);
});
