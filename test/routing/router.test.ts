/** The router alone: what matches, in which order, and what it reports. */

import { describe, expect, test } from 'vitest';
import { HttpError, publicFacing, Router } from 'postern';
import { routeCases } from '../cases/routes.js';

const rows = routeCases.flatMap(({ path, pattern, matches }) =>
  Object.entries(matches).map(([target, params]) => ({ path, pattern, target, params })),
);
test.for(rows)('$path with $target gives $params', ({ path, pattern, target, params }) => {
  const router = new Router<string>();
  router.add('GET', path, 'handler');
  expect(router.routes).toEqual([{ method: 'GET', path, pattern, public: false, params: null }]);
  const found = router.find('GET', target);
  if (params === null) expect(found).toBeNull();
  else expect([found?.handler, { ...found?.params }]).toEqual(['handler', params]);
});

describe('precedence, whatever the order of registration', () => {
  const paths = ['/a/b', '/a/:n(\\d+)', '/a/:w(\\w+)', '/a/:x', '/a/*rest', '/:x/b', '/*'];
  const expected = {
    '/a/b': '/a/b',
    '/a/7': '/a/:n(\\d+)',
    '/a/seven': '/a/:w(\\w+)',
    '/a/-': '/a/:x',
    '/a/b/c': '/a/*rest',
    '/x/b': '/:x/b',
    '/x/y': '/*',
    '/a': '/*',
  };
  const shuffled = [
    paths,
    [...paths].reverse(),
    ['/*', '/a/:n(\\d+)', '/:x/b', '/a/*rest', '/a/:w(\\w+)', '/a/b', '/a/:x'],
  ];
  test.for(shuffled)('%j', (order) => {
    const router = new Router<string>();
    for (const path of order) router.add('GET', path, path);
    const inOrder = order.indexOf('/a/:w(\\w+)') < order.indexOf('/a/:n(\\d+)');
    for (const [target, path] of Object.entries(expected)) {
      // Two constraints at one place are tried in order of registration.
      const winner = target === '/a/7' && inOrder ? '/a/:w(\\w+)' : path;
      expect(router.find('GET', target)?.handler, target).toBe(winner);
    }
  });

  test('goes back where the better way leads nowhere', () => {
    const router = new Router<string>();
    router.add('GET', '/a/b/c', 'static');
    router.add('GET', '/a/:x/d', 'param');
    router.add('GET', '/:y/*rest', 'rest');
    expect(router.find('GET', '/a/b/d')).toEqual({ handler: 'param', params: { x: 'b' } });
    expect(router.find('GET', '/a/b/e')).toEqual({ handler: 'rest', params: { y: 'a', rest: 'b/e' } });
  });

  test('a route without the method gives way to the next best that has it', () => {
    const router = new Router<string>();
    router.add('GET', '/a', 'static');
    router.add('POST', '/:x', 'param');
    router.add('HEAD', '/*', 'rest');
    expect(router.find('POST', '/a')?.handler).toBe('param');
    expect(router.find('HEAD', '/a')?.handler).toBe('static');
    expect(router.find('PUT', '/a')).toBeNull();
  });
});

test('names differ between the methods of one pattern', () => {
  const router = new Router<string>();
  router.add('GET', '/users/:id', 'read');
  router.add('PUT', '/users/:name', 'write');
  expect(router.find('PUT', '/users/7')?.params).toEqual({ name: '7' });
  expect(router.find('HEAD', '/users/7')?.params).toEqual({ id: '7' });
});

test('a malformed escape is a 400 in whatever path', () => {
  const router = new Router<string>();
  for (const path of ['/%', '/%ZZ', '/a/%FF', '/%C3/%A9', '/%E0%80%80', '/%ED%A0%80']) {
    expect(() => router.find('GET', path), path).toThrow(HttpError);
  }
});

test('parameters have no prototype to fall back on', () => {
  const router = new Router<string>();
  router.add('GET', '/:toString/:__proto__', 'x');
  const params = router.find('GET', '/a/b')?.params;
  expect(Object.keys(params ?? {})).toEqual(['toString', '__proto__']);
  expect('constructor' in (params ?? {})).toBe(false);
  expect('hasOwnProperty' in (router.find('GET', '/a/b')?.params ?? {})).toBe(false);
});

test('routes list what was registered, in order; routesPublic the flagged ones alone', () => {
  const router = new Router<() => string>();
  router.add('POST', '/b/:x', publicFacing(() => '', { params: ['q'] }));
  router.add('GET', '/a', () => '');
  router.add('DELETE', '/b/:y', publicFacing(() => ''));
  router.add('PUT', '/b/:y', () => '');
  expect(router.routes).toEqual([
    { method: 'POST', path: '/b/:x', pattern: '^/b/([^/]+)$', public: true, params: ['q'] },
    { method: 'GET', path: '/a', pattern: '^/a$', public: false, params: null },
    { method: 'DELETE', path: '/b/:y', pattern: '^/b/([^/]+)$', public: true, params: null },
    { method: 'PUT', path: '/b/:y', pattern: '^/b/([^/]+)$', public: false, params: null },
  ]);
  expect(router.routesPublic).toEqual({ '^/b/([^/]+)$': { public_methods: ['DELETE', 'POST'] } });
});

