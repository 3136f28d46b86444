/** What a handler returns and cannot be sent, or throws while it is: one reply, and nothing left open. */

import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { connect } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { reply, type Context, type HandlerResult, type Postern } from 'postern';
import { get, parseResponses, rawExchange } from '../support/raw.js';
import { activeTasksOf, createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

test('a value that throws when it is looked at gives 500', async () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const app = expectFailures(createApp(), 500).get('/then', () => ({ get then(): never { throw new Error('g'); } }))
    .get('/proxy', () => proxy)
    .get('/thrown', async () => ({ toJSON(): never { throw proxy; } }));
  const { url } = await serve(app);
  expect((await fetch(`${url}/thrown`)).status).toBe(500);
  expect((await fetch(`${url}/then`)).status).toBe(500);
  expect((await fetch(`${url}/proxy`)).status).toBe(500);
});

test.for([204, 304, 99])('a stream that is not sent, because of status %i, is destroyed', async (status) => {
  const source = new Readable({ read() {} });
  const app = expectFailures(createApp(), status === 99 ? 500 : status)
    .get('/', () => Object.assign(reply(source), { status }));
  await (await fetch((await serve(app)).url)).text();
  expect(source.destroyed).toBe(true);
});

/** Results that have the request in them, each with the statuses of GET and HEAD. */
const OF_THE_REQUEST: Readonly<Record<string, [(ctx: Context) => HandlerResult, get: number, head: number]>> = {
  'the request itself': [(ctx) => ctx.raw.req, 200, 200],
  'a stream that it is piped into': [(ctx) => ctx.raw.req.pipe(new PassThrough()), 200, 200],
  'an object with the request': [(ctx): object => ({ req: ctx.raw.req }), 500, 500],
  'an object with the response': [(ctx): object => ({ res: ctx.raw.res }), 500, 500],
  'an object with the socket': [(ctx): object => ({ socket: ctx.raw.req.socket }), 500, 500],
  'the context': [(ctx): object => ctx, 500, 500],
  'the request with a 204': [(ctx) => reply(ctx.raw.req, { status: 204 }), 204, 204],
};

test.for(Object.keys(OF_THE_REQUEST))('%s, as a result, leaves the connection open for the reply', async (what) => {
  const [handler, ...statuses] = OF_THE_REQUEST[what] as (typeof OF_THE_REQUEST)[string];
  const app = createApp().get('/', handler);
  if (statuses[0] === 500) expectFailures(app, 500);
  const { url } = await serve(app);
  const replies = [await fetch(url), await fetch(url, { method: 'HEAD' })];
  expect(replies.map(({ status }) => status)).toEqual(statuses);
});

test('a stream returned after its client has left is destroyed', async () => {
  const source = new Readable({ read() {} });
  let arrived = false;
  const app = createApp().get('/', (ctx) => new Promise<Readable>((resolve) => {
    arrived = true;
    ctx.signal.addEventListener('abort', () => resolve(source));
  }));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  await expect.poll(() => arrived).toBe(true);
  socket.destroy();
  await expect.poll(() => source.destroyed).toBe(true);
});

test.for<[string, number, (cancelled: () => void) => HandlerResult]>([
  ['a ReadableStream', 304, (cancelled) => reply(new ReadableStream({ cancel: cancelled }), { status: 304 })],
  ['the body of a Response', 500,
    (cancelled) => Object.assign(reply(new Response(new ReadableStream({ cancel: cancelled })).body), { status: 99 })],
])('%s that is not sent is cancelled', async ([, status, make]) => {
  let wake = (): void => undefined;
  const cancelled = new Promise<void>((resolve) => (wake = resolve));
  const app = expectFailures(createApp(), status).get('/', () => make(() => wake()));
  await (await fetch((await serve(app)).url)).text();
  await cancelled;
});

test('a value that throws while it is being sent, and again while it is thrown away, gives 500', async () => {
  const trap = new Proxy({}, { has: (_target, key) => { if (key === 'then') return false; throw new Error('trap'); } });
  const { url } = await serve(expectFailures(createApp(), 500).get('/', () => trap));
  for (const _ of [1, 2]) expect((await fetch(url)).status).toBe(500);
});

