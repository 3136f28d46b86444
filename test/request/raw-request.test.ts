/**
 * `ctx.raw.req` is a stream like any other, on every version of Node.js: without a body, too, it ends whichever way a
 * handler reads it, and tells when the client leaves.
 */

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { finished } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Context } from 'postern';
import { createApp, serve } from '../support/serve.js';

const WAYS: Record<string, (req: IncomingMessage) => Promise<unknown>> = {
  'resume() and end': (req) => once(req.resume(), 'end'),
  'data and end': (req) => new Promise((resolve, reject) => req.on('data', reject).on('end', resolve)),
  'readable and end': (req) => new Promise((resolve) => req.on('readable', () => req.read()).on('end', resolve)),
  'resume() and close': (req) => once(req.resume(), 'close'),
  'end, asked for in a later turn': (req) => sleep(5).then(() => once(req.resume(), 'end')),
  pipe: (req) => once(req.pipe(new PassThrough()).resume(), 'end'),
  iteration: async (req) => {
    for await (const chunk of req) expect.fail(String(chunk));
  },
  'text()': (req) => text(req),
  'finished()': (req) => finished(req.resume()),
};

test.each(Object.entries(WAYS))('a request without a body ends for %s', async (_way, read) => {
  const app = createApp();
  app.get('/now', async ({ raw }) => {
    await read(raw.req);
    return 'read';
  });
  app.get('/later', async (ctx) => {
    await sleep(5);
    await read(ctx.raw.req);
    return 'read';
  });
  const { url } = await serve(app);
  for (const path of ['now', 'later']) expect(await (await fetch(new URL(path, url))).text()).toBe('read');
});

test.each<[string, (ctx: Context) => unknown]>([
  ['returns', ({ raw }) => typeof raw],
  ['returns later', (ctx) => sleep(5).then(() => typeof ctx.raw)],
  ['writes by hand', ({ raw }) => void raw.res.end('object')],
  ['writes by hand later', (ctx) => sleep(5).then(() => void ctx.raw.res.end('object'))],
])('a request without a body, of ctx.raw, ends behind the reply that its handler %s', async (_what, handler) => {
  const app = createApp();
  app.get('/', (ctx) => handler(ctx) as Promise<string>);
  let seen: IncomingMessage | undefined;
  app.server.on('request', (req: IncomingMessage) => (seen = req));
  const { url } = await serve(app);
  expect(await (await fetch(url)).text()).toBe('object');
  await expect.poll(() => [seen?.readableEnded, seen?.closed]).toEqual([true, true]);
});

test('a request without a body is not closed while its handler is at work, and closes when its client leaves', async () => {
  const app = createApp();
  const events: string[] = [];
  let left = (): void => undefined;
  const leaving = new Promise<void>((resolve) => (left = resolve));
  app.get('/', async ({ raw: { req } }) => {
    events.push(`destroyed: ${req.destroyed}`);
    req
      .on('error', () => undefined)
      .on('close', () => {
        events.push('close');
        left();
      });
    await sleep(20);
    events.push('still at work');
    await leaving;
    return 'late';
  });
  const { port } = await serve(app);
  const client = connect(port, '127.0.0.1', () => client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  await expect.poll(() => events.length).toBe(2);
  client.destroy();
  await leaving;
  expect(events).toEqual(['destroyed: false', 'still at work', 'close']);
});

test('a body that was read through the context has ended for ctx.raw, whichever is asked for first', async () => {
  const app = createApp();
  app.post('/first', async (ctx) => {
    const done = finished(ctx.raw.req);
    const value = await ctx.json();
    await done;
    return value as object;
  });
  app.post('/last', async (ctx) => {
    const value = await ctx.json();
    await finished(ctx.raw.req);
    return value as object;
  });
  const { url } = await serve(app);
  for (const path of ['first', 'last']) {
    const reply = await fetch(new URL(path, url), {
      method: 'POST',
      body: '{"a":1}',
      headers: { 'content-type': 'application/json' },
    });
    expect(await reply.json()).toEqual({ a: 1 });
  }
});

test('work that goes on behind the reply can still wait for the end of ctx.raw.req', async () => {
  const app = createApp();
  let late: Promise<void> | undefined;
  app.get('/', (ctx) => {
    late = sleep(20).then(() => finished(ctx.raw.req));
    return 'done';
  });
  const { url } = await serve(app);
  expect(await (await fetch(url)).text()).toBe('done');
  await late;
});

test.for<[string, string, (socket: Socket) => unknown]>([
  ['of known length, and a client that resets', 'Content-Length: 9\r\n', (socket) => socket.resetAndDestroy()],
  ['of known length, and a client that closes', 'Content-Length: 9\r\n', (socket) => socket.destroy()],
  ['in chunks, and a client that resets', 'Transfer-Encoding: chunked\r\n', (socket) => socket.resetAndDestroy()],
  ['in chunks, and a client that closes', 'Transfer-Encoding: chunked\r\n', (socket) => socket.destroy()],
])('a body that is read after the reply ends with its connection: %s', async ([, headers, leave]) => {
  const readings: Promise<unknown>[] = [];
  const app = createApp();
  app.post('/', ({ raw: { req } }) => {
    readings.push(text(req).then(() => 'ended', () => 'broken off'));
    return 'reply';
  });
  const { port } = await serve(app);
  const head = `POST / HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
  const half = headers.includes('chunked') ? '4\r\nhalf\r\n' : 'half';
  const socket = connect(port, '127.0.0.1', () => socket.write(head + half)).on('error', () => undefined);
  let received = '';
  socket.on('data', (data) => (received += String(data)));
  await expect.poll(() => received).toContain('reply');
  leave(socket);
  expect(await Promise.all(readings)).toEqual(['broken off']);
});
