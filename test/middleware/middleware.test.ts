/** Middleware: what it runs around, in which order, and what it may change. */

import { once } from 'node:events';
import { connect as connectTo } from 'node:net';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import {
  Conflict, HttpError, NotFound, reply, ServiceUnavailable, Unauthorized, type Context, type HandlerResult,
  type Middleware, type Postern, type Reply,
} from 'postern';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

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

test('runs around a route that has answered before, when the group or the application adds it later', async () => {
  const app = createApp();
  let add = (_middleware: Middleware): unknown => undefined;
  app.group('/g', (group) => {
    add = (middleware) => group.use(middleware);
    group.get('/in', (ctx) => ctx.state['trail'] ?? []);
  });
  const trail = async (): Promise<unknown> => (await app.request('/g/in')).json();
  expect(await trail()).toEqual([]);
  add(mark('group'));
  expect(await trail()).toEqual(['group']);
  app.use(mark('app'));
  expect(await trail()).toEqual(['app', 'group']);
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
  expect([response.status, response.headers.get('x-a'), await response.json()])
    .toEqual([201, 'b', { wrapped: { a: 1 } }]);
});

test.for<[string, () => unknown, number, string]>([
  ['a plain value', () => ({ from: 'middleware' }), 200, '{"from":"middleware"}'],
  ['a string', () => 'text', 200, 'text'],
  ['an empty reply', () => reply(), 204, ''],
  ['a reply', () => reply('made', { status: 202 }), 202, 'made'],
  ['a Response', () => new Response('standard', { status: 203 }), 203, 'standard'],
])('may return %s without calling next()', async ([, value, status, body]) => {
  const app = createApp().get('/', () => 'handler').use(() => value() as string);
  const response = await fetch((await serve(app)).url);
  expect([response.status, await response.text()]).toEqual([status, body]);
});

test.for<[string, (error: NotFound) => unknown]>([
  ['was thrown', (error) => { throw error; }],
  ['was returned in a reply', (error) => reply(error)],
])('next() gives the error reply of what %s, with the error, and middleware may answer instead', async ([, fail]) => {
  const thrown = new NotFound('mine', { headers: { 'x-of-error': 'yes' } });
  const seen: unknown[] = [];
  const app = createApp().get('/', () => fail(thrown)).use(async (_ctx, next) => {
    const { error, status, headers, body } = await next();
    seen.push(error, status, headers.get('x-of-error'), body);
    return reply('rescued', { status: 200 });
  });
  expect(await (await fetch((await serve(app)).url)).text()).toBe('rescued');
  expect(seen).toEqual([
    thrown,
    404,
    'yes',
    { message: 'Not found.', description: 'mine', error_code: { name: 'framework_error_unspecified', value: 999998 } },
  ]);
});

test('a reply to a request that did not fail has no error', async () => {
  const seen: unknown[] = [];
  const app = createApp().get('/', () => 'fine').use(async (_ctx, next) => void seen.push((await next()).error));
  expect(await (await app.request('/')).text()).toBe('fine');
  expect(seen).toEqual([undefined]);
});

/** What middleware may return nothing from: the reply of what is inside stands. */
const SILENT: [string, Middleware][] = [
  ['awaited', async (_ctx, next) => { await next(); }],
  ['called', (_ctx, next) => { void next(); }],
  ['returned', (_ctx, next) => next()],
  ['called later', async (_ctx, next) => { await Promise.resolve(); void next(); }],
];
describe.for(SILENT)('next() that is %s', ([, middleware]) => {
  test.for([
    ['a value', () => ({ a: 1 }), 200, '{"a":1}'],
    ['a promise', async () => { await new Promise((resolve) => setTimeout(resolve, 5)); return 'late'; }, 200, 'late'],
    ['nothing', () => undefined, 204, ''],
    ['a thrown error', () => { throw new NotFound('gone'); }, 404, 'gone'],
    ['a returned error', () => new NotFound('gone'), 404, 'gone'],
    ['a stream', () => Readable.from(['a', 'b']), 200, 'ab'],
  ] as [string, () => HandlerResult | Promise<HandlerResult>, number, string][])(
    'loses not %s',
    async ([, handler, status, body]) => {
      const app = createApp().use(middleware).get('/', handler);
      const response = await app.request('/');
      expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(body)]);
    },
  );

  test('loses no line of the log, and makes one of it', async () => {
    const logger = createRecorder();
    const app = expectFailures(createApp({ logger }), 500).use(middleware).use(middleware)
      .get('/', () => { throw new Error('unforeseen'); });
    expect((await app.request('/')).status).toBe(500);
    expect(logger.entries.map(({ level, message, object }) => [level, message, String(object['err'])]))
      .toEqual([['error', 'request failed', 'Error: unforeseen']]);
  });
});

test('neither calling next() nor returning anything is a 500, and the log has the remedy', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500).use(() => undefined).get('/', () => 'never');
  expect((await app.request('/')).status).toBe(500);
  expect(String(logger.entries[0]?.object['err']))
    .toMatch(/neither called next\(\) nor returned a reply; return next\(\), or a reply of its own/);
});

