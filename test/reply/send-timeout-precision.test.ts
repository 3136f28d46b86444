/** When exactly a client that does not read is disconnected: in virtual time, over real sockets. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Postern } from 'postern';
import { createApp, serve } from '../support/serve.js';
import { time } from '../support/virtual-clock.js';

vi.mock('../../src/base/clock.js', async (load) =>
  (await import('../support/virtual-clock.js')).time.replace(await load()),
);

const LARGE = Buffer.alloc(32 * 1024 * 1024);
const SEND_TIMEOUT_MS = 4000;

/** A client that asks, and reads nothing; resolves when the buffers of both ends are full. */
async function deaf(app: Postern, port: number): Promise<Socket> {
  const accepted = once(app.server, 'connection') as Promise<[Socket]>;
  const client = connect(port, '127.0.0.1', () => client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  client.on('error', () => undefined).pause();
  onTestFinished(() => void client.destroy());
  const [socket] = await accepted;
  await expect.poll(() => socket.writableLength).toBeGreaterThan(0);
  // What the kernel can take, it has taken by then.
  for (let turns = 0; turns < 200; turns += 1) await turn();
  return client;
}

/** Reads enough to make room in the buffers of both ends, or the rest. */
async function readPart(client: Socket): Promise<void> {
  let [part, isOver] = [0, false];
  const onData = (data: Buffer): void => {
    part += data.length;
    if (part > LARGE.length / 4) client.pause();
  };
  client.on('data', onData).resume();
  // The end of the reply, of which less than a part may be left, is followed by silence.
  for (let quiet = 0; !isOver; quiet += 1) {
    const before = part;
    for (let turns = 0; turns < 50; turns += 1) await turn();
    if (part > before) quiet = 0;
    isOver = client.isPaused() || quiet > 20;
  }
  client.off('data', onData).pause();
  for (let turns = 0; turns < 200; turns += 1) await turn();
}

const count = (app: Postern): Promise<number> =>
  new Promise((resolve) => app.server.getConnections((_error, connections) => resolve(connections)));

test('a client is disconnected sendTimeout after it has read for the last time, at most an eighth later', async () => {
  const app = createApp({ sendTimeout: SEND_TIMEOUT_MS }).get('/', () => LARGE);
  const { port } = await serve(app);
  const client = await deaf(app, port);
  await time.pass(100);
  await readPart(client);
  await time.pass(SEND_TIMEOUT_MS - 10);
  expect(await count(app)).toBe(1);
  // One look sees the progress, an eighth late at most, and one sees that there is none.
  await time.pass(10 + SEND_TIMEOUT_MS / 4);
  await expect.poll(() => count(app)).toBe(0);
});

test('a client that disconnects leaves the time limit of the others as it is', async () => {
  const app = createApp({ sendTimeout: SEND_TIMEOUT_MS }).get('/', () => LARGE);
  const { port } = await serve(app);
  const [first] = [await deaf(app, port), await deaf(app, port), await deaf(app, port)];
  await time.pass(SEND_TIMEOUT_MS / 2);
  first.destroy();
  await expect.poll(() => count(app)).toBe(2);
  await time.pass(SEND_TIMEOUT_MS);
  await expect.poll(() => count(app)).toBe(0);
});

test('a client that goes on reading is not disconnected', async () => {
  const app = createApp({ sendTimeout: SEND_TIMEOUT_MS }).get('/', () => LARGE);
  const { port } = await serve(app);
  const client = await deaf(app, port);
  let received = 0;
  client.on('data', (data: Buffer) => (received += data.length));
  while (received < LARGE.length) {
    await readPart(client);
    await time.pass(SEND_TIMEOUT_MS / 2);
  }
  expect(received).toBeGreaterThan(LARGE.length);
});

test('a stream whose source is slow is not cut', async () => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const app = createApp({ sendTimeout: SEND_TIMEOUT_MS }).get('/', async function* () {
    // More than a socket takes at once, so that the connection is looked at.
    yield LARGE;
    await released;
    yield 'end';
  });
  const { port } = await serve(app);
  const client = await deaf(app, port);
  let [received, last] = [0, ''];
  client.on('data', (data: Buffer) => {
    received += data.length;
    last = data.toString('latin1', data.length - 20);
  }).resume();
  await expect.poll(() => received).toBeGreaterThan(LARGE.length);
  await time.pass(10 * SEND_TIMEOUT_MS);
  release();
  await expect.poll(() => last).toContain('end\r\n');
  expect(await count(app)).toBe(1);
});
