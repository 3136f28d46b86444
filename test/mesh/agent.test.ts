/** The pool's own rule for idle connections, without the idle timeout that would close them later. */

import { once } from 'node:events';
import { Agent, ClientRequest, get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createAgent } from '../../src/mesh/http-transport.js';
import { startRawPeer } from '../support/peer.js';

async function idleSocket(): Promise<{ agent: ReturnType<typeof createAgent>; socket: Socket; remote: Socket }> {
  const peer = await startRawPeer(() => undefined);
  const socket = connect(Number(new URL(peer.url).port), '127.0.0.1');
  await once(socket, 'connect');
  await expect.poll(() => peer.sockets.length).toBe(1);
  const agent = createAgent(Agent, 60_000);
  expect(agent.keepSocketAlive(socket)).toBe(true);
  return { agent, socket, remote: peer.sockets[0] as Socket };
}

test('data on an idle connection closes it', async () => {
  const { socket, remote } = await idleSocket();
  remote.write('HTTP/1.1 200 OK\r\n');
  await once(socket, 'close');
});

test('data on a connection in use again does not', async () => {
  const { agent, socket, remote } = await idleSocket();
  agent.reuseSocket(socket, new ClientRequest('http://127.0.0.1', () => undefined).on('error', () => undefined));
  remote.write('HTTP/1.1 200 OK\r\n');
  await once(socket, 'data');
  expect(socket.destroyed).toBe(false);
  socket.destroy();
});

test.for([
  { maxAgeMs: 1, kept: false },
  { maxAgeMs: 60_000, kept: true },
])('a connection that has reached an age of $maxAgeMs ms is kept: $kept', async ({ maxAgeMs, kept }) => {
  const peer = await startRawPeer(() => 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
  const agent = createAgent(Agent, maxAgeMs);
  for (let sent = 0; sent < 2; sent += 1) {
    const request = get({ agent, host: '127.0.0.1', port: new URL(peer.url).port });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    // Older than it may be.
    await new Promise((resolve) => setTimeout(resolve, 5));
    response.resume();
    await once(response, 'close');
    await new Promise(setImmediate);
  }
  expect(peer.sockets).toHaveLength(kept ? 1 : 2);
  agent.destroy();
});
