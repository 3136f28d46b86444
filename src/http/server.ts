/* A server of `node:http` within its limits, and the connections that are open. */

import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { builtin } from '../base/builtin.js';
import { setTimeout } from '../base/clock.js';
import { Bag } from '../base/bag.js';

/** How long, in ms, a new connection may stay silent while the server closes. */
const SILENCE_MS = 250;

/** Limits of a server and of each of its connections; times in ms, 0 for no limit. */
export interface ServerLimits {
  readonly requestTimeout: number;
  readonly headersTimeout: number;
  readonly keepAliveTimeout: number;
  readonly sendTimeout: number;
  readonly maxConnections: number;
  readonly maxHeadersCount: number;
  readonly maxHeaderSize: number;
  readonly maxPipelinedRequests: number;
}

/**
 * A server that is not listening yet. It does not check `Host`, which is checked with the rest of the head: `node:http`
 * would refuse a request with an empty body, rather than the uniform one.
 */
export function createHttpServer(limits: ServerLimits): Server {
  const { requestTimeout, headersTimeout, keepAliveTimeout, maxConnections, maxHeaderSize } = limits;
  const shortest = Math.min(requestTimeout || Infinity, headersTimeout || Infinity);
  const server = builtin('node:http').createServer({
    requestTimeout,
    headersTimeout,
    keepAliveTimeout,
    maxHeaderSize,
    // node:http looks for expired requests this often; its default makes a short limit a long one.
    connectionsCheckingInterval: Math.max(50, Math.min(5_000, shortest / 4)),
    // Even in a process that was started with `--insecure-http-parser`.
    insecureHTTPParser: false,
  });
  if (maxConnections > 0) server.maxConnections = maxConnections;
  return server;
}

/** The open connections of a server; node:http has no list of those whose client has never sent a byte. */
export class Connections {
  readonly #open = new Bag<Duplex>();

  constructor(server: Server) {
    const closeIdle = server.closeIdleConnections.bind(server);
    // For node:http a connection is idle as soon as `end` of its reply was called, though its client may still read it.
    // `server.close()` calls this, too.
    server.closeIdleConnections = () => {
      const reading = [...this.#open].filter(({ writableLength }) => writableLength > 0);
      for (const socket of reading) socket.destroy = () => socket;
      closeIdle();
      for (const socket of reading) Reflect.deleteProperty(socket, 'destroy');
    };
    server.on('connection', (socket: Duplex) => {
      const member = this.#open.add(socket);
      socket.once('close', () => this.#open.delete(member));
    });
  }

  /** Closes connections on which no byte has arrived, after a moment for bytes that are on their way. */
  closeSilent(): void {
    const close = (): void => {
      for (const socket of this.#open) if ('bytesRead' in socket && socket.bytesRead === 0) socket.destroy();
    };
    setTimeout(close, SILENCE_MS).unref();
  }

  /** Closes every connection at once; resolves when their requests know. */
  async closeAll(): Promise<void> {
    await Promise.all([...this.#open].map((open) => new Promise((resolve) => open.once('close', resolve).destroy())));
  }
}