describe('headers that middleware sets are on every reply', () => {
  test.for([
    ['/fine', 200], ['/missing', 404], ['/refused', 401], ['/broken', 500], ['/cyclic', 500], ['/returned', 409],
    ['/nowhere', 404], ['/%zz', 400], ['/post', 405], ['/users/health/', 200],
  ] as const)('%s: %i', async ([path, status]) => {
    const service = expectFailures(createApp(), ...(status === 500 ? [500] : []));
    service.use(async (_ctx, next) => {
      const replied = await next();
      replied.headers.set('access-control-allow-origin', '*');
    });
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    service
      .get('/fine', () => 'fine')
      .get('/missing', () => {
        throw new NotFound();
      })
      .get('/refused', () => {
        throw new Unauthorized();
      });
    service
      .get('/broken', () => {
        throw new Error('unforeseen');
      })
      .get('/cyclic', () => cyclic)
      .get('/returned', () => new Conflict())
      .post('/post', () => 1);
    const response = await service.request(path);
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([status, '*']);
    await response.text();
  });
});

test('a failure is logged as what leaves in the end', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 503).get('/', () => { throw new Error('inner'); });
  app.use(async (_ctx, next) => {
    const { error } = await next();
    throw new ServiceUnavailable('later', { cause: error });
  });
  expect((await app.request('/')).status).toBe(503);
  expect(logger.entries.map(({ object }) => [String(object['err']), object['status_code']]))
    .toEqual([['ServiceUnavailable: Service unavailable.', 503]]);
});

test.for<[string, Middleware]>([
  ['and returns nothing', async (_ctx, next) => { (await next()).body = new NotFound(); }],
  ['and returns it', async (_ctx, next) => Object.assign(await next(), { body: new NotFound() })],
])('an error that middleware makes the body of a reply, %s, is a failure in its place', async ([, middleware]) => {
  const logger = createRecorder();
  const app = createApp({ logger }).use(middleware).get('/', () => { throw new Error('inner'); });
  expect((await app.request('/')).status).toBe(404);
  expect(logger.entries.map(({ object }) => [String(object['err']), object['status_code']]))
    .toEqual([['NotFound: Not found.', 404]]);
});

test.for<[string, Middleware, number, [unknown, number][]]>([
  ['another reply', async (_ctx, next) => ((await next()).error ? reply('down', { status: 502 }) : undefined), 502,
    [['error', 502]]],
  ['a reply that is no error', async (_ctx, next) => ((await next()).error ? 'cached' : undefined), 200, [['debug', 200]]],
  ['a reply that can not be sent', async (_ctx, next) => { (await next()).body = { member: () => 1 }; }, 500,
    [['error', 500], ['error', 500]]],
])('a failure that middleware answers with %s is logged', async ([, middleware, status, logged]) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), status).use(middleware);
  app.get('/', () => { throw new Error('inner'); });
  expect((await app.request('/')).status).toBe(status);
  expect(logger.entries.map(({ level, object }) => [level, object['status_code']])).toEqual(logged);
  expect(logger.entries[0]?.object['err']).toMatchObject({ message: 'inner' });
});

test('the 404 that a middleware gets is its own: what it writes there is seen by no other request', async () => {
  const seen: unknown[] = [];
  const app = createApp().use(async (_ctx, next) => {
    const { error } = await next();
    seen.push('mark' in (error as object));
    Object.assign(error as object, { mark: true });
  });
  for (const _ of [1, 2]) expect((await app.request('/nowhere')).status).toBe(404);
  expect(seen).toEqual([false, false]);
});

describe('a stream that is not sent is destroyed', () => {
  test.for<[string, Middleware]>([
    ['middleware throws behind next()', async (_ctx, next) => { await next(); throw new NotFound(); }],
    ['middleware replies in its place', async (_ctx, next) => { await next(); return 'instead'; }],
    ['middleware replaces the body',
      async (_ctx, next) => { const replied = await next(); return reply('instead', { status: replied.status }); }],
    ['middleware does not wait', (_ctx, next) => { void next(); return 'instead'; }],
    ['middleware sets another body', async (_ctx, next) => { const replied = await next(); replied.body = 'instead'; }],
    ['the status allows none', async (_ctx, next) => { (await next()).status = 204; }],
  ])('where %s', async ([, middleware]) => {
    const streams: Readable[] = [];
    const app = createApp().use(middleware).get('/', () => {
      const stream = new Readable({ read() {} });
      streams.push(stream);
      return stream;
    });
    for (let i = 0; i < 5; i += 1) await (await app.request('/')).text();
    await expect.poll(() => streams.map(({ destroyed }) => destroyed)).toEqual([true, true, true, true, true]);
  });
});

test('calling next() twice throws', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500).get('/', () => 'ok').use(async (_ctx, next) => {
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
  const app = createApp().get('/', () => new Response('body', { status: 206, headers: { 'x-a': 'b' } }))
    .use(async (_ctx, next) => (seen = await next()));
  const response = await fetch((await serve(app)).url);
  expect([response.status, response.headers.get('x-a'), await response.text()]).toEqual([206, 'b', 'body']);
  expect([seen?.status, seen?.headers.get('x-a')]).toEqual([206, 'b']);
});

const SURROUNDINGS: readonly [string, (app: Postern, handler: (ctx: Context) => never) => Postern][] = [
  ['alone', (app, handler) => app.get('/', handler)],
  ['behind middleware', (app, handler) => app.use(mark('m')).get('/', handler)],
  ['of a deprecated route', (app, handler) => app.get('/', { deprecated: { at: '2026-01-01' } }, handler)],
];
test.for(SURROUNDINGS)('a handler %s that fails in the middle of its own reply cuts the connection', { timeout: 5000 }, async ([, add]) => {
  const app = add(expectFailures(createApp(), 500), (ctx) => {
    ctx.raw.res.writeHead(200, { 'content-length': 10 }).write('part');
    throw new Error('in the middle');
  });
  const { port } = await serve(app);
  const socket = connectTo(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  socket.resume();
  await once(socket, 'close');
});
