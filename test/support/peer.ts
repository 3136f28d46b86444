/** Servers that other services are played by: polite ones on `node:http`, rude ones on `node:net`. */

import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A server of one test, cut when the test ends. */
export interface TestServer {
  readonly url: string;
  readonly sockets: readonly Socket[];
}

/** A peer on `node:http`, and the requests that it saw. */
export async function startPeer(
  listener: RequestListener,
): Promise<TestServer & { readonly requests: readonly IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((req, res) => {
    requests.push(req);
    listener(req, res);
  });
  return { ...(await listen(server)), requests };
}

/** A peer that answers each chunk it receives with what `answer` returns; undefined is silence, null hangs up. */
export async function startRawPeer(
  answer: (chunk: string, socket: Socket) => string | null | undefined,
): Promise<TestServer> {
  return listen(
    createTcpServer((socket) => {
      socket.on('data', (chunk) => {
        const text = answer(chunk.toString('latin1'), socket);
        if (text === null) socket.destroy();
        else if (text !== undefined) socket.write(text, 'latin1');
      });
    }),
  );
}

/** The whole of a request's body, as text. */
export async function readText(req: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of req) text += String(chunk);
  return text;
}

async function listen(server: Server): Promise<TestServer> {
  const sockets: Socket[] = [];
  server.on('connection', (socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets };
}
