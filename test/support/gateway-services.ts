/** Services in processes of their own, for the tests of a gateway in front of several. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { publicFacing } from '../../src/endpoint/public-facing.js';
import { Router, type RouteInfo } from '../../src/routing/router.js';

/** What a service has. */
export interface ServiceTable {
  readonly name: string;
  readonly prefix?: string;
  readonly open: readonly string[];
  readonly closed: readonly string[];
}

/** A service that runs. */
export interface RunningService {
  readonly url: string;
  readonly child: ChildProcess;
  /** Its own table, monitoring endpoints among the routes. */
  readonly routes: readonly RouteInfo[];
  stop(): Promise<void>;
}

/** Starts a process with a service; with `extras`, the routes of `gateway-service.mjs` below `/extra/`, too. */
export async function startService(
  table: ServiceTable,
  extras: boolean = false,
  port: number = 0,
): Promise<RunningService> {
  const script = fileURLToPath(new URL('gateway-service.mjs', import.meta.url));
  const args = [script, table.name, JSON.stringify(table.open), JSON.stringify(table.closed), extras ? 'extras' : ''];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, PORT: String(port) },
  });
  const failed = once(child, 'exit').then(() => Promise.reject(new Error(`the service ${table.name} ended`)));
  const [message] = (await Promise.race([once(child, 'message'), failed])) as [{ url: string; routes: RouteInfo[] }];
  failed.catch(() => undefined);
  return {
    ...message,
    child,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/** A router with the same routes, to ask what a service would do. */
export function routerOf(routes: readonly RouteInfo[]): Router {
  const router = new Router();
  for (const { method, path, public: open } of routes) router.add(method, path, open ? publicFacing(() => 1) : () => 1);
  return router;
}

/** A reply as it came over the wire. */
export interface WireReply {
  readonly status: number;
  /** Lower-case names; the last of equal ones. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends bytes over a connection of its own and reads to its end. */
export function exchange(port: number, request: string | Buffer, timeoutMs: number = 10_000): Promise<WireReply> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.setTimeout(timeoutMs, () =>
      socket.destroy(new Error(`no answer to ${request.toString('latin1').slice(0, 200)}`)),
    );
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', (error) => (chunks.length === 0 ? reject(error) : undefined));
    socket.on('close', () => resolve(parseReply(Buffer.concat(chunks).toString('latin1'))));
    socket.write(typeof request === 'string' ? Buffer.from(request, 'latin1') : request);
  });
}

/** A reply from its bytes, the chunks of its body joined. */
export function parseReply(text: string): WireReply {
  const end = text.indexOf('\r\n\r\n');
  const [statusLine = '', ...fields] = text.slice(0, end).split('\r\n');
  const headers: Record<string, string> = {};
  for (const field of fields)
    headers[field.slice(0, field.indexOf(':')).toLowerCase()] = field.slice(field.indexOf(':') + 1).trim();
  const raw = text.slice(end + 4);
  const body = headers['transfer-encoding'] === 'chunked' ? raw.replace(/([0-9a-f]+)\r\n/gi, '')
    .replaceAll('\r\n', '') : raw;
  return { status: Number(/^HTTP\/1\.[01] (\d+)/.exec(statusLine)?.[1] ?? 0), headers, body };
}
