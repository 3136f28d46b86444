/**
 * Whatever `src/wire/node-internals.ts` relies on, tried on bare servers of this Node.js: the members that it reads or
 * replaces, and the behaviour that makes them necessary. A test that fails here names what a Node.js has changed.
 */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { Duplex, getDefaultHighWaterMark, PassThrough } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import * as internals from '../../src/wire/node-internals.js';
import { CERTIFICATE, KEY } from '../support/localhost-certificate.js';

/** More than the buffers of both sides hold. */
const LARGE = 48 * 1024 * 1024;

const get = (path: string, headers = '', version = '1.1'): string =>
  `GET ${path} HTTP/${version}\r\nHost: x\r\n${headers}\r\n`;

type Listener = (req: IncomingMessage, res: ServerResponse) => void;

async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A client that keeps what it gets. */
class Client {
  readonly socket: Socket;
  text = '';
  bytes = 0;
  hasEnded = false;

  constructor(port: number, bytes: string) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => this.socket.write(bytes));
    this.socket.on('error', () => undefined).on('end', () => (this.hasEnded = true));
    this.socket.on('data', (chunk: Buffer) => {
      this.bytes += chunk.length;
      if (this.text.length < 100_000) this.text += chunk.toString('latin1');
    });
    onTestFinished(() => void this.socket.destroy());
  }
}

