/**
 * Path text of other routers, which would be plain text here and match nothing as it is meant, is refused with what to
 * write.
 */

import { expect, test } from 'vitest';
import { Router } from 'postern';

const refused = [
  { path: '/(\\d+)', index: 1, remedy: ':name(\\d+)' },
  { path: '/n/(a|b)/x', index: 3, remedy: ':name(a|b)' },
  { path: '/files/(.*)', index: 7, remedy: ':name(.*)' },
  { path: '/x([0-9]+)y', index: 2, remedy: ':name([0-9]+)' },
  { path: '/a*', index: 2, remedy: '*name' },
  { path: '/a/b*/c', index: 4, remedy: '*name' },
  { path: '/x{/y}?', index: 2, remedy: 'two paths' },
  { path: '/x{/y}', index: 2, remedy: 'two paths' },
  { path: '/users?', index: 5, remedy: 'two paths' },
  { path: '/users/(me)?', index: 10, remedy: 'two paths' },
  { path: '/colou?/x', index: 5, remedy: 'two paths' },
  { path: '/:id?', index: 4, remedy: 'two paths' },
  { path: '/x/:id?/y', index: 6, remedy: 'two paths' },
  { path: '/:rest*', index: 6, remedy: '*rest' },
  { path: '/:rest+', index: 6, remedy: '*rest' },
  { path: '/:a-:b', index: 3, remedy: 'constraint' },
  { path: '/:file.:ext', index: 6, remedy: 'constraint' },
  { path: '/:id{[0-9]+}', index: 4, remedy: ':id([0-9]+)' },
  { path: '/:id<\\d+>', index: 4, remedy: ':id(\\d+)' },
  { path: '/users/{id}', index: 7, remedy: ':id' },
  { path: '/users/{id}/keys', index: 7, remedy: ':id' },
  { path: '/users/{id:[0-9]+}', index: 7, remedy: ':id(regex)' },
  { path: '/users/{id?}', index: 7, remedy: ':id' },
  { path: '/files/{path*}', index: 7, remedy: '*path' },
  { path: '/files/{*path}', index: 7, remedy: '*path' },
  { path: '/files/{name:path}', index: 7, remedy: '*name' },
  { path: '/**', index: 1, remedy: 'letters' },
];

test.for(refused)('$path is refused', ({ path, index, remedy }) => {
  const router = new Router();
  const add = (): unknown => router.add('GET', path, () => 1);
  expect(add).toThrow(TypeError);
  expect(add).toThrow(` at index ${index} in "${path}"; `);
  expect(add).toThrow(remedy);
  expect(router.routes).toEqual([]);
});

const texts = [
  '/Products(1)', "/Customers('ALFKI')", '/(x)', '/c++', '/a+b', '/a{b}', '/{', '/}', '/x{1}', '/${host}', '/{$HOME}',
  '/{a.b}', '/[', '/a[0]', '/<', '/a<b>', '/x:cancel', '/users:batchGet', '/v1.0', '/^$', '/|', '/it\'s;"`%', '/~',
  '/@me', '/a,b', '/a*b', '/a=b', '/$metadata',
];

test.for(texts)('%s is text, and found as that', (path) => {
  const router = new Router<string>();
  router.add('GET', path, 'found');
  expect(router.find('GET', path.split('/').map(encodeURIComponent).join('/'))?.handler).toBe('found');
});
