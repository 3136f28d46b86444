/** What `next` of a middleware for Express leads to, and where: async contexts, special values, promises of any kind. */

import { AsyncLocalStorage } from 'node:async_hooks';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { connect, HttpError, NotFound, reply, type ConnectMiddleware, type Postern } from 'postern';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

describe('the handler runs in the async context that a middleware entered', () => {
  const store = new AsyncLocalStorage<string>();
  const entering: readonly (readonly [string, ConnectMiddleware])[] = [
    ['run()', (_req, _res, next) => store.run('ada', next)],
    ['run() with a callback', (_req, _res, next) => store.run('ada', () => next())],
    ['run() and a wait', (_req, _res, next) => store.run('ada', () => void setTimeout(next, 1))],
    ['run() in an async function', async (_req, _res, next) => store.run('ada', async () => { await null; next(); })],
    ['enterWith()', (_req, _res, next) => { store.enterWith('ada'); next(); }],
  ];
  test.for(entering)('by %s, in each place of a middleware', async ([, enter]) => {
    const app = createApp();
    const read = async (): Promise<object> => {
      const before = store.getStore();
      await new Promise((resolve) => setTimeout(resolve, 1));
      return { before, after: store.getStore() };
    };
    app.group('/group', (group) => { group.use(connect(enter)); group.get('/x', read); });
    app.get('/route', { middleware: [connect(enter)] }, read);
    app.get('/inner', { middleware: [connect(enter), async (_ctx, next) => {
      const inner = await next();
      inner.headers.set('x-user', String(store.getStore()));
    }] }, read);
    app.get('/outside', read);
    for (const path of ['/group/x', '/route', '/inner']) {
      const response = await app.request(path);
      expect([path, await response.json()]).toEqual([path, { before: 'ada', after: 'ada' }]);
      if (path === '/inner') expect(response.headers.get('x-user')).toBe('ada');
    }
    expect(await (await app.request('/outside')).json()).toEqual({});
  });

  test('each of many requests at a time has its own, also while requests wait for the CPU', async () => {
    const app = createApp().use(connect((req, _res, next) => store.run(String(req.headers['x-user']), next)));
    app.get('/', async () => {
      const until = performance.now() + 3;
      while (performance.now() < until);
      await null;
      return store.getStore();
    });
    const { url } = await serve(app);
    const users = Array.from({ length: 40 }, (_, i) => `user ${i}`);
    const ask = async (user: string): Promise<string> =>
      (await fetch(String(url), { headers: { 'x-user': user } })).text();
    expect(await Promise.all(users.map(ask))).toEqual(users);
  });
});

describe('next', () => {
  const values: readonly (readonly [string, unknown, number])[] = [
    ['nothing', undefined, 200], ['null', null, 200], ["''", '', 200], ['0', 0, 200], ['NaN', NaN, 200],
    ['0n', 0n, 200], ['false', false, 200], ["'route'", 'route', 200],
    ["'router'", 'router', 404], ["'other'", 'other', 500], ['1', 1, 500], ['true', true, 500], ['{}', {}, 500],
  ];
  for (const when of ['at once', 'later']) {
    test.for(values)(`with %s, ${when}`, async ([, value, status]) => {
      const app = expectFailures(createApp(), status);
      app.use(connect((_req, _res, next) => void (when === 'later' ? setTimeout(next, 1, value) : next(value))));
      app.get('/', () => 'handler');
      const response = await app.request('/');
      const text = await response.text();
      expect([response.status, text === 'handler']).toEqual([status, status === 200]);
      if (status === 404) expect(text).toBe(await (await createApp().request('/')).text());
    });
  }

  test("'router' is an error reply like any other for outer middleware", async () => {
    const seen: unknown[] = [];
    const app = createApp().use(async (_ctx, next) => {
      const { status, error } = await next();
      seen.push(status, error instanceof HttpError);
    });
    app.get('/', { middleware: [connect((_req, _res, next) => next('router'))] }, () => 'handler');
    await (await app.request('/')).text();
    expect(seen).toEqual([404, true]);
  });

  test('called again, with an error before it or after it, runs the handler once or not at all', async () => {
    let runs = 0;
    const app = createApp();
    const count = (): number => (runs += 1);
    app.get('/twice', { middleware: [connect((_req, _res, next) => { next(); next(); })] }, count);
    app.get('/error', { middleware: [connect((_req, _res, next) => { next(new NotFound('first')); next(); })] }, count);
    expect(await (await app.request('/twice')).json()).toBe(1);
    expect([(await app.request('/error')).status, runs]).toEqual([404, 1]);
  });
});

