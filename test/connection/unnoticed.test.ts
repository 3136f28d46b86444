/**
 * A disconnect is noticed, or its connection cut in time, while nobody reads what the client has sent, and while the
 * client does not read its reply.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { createServer as createTlsServer } from 'node:https';
import { expect, onTestFinished, test } from 'vitest';
import type { Context } from 'postern';
import { CERTIFICATE, KEY } from '../support/localhost-certificate.js';
import { activeTasksOf, createApp, serve } from '../support/serve.js';

const GET = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
/** Three times what the buffers of both sides hold: they grow only for a client that reads. */
const BIG = 'x'.repeat(12 * 1024 * 1024);
const REPLIES: Record<string, (ctx: Context) => unknown> = {
  'a text': () => BIG,
  'a text, later': async () => (await null, BIG),
  'a stream': async function* () { for (let i = 0; i < 10; i += 1) yield BIG; },
  'ctx.raw': ({ raw }) => void raw.res.end(BIG),
  'ctx.raw, in two pieces': ({ raw }) => (raw.res.write(BIG), void raw.res.end(BIG)),
};

test.for(
  Object.keys(REPLIES).flatMap((name) =>
    ['FIN', 'RST'].flatMap((how) => [false, true].map((tls) => ({ name, how, tls }))),
  ),
)('a request waits for $name that its client does not read; $how ends everything (TLS: $tls)', async ({ name, how, tls }) => {
  let ran = 0;
  const app = createApp({ sendTimeout: 400 });
  app.get('/big', REPLIES[name] as () => object).get('/small', () => void (ran += 1));
  let { port } = await serve(app);
  let { server } = app;
  if (tls) {
    server = createTlsServer({ cert: CERTIFICATE, key: KEY });
    app.attach(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => { server.closeAllConnections(); server.close(); });
    port = (server.address() as { port: number }).port;
  }
  const accepted = once(server, tls ? 'secureConnection' : 'connection') as Promise<[Socket]>;
  const plain = connect(port, '127.0.0.1').on('error', () => undefined);
  const socket = tls ? connectTls({ socket: plain, rejectUnauthorized: false }).on('error', () => undefined) : plain;
  await once(socket, tls ? 'secureConnect' : 'connect');
  socket.pause().write(GET('/big') + GET('/small'));
  const [replying] = await accepted;
  await expect.poll(() => replying.destroyed || replying.writableNeedDrain).toBe(true);
  if (how === 'FIN') socket.end();
  else plain.resetAndDestroy();
  await expect.poll(() => activeTasksOf(app)).toBe(0);
  await expect.poll(() => new Promise((resolve) => server.getConnections((_, count) => resolve(count)))).toBe(0);
  expect(ran).toBe(0);
});

const never = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
const READERS: Record<string, (ctx: Context) => unknown> = {
  'nothing of it': ({ signal }) => never(signal),
  'all of it': (ctx) => ctx.bytes(),
  'one chunk of it': async (ctx) => { for await (const _chunk of ctx.stream()) await never(ctx.signal); },
  'one chunk of it, by ctx.raw,': async ({ raw, signal }) => {
    for await (const _chunk of raw.req) await never(signal);
  },
  'it as fast as a stream that is full': async (ctx) => {
    ctx.stream().pipe(new Writable({ write: () => undefined }));
    await never(ctx.signal);
  },
};

/** What is before the request with the body, and what its handler does. */
const UPLOADS = [
  ...Object.keys(READERS).map((name) => ({ before: 'nothing', name })),
  { before: 'a pending request', name: 'nothing of it' },
];

test.for(UPLOADS.flatMap((upload) => [30_000, 113_000, 2_000_000].map((sent) => ({ ...upload, sent }))))(
  'behind $before, a handler reads $name of a body that stops after $sent bytes; FIN ends everything',
  async ({ before, name, sent }) => {
    const app = createApp({ requestTimeout: 300, headersTimeout: 300 });
    app.get('/poll', ({ signal }) => never(signal));
    app.post('/body', { bodyLimit: 4_000_000 }, READERS[name] as () => object);
    const { port } = await serve(app);
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    const head = 'POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n';
    socket.write(`${before === 'nothing' ? '' : GET('/poll')}${head}${'x'.repeat(sent)}`);
    // On a machine that stops for so long, the head itself may be late.
    await Promise.race(['request', 'clientError'].map((event) => once(app.server, event)));
    socket.end();
    await expect.poll(() => activeTasksOf(app)).toBe(0);
    await expect.poll(() => new Promise((resolve) => app.server.getConnections((_, count) => resolve(count)))).toBe(0);
  },
);
