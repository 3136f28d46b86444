/** A reply that ends its connection, by whatever means it says so (RFC 9112, section 9.6), and what follows it. */

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { Readable, type Duplex } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { connect as connectMiddleware, reply, type Context, type Postern } from 'postern';
import { parseResponses, rawExchange } from '../support/raw.js';
import { activeTasksOf, createApp, expectFailures, serve } from '../support/serve.js';

const get = (path: string, headers = '', version = '1.1'): string =>
  `GET ${path} HTTP/${version}\r\nHost: x\r\n${headers}\r\n`;
const post = (path: string, headers: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n${body}`;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const UPGRADE = get('/up', 'Connection: upgrade\r\nUpgrade: other\r\n');

/** Whatever says `connection: close`, in a reply whose body is `last`. */
const CLOSING: Record<string, (ctx: Context) => unknown> = {
  'a header of the reply': () => reply('last', { headers: { connection: 'close' } }),
  'a header of the reply, later': async () => (await turn(), reply('last', { headers: { connection: 'close' } })),
  'a header of a stream': () =>
    reply(Readable.from(['last']), { headers: { connection: 'Close', 'content-length': '4' } }),
  'a header set on ctx.raw': ({ raw }) => (raw.res.setHeader('connection', 'close'), 'last'),
  'a head written by ctx.raw': ({ raw }) =>
    void raw.res.writeHead(200, { connection: 'close', 'content-length': 4 }).end('last'),
  'a head written by ctx.raw, the body later': async ({ raw }) => {
    raw.res.writeHead(200, { connection: 'close', 'content-length': 4 }).flushHeaders();
    await new Promise((resolve) => setTimeout(resolve, 30));
    raw.res.end('last');
  },
};

/** What a client may send behind it, with the same packet or the next. */
const BEHIND: Record<string, string> = {
  'something malformed': 'nonsense\r\n\r\n',
  'another request': get('/next'),
  'a request that has begun': get('/pending'),
  CONNECT: 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n',
  'a malformed body': post('/next', CHUNKED, 'zz\r\n'),
};

function closingApp(close: (ctx: Context) => unknown, ran: string[]): Postern {
  const app = createApp();
  const handler = (ctx: Context): object => {
    ran.push(ctx.path);
    ctx.signal.addEventListener('abort', () => ran.push(`${ctx.path} aborted`));
    return close(ctx) as object;
  };
  app.route('/', { GET: handler, POST: handler });
  app.route('/next', { GET: ({ path }) => void ran.push(path), POST: ({ path }) => void ran.push(path) });
  app.get(
    '/pending',
    (ctx) =>
      new Promise<void>((resolve) =>
        ctx.signal.addEventListener('abort', () => resolve(void ran.push('/pending aborted'))),
      ),
  );
  return app;
}

describe.for(Object.keys(CLOSING))('connection: close as %s', (how) => {
  test.for(Object.keys(BEHIND))('is sent once, and %s behind it is not answered', async (behind) => {
    const ran: string[] = [];
    const app = closingApp(CLOSING[how] as (ctx: Context) => unknown, ran);
    const { port } = await serve(app);
    const text = await rawExchange(port, get('/') + (BEHIND[behind] as string));
    expect(parseResponses(text).map(({ status, body }) => [status, body])).toEqual([[200, 'last']]);
    expect(text.match(/^connection:/gim)).toHaveLength(1);
    expect(ran).not.toContain('/ aborted');
    if (behind === 'a request that has begun')
      await expect.poll(() => activeTasksOf(app)).toBe(0);
  });

  test('does not abort the signal, although the body of its request was not read', async () => {
    const ran: string[] = [];
    const { port } = await serve(closingApp(CLOSING[how] as (ctx: Context) => unknown, ran));
    const text = await rawExchange(port, post('/', 'Content-Length: 9\r\n', 'half'));
    expect(parseResponses(text)[0]?.body).toBe('last');
    expect(ran).toEqual(['/']);
  });
});

test.for(['close', 'keep-alive'])('a reply that says %s is written when it is ready', async (says) => {
  const app = createApp().get('/', () => 'hello');
  const { port } = await serve(app);
  const written: boolean[] = [];
  app.server.on('request', (_, res) => void written.push(res.writableEnded));
  const socket = connect(port, '127.0.0.1', () => socket.write(get('/', `Connection: ${says}\r\n`)));
  await once(socket, 'data');
  socket.destroy();
  expect(written).toEqual([true]);
});

test('a request that arrives while the rest of a last reply is written is not run', async () => {
  const ran: string[] = [];
  const { port } = await serve(
    closingApp(CLOSING['a head written by ctx.raw, the body later'] as (ctx: Context) => unknown, ran),
  );
  const socket = connect(port, '127.0.0.1', () => socket.write(get('/')));
  let text = '';
  socket.on('data', (data: Buffer) => (text += data.toString('latin1')));
  await once(socket, 'data');
  socket.write(get('/next'));
  await once(socket, 'close');
  expect([parseResponses(text).length, ran]).toEqual([1, ['/']]);
});

test.for([
  ['a stream', () => Readable.from(['a', 'b'])],
  ['ctx.raw', ({ raw }: Context) => void (raw.res.write('a'), raw.res.end('b'))],
] as const)(
  'HTTP/1.0 with keep-alive: %s without a length ends the connection, without chunks',
  async ([, handler]) => {
    const app = createApp().get('/', handler as () => object).get('/next', () => 'next');
    const { port } = await serve(app);
    for (const behind of [get('/next'), 'nonsense\r\n\r\n', '']) {
      const text = await rawExchange(port, get('/', 'Connection: keep-alive\r\nTE: chunked\r\n', '1.0') + behind);
      expect(text).toMatch(/\r\nConnection: close\r\n/i);
      expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe('ab');
    }
  },
);

describe('trailers with Connection: close', () => {
  test.for([
    ['the same packet', 'echoed'],
    ['a later packet', 'echoed'],
    ['a later packet', 'answered by ctx.raw'],
  ] as const)('in %s end the connection after a body that is %s', async ([when, how]) => {
    const ran: string[] = [];
    const app = createApp()
      .post('/echo', (ctx) => (how === 'echoed' ? ctx.stream() : (ctx.raw.res.write('abc'), void ctx.raw.res.end())))
      .get('/next', ({ path }) => void ran.push(path));
    const { port } = await serve(app);
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    let text = '';
    socket.on('data', (data: Buffer) => (text += data.toString('latin1')));
    socket.write(post('/echo', CHUNKED, '3\r\nabc\r\n'));
    if (when === 'a later packet') await expect.poll(() => text).toContain('abc');
    socket.write(`0\r\nConnection: close\r\n\r\n${get('/next')}`);
    await once(socket, 'close');
    expect([text.match(/HTTP\/1\.1/g)?.length, text.endsWith('0\r\n\r\n'), ran]).toEqual([1, true, []]);
  });
});

/** Means by which a reply ends its connection, other than those of a handler; the application, and the request. */
const MEANS: Record<string, { add: (app: Postern, handler: (ctx: Context) => string) => unknown; request?: string }> = {
  'a header of middleware': {
    add: (app, handler) => app.get('/first', { middleware: [async (_ctx, next) => {
      const answered = await next();
      answered.headers.set('connection', 'close');
      return answered;
    }] }, handler),
  },
  'a header of middleware of Connect': {
    add: (app, handler) => app.get('/first', { middleware: [connectMiddleware((_req, res, next) => {
      res.setHeader('Connection', 'close');
      next();
    })] }, handler),
  },
  'a header of a Response': {
    add: (app, handler) =>
      app.get('/first', (ctx) => new Response(handler(ctx), { headers: { connection: 'close' } })),
  },
  'one header value of several': {
    add: (app, handler) =>
      app.get('/first', (ctx) => reply(handler(ctx), { headers: { connection: 'x-hop, close' } })),
  },
  'a mount': {
    add: (app) => app.mount('/first', (_req, res) => res.setHeader('connection', 'close').end('first')),
  },
  'the client': { add: (app, handler) => app.get('/first', handler), request: get('/first', 'Connection: close\r\n') },
  'HTTP/1.0': { add: (app, handler) => app.get('/first', handler), request: get('/first', '', '1.0') },
};

describe.for(Object.keys(MEANS))('connection: close by %s', (means) => {
  test.for(['the same packet', 'a packet of its own'])(
    'is sent once, and a request behind it in %s does not run',
    async (where) => {
      const { add, request = get('/first') } = MEANS[means] as (typeof MEANS)[string];
      const seen: string[] = [];
      const app = createApp().get('/next', ({ path }) => void seen.push(path));
      add(app, ({ signal }) => {
        signal.addEventListener('abort', () => seen.push('aborted'));
        return 'first';
      });
      const { port } = await serve(app);
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      let text = '';
      socket.on('data', (data: Buffer) => (text += data.toString('latin1')));
      socket.write(where === 'the same packet' ? request + get('/next') : request);
      if (where === 'a packet of its own') setImmediate(() => socket.write(get('/next')));
      await once(socket, 'close');
      expect(text.match(/HTTP\/1\.1 \d{3}|first/g)).toEqual(['HTTP/1.1 200', 'first']);
      expect(text.match(/^connection:.*$/gim)).toEqual([expect.stringMatching(/\bclose\b/i)]);
      expect(seen).toEqual([]);
    },
  );
});

test('connection: close by a drain is sent once, with the last of the replies to requests that had arrived', async () => {
  const ran: string[] = [];
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  const app = createApp().get('/held', async ({ path }) => (ran.push(path), await held, 'held'));
  app.get('/next', ({ path }) => (ran.push(path), 'next'));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write(get('/held') + get('/next').repeat(3)));
  let text = '';
  socket.on('data', (data: Buffer) => (text += data.toString('latin1')));
  await expect.poll(() => ran).toEqual(['/held']);
  const closed = app.close({ timeout: 20_000 });
  for (let i = 0; i < 20; i += 1) await turn();
  release();
  await once(socket, 'close');
  await closed;
  const replies = parseResponses(text).map(({ headers, body }) => [headers['connection'], body]);
  const kept = (body: string): string[] => ['keep-alive', body];
  expect(replies).toEqual([kept('held'), kept('next'), kept('next'), ['close', 'next']]);
  expect(ran).toEqual(['/held', '/next', '/next', '/next']);
});

describe('a response that is destroyed by ctx.raw', () => {
  test.for<[string, (ctx: Context) => unknown]>([
    ['by a handler that returns', ({ raw }: Context) => void raw.res.destroy()],
    ['by a handler that never returns',
      ({ raw }: Context) => (raw.res.destroy(), new Promise<void>(() => undefined))],
  ])('%s ends the connection after the replies before it', async ([, destroy]) => {
    const app = createApp().get('/slow', async () => (await new Promise((resolve) => setTimeout(resolve, 30)), 'slow'));
    app.get('/destroyed', destroy as (ctx: Context) => void).get('/next', () => 'next');
    const { port } = await serve(app);
    const text = await rawExchange(port, get('/slow') + get('/destroyed') + get('/next'));
    expect(parseResponses(text).map(({ body }) => body)).toEqual(['slow']);
  });
});

test('a body in chunks that nobody reads does not end the connection, when its request waits for others', async () => {
  const app = createApp();
  app.get('/stream', () => Readable.from(['a', 'b'])).get('/now', () => 'now').post('/unread', () => 'unread');
  const { port } = await serve(app);
  const packet =
    get('/stream') +
    get('/now') +
    post('/unread', CHUNKED, '3\r\nabc\r\n0\r\n\r\n') +
    get('/now', 'Connection: close\r\n');
  const text = await rawExchange(port, packet);
  expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(4);
  expect(text.match(/connection: close/gi)).toHaveLength(1);
});

describe('a refused body that is sent although 100 was not', () => {
  test.for<[string, (() => object | string) | undefined]>([
    ['a value', () => 'no'],
    ['a stream', () => Readable.from(['no'])],
    ['an error', undefined],
  ])('%s reaches the client, with the replies before it', async ([, handler]) => {
    const app = createApp().get('/first', () => 'first');
    if (handler !== undefined) app.post('/refused', handler);
    const { port } = await serve(app);
    const size = 12_000_000;
    const head = get('/first') + post('/refused', `Expect: 100-continue\r\nContent-Length: ${size}\r\n`, '');
    const failures: string[] = [];
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      .on('error', ({ message }) => failures.push(message));
    let text = '';
    socket.on('data', (data: Buffer) => (text += data.toString('latin1')));
    socket.write(head);
    for (let sent = 0; sent < size; sent += 100_000) {
      if (socket.writable && !socket.write(Buffer.alloc(100_000)))
        await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
    }
    socket.end();
    if (!socket.closed) await once(socket, 'close');
    expect(failures).toEqual([]);
    expect(text.match(/HTTP\/1\.1 (\d{3})/g)).toHaveLength(2);
    expect(text).toContain('first');
  });

  test('ends the connection at once for a client that waits', async () => {
    const { port } = await serve(createApp().post('/', () => 'no'));
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(post('/', 'Expect: 100-continue\r\nContent-Length: 9\r\n', '')),
    );
    await once(socket.resume(), 'end');
  });
});

describe('an Upgrade request', () => {
  const upgradable = (upgraded: string[]): Postern => {
    const app = createApp().get('/now', () => 'now')
      .get('/later', async () => (await new Promise((resolve) => setTimeout(resolve, 30)), 'later'));
    app.get('/closing', () => reply('closing', { headers: { connection: 'close' } }));
    app.get('/destroyed', ({ raw }) => void raw.res.destroy());
    app.server.on('upgrade', ({ url = '' }: IncomingMessage, socket: Duplex) => {
      upgraded.push(url);
      socket.on('error', () => undefined);
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\nOTHER');
    });
    return app;
  };

  test.for([
    ['alone', '', ['101']],
    ['behind two replies of the same turn', get('/now') + get('/now'), ['200', '200']],
    ['behind a reply that takes longer', get('/later'), ['200']],
    ['behind a reply that ends the connection', get('/closing'), ['200']],
    ['behind a reply that its handler destroys', get('/destroyed'), null],
    ['behind replies that are ready and one that is not', get('/now') + get('/later') + get('/now'),
      ['200', '200', '200']],
  ] as const)('%s comes after the replies, or the connection ends', async ([, before, statuses]) => {
    const upgraded: string[] = [];
    const { port } = await serve(upgradable(upgraded));
    const text = await rawExchange(port, before + UPGRADE);
    expect(text.match(/(?<=HTTP\/1\.1 )\d{3}/g)).toEqual(statuses);
    const isUpgraded = statuses?.includes('101' as never) === true;
    expect([text.endsWith('OTHER'), upgraded]).toEqual([isUpgraded, isUpgraded ? ['/up'] : []]);
  });
});

test('an Upgrade request behind an open reply reaches no listener, and ends the connection after it', async () => {
  let upgrades = 0;
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  const app = createApp().get('/held', async ({ raw: { res } }) => {
    res.write('open');
    await held;
    res.end('closed');
  });
  app.server.on('upgrade', (_req: IncomingMessage, socket: Duplex) => {
    upgrades += 1;
    socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
  });
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write(get('/held')));
  let text = '';
  socket.on('data', (data: Buffer) => (text += data.toString('latin1')));
  await expect.poll(() => text).toContain('open');
  // In a packet of its own, and with another request behind it.
  socket.write(get('/up', 'Connection: upgrade\r\nUpgrade: other\r\n') + get('/held'));
  for (let i = 0; i < 100; i += 1) await turn();
  release();
  await once(socket, 'close');
  expect([text.match(/HTTP\/1\.1 \d{3}/g), text.endsWith('0\r\n\r\n'), upgrades]).toEqual([['HTTP/1.1 200'], true, 0]);
});

test('an Upgrade request in the packet of another request comes after its reply, or the connection ends', async () => {
  const app = createApp().get('/now', () => 'now');
  app.server.on('upgrade', (_req: IncomingMessage, socket: Duplex) => {
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\nOTHER');
  });
  const { port } = await serve(app);
  const packet = get('/now') + get('/up', 'Connection: upgrade\r\nUpgrade: other\r\n');
  const text = await rawExchange(port, packet);
  expect(text).toMatch(/^HTTP\/1\.1 200 [^]*?\r\n\r\nnow(?:HTTP\/1\.1 101 [^]*\r\n\r\nOTHER)?$/);
});

test('a long body that is echoed arrives whole, although an Upgrade request follows it', async () => {
  const app = createApp().post('/echo', (ctx) => ctx.stream());
  app.server.on('upgrade', (_req: IncomingMessage, socket: Duplex) => socket.destroy());
  const { port } = await serve(app);
  for (const size of [30_000, 100_000]) {
    const packet =
      post('/echo', `Content-Length: ${size}\r\n`, 'x'.repeat(size)) +
      get('/up', 'Connection: upgrade\r\nUpgrade: other\r\n');
    const text = await rawExchange(port, packet);
    expect([text.match(/x/g)?.length, text.endsWith('0\r\n\r\n')])
      .toEqual([size + (text.slice(0, text.indexOf('\r\n\r\n')).match(/x/g)?.length ?? 0), true]);
  }
});

test.for([
  ['nothing', ''],
  ['a little more', 'more'],
  ['more than its socket buffers', 'x'.repeat(60_000)],
] as const)('a client that sends an Upgrade request behind an open one, and %s, and leaves is noticed', async ([, more]) => {
  const app = createApp();
  const aborted = new Promise((resolve) => {
    app.get('/pending', ({ signal }) => new Promise(() => signal.addEventListener('abort', resolve)));
  });
  app.server.on('upgrade', (_req: IncomingMessage, socket: Duplex) => void socket.destroy());
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write(get('/pending') + UPGRADE));
  await expect.poll(() => activeTasksOf(app)).toBe(1);
  await new Promise((resolve) => socket.write(more, resolve));
  socket.end();
  await aborted;
});

test.for([
  ['something malformed', 'nonsense\r\n\r\n'],
  ['CONNECT', 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n'],
])('%s is not answered inside a reply that breaks off', async ([, behind]) => {
  const app = expectFailures(createApp(), 500);
  const fail = async function* (): AsyncGenerator<string> {
    yield 'a';
    await turn();
    throw new Error('the source failed');
  };
  app.get('/', () => fail());
  const { port } = await serve(app);
  const text = await rawExchange(port, get('/') + behind);
  expect(text).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\n1\r\na\r\n$/);
});

describe('framing, whoever sets the headers', () => {
  const framed = (handler: (ctx: Context) => unknown): Postern => createApp().get('/', handler as () => object)
    .get('/next', () => 'next');
  test.for<[string, (ctx: Context) => unknown, string]>([
    ['a text', () => 'hello', 'hello'],
    ['a Response with a length', () => new Response('hello', { headers: { 'content-length': '5' } }), 'hello'],
    ['a stream with a length', () => reply(Readable.from(['hello']), { headers: { 'content-length': '5' } }), 'hello'],
    ['a 204', () => undefined, ''],
    ['a 304', () => reply(undefined, { status: 304 }), ''],
    ['a head written by hand', ({ raw }) => void raw.res.writeHead(200, { 'Content-Length': 5 }).end('hello'), 'hello'],
    ['a head written by hand as a list',
      ({ raw }) => void raw.res.writeHead(200, ['Content-Length', '5', 'Transfer-Encoding', 'chunked']).end('hello'),
      'hello'],
  ])('%s has one length, although transfer-encoding was set', async ([, handler, body]) => {
    const { port } = await serve(
      framed((ctx) => (ctx.raw.res.setHeader('transfer-encoding', 'chunked'), handler(ctx))),
    );
    const text = await rawExchange(port, get('/') + get('/next', 'Connection: close\r\n'));
    const [head = '', rest = ''] = [text.slice(0, text.indexOf('\r\n\r\n')), text.slice(text.indexOf('\r\n\r\n') + 4)];
    expect(head).not.toMatch(/transfer-encoding/i);
    expect(rest.startsWith(`${body}HTTP/1.1 200`)).toBe(true);
  });

  test('a 204 has no content-length', async () => {
    const { port } = await serve(framed(({ raw }) => void raw.res.setHeader('content-length', '7')));
    const text = await rawExchange(port, get('/') + get('/next', 'Connection: close\r\n'));
    expect(text.slice(0, text.indexOf('\r\n\r\n'))).not.toMatch(/content-length/i);
    expect(text.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 204', 'HTTP/1.1 200']);
  });

  test('HTTP/1.0 gets no chunks that a handler asked for', async () => {
    const { port } = await serve(
      framed(({ raw }) => (raw.res.setHeader('transfer-encoding', 'chunked'), Readable.from(['a', 'b']))),
    );
    const text = await rawExchange(port, get('/', 'Connection: keep-alive\r\n', '1.0'));
    expect(text).not.toMatch(/transfer-encoding/i);
    expect(text.endsWith('\r\n\r\nab')).toBe(true);
  });
});

test('a 204 that cannot be written is a 500 with its body', async () => {
  const app = expectFailures(createApp(), 500).get('/', ({ raw }) => void raw.res.setHeader('trailer', 'x-sum'))
    .get('/next', () => 'next');
  const { port } = await serve(app);
  const responses = parseResponses(await rawExchange(port, get('/') + get('/next', 'Connection: close\r\n')));
  expect(responses.map(({ status }) => status)).toEqual([500, 200]);
  expect(JSON.parse(responses[0]?.body ?? '')).toMatchObject({ error_code: { name: 'framework_unknown_error' } });
});

