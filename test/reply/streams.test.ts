/** Streams as replies: their length, their end, and clients that read slowly. */

import { Readable } from 'node:stream';
import { connect as open } from 'node:net';
import { expect, test } from 'vitest';
import { connect, NotFound, reply, type HandlerResult } from 'postern';
import { rawExchange } from '../support/raw.js';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

async function* chunks(...parts: (string | Uint8Array)[]): AsyncGenerator<string | Uint8Array> {
  yield* parts;
}

test('a stream that breaks its declared length closes the connection', async () => {
  const { port } = await serve(
    expectFailures(createApp(), 500).get('/', () => reply(chunks('to', 'long'), { headers: { 'content-length': '3' } })),
  );
  const text = await rawExchange(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /users/ping/ HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(text).not.toContain('long');
  expect(text).not.toContain('pong');
});

test.for<[string, string, HandlerResult]>([
  ['a first chunk that is longer', '3', chunks('long')],
  ['no chunk at all', '5', chunks()],
  ['a web stream without a chunk', '5', new Response('').body ?? chunks()],
])('a stream that breaks its declared length with %s is a 500', async ([, length, body]) => {
  const app = expectFailures(createApp(), 500).get('/', () => reply(body, { headers: { 'content-length': length } }));
  const { url } = await serve(app);
  const response = await fetch(url);
  expect([response.status, await response.json()]).toEqual([500, expect.objectContaining({ message: 'Server Error' })]);
});

test('the error of a stream that fails before its first chunk has the headers of middleware and of the reply', async () => {
  const broken = (): Readable => new Readable({ read() { this.destroy(new NotFound()); } });
  const app = createApp().get('/', () => reply(broken(), { headers: { 'set-cookie': 'own=1', 'content-type': 'a/b' } }));
  app.use(async (_ctx, next) => {
    (await next()).headers.set('access-control-allow-origin', '*');
  });
  app.use(connect((_req, res, next) => {
    res.setHeader('x-frame-options', 'DENY').setHeader('set-cookie', 'csrf=2');
    next();
  }));
  const response = await app.request('/');
  expect(response.status).toBe(404);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'access-control-allow-origin': '*', 'x-frame-options': 'DENY', 'content-type': 'application/json',
  });
  expect(response.headers.getSetCookie()).toEqual(['csrf=2', 'own=1']);
});

test.for<[string, (cancelled: () => void) => HandlerResult]>([
  [
    'a Readable',
    (cancelled) =>
      new Readable({
        read() {
          this.push('x'.repeat(1000));
        },
        destroy(error, done) {
          cancelled();
          done(error);
        },
      }),
  ],
  [
    'a ReadableStream',
    (cancelled) =>
      new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1000)), cancel: cancelled }),
  ],
  [
    'an async iterable',
    (cancelled) =>
      (async function* () {
        try {
          for (;;) {
            yield 'x'.repeat(1000);
            await new Promise(setImmediate);
          }
        } finally {
          cancelled();
        }
      })(),
  ],
])('%s is cancelled when the client leaves, and when the method is HEAD', async ([, source]) => {
  let cancelled = 0;
  let wake = (): void => undefined;
  const app = createApp().get('/', () => source(() => { cancelled += 1; wake(); }));
  const { url, port } = await serve(app);
  const left = new Promise<void>((resolve) => (wake = resolve));
  const socket = open(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  socket.once('data', () => socket.destroy());
  await left;
  expect(cancelled).toBe(1);
  const head = await fetch(url, { method: 'HEAD' });
  expect(head.status).toBe(200);
});

test('a slow reader holds a stream back instead of filling memory', async () => {
  let produced = 0;
  const app = createApp().get('/', () =>
    (async function* () {
      for (;;) {
        produced += 65_536;
        yield Buffer.alloc(65_536);
      }
    })(),
  );
  const { port } = await serve(app);
  const socket = open(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  socket.pause();
  let before = -1;
  while (before !== produced) {
    before = produced;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  socket.destroy();
  expect(produced).toBeLessThan(32 * 1024 * 1024);
});

test.for([undefined, null])('a stream that emits %s as its error fails as with any other', async (nothing) => {
  const logger = createRecorder();
  const streamThat = (begin: (stream: Readable) => void): Readable => {
    const stream = new Readable({ read() {} });
    setImmediate(() => {
      begin(stream);
      setImmediate(() => stream.emit('error', nothing));
    });
    return stream;
  };
  const app = expectFailures(createApp({ logger }), 500)
    .get('/none', () => streamThat(() => undefined))
    .get('/some', () => streamThat((stream) => stream.push('some')));
  const { url } = await serve(app);
  expect((await fetch(`${url}/none`)).status).toBe(500);
  await expect(fetch(`${url}/some`).then((response) => response.text())).rejects.toThrow();
  await expect.poll(() => logger.entries.filter(({ level }) => level === 'error')).toHaveLength(2);
});
