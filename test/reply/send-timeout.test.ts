/**
 * How long a client may take to read its reply.
 *
 * @module-tag slow
 */

import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { Postern, reply, type Reply } from 'postern';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

/** A client that sends and reads nothing until it is told to. */
function connectPaused(port: number, request: string): Socket {
  const socket = connect(port, '127.0.0.1', () => socket.write(request)).on('error', () => undefined).pause();
  onTestFinished(() => void socket.destroy());
  return socket;
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const MANY_BYTES = 'x'.repeat(32 * 1024 * 1024);
const longHead = (status: number): Reply => reply(undefined, { status, headers: { 'x-long': MANY_BYTES } });

test.for<[string, (app: Postern) => Postern]>([
  ['a text', (app) => app.get('/', () => MANY_BYTES)],
  ['bytes', (app) => app.get('/', () => Buffer.from(MANY_BYTES))],
  ['a stream', (app) => app.get('/', () => reply((async function* () { for (;;) yield MANY_BYTES; })()))],
  ['a 204', (app) => app.get('/', () => longHead(204))],
  ['a 304', (app) => app.get('/', () => longHead(304))],
  ['a 200 without a body', (app) => app.get('/', () => longHead(200))],
  ['the second of two pipelined replies, a 204',
    (app) => app.get('/', () => longHead(204)).get('/first', () => 'small')],
  ['the second of two pipelined replies', (app) => app.get('/', () => MANY_BYTES).get('/first', () => 'small')],
])('a client that does not read %s is cut after sendTimeout', async ([name, route]) => {
  const app = route(createApp({ sendTimeout: 200 }));
  const { port } = await serve(app);
  connectPaused(port, name.startsWith('the second') ? `GET /first HTTP/1.1\r\nHost: x\r\n\r\n${GET}` : GET);
  const count = (): Promise<number> =>
    new Promise((resolve) => app.server.getConnections((_error, open) => resolve(open)));
  await expect.poll(count).toBe(1);
  await expect.poll(count).toBe(0);
});

test.for(['x', 'é'])('a client that does not read %s is cut while its handler writes on and on', async (letter) => {
  const app = createApp({ sendTimeout: 200 }).get('/', ({ raw: { res }, signal }) => {
    res.write(letter.repeat(16 * 1024 * 1024));
    const timer = setInterval(() => res.write(letter.repeat(100)), 10);
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        clearInterval(timer);
        resolve(undefined);
      });
    });
  });
  const { port } = await serve(app);
  connectPaused(port, GET);
  const count = (): Promise<number> =>
    new Promise((resolve) => app.server.getConnections((_error, open) => resolve(open)));
  await expect.poll(count).toBe(1);
  await expect.poll(count).toBe(0);
});

test('sendTimeout of one pipelined reply is not that of the next handler', async () => {
  const wait = (ms: number) => (): Promise<string> => new Promise((resolve) => setTimeout(resolve, ms, 'waited'));
  const app = createApp({ sendTimeout: 100 }).get('/', () => 'at once').get('/none', () => undefined)
    .get('/short', wait(50)).get('/long', wait(400));
  const { port } = await serve(app);
  for (const between of ['/', '/none']) {
    const text = await rawExchange(
      port,
      ['/short', between, '/long']
        .map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${path === '/long' ? 'Connection: close\r\n' : ''}\r\n`)
        .join(''),
    );
    expect(parseResponses(text).map(({ status }) => status)).toEqual([200, between === '/' ? 200 : 204, 200]);
  }
});
