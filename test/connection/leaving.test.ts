/**
 * A client that leaves is noticed, whatever it has sent before and whatever waits for a reply: a connection that nobody
 * reads from would keep its requests, their handlers and a place among the connections for good.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { connect as connectMiddleware, Postern, type Context } from 'postern';
import { activeTasksOf, createApp, serve } from '../support/serve.js';

const GET = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
const POST = (path: string, headers: string, body = ''): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n${body}`;
const CONNECT = 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n';
const LONG = 'x'.repeat(95_000);
/** Two of them are read although they wait. */
const HALF = 'x'.repeat(30_000);

/** Streams that give nothing, or nothing more, until the signal aborts. */
const QUIET: Record<string, (ctx: Context) => unknown> = {
  generator: async function* ({ signal }) {
    if (!signal.aborted) await once(signal, 'abort');
  },
  'generator that has begun': async function* ({ signal }) {
    yield 'begun';
    if (!signal.aborted) await once(signal, 'abort');
  },
  readable: ({ signal }) => {
    const stream = new Readable({ read() {} });
    signal.addEventListener('abort', () => stream.destroy());
    return stream;
  },
  'web stream': () => new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array([65])) }),
  promise: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('late'))),
};

/** What a client sends behind a request whose reply is quiet, before it leaves. */
const BEHIND: Record<string, string> = {
  nothing: '',
  'a stray byte': 'G',
  'half a request': 'GET /now HTTP/1.1\r\nHo',
  'something malformed': 'nonsense\r\n\r\n',
  'something malformed, and more of it': `nonsense\r\n\r\n${'more nonsense\r\n\r\n'.repeat(1000)}`,
  'another request': GET('/now'),
  'a thousand requests': GET('/now').repeat(1000),
  CONNECT,
  'a request and CONNECT': GET('/now') + CONNECT,
  'CONNECT and a stray byte': `${CONNECT}x`,
  'half a body for a route that answers at once': POST('/now', 'Content-Length: 99\r\n', 'half'),
  'a long half of a body for a route that answers at once': POST('/now', 'Content-Length: 999999\r\n', LONG),
  'half a body for a route that reads it': POST('/read', 'Content-Length: 99\r\n', 'half'),
  'half a body for no route': POST('/nowhere', 'Content-Length: 99\r\n', 'half'),
  'a long half of a body for no route': POST('/nowhere', 'Content-Length: 999999\r\n', LONG),
  'half a body in chunks': POST('/now', 'Transfer-Encoding: chunked\r\n', '5\r\nabc'),
  'a broken chunk': POST('/now', 'Transfer-Encoding: chunked\r\n', 'zz\r\n'),
  'a broken chunk and more': POST('/now', 'Transfer-Encoding: chunked\r\n', `zz\r\n${LONG}`),
  'a broken chunk for a route that reads it': POST('/read', 'Transfer-Encoding: chunked\r\n', 'zz\r\n'),
  'an unfinished body for a quiet route': POST('/quiet', 'Content-Length: 99\r\n', 'half'),
  'an expectation and half a body': POST('/now', 'Expect: 100-continue\r\nContent-Length: 99\r\n', 'half'),
  'an expectation and a long half of a body': POST('/now', 'Expect: 100-continue\r\nContent-Length: 999999\r\n', LONG),
  'an unknown expectation and half a body': POST('/now', 'Expect: magic\r\nContent-Length: 99\r\n', 'half'),
  'an unknown expectation and a long half of a body': POST('/now', 'Expect: magic\r\nContent-Length: 999999\r\n', LONG),
  'an upgrade with a long body': POST('/now', 'Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 95000\r\n', LONG),
  'an upgrade with a long body, and another':
    POST('/now', 'Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 30000\r\n', HALF) +
    POST('/now', 'Content-Length: 999999\r\n', HALF),
  'a long body that nobody reads, and CONNECT': POST('/now', 'Content-Length: 95000\r\n', LONG) + CONNECT,
  'a bad Host and half a body': `POST /now HTTP/1.1\r\nHost: a b\r\nContent-Length: 99\r\n\r\nhalf`,
  'Connection: close and a stray byte': `${GET('/now', 'Connection: close\r\n')}x`,
};

/** As the first request, with a body that does not come. */
const FIRST: Record<string, string> = {
  'a stream': GET('/quiet'),
  'a stream that was asked for with half a body': POST('/quiet', 'Content-Length: 99\r\n', 'half'),
  'a stream that was asked for with Connection: close': GET('/quiet', 'Connection: close\r\n'),
};

const LEAVE: Record<string, (socket: Socket) => unknown> = {
  FIN: (socket) => socket.end(),
  'a reset': (socket) => socket.resetAndDestroy(),
};

