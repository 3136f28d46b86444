/**
 * A request whose client has left before its turn is dropped: its handler does not run. A handler that starts with a
 * signal that has aborted would wait for it for good.
 */

import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connect } from 'postern';
import type { Context, Middleware, Postern, PosternOptions, StandardSchemaV1 } from 'postern';
import { activeTasksOf, createApp, createRecorder, expectFailures, serve } from '../support/serve.js';
import { WireConnection } from '../support/strict-client.js';

const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

const LEAVE: Readonly<Record<string, (socket: Socket) => unknown>> = {
  'a reset': (socket) => socket.resetAndDestroy(),
  'a close': (socket) => socket.destroy(),
};

/** Handlers that end when their client leaves, and never if it has left before. */
interface Polled {
  readonly app: Postern;
  /** Paths of the handlers that ran. */
  readonly ran: string[];
  /** Those that started with a signal that had aborted. */
  readonly late: string[];
  poll(ctx: Context): Promise<void>;
}

function polled(options: PosternOptions = {}): Polled {
  const ran: string[] = [];
  const late: string[] = [];
  const poll = (ctx: Context): Promise<void> => new Promise((resolve) => {
    ran.push(ctx.path);
    if (ctx.signal.aborted) late.push(ctx.path);
    else ctx.signal.addEventListener('abort', () => resolve());
  });
  return { app: createApp(options), ran, late, poll };
}

const idle = async (app: Postern): Promise<void> =>
  expect.poll(() => activeTasksOf(app)).toBe(0);

async function open(port: number): Promise<WireConnection> {
  const client = await WireConnection.open(port);
  onTestFinished(() => client.destroy());
  return client;
}

/** Turns of the event loop, and a request of another connection: enough for whatever should not happen. */
async function letPass(port: number): Promise<void> {
  for (let i = 0; i < 100; i += 1) await turn();
  await (await fetch(`http://127.0.0.1:${port}/no/where`)).text();
}

describe.for(Object.keys(LEAVE))('after %s', (how) => {
  const leave = LEAVE[how] as (socket: Socket) => unknown;

  test.for<[string, string, number]>([
    ['a request', get('/poll/1'), 1],
    ['ninety-nine requests', Array.from({ length: 99 }, (_, n) => get(`/poll/${n + 1}`)).join(''), 99],
    ['requests with bodies', post('/poll/1', '{}') + post('/poll/2', '{}'), 2],
    ['a request with half a body', post('/poll/1', '{}').slice(0, -1), 1],
    ['a request that closes', get('/poll/1', 'Connection: close\r\n'), 1],
  ])('%s that waited for another on its connection does not run', async ([, waiting, count]) => {
    const logger = createRecorder();
    const { app, ran, late, poll } = polled({ logger, accessLog: true });
    app.get('/held', poll).route('/poll/:n', { GET: poll, POST: poll });
    const { port } = await serve(app);
    const client = await open(port);
    await client.write(get('/held') + waiting);
    await expect.poll(() => ran).toEqual(['/held']);
    await letPass(port);
    leave(client.socket);
    await idle(app);
    expect([ran, late]).toEqual([['/held'], []]);
    // Each request is one line of the access log, and counted once.
    const statuses = (): unknown[] => logger.entries.filter(({ message, object }) => {
      return message === 'request' && object['target'] !== '/no/where';
    }).map(({ object }) => object['status']);
    await expect.poll(() => statuses()).toEqual(Array.from({ length: count + 1 }, () => 499));
  });

  test.for<[string, (n: number) => string]>([
    ['on its own connection', () => get('/busy') + get('/poll').repeat(99)],
    ['on other connections', (n) => get(n % 3 === 0 ? '/busy' : '/poll')],
  ])('requests that wait for the CPU, which others use %s, do not run', async ([, requests]) => {
    const { app, late, poll } = polled();
    app.get('/warm', () => 'warm').get('/poll', poll).get('/busy', () => {
      const until = performance.now() + 15;
      while (performance.now() < until);
      return 'done';
    });
    const { port } = await serve(app);
    const clients = await Promise.all(Array.from({ length: 30 }, () => open(port)));
    // A connection that was accepted before is read as soon as there is something to read.
    for (const client of clients) {
      await client.write(get('/warm'));
      await client.finalResponse();
    }
    await Promise.all(clients.map((client, n) => client.write(requests(n))));
    await new Promise((resolve) => setTimeout(resolve, 4));
    for (const client of clients) leave(client.socket);
    await idle(app);
    expect(late).toEqual([]);
    // Requests that nobody waits for may be refused.
    if (app.metrics.expose().includes('status_code="503"')) expectFailures(app, 503);
  });
});

/** Steps before a handler that last until the test goes on. */
class Gate {
  #open: () => void = () => undefined;
  readonly #opened = new Promise<void>((resolve) => (this.#open = resolve));
  arrivals = 0;

