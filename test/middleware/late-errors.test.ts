/**
 * Errors of middleware for Express after it has called `next()`: each is the reply, or a line in the log.
 *
 * @module-tag package
 */

import { once } from 'node:events';
import { createRequire } from 'node:module';
import { connect as connectTo } from 'node:net';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { connect, NotFound, reply, type ConnectMiddleware, type Middleware, type Postern } from 'postern';
import { createApp, createRecorder, expectFailures, serve, type Entry } from '../support/serve.js';

const require = createRequire(import.meta.url);
const TOO_LATE = 'middleware failed too late to change the reply';

/** A promise with its functions. */
function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

const late = (): Error => Object.assign(new Error('too late'), { status: 503 });
const errorsIn = (logger: { readonly entries: Entry[] }): [string | undefined, unknown][] =>
  logger.entries.filter(({ level }) => level === 'error').map(({ message, object }) => [message, object['err']]);

/** Each way in which a middleware may fail after `next()`, when a promise resolves. */
const WAYS: Readonly<Record<string, (when: Promise<void>, error: Error) => ConnectMiddleware>> = {
  'a rejection': (when, error) => async (_req, _res, next) => { next(); await when; throw error; },
  'next(error)': (when, error) => (_req, _res, next) => { next(); void when.then(() => next(error)); },
  'an object with then': (when, error) => (_req, _res, next) => {
    next();
    return { then: (_: unknown, reject: (error: Error) => void) => void when.then(() => reject(error)) };
  },
};
const ways = Object.entries(WAYS);

test.for<[string, ConnectMiddleware]>([
  ['throw', (_req, _res, next) => { next(); throw late(); }],
  ['a rejection at once', async (_req, _res, next) => { next(); throw late(); }],
  ['next(error)', (_req, _res, next) => { next(); next(late()); }],
])('%s right after next() is the reply, in place of the handler’s', async ([, middleware]) => {
  const destroyed = deferred();
  const app = expectFailures(createApp(), 503).use(connect(middleware));
  app.get('/', () => new Readable({ read() {}, destroy: (_error, done) => { destroyed.resolve(); done(null); } }));
  const response = await app.request('/');
  expect([response.status, await response.json()])
    .toEqual([503, expect.objectContaining({ message: 'Service Unavailable' })]);
  await destroyed.promise;
});

test.for(ways)('%s before the handler has replied is the reply', async ([, fail]) => {
  const started = deferred();
  const ended = deferred();
  const app = expectFailures(createApp(), 503).use(connect(fail(started.promise, late())));
  app.get('/', async (ctx) => {
    started.resolve();
    await ended.promise;
    // The handler is late, too: a head that it writes is dropped.
    ctx.raw.res.setHeader('x-late', '1');
    ctx.raw.res.writeHead(200);
    return 'handler';
  });
  const response = await app.request('/');
  expect([response.status, response.headers.has('x-late')]).toEqual([503, false]);
  await response.text();
  ended.resolve();
});

test.for(ways)('%s while outer middleware runs is the reply, with its headers', async ([, fail]) => {
  const replied = deferred();
  const failed = deferred();
  const seen: number[] = [];
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 503);
  app.use(async (_ctx, next) => {
    const inner = await next();
    seen.push(inner.status);
    inner.headers.set('x-outer', '1');
    replied.resolve();
    await failed.promise;
  });
  const error = late();
  app.use(connect(fail(replied.promise.then(() => setImmediate(failed.resolve) && undefined), error)));
  app.get('/', () => reply('handler', { headers: { 'x-own': '1', 'content-language': 'en' } }));
  const response = await app.request('/');
  expect([response.status, seen, await response.json()])
    .toEqual([503, [200], expect.objectContaining({ message: 'Service Unavailable' })]);
  expect(['x-outer', 'x-own', 'content-language'].map((name) => response.headers.get(name))).toEqual(['1', '1', null]);
  expect(errorsIn(logger)).toEqual([['request failed', error]]);
});

