/**
 * Bytes that arrive behind a request: early requests, whatever follows the last request, and trailers.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;

test('a request that arrives early, while a large reply waits for its client does not hold up the process', async () => {
  let answer = (): void => undefined;
  const large = Buffer.alloc(48 * 1024 * 1024);
  const app = createApp().get('/next', () => 'next')
    .get('/large', () => new Promise<Buffer>((resolve) => (answer = () => resolve(large))));
  let arrived = 0;
  app.server.on('request', ({ url }: IncomingMessage) => (arrived += url === '/nowhere' ? 0 : 1));
  const { port } = await serve(app);
  const client = connect(port, '127.0.0.1', () => client.write(get('/large') + get('/next'))).pause();
  await expect.poll(() => arrived).toBe(2);
  answer();
  await fetch(`http://127.0.0.1:${port}/nowhere`);
  client.write(get('/next'));
  await expect.poll(() => arrived).toBe(3);
  expect((await fetch(`http://127.0.0.1:${port}/nowhere`)).status).toBe(404);
  let received = 0;
  client.on('data', (chunk: Buffer) => (received += chunk.toString('latin1').match(/next$/)?.length ?? 0)).resume();
  await expect.poll(() => received).toBeGreaterThan(0);
  client.destroy();
});

test.for([
  ['a client that waits for 100 Continue', 'GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n'],
  ['a refused head', `${get('/')}GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n`],
] as const)('behind %s, which ends the connection, what is sent on and on is left unread', async ([, last]) => {
  const app = createApp().get('/', () => new Promise(() => undefined));
  const accepted = once(app.server, 'connection') as Promise<[Socket]>;
  const { port } = await serve(app);
  const client = connect(port, '127.0.0.1').on('error', () => undefined);
  const [socket] = await accepted;
  client.write(last + get('/').repeat(200_000));
  for (let turn = 0; turn < 400; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  await fetch(`http://127.0.0.1:${port}/nowhere`);
  expect(socket.bytesRead).toBeLessThan(300_000);
  client.destroy();
});

describe('a trailer that closes the connection', () => {
  const post = (path: string, trailer: string): string =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n${trailer}\r\n`;
  test.for(
    [
      'Connection: close\r\n',
      'Proxy-Connection: close\r\n',
      'connection: CLOSE\r\n',
      'X: y\r\nConnection: x, close\r\n',
    ].flatMap((trailer) => ['/read', '/unread', '/later', '/nowhere', '/echo'].map((path) => ({ trailer, path }))),
  )('$trailer behind $path: its reply is the last, and says so', async ({ trailer, path }) => {
    const app = createApp();
    app
      .post('/read', (ctx) => ctx.text())
      .post('/unread', () => 'unread')
      .post(
        '/later',
        async (ctx) => (await ctx.text(), await new Promise((resolve) => setTimeout(resolve, 5)), 'later'),
      );
    app.post('/echo', (ctx) => ctx.stream()).get('/next', () => 'next');
    const { port } = await serve(app);
    const responses = parseResponses(await rawExchange(port, post(path, trailer) + get('/next')));
    expect(responses).toHaveLength(1);
    if (path !== '/echo') expect(responses[0]?.headers['connection']).toBe('close');
  });

  test('another trailer closes nothing', async () => {
    const app = createApp().post('/read', (ctx) => ctx.text()).get('/next', () => 'next');
    const { port } = await serve(app);
    const responses = parseResponses(
      await rawExchange(port, post('/read', 'X-Checksum: close\r\n') + get('/next', 'Connection: close\r\n')),
    );
    expect(responses.map(({ body }) => body)).toEqual(['abc', 'next']);
  });
});