  readonly pass = async (): Promise<void> => {
    this.arrivals += 1;
    await this.#opened;
  };

  open(): void {
    this.#open();
  }
}

/** What may take time before a handler. */
const BEFORE: Readonly<Record<string, (polling: Polled, gate: Gate) => unknown>> = {
  'middleware of the application': ({ app, poll }, gate) => app.use(wait(gate)).get('/poll', poll),
  'middleware of a group': ({ app, poll }, gate) =>
    app.group('', (group) => void group.use(wait(gate)).get('/poll', poll)),
  'middleware of a route': ({ app, poll }, gate) => app.get('/poll', { middleware: [wait(gate)] }, poll),
  'the outer of two middlewares': ({ app, poll }, gate) =>
    app.use(wait(gate)).use((_ctx, next) => next()).get('/poll', poll),
  'middleware of Connect': ({ app, poll }, gate) =>
    app.use(connect((_req, _res, next) => void gate.pass().then(() => next()))).get('/poll', poll),
  'middleware of a route with a timeout': ({ app, poll }, gate) =>
    app.get('/poll', { timeout: 60_000, middleware: [wait(gate)] }, poll),
  'a schema': ({ app, poll }, gate) => app.get('/poll', { query: slowSchema(gate) }, (ctx) => poll(ctx)),
};

function wait(gate: Gate): Middleware {
  return async (_ctx, next) => {
    await gate.pass();
    return next();
  };
}

function slowSchema(gate: Gate): StandardSchemaV1 {
  const validate = async (value: unknown): Promise<{ value: unknown }> => (await gate.pass(), { value });
  return { '~standard': { version: 1, vendor: 'test', validate } };
}

describe.for<[string, PosternOptions]>([
  ['with overload protection', {}],
  ['with loadShedding: false', { loadShedding: false }],
])('a handler %s', ([, options]) => {
  test.for(Object.keys(BEFORE).flatMap((before) => Object.keys(LEAVE).map((how) => ({ before, how }))))(
    'does not run when $before took until after $how',
    async ({ before, how }) => {
      const gate = new Gate();
      const polling = polled(options);
      BEFORE[before]?.(polling, gate);
      const { app, ran, late } = polling;
      const { port } = await serve(app);
      const accepted = once(app.server, 'connection') as Promise<[Socket]>;
      const client = await open(port);
      await client.write(get('/poll'));
      const [socket] = await accepted;
      await expect.poll(() => gate.arrivals).toBe(1);
      LEAVE[how]?.(client.socket);
      await expect.poll(() => socket.destroyed).toBe(true);
      gate.open();
      await idle(app);
      expect([ran, late]).toEqual([[], []]);
    },
  );

  test('does not run when the timeout of its route was over before', async () => {
    const gate = new Gate();
    const { app, ran, late, poll } = polled(options);
    expectFailures(app, 504).get('/poll', { timeout: 30, middleware: [wait(gate)] }, poll);
    const { url } = await serve(app);
    expect((await fetch(`${url}/poll`)).status).toBe(504);
    gate.open();
    await idle(app);
    expect([ran, late]).toEqual([[], []]);
  });

  test('does not run when its request in memory was aborted before', async () => {
    const gate = new Gate();
    const { app, ran, late, poll } = polled(options);
    app.get('/poll', { middleware: [wait(gate)] }, poll);
    const abort = new AbortController();
    const requested = app.request('/poll', { signal: abort.signal });
    await expect.poll(() => gate.arrivals).toBe(1);
    abort.abort(new Error('enough'));
    await expect(requested).rejects.toThrow('enough');
    for (let i = 0; i < 100; i += 1) await turn();
    gate.open();
    await idle(app);
    expect([ran, late]).toEqual([[], []]);
  });
});

test('a handler runs when its middleware took long and its client still waits', async () => {
  const gate = new Gate();
  const app = createApp().get('/', { middleware: [wait(gate)] }, ({ signal }) => String(signal.aborted));
  const { url } = await serve(app);
  const replied = fetch(url);
  await expect.poll(() => gate.arrivals).toBe(1);
  gate.open();
  expect(await (await replied).text()).toBe('false');
});

test('the signal of a request aborts once, and not after its reply', async () => {
  const aborted: string[] = [];
  const app = createApp().get('/:n', (ctx) => {
    ctx.signal.addEventListener('abort', () => aborted.push(ctx.path));
    return ctx.params.n === 'quiet' ? new Promise<string>(() => undefined) : 'done';
  });
  const { port } = await serve(app);
  const client = await open(port);
  await client.write(get('/1') + get('/2'));
  for (const _ of [1, 2]) expect((await client.finalResponse())?.status).toBe(200);
  await client.write(get('/quiet'));
  await letPass(port);
  client.socket.resetAndDestroy();
  await expect.poll(() => aborted).toEqual(['/quiet']);
});
