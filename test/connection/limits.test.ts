/** What one client may take: connections and header fields. */

import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { rawExchange, rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

/** A client that sends and reads nothing until it is told to. */
function connectPaused(port: number, request: string): Socket {
  const socket = connect(port, '127.0.0.1', () => socket.write(request)).on('error', () => undefined).pause();
  onTestFinished(() => void socket.destroy());
  return socket;
}

test('connections beyond maxConnections are dropped, and taken again once others have ended', async () => {
  const app = createApp({ maxConnections: 2 }).get('/', () => 'ok');
  const { port } = await serve(app);
  const held = [connectPaused(port, ''), connectPaused(port, '')];
  await expect
    .poll(() => new Promise((resolve) => app.server.getConnections((_error, open) => resolve(open))))
    .toBe(2);
  const request = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  expect(await rawExchange(port, request)).toBe('');
  for (const socket of held) socket.destroy();
  await expect.poll(() => rawExchange(port, request)).toContain('200 OK');
});

test.for<[number, number, number]>([
  [20, 19, 200],
  [20, 20, 431],
  [1500, 1499, 200],
  [1500, 1500, 431],
])('with maxHeadersCount %i, %i fields beside Host give %i', async ([maxHeadersCount, count, status]) => {
  const { port } = await serve(createApp({ maxHeadersCount, maxHeaderSize: 65_536 }).get('/', () => 'ok'));
  const fields = Array.from({ length: count }, (_, i) => (i === 0 ? 'Connection: close\r\n' : `x-${i}: 1\r\n`))
    .join('');
  expect((await rawRequest(port, `GET / HTTP/1.1\r\nHost: x\r\n${fields}\r\n`)).status).toBe(status);
});

test('maxHeaderSize is the most that a head may take', async () => {
  const { port } = await serve(createApp({ maxHeaderSize: 1024 }).get('/', () => 'ok'));
  const withHeader = (length: number): string =>
    `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-long: ${'a'.repeat(length)}\r\n\r\n`;
  expect((await rawRequest(port, withHeader(500))).status).toBe(200);
  expect((await rawRequest(port, withHeader(2000))).status).toBe(431);
});
