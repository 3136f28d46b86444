/**
 * A connection that waits for its next request closes after `keepAliveTimeout`, which its client is told, and only such
 * a one: not one whose reply is still being made, nor one that was upgraded.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { Postern, PosternOptions } from 'postern';
import { createApp, serve } from '../support/serve.js';

const GET = 'GET /now HTTP/1.1\r\nHost: x\r\n\r\n';

/** @returns `open`, which sends one request over a connection of its own and waits for the reply */
async function start(
  options: PosternOptions,
): Promise<{ app: Postern; open: () => Promise<{ client: Socket; reply: string }> }> {
  const app = createApp(options);
  app.get('/now', () => 'now');
  const { port } = await serve(app);
  const open = async (): Promise<{ client: Socket; reply: string }> => {
    const client = connect(port, '127.0.0.1').setEncoding('latin1');
    client.write(GET);
    const [reply] = (await once(client, 'data')) as [string];
    return { client, reply };
  };
  return { app, open };
}

test.each([
  ['72 seconds unless given', {}, 'Keep-Alive: timeout=72'],
  ['in whole seconds', { keepAliveTimeout: 5_999 }, 'Keep-Alive: timeout=5'],
  ['not at all where there is no limit', { keepAliveTimeout: 0 }, undefined],
])('a client is told for how long its connection may be idle: %s', async (_what, options, told) => {
  const { open } = await start(options);
  const { client, reply } = await open();
  expect(reply).toContain('\r\nConnection: keep-alive\r\n');
  expect(/^keep-alive:.*$/im.exec(reply)?.[0]).toBe(told);
  client.destroy();
});

test('a connection that is idle for longer closes; one with a request under way, and an upgraded one, do not', async () => {
  const { app, open } = await start({ keepAliveTimeout: 50 });
  app.get('/later', ({ signal }) => once(signal, 'abort').then(() => 'late'));
  app.server.on('upgrade', (_req, socket) => {
    socket
      .on('error', () => undefined)
      .write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
  });
  const [{ client: idle }, { client: waiting }, { client: upgraded }] = [await open(), await open(), await open()];
  waiting.write(GET.replace('/now', '/later'));
  upgraded.write('GET /now HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
  await once(upgraded, 'data');
  await once(idle, 'close');
  // This one falls silent after the two that are not idle did: had they a limit, theirs would be over first.
  const { client: last } = await open();
  await once(last, 'close');
  expect([waiting.closed, upgraded.closed]).toEqual([false, false]);
  waiting.destroy();
  upgraded.destroy();
});