test('a route without a handler throws', () => {
  const router = new Router();
  expect(() => Reflect.apply(router.add, router, ['GET', '/a'])).toThrow(/^GET \/a has no handler; give it/);
  expect(router.routes).toEqual([]);
});

test('the same method on the same pattern throws, under whatever names', () => {
  const router = new Router<string>();
  router.add('GET', '/users/:id', 'x');
  expect(() => router.add('GET', '/users/:other', 'y'))
    .toThrow(/GET \/users\/:other is registered already, as GET \/users\/:id/);
});

test.for([
  ['/a/:x', '/a/:y(.+)'],
  ['/a/:x(.+)', '/a/:y'],
  ['/a/:x((b))', '/a/:y((?:b))'],
] as const)('%s and %s are one pattern, wherever a constraint comes first', ([one, other]) => {
  for (const before of [[], ['/p/:q'], ['/p/:q(r)']]) {
    const router = new Router();
    for (const path of [...before, one]) router.add('GET', path, path);
    expect(() => router.add('GET', other, other))
      .toThrow(`GET ${other} is registered already, as GET ${one}; remove one`);
    expect(router.add('PUT', other, other).pattern).toBe(router.routes[before.length]?.pattern);
    expect(router.allowedMethods('/a/b')).toEqual(['GET', 'HEAD', 'OPTIONS', 'PUT']);
  }
});

test.for([
  [':name([^/]+)', ':name'],
  [':name(.+)', ':name'],
  [':name([^/]+)', ':name(.+)'],
] as const)('%s and %s are two constraints, also for two methods, in either order', ([constrained, other]) => {
  for (const order of [['GET', 'PUT'], ['PUT', 'GET']] as const) {
    const router = new Router<string>();
    const paths = { GET: `/f/${other}`, PUT: `/f/${constrained}` };
    for (const method of order) router.add(method, paths[method], paths[method]);
    for (const target of ['/f/b', '/f/a%2Fb']) {
      const matching = order.filter((method) => {
        const single = new Router<string>();
        single.add(method, paths[method], paths[method]);
        return single.find(method, target) !== null;
      });
      const found = order.filter((method) => router.find(method, target)?.handler === paths[method]);
      expect(found, `${order.join(' before ')} ${target}`).toEqual(matching);
      expect(router.allowedMethods(target).filter((method) => method === 'GET' || method === 'PUT'))
        .toEqual([...matching].sort());
    }
  }
});

test('a constraint precedes a parameter of the same pattern and another method', () => {
  const router = new Router<string>();
  for (const [method, path] of [['PUT', '/:a'], ['GET', '/:b(.+)'], ['DELETE', '/:a'], ['DELETE', '/b']] as const)
    router.add(method, path, path);
  expect(router.find('PUT', '/x')?.handler).toBe('/:a');
  expect(router.find('HEAD', '/x')?.handler).toBe('/:b(.+)');
  expect(() => router.add('PUT', '/:c(.+)', '')).toThrow('PUT /:c(.+) is registered already, as PUT /:a; remove one');
  router.add('PATCH', '/:c(.+)', 'later');
  expect(router.find('PATCH', '/x')?.handler, 'a refused route leaves no place behind').toBe('later');
  expect(router.find('PUT', '/x%2Fy')?.handler).toBe('/:a');
});

test('a failed registration leaves the table as it was', () => {
  const router = new Router<string>();
  for (const [method, path] of [
    ['GET', '/a//b'],
    ['FETCH', '/a'],
    ['GET', '/a/:x/:x'],
    ['GET', '/a/:x((b+)+)'],
  ] as const) {
    expect(() => router.add(method, path, 'x')).toThrow(TypeError);
  }
  expect(router.routes).toEqual([]);
  expect(router.find('GET', '/a')).toBeNull();
});

test('hostile paths of 64 kB find no route, or theirs, without recursion or backtracking', () => {
  const router = new Router<string>();
  for (const path of ['/a/:x', '/:a/:b/:c(\\d+)', '/w/*rest', '/:a(\\w+)/x', '/n/:slug([a-z0-9]+(?:-[a-z0-9]+)*)'])
    router.add('GET', path, path);
  const long = 65_536;
  const targets = [
    `/${'a'.repeat(long)}`, '/'.repeat(long), `/${'-'.repeat(long)}a`, '/a'.repeat(long / 2),
    `/n/${'a-'.repeat(long / 2)}!`, `/a/${'%20'.repeat(long / 3)}`, `/w${'/x'.repeat(long / 2)}`,
  ];
  expect(targets.map((target) => router.find('GET', target)?.handler ?? null)).toEqual([
    null, null, null, null, null, '/a/:x', '/w/*rest',
  ]);
});
