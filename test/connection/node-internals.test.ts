/** The members of node:http that the documentation of Node.js does not provide for do what Postern relies on. */

import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type RequestOptions, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import * as internals from '../../src/wire/node-internals.js';

type Listener = (req: IncomingMessage, res: ServerResponse) => void;

/** A bare server with a listener; it is closed after the test. */
async function listen(listener: Listener): Promise<{ server: ReturnType<typeof createServer>; port: number }> {
  const server = createServer(listener);
  onTestFinished(() => void server.close().closeAllConnections());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

/** What a client of a bare server gets. */
async function ask(
  listener: Listener, options: RequestOptions = {}, body = '',
): Promise<{ head: IncomingMessage; text: string }> {
  const { port } = await listen(listener);
  const sent = request({ port, host: '127.0.0.1', agent: false, ...options }).end(body);
  const [head] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of head) text += String(chunk);
  return { head, text };
}

/** A raw connection, and all that it has received. */
function open(port: number, bytes: string): { socket: Socket; received: () => string } {
  let received = '';
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.write(bytes);
  socket.on('data', (data) => (received += data.toString('latin1'))).on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  return { socket, received: () => received };
}
const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

test.for<[string, boolean, Listener]>([
  ['a given connection: close', true, (_req, res) => void res.writeHead(200, { connection: 'close' }).end('x')],
  ['keep-alive', false, (_req, res) => void res.writeHead(200, { 'content-length': '1' }).end('x')],
])('saysClose knows %s', async ([, expected, listener]) => {
  const said: boolean[] = [];
  await ask((req, res) => {
    listener(req, res);
    said.push(internals.saysClose(res));
  }, { headers: { connection: 'keep-alive' } });
  expect(said).toEqual([expected]);
});

test('allowBody lets a reply have a body after a 204 that could not be written', async () => {
  const { text } = await ask((_req, res) => {
    expect(() => res.writeHead(204, { 'x-a': '\n' })).toThrow();
    internals.allowBody(res, true);
    res.removeHeader('x-a');
    res.writeHead(500, { 'content-length': '4' }).end('body');
  });
  expect(text).toBe('body');
});

test.for<[string, (req: IncomingMessage) => unknown]>([
  ['data', (req) => req.on('data', () => undefined)],
  ['resume', (req) => req.resume()],
  ['iteration', (req) => req[Symbol.asyncIterator]().next()],
])('beforeFirstRead is called once, before a body is read by %s', async ([, read]) => {
  let calls = 0;
  await ask((req, res) => {
    internals.beforeFirstRead(req, () => (calls += 1));
    read(req);
    req.once('end', () => res.end());
    setImmediate(() => req.resume());
  }, { method: 'POST' }, 'body');
  expect(calls).toBe(1);
});

test('replaceDestroySoon replaces what ends a connection after connection: close', async () => {
  let ends = 0;
  const { port } = await listen((req, res) => {
    internals.replaceDestroySoon(req.socket, () => void ((ends += 1), req.socket.end()));
    res.writeHead(200, { connection: 'close' }).end('x');
  });
  await once(open(port, GET).socket, 'end');
  expect(ends).toBe(1);
});

test('deferEnd puts off the end of the other side when a client half-closes', async () => {
  let end = (): void => undefined;
  const { port } = await listen((req) => internals.deferEnd(req.socket, (go) => (end = go)));
  const { socket } = open(port, GET);
  socket.end();
  let hasEnded = false;
  socket.once('end', () => (hasEnded = true));
  await expect.poll(() => end.name, { timeout: 10_000 }).not.toBe('end');
  expect(hasEnded).toBe(false);
  end();
  await expect.poll(() => hasEnded, { timeout: 10_000 }).toBe(true);
});