test.for(['getPrototypeOf', 'has'] as const)('a value that throws at %s gives 500 later, or in another body', async (trap) => {
  const value = new Proxy({}, {
    [trap]: (_target: object, key?: unknown) => { if (key === 'then') return false; throw new Error('trap'); },
  });
  const app = expectFailures(createApp(), 500).get('/later', async () => value);
  app.get('/changed', { middleware: [async (_ctx, next) => { (await next()).body = 'fine'; }] }, async () => reply(value));
  expect((await app.request('/later')).status).toBe(500);
  expect(await (await app.request('/changed')).text()).toBe('fine');
});

test('a reply written by hand and finished before the handler ends is counted with its own status', async () => {
  const app = createApp().get('/', async ({ raw: { res } }) => {
    await new Promise((resolve) => res.writeHead(202).once('close', resolve).end('by hand'));
  });
  expect((await fetch((await serve(app)).url)).status).toBe(202);
  await expect.poll(() => app.metrics.expose())
    .toContain('http_request_duration_seconds_count{method="GET",route="/",status_code="202"} 1.0');
});

test('an error after a reply that was written by hand is logged', async () => {
  const logger = createRecorder();
  const app = createApp({ logger }).get('/', async ({ raw: { res } }) => {
    await new Promise((resolve) => res.once('close', resolve).end('by hand'));
    throw new Error('afterwards');
  });
  await fetch((await serve(app)).url);
  await expect.poll(() => logger.entries.map(({ object }) => String(object['err']))).toEqual(['Error: afterwards']);
});

test('the error in place of a reply that can not be sent has its headers, all cookies and both values of vary', async () => {
  const app = expectFailures(createApp(), 500).get('/', () => {
    const unsendable = reply<unknown, 200>({ member: () => 1 }, { headers: { vary: 'x-own', accept: 'a', 'content-type': 'a/b' } });
    for (const cookie of ['a=1', 'b=2']) unsendable.headers.append('set-cookie', cookie);
    return unsendable;
  });
  const { status, headers } = await app.request('/');
  expect([status, headers.get('vary'), headers.get('accept')]).toEqual([500, 'x-own, accept', 'a']);
  expect([headers.getSetCookie(), headers.get('content-type')]).toEqual([['a=1', 'b=2'], 'application/json']);
});

const missing = (): Readable => createReadStream('/nonexistent');

test.for<[string, (app: Postern) => unknown]>([
  ['its reply waits for another', (app) => app.get('/file', missing)],
  ['middleware goes on', (app) => app.use(async (_ctx, next) => {
    const answered = await next();
    await sleep(20);
    return answered;
  }).get('/file', missing)],
  ['another stream reads it', (app) => app.use(async (_ctx, next) => {
    const answered = await next();
    if (answered.body instanceof Readable) answered.body = answered.body.pipe(new PassThrough());
    return answered;
  }).get('/file', missing)],
])('a stream that fails while %s is a 500', async ([, add]) => {
  const app = expectFailures(createApp(), 500);
  app.get('/slow', async () => (await sleep(50), 'slow'));
  add(app);
  const { port } = await serve(app);
  const received = await rawExchange(port, get('/slow', 'Host: x\r\n') + get('/file'));
  expect(parseResponses(received).map(({ status }) => status)).toEqual([200, 500]);
});

test.for(['a stream', 'a text'])('%s that its own handler ends early is over', async (what) => {
  const app = createApp();
  app.get('/', ({ raw: { res } }) => {
    setTimeout(() => res.end(), 50);
    return what === 'a text' ? 'x'.repeat(20_000_000) : Readable.from((async function* () {
      yield 'begun';
      await sleep(200);
      yield 'ended';
    })());
  });
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  await once(socket, 'data');
  socket.pause();
  await sleep(100);
  socket.resume();
  await sleep(250);
  socket.destroy();
  await expect.poll(() => activeTasksOf(app)).toBe(0);
});
