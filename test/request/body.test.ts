/** How a body is read: whole, as it comes, or not at all. */

import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { activeTasksOf, createApp, expectFailures, serve } from '../support/serve.js';
import { WireConnection } from '../support/strict-client.js';

const upload = 'POST /t HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\nabc';

test.for(['text', 'json', 'bytes', 'stream'] as const)(
  'a client that leaves in mid-upload ends %s() and aborts the signal',
  async (form) => {
    let aborted = false;
    let arrived = false;
    const app = createApp();
    const finished = new Promise<string>((resolve) => app.post('/t', async (ctx) => {
      ctx.signal.addEventListener('abort', () => (aborted = true));
      arrived = true;
      try {
        if (form === 'stream') for await (const chunk of ctx.stream()) void chunk;
        else await ctx[form]();
        resolve('read');
      } catch (error) {
        resolve(String(error));
        throw error;
      }
    }));
    const { port } = await serve(app);
    const socket = connect(port, '127.0.0.1', () => socket.write(upload));
    await expect.poll(() => arrived).toBe(true);
    socket.destroy();
    expect(await finished).toMatch(/Error/);
    await expect.poll(() => aborted).toBe(true);
    await expect.poll(() => activeTasksOf(app)).toBe(0);
  },
);

test('a body that was read from ctx.raw is not taken for an empty one', async () => {
  const app = expectFailures(createApp(), 500).post('/', async (ctx) => {
    for await (const _ of ctx.raw.req);
    return ctx.text();
  });
  const { url } = await serve(app);
  expect((await fetch(url, { method: 'POST', body: 'abc' })).status).toBe(500);
});

async function countChunks(stream: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _ of stream) count += 1;
  return count;
}

describe.for(['text', 'json', 'bytes', 'form', 'stream'] as const)('%s() after the reply', (form) => {
  test.for<[string, string, string]>([
    ['came with its head', '{"a":1234}', ''],
    ['came after the reply', '', '{"a":1234}'],
    ['came in part after the reply', '{"a":', '1234}'],
  ])('fails with the remedy, for a body that %s', async ([, early, late]) => {
    const type = form === 'form' ? 'application/x-www-form-urlencoded' : 'application/json';
    let read: () => Promise<unknown> = async () => undefined;
    const app = createApp().post('/t', (ctx) => {
      read = async () => ctx[form]();
      return 'ok';
    });
    const { port } = await serve(app);
    const client = await WireConnection.open(port);
    onTestFinished(() => client.destroy());
    await client.write(`POST /t HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 10\r\n\r\n${early}`);
    expect((await client.finalResponse())?.status).toBe(200);
    if (late !== '') await client.write(late);
    await wait(20);
    await expect(read()).rejects.toThrow('the request is answered, and its body was dropped; read it before');
  });
});

test('a request without a body has an empty one, however it is read', async () => {
  const app = createApp()
    .get('/', async (ctx) => [await ctx.text(), (await ctx.bytes()).length, (await ctx.form()).size])
    .get('/stream', (ctx) => countChunks(ctx.stream()))
    .get('/raw', (ctx) => countChunks(ctx.raw.req));
  const { url } = await serve(app);
  expect(await (await fetch(url)).json()).toEqual(['', 0, 0]);
  expect(await (await fetch(`${url}/stream`)).json()).toBe(0);
  expect(await (await fetch(`${url}/raw`)).json()).toBe(0);
});

test('a body that came in several buffers before it was asked for is read whole', async () => {
  const app = createApp().post('/', async (ctx) => {
    // As much as is taken ahead; the rest of a longer one comes while it is read.
    const ahead = Math.min(Number(ctx.headers['content-length']), ctx.raw.req.readableHighWaterMark);
    while (ctx.raw.req.readableLength < ahead) await new Promise((resolve) => setImmediate(resolve));
    return (await ctx.bytes()).length;
  });
  const { url } = await serve(app);
  for (const length of [1000, 65_000, 99_999, 500_000])
    expect(await (await fetch(url, { method: 'POST', body: 'x'.repeat(length) })).json()).toBe(length);
});

test.for([
  ['in the packet of its head', ['Content-Length: 9\r\n\r\nhalf here']],
  ['in a packet of its own', ['Content-Length: 9\r\n\r\n', 'half here']],
  ['in two packets', ['Content-Length: 9\r\n\r\n', 'half', ' here']],
  ['in chunks', ['Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n1\r\n \r\n4\r\nhere\r\n0\r\n\r\n']],
] as const)('the bytes of a body %s fill an ArrayBuffer of their own', async ([, packets]) => {
  let arrived: Uint8Array | undefined;
  const app = createApp().post('/', async (ctx) => void (arrived = await ctx.bytes()));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1').setNoDelay();
  socket.write('POST / HTTP/1.1\r\nHost: x\r\n');
  for (const packet of packets) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.write(packet);
  }
  await expect.poll(() => arrived?.length).toBe(9);
  expect([arrived?.buffer.byteLength, arrived?.byteOffset]).toEqual([9, 0]);
  socket.destroy();
});

test('bytes are a Uint8Array, as in Fetch: a slice of them is a copy, which a Buffer would share', async () => {
  const app = createApp().post('/', async (ctx) => {
    const bytes = await ctx.bytes();
    bytes.slice(0, 1).fill(0);
    expect(bytes).toStrictEqual(new Uint8Array([104, 105]));
  });
  expect((await app.request('/', { method: 'POST', body: 'hi' })).status).toBe(204);
});

test('bytes are a copy: to change or transfer them leaves the body as it is', async () => {
  const app = createApp().post('/', async (ctx) => {
    const bytes = await ctx.bytes();
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    return ctx.text();
  });
  expect(await (await app.request('/', { method: 'POST', body: 'body' })).text()).toBe('body');
});
