/** Paths of calls that are put together from values. */

import { expect, test } from 'vitest';
import { defineEndpoint, path } from 'postern';
import { createApp } from '../support/serve.js';

test.for([
  { value: '7', encoded: '7' },
  { value: 7, encoded: '7' },
  { value: 7n, encoded: '7' },
  { value: '7/refund', encoded: '7%2Frefund' },
  { value: '../admin', encoded: '..%2Fadmin' },
  { value: '7?force=1#x', encoded: '7%3Fforce%3D1%23x' },
  { value: '50%', encoded: '50%25' },
  { value: 'a b é', encoded: 'a%20b%20%C3%A9' },
  { value: '\\\r\n', encoded: '%5C%0D%0A' },
])('$value stays inside its segment', ({ value, encoded }) => {
  expect(path`/invoices/${value}/lines`).toBe(`/invoices/${encoded}/lines`);
});

test.for(['', '.', '..', 'a\ud800'])('%j that a client sent is a 400', async (value) => {
  const exposed = { name: 'TypeError', statusCode: 400, expose: true };
  expect(() => path`/invoices/${value}`).toThrow(expect.objectContaining(exposed));
  expect(() => path`/invoices/${value}/lines`).toThrow(expect.objectContaining(exposed));
  const getInvoice = defineEndpoint('GET', '/invoices/:id');
  const app = createApp({ services: { billing: () => new Response() } });
  app.get('/tag', () => path`/invoices/${value}`);
  app.get('/call', async (ctx) => (await ctx.service('billing').call(getInvoice, { params: { id: value } })).status);
  for (const target of ['/tag', '/call']) {
    const response = await app.request(target);
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { message: 'Bad Request', description: expect.stringMatching(/^The path parameter "[^"]*" (is|has) [^/]*\.$/) },
    ]);
  }
});

test.for([undefined, null, {}, [], Symbol('x')])('%s, which no client sends, is a plain TypeError', (value) => {
  const build = (): string => path`/invoices/${value as string}`;
  expect(build).toThrow(TypeError);
  expect(build).not.toThrow(expect.objectContaining({ statusCode: 400 }));
});

test.for([[], ['/users']])('path(%s) is a TypeError: it is a template tag', (given) => {
  expect(() => path(...(given as never as [TemplateStringsArray])))
    .toThrow(new TypeError('path is a template tag, not a function; write path`/users/${id}`'));
});

test('several values, and none, make a path', () => {
  expect(path`/a/${'x/y'}/b/${2}?q=${'1&2'}`).toBe('/a/x%2Fy/b/2?q=1%262');
  expect(path`/a`).toBe('/a');
  expect(path`/files/${'a'}.${'b'}`).toBe('/files/a.b');
});

test('a wildcard that would lead to another host is a 400', async () => {
  const other = (): Response => new Response('other');
  const app = createApp({ services: { other } });
  const endpoint = defineEndpoint('GET', '/*rest');
  app.get('/to/*rest', async (ctx) => (await ctx.service('other').call(endpoint, { params: { rest: ctx.params.rest } })).body);
  expect((await app.request('/to/x')).status).toBe(200);
  expect((await app.request('/to//x')).status).toBe(400);
});
