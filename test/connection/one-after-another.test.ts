/**
 * The requests of one connection are handled one after another: the next one begins when the last byte of the reply
 * before it is with the kernel. Requests that arrive early wait, some of them.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connect, redirect, reply, type Context, type Postern, type PosternOptions } from 'postern';
import { createRandom } from '../support/random.js';
import { activeTasksOf, createApp, expectFailures, serve } from '../support/serve.js';
import { WireConnection, type WireResponse } from '../support/strict-client.js';

const MIB = 1024 * 1024;
const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

/** Turns of the event loop, and a request of another connection: enough for whatever should not happen. */
async function letPass(port: number): Promise<void> {
  for (let i = 0; i < 100; i += 1) await turn();
  await (await fetch(`http://127.0.0.1:${port}/no/where`)).text();
}

async function open(port: number): Promise<WireConnection> {
  const client = await WireConnection.open(port);
  onTestFinished(() => client.destroy());
  return client;
}

/** Every reply until the connection is closed, or `most` of them. */
async function readAll(client: WireConnection, most = Infinity): Promise<WireResponse[]> {
  const replies: WireResponse[] = [];
  while (replies.length < most) {
    const next = await client.finalResponse();
    if (next === null) break;
    replies.push(next);
  }
  return replies;
}

async function* slowly(...chunks: string[]): AsyncGenerator<string> {
  for (const chunk of chunks) {
    yield chunk;
    await turn();
    await turn();
  }
}

/** Replies of all kinds, each under the path of its number. */
const REPLIES: Readonly<Record<string, (ctx: Context) => unknown>> = {
  'a text': () => 'text',
  'a text, later': async () => (await turn(), await turn(), 'text'),
  'JSON': async () => ({ a: 1 }),
  'a 204': () => undefined,
  'a redirect': () => redirect('/'),
  'bytes that fill all buffers': () => Buffer.alloc(6 * MIB),
  'a generator': () => slowly('a', 'b', 'c'),
  'a Readable': () => Readable.from(['a', 'b', 'c']),
  'a ReadableStream': () => new Response('web').body,
  'a long stream': () => Readable.from((function* () { for (let i = 0; i < 6; i += 1) yield Buffer.alloc(MIB); })()),
  'a failure': async () => { throw new Error('unforeseen'); },
  'ctx.raw': ({ raw: { res } }) => void res.end('raw'),
  'ctx.raw, later': async ({ raw: { res } }) => {
    res.write('a');
    await turn();
    res.end('b');
  },
  'ctx.raw, after the handler': ({ raw: { res } }) => {
    res.write('a');
    setImmediate(() => res.end('b'));
  },
  'a pipe to ctx.raw': ({ raw: { res } }) => void Readable.from(['a', 'b']).pipe(res),
};

/** Keeps for each request what of the reply before it was not with the kernel when the request began. */
function watchedApp(): { app: Postern; begun: string[]; unsent: unknown[] } {
  const begun: string[] = [];
  const unsent: unknown[] = [];
  const responses: ServerResponse[] = [];
  const app = expectFailures(createApp());
  app.server.prependListener('request', (req: IncomingMessage, res: ServerResponse) => {
    if (req.url !== '/no/where') responses.push(res);
  });
  app.use((ctx, next) => {
    if (ctx.path === '/no/where') return next();
    const { socket } = ctx.raw.req;
    const before = responses[begun.length - 1];
    begun.push(ctx.path);
    const isSent = before === undefined || (before.writableEnded && before.writableLength === 0);
    if (!isSent || socket.writableLength > 0) unsent.push([ctx.path, socket.writableLength]);
    return next();
  });
  return { app, begun, unsent };
}

