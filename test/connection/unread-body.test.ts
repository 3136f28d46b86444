/**
 * A reply to a request whose body is still on its way: the client gets to read it, and the connection is not left
 * hanging.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { BadRequest, reply, type Handler } from 'postern';
import { parseResponses } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

const readsAPart: Handler = async (ctx) => {
  for await (const _chunk of ctx.stream()) throw new BadRequest('enough');
};

/** Sends a head and a part of the body; what comes back until the connection ends. */
async function open(
  handler: Handler,
  bytes: string,
): Promise<{ socket: Socket; errors: Error[]; text: () => string; closed: Promise<unknown> }> {
  const { port } = await serve(createApp({ bodyLimit: 1_000_000 }).post('/', handler));
  let text = '';
  const errors: Error[] = [];
  const socket = connect(port, '127.0.0.1').on('error', (error) => errors.push(error));
  onTestFinished(() => void socket.destroy());
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  socket.write(bytes);
  return { socket, errors, text: () => text, closed: once(socket, 'close') };
}

const SIZED = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n';
const CHUNKED = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
const EXPECTING = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n';
const CHUNK = `10000\r\n${'a'.repeat(0x10000)}\r\n`;

test.for<[string, Handler, string, number]>([
  ['a body of known length that was read in part', readsAPart, SIZED + 'a'.repeat(200_000), 400],
  ['a body of known length whose rest was left behind by a stream in reply', async (ctx) => {
    for await (const _chunk of ctx.stream()) break;
    return reply((async function* () { yield 'done'; })());
  }, SIZED + 'a'.repeat(200_000), 200],
  ['a chunked body under a Response', () => new Response('no', { status: 401 }), CHUNKED + CHUNK, 401],
  ['a chunked body over the limit, whose 413 became a Response', async (ctx) => {
    await ctx.text().catch(() => undefined);
    return new Response('too large', { status: 413 });
  }, CHUNKED + CHUNK.repeat(20), 413],
])('the connection of %s ends soon after the reply', async ([, handler, bytes, status]) => {
  const { text, closed } = await open(handler, bytes);
  await closed;
  expect(parseResponses(text()).map((response) => response.status)).toEqual([status]);
});

test('a client that was told to go on, and goes on beyond the limit, gets to read the 413', async () => {
  const { socket, errors, text, closed } = await open((ctx) => ctx.text(), EXPECTING);
  await expect.poll(text).toContain('100 Continue');
  // A reset would take what it has not read yet away from it.
  socket.pause();
  socket.write(CHUNK.repeat(100));
  await new Promise((resolve) => setTimeout(resolve, 300));
  socket.resume();
  socket.write('0\r\n\r\n');
  await closed;
  expect(parseResponses(text()).map(({ status }) => status)).toEqual([100, 413]);
  expect(errors).toEqual([]);
});

test('a reply may stream what the request is still sending, and keeps the connection', async () => {
  const { socket, text, closed } = await open((ctx) => reply(ctx.stream()), CHUNKED);
  for (const part of ['one', 'two', 'three']) {
    socket.write(`${part.length}\r\n${part}\r\n`);
    await expect.poll(text).toContain(part);
  }
  socket.write('0\r\n\r\n');
  await expect.poll(text).toMatch(/0\r\n\r\n$/);
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlast');
  await closed;
  expect(text().match(/HTTP\/1\.1 200/g)).toHaveLength(2);
});

test.for([
  ['of known length', `POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: ${1024 ** 3}\r\n\r\n`, 'a'.repeat(0x10000)],
  ['in chunks', 'POST /unread HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n', CHUNK],
] as const)('a body %s that nobody wants is read up to 64 MiB', async ([, head, part]) => {
  const app = createApp().post('/unread', () => 'unread');
  const { port } = await serve(app);
  const accepted = once(app.server, 'connection') as Promise<[Socket]>;
  // A client that goes on although the server has ended its side.
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined).resume();
  const closed = new Promise((resolve) => client.once('close', resolve));
  client.write(head);
  const [socket] = await accepted;
  // As fast as the server takes it, 200 MiB at most.
  for (let sent = 0; sent < 200 * 16 && client.writable; sent += 1) {
    if (client.write(part)) continue;
    await Promise.race([new Promise((resolve) => client.once('drain', resolve)), closed]);
  }
  client.destroy();
  await closed;
  expect(socket.bytesRead).toBeLessThan(80 * 1024 * 1024);
});
