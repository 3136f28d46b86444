/**
 * A request that arrives early, and is not whole when its time is up: node:http notices while Postern does not read it.
 * The timers of node:http are real, those of Postern pass in virtual time.
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createApp, serve } from '../support/serve.js';
import { time } from '../support/virtual-clock.js';

vi.mock('../../src/base/clock.js', async (load) =>
  (await import('../support/virtual-clock.js')).time.replace(await load()),
);

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const LIMITS = { headersTimeout: 1000, requestTimeout: 1000 };

/** A connection with two requests that wait until they are answered here, and a half that is late by then. */
async function openLate(half: string): Promise<{
  readonly client: Socket;
  /** The server's end of the connection. */
  readonly socket: Socket;
  readonly statuses: () => number[];
  answerFirst(): Promise<void>;
  answerSecond(): void;
}> {
  const waiting: (() => void)[] = [];
  const app = createApp(LIMITS);
  app.route('/', {
    GET: () => (waiting.length > 1 ? 'ok' : new Promise((resolve) => waiting.push(() => resolve('ok')))),
    POST: (ctx) => ctx.text(),
  });
  const late = once(app.server, 'clientError');
  const accepted = once(app.server, 'connection') as Promise<[Socket]>;
  const { port } = await serve(app);
  const client = connect(port, '127.0.0.1');
  let received = '';
  client.on('data', (chunk) => (received += String(chunk))).write(GET.repeat(2) + half);
  onTestFinished(() => void client.destroy());
  const [socket] = await accepted;
  await expect.poll(() => waiting.length).toBe(1);
  await late;
  return {
    client,
    socket,
    statuses: () => Array.from(received.matchAll(/HTTP\/1\.1 (\d{3})/g), ([, status]) => Number(status)),
    async answerFirst() {
      waiting[0]?.();
      await expect.poll(() => waiting.length).toBe(2);
    },
    answerSecond: () => waiting[1]?.(),
  };
}

const HALVES = [
  { what: 'head', half: 'GET / HTTP/1.1\r\nHost: x\r\nX: ', rest: 'y\r\n\r\n' },
  { what: 'body', half: 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nhalf', rest: 'half' },
];

test.for(HALVES)('an early request whose $what stays away is answered with 408 in the end', async ({ half }) => {
  const { client, statuses, answerFirst, answerSecond } = await openLate(half);
  const closed = once(client, 'close');
  await answerFirst();
  answerSecond();
  await expect.poll(statuses).toEqual([200, 200]);
  await time.pass(LIMITS.headersTimeout);
  await closed;
  expect(statuses()).toEqual([200, 200, 408]);
});

test.for(HALVES)('an early request whose $what is late is answered, and its connection kept', async ({ half, rest }) => {
  const { client, socket, statuses, answerFirst, answerSecond } = await openLate(half);
  await answerFirst();
  client.write(rest);
  await expect.poll(() => socket.bytesRead).toBe((GET.repeat(2) + half + rest).length);
  answerSecond();
  await expect.poll(statuses).toEqual([200, 200, 200]);
  await time.pass(2 * LIMITS.headersTimeout);
  client.write(GET);
  await expect.poll(statuses).toEqual([200, 200, 200, 200]);
});