describe('the next request begins when the reply is sent that is', () => {
  const names = Object.keys(REPLIES);
  test.for(names)('%s', async (name) => {
    const { app, begun, unsent } = watchedApp();
    if (name === 'a failure') expectFailures(app, 500);
    app.get('/reply', REPLIES[name] as () => object).get('/next', () => 'next');
    const { port } = await serve(app);
    const client = await open(port);
    await client.write((get('/reply') + get('/next')).repeat(3));
    // Read as a whole: the strict reader begins anew with every packet.
    await expect.poll(() => begun.length).toBe(6);
    const replies = await readAll(client, 6);
    expect(replies.map(({ body }) => body.toString() === 'next')).toEqual([false, true, false, true, false, true]);
    expect([begun, unsent]).toEqual([['/reply', '/next', '/reply', '/next', '/reply', '/next'], []]);
  });

  test.for<[string, (app: Postern) => unknown]>([
    ['of no route', () => undefined],
    ['of a mount', (app) => app.mount('/reply', (_req, res) => void setImmediate(() => res.end('mounted')))],
    ['of middleware of Connect', (app) => app.get('/reply', {
      middleware: [connect((_req, res) => void setImmediate(() => res.end('connect')))],
    }, () => 'unreachable')],
  ])('%s', async ([, add]) => {
    const { app, begun, unsent } = watchedApp();
    add(app);
    const { port } = await serve(app.get('/next', () => 'next'));
    const client = await open(port);
    await client.write((get('/reply') + get('/next')).repeat(3));
    expect(await readAll(client, 6)).toHaveLength(6);
    expect([begun, unsent]).toEqual([['/reply', '/next', '/reply', '/next', '/reply', '/next'], []]);
  });

  test('of a request whose body is read, or not', async () => {
    const { app, begun, unsent } = watchedApp();
    app.post('/read', async (ctx) => (await turn(), ctx.text())).post('/unread', async () => (await turn(), 'unread'));
    app.post('/echo', (ctx) => reply(ctx.stream()));
    const { port } = await serve(app);
    const client = await open(port);
    const paths = ['/read', '/unread', '/echo', '/unread', '/read', '/echo'];
    await client.write(paths.map((path) => post(path, 'body')).join(''));
    const replies = await readAll(client, paths.length);
    expect(replies.map(({ body }) => body.toString())).toEqual(['body', 'unread', 'body', 'unread', 'body', 'body']);
    expect([begun, unsent]).toEqual([paths, []]);
  });

  test.for(['bytes', 'a stream', 'ctx.raw'])('%s, and not before its client has read it', async (what) => {
    const begun: string[] = [];
    const large = Buffer.alloc(32 * MIB);
    const app = createApp().get('/large', ({ raw }) => {
      begun.push('/large');
      if (what === 'ctx.raw') return void raw.res.end(large);
      return what === 'bytes' ? large : Readable.from((function* () {
        for (let i = 0; i < 32; i += 1) yield large.subarray(i * MIB, (i + 1) * MIB);
      })());
    });
    app.get('/next', () => (begun.push('/next'), 'next'));
    const { port } = await serve(app);
    const client = await open(port);
    client.socket.pause();
    await client.write(get('/large') + get('/next'));
    await expect.poll(() => begun).toEqual(['/large']);
    await letPass(port);
    expect(begun).toEqual(['/large']);
    let received = 0;
    client.socket.on('data', (data: Buffer) => (received += data.length)).resume();
    await expect.poll(() => received).toBeGreaterThan(large.length);
    const replies = await readAll(client, 2);
    expect(replies.map(({ body }) => body.length)).toEqual([large.length, 4]);
    expect(begun).toEqual(['/large', '/next']);
  });
});

test('of many requests one runs at a time, however long each takes, and all are answered in order', async () => {
  const random = createRandom(20_261_126);
  let running = 0;
  let peak = 0;
  const app = createApp().get('/:n', async ({ params }) => {
    peak = Math.max(peak, (running += 1));
    for (let turns = random.int(6); turns > 0; turns -= 1) await turn();
    running -= 1;
    return params.n;
  });
  const { port } = await serve(app);
  const client = await open(port);
  const numbers = Array.from({ length: 300 }, (_, n) => String(n));
  // Three parts, each of which may wait as a whole.
  for (const part of [numbers.slice(0, 100), numbers.slice(100, 200), numbers.slice(200)]) {
    await client.write(part.map((n) => get(`/${n}`)).join(''));
    expect((await readAll(client, part.length)).map(({ body }) => body.toString())).toEqual(part);
  }
  expect(peak).toBe(1);
});

test('connections do not wait for each other', async () => {
  const waiting: (() => void)[] = [];
  const app = createApp().get('/', () => new Promise<string>((resolve) => waiting.push(() => resolve('late'))));
  const { port } = await serve(app);
  const clients = await Promise.all(Array.from({ length: 20 }, () => open(port)));
  for (const client of clients) await client.write(get('/'));
  await expect.poll(() => waiting.length).toBe(20);
  for (const resolve of waiting) resolve();
  for (const client of clients) expect((await client.finalResponse())?.status).toBe(200);
});

