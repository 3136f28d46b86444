/*
 * Connects a `node:http` server to whatever answers its requests, its own refusals included.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { Bag } from '../bag.js';
import { HttpError } from '../errors.js';
import type { ParserError } from './error-mapper.js';

/** How long, in ms, a new connection may stay silent while the server closes. */
const SILENCE_MS = 250;

/** What answers the events of a server. */
export interface RequestListener {
  readonly handle: (req: IncomingMessage, res: ServerResponse, awaitsContinue?: boolean) => void;
  /** Answers a request that is not run; `node:http` would refuse it with an empty body. */
  refuse(req: IncomingMessage, res: ServerResponse, error: HttpError): void;
  /** Answers on a socket that `node:http` has let go of. */
  refuseConnect(req: IncomingMessage, socket: Duplex, error: HttpError): void;
  handleParserError(error: ParserError, socket: Duplex): void;
}

/** Limits of a server; times in ms, 0 for none. */
export interface ServerLimits {
  readonly requestTimeoutMs: number;
  readonly headersTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** 0 for no limit. */
  readonly maxConnections: number;
  readonly maxHeadersCount: number;
  readonly maxHeaderBytes: number;
}

/**
 * A server that is not listening yet. `Host` is checked with the rest of the head, so that a refusal has the uniform
 * body.
 */
export function createHttpServer(limits: ServerLimits): Server {
  const { requestTimeoutMs, headersTimeoutMs, keepAliveTimeoutMs, maxConnections, maxHeaderBytes } = limits;
  const shortest = Math.min(requestTimeoutMs || Infinity, headersTimeoutMs || Infinity);
  const server = createServer({
    requestTimeout: requestTimeoutMs,
    headersTimeout: headersTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    maxHeaderSize: maxHeaderBytes,
    // node:http looks for expired requests this often; its default makes a short limit a long one.
    connectionsCheckingInterval: Math.max(50, Math.min(5_000, shortest / 4)),
    requireHostHeader: false,
    // Whatever the process was started with.
    insecureHTTPParser: false,
  });
  if (maxConnections > 0) server.maxConnections = maxConnections;
  return server;
}

/** Answers every request of a server, and what it could not parse. */
export function attachListener(
  server: Server,
  listener: RequestListener,
  { maxHeadersCount }: Pick<ServerLimits, 'maxHeadersCount'>,
): void {
  // One more, so that a field too many is seen instead of dropped.
  server.maxHeadersCount = maxHeadersCount + 1;
  server.on('request', listener.handle);
  const refuseExpectation = (req: IncomingMessage, res: ServerResponse): void =>
    listener.refuse(req, res, new HttpError(417, 'The only expectation that is met is 100-continue.'));
  server.on('checkExpectation', refuseExpectation);
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    // For node:http it is enough that 100-continue is one of several (RFC 9110, section 10.1.1).
    if (/^[ ,\t]*100-continue[ ,\t]*$/i.test(req.headers.expect ?? '')) listener.handle(req, res, true);
    else refuseExpectation(req, res);
  });
  server.on('connect', (req: IncomingMessage, socket: Duplex) => {
    // node:http lets go of the socket: without a listener its next error would end the process.
    socket.on('error', () => socket.destroy());
    listener.refuseConnect(req, socket, new HttpError(501, 'CONNECT is not served.'));
  });
  server.on('clientError', (error: ParserError, socket: Duplex) => listener.handleParserError(error, socket));
}

/** The open connections of a server; node:http keeps no list that can be asked for those that never said a word. */
export class Connections {
  readonly #open = new Bag<Duplex>();

  constructor(server: Server) {
    server.on('connection', (socket: Duplex) => {
      const place = this.#open.add(socket);
      socket.once('close', () => this.#open.delete(place));
    });
  }

  /** Closes connections that no byte has come over, after a moment for what is on its way. */
  closeSilent(): void {
    const close = (): void => {
      for (const socket of this.#open) if ('bytesRead' in socket && socket.bytesRead === 0) socket.destroy();
    };
    setTimeout(close, SILENCE_MS).unref();
  }

  /** Cuts every connection. */
  closeAll(): void {
    for (const socket of this.#open) socket.destroy();
  }
}