function quietApp(
  quiet: (ctx: Context) => unknown,
  onAbort: () => void,
  options: ConstructorParameters<typeof Postern>[1] = {},
): Postern {
  const app = createApp(options);
  const handler = (ctx: Context): object => {
    ctx.signal.addEventListener('abort', onAbort);
    return quiet(ctx) as object;
  };
  app.route('/quiet', { GET: handler, POST: handler });
  app.route('/now', { GET: () => 'now', POST: () => 'now' });
  app.post('/read', (ctx) => ctx.text());
  return app;
}

/** Sends, waits until the first request runs, leaves. */
async function visit(
  app: Postern,
  port: number,
  bytes: string,
  leave: (socket: Socket) => unknown,
): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined).resume();
  await once(socket, 'connect');
  await new Promise((resolve) => socket.write(bytes, resolve));
  await expect.poll(() => app.metrics.expose()).not.toContain('active_task_count 0.0');
  // What follows it may have been read, too.
  await sleep(20);
  const closed = once(socket, 'close');
  leave(socket);
  await closed;
}

const combinations = Object.keys(LEAVE).flatMap((how) => [
  ...Object.keys(BEHIND).map((behind) => ({ how, behind, first: 'a stream', kind: 'generator' })),
  ...Object.keys(FIRST)
    .slice(1)
    .flatMap((first) =>
      ['nothing', 'a stray byte', 'another request'].map((behind) => ({ how, behind, first, kind: 'generator' })),
    ),
  ...Object.keys(QUIET)
    .slice(1)
    .flatMap((kind) =>
      ['nothing', 'a stray byte', CONNECT, 'half a body for no route'].map((behind) => ({
        how,
        behind: behind === CONNECT ? 'CONNECT' : behind,
        first: 'a stream',
        kind,
      })),
    ),
]);

test.for(combinations)(
  '$how behind $first ($kind) and $behind ends everything',
  async ({ how, behind, first, kind }) => {
    let aborted = 0;
    let asked = 0;
    const app = quietApp(
      (ctx) => {
        asked += 1;
        return QUIET[kind]?.(ctx);
      },
      () => (aborted += 1),
    );
    const { port } = await serve(app);
    await visit(app, port, `${FIRST[first]}${BEHIND[behind]}`, LEAVE[how] as (socket: Socket) => unknown);
    await expect.poll(() => aborted).toBe(asked);
    expect(asked).toBeGreaterThan(0);
    await expect.poll(() => openConnections(app)).toBe(0);
    // Nothing is left to wait for: a drain without a limit ends.
    await app.close({ timeout: Infinity });
  },
);

test.for(
  Object.keys(LEAVE).flatMap((how) => ['connect', 'mount'].map((holder) => ({ how, holder }))),
)('$holder: the response closes after $how, and requests that wait for it never begin', async ({ how, holder }) => {
  let began = 0;
  let closed = 0;
  const listener = (_req: IncomingMessage, res: ServerResponse): void => {
    began += 1;
    res.once('close', () => {
      closed += 1;
      res.end('late');
    });
  };
  const app = createApp();
  if (holder === 'mount') app.mount('/held', listener);
  else app.get('/held', { middleware: [connectMiddleware(listener)] }, () => 'unreachable');
  const { port } = await serve(app);
  await visit(app, port, GET('/held').repeat(3), LEAVE[how] as (socket: Socket) => unknown);
  await expect.poll(() => closed).toBe(1);
  await expect.poll(() => activeTasksOf(app)).toBe(0);
  expect(began).toBe(1);
});

test.for(
  Object.keys(LEAVE).flatMap((how) => ['connect', 'mount'].map((holder) => ({ how, holder }))),
)('$holder: a request whose middleware has waited until after $how ends', async ({ how, holder }) => {
  let waited = 0;
  const listener = (_req: IncomingMessage, res: ServerResponse): void => void setTimeout(() => res.end('late'), 10);
  const app = createApp().use(async ({ signal }, next) => {
    if (!signal.aborted) await once(signal, 'abort');
    waited += 1;
    return next();
  });
  if (holder === 'mount') app.mount('/held', listener);
  else app.get('/held', { middleware: [connectMiddleware(listener)] }, () => 'unreachable');
  const { port } = await serve(app);
  await visit(app, port, GET('/held').repeat(3), LEAVE[how] as (socket: Socket) => unknown);
  await expect.poll(() => activeTasksOf(app)).toBe(0);
  expect(waited).toBe(1);
});

test.for(Object.keys(LEAVE))('a pipeline into a response ends if it begins after %s', async (how) => {
  const endings: string[] = [];
  const app = createApp().get('/late', async ({ raw: { res }, signal }) => {
    await once(signal, 'abort');
    await sleep(10);
    await pipeline(Readable.from(['a', 'b']), res).catch((error: Error) => endings.push(error.message));
  });
  const { port } = await serve(app);
  await visit(app, port, GET('/late'), LEAVE[how] as (socket: Socket) => unknown);
  await expect.poll(() => endings).toHaveLength(1);
  await expect.poll(() => activeTasksOf(app)).toBe(0);
});

function openConnections(app: Postern): Promise<number> {
  return new Promise((resolve, reject) =>
    app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}
