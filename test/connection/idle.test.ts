/**
 * A connection that waits for its next request closes after `keepAliveTimeout`, which its client is told, and only such
 * a one: not one whose reply is still being made, nor one that was upgraded.
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { Postern } from 'postern';
import { createApp, serve } from '../support/serve.js';

const GET = 'GET /now HTTP/1.1\r\nHost: x\r\n\r\n';

async function start(keepAliveTimeout?: number): Promise<{ app: Postern; open: (bytes?: string) => Promise<Socket> }> {
  const app = createApp(keepAliveTimeout === undefined ? {} : { keepAliveTimeout });
  app.get('/now', () => 'now');
  const { port } = await serve(app);
  const open = async (bytes = GET): Promise<Socket> => {
    const client = connect(port, '127.0.0.1').setEncoding('latin1');
    client.write(bytes);
    if (bytes === GET) await once(client, 'data');
    return client;
  };
  return { app, open };
}

test.each([
  ['72 seconds unless given', undefined, 'Keep-Alive: timeout=72'],
  ['in whole seconds', 5_999, 'Keep-Alive: timeout=5'],
  ['not at all where there is no limit', 0, undefined],
])('a client is told for how long its connection may be idle: %s', async (_what, keepAliveTimeout, told) => {
  const { open } = await start(keepAliveTimeout);
  const client = await open('');
  client.write(GET);
  const [reply] = (await once(client, 'data')) as [string];
  expect(reply).toContain('\r\nConnection: keep-alive\r\n');
  expect(/^keep-alive:.*$/im.exec(reply)?.[0]).toBe(told);
  client.destroy();
});

test('a connection that is idle for longer closes; one with a request under way, and an upgraded one, do not', async () => {
  const { app, open } = await start(50);
  app.get('/later', ({ signal }) => once(signal, 'abort').then(() => 'late'));
  app.server.on('upgrade', (_req, socket) => {
    socket.on('error', () => undefined).write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
  });
  const [idle, waiting, upgraded] = [await open(), await open(), await open()];
  waiting.write(GET.replace('/now', '/later'));
  upgraded.write('GET /now HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
  await once(upgraded, 'data');
  await once(idle, 'close');
  // It has been silent for longer than the other two may be, were they idle.
  const last = await open();
  await once(last, 'close');
  expect([waiting.closed, upgraded.closed]).toEqual([false, false]);
  waiting.destroy();
  upgraded.destroy();
});
