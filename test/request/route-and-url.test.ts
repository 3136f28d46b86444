/** What a request knows of its route and its URL. */

import { expect, test } from 'vitest';
import { publicFacing, type Context, type MatchedRoute } from 'postern';
import { createApp, serve } from '../support/serve.js';
import { rawRequest } from '../support/raw.js';

test('ctx.route is the matched route, for middleware too, and null without one', async () => {
  const seen: (MatchedRoute | null)[] = [];
  const app = createApp().use((ctx, next) => {
    seen.push(ctx.route);
    return next();
  });
  app.get(
    '/users/:id',
    { meta: { role: 'admin' } },
    publicFacing((ctx: Context) => ({ same: ctx.route === seen.at(-1) })),
  );
  const { url } = await serve(app);
  const matched = {
    method: 'GET',
    path: '/users/:id',
    pattern: '^/users/([^/]+)$',
    public: true,
    meta: { role: 'admin' },
  };
  expect(await (await fetch(`${url}/users/7`)).json()).toEqual({ same: true });
  await fetch(`${url}/users/7`, { method: 'HEAD' });
  await fetch(`${url}/users/7`, { method: 'POST' });
  await fetch(`${url}/nothing`);
  await fetch(`${url}/users/health/`);
  expect(seen).toEqual([
    matched,
    matched,
    null,
    null,
    { method: 'GET', path: '/users/health/', pattern: '^/users/health/$', public: false, meta: {} },
  ]);
  expect(seen.every((route) => route === null || Object.isFrozen(route))).toBe(true);
});

const urls = [
  { name: 'of the Host', head: 'GET /a%20b/c?q=1&q=2 HTTP/1.1\r\nHost: shop.example:81',
    url: 'http://shop.example:81/a%20b/c?q=1&q=2' },
  { name: 'without a second authority in the path', head: 'GET //evil.example/x HTTP/1.1\r\nHost: shop.example',
    url: 'http://shop.example//evil.example/x' },
  { name: 'of the absolute-form, whatever the Host', head: 'GET http://real.example/x HTTP/1.1\r\nHost: other.example',
    url: 'http://real.example/x' },
  { name: 'that a stranger forwards is not believed',
    head: 'GET /x HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example',
    url: 'http://shop.example/x' },
  {
    name: 'of the nearest trusted proxy',
    trustProxy: ['127.0.0.1'],
    head: 'GET /x HTTP/1.1\r\nHost: internal\r\nX-Forwarded-Proto: ftp, HTTPS\r\nX-Forwarded-Host: evil.example, shop.example',
    url: 'https://shop.example/x',
  },
  { name: 'of a trusted proxy that says nothing of use', trustProxy: ['127.0.0.1'],
    head: 'GET /x HTTP/1.1\r\nHost: internal\r\nX-Forwarded-Proto: javascript\r\nX-Forwarded-Host: a/b@c',
    url: 'http://internal/x' },
];
test.for(urls)('ctx.url $name', async ({ head, url, trustProxy = [] }) => {
  const app = createApp({ trustProxy }).get('/*', (ctx) => ({ url: ctx.url.href, same: ctx.url === ctx.url }));
  const { port } = await serve(app);
  const answer = await rawRequest(port, `${head}\r\nConnection: close\r\n\r\n`);
  expect(JSON.parse(answer.body)).toEqual({ url, same: true });
});

test('ctx.url of HTTP/1.0 without a Host is that of the connection', async () => {
  const app = createApp().get('/x', (ctx) => ctx.url.href);
  const { port, url } = await serve(app);
  expect(await rawRequest(port, 'GET /x HTTP/1.0\r\n\r\n')).toMatchObject({ status: 200, body: `${url}/x` });
});

test('ctx.url answers 400 to a Host that no URL can have', async () => {
  const app = createApp().get('/x', (ctx) => ctx.url.href);
  const { port } = await serve(app);
  expect(await rawRequest(port, 'GET /x HTTP/1.1\r\nHost: a%00b\r\nConnection: close\r\n\r\n'))
    .toMatchObject({ status: 400 });
});
