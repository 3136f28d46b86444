/**
 * Bytes that arrive behind a request: early requests that are late, whatever follows the last request, and trailers.
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

describe('a request that arrives early', () => {
  test.for([
    ['head', 'GET / HTTP/1.1\r\nHost: x\r\nX: ', { headersTimeout: 200, requestTimeout: 1000 }],
    ['body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf', { headersTimeout: 400, requestTimeout: 400 }],
  ] as const)('and is not read on until its time is up is answered with 408 in the end (%s)', async ([, half, timeouts]) => {
    const waiting: (() => void)[] = [];
    const app = createApp(timeouts);
    app.route('/', {
      GET: () => new Promise((resolve) => waiting.push(() => resolve('ok'))),
      POST: (ctx) => ctx.text(),
    });
    const { port } = await serve(app);
    const timedOut = once(app.server, 'clientError');
    const answers = rawExchange(port, get('/').repeat(2) + half);
    await expect.poll(() => waiting.length).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, timeouts.requestTimeout / 2));
    waiting[0]?.();
    await timedOut;
    await expect.poll(() => waiting.length).toBe(2);
    waiting[1]?.();
    expect(parseResponses(await answers).map(({ status }) => status)).toEqual([200, 200, 408]);
  });

  test.for([
    ['head', 'GET / HTTP/1.1\r\nHost: x\r\nX: ', 'y\r\n\r\n'],
    ['body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nhalf', 'half'],
  ] as const)('and is late, and then complete, is answered, and its connection kept (%s)', async ([, half, rest]) => {
    const headersTimeout = 200;
    const waiting: (() => void)[] = [];
    const app = createApp({ headersTimeout, requestTimeout: 1000 });
    app.route('/', {
      GET: () => (waiting.length > 1 ? 'ok' : new Promise((resolve) => waiting.push(() => resolve('ok')))),
      POST: (ctx) => ctx.text(),
    });
    const accepted = once(app.server, 'connection') as Promise<[Socket]>;
    const { port } = await serve(app);
    const client = connect(port, '127.0.0.1');
    let received = '';
    client.on('data', (chunk) => (received += String(chunk)));
    const answered = (): number => received.match(/HTTP\/1\.1 200/g)?.length ?? 0;
    const timedOut = once(app.server, 'clientError');
    client.write(get('/').repeat(2) + half);
    const [socket] = await accepted;
    await expect.poll(() => waiting.length).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 600));
    waiting[0]?.();
    await timedOut;
    await expect.poll(() => waiting.length).toBe(2);
    client.write(rest);
    await expect.poll(() => socket.bytesRead).toBe((get('/').repeat(2) + half + rest).length);
    waiting[1]?.();
    await expect.poll(answered).toBe(3);
    await new Promise((resolve) => setTimeout(resolve, 2 * headersTimeout));
    client.write(get('/'));
    await expect.poll(answered).toBe(4);
    expect(received).not.toContain('408');
    client.destroy();
  });

  test('while a large reply waits for its client does not hold up the process', async () => {
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
