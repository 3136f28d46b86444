/**
 * What breaks off, comes late or never ends: nothing hangs, and nothing is kept.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { reply, type Handler } from 'postern';
import { rawExchange, parseResponses } from '../support/raw.js';
import { createApp, createRecorder, serve } from '../support/serve.js';

const upload = 'POST /t HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc';
const chunked = 'POST /t HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n';

test('requestTimeout answers 408, closes the connection and ends the reader', async () => {
  const app = createApp({ headersTimeout: 1000, requestTimeout: 1000 });
  const finished = new Promise<string>((resolve) => app.post('/t', async (ctx) => {
    try {
      return await ctx.text();
    } catch (error) {
      resolve(String(error));
      throw error;
    }
  }));
  const { port } = await serve(app);
  const [response] = parseResponses(await rawExchange(port, upload));
  expect([response?.status, response?.headers['connection']]).toEqual([408, 'close']);
  expect(await finished).toMatch(/Error/);
});

test.for<[string, number, string, Handler]>([
  ['text() and a time limit', 408, upload, (ctx) => ctx.text()],
  ['stream() and a time limit', 408, upload, (ctx) => ctx.stream().toArray()],
  ['text() and a malformed chunk', 400, chunked, (ctx) => ctx.text()],
  ['the signal and a time limit', 408, upload, async (ctx) => {
    await once(ctx.signal, 'abort');
    throw ctx.signal.reason;
  }],
])('the answer to a body that breaks off goes through middleware and is logged once: %s', async ([, status, head, read]) => {
  const logger = createRecorder();
  const seen: unknown[] = [];
  const app = createApp({ headersTimeout: 300, requestTimeout: 300, logger }).use(async (_ctx, next) => {
    const reply = await next();
    seen.push(reply.status);
    reply.headers.set('access-control-allow-origin', '*');
    return reply;
  });
  const reading = new Promise<void>((resolve) => app.post('/t', (ctx) => (resolve(), read(ctx))));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write(head));
  await reading;
  socket.write(head === chunked ? 'zz\r\n' : 'a');
  const [answer] = parseResponses(String(Buffer.concat(await socket.toArray())));
  expect([answer?.status, answer?.headers['access-control-allow-origin'], seen]).toEqual([status, '*', [status]]);
  expect(logger.entries.map(({ message, object }) => [message, object['status_code']]))
    .toEqual([['request refused', status]]);
});

test.for([
  ['of a declared length', '/', 'Content-Length: 10\r\n\r\nabc'],
  ['in chunks', '/', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'],
  ['too long to be thrown away', '/', 'Content-Length: 9000000\r\n\r\nabc'],
  ['of a declared length beyond the limit', '/read', 'Content-Length: 2000\r\n\r\nabc'],
  ['in chunks beyond the limit', '/read', `Transfer-Encoding: chunked\r\n\r\n7d0\r\n${'x'.repeat(2000)}\r\n3\r\nab`],
] as const)(
  'nothing is kept of a request that was answered before its body, %s, and whose client left',
  async ([, path, rest]) => {
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
    }).toBeLessThan(3);
  },
);

test('100 Continue of a request that waited comes after the reply before it, and before its own', async () => {
  let answerFirst = (): void => undefined;
  const app = createApp()
    .get('/first', () => new Promise<string>((resolve) => (answerFirst = () => resolve('first'))))
    .post('/second', (ctx) => ctx.text());
  let arrived = 0;
  for (const event of ['request', 'checkContinue']) app.server.on(event, () => (arrived += 1));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () =>
    socket.write(
      'GET /first HTTP/1.1\r\nHost: x\r\n\r\nPOST /second HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 6\r\n\r\n',
    ),
  );
  const closed = once(socket, 'close');
  let text = '';
  socket.on('data', (chunk) => (text += String(chunk)));
  await expect.poll(() => arrived).toBe(2);
  expect(text).toBe('');
  answerFirst();
  await expect.poll(() => text).toContain('HTTP/1.1 100');
  socket.write('second');
  await closed;
  expect(text).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\nfirstHTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 [^]*\r\n\r\nsecond$/);
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
  const socket = connect(port, '127.0.0.1', () =>
    socket.write('POST /t HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'),
  );
  const closed = new Promise((resolve) => socket.on('error', () => undefined).once('close', resolve));
  socket.resume();
  await expect.poll(() => started).toBe(true);
  socket.write('zz\r\n');
  await closed;
  expect(await (await fetch(url)).text()).toBe('ok');
});

test('a reply that its client has still to take stays whole when the body of the request breaks off', async () => {
  const length = 32 * 1024 * 1024;
  const app = createApp().post('/t', () => 'x'.repeat(length));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () =>
    socket.write('POST /t HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'),
  );
  await once(socket, 'readable');
  const malformed = once(app.server, 'clientError');
  socket.write('zz\r\n');
  await malformed;
  const [response] = parseResponses(String(Buffer.concat(await socket.toArray() as Buffer[])));
  expect([response?.status, response?.body.length]).toEqual([200, length]);
});
