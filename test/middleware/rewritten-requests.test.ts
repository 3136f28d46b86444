/** Middleware that changes `req.url` and `req.method`: later middleware and mounts see it, the route stays the same. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { connect, type ConnectMiddleware, type Handler, type Middleware } from 'postern';
import { createApp, createRecorder, serve } from '../support/serve.js';
import { rawExchange } from '../support/raw.js';

type Seen = IncomingMessage & { readonly originalUrl?: string; readonly baseUrl?: string };
const seenIn = ({ method, url, originalUrl, baseUrl }: Seen): unknown => ({ method, url, originalUrl, baseUrl });
const echo = (req: Seen, res: ServerResponse): void => void res.end(JSON.stringify(seenIn(req)));

const rewrite = (url: string): ConnectMiddleware => (req, _res, next) => { req.url = url; next(); };
/** Each kind of middleware that may change the request. */
const KINDS: Readonly<Record<string, (change: (req: IncomingMessage) => void) => Middleware>> = {
  'middleware for Express': (change) => connect((req, _res, next) => { change(req); next(); }),
  'middleware of Postern': (change) => (ctx, next) => { change(ctx.raw.req); return next(); },
};
const kinds = Object.entries(KINDS);

const urls = [
  { url: '/legacy/y?b=2', seen: '/y?b=2', baseUrl: '/legacy' },
  { url: '/legacy', seen: '/', baseUrl: '/legacy' },
  { url: '/legacy?b=2', seen: '/?b=2', baseUrl: '/legacy' },
  { url: '/legacy/', seen: '/', baseUrl: '/legacy' },
  { url: '/leg%61cy/y', seen: '/y', baseUrl: '/leg%61cy' },
  { url: 'http://host/legacy/y', seen: '/y', baseUrl: '/legacy' },
  { url: '/legacyx', seen: '/legacyx', baseUrl: '' },
  { url: '/y?b=2', seen: '/y?b=2', baseUrl: '' },
  { url: '/', seen: '/', baseUrl: '' },
  { url: '/%zz/y', seen: '/%zz/y', baseUrl: '' },
  { url: 'index.html', seen: '/index.html', baseUrl: '' },
];
test.for(kinds)('a mount sees the url of %s without its prefix, if it is below the prefix', async ([, changing]) => {
  for (const { url, seen, baseUrl } of urls) {
    const app = createApp().use(changing((req) => { req.url = url; }));
    app.mount('/legacy', echo);
    const response = await app.request('/legacy/x?a=1');
    expect([url, await response.json()])
      .toEqual([url, { method: 'GET', url: seen, originalUrl: '/legacy/x?a=1', baseUrl }]);
  }
});

test.for(kinds)('a mount of everything sees the url of %s', async ([, changing]) => {
  const app = createApp().use(changing((req) => { req.url = '/index.html'; }));
  app.mount('/', echo);
  const response = await app.request('/some/page?a=1');
  expect(await response.json())
    .toEqual({ method: 'GET', url: '/index.html', originalUrl: '/some/page?a=1', baseUrl: '' });
});

test.for(kinds)('the url of %s chooses no other route and no other mount, and later middleware sees it', async ([, changing]) => {
  const seen: unknown[] = [];
  const app = createApp().use(changing((req) => { req.url = '/other/8?b=2'; }));
  app.use(connect((req, _res, next) => { seen.push(seenIn(req)); next(); }));
  app.get('/users/:id', (ctx) => [ctx.route?.path, ctx.path, ctx.params.id, ctx.query.get('a'), ctx.raw.req.url]);
  app.get('/other/:id', () => 'another route').mount('/other', () => 'another mount');
  app.mount('/old', echo);
  expect(await (await app.request('/users/7?a=1')).json()).toEqual(['/users/:id', '/users/7', '7', '1', '/other/8?b=2']);
  expect(await (await app.request('/old')).json())
    .toEqual({ method: 'GET', url: '/other/8?b=2', originalUrl: '/old', baseUrl: '' });
  expect(seen).toMatchObject([
    { url: '/other/8?b=2', originalUrl: '/users/7?a=1' }, { url: '/other/8?b=2', originalUrl: '/old' },
  ]);
});

test('the rewriting of one middleware is where the next one begins', async () => {
  const app = createApp().use(connect(rewrite('/a'))).use(connect((req, _res, next) => { req.url += '/b'; next(); }));
  app.mount('/', echo);
  expect(await (await app.request('/x')).json()).toMatchObject({ url: '/a/b', originalUrl: '/x' });
});

test('in absolute form, a mount sees the path, and originalUrl is whole', async () => {
  const { port } = await serve(createApp().mount('/legacy', echo));
  const received = await rawExchange(port, 'GET http://x/legacy/y?a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(received).toContain('"url":"/y?a","originalUrl":"http://x/legacy/y?a","baseUrl":"/legacy"');
});

test.for(kinds)('the method of %s is seen, chooses no other route, and is not the one that is counted', async ([, changing]) => {
  const logger = createRecorder();
  const seen: unknown[] = [];
  const app = createApp({ logger, accessLog: true }).use(changing((req) => { req.method = 'DELETE'; }));
  app.use(connect((req, _res, next) => { seen.push(req.method); next(); }));
  app.route('/users/:id', { POST: (ctx) => `POST as ${ctx.method}`, DELETE: () => 'DELETE' });
  app.mount('/old', echo);
  expect(await (await app.request('/users/7', { method: 'POST' })).text()).toBe('POST as POST');
  expect(await (await app.request('/old', { method: 'PUT' })).json()).toMatchObject({ method: 'DELETE' });
  expect(seen).toEqual(['DELETE', 'DELETE']);
  const counted = [...app.metrics.expose().matchAll(/^http_request_duration_seconds_count\{method="(\w+)"/gm)];
  expect(counted.map(([, method]) => method).sort()).toEqual(['POST', 'PUT']);
  expect(logger.entries.map(({ object }) => object['method'])).toEqual(['POST', 'PUT']);
});

test.for<[string, Handler]>([
  ['a text', () => 'the body'],
  ['a stream', async function* () { yield 'the '; yield 'body'; }],
  ['a Response', () => new Response('the body', { status: 201 })],
])('%s in reply to a method that middleware changes to HEAD is sent', async ([what, handler]) => {
  const app = createApp().use(connect((req, _res, next) => {
    if (req.headers['x-http-method-override'] !== undefined) req.method = String(req.headers['x-http-method-override']);
    next();
  }));
  app.post('/', handler).get('/', () => 'next');
  const { port } = await serve(app);
  const post = 'POST / HTTP/1.1\r\nHost: x\r\nX-HTTP-Method-Override: HEAD\r\nContent-Length: 0\r\n\r\n';
  const received = await rawExchange(port, `${post}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(received.match(/HTTP\/1\.1 \d+/g)?.length).toBe(2);
  expect([what, received]).toEqual([what, expect.stringMatching(/the (?:\r\n4\r\n)?body/)]);
});

test('a reply to HEAD that middleware changes to GET has no body', async () => {
  const app = createApp().use(connect((req, _res, next) => { req.method = 'GET'; next(); }));
  app.get('/', () => 'the body').get('/stream', async function* () { yield 'the body'; });
  const { port } = await serve(app);
  const head = (path: string): string => `HEAD ${path} HTTP/1.1\r\nHost: x\r\n`;
  const received = await rawExchange(port, `${head('/')}\r\n${head('/stream')}Connection: close\r\n\r\n`);
  expect([received.match(/HTTP\/1\.1 200/g)?.length, received.includes('the body')]).toEqual([2, false]);
});