interface Held {
  readonly app: Postern;
  /** Paths of the requests that ran. */
  readonly ran: string[];
  readonly socket: Promise<Socket>;
  release(): void;
}

/** An application whose request for `/held` waits until it is released; others answer with their number. */
function heldApp(options: PosternOptions = {}): Held {
  const ran: string[] = [];
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  const app = createApp(options);
  const note = ({ path }: Context): void => void ran.push(path);
  app.get('/held', async (ctx) => (note(ctx), await held, 'held'));
  app.get('/:n', (ctx) => (note(ctx), ctx.params.n));
  app.post('/:n', async (ctx) => (note(ctx), String((await ctx.bytes()).length)));
  const socket = once(app.server, 'connection').then(([accepted]) => accepted as Socket);
  return { app, ran, release, socket };
}

describe('requests that arrive early', () => {
  test('wait: a hundred of them are answered, and the connection is kept', async () => {
    const { app, ran, release } = heldApp();
    const { port } = await serve(app);
    const client = await open(port);
    const paths = Array.from({ length: 100 }, (_, n) => `/${n}`);
    await client.write(get('/held') + paths.map((path) => get(path)).join(''));
    await letPass(port);
    expect(ran).toEqual(['/held']);
    release();
    const replies = await readAll(client, 101);
    expect(replies.map(({ headers }) => headers['connection'])).toEqual(replies.map(() => 'keep-alive'));
    expect(ran).toEqual(['/held', ...paths]);
    await client.write(get('/last'));
    expect(String((await client.finalResponse())?.body)).toBe('last');
  });

  test.for([101, 150, 1000])('end the connection after a hundred replies if there are %i', async (count) => {
    const { app, ran, release } = heldApp();
    const { port } = await serve(app);
    const client = await open(port);
    const paths = Array.from({ length: count }, (_, n) => `/${n}`);
    await client.write(get('/held') + paths.map((path) => get(path)).join(''));
    await letPass(port);
    release();
    const replies = await readAll(client);
    await client.closed;
    expect(replies).toHaveLength(101);
    expect(replies.map(({ headers }) => headers['connection'])).toEqual(
      replies.map((_, index) => (index === 100 ? 'close' : 'keep-alive')),
    );
    expect(ran).toEqual(['/held', ...paths.slice(0, 100)]);
  });

  test.for<[string, (n: number) => string]>([
    ['heads', (n) => get(`/${n}`, `X: ${'x'.repeat(10_000)}\r\n`)],
    ['bodies', (n) => post(`/${n}`, 'x'.repeat(10_000))],
    ['chunks', (n) => {
      return `POST /${n} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n` +
        `${`3e8\r\n${'x'.repeat(1000)}\r\n`.repeat(10)}0\r\n\r\n`;
    }],
  ])('end the connection after some 64 KiB of %s', async ([, request]) => {
    const { app, ran, release, socket } = heldApp();
    const { port } = await serve(app);
    const client = await open(port);
    const paths = Array.from({ length: 90 }, (_, n) => `/${n}`);
    await client.write(get('/held') + paths.map((_, n) => request(n)).join(''));
    await letPass(port);
    // 64 KiB, and the packet in which they ended.
    expect((await socket).bytesRead).toBeLessThan(260_000);
    release();
    const replies = await readAll(client);
    await client.closed;
    expect(replies.length).toBeGreaterThan(6);
    expect(replies.length).toBeLessThan(28);
    expect(replies.at(-1)?.headers['connection']).toBe('close');
    expect(ran).toEqual(['/held', ...paths.slice(0, replies.length - 1)]);
  });

  test('leave what a client sends on and on unread', async () => {
    const { app, ran, release, socket } = heldApp();
    const { port } = await serve(app);
    const client = await open(port);
    void client.write(get('/held') + get('/early', `X: ${'x'.repeat(500)}\r\n`).repeat(30_000));
    await expect.poll(() => ran).toEqual(['/held']);
    await letPass(port);
    expect((await socket).bytesRead).toBeLessThan(260_000);
    release();
    await client.closed;
  });

  test('run with their whole body, or not at all', async () => {
    const { app, ran, release } = heldApp();
    const { port } = await serve(app);
    const client = await open(port);
    const body = 'x'.repeat(600_000);
    void client.write(get('/held') + post('/long', body));
    await expect.poll(() => ran).toEqual(['/held']);
    await letPass(port);
    release();
    const [, second] = await readAll(client, 2);
    if (second === undefined) expect(ran).toEqual(['/held']);
    else expect([second.status, String(second.body)]).toEqual([200, String(body.length)]);
  });

  test('are read with their bodies, so that a disconnect is noticed', async () => {
    let aborted = 0;
    const ran: string[] = [];
    const app = createApp().get('/held', ({ path, signal }) => new Promise((resolve) => {
      ran.push(path);
      signal.addEventListener('abort', () => resolve((aborted += 1)));
    }));
    app.post('/early', ({ path }) => ran.push(path));
    const { port } = await serve(app);
    for (const leave of ['resetAndDestroy', 'destroy'] as const) {
      const client = await open(port);
      await client.write(get('/held') + post('/early', 'x'.repeat(5000)).repeat(10));
      await letPass(port);
      client.socket[leave]();
    }
    await expect.poll(() => aborted).toBe(2);
    await expect.poll(() => activeTasksOf(app)).toBe(0);
    expect(ran).toEqual(['/held', '/held']);
  });

  test('in packets of their own are answered as they come, a thousand in a row', async () => {
    const app = createApp().get('/:n', async ({ params }) => (await turn(), params.n));
    const { port } = await serve(app);
    const client = await open(port);
    const received: string[] = [];
    // Never more than 50 ahead of what was answered.
    for (let n = 0; n < 1000; n += 1) {
      await client.write(get(`/${n}`));
      if (n >= 50) received.push(String((await client.finalResponse())?.body));
    }
    while (received.length < 1000) received.push(String((await client.finalResponse())?.body));
    expect(received).toEqual(Array.from({ length: 1000 }, (_, n) => String(n)));
  });
});