/** Turns of the event loop, enough for whatever should not happen. */
async function letPass(): Promise<void> {
  for (let i = 0; i < 100; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Answers one request by a listener, and returns all that its client got. */
async function exchange(listener: Listener, request: string): Promise<string> {
  const port = await listen(createServer(listener));
  const client = new Client(port, request);
  await expect.poll(() => client.text).toMatch(/\r\n\r\n/);
  client.socket.end();
  await expect.poll(() => client.hasEnded).toBe(true);
  return client.text;
}

test('every export has a test here', () => {
  expect(Object.keys(internals).sort()).toEqual([
    'allowBody', 'beforeFirstRead', 'beforeHead', 'countBytes', 'deferEnd', 'dropLateHeaders', 'guardUpgrades',
    'isHeldBack', 'replaceDestroySoon', 'saysClose', 'serverOf', 'spareReaders', 'stopReading',
    'takeRequestsWithoutHost', 'takenBytes', 'wakeReading',
  ]);
});

describe('saysClose', () => {
  test.for<[string, string, (res: ServerResponse) => unknown, boolean]>([
    ['a header that was set', get('/'), (res) => res.setHeader('Connection', 'close').end('x'), true],
    ['a head', get('/'), (res) => res.writeHead(200, { connection: 'Close' }).end('x'), true],
    ['a head as a list', get('/'), (res) => res.writeHead(200, ['connection', 'close']).end('x'), true],
    ['shouldKeepAlive', get('/'), (res) => ((res.shouldKeepAlive = false), res.end('x')), true],
    ['the client', get('/', 'Connection: close\r\n'), (res) => res.end('x'), true],
    ['HTTP/1.0', get('/', '', '1.0'), (res) => res.end('x'), true],
    ['no length, to HTTP/1.0', get('/', 'Connection: keep-alive\r\n', '1.0'), (res) => {
      res.useChunkedEncodingByDefault = false;
      res.write('x');
      res.end();
    }, true],
    ['nothing', get('/'), (res) => res.end('x'), false],
    ['nothing, to HTTP/1.0', get('/', 'Connection: keep-alive\r\n', '1.0'), (res) =>
      res.setHeader('content-length', 1).end('x'), false],
  ])('knows that a head says close because of %s', async ([, request, answer, isClosing]) => {
    let said: boolean | undefined;
    const text = await exchange((_req, res) => {
      answer(res);
      said = internals.saysClose(res);
    }, request);
    expect([said, /^connection: close/im.test(text)]).toEqual([isClosing, isClosing]);
  });
});

test.for([
  { isAllowed: true, body: 'text' },
  { isAllowed: false, body: '' },
])('after a 204 that could not be written, and allowBody: $isAllowed, a reply has the body "$body"', async ({ isAllowed, body }) => {
  const text = await exchange((_req, res) => {
    expect(() => res.writeHead(204, ['trailer', 'x'])).toThrow();
    if (isAllowed) internals.allowBody(res, true);
    res.writeHead(500, { 'content-length': body.length });
    res.end('text');
  }, get('/'));
  expect(text).toMatch(/^HTTP\/1\.1 500 /);
  expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe(body);
});

describe('beforeFirstRead', () => {
  const readers: Record<string, (req: IncomingMessage) => unknown> = {
    'a listener of data': (req) => req.on('data', () => undefined),
    'a listener of readable': (req) => req.on('readable', () => req.read()),
    'resume()': (req) => req.resume(),
    'read()': (req) => req.read(),
    'pipe()': (req) => req.pipe(new PassThrough()).resume(),
    'an iterator': async (req) => {
      for await (const _chunk of req);
    },
  };
  test.for(Object.keys(readers))('is called once, and first, for a body that its client holds back and %s asks for', async (how) => {
    let calls = 0;
    const server = createServer();
    server.on('checkContinue', async (req: IncomingMessage, res: ServerResponse) => {
      internals.beforeFirstRead(req, () => {
        calls += 1;
        res.writeContinue();
      });
      await letPass();
      expect(calls).toBe(0);
      req.on('end', () => res.end('read'));
      readers[how]?.(req);
      // Asked once, `read()` gets nothing of a body that is still to come.
      if (how === 'read()') setImmediate(() => req.resume());
    });
    const client = new Client(
      await listen(server),
      'POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 200000\r\n\r\n',
    );
    await expect.poll(() => client.text).toContain('100 Continue');
    client.socket.write('x'.repeat(200_000));
    await expect.poll(() => client.text).toContain('read');
    expect(calls).toBe(1);
  });

  test('is called for no body that nobody reads', async () => {
    let calls = 0;
    const text = await exchange((req, res) => {
      internals.beforeFirstRead(req, () => (calls += 1));
      setImmediate(() => res.end(`${calls} calls`));
    }, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody');
    expect(text).toContain('0 calls');
  });
});

test('replaceDestroySoon is what ends a connection after a reply that says close', async () => {
  const ends: Socket[] = [];
  const port = await listen(createServer((req, res) => {
    const { socket } = req;
    internals.replaceDestroySoon(socket, () => ends.push(socket));
    res.setHeader('connection', 'close').end('last');
  }));
  const client = new Client(port, get('/'));
  await expect.poll(() => client.text).toContain('last');
  await expect.poll(() => ends.length).toBe(1);
  await letPass();
  expect(client.hasEnded).toBe(false);
  ends[0]?.end();
  await expect.poll(() => client.hasEnded).toBe(true);
});

test.for([true, false])('a reply after the end of its client arrives: %s, if deferEnd was called', async (isDeferred) => {
  const responses: ServerResponse[] = [];
  const ends: (() => void)[] = [];
  let hasEnded = false;
  const server = createServer((_req, res) => void responses.push(res));
  server.on('connection', (socket) =>
    socket.prependListener('end', () => {
      hasEnded = true;
      if (isDeferred) internals.deferEnd(socket, (end) => ends.push(end));
    }),
  );
  const client = new Client(await listen(server), get('/'));
  await expect.poll(() => responses.length).toBe(1);
  client.socket.end();
  await expect.poll(() => hasEnded).toBe(true);
  await letPass();
  responses[0]?.end('late');
  if (isDeferred) await expect.poll(() => client.text).toContain('late');
  expect(ends).toHaveLength(isDeferred ? 1 : 0);
  for (const end of ends) end();
  await expect.poll(() => client.hasEnded).toBe(true);
  expect(client.text.includes('late')).toBe(isDeferred);
});

test.for(['stopReading', 'pause'] as const)('after %s, node:http reads on by itself or not', async (how) => {
  const urls: unknown[] = [];
  let readOn = (): void => undefined;
  const port = await listen(createServer((req, res) => {
    urls.push(req.url);
    if (urls.length > 1) return void res.end('x');
    if (how === 'pause') req.socket.pause();
    else readOn = internals.stopReading(req.socket);
    res.end('x');
  }));
  const client = new Client(port, get('/1'));
  await expect.poll(() => client.text).toContain('x');
  await new Promise((resolve) => client.socket.write(get('/2'), resolve));
  await letPass();
  if (how === 'stopReading') {
    expect(urls).toEqual(['/1']);
    readOn();
  }
  await expect.poll(() => urls).toEqual(['/1', '/2']);
});

test('isHeldBack knows that node:http waits for its client, and that nobody else can resume the socket', async () => {
  const sockets: Socket[] = [];
  const urls: unknown[] = [];
  const port = await listen(createServer(({ url, socket }, res) => {
    sockets.push(socket);
    urls.push(url);
    // What is written to a response that waits for its turn makes node:http read on.
    if (url === '/large') res.end(Buffer.alloc(LARGE));
  }));
  const client = new Client(port, get('/large'));
  client.socket.pause();
  await expect.poll(() => urls).toEqual(['/large']);
  const socket = sockets[0] as Socket;
  expect(internals.isHeldBack(socket)).toBe(false);
  client.socket.write(get('/next'));
  await expect.poll(() => internals.isHeldBack(socket)).toBe(true);
  let pauses = 0;
  socket.on('pause', () => (pauses += 1));
  socket.resume();
  await expect.poll(() => pauses).toBe(1);
  expect(socket.isPaused()).toBe(true);
  client.socket.resume();
  await expect.poll(() => client.bytes).toBeGreaterThan(LARGE);
  await expect.poll(() => internals.isHeldBack(socket)).toBe(false);
});

test('wakeReading shows the end of a client whose full body was not read before its CONNECT', async () => {
  let hasEnded = false;
  const server = createServer(() => undefined);
  server.on('connect', (_req, socket: Duplex) => {
    socket.on('end', () => (hasEnded = true)).resume();
    internals.wakeReading(socket);
  });
  // It fills its buffer, and the rest of what is read at once is parsed.
  const body = 'x'.repeat(getDefaultHighWaterMark(false) + 10_000);
  const port = await listen(server);
  const client = new Client(
    port,
    `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`,
  );
  await once(server, 'connect');
  client.socket.end('more');
  await expect.poll(() => hasEnded).toBe(true);
});

describe('takenBytes', () => {
  test.for([
    ['bytes', Buffer.alloc(LARGE)],
    ['a text of two bytes for each character', 'é'.repeat(LARGE / 2)],
  ] as const)('counts what the client takes of %s', async ([, body]) => {
    let socket: Socket | undefined;
    const port = await listen(createServer((req, res) => {
      ({ socket } = req);
      res.setHeader('content-length', LARGE).end(body);
    }));
    const client = new Client(port, get('/'));
    client.socket.pause();
    await expect.poll(() => socket).toBeDefined();
    const taken = (): number => internals.takenBytes(socket as Socket);
    await letPass();
    expect(taken()).toBeLessThan(LARGE);
    client.socket.resume();
    await expect.poll(() => client.bytes).toBeGreaterThan(LARGE);
    await expect.poll(taken).toBe(client.bytes);
  });

  test('of a stream in memory grows as its queue shrinks', async () => {
    let done = (): void => undefined;
    const write = (_chunk: unknown, _encoding: string, callback: () => void): void => void (done = callback);
    const stream = new Duplex({ read: () => undefined, write });
    const before = internals.takenBytes(stream);
    stream.write('12345');
    expect(internals.takenBytes(stream)).toBe(before - 5);
    done();
    await letPass();
    expect(internals.takenBytes(stream)).toBe(before);
  });
});

describe('serverOf', () => {
  test('is the server of a request', async () => {
    const server = createServer((req, res) => res.end(String(internals.serverOf(req) === server)));
    expect(await (await fetch(`http://127.0.0.1:${await listen(server)}`)).text()).toBe('true');
  });

  test('is the server of a request over TLS', async () => {
    const server = createTlsServer({ cert: CERTIFICATE, key: KEY }, (req, res) =>
      res.end(String(internals.serverOf(req) === server)),
    );
    const client = connectTls({ port: await listen(server), host: '127.0.0.1', rejectUnauthorized: false });
    onTestFinished(() => void client.destroy());
    client.write(get('/', 'Connection: close\r\n'));
    let text = '';
    client.on('data', (chunk) => (text += String(chunk)));
    await expect.poll(() => text).toContain('\r\n\r\ntrue');
  });

  test('is the server of a request over a stream in memory', async () => {
    let text = '';
    const write = (chunk: Buffer, _encoding: string, done: () => void): void => {
      text += String(chunk);
      done();
    };
    const socket = new Duplex({ read: () => undefined, write });
    const server = createServer((req, res) => res.end(String(internals.serverOf(req) === server)));
    server.emit('connection', socket);
    socket.push(get('/'));
    await expect.poll(() => text).toContain('\r\n\r\ntrue');
    socket.destroy();
  });
});

test.for([true, false])('a request without Host reaches its listener: %s, if takeRequestsWithoutHost was called', async (isTaken) => {
  const server = createServer((_req, res) => res.end('taken'));
  if (isTaken) internals.takeRequestsWithoutHost(server);
  const client = new Client(await listen(server), 'GET / HTTP/1.1\r\n\r\n');
  await expect.poll(() => client.text).toMatch(isTaken ? /^HTTP\/1\.1 200 [^]*taken/ : /^HTTP\/1\.1 400 /);
});

test.for(['closeIdleConnections', 'close'] as const)('%s cuts a client that still reads its reply, but for spareReaders', async (close) => {
  for (const isSpared of [false, true]) {
    const sockets = new Set<Socket>();
    let answered = 0;
    const server = createServer((_req, res) => {
      answered += 1;
      res.setHeader('content-length', LARGE).end(Buffer.alloc(LARGE));
    });
    server.on('connection', (socket) => void sockets.add(socket));
    if (isSpared) internals.spareReaders(server, sockets);
    const client = new Client(await listen(server), get('/'));
    client.socket.pause();
    await expect.poll(() => answered).toBe(1);
    await letPass();
    server[close]();
    const [socket] = [...sockets] as [Socket];
    expect(socket.destroyed).toBe(!isSpared);
    expect(Object.hasOwn(socket, 'destroy')).toBe(false);
    client.socket.resume();
    if (isSpared) await expect.poll(() => client.bytes).toBeGreaterThan(LARGE);
    // An idle one is closed.
    if (isSpared) server.closeIdleConnections();
    await expect.poll(() => socket.destroyed).toBe(true);
  }
});

describe('guardUpgrades', () => {
  const UPGRADE = get('/up', 'Connection: upgrade\r\nUpgrade: x\r\n');
  const accept = (_req: IncomingMessage, socket: Duplex): unknown =>
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n');

  test.for([
    { isBefore: true, isAllowed: true },
    { isBefore: true, isAllowed: false },
    { isBefore: false, isAllowed: true },
    { isBefore: false, isAllowed: false },
  ])('is asked before a listener (added before: $isBefore), which gets the request: $isAllowed', async ({ isBefore, isAllowed }) => {
    const server = createServer();
    const asked: unknown[] = [];
    if (isBefore) server.on('upgrade', accept);
    internals.guardUpgrades(server, (req, proceed) => {
      asked.push(req.url);
      if (isAllowed) proceed();
      else req.socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    });
    if (!isBefore) server.on('upgrade', accept);
    const client = new Client(await listen(server), UPGRADE);
    await expect.poll(() => client.text).toMatch(isAllowed ? /^HTTP\/1\.1 101 / : /^HTTP\/1\.1 403 /);
    expect(asked).toEqual(['/up']);
  });

  test('leaves an upgrade without listeners to be answered as a request', async () => {
    const asked: unknown[] = [];
    const server = createServer((_req, res) => res.end('answered'));
    internals.guardUpgrades(server, (req) => void asked.push(req.url));
    const client = new Client(await listen(server), UPGRADE);
    await expect.poll(() => client.text).toContain('answered');
    expect(asked).toEqual([]);
  });
});

describe('dropLateHeaders', () => {
  const late: Record<string, (res: ServerResponse) => unknown> = {
    setHeader: (res) => res.setHeader('x', 'y'),
    setHeaders: (res) => res.setHeaders(new Headers({ x: 'y' })),
    appendHeader: (res) => res.appendHeader('x', 'y'),
    removeHeader: (res) => res.removeHeader('x'),
    writeHead: (res) => res.writeHead(201, { x: 'y' }),
  };
  test.for(Object.keys(late))('%s before the head works, after it does nothing, and throws otherwise', async (name) => {
    const write = late[name] as (res: ServerResponse) => unknown;
    let thrown: unknown;
    await exchange((_req, res) => {
      res.end('x');
      try {
        write(res);
      } catch (error) {
        thrown = error;
      }
    }, get('/'));
    expect(thrown).toMatchObject({ code: 'ERR_HTTP_HEADERS_SENT' });
    const text = await exchange((_req, res) => {
      res.setHeader('x', 'before');
      internals.dropLateHeaders(res);
      write(res);
      if (!res.headersSent) res.flushHeaders();
      expect(write(res)).toBe(res);
      res.end('x');
    }, get('/'));
    const values = { setHeader: 'y', setHeaders: 'y', appendHeader: 'before, y', removeHeader: undefined, writeHead: 'y' };
    const fields = [...text.matchAll(/^x: (.*)\r$/gm)].map(([, value]) => value);
    expect(fields.length === 0 ? undefined : fields.join(', ')).toBe(values[name as keyof typeof values]);
  });
});

describe('beforeHead', () => {
  const FIELDS = [['x-a', '1'], ['x-b', ['2', '3']]];
  test.for<[string, (res: ServerResponse) => unknown, number, unknown]>([
    ['end()', (res) => res.end('x'), 200, []],
    ['write()', (res) => (res.write('x'), res.end()), 200, []],
    ['flushHeaders()', (res) => (res.flushHeaders(), res.end('x')), 200, []],
    ['pipe()', (res) => new PassThrough().end('x').pipe(res), 200, []],
    ['a status', (res) => ((res.statusCode = 202), res.end('x')), 202, []],
    ['writeHead(status)', (res) => res.writeHead(201).end('x'), 201, []],
    ['writeHead(status, reason)', (res) => res.writeHead(201, 'Made').end('x'), 201, []],
    ['writeHead with an object', (res) => res.writeHead(201, { 'x-a': '1', 'x-b': ['2', '3'] }).end('x'), 201, FIELDS],
    ['writeHead with a reason and an object',
      (res) => res.writeHead(201, 'Made', { 'x-a': '1', 'x-b': ['2', '3'] }).end('x'), 201, FIELDS],
    ['writeHead with a list', (res) => res.writeHead(201, ['x-a', '1', 'x-b', ['2', '3']] as never).end('x'), 201, FIELDS],
    ['writeHead with pairs', (res) => res.writeHead(201, FIELDS as never).end('x'), 201, FIELDS],
  ])('is called once for the head of %s, and may change it', async ([, answer, status, given]) => {
    const calls: unknown[] = [];
    const text = await exchange((_req, res) => {
      internals.beforeHead(res, (...call) => {
        calls.push(call);
        res.setHeader('x-prepared', 'yes');
      });
      answer(res);
    }, get('/'));
    expect(calls).toEqual([[status, given]]);
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*^x-prepared: yes\\r$`, 'm'));
  });
});

describe('countBytes', () => {
  test.for<[string, string, (res: ServerResponse) => unknown, number]>([
    ['a text', 'GET', (res) => res.end('é'), 2],
    ['a text in latin1', 'GET', (res) => res.end('é', 'latin1'), 1],
    ['a text in base64', 'GET', (res) => res.end('AAAA', 'base64'), 3],
    ['bytes', 'GET', (res) => res.end(Buffer.alloc(5)), 5],
    ['pieces', 'GET', (res) => (res.write('é'), res.write(Buffer.alloc(3)), res.end('x')), 6],
    ['pieces with callbacks', 'GET', (res) => res.write('ab', () => res.end(() => undefined)), 2],
    ['a pipe', 'GET', (res) => new PassThrough().end('piped').pipe(res), 5],
    ['nothing', 'GET', (res) => res.end(), 0],
    ['HEAD', 'HEAD', (res) => res.end('dropped'), 0],
    ['a 204', 'GET', (res) => res.writeHead(204).end('dropped'), 0],
    ['a 304', 'GET', (res) => res.writeHead(304).end('dropped'), 0],
  ])('counts what is sent of %s', async ([, method, answer, bytes]) => {
    let count = (): number => -1;
    const server = createServer((req, res) => {
      count = internals.countBytes(req, res);
      answer(res);
    });
    const response = await fetch(`http://127.0.0.1:${await listen(server)}`, { method });
    const received = (await response.arrayBuffer()).byteLength;
    expect([count(), received]).toEqual([bytes, bytes]);
  });
});