test('stopReading leaves a socket unread although node:http resumes it, and then reads on', async () => {
  let readOn = (): void => undefined;
  const seen: string[] = [];
  const { port } = await listen((req, res) => {
    seen.push(req.url ?? '');
    if (seen.length === 1) readOn = internals.stopReading(req.socket);
    res.end();
  });
  const { socket, received } = open(port, GET);
  await expect.poll(received, { timeout: 10_000 }).toContain('200 OK');
  socket.write(GET.replace('/', '/second'));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(seen).toEqual(['/']);
  readOn();
  await expect.poll(() => seen, { timeout: 10_000 }).toEqual(['/', '/second']);
});

test('takenBytes grows as a client takes its reply, and isHeldBack is false for a quick client', async () => {
  const taken: number[] = [];
  await ask((req, res) => {
    taken.push(internals.takenBytes(req.socket));
    expect(internals.isHeldBack(req.socket)).toBe(false);
    res.on('finish', () => taken.push(internals.takenBytes(req.socket))).end('x'.repeat(1000));
  });
  expect(taken[1]).toBeGreaterThan((taken[0] ?? 0) + 999);
});

test('serverOf finds the server of a request, and takeRequestsWithoutHost lets one without Host through', async () => {
  const found: unknown[] = [];
  const { server, port } = await listen((req, res) => {
    found.push(internals.serverOf(req));
    res.end('answered');
  });
  internals.takeRequestsWithoutHost(server);
  const { received } = open(port, 'GET / HTTP/1.1\r\n\r\n');
  await expect.poll(received, { timeout: 10_000 }).toContain('answered');
  expect(found).toEqual([server]);
});

test('guardUpgrades asks before the listeners of upgrade, added before or after', async () => {
  const order: string[] = [];
  const { server, port } = await listen((_req, res) => void res.end());
  internals.guardUpgrades(server, (_req, proceed) => {
    order.push('guard');
    proceed();
  });
  server.on('upgrade', (_req, socket) => {
    order.push('listener');
    socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
  });
  const { received } = open(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n');
  await expect.poll(received, { timeout: 10_000 }).toContain('101');
  expect(order).toEqual(['guard', 'listener']);
});

test('dropLateHeaders drops a head after a reply, and beforeHead sees the headers of each form of writeHead', async () => {
  const given: unknown[] = [];
  const { head } = await ask((_req, res) => {
    internals.beforeHead(res, (status, headers) => {
      given.push([status, headers]);
      for (const [name, value] of headers) res.setHeader(name, value);
    });
    internals.dropLateHeaders(res);
    res.writeHead(200, 'fine', ['x-a', '1']);
    res.end();
    expect(() => res.setHeader('x-late', '1').writeHead(500)).not.toThrow();
  });
  expect([head.statusCode, head.statusMessage, head.headers['x-a']]).toEqual([200, 'fine', '1']);
  expect(given).toEqual([[200, [['x-a', '1']]]]);
});

test('countBytes counts what write and end send', async () => {
  let count = (): number => -1;
  await ask((req, res) => {
    count = internals.countBytes(req, res);
    res.write('ä');
    res.end(Buffer.from('abc'));
  });
  expect(count()).toBe(5);
});

test('spareReaders keeps a connection whose client still reads when idle ones are closed', async () => {
  const open_ = new Set<Socket>();
  const big = 'x'.repeat(32 * 1024 * 1024);
  const { server, port } = await listen((_req, res) => void res.end(big));
  internals.spareReaders(server, open_);
  server.on('connection', (socket: Socket) => open_.add(socket));
  const { socket, received } = open(port, GET);
  await once(socket, 'data');
  server.closeIdleConnections();
  await expect.poll(() => received().length, { timeout: 20_000 }).toBeGreaterThan(big.length);
});

test('wakeReading makes a paused socket of a parser ask for data again', async () => {
  let reads = 0;
  const { port } = await listen(({ socket }) => {
    socket.pause();
    setTimeout(() => {
      socket._read = () => void (reads += 1);
      internals.wakeReading(socket);
    }, 10);
  });
  open(port, GET);
  await expect.poll(() => reads, { timeout: 10_000 }).toBeGreaterThan(0);
});