test.for(ways)('%s before the first chunk of a stream is the reply, and ends the stream', async ([, fail]) => {
  const asked = deferred();
  const destroyed = deferred();
  const app = expectFailures(createApp(), 503).use(connect(fail(asked.promise, late())));
  app.get('/', () => new Readable({
    read: asked.resolve,
    destroy: (_error, done) => { destroyed.resolve(); done(null); },
  }));
  const response = await app.request('/');
  expect([response.status, await response.json()])
    .toEqual([503, expect.objectContaining({ message: 'Service Unavailable' })]);
  await destroyed.promise;
});

describe('after the head', () => {
  const replies: Readonly<Record<string, (app: Postern, end: Promise<void>) => unknown>> = {
    'of a stream': (app, end) => app.get('/', async function* () { yield 'be'; await end; yield 'gun'; }),
    'that the handler wrote': (app, end) => app.get('/', async ({ raw: { res } }) => {
      res.writeHead(200).write('be');
      await end;
      res.end('gun');
    }),
    'that a mount wrote': (app, end) => app.mount('/', (_req, res) => {
      res.writeHead(200).write('be');
      void end.then(() => res.end('gun'));
    }),
    'of a complete reply': (app) => app.get('/', () => 'begun'),
  };
  const cases = ways.flatMap(([way, fail]) =>
    Object.entries(replies).map(([which, add]) => ({ way, fail, which, add })),
  );
  test.for(cases)('$which, $way is one line at error, and the reply is whole', async ({ fail, add }) => {
    const sent = deferred();
    const logged = deferred();
    const logger = createRecorder();
    const write = logger.error.bind(logger);
    logger.error = (object, message) => { write(object, message); logged.resolve(); };
    const app = expectFailures(createApp({ logger }), TOO_LATE);
    const error = late();
    app.use(connect(Object.defineProperty(fail(sent.promise, error), 'name', { value: 'saver' })));
    add(app, logged.promise);
    const { url } = await serve(app);
    const response = await fetch(`${url}/?secret`, { headers: { 'x-request-id': 'r1' } });
    sent.resolve();
    expect([response.status, await response.text()]).toEqual([200, 'begun']);
    await logged.promise;
    expect(logger.entries.filter(({ level }) => level === 'error')).toEqual([
      { level: 'error', message: TOO_LATE,
        object: { err: error, middleware: 'saver', request_id: 'r1', method: 'GET', target: '/' } },
    ]);
  });

  test('a session that cannot be saved is one line at error', async () => {
    type Session = ((options: object) => ConnectMiddleware) & { readonly Store: new () => object };
    const session = require('express-session') as Session;
    const error = new Error('the store is full');
    const store = Object.assign(new session.Store(), {
      get: (_id: string, done: (error: null) => void) => done(null),
      set: (_id: string, _session: object, done: (error: Error) => void) => done(error),
    });
    const logger = createRecorder();
    const app = expectFailures(createApp({ logger }), TOO_LATE);
    app.use(connect(session({ secret: 's', resave: false, saveUninitialized: true, store }))).get('/', () => 'handler');
    const response = await app.request('/');
    expect([response.status, await response.text()]).toEqual([200, 'handler']);
    await expect.poll(() => errorsIn(logger)).toEqual([[TOO_LATE, error]]);
  });

  test.for<[string, ConnectMiddleware]>([
    ['a rejection', async (_req, res) => { res.end('own'); await once(res, 'close'); throw late(); }],
    ['next(error)', (_req, res, next) => { res.end('own', () => setImmediate(next, late())); }],
  ])('of a reply that the middleware wrote, %s is one line at error', async ([, middleware]) => {
    const logger = createRecorder();
    const app = expectFailures(createApp({ logger }), TOO_LATE).use(connect(middleware));
    expect(await (await app.request('/')).text()).toBe('own');
    await expect.poll(() => errorsIn(logger)).toEqual([[TOO_LATE, expect.any(Error)]]);
  });
});

