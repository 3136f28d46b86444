/** Middleware: what it runs around, in which order, and what it may change. */

import { expect, test } from 'vitest';
import { HttpError, NotFound, reply, type Middleware, type Reply } from 'postern';
import { createApp, createRecorder, serve } from '../support/serve.js';

const mark = (name: string): Middleware => async (ctx, next) => {
  const trail = (ctx.state['trail'] ??= []) as string[];
  trail.push(name);
  const replied = await next();
  replied.headers.append('x-trail', name);
  return replied;
};

test("runs in order of use, the app's around the group's, whatever the order against routes", async () => {
  const app = createApp();
  app.get('/before', (ctx) => ctx.state['trail'] as object);
  app.use(mark('app1'));
  app.group('/g', (group) => {
    group.get('/in', (ctx) => ctx.state['trail'] as object);
    group.use(mark('group1'));
    group.group('/h', (inner) => inner.use(mark('inner')).get('/in', (ctx) => ctx.state['trail'] as object));
    group.use(mark('group2'));
  });
  app.use(mark('app2'));
  const { url } = await serve(app);
  const trail = async (path: string): Promise<unknown> => (await fetch(url + path)).json();
  expect(await trail('/before')).toEqual(['app1', 'app2']);
  expect(await trail('/g/in')).toEqual(['app1', 'app2', 'group1', 'group2']);
  expect(await trail('/g/h/in')).toEqual(['app1', 'app2', 'group1', 'group2', 'inner']);
  expect((await fetch(`${url}/g/in`)).headers.get('x-trail')).toBe('group2, group1, app2, app1');
});

test('runs around 404, 405, OPTIONS and the monitoring endpoints', async () => {
  const seen: string[] = [];
  const app = createApp().get('/a', () => 1).use(async (ctx, next) => {
    try {
      const replied = await next();
      seen.push(`${ctx.path} ${replied.status}`);
      return replied;
    } catch (error) {
      seen.push(`${ctx.path} ${error instanceof HttpError ? error.statusCode : 'other'}`);
      throw error;
    }
  });
  const { url } = await serve(app);
  await fetch(`${url}/nowhere`);
  await fetch(`${url}/a`, { method: 'POST' });
  await fetch(`${url}/a`, { method: 'OPTIONS' });
  await fetch(`${url}/users/health/`);
  expect(seen).toEqual(['/nowhere 404', '/a 405', '/a 204', '/users/health/ 200']);
});

test('next() gives a Reply whose status, headers and body may be changed', async () => {
  const app = createApp().get('/', () => ({ a: 1 })).use(async (_ctx, next) => {
    const replied = await next();
    expect([replied.status, replied.body, replied.headers instanceof Headers]).toEqual([200, { a: 1 }, true]);
    replied.status = 201;
    replied.headers.set('x-a', 'b');
    replied.body = { wrapped: replied.body };
    return replied;
  });
  const response = await fetch((await serve(app)).url);
  expect([response.status, response.headers.get('x-a'), await response.json()]).toEqual([201, 'b', { wrapped: { a: 1 } }]);
});

test.for<[string, () => unknown, number, string]>([
  ['a plain value', () => ({ from: 'middleware' }), 200, '{"from":"middleware"}'],
  ['a string', () => 'text', 200, 'text'],
  ['nothing', () => undefined, 204, ''],
  ['a reply', () => reply('made', { status: 202 }), 202, 'made'],
  ['a Response', () => new Response('standard', { status: 203 }), 203, 'standard'],
])('may return %s without calling next()', async ([, value, status, body]) => {
  const app = createApp().get('/', () => 'handler').use(() => value() as string);
  const response = await fetch((await serve(app)).url);
  expect([response.status, await response.text()]).toEqual([status, body]);
});

test('next() rejects with what was thrown, and middleware may answer instead', async () => {
  const thrown = new NotFound('mine');
  const app = createApp().get('/', () => { throw thrown; }).use(async (_ctx, next) => {
    await expect(next()).rejects.toBe(thrown);
    return reply('rescued', { status: 200 });
  });
  expect(await (await fetch((await serve(app)).url)).text()).toBe('rescued');
});

test('next() rejects with an error that a handler returns, as with one that it throws', async () => {
  const app = createApp().get('/', () => new NotFound('returned'));
  app.use((_ctx, next) => next().catch((error: Error) => ({ caught: error instanceof NotFound })));
  expect(await (await app.request('/')).json()).toEqual({ caught: true });
});

test('the 404 that a middleware gets is its own: what it writes there is seen by no other request', async () => {
  const seen: unknown[] = [];
  const app = createApp().use((_ctx, next) => next().catch((error: object) => {
    seen.push('mark' in error);
    throw Object.assign(error, { mark: true });
  }));
  for (const _ of [1, 2]) expect((await app.request('/nowhere')).status).toBe(404);
  expect(seen).toEqual([false, false]);
});

test('calling next() twice throws', async () => {
  const logger = createRecorder();
  const app = createApp({ logger }).get('/', () => 'ok').use(async (_ctx, next) => {
    await next();
    return next();
  });
  expect((await fetch((await serve(app)).url)).status).toBe(500);
  expect(String(logger.entries[0]?.object['err'])).toMatch(/next\(\) was called twice/);
});

test('a middleware that does not wait for a failing handler leaves the process serving', async () => {
  const app = createApp().get('/', () => { throw new Error('lost'); }).use((_ctx, next) => {
    void next();
    return 'not waited';
  });
  const { url } = await serve(app);
  expect(await (await fetch(url)).text()).toBe('not waited');
  expect(await (await fetch(url)).text()).toBe('not waited');
});

test('an error thrown by middleware is mapped like one of a handler', async () => {
  const app = createApp().get('/', () => 'ok').use(() => { throw new NotFound('hidden'); });
  const response = await fetch((await serve(app)).url);
  expect([response.status, ((await response.json()) as { description: string }).description]).toEqual([404, 'hidden']);
});

test('a Response of a handler reaches middleware as a Reply', async () => {
  let seen: Reply | undefined;
  const app = createApp().get('/', () => new Response('body', { status: 206, headers: { 'x-a': 'b' } })).use(async (_ctx, next) => (seen = await next()));
  const response = await fetch((await serve(app)).url);
  expect([response.status, response.headers.get('x-a'), await response.text()]).toEqual([206, 'b', 'body']);
  expect([seen?.status, seen?.headers.get('x-a')]).toEqual([206, 'b']);
});
