/**
 * Listeners of other frameworks below a prefix: which requests they get, and what Postern makes of their replies.
 *
 * @module-tag package
 */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { NotFound, publicFacing, type ConnectMiddleware, type Postern } from 'postern';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

const require = createRequire(import.meta.url);
type Listened = [req: IncomingMessage, res: ServerResponse];
type Application = ConnectMiddleware & { use(middleware: ConnectMiddleware): Application; handle(): void };
const express = require('express') as (() => Application) & { Router(): Application };
const connectApplication = require('connect') as () => Application;
type Named = IncomingMessage & { readonly params: Readonly<Record<string, string>> };
interface Polka {
  get(path: string, run: (req: Named, res: ServerResponse) => void): Polka;
  readonly handler: (...args: Listened) => void;
}
const polka = require('polka') as () => Polka;

/** Replies with what it sees. */
function echo(name: string) {
  return (req: IncomingMessage & { originalUrl?: string }, res: ServerResponse): void => {
    res.writeHead(203, { 'content-type': 'text/plain', 'x-by': name });
    res.end(`${name} ${req.method} ${req.url} ${req.originalUrl}`);
  };
}

function mountedApp(options = {}): Postern {
  const app = createApp(options);
  app.mount('/', echo('root')).mount('/legacy/api', echo('api')).mount('/legacy', echo('legacy'));
  app.get('/legacy/new/:id', publicFacing((ctx) => `new ${ctx.params.id}`));
  app.get('/own', () => 'own');
  return app;
}

const cases = [
  { target: '/legacy', body: 'legacy GET / /legacy' },
  { target: '/legacy/', body: 'legacy GET / /legacy/' },
  { target: '/legacy?a=1', body: 'legacy GET /?a=1 /legacy?a=1' },
  { target: '/legacy/x/y?a=%20b', body: 'legacy GET /x/y?a=%20b /legacy/x/y?a=%20b' },
  { target: '/legacy/x%2Fy/%7E', body: 'legacy GET /x%2Fy/%7E /legacy/x%2Fy/%7E' },
  { target: '/leg%61cy/x', body: 'legacy GET /x /leg%61cy/x' },
  { target: '/legacy%2Fx', body: 'root GET /legacy%2Fx /legacy%2Fx' },
  { target: '/legacyx', body: 'root GET /legacyx /legacyx' },
  { target: '/legacy//x', body: 'legacy GET //x /legacy//x' },
  { target: '/legacy/api', body: 'api GET / /legacy/api' },
  { target: '/legacy/api/x', body: 'api GET /x /legacy/api/x' },
  { target: '/legacy/apis', body: 'legacy GET /apis /legacy/apis' },
  { target: '/legacy/new/7', body: 'new 7' },
  { method: 'POST', target: '/legacy/new/7', body: 'legacy POST /new/7 /legacy/new/7' },
  { method: 'OPTIONS', target: '/legacy/new/7', body: 'legacy OPTIONS /new/7 /legacy/new/7' },
  { target: '/own', body: 'own' },
  { method: 'DELETE', target: '/own', body: 'root DELETE /own /own' },
  { target: '/', body: 'root GET / /' },
  { target: '/legacy/%ZZ', status: 400 },
];
test.for(cases)('$method $target', async ({ method = 'GET', target, body, status }) => {
  const response = await mountedApp().request(target, { method });
  const text = await response.text();
  if (body !== undefined) expect(text).toBe(body);
  expect(response.status).toBe(status ?? (/^(?:new|own)/.test(body ?? '') ? 200 : 203));
});

test('a mount is counted and logged under its prefix, is in no table, and has no route', async () => {
  const logger = createRecorder();
  const app = mountedApp({ logger, accessLog: true });
  const seen: unknown[] = [];
  app.use(async (ctx, next) => {
    const replied = await next();
    seen.push(ctx.route, ctx.path);
    return replied;
  });
  await (await app.request('/legacy/x?secret=1')).text();
  await (await app.request('/y')).text();
  const text = app.metrics.expose();
  expect(text).toContain('http_request_duration_seconds_count{method="GET",route="/legacy/*",status_code="203"} 1');
  expect(text).toContain('http_request_duration_seconds_count{method="GET",route="/*",status_code="203"} 1');
  expect(logger.entries.map(({ object }) => object))
    .toMatchObject([{ route: '/legacy/*', target: '/legacy/x' }, { route: '/*', target: '/y' }]);
  expect(seen).toEqual([null, '/legacy/x', null, '/y']);
  expect(app.router.routes.filter(({ path }) => !path.startsWith('/users/'))).toHaveLength(2);
});