test('however soon it comes, an error is the reply or a line, and never both', async () => {
  for (let ticks = 0; ticks < 40; ticks += 1) {
    const ended = deferred();
    const logger = createRecorder();
    const app = createApp({ logger }).use(connect(async (_req, _res, next) => {
      next();
      try {
        for (let tick = 0; tick < ticks; tick += 1) await null;
        throw late();
      } finally {
        setImmediate(ended.resolve);
      }
    }));
    app.get('/', () => 'handler');
    const response = await app.request('/');
    await Promise.all([response.text(), ended.promise]);
    const [[message] = []] = errorsIn(logger);
    expect([ticks, response.status, errorsIn(logger).length, message])
      .toEqual([ticks, response.status, 1, response.status === 503 ? 'request failed' : TOO_LATE]);
    expectFailures(app, ...(response.status === 503 ? [503] : [TOO_LATE]));
  }
});

test('however close together a stream and its middleware fail, one failure is the reply', async () => {
  for (let ticks = 0; ticks < 40; ticks += 1) {
    const failing = deferred();
    const ended = deferred();
    const logger = createRecorder();
    const app = createApp({ logger }).use(connect(async (_req, _res, next) => {
      next();
      try {
        await failing.promise;
        for (let tick = 0; tick < ticks; tick += 1) await null;
        throw late();
      } finally {
        setImmediate(ended.resolve);
      }
    }));
    app.get('/', async function* () {
      setImmediate(failing.resolve);
      await failing.promise;
      throw new Error('source');
    });
    const response = await app.request('/');
    await Promise.all([response.text(), ended.promise]);
    const isMiddlewares = response.status === 503;
    expect([ticks, response.status, errorsIn(logger).map(([message, error]) => [message, (error as Error).message])])
      .toEqual(isMiddlewares
        ? [ticks, 503, [['request failed', 'too late']]]
        : [ticks, 500, [['request failed', 'source'], [TOO_LATE, 'too late']]]);
    expectFailures(app, ...(isMiddlewares ? [503] : [500, TOO_LATE]));
  }
});

test('the first of several errors is the reply, and each further one a line', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), TOO_LATE);
  app.use(connect((_req, _res, next) => {
    next(new NotFound('first'));
    next(new Error('second'));
    throw new Error('third');
  }));
  const response = await app.request('/');
  expect([response.status, await response.json()]).toEqual([404, expect.objectContaining({ description: 'first' })]);
  expect(errorsIn(logger)).toMatchObject([[TOO_LATE, { message: 'second' }], [TOO_LATE, { message: 'third' }]]);
});

test('an error of the handler is logged, too, if a later one of the middleware takes its place', async () => {
  const logger = createRecorder();
  const replied = deferred();
  const app = expectFailures(createApp({ logger }), 503);
  const wait: Middleware = async (_ctx, next) => { await next(); replied.resolve(); await new Promise(setImmediate); };
  app.use(wait).use(connect(async (_req, _res, next) => { next(); await replied.promise; throw late(); }));
  app.get('/', () => { throw new Error('first'); });
  const response = await app.request('/');
  expect(response.status).toBe(503);
  await response.text();
  expect(errorsIn(logger))
    .toMatchObject([['request failed', { message: 'first' }], ['request failed', { message: 'too late' }]]);
});

test('when the client has left before a head was sent, an error is a line at debug', async () => {
  const logger = createRecorder();
  const left = deferred();
  const failed = deferred();
  const app = createApp({ logger }).use(connect(async (_req, _res, next) => {
    next();
    await left.promise;
    setImmediate(failed.resolve);
    throw late();
  }));
  app.get('/', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => {
    left.resolve();
    resolve('handler');
  })));
  const { port } = await serve(app);
  const socket = connectTo(port, '127.0.0.1', () => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n', () => socket.destroy());
  });
  await failed.promise;
  const lines = (): unknown[] => logger.entries.map(({ level, object }) => [level, (object['err'] as Error).message]);
  await expect.poll(lines).toEqual([['debug', 'too late']]);
});
