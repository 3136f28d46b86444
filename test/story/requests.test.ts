/** `/<name>/requests/` says what is in flight, what failed and what the framework warned of. */

import { expect, onTestFinished, test, vi } from 'vitest';
import { connect, defineEndpoint, Postern, reply, type Handler, type PosternOptions } from 'postern';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

const LOOPBACK = { host: '127.0.0.1', port: 0 };

interface Document {
  readonly active: object[];
  readonly recent: object[];
  readonly counts: object[];
  readonly events: object[];
}

async function start(options: PosternOptions = {}, define: (app: Postern) => void = () => undefined) {
  const app = createApp({ monitor: LOOPBACK, ...options });
  define(app);
  const { url, monitor } = await app.listen(LOOPBACK);
  const read = async (): Promise<Document> => {
    const response = await fetch(`${monitor?.url}/users/requests/`);
    return response.json() as Promise<Document>;
  };
  return { app, url, read };
}

const ANY_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const NUMBER = expect.any(Number);

test('it has what is in flight, what failed, how often each kind failed', async () => {
  let release = (): void => undefined;
  const { app, url, read } = await start({ services: { billing: () => new Response('', { status: 503 }) } }, (app) => {
    app.get('/wait', () => new Promise<string>((resolve) => (release = () => resolve('done'))));
    app.get('/fail/:id', async (ctx) => (await ctx.service('billing').get('/')).body as object);
    app.get('/throw', () => { throw new Error('secret'); });
  });
  expectFailures(app, 500, 503);
  const headers = { 'x-request-id': 'i-1', 'user-agent': 'shop/1 postern/1', authorization: 'secret' };
  const waiting = fetch(`${url}/wait?token=secret`, { headers });
  await expect.poll(async () => (await read()).active).toEqual([
    { id: 'i-1', method: 'GET', route: '/wait', caller: 'shop', age_ms: NUMBER, calls: [] },
  ]);
  release();
  await waiting;
  for (let i = 0; i < 3; i += 1) await fetch(`${url}/fail/secret`, { headers });
  await fetch(`${url}/throw`, { method: 'GET', headers: { 'x-request-id': 'i-2' } });
  const { recent, counts, active } = await read();
  const code = 'framework_error_unspecified';
  const calls = [['billing', 'GET', '', 503, NUMBER, code, []]];
  const failed = { id: 'i-1', method: 'GET', route: '/fail/:id', caller: 'shop', status: 503, error_code: code };
  expect(recent.at(-2)).toEqual({ ...failed, ms: NUMBER, at: ANY_TIME, calls });
  expect(recent.at(-1)).toMatchObject({ id: 'i-2', caller: null, status: 500, calls: [] });
  const times = { first: ANY_TIME, last: ANY_TIME };
  expect(counts).toEqual([
    { route: '/fail/:id', status: 503, error_code: code, service: 'billing', times: 3, ...times },
    { route: '/throw', status: 500, error_code: 'framework_unknown_error', service: 'users', times: 1, ...times },
  ]);
  expect(active).toEqual([]);
  expect(JSON.stringify(await read())).not.toContain('secret');
});

test('it has the warnings of the framework with what it made itself, and nothing that a user logs', async () => {
  const { app, url, read } = await start({ logger: createRecorder() }, (app) => {
    app.health.check('database', () => { throw new Error('secret'); });
    app.get('/', (ctx) => {
      ctx.log.error({ password: 'secret' }, 'secret');
      app.log.warn('secret');
    });
  });
  expectFailures(app, 503, 'secret');
  await fetch(url);
  await fetch(`${url}/users/health/`);
  const event = { at: ANY_TIME, level: 'warn', msg: 'health check fails', check: 'database' };
  expect((await read()).events).toEqual([event]);
});

