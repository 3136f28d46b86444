/** Ports for servers of other programs, and ports on which there is no server. */

import { once } from 'node:events';
import { createServer } from 'node:net';

// Below the ports that systems give to sockets without one (Linux: from 32,768), so that none of these is lost until it
// is listened on. Each process begins elsewhere.
let lastPort = 10_000 + (process.pid % 500) * 40;

/** Ports of loopback that nothing listens on, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const server = createServer().listen((lastPort += 1), '127.0.0.1');
    const isFree = await once(server, 'listening').then(() => true, () => false);
    if (!isFree) continue;
    ports.push(lastPort);
    await once(server.close(), 'close');
  }
  return ports;
}

/** A port of loopback that nothing listens on. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
