/** What one client may take: connections, header fields, parameters, and time to read its reply. */

import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { Postern, reply, type PosternOptions } from 'postern';
import { parseResponses, rawExchange, rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

/** A client that sends and reads nothing until it is told to. */
function connectPaused(port: number, request: string): Socket {
  const socket = connect(port, '127.0.0.1', () => socket.write(request)).on('error', () => undefined).pause();
  onTestFinished(() => void socket.destroy());
  return socket;
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const MANY_BYTES = 'x'.repeat(32 * 1024 * 1024);

test('connections beyond maxConnections are dropped, and taken again once others have ended', async () => {
  const { port, url } = await serve(createApp({ maxConnections: 2 }).get('/', () => 'ok'));
  const held = [connectPaused(port, ''), connectPaused(port, '')];
  await expect.poll(() => fetch(url).then((response) => response.status, () => 'dropped'), { timeout: 5000 }).toBe('dropped');
  for (const socket of held) socket.destroy();
  await expect.poll(() => fetch(url).then((response) => response.status, () => 'dropped'), { timeout: 5000 }).toBe(200);
});

test.for<[number, number, number]>([
  [20, 19, 200],
  [20, 20, 431],
  [1500, 1499, 200],
  [1500, 1500, 431],
])('with maxHeadersCount %i, %i fields beside Host give %i', async ([maxHeadersCount, count, status]) => {
  const { port } = await serve(createApp({ maxHeadersCount, maxHeaderSize: 65_536 }).get('/', () => 'ok'));
  const fields = Array.from({ length: count }, (_, i) => `x-${i}: 1\r\n`).join('');
  expect((await rawRequest(port, `GET / HTTP/1.1\r\nHost: x\r\n${fields}\r\n`, 300)).status).toBe(status);
});

test('maxHeaderSize is the most that a head may take', async () => {
  const { port } = await serve(createApp({ maxHeaderSize: 1024 }).get('/', () => 'ok'));
  const withHeader = (length: number): string => `GET / HTTP/1.1\r\nHost: x\r\nx-long: ${'a'.repeat(length)}\r\n\r\n`;
  expect((await rawRequest(port, withHeader(500), 300)).status).toBe(200);
  expect((await rawRequest(port, withHeader(2000), 300)).status).toBe(431);
});

test.for<[number, number]>([
  [3, 200],
  [4, 400],
])('with parameterLimit 3, a query of %i parameters gives %i', async ([count, status]) => {
  const app = createApp({ parameterLimit: 3 }).get('/', (ctx) => [...ctx.query.keys()].length);
  expect((await app.request(`/?${Array.from({ length: count }, () => 'a=1').join('&')}`)).status).toBe(status);
  expect((await app.request('/?')).status).toBe(200);
});

test.for<[number, number]>([
  [3, 200],
  [4, 413],
])('with parameterLimit 3, a form of %i fields gives %i', async ([count, status]) => {
  const app = createApp({ parameterLimit: 3 }).post('/', async (ctx) => (await ctx.form()).size);
  const body = Array.from({ length: count }, () => 'a=1').join('&');
  expect((await app.request('/', { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded' } })).status).toBe(status);
});

test.for<[string, (app: Postern) => Postern]>([
  ['a text', (app) => app.get('/', () => MANY_BYTES)],
  ['bytes', (app) => app.get('/', () => Buffer.from(MANY_BYTES))],
  ['a stream', (app) => app.get('/', () => reply((async function* () { for (;;) yield MANY_BYTES; })()))],
  ['the second of two pipelined replies', (app) => app.get('/', () => MANY_BYTES).get('/first', () => 'small')],
])('a client that does not read %s is cut after sendTimeout', async ([name, route]) => {
  const app = route(createApp({ sendTimeout: 200 }));
  const { port } = await serve(app);
  connectPaused(port, name.startsWith('the second') ? `GET /first HTTP/1.1\r\nHost: x\r\n\r\n${GET}` : GET);
  const count = (): Promise<number> => new Promise((resolve) => app.server.getConnections((_error, open) => resolve(open)));
  await expect.poll(count).toBe(1);
  await expect.poll(count, { timeout: 5000 }).toBe(0);
});

test('sendTimeout does not cut a stream whose source is slow', async () => {
  const app = createApp({ sendTimeout: 100 }).get('/', () => reply((async function* () {
    yield MANY_BYTES;
    await new Promise((resolve) => setTimeout(resolve, 400));
    yield 'end';
  })()));
  const text = await (await fetch((await serve(app)).url)).text();
  expect(text.length).toBe(MANY_BYTES.length + 3);
});

test('sendTimeout of one pipelined reply is not that of the next handler', async () => {
  const wait = (ms: number) => (): Promise<string> => new Promise((resolve) => setTimeout(resolve, ms, 'waited'));
  const app = createApp({ sendTimeout: 100 }).get('/', () => 'at once').get('/none', () => undefined).get('/short', wait(50)).get('/long', wait(400));
  const { port } = await serve(app);
  for (const between of ['/', '/none']) {
    const text = await rawExchange(port, ['/short', between, '/long'].map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''), 800);
    expect(parseResponses(text).map(({ status }) => status)).toEqual([200, between === '/' ? 200 : 204, 200]);
  }
});

test.for<PosternOptions>([
  { maxConnections: -1 },
  { maxHeadersCount: 0 },
  { maxHeaderSize: 1.5 },
  { parameterLimit: NaN },
  { sendTimeout: '1 s' as never },
  { loadShedding: false as never },
  { loadShedding: null as never },
  { loadShedding: { maxEventLoopDelay: 0 } },
  { loadShedding: { maxMemoryPercent: Infinity } },
  { loadShedding: { retryAfter: -1 } },
])('the limit %j throws at construction', (options) => {
  expect(() => new Postern('users', options)).toThrow(TypeError);
});
