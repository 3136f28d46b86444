/** Errors and promises of another realm, such as that of Jest, count as the ones of ours do. */

import { describe, expect, test } from 'vitest';
import { connect, NotFound, reply, type ConnectMiddleware, type Handler, type Middleware, type Postern } from 'postern';
import { Realm } from '../support/realm.js';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

const realm = new Realm();
const error = (members = ''): object =>
  realm.evaluate(`Object.assign(new TypeError('secret'), {${members}})`) as object;
/** A function whose code, and so whose promise, is of another realm. */
const elsewhere = <Result>(code: string): Result => realm.evaluate(code) as Result;

const FIXED = {
  message: 'Server Error',
  error_code: { name: 'framework_unknown_error', value: 999999 },
};

/** Where an error of another realm may come from. */
const PLACES: Readonly<Record<string, (app: Postern, create: () => object) => unknown>> = {
  'thrown by a handler': (app, create) => app.get('/', () => { throw create(); }),
  'thrown by an asynchronous handler': (app, create) => app.get('/', async () => { throw create(); }),
  'thrown by an asynchronous handler of that realm': (app, create) =>
    app.get('/', elsewhere<(create: () => object) => Handler>('(create) => async () => { throw create(); }')(create)),
  'returned by a handler': (app, create) => app.get('/', () => create()),
  'returned by an asynchronous handler': (app, create) => app.get('/', async () => create()),
  'returned as the body of a reply': (app, create) => app.get('/', () => reply(create())),
  'thrown by middleware': (app, create) => app.use(() => { throw create(); }).get('/', () => 'unreachable'),
  'returned by middleware': (app, create) => app.use(() => create()).get('/', () => 'unreachable'),
  'thrown by a generator': (app, create) => app.get('/', async function* () { throw create(); }),
};

describe.for(Object.keys(PLACES))('an error that is %s', (place) => {
  test('is the fixed 500, with the error in the log', async () => {
    const logger = createRecorder();
    const app = expectFailures(createApp({ logger }), 500);
    PLACES[place]?.(app, error);
    const response = await app.request('/');
    const text = await response.text();
    expect([response.status, JSON.parse(text)]).toEqual([500, expect.objectContaining(FIXED)]);
    expect(text).not.toContain('secret');
    expect(logger.entries).toMatchObject([
      { level: 'error', message: 'request failed', object: { err: { message: 'secret', name: 'TypeError' } } },
    ]);
  });

  test('has its own status and headers if it exposes them', async () => {
    const app = createApp();
    PLACES[place]?.(app, () => error("expose: true, status: 401, headers: { 'WWW-Authenticate': 'Bearer' }"));
    const response = await app.request('/');
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(await response.json()).toMatchObject({ message: 'Unauthorized', description: 'secret' });
  });
});

test('reply.error of an error of another realm is that error', async () => {
  const thrown = error();
  const seen: unknown[] = [];
  const app = expectFailures(createApp(), 500).get('/', () => { throw thrown; });
  app.use(async (_ctx, next) => {
    seen.push((await next()).error);
  });
  await app.request('/');
  expect(seen).toEqual([thrown]);
});

/** Where a promise of another realm may come from, or an object that only has a `then`. */
const RESOLVED: Readonly<Record<string, (app: Postern, promise: () => object) => unknown>> = {
  'a handler': (app, promise) => app.get('/', () => promise()),
  'a handler below middleware': (app, promise) => app.use((_ctx, next) => next()).get('/', () => promise()),
  'a handler with a time limit': (app, promise) => app.get('/', { timeout: 60_000 }, () => promise()),
  'middleware': (app, promise) => app.use(() => promise()).get('/', () => 'unreachable'),
  'an asynchronous handler': (app, promise) => app.get('/', async () => promise()),
};

describe.for(Object.keys(RESOLVED))('%s that returns', (place) => {
  test.for<[string, () => object]>([
    ['a promise of another realm', () => elsewhere('Promise.resolve("late")')],
    ['an object with a then', () => ({ then: (resolve: (value: string) => void) => resolve('late') })],
    ['a function with a then',
      () => Object.assign(() => 1, { then: (resolve: (value: string) => void) => resolve('late') })],
  ])('%s answers with its result', async ([, promise]) => {
    const app = createApp();
    RESOLVED[place]?.(app, promise);
    const response = await app.request('/');
    expect([response.status, await response.text()]).toEqual([200, 'late']);
  });

  test.for<[string, () => object]>([
    ['a promise of another realm', () => elsewhere('Promise.reject(new TypeError("secret"))')],
    ['an object with a then',
      () => ({ then: (_resolve: unknown, reject: (thrown: Error) => void) => reject(new Error('secret')) })],
  ])('%s that rejects is a 500', async ([, promise]) => {
    const logger = createRecorder();
    const app = expectFailures(createApp({ logger }), 500);
    RESOLVED[place]?.(app, promise);
    expect((await app.request('/')).status).toBe(500);
    expect(logger.entries).toMatchObject([
      { level: 'error', message: 'request failed', object: { err: { message: 'secret' } } },
    ]);
  });
});

test('asynchronous middleware of another realm is awaited', async () => {
  const middleware = elsewhere<Middleware>(`async (ctx, next) => {
    const answered = await next();
    answered.headers.set('x-elsewhere', '1');
    return answered;
  }`);
  const response = await createApp().use(middleware).get('/', () => 'inner').request('/');
  expect([response.headers.get('x-elsewhere'), await response.text()]).toEqual(['1', 'inner']);
});

test('asynchronous middleware of Connect of another realm that rejects is a 500', async () => {
  const app = expectFailures(createApp(), 500).get('/', () => 'unreachable');
  app.use(connect(elsewhere<ConnectMiddleware>('async (req, res, next) => { throw new Error("secret"); }')));
  expect((await app.request('/')).status).toBe(500);
});

test.for<[how: string, handler: (thrown: unknown) => never | Promise<never>]>([
  ['synchronous', (thrown) => { throw thrown; }],
  ['asynchronous', async (thrown) => { throw thrown; }],
])('a Proxy of an error that a %s handler throws is that error', async ([, handler]) => {
  const app = createApp().get('/', () => handler(new Proxy(new NotFound('behind a Proxy'), {})));
  const response = await app.request('/');
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ description: 'behind a Proxy' });
});
