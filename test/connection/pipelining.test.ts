/**
 * What one connection may have in flight, and what its trailers may say.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

describe('maxPipelinedRequests', () => {
  test.for([
    { limit: undefined, most: 100 },
    { limit: 1, most: 1 },
    { limit: 7, most: 7 },
  ])('$limit: of a thousand requests $most run at a time, and all are answered in order', async ({ limit, most }) => {
    let running = 0;
    let peak = 0;
    const waiting: (() => void)[] = [];
    const app = createApp(limit === undefined ? {} : { maxPipelinedRequests: limit });
    app.get('/:n', async (ctx) => {
      peak = Math.max(peak, (running += 1));
      await new Promise<void>((resolve) => waiting.push(resolve));
      running -= 1;
      return `<${ctx.params.n}>`;
    });
    const { port } = await serve(app);
    const socket = connect(port, '127.0.0.1');
    let received = '';
    socket.on('data', (chunk) => (received += String(chunk)));
    socket.write(Array.from({ length: 1000 }, (_, n) => get(`/${n}`)).join(''));
    await expect.poll(() => running).toBe(most);
    while (!received.includes('<999>')) {
      waiting.splice(0).forEach((resolve) => resolve());
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(peak).toBe(most);
    expect([...received.matchAll(/<(\d+)>/g)].map(([, n]) => Number(n)))
      .toEqual(Array.from({ length: 1000 }, (_, n) => n));
    socket.destroy();
  });

  test.for([0, -1, 1.5, '7', null])('%j is refused', (maxPipelinedRequests) => {
    expect(() => createApp({ maxPipelinedRequests } as object)).toThrow(/^maxPipelinedRequests/);
  });

  test('40,000 requests at once, sync and async, are answered', { timeout: 60_000 }, async () => {
    const app = createApp().get('/sync', () => 'ok').get('/async', async () => (await null, 'ok'));
    const { port } = await serve(app);
    const socket = connect(port, '127.0.0.1');
    let answered = 0;
    socket.on('data', (chunk) => (answered += String(chunk).match(/HTTP\/1\.1 200/g)?.length ?? 0));
    for (let i = 0; i < 40; i += 1) socket.write((get('/sync') + get('/async')).repeat(500));
    // A status line may come in two pieces.
    await expect.poll(() => answered, { timeout: 60_000 }).toBeGreaterThan(39_900);
    socket.destroy();
  });

  test('20,000 requests whose client leaves while they wait hold the process up no longer than they take to read', async () => {
    let started = 0;
    const app = createApp();
    app.get('/', () => {
      started += 1;
      return new Promise(() => undefined);
    });
    const { port } = await serve(app);
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(get('/').repeat(20_000));
    await expect.poll(() => started).toBe(100);
    socket.resetAndDestroy();
    const late = connect(port, '127.0.0.1');
    late.write('GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(String((await once(late, 'data'))[0])).toContain('404');
    expect(started).toBe(100);
  });

  test.for([1, 100])(
    'with %i in flight, what a client sends on and on is left unread, and answered in the end',
    { timeout: 60_000 },
    async (limit) => {
      const total = 30_000;
      const waiting: (() => void)[] = [];
      let isOpen = false;
      const app = createApp({ maxPipelinedRequests: limit });
      app.get('/', () => (isOpen ? 'ok' : new Promise<string>((resolve) => waiting.push(() => resolve('ok')))));
      const accepted = once(app.server, 'connection') as Promise<[Socket]>;
      const { port } = await serve(app);
      const client = connect(port, '127.0.0.1');
      let answered = 0;
      client.on('data', (chunk) => (answered += String(chunk).match(/HTTP\/1\.1 200/g)?.length ?? 0));
      const [socket] = await accepted;
      // More than the buffers of both sides hold.
      client.write(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(500)}\r\n\r\n`.repeat(total));
      await expect.poll(() => waiting.length).toBe(limit);
      // Turns enough to read all of it, if nothing stopped the server.
      for (let turn = 0; turn < 200; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      await fetch(`http://127.0.0.1:${port}/nowhere`);
      expect(socket.bytesRead).toBeLessThan(300_000);
      isOpen = true;
      waiting.forEach((resolve) => resolve());
      // A status line may come in two pieces.
      await expect.poll(() => answered, { timeout: 60_000 }).toBeGreaterThan(total - 1000);
      client.destroy();
    },
  );

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

  describe('a request that is read behind waiting ones, and whose rest never comes,', () => {
    test.for([
      ['head', 'GET / HTTP/1.1\r\nHost: x\r\nX: ', { headersTimeout: 200, requestTimeout: 1000 }],
      ['body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf', { headersTimeout: 400, requestTimeout: 400 }],
    ] as const)('is answered with 408 in the end (%s)', async ([, half, timeouts]) => {
      const waiting: (() => void)[] = [];
      const app = createApp({ ...timeouts, maxPipelinedRequests: 1 });
      app.route('/', {
        GET: () => new Promise((resolve) => waiting.push(() => resolve('ok'))),
        POST: (ctx) => ctx.text(),
      });
      const { port } = await serve(app);
      const timedOut = once(app.server, 'clientError');
      const answers = rawExchange(port, get('/').repeat(2) + half, 5000);
      await expect.poll(() => waiting.length).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, timeouts.requestTimeout / 2));
      waiting[0]?.();
      await timedOut;
      await expect.poll(() => waiting.length).toBe(2);
      waiting[1]?.();
      expect(parseResponses(await answers).map(({ status }) => status)).toEqual([200, 200, 408]);
    });
  });

  test.for([
    ['head', 'GET / HTTP/1.1\r\nHost: x\r\nX: ', 'y\r\n\r\n'],
    ['body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nhalf', 'half'],
  ] as const)(
    'a request that is late behind waiting ones, and then complete, is answered, and its connection kept (%s)',
    async ([, half, rest]) => {
      const headersTimeout = 200;
      const waiting: (() => void)[] = [];
      const app = createApp({ headersTimeout, requestTimeout: 1000, maxPipelinedRequests: 1 });
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
    },
  );

  test('a client that leaves while its requests wait unread is cut when its time is up', async () => {
    let aborted = 0;
    const app = createApp({ requestTimeout: 300, headersTimeout: 300, maxPipelinedRequests: 2 });
    app.get('/', (ctx) => {
      ctx.signal.addEventListener('abort', () => (aborted += 1));
      return new Promise(() => undefined);
    });
    const { port } = await serve(app);
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.end(get('/').repeat(5000));
    await expect.poll(() => aborted, { timeout: 5000 }).toBe(2);
  });

  test('a client that leaves while the body of a waiting request fills its buffer is cut when its time is up', async () => {
    let aborted = 0;
    const app = createApp({ requestTimeout: 300, headersTimeout: 300, maxPipelinedRequests: 2 });
    app.route('/', {
      GET: (ctx) => {
        ctx.signal.addEventListener('abort', () => (aborted += 1));
        return new Promise(() => undefined);
      },
      POST: () => 'never run',
    });
    const { port } = await serve(app);
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.end(
      `${get('/').repeat(2)}POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`,
    );
    await expect.poll(() => aborted, { timeout: 5000 }).toBe(2);
  });
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
    const responses = parseResponses(await rawExchange(port, post(path, trailer) + get('/next'), 3000));
    expect(responses).toHaveLength(1);
    if (path !== '/echo') expect(responses[0]?.headers['connection']).toBe('close');
  });

  test('another trailer closes nothing', async () => {
    const app = createApp().post('/read', (ctx) => ctx.text()).get('/next', () => 'next');
    const { port } = await serve(app);
    const responses = parseResponses(
      await rawExchange(port, post('/read', 'X-Checksum: close\r\n') + get('/next'), 500),
    );
    expect(responses.map(({ body }) => body)).toEqual(['abc', 'next']);
  });
});