describe('a middleware or handler whose promise is not of this realm', () => {
  const foreign = runInNewContext(`({
    async resolves(next) { next(); },
    async rejects(error) { await null; throw error; },
    fails(error) { return Promise.reject(error); },
    async value(value) { return value; },
  })`) as {
    resolves(next: () => void): Promise<void>;
    rejects(error: unknown): Promise<never>;
    fails(error: unknown): Promise<never>;
    value<T>(value: T): Promise<T>;
  };
  const thenable = (run: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => void): object => ({
    then: run,
  });
  const error = (): NotFound => new NotFound('nobody');
  const callable = (): object =>
    Object.assign(() => undefined, { then: (_: unknown, reject: (error: unknown) => void) => reject(error()) });

  test.for<[string, ConnectMiddleware, number]>([
    ['resolves', (_req, _res, next) => foreign.resolves(next), 200],
    ['rejects later', () => foreign.rejects(error()), 404],
    ['rejects at once', () => foreign.fails(error()), 404],
    ['is an object with then, which rejects', () => thenable((_, reject) => reject(error())), 404],
    ['is an object with then, which rejects later',
      () => thenable((_, reject) => void setTimeout(reject, 1, error())), 404],
    ['is an object with then, which throws', () => thenable(() => { throw error(); }), 404],
    ['is a function with then', callable, 404],
    ['has a getter then, which throws', () => ({ get then() { throw error(); } }), 404],
    ['rejects with nothing', () => Promise.reject(undefined), 500],
    ['rejects with null', () => foreign.fails(null), 500],
  ])('middleware whose promise %s', async ([, middleware, status]) => {
    const app = expectFailures(createApp().use(connect(middleware)), status).get('/', () => 'handler');
    const response = await app.request('/');
    expect([response.status, await response.text()])
      .toEqual([status, status === 200 ? 'handler' : expect.stringContaining(status === 404 ? 'nobody' : 'Server Error')]);
  });

  test.for<[string, (app: Postern) => unknown]>([
    ['a handler', (app) => app.get('/', () => foreign.rejects(error()))],
    ['a mount', (app) => app.mount('/', () => foreign.rejects(error()))],
    ['middleware', (app) => app.use(() => foreign.rejects(error()) as Promise<undefined>)],
  ])('%s', async ([, add]) => {
    const app = createApp();
    add(app);
    const response = await app.request('/');
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('nobody')]);
  });

  test('a handler of another realm answers', async () => {
    const app = createApp().get('/', () => foreign.value('hello'));
    expect(await (await app.request('/')).text()).toBe('hello');
  });

  test('a middleware that returns a query, which runs when it is awaited, runs it once and does not wait for it', async () => {
    let runs = 0;
    const query = { then: (resolve: (value: unknown) => void) => { runs += 1; resolve(undefined); } };
    const app = createApp().use(connect((_req, _res, next) => { next(); return query; }));
    app.get('/', () => reply('ok', { status: 201 }));
    expect([(await app.request('/')).status, runs]).toEqual([201, 1]);
  });
});

describe('a function that connect does not take', () => {
  test('an error handler is refused with a message that says where errors are handled', () => {
    const handler = (_error: unknown, _req: unknown, _res: unknown, _next: unknown): void => undefined;
    expect(() => connect(handler as never)).toThrow(
      new TypeError('connect takes middleware (req, res, next), not an error handler; handle errors in middleware of '
        + 'Postern: app.use(async (ctx, next) => { const reply = await next(); … reply.error … })'),
    );
    expect(() => createApp().use(handler as never)).toThrow(/handle errors in middleware of Postern.*reply\.error/);
    expect(() => createApp().get('/', { middleware: [handler as never] }, () => 1)).toThrow(/connect\(\) adapts \(req, res, next\)/);
  });

  test('use() of a function with three parameters is refused with a message that says connect', () => {
    expect(() => createApp().use(((_req: unknown, _res: unknown, _next: unknown) => undefined) as never))
      .toThrow(/wrap \(req, res, next\) in connect\(\)/);
  });
});

test('the log of a middleware that fails has its error, once', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500).use(connect(() => foreignError()));
  await (await app.request('/')).text();
  expect(logger.entries.filter(({ level }) => level === 'error')).toMatchObject([
    { message: 'request failed', object: { err: { message: 'elsewhere' }, status_code: 500 } },
  ]);
});

function foreignError(): never {
  throw runInNewContext("new Error('elsewhere')") as Error;
}