test('the public never reaches a mount', async () => {
  const app = mountedApp();
  for (const target of ['/legacy', '/legacy/x', '/own', '/', '/legacy/api/x'])
    expect((await app.request(target, { headers: { 'x-postern-scope': 'public' } })).status).toBe(404);
  const response = await app.request('/legacy/new/7', { method: 'POST', headers: { 'x-postern-scope': 'public' } });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
});

test('middleware runs around a mount, and may answer in its place', async () => {
  const app = mountedApp();
  app.use((ctx, next) => {
    ctx.raw.res.setHeader('x-app', '1');
    if (ctx.path === '/legacy/closed') throw new NotFound();
    return next();
  });
  const response = await app.request('/legacy/x');
  expect([response.headers.get('x-app'), response.headers.get('x-by')]).toEqual(['1', 'legacy']);
  expect((await app.request('/legacy/closed')).status).toBe(404);
});

test('bodies stream through, and a drain waits for the reply', async () => {
  const app = createApp();
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  app.mount('/up', async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    res.write('got ');
    await released;
    res.end(Buffer.concat(chunks));
  });
  const { url } = await serve(app);
  const response = await fetch(`${url}/up/load`, { method: 'POST', body: 'x'.repeat(100_000) });
  const closed = app.close();
  release();
  expect((await response.text()).length).toBe(100_004);
  await closed;
});

test.for([
  ['throws', () => { throw new Error('broken'); }],
  ['rejects', async () => { throw new Error('broken'); }],
] as const)('a listener that %s is a 500', async ([, listener]) => {
  const app = expectFailures(createApp(), 500).mount('/m', listener);
  expect((await app.request('/m/x')).status).toBe(500);
});

/** Middleware that answers one request, and passes on the others. */
const files: ConnectMiddleware = (req, res, next) => {
  if (req.url === '/gone') next(new NotFound('It was removed.'));
  else if (req.url === '/a.txt') res.end('a file');
  else next();
};
test.for<[string, ConnectMiddleware & { handle(): void }]>([
  ['Express', express().use(files)],
  ['Express, a Router', express.Router().use(files)],
  ['connect', connectApplication().use(files)],
  ['any kind, with a method handle', Object.assign(files.bind(undefined), { handle() {} })],
])('an application of %s passes on with next(): a 404, or what it is given', async ([, listener]) => {
  const app = createApp().mount('/files', listener);
  const answers = [
    ['a.txt', 200, 'a file'],
    ['b.txt', 404, 'No route matches'],
    ['gone', 404, 'It was removed.'],
  ] as const;
  for (const [target, status, text] of answers) {
    const response = await app.request(`/files/${target}`);
    expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(text)]);
  }
});

test.for<[string, (...args: Listened) => void]>([
  ['a function', (...args) => answerWith(args)],
  ['a function with a property handle', Object.assign((...args: Listened) => answerWith(args), { handle: 'x' })],
  ['polka', polka().get('/:name', (req, res) => void res.end(`${req.params['name']} of polka`)).handler],
])('%s gets the request and the response alone', async ([what, listener]) => {
  const app = createApp().mount('/m', listener);
  expect(await (await app.request('/m/x')).text()).toBe(what === 'polka' ? 'x of polka' : '2 arguments');
});

function answerWith(args: Listened): void {
  args[1].end(`${args.length} arguments`);
}

test('a route registered later, and middleware added later, apply', async () => {
  const app = mountedApp();
  expect(await (await app.request('/late')).text()).toMatch(/^root/);
  app.get('/late', () => 'late');
  app.use(async (_ctx, next) => {
    const replied = await next();
    return replied;
  });
  expect(await (await app.request('/late')).text()).toBe('late');
  expect(await (await app.request('/later')).text()).toMatch(/^root/);
});

test('a client that disconnects is no failure', async () => {
  const app = createApp();
  let arrive = (_req: IncomingMessage): void => {};
  const arrived = new Promise<IncomingMessage>((resolve) => (arrive = resolve));
  app.mount('/m', (req) => arrive(req));
  const { url } = await serve(app);
  const controller = new AbortController();
  const asked = fetch(`${url}/m`, { signal: controller.signal }).catch(() => undefined);
  const req = await arrived;
  const gone = once(req.socket, 'close');
  controller.abort();
  await Promise.all([asked, gone]);
});
