/** What once hung a handler, leaked a stream or ended the process. */

import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { NotFound, reply, type HandlerResult } from 'postern';
import { createJsonLogger } from '../../src/log.js';
import { rawExchange, parseResponses } from '../support/raw.js';
import { createApp, createRecorder, serve } from '../support/serve.js';

const upload = 'POST /t HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc';

test.for(['text', 'json', 'bytes', 'stream'] as const)('a client that leaves in mid-upload ends %s() and aborts the signal', async (form) => {
  let aborted = false;
  let arrived = false;
  const app = createApp();
  const finished = new Promise<string>((resolve) => app.post('/t', async (ctx) => {
    ctx.signal.addEventListener('abort', () => (aborted = true));
    arrived = true;
    try {
      if (form === 'stream') for await (const chunk of ctx.stream()) void chunk;
      else await ctx[form]();
      resolve('read');
    } catch (error) {
      resolve(String(error));
      throw error;
    }
  }));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write(upload));
  await expect.poll(() => arrived).toBe(true);
  socket.destroy();
  expect(await finished).toMatch(/Error/);
  await expect.poll(() => aborted).toBe(true);
  await expect.poll(() => app.metrics.expose()).toContain('active_task_count 0.0');
});

test('requestTimeout answers 408, closes the connection and ends the reader', async () => {
  const app = createApp({ headersTimeout: 100, requestTimeout: 200 });
  const finished = new Promise<string>((resolve) => app.post('/t', async (ctx) => {
    try {
      return await ctx.text();
    } catch (error) {
      resolve(String(error));
      throw error;
    }
  }));
  const { port } = await serve(app);
  const [response] = parseResponses(await rawExchange(port, upload, 10_000));
  expect([response?.status, response?.headers['connection']]).toEqual([408, 'close']);
  expect(await finished).toMatch(/Error/);
});

test('a value that throws when it is looked at gives 500', async () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const app = createApp().get('/then', () => ({ get then(): never { throw new Error('g'); } })).get('/proxy', () => proxy);
  const { url } = await serve(app);
  expect((await fetch(`${url}/then`)).status).toBe(500);
  expect((await fetch(`${url}/proxy`)).status).toBe(500);
});

test.for([204, 304, 99])('a stream that is not sent, because of status %i, is destroyed', async (status) => {
  const source = new Readable({ read() {} });
  const app = createApp().get('/', () => reply(source, { status }));
  await (await fetch((await serve(app)).url)).text();
  expect(source.destroyed).toBe(true);
});

test('a stream returned after its client has left is destroyed', async () => {
  const source = new Readable({ read() {} });
  let arrived = false;
  const app = createApp().get('/', (ctx) => new Promise<Readable>((resolve) => {
    arrived = true;
    ctx.signal.addEventListener('abort', () => resolve(source));
  }));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  await expect.poll(() => arrived).toBe(true);
  socket.destroy();
  await expect.poll(() => source.destroyed).toBe(true);
});

test.for<[string, (cancelled: () => void) => HandlerResult]>([
  ['a ReadableStream', (cancelled) => reply(new ReadableStream({ cancel: cancelled }), { status: 304 })],
  ['the body of a Response', (cancelled) => reply(new Response(new ReadableStream({ cancel: cancelled })).body, { status: 99 })],
])('%s that is not sent is cancelled', async ([, make]) => {
  let wake = (): void => undefined;
  const cancelled = new Promise<void>((resolve) => (wake = resolve));
  const app = createApp().get('/', () => make(() => wake()));
  await (await fetch((await serve(app)).url)).text();
  await cancelled;
});

test('a body that was read from ctx.raw is not taken for an empty one', async () => {
  const app = createApp().post('/', async (ctx) => {
    for await (const _ of ctx.raw.req);
    return ctx.text();
  });
  const { url } = await serve(app);
  expect((await fetch(url, { method: 'POST', body: 'abc' })).status).toBe(500);
});

async function countChunks(stream: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _ of stream) count += 1;
  return count;
}

test('a request without a body has an empty one, however it is read', async () => {
  const app = createApp().get('/', async (ctx) => [await ctx.text(), (await ctx.bytes()).length, (await ctx.form()).size])
    .get('/stream', (ctx) => countChunks(ctx.stream()))
    .get('/raw', (ctx) => countChunks(ctx.raw.req));
  const { url } = await serve(app);
  expect(await (await fetch(url)).json()).toEqual(['', 0, 0]);
  expect(await (await fetch(`${url}/stream`)).json()).toBe(0);
  expect(await (await fetch(`${url}/raw`)).json()).toBe(0);
});

