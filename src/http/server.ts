/*
 * Connects a `node:http` server to what answers its requests, including those that `node:http` would refuse by itself.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout } from '../base/clock.js';
import { Bag } from '../base/bag.js';
import { HttpError } from '../base/errors.js';
import type { ParserError } from './error-mapper.js';

/** How long, in ms, a new connection may stay silent while the server closes. */
const SILENCE_MS = 250;

/** Listeners for the events of a server. */
export interface RequestListener {
  readonly handle: (req: IncomingMessage, res: ServerResponse, awaitsContinue?: boolean) => void;
  /** Answers a request that is not run; `node:http` would refuse it with an empty body. */
  refuse(req: IncomingMessage, res: ServerResponse, error: HttpError): void;
  /** Answers a request with which `node:http` hands over the bare socket, such as CONNECT. */
  refuseSocket(req: IncomingMessage, error: HttpError): void;
  handleParserError(error: ParserError, socket: Duplex): void;
}

/** Limits of a server and of each of its connections; times in ms, 0 for none. */
export interface ServerLimits {
  readonly requestTimeout: number;
  readonly headersTimeout: number;
  readonly keepAliveTimeout: number;
  readonly sendTimeout: number;
  /** 0 for no limit. */
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
  const server = createServer({
    requestTimeout,
    headersTimeout,
    keepAliveTimeout,
    maxHeaderSize,
    // node:http looks for expired requests this often; its default makes a short limit a long one.
    connectionsCheckingInterval: Math.max(50, Math.min(5_000, shortest / 4)),
    requireHostHeader: false,
    // Even in a process that was started with `--insecure-http-parser`.
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
  // One more than allowed: node:http drops fields beyond this count, and a request with one too many must be refused.
  server.maxHeadersCount = maxHeadersCount + 1;
  server.on('request', listener.handle);
  const refuseExpectation = (req: IncomingMessage, res: ServerResponse): void =>
    listener.refuse(req, res, new HttpError(417, 'The only expectation that is met is 100-continue.'));
  server.on('checkExpectation', refuseExpectation);
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    // For node:http it is enough that 100-continue is one expectation of several (RFC 9110, section 10.1.1).
    if (/^[ ,\t]*100-continue[ ,\t]*$/i.test(req.headers.expect ?? '')) listener.handle(req, res, true);
    else refuseExpectation(req, res);
  });
  server.on('connect', (req: IncomingMessage) =>
    listener.refuseSocket(req, new HttpError(501, 'CONNECT is not served.')),
  );
  server.on('clientError', (error: ParserError, socket: Duplex) => listener.handleParserError(error, socket));
}

/** The open connections of a server; node:http has no list of those whose client has never sent a byte. */
export class Connections {
  readonly #open = new Bag<Duplex>();

  constructor(server: Server) {
    server.on('connection', (socket: Duplex) => {
      const place = this.#open.add(socket);
      socket.once('close', () => this.#open.delete(place));
    });
  }

  /** Closes connections on which no byte has arrived, after a moment for bytes that are on their way. */
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
