/**
 * A stream that fails as its handler returns it is a 500, whatever is around the handler. An `error` event without a
 * listener would end the process.
 */

import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { connect, endpoint, reply } from 'postern';
import type { Context, Handler, HandlerResult, Middleware, Postern, StandardSchemaV1 } from 'postern';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';
import { WireConnection } from '../support/strict-client.js';

const failure = new Error('the source failed');

/** Streams that fail before the promise of an asynchronous handler is resolved. Such a failure is the handler's own. */
const AT_ONCE: Readonly<Record<string, () => Readable>> = {
  'was destroyed before it is returned': () => new Readable({ read() {} }).destroy(failure),
  'is destroyed in the next tick': () => {
    const stream = new Readable({ read() {} });
    process.nextTick(() => stream.destroy(failure));
    return stream;
  },
  'fails while it is constructed': () => new Readable({ read() {}, construct: (done) => done(failure) }),
};

/** Streams that fail later. */
const LATER: Readonly<Record<string, () => Readable>> = {
  'is destroyed in a microtask': () => {
    const stream = new Readable({ read() {} });
    queueMicrotask(() => stream.destroy(failure));
    return stream;
  },
  'is destroyed in the next turn': () => {
    const stream = new Readable({ read() {} });
    setImmediate(() => stream.destroy(failure));
    return stream;
  },
  'is a file that does not exist': () => createReadStream('/nonexistent'),
  'reads nothing but an error': () => new Readable({ read() { this.destroy(failure); } }),
};

const STREAMS: typeof LATER = { ...AT_ONCE, ...LATER };

const pass: Middleware = (_ctx, next) => next();
const passLater: Middleware = async (_ctx, next) => {
  await turn();
  const answered = await next();
  await turn();
  return answered;
};
const accept: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };

/** Ways to put something around a handler. */
const AROUND: Readonly<Record<string, (app: Postern, handler: Handler) => unknown>> = {
  'nothing around': (app, handler) => app.get('/', handler),
  'middleware of the application': (app, handler) => app.use(pass).get('/', handler),
  'middleware that takes several turns': (app, handler) => app.use(passLater).get('/', handler),
  'middleware of a group': (app, handler) => app.group('', (group) => void group.use(pass).get('/', handler)),
  'middleware of a route': (app, handler) => app.get('/', { middleware: [pass, passLater] }, handler),
  'middleware of Connect': (app, handler) => app.use(connect((_req, _res, next) => next())).get('/', handler),
  'a timeout': (app, handler) => app.get('/', { timeout: 60_000 }, handler),
  'a timeout and middleware': (app, handler) => app.get('/', { timeout: 60_000, middleware: [pass] }, handler),
  'a schema': (app, handler) => app.get('/', { query: accept }, (ctx: Context) => handler(ctx)),
  'endpoint()': (app, handler) => app.get('/', endpoint({}, handler)),
};

/** Ways to return a stream. */
const RETURNS: Readonly<Record<string, (stream: () => Readable) => Handler>> = {
  'a handler': (stream) => () => stream(),
  'an asynchronous handler': (stream) => async () => stream(),
  'a reply': (stream) => () => reply(stream(), { headers: { 'content-type': 'text/plain' } }),
  'an asynchronous reply': (stream) => async () => reply(stream()) as HandlerResult,
};

describe.for(Object.keys(AROUND))('with %s, a stream of', (around) => {
  test.for(
    Object.keys(RETURNS).flatMap((how) => {
      return Object.keys(how.includes('asynchronous') ? LATER : STREAMS).map((what) => ({ how, what }));
    }),
  )('$how that $what is a 500 and one line', async ({ how, what }) => {
    const logger = createRecorder();
    const app = expectFailures(createApp({ logger }), 500);
    const stream = STREAMS[what] as () => Readable;
    AROUND[around]?.(app, RETURNS[how]?.(stream) as Handler);
    const { port } = await serve(app);
    const client = await WireConnection.open(port);
    await client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect((await client.finalResponse())?.status).toBe(500);
    await client.closed;
    expect(logger.entries.map(({ level, message }) => [level, message])).toEqual([['error', 'request failed']]);
  });
});

test.for(Object.keys(STREAMS))('a stream that %s, and that HEAD does not read, is no harm', async (what) => {
  const app = expectFailures(createApp()).use(pass).get('/', STREAMS[what] as () => Readable);
  const response = await app.request('/', { method: 'HEAD' });
  expect([200, 500]).toContain(response.status);
  if (response.status === 500) expectFailures(app, 500);
});

test.for(Object.keys(STREAMS))('a stream that %s, and that middleware replaces, is no harm', async (what) => {
  const app = createApp().use(async (_ctx, next) => {
    (await next()).body = 'other';
  });
  expect(await (await app.get('/', STREAMS[what] as () => Readable).request('/')).text()).toBe('other');
});