test('a logger whose promise rejects does not take the process down', async () => {
  const fail = async (): Promise<void> => { throw new Error('log'); };
  const app = createApp({ logger: { debug: fail, info: fail, warn: fail, error: fail } }).get('/', () => { throw new Error('x'); });
  const { url } = await serve(app);
  expect((await fetch(url)).status).toBe(500);
  await new Promise((resolve) => setImmediate(resolve));
  expect((await fetch(url)).status).toBe(500);
});

test.for<[string, PropertyDescriptorMap]>([
  ['a status that is none of an error', { statusCode: { value: 200 } }],
  ['no code', { errorCode: { value: null } }],
  ['a getter that throws', { statusCode: { get: () => { throw new Error('trap'); } } }],
])('an API error that was given %s gives 500', async ([, change]) => {
  const { url } = await serve(createApp().get('/', () => { throw Object.defineProperties(new NotFound(), change); }));
  for (const _ of [1, 2]) expect((await fetch(url)).status).toBe(500);
});

test('an error that can not even be printed is logged all the same', async () => {
  const lines: string[] = [];
  const hostile = new Proxy({}, { ownKeys: () => { throw new Error('trap'); }, getPrototypeOf: () => { throw new Error('trap'); } });
  createJsonLogger('users', (line) => lines.push(line)).error({ err: { get cause() { return hostile; }, [Symbol.for('nodejs.util.inspect.custom')]: () => { throw new Error('trap'); }, toJSON() { throw new Error('trap'); } } }, 'failed');
  expect(lines.map((line) => JSON.parse(line) as object)).toEqual([expect.objectContaining({ level: 'error', msg: 'failed' })]);
});

