/**
 * Replies that wait for their client are bounded, in time by the progress of sending, and in bytes.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { Context, Postern } from 'postern';
import { createApp, serve } from '../support/serve.js';

const GET = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const MIB = 1024 * 1024;
const LARGE = Buffer.alloc(32 * MIB, 120);
const BODY = Buffer.alloc(MIB, 121);

/** A client that sends and does not read. */
function deaf(port: number, bytes: string): Socket {
  const socket = connect(port, '127.0.0.1', () => socket.write(bytes)).on('error', () => undefined).pause();
  onTestFinished(() => void socket.destroy());
  return socket;
}

const open = (app: Postern): Promise<number> =>
  new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count)));
const counted = async (app: Postern, count: number): Promise<void> =>
  expect.poll(() => open(app)).toBe(count);

/** Replies of all kinds that a client may leave unread. */
const REPLIES: Record<string, (ctx: Context) => unknown> = {
  'bytes': () => LARGE,
  'a stream': async function* () { for (;;) yield BODY; },
  'ctx.raw': ({ raw }) => void raw.res.end(LARGE),
  'ctx.raw, piece by piece': async ({ raw: { res } }) => { for (;;) if (!res.write(BODY)) await once(res, 'drain'); },
  'ctx.raw, by a handler that never returns': ({ raw }) => (raw.res.write(LARGE), new Promise<void>(() => undefined)),
};

test.for(
  Object.keys(REPLIES).flatMap((name) => ['nothing', 'a line break now and then'].map((sends) => ({ name, sends }))),
)('sendTimeout ends a connection whose client reads nothing of $name and sends $sends', async ({ name, sends }) => {
  const app = createApp({ sendTimeout: 300 }).get('/', REPLIES[name] as () => object);
  const { port } = await serve(app);
  const socket = deaf(port, GET('/'));
  await counted(app, 1);
  const timer = setInterval(() => sends !== 'nothing' && socket.write('\r\n'), 50);
  onTestFinished(() => clearInterval(timer));
  await counted(app, 0);
});

test('sendTimeout spares a mounted listener and a handler whose own source is slow', async () => {
  const app = createApp({ sendTimeout: 100 });
  app.get('/', async ({ raw: { res } }) => {
    res.write('a');
    await new Promise((resolve) => setTimeout(resolve, 400));
    res.end('b');
  });
  expect(await (await fetch((await serve(app)).url)).text()).toBe('ab');
});

test.for(
  ['bytes', 'a stream', 'ctx.raw'],
)('a reply of %s that sendTimeout cuts is counted as 499, and its signal aborts', async (name) => {
  let aborted = 0;
  const app = createApp({ sendTimeout: 300 }).get('/', (ctx) => {
    ctx.signal.addEventListener('abort', () => (aborted += 1));
    return REPLIES[name]?.(ctx) as object;
  });
  const { port } = await serve(app);
  deaf(port, GET('/'));
  await expect.poll(() => aborted).toBe(1);
  await expect.poll(() => app.metrics.expose())
    .toMatch(/^http_request_duration_seconds_count\{.*status_code="499"\} 1/m);
});

test.for(Object.keys(REPLIES))('no early request begins when sendTimeout cuts %s', async (name) => {
  let ran = 0;
  const app = createApp({ sendTimeout: 300 }).get('/', REPLIES[name] as () => object).get('/next', () => void (ran += 1));
  const { port } = await serve(app);
  deaf(port, GET('/') + GET('/next'));
  await counted(app, 1);
  await counted(app, 0);
  // It was never routed.
  await expect.poll(() => app.metrics.expose())
    .toMatch(/^http_request_duration_seconds_count\{method="GET",route="",status_code="499"\} 1/m);
  expect(ran).toBe(0);
});

test(
  'while more than 256 MiB wait on all listeners, the clients that have read nothing for the longest time are closed',
  { timeout: 60_000 },
  async () => {
    const app = createApp({ monitor: { host: '127.0.0.1', port: 0 } })
      .use((ctx, next) => (ctx.path === '/' ? LARGE : next()));
    const { port, monitor } = await serve(app);
    const ports = [port, monitor?.port ?? 0];
    const waiting = (): number => Number(/^active_task_count (\d+)/m.exec(app.metrics.expose())?.[1]);
    const count = 16;
    const reader = deaf(port, GET('/'));
    let received = 0;
    reader.on('data', (chunk: Buffer) => {
      received += chunk.length;
      reader.pause();
      setTimeout(() => reader.resume(), 1);
    }).resume();
    // By then the buffers of both ends are full, so that the server sees each step of the reader.
    await expect.poll(() => received).toBeGreaterThan(8 * MIB);
    for (let i = 0; i < count; i += 1) {
      const before = received;
      deaf(ports[i % 2] as number, GET('/'));
      await expect.poll(() => received)
        .toBeGreaterThan(Math.min(before + MIB / 4, LARGE.length - 1));
    }
    await expect.poll(waiting).toBeLessThan(11);
    expect(waiting()).toBeGreaterThan(4);
    await expect.poll(() => received).toBeGreaterThan(LARGE.length);
  },
);