describe('behind a request that is handled', () => {
  test.for([
    ['head', 'GET / HTTP/1.1\r\nHost: x\r\nX: ', { headersTimeout: 1000, requestTimeout: 2000 }],
    ['body', post('/', 'half a body').slice(0, -5), { headersTimeout: 1000, requestTimeout: 1000 }],
  ] as const)('a request without the rest of its %s is answered with 408 in the end', async ([, half, timeouts]) => {
    const { app, ran, release } = heldApp(timeouts);
    app.post('/', (ctx) => ctx.text());
    const { port } = await serve(app);
    const client = await open(port);
    await client.write(get('/held') + get('/early') + half);
    await expect.poll(() => ran).toEqual(['/held']);
    release();
    expect((await readAll(client)).map(({ status }) => status)).toEqual([200, 200, 408]);
  });

  test.for<[string, string]>([
    ['requests', get('/early').repeat(5000)],
    ['a body', post('/early', 'x'.repeat(400_000))],
  ])('%s may hide a disconnect beyond 64 KiB, for the requestTimeout at most', async ([, bytes]) => {
    let [begun, aborted] = [0, 0];
    const app = createApp({ requestTimeout: 300, headersTimeout: 300 });
    const quiet = ({ signal }: Context): Promise<unknown> => new Promise((resolve) => {
      begun += 1;
      signal.addEventListener('abort', () => resolve((aborted += 1)));
    });
    app.get('/held', quiet).route('/early', { GET: quiet, POST: () => 'read' });
    const { port } = await serve(app);
    const client = await open(port);
    void client.write(get('/held') + bytes);
    await expect.poll(() => begun).toBeGreaterThan(0);
    client.socket.destroySoon();
    await expect.poll(() => [aborted, begun - aborted]).toEqual([begun, 0]);
    await expect.poll(() => activeTasksOf(app)).toBe(0);
  });

  test('requests wait for as long as it takes with requestTimeout: 0', async () => {
    const { app, ran, release } = heldApp({ requestTimeout: 0 });
    const { port } = await serve(app);
    const client = await open(port);
    await client.write(get('/held') + get('/early').repeat(10));
    await expect.poll(() => ran).toEqual(['/held']);
    // Longer than a timer of 0 ms, which is one of 1 ms.
    await new Promise((resolve) => setTimeout(resolve, 50));
    await letPass(port);
    release();
    expect((await readAll(client, 11)).map(({ status }) => status)).toEqual(Array.from({ length: 11 }, () => 200));
  });
});