test.for([
  ['of a declared length', '/', 'Content-Length: 10\r\n\r\nabc'],
  ['in chunks', '/', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'],
  ['too long to be thrown away', '/', 'Content-Length: 9000000\r\n\r\nabc'],
  ['of a declared length beyond the limit', '/read', 'Content-Length: 2000\r\n\r\nabc'],
  ['in chunks beyond the limit', '/read', `Transfer-Encoding: chunked\r\n\r\n7d0\r\n${'x'.repeat(2000)}\r\n3\r\nab`],
] as const)('nothing is kept of a request that was answered before its body, %s, and whose client left', async ([, path, rest]) => {
  const contexts: WeakRef<object>[] = [];
  const app = createApp({ bodyLimit: 1000 });
  app.use((ctx, next) => {
    contexts.push(new WeakRef(ctx));
    return next();
  });
  app.post('/', () => 'early').post('/read', (ctx) => ctx.text());
  const { port } = await serve(app);
  for (let i = 0; i < 20; i += 1) {
    await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${rest}`));
      socket.once('data', () => (i % 2 === 0 ? socket.destroy() : socket.resetAndDestroy())).once('close', resolve);
    });
  }
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  expect(contexts.length).toBe(20);
  await expect.poll(() => {
    collectGarbage();
    return contexts.filter((context) => context.deref() !== undefined).length;
  }, { timeout: 10_000 }).toBeLessThan(3);
});

test('100 Continue of a pipelined request comes behind the reply before it, and before its own', async () => {
  const app = createApp().get('/first', () => new Promise((resolve) => setTimeout(() => resolve('first'), 50))).post('/second', (ctx) => ctx.text());
  const { port } = await serve(app);
  const text = await rawExchange(port, 'GET /first HTTP/1.1\r\nHost: x\r\n\r\nPOST /second HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 6\r\n\r\nsecond');
  const [first, second] = [text.indexOf('first'), text.lastIndexOf('HTTP/1.1 200')];
  const informational = text.indexOf('HTTP/1.1 100');
  expect(second).toBeGreaterThan(first);
  if (informational !== -1) expect([first < informational, informational < second]).toEqual([true, true]);
  expect(text.endsWith('second')).toBe(true);
});

test('a body that came in several buffers before it was asked for is read whole', async () => {
  const app = createApp().post('/', async (ctx) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return (await ctx.bytes()).length;
  });
  const { url } = await serve(app);
  for (const length of [1000, 65_000, 99_999, 500_000]) expect(await (await fetch(url, { method: 'POST', body: 'x'.repeat(length) })).json()).toBe(length);
});

test('a value that throws while it is being sent, and again while it is thrown away, gives 500', async () => {
  const trap = new Proxy({}, { has: (_target, key) => { if (key === 'then') return false; throw new Error('trap'); } });
  const { url } = await serve(createApp().get('/', () => trap));
  for (const _ of [1, 2]) expect((await fetch(url)).status).toBe(500);
});

test('a reply written by hand and finished before the handler ends is counted with its own status', async () => {
  const app = createApp().get('/', async ({ raw: { res } }) => {
    await new Promise((resolve) => res.writeHead(202).once('close', resolve).end('by hand'));
  });
  expect((await fetch((await serve(app)).url)).status).toBe(202);
  await expect.poll(() => app.metrics.expose()).toContain('http_request_duration_seconds_count{method="GET",route="/",status_code="202"} 1.0');
});

test('an error after a reply that was written by hand is logged', async () => {
  const logger = createRecorder();
  const app = createApp({ logger }).get('/', async ({ raw: { res } }) => {
    await new Promise((resolve) => res.once('close', resolve).end('by hand'));
    throw new Error('afterwards');
  });
  await fetch((await serve(app)).url);
  await expect.poll(() => logger.entries.map(({ object }) => String(object['err']))).toEqual(['Error: afterwards']);
});

test('the signal does not abort when a reply is done before the body has arrived', async () => {
  let signal: AbortSignal | undefined;
  const app = createApp().post('/t', (ctx) => {
    signal = ctx.signal;
    return 'early';
  }).get('/', () => 'next');
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write(upload));
  let text = '';
  socket.on('data', (chunk) => (text += String(chunk)));
  await expect.poll(() => text).toContain('early');
  socket.write('defghijGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await expect.poll(() => text).toContain('next');
  expect(signal?.aborted).toBe(false);
});

test('a body that breaks off under a streamed reply of declared length leaves the process serving', async () => {
  let started = false;
  const app = createApp().get('/', () => 'ok').post('/t', () => reply((async function* () {
    yield 'abc';
    started = true;
    await new Promise(() => undefined);
  })(), { headers: { 'content-length': '10' } }));
  const { port, url } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write('POST /t HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'));
  const closed = new Promise((resolve) => socket.on('error', () => undefined).once('close', resolve));
  socket.resume();
  await expect.poll(() => started).toBe(true);
  socket.write('zz\r\n');
  await closed;
  expect(await (await fetch(url)).text()).toBe('ok');
});

test('what is no promise cannot be tracked, and times that are none throw', async () => {
  const app = createApp();
  for (const value of [5, null, {}]) expect(() => app.track(value as never)).toThrow(TypeError);
  expect(app.metrics.expose()).toContain('active_task_count 0.0');
  for (const options of [{ delay: -1 }, { timeout: NaN }, { timeout: '5' }]) {
    await expect(app.close(options as never)).rejects.toThrow(TypeError);
    await expect(app.run({ port: 0, ...options } as never)).rejects.toThrow(TypeError);
  }
  await app.close({ delay: undefined, timeout: undefined } as never);
});

test('a time limit beyond what timers can do waits instead of cutting', async () => {
  let release = (): void => undefined;
  const app = createApp().get('/', () => new Promise((resolve) => (release = () => resolve('done'))));
  const { port } = await serve(app);
  const answered = rawExchange(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 5000);
  await expect.poll(() => app.metrics.expose()).toContain('active_task_count 1.0');
  const closed = app.close({ timeout: Infinity });
  await new Promise((resolve) => setTimeout(resolve, 30));
  release();
  await closed;
  expect(await answered).toContain('done');
});

test('an error given to the log as the object keeps its type, message and stack', async () => {
  const logger = createRecorder();
  const error = new TypeError('boom');
  const app = createApp({ logger }).get('/', (ctx) => ctx.log.error(error, 'failed'));
  await fetch((await serve(app)).url);
  expect(logger.entries[0]).toMatchObject({ object: { err: error }, message: 'failed' });
});

test('a service call with a wrong signal throws before anything is sent', async () => {
  const app = createApp({ settings: { SERVICE_CONNECTIONS: ['a=http://127.0.0.1:1'] } });
  await expect(app.service('a').get('/', { signal: new AbortController() as never })).rejects.toThrow(TypeError);
});

test('a health check that begins to fail is seen by the next probe', async () => {
  let healthy = true;
  const app = createApp();
  app.health.check('x', () => healthy);
  const { url } = await serve(app);
  expect((await fetch(`${url}/users/health/`)).status).toBe(200);
  healthy = false;
  expect((await fetch(`${url}/users/health/`)).status).toBe(503);
});
