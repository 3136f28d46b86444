/**
 * What holds while a process is told to end: nothing that was accepted is lost, and nothing is left behind.
 *
 * @module-tag slow
 */

import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { connect as connectMiddleware, reply, type ConnectMiddleware, type Postern, type Reply } from 'postern';
import { parseResponses, rawExchange, type RawResponse } from '../support/raw.js';
import { activeTasksOf, createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SERVICE = fileURLToPath(new URL('../support/drained-service.mjs', import.meta.url));

interface Running {
  readonly child: ChildProcess;
  readonly port: number;
  readonly messages: unknown[];
  readonly exited: Promise<[number | null, string | null]>;
  said(message: string): Promise<void>;
}

async function start(options: object = {}): Promise<Running> {
  const stdio = ['pipe', 'inherit', 'inherit', 'ipc'] as const;
  const child = fork(SERVICE, [JSON.stringify({ delay: 0, ...options })], { execArgv: [], stdio: [...stdio] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const messages: unknown[] = [];
  const exited = once(child, 'exit') as Promise<[number | null, string | null]>;
  const [port] = (await once(child, 'message')) as [number];
  child.on('message', (message) => messages.push(message));
  const said = async (message: string): Promise<void> => {
    while (!messages.includes(message)) await once(child, 'message');
  };
  return { child, port, messages, exited, said };
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

/** A connection that stays open: what it receives, and when it ends. */
function open(port: number): {
  socket: Socket;
  closed: Promise<RawResponse[]>;
  answered: (count: number) => Promise<void>;
} {
  let text = '';
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  const closed = once(socket, 'close').then(() => parseResponses(text));
  const answered = async (count: number): Promise<void> => {
    while ((text.match(/HTTP\/1\.1 /g) ?? []).length < count) await once(socket, 'data');
  };
  return { socket, closed, answered };
}

test.for(['SIGTERM', 'SIGINT'] as const)(
  '%s: a request in flight finishes, idle connections close, hooks run once, the process exits with 0',
  async (signal) => {
    const { child, port, messages, exited, said } = await start({ timeout: 3_600_000 });
    const idle = open(port);
    idle.socket.write(get('/'));
    await idle.answered(1);
    const silent = open(port);
    await once(silent.socket, 'connect');
    const busy = rawExchange(port, get('/slow/300'));
    await said('slow');
    child.kill(signal);
    expect((await idle.closed).map(({ status }) => status)).toEqual([200]);
    await silent.closed;
    const [response] = parseResponses(await busy);
    expect([response?.status, response?.body, response?.headers['connection']]).toEqual([200, 'done', 'close']);
    expect(await exited).toEqual([0, null]);
    expect(messages.filter((message) => String(message).startsWith('hook'))).toEqual(['hook 1']);
  },
);

test('a signal that comes with the line that says where the service listens drains it', async () => {
  const script = `
    import { Postern } from 'postern';
    const silent = () => {};
    const info = (entry, message) => message === 'listening' && process.kill(process.pid, 'SIGTERM');
    const app = new Postern('a', { logger: { debug: silent, info, warn: silent, error: silent } });
    app.onClose(() => console.log('closed'));
    await app.run({ host: '127.0.0.1', port: 0, delay: 0 });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: ROOT });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  expect([await once(child, 'close'), output]).toEqual([[0, null], 'closed\n']);
});

test.for(['soon', '-1', '1.5', '1e3'])('DRAIN_DELAY "%s" is refused before anything listens', async (text) => {
  vi.stubEnv('DRAIN_DELAY', text);
  onTestFinished(() => void vi.unstubAllEnvs());
  const app = createApp();
  await expect(app.run({ port: 0, host: '127.0.0.1' })).rejects.toThrow(
    new TypeError(`DRAIN_DELAY is "${text}"; give ms, 0 or more`),
  );
  expect(app.server.listening).toBe(false);
  await app.close();
});

test('DRAIN_DELAY may be longer than a timer can wait, as the option may', async () => {
  vi.stubEnv('DRAIN_DELAY', '99999999999');
  onTestFinished(() => void vi.unstubAllEnvs());
  const app = createApp();
  await app.run({ port: 0, host: '127.0.0.1' });
  expect(app.server.listening).toBe(true);
});

test('what outlives the time limit is cut, and the process exits with 1', async () => {
  const { child, port, exited, said } = await start({ timeout: 50 });
  const busy = rawExchange(port, get('/never'));
  await said('never');
  child.kill('SIGTERM');
  expect(await busy).toBe('');
  expect(await exited).toEqual([1, null]);
});

test('a request whose client has left does not hold the process, nor make it exit with 1', async () => {
  const { child, port, exited, said } = await start({ timeout: 60_000 });
  const { socket } = open(port);
  socket.write(get('/never'));
  await said('never');
  socket.destroy();
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
});

test('a first signal waits for a close that the service began itself', async () => {
  const { child, port, exited, said } = await start();
  const busy = rawExchange(port, get('/close/400'));
  await said('slow');
  child.kill('SIGTERM');
  const [response] = parseResponses(await busy);
  expect(response?.body).toBe('done');
  expect(await exited).toEqual([0, null]);
});

test('a connection that the kernel accepted before the drain stopped to listen is answered', async () => {
  const { child, port, said } = await start();
  const first = open(port);
  first.socket.write(get('/block'));
  await said('blocked');
  const waiting = Array.from({ length: 20 }, () => open(port));
  await Promise.all(waiting.map(async ({ socket }) => {
    await once(socket, 'connect');
    await new Promise((resolve) => socket.write(get('/'), resolve));
  }));
  child.stdin?.write('.');
  for (const { closed } of [first, ...waiting]) expect((await closed).map(({ status }) => status)).toEqual([200]);
});

test('a second signal, half a second after the first, ends the process at once', async () => {
  const { child, port, exited, said } = await start({ timeout: 60_000 });
  const busy = rawExchange(port, get('/never'));
  await said('never');
  child.kill('SIGTERM');
  await said('SIGTERM');
  await new Promise((resolve) => setTimeout(resolve, 600));
  child.kill('SIGTERM');
  const [code] = await exited;
  expect(code).toBe(1);
  await busy;
});

/** How slow a slow client is: it is looked at several times while it takes nothing. */
const slowly = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 300));

const BIG = Buffer.alloc(8_000_000, 'x');

const byHand: ConnectMiddleware = (_req, res) => void res.setHeader('content-length', BIG.length).end(BIG);

test.for<[string, (app: Postern) => unknown]>([
  ['a text', (app) => app.get('/big', () => BIG.toString())],
  ['bytes', (app) => app.get('/big', () => BIG)],
  ['a stream of one chunk', (app) => app.get('/big', () => Readable.from([BIG]))],
  ['a stream of many chunks', (app) =>
    app.get('/big', () => Readable.from(Array.from({ length: 8 }, () => BIG.subarray(0, 1_000_000))))],
  ['written by ctx.raw', (app) => app.get('/big', ({ raw: { req, res } }) => void byHand(req, res, () => undefined))],
  ['written by Connect', (app) => app.get('/big', { middleware: [connectMiddleware(byHand)] }, () => 'unreachable')],
  ['written by a mount', (app) => app.mount('/big', (req, res) => byHand(req, res, () => undefined))],
])('a reply that a slow client has still to take is not cut by the drain: %s', async ([, add]) => {
  const app = createApp();
  add(app);
  const { port } = await serve(app);
  const { socket, closed } = open(port);
  socket.write(get('/big'));
  await once(socket, 'data');
  socket.pause();
  const done = app.close({ timeout: 10_000 });
  await slowly();
  socket.resume();
  const [response] = await closed;
  expect(response?.status).toBe(200);
  expect(response?.body.length).toBeGreaterThanOrEqual(BIG.length);
  await done;
});

test.for(['over TCP', 'in memory'])('close hooks run when the requests that were cut know it: %s', async (how) => {
  const order: string[] = [];
  const app = createApp().get('/never', ({ signal }) => new Promise((_resolve, reject) => {
    order.push('running');
    signal.addEventListener('abort', () => (order.push('aborted'), reject(signal.reason)));
  }));
  app.onClose(() => order.push(/^active_task_count \S+/m.exec(app.metrics.expose())?.[0] ?? ''));
  const { url } = await serve(app);
  const asked = how === 'in memory' ? app.request('/never') : fetch(new URL('/never', url));
  asked.catch(() => undefined);
  await expect.poll(() => order).toEqual(['running']);
  await app.close({ timeout: 50 });
  expect(order).toEqual(['running', 'aborted', 'active_task_count 0.0']);
});

test('a large reply behind another on its connection is not cut by the drain', async () => {
  const app = createApp().get('/', () => Promise.resolve('first')).get('/big', () => BIG);
  const { port } = await serve(app);
  const { socket, closed } = open(port);
  socket.write(get('/') + get('/big'));
  await once(socket, 'data');
  socket.pause();
  const done = app.close({ timeout: 10_000 });
  await slowly();
  socket.resume();
  expect((await closed).map(({ body }) => body.length)).toEqual([5, BIG.length]);
  await done;
});

test('a reply that its client does not take is cut after the time limit, and the process exits with 1', async () => {
  const { child, port, exited } = await start({ timeout: 300 });
  const { socket } = open(port);
  socket.write(get('/big'));
  await once(socket, 'data');
  socket.pause();
  child.kill('SIGTERM');
  expect(await exited).toEqual([1, null]);
});

test('a connection that becomes idle while the application drains closes right after its reply', async () => {
  const app = createApp().get('/', () => 'ok');
  const { port } = await serve(app);
  const { socket, closed, answered } = open(port);
  socket.write(get('/'));
  await answered(1);
  const done = app.close({ delay: 200 });
  socket.write(get('/'));
  expect((await closed).map(({ headers }) => headers['connection'])).toEqual(['keep-alive', 'close']);
  await done;
});

test('an idle connection closes at once, while a request on another one is still in flight; hooks wait for that and run in order', async () => {
  const logger = createRecorder();
  let release = (): void => undefined;
  const app = expectFailures(createApp({ logger }), 'close hook failed').get('/', () => 'ok')
    .get('/slow', () => new Promise((resolve) => (release = () => resolve('done'))));
  const ran: string[] = [];
  app
    .onClose(async () => {
      await Promise.resolve();
      ran.push('first');
      throw new Error('no database');
    })
    .onClose(() => void ran.push('second'));
  const { port } = await serve(app);
  const idle = open(port);
  idle.socket.write(get('/'));
  await idle.answered(1);
  const busy = open(port);
  busy.socket.write(get('/slow'));
  await expect.poll(() => activeTasksOf(app)).toBe(1);
  const closed = app.close({ timeout: 60_000 });
  await idle.closed;
  expect(ran).toEqual([]);
  release();
  expect((await busy.closed).map(({ body, headers }) => [body, headers['connection']])).toEqual([['done', 'close']]);
  await closed;
  expect(ran).toEqual(['first', 'second']);
  expect(logger.entries).toMatchObject([
    { level: 'error', object: { err: { message: 'no database' } }, message: 'close hook failed' },
  ]);
});

test.for(['in its handler', 'in a microtask of it'] as const)(
  'a request that closes the application %s is answered, behind one that ended in the same turn',
  async (when) => {
    let done: Promise<void> | undefined;
    const app = createApp().get('/', () => 'first').get('/stop', async () => {
      if (when !== 'in its handler') await undefined;
      done = app.close({ timeout: 5000 });
      return 'second';
    });
    const { port } = await serve(app);
    const { socket, closed } = open(port);
    socket.write(get('/') + get('/stop'));
    expect((await closed).map(({ body }) => body)).toEqual(['first', 'second']);
    await done;
  },
);

test.for([
  ['sync', '/'],
  ['async', '/async'],
] as const)('a pipelined request behind one in flight is answered, %s', async ([, path]) => {
  let release = (): void => undefined;
  let arrived = (): void => undefined;
  const waiting = new Promise<void>((resolve) => (arrived = resolve));
  const app = createApp()
    .get('/', () => 'second')
    .get('/async', async () => 'second')
    .get(
      '/slow',
      () =>
        new Promise((resolve) => {
          release = () => resolve('first');
          arrived();
        }),
    );
  const { port } = await serve(app);
  const before = open(port);
  before.socket.write(get('/slow') + get(path));
  await waiting;
  const done = app.close({ timeout: 5000 });
  release();
  expect((await before.closed).map(({ body }) => body)).toEqual(['first', 'second']);
  await done;
});

test('while the application drains, the reply to the first of two requests in one packet is the last one', async () => {
  const app = createApp().get('/', () => 'ok');
  const { port } = await serve(app);
  const { socket, closed } = open(port);
  await once(socket, 'connect');
  const done = app.close({ delay: 200 });
  socket.write(get('/') + get('/'));
  expect((await closed).map(({ body, headers }) => [body, headers['connection']]))
    .toEqual([['ok', 'close']]);
  await done;
});

test('a process that closed its application has nothing left that keeps it alive', async () => {
  const code = `
    import { Postern } from 'postern';
    const app = new Postern('a', { logger: false });
    app.health.check('c', () => true);
    const { url } = await app.listen({ port: 0, host: '127.0.0.1' });
    for (const path of ['/a/health/', '/a/metrics/', '/a/ping/', '/none']) await (await fetch(url + path)).text();
    await app.close();
  `;
  const child = fork('data:', [], {
    execPath: process.execPath,
    execArgv: ['--input-type=module', '--eval', code],
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: 'pipe',
  });
  child.disconnect();
  onTestFinished(() => void child.kill('SIGKILL'));
  expect(await once(child, 'exit')).toEqual([0, null]);
});
test('a drain waits for what was given to track()', async () => {
  const app = createApp();
  await serve(app);
  let done = false;
  app.track(new Promise((resolve) => setTimeout(resolve, 100)).then(() => (done = true)));
  await app.close();
  expect(done).toBe(true);
});

test.for([
  ['while there is time, with 0', { timeout: 10_000 }, '/track/50/200', 0],
  ['and outlives the time limit, with 1', { timeout: 300 }, '/track/50/60000', 1],
] as const)('a process exits after work that a request in flight tracks %s', async ([, options, path, code]) => {
  const { child, port, messages, exited, said } = await start(options);
  const busy = rawExchange(port, get(path));
  await said('slow');
  child.kill('SIGTERM');
  expect(parseResponses(await busy)[0]?.body).toBe('done');
  expect(await exited).toEqual([code, null]);
  expect(messages.filter((message) => message !== 'SIGTERM'))
    .toEqual(['slow', ...(code === 0 ? ['tracked'] : []), 'hook 1']);
});

test('what was given to track() and outlives the time limit is left behind', async () => {
  const app = createApp();
  app.track(new Promise(() => undefined));
  await app.close({ timeout: 20 });
});

test('a close hook that hangs is reported and left behind, and those before it ran', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 'close hook hangs');
  const ran: string[] = [];
  app
    .onClose(() => void ran.push('first'))
    .onClose(() => new Promise(() => undefined))
    .onClose(() => void ran.push('third'));
  await app.close({ timeout: 0 });
  expect(ran).toEqual(['first']);
  expect(logger.entries.find(({ message }) => message === 'close hook hangs')?.object).toMatchObject({ hook: 2 });
});

test('an address that is taken leaves no listener behind: the application can listen elsewhere', async () => {
  const taken = await serve(createApp());
  const app = createApp();
  const before = ['error', 'listening'].map((name) => app.server.listenerCount(name));
  for (let i = 0; i < 3; i += 1)
    await expect(app.listen({ host: '127.0.0.1', port: taken.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  expect(['error', 'listening'].map((name) => app.server.listenerCount(name))).toEqual(before);
  expect((await fetch((await serve(app)).url)).status).toBe(404);
});

/** A reply of four bytes that come when it is released. */
function lateReply(): { readonly create: () => Reply<AsyncGenerator<string>, 200>; readonly release: () => void } {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  async function* late(): AsyncGenerator<string> {
    await released;
    yield 'late';
  }
  return { create: () => reply(late(), { headers: { 'content-length': '4' } }), release: () => release() };
}

test.for<[string, string[], string[]]>([
  ['a reply by ctx.raw', ['/raw'], ['close']],
  ['a reply of a mount', ['/m/x'], ['close']],
  ['a stream whose first chunk is late', ['/stream'], ['close']],
  ['the last of several requests, after a late stream', ['/stream', '/plain'], ['keep-alive', 'close']],
])('while the application drains, %s says connection: close', async ([, paths, said]) => {
  const { create, release } = lateReply();
  const app = createApp().get('/plain', () => 'plain').get('/raw', ({ raw: { res } }) => void res.end('raw'));
  app.get('/stream', create);
  app.mount('/m', (_req, res) => void res.end('mounted'));
  const { port } = await serve(app);
  const closed = app.close({ delay: 200 });
  const answered = rawExchange(port, paths.map((path) => get(path)).join(''));
  setTimeout(release, 20);
  expect(parseResponses(await answered).map(({ headers }) => headers['connection'])).toEqual(said);
  await closed;
});

test('a stream whose first chunk comes after the drain began says connection: close', async () => {
  const { create, release } = lateReply();
  const app = createApp().get('/', create);
  const { port } = await serve(app);
  const answered = rawExchange(port, get('/'));
  await expect.poll(() => activeTasksOf(app)).toBe(1);
  const closed = app.close({ delay: 200 });
  release();
  expect(parseResponses(await answered)[0]?.headers['connection']).toBe('close');
  await closed;
});