test('it has each warning and error of the framework that is not about a single request', async () => {
  const old = (): Response => new Response('', { headers: { deprecation: '@0' } });
  const typed = defineEndpoint('GET', '/v1/:id');
  const options = { logger: createRecorder(), diagnostics: true, services: { old } };
  const { app, url, read } = await start(options, (app) => {
    app.get('/calls', async (ctx) => {
      await ctx.service('old').get('/v1/secret');
      await ctx.service('old').call(typed, { params: { id: 'secret' } });
    });
    app.get('/old/:id', { deprecated: { at: new Date(0) } }, (ctx) => {
      ctx.log = ctx.log.child({ user: 'secret' });
    });
    app.get('/late', { middleware: [connect((_req, _res, next) => { next(); throw new Error('secret'); })] }, () => 1);
    app.get('/boom', () => { throw new Error('secret'); });
  });
  expectFailures(app, 500, 'job failed', 'tracked task failed');
  await fetch(`${url}/old/secret?q=secret`, { headers: { 'user-agent': 'shop/1 postern/1', 'x-request-id': 'secret' } });
  await app.job('mail', { headers: { 'x-request-id': 'secret' } }, () => { throw new Error('secret'); }).catch(() => 0);
  await app.track(Promise.reject(new Error('secret'))).catch(() => 0);
  await fetch(`${url}/boom`);
  await fetch(`${url}/late`);
  await fetch(`${url}/calls`);
  const { events } = await read();
  const at = ANY_TIME;
  const called = { at, level: 'warn', msg: 'a deprecated route of another service is called', service: 'old' };
  expect(events).toEqual([
    { at, level: 'warn', msg: 'a deprecated route is called', method: 'GET', route: '/old/:id', caller: 'shop' },
    { at, level: 'error', msg: 'job failed', job: 'mail' },
    { at, level: 'error', msg: 'tracked task failed' },
    { ...called, method: 'GET' },
    { ...called, method: 'GET', route: '/v1/:id' },
  ]);
});

test('it has how many lines of requests were left out in a second', async () => {
  const { app, url, read } = await start({}, (app) => {
    app.get('/fail', () => { throw new Error('x'); });
    app.get('/slow', () => new Promise((resolve) => setTimeout(resolve, 1200, {})));
  });
  expectFailures(app, 500);
  const paths = [...Array(50)].flatMap(() => ['/fail', '/slow']);
  await Promise.all(paths.map(async (path) => (await fetch(url + path)).arrayBuffer()));
  const left = { at: ANY_TIME, level: 'warn', left_out: NUMBER };
  await expect.poll(async () => (await read()).events).toEqual(expect.arrayContaining([
    { ...left, msg: 'more requests failed' },
    { ...left, msg: 'more requests were slow' },
  ]));
});

test('it has the changes of the log level, and the profiles', async () => {
  const write = vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
  onTestFinished(() => void write.mockRestore());
  // The level of the default logger alone can be changed.
  const app = new Postern('users', { monitor: LOOPBACK, accessLog: false, diagnostics: true });
  onTestFinished(() => app.close());
  const base = `${(await app.listen(LOOPBACK)).monitor?.url}/users`;
  await fetch(`${base}/log-level/?level=error&seconds=600`, { method: 'PUT' });
  await (await fetch(`${base}/profile/?cpu=1`, { method: 'POST' })).arrayBuffer();
  const { events } = (await (await fetch(`${base}/requests/`)).json()) as { readonly events: { msg: string }[] };
  // To end a profile may block the event loop, which is a warning of its own.
  expect(events.filter(({ msg }) => msg !== 'event loop blocked')).toEqual([
    { at: ANY_TIME, level: 'warn', msg: 'log level changed', log_level: 'error', seconds: 600 },
    { at: ANY_TIME, level: 'warn', msg: 'CPU profiled', seconds: 1 },
  ]);
});

test('it is bounded: 50 requests', async () => {
  const { app, url, read } = await start({}, (app) => app.get('/', () => { throw new Error('x'); }));
  expectFailures(app, 500);
  await Promise.all([...Array(70)].map(async () => (await fetch(url)).arrayBuffer()));
  const { recent, counts } = await read();
  expect(recent.length).toBe(50);
  expect(counts).toMatchObject([{ times: 70 }]);
});

test('only the monitor listener has it: elsewhere its path belongs to the application', async () => {
  const { url } = await start({}, (app) => app.get('/users/requests/', () => 'mine'));
  expect(await (await fetch(`${url}/users/requests/`)).text()).toBe('mine');
  const alone = createApp();
  expect((await fetch(`${(await alone.listen(LOOPBACK)).url}/users/requests/`)).status).toBe(404);
});

test.for<[how: string, handler: Handler]>([
  ['a reply', () => reply('x', { status: 502 })],
  ['a Response', () => new Response('x', { status: 502 })],
  ['what the handler wrote itself', ({ raw: { res } }) => void res.writeHead(502).end()],
])('a 5xx that is %s, without a call, has its line, too', async ([, handler]) => {
  const logger = createRecorder();
  const { url } = await start({ logger }, (app) => expectFailures(app, 502).get('/', handler));
  await (await fetch(url as string)).text();
  const failed = (): unknown[] => logger.entries.filter(({ message }) => message === 'request failed');
  await expect.poll(failed).toMatchObject([{ level: 'error', object: { status_code: 502, route: '/' } }]);
});
