/* The servers of one listener: what they receive goes to the connection that it belongs to. */

import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { ListenOptions, Server as NetServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { builtin } from '../base/builtin.js';
import { clearInterval, monotonicNow, setImmediate, setInterval, setTimeout } from '../base/clock.js';
import { MAX_TIMEOUT_MS, within } from '../base/deadline.js';
import { HttpError } from '../base/errors.js';
import { option, show, wholeNumber, type OptionTable, type Resolved } from '../base/options-check.js';
import { Connection, type ListenerParts } from './connection.js';
import type { Exchange } from './exchange.js';
import { createHeadCheck } from './head.js';
import { guardUpgrades, serverOf, spareReaders, takeRequestsWithoutHost } from './node-internals.js';
import type { Answering } from './answering.js';
import type { ParserError } from './parser-error.js';
import { makePublic, type ScopeOptions } from './scope.js';
import type { SlowClients } from './slow-clients.js';
import { sendUnframed } from './writer.js';

/** How long, in ms, a new connection may stay silent while the server closes. */
const SILENCE_MS = 250;
/** How often, in ms, idle connections are closed during a drain. */
const SWEEP_MS = 100;
/** How long, in ms, a drain waits at most for a turn of the event loop without a new connection. */
const QUIET_MS = 1000;

/** Limits of a server and of each of its connections. Times are in ms. */
export interface ConnectionLimits {
  /** Maximum time for a whole request to arrive. Default: 60,000. 0: no limit. */
  requestTimeout?: number | undefined;
  /** Maximum time for the head of a request to arrive. Default: 15,000, or `requestTimeout` if that is less. */
  headersTimeout?: number | undefined;
  /** How long an idle connection stays open; longer than usual load balancers keep one. Default: 72,000. */
  keepAliveTimeout?: number | undefined;
  /** How long a client may leave a waiting reply unread. Default: 60,000. 0: no limit. */
  sendTimeout?: number | undefined;
  /** Maximum connections at a time; further connections are dropped. Default: 10,000. 0: no limit. */
  maxConnections?: number | undefined;
  /** Maximum header fields of a request; more give 431. Default: 999. */
  maxHeadersCount?: number | undefined;
  /** Maximum bytes of a request's head; more give 431, or 414 in the request line. Default: 16,384. */
  maxHeaderSize?: number | undefined;
}

/** @internal */
export const LIMITS = {
  requestTimeout: option(wholeNumber(0, MAX_TIMEOUT_MS), 60_000),
  headersTimeout: option(wholeNumber(0, MAX_TIMEOUT_MS)),
  keepAliveTimeout: option(wholeNumber(0, MAX_TIMEOUT_MS), 72_000),
  sendTimeout: option(wholeNumber(0), 60_000),
  maxConnections: option(wholeNumber(0), 10_000),
  maxHeadersCount: option(wholeNumber(1, 100_000), 999),
  maxHeaderSize: option(wholeNumber(1), 16_384),
} satisfies OptionTable<ConnectionLimits>;

/** The limits in use. @internal */
export interface ServerLimits extends Resolved<typeof LIMITS> {
  readonly headersTimeout: number;
}

/** The option, or its default. @throws {TypeError} if a head may take longer than its request @internal */
export function headersTimeoutOf(
  requestTimeout: number,
  headersTimeout: number = Math.min(15_000, requestTimeout || Infinity),
): number {
  if (requestTimeout === 0 || headersTimeout <= requestTimeout) return headersTimeout;
  throw new TypeError(`headersTimeout ${headersTimeout} is more than requestTimeout ${requestTimeout}; lower it`);
}

/** A server of `node:http`, others that are attached to it, and the requests in flight on all of them. @internal */
export class WireServer<Handling> {
  readonly server: Server;
  readonly #limits: ServerLimits;
  readonly #checkHead: ReturnType<typeof createHeadCheck>;
  readonly #parts: ListenerParts<Handling>;
  readonly #open = new Set<Duplex>();
  /** Only the connections of this listener: applications may share a server, and so its sockets. */
  readonly #connections = new WeakMap<Duplex, Connection<Handling>>();
  /** The servers that it answers. */
  readonly #attached = new WeakSet<Server>();
  /** Further addresses on which connections of {@link server} are accepted. */
  readonly #doors: NetServer[] = [];
  /** Number of connections that the server has accepted. */
  #accepted = 0;

  constructor(answering: Answering<Handling>, limits: ServerLimits, slowClients: SlowClients) {
    this.#limits = limits;
    this.#checkHead = createHeadCheck(limits.maxHeadersCount);
    const { requestTimeout } = limits;
    const onIdle = (): void => undefined;
    this.#parts = { answering, requestTimeout, slowClients, exchanges: new Set(), isDraining: false, onIdle };
    this.server = createHttpServer(limits);
    spareReaders(this.server, this.#open);
    this.server.on('connection', (socket: Duplex) => {
      this.#accepted += 1;
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
    });
    this.attach(this.server, {});
  }

  /** Requests without a complete reply, also those whose clients disconnected while their handlers run. */
  get exchanges(): ReadonlySet<Exchange<Handling>> {
    return this.#parts.exchanges;
  }

  /** Starts to listen; called again, on another address, too. @throws {Error} as `listen` of `node:net` does */
  async listen(where: ListenOptions): Promise<void> {
    const { server } = this;
    let door: NetServer = server;
    if (server.listening) {
      // As node:http has its own: a client may end its side and still wait for replies.
      door = builtin('node:net').createServer({ allowHalfOpen: true, noDelay: true });
      door.maxConnections = server.maxConnections;
      door.on('connection', (socket) => server.emit('connection', socket));
    }
    door.listen(where);
    await once(door, 'listening');
    if (door !== server) this.#doors.push(door);
  }

  /** Lets this listener answer all that a server receives, and refuse the upgrades that the public may not make. */
  attach(server: Server, { scope }: ScopeOptions): void {
    if ('updateSettings' in Object(server))
      throw new TypeError('attach() takes a server of node:http or node:https, not of node:http2; use app.handler');
    // An application of Express and a server of node:net have listeners, too, and would never call these.
    if (!('maxHeadersCount' in Object(server)))
      throw new TypeError(`attach() takes a server of node:http, not ${show(server)}`);
    if (this.#attached.has(server) || server.listeners('request').includes(this.handle))
      throw new TypeError(
        'attach() got a server that serves this application already, so that each handler would run twice; ' +
          'attach it once, without app.handler',
      );
    this.#attached.add(server);
    // One more than allowed: node:http drops fields beyond this count, and a request with one too many must be refused.
    server.maxHeadersCount = this.#limits.maxHeadersCount + 1;
    takeRequestsWithoutHost(server);
    const refuse = (req: IncomingMessage, res: ServerResponse): void =>
      this.#take(req, res, server, false, new HttpError(417, 'The only expectation that is met is 100-continue.'));
    server.on('request', (req, res) => this.#take(req, res, server, false));
    server.on('checkExpectation', refuse);
    server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
      // For node:http it is enough that 100-continue is one expectation of several (RFC 9110, section 10.1.1).
      if (/^[ ,\t]*100-continue[ ,\t]*$/i.test(req.headers.expect ?? '')) this.#take(req, res, server, true);
      else refuse(req, res);
    });
    server.on('connect', (req) => this.#refuseSocket(req, new HttpError(501, 'CONNECT is not served.')));
    server.on('clientError', (error: ParserError, socket) => this.#connectionOf(socket).breakOff(error));
    guardUpgrades(server, (req, proceed) => this.#upgrade(req, server, proceed));
    if (scope === 'public') makePublic(server);
  }

  /** Answers a request of a server that someone else created, which may keep fewer header fields than Postern's own. */
  readonly handle = (req: IncomingMessage, res: ServerResponse): void => {
    const server = serverOf(req);
    // An adapter for cloud functions, or light-my-request: their requests have no connection that could be followed.
    if (server === undefined && !('stream' in req))
      throw new TypeError('app.handler got a request that no server of node:http received; use app.request() instead');
    this.#take(req, res, server, false);
  };

  /** From now on a connection ends with its latest reply, and requests whose clients have disconnected are over. */
  beginDrain(): void {
    this.#parts.isDraining = true;
    for (const exchange of this.exchanges) exchange.carrier.dismiss(exchange);
  }

  /**
   * Accepts no connection any more, and closes the connections that are open when the time is over.
   *
   * @returns the requests that were cut off
   */
  async close(timeoutMs: number): Promise<ReadonlySet<Exchange<Handling>>> {
    const stopped = this.#stop();
    // Replies that were begun before the drain don't say `connection: close`: their connections are closed when idle.
    // By then the turn has read what had arrived: the connection of a request that nobody has read yet looks idle.
    const sweep = setInterval(() => setImmediate(() => this.server.closeIdleConnections()), SWEEP_MS);
    await within(timeoutMs, stopped.then(() => this.#idle()));
    clearInterval(sweep);
    const cut = new Set(this.exchanges);
    for (const exchange of cut) exchange.isCutByDrain = true;
    // Their connections may belong to a server that someone else made.
    await this.#closeAll([...cut].map(({ req }) => req.socket));
    await stopped;
    return cut;
  }

  /** Closes at once what was opened, for an application that can't be opened as a whole. */
  async revoke(): Promise<void> {
    const stopped = this.#stopListening();
    await this.#closeAll([]);
    await stopped;
  }

  #take(
    req: IncomingMessage,
    res: ServerResponse,
    server: Server | undefined,
    awaitsContinue: boolean,
    refusal: unknown = null,
  ): void {
    // Not the version: a request line of HTTP/1.1 may claim to be HTTP/2.0.
    if ('stream' in req) return this.#refuseHttp2(req, res);
    // A proxy in front may have read another length or another host in a head that is refused. What it takes for the
    // body of this request may be the next request for us, so nothing after it is answered.
    let isLast = true;
    try {
      if (refusal === null) isLast = this.#checkHead(req, server?.maxHeadersCount);
    } catch (thrown) {
      refusal = thrown;
    }
    // As few calls as possible lead to the handler: each is a frame in the stack of every error that it creates.
    const connection = this.#connections.get(req.socket) ?? this.#connectionOf(req.socket);
    connection.accept(req, res, awaitsContinue, refusal, isLast);
  }

  /** A request of a server of node:http2, which shares its socket with others. */
  #refuseHttp2(req: IncomingMessage, res: ServerResponse): void {
    const error = new HttpError(505, 'HTTP/2 is not served; use HTTP/1.1.');
    sendUnframed(res, this.#parts.answering.refuseSocket(req, error, true));
  }

  #refuseSocket(req: IncomingMessage, error: Error | null): void {
    const { socket } = req;
    // node:http lets go of the socket: without a listener its next error would end the process.
    socket.on('error', () => socket.destroy());
    this.#connectionOf(socket).refuse(req, error);
  }

  /** Hands a request for another protocol to its listeners, unless it is refused, or a reply before it is open. */
  #upgrade(req: IncomingMessage, { maxHeadersCount }: Server, proceed: () => void): void {
    let refusal: Error | null;
    try {
      this.#checkHead(req, maxHeadersCount);
      refusal = this.#parts.answering.refuseUpgrade(req);
    } catch (error) {
      refusal = error as Error;
    }
    if (!this.#connectionOf(req.socket).isFree) this.#refuseSocket(req, null);
    else if (refusal === null) proceed();
    else this.#refuseSocket(req, refusal);
  }

  #connectionOf(socket: Duplex): Connection<Handling> {
    let connection = this.#connections.get(socket);
    if (connection === undefined) this.#connections.set(socket, (connection = new Connection(socket, this.#parts)));
    return connection;
  }

  /** Resolves as soon as no exchange is under way. After {@link beginDrain}, a disconnect ends an exchange. */
  #idle(): Promise<void> {
    if (this.exchanges.size === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#parts.onIdle = resolve));
  }

  /**
   * Stops to listen, and resolves when no connection is left. The kernel resets a connection that it has accepted for a
   * socket and the process has not when that socket is closed, so this waits for a turn without a new connection.
   */
  async #stop(): Promise<void> {
    // A later turn also because of node:http: it takes a connection for idle as soon as `end` of its reply was called,
    // and would cut one whose reply is written in this turn before it is sent.
    await nextTurn();
    const limitMs = monotonicNow() + QUIET_MS;
    let before: number;
    do {
      before = this.#accepted;
      await nextTurn();
    } while (this.#accepted > before && monotonicNow() < limitMs);
    this.#closeSilent();
    await this.#stopListening();
  }

  /** Resolves when the servers have no connection left; at once for one that never listened. */
  async #stopListening(): Promise<void> {
    const listening = [this.server, ...this.#doors.splice(0)].filter((door) => door.listening);
    await Promise.all(listening.map((door) => new Promise((resolve) => door.close(resolve))));
  }

  /** Closes connections on which no byte has arrived, after a moment for bytes that are on their way. */
  #closeSilent(): void {
    const close = (): void => {
      for (const socket of this.#open) if ('bytesRead' in socket && socket.bytesRead === 0) socket.destroy();
    };
    setTimeout(close, SILENCE_MS).unref();
  }

  /** Closes every connection at once, and others; resolves when their requests know. */
  async #closeAll(others: readonly Duplex[]): Promise<void> {
    const sockets = [...new Set([...this.#open, ...others])].filter((socket) => !socket.closed);
    await Promise.all(sockets.map((socket) => new Promise((done) => socket.once('close', done).destroy())));
  }
}

/**
 * A server that is not listening yet. It does not check `Host`, which is checked with the rest of the head: `node:http`
 * would refuse a request with an empty body, rather than the uniform one.
 */
function createHttpServer(limits: ServerLimits): Server {
  const { requestTimeout, headersTimeout, keepAliveTimeout, maxConnections, maxHeaderSize } = limits;
  const shortest = Math.min(requestTimeout || Infinity, headersTimeout || Infinity);
  const server = builtin('node:http').createServer({
    requestTimeout,
    headersTimeout,
    keepAliveTimeout,
    maxHeaderSize,
    // node:http looks for expired requests this often; its default makes a short limit a long one.
    connectionsCheckingInterval: Math.max(50, Math.min(5_000, Math.floor(shortest / 4))),
    // Even in a process that was started with `--insecure-http-parser`.
    insecureHTTPParser: false,
  });
  if (maxConnections > 0) server.maxConnections = maxConnections;
  return server;
}

/** Resolves when the event loop has waited for sockets. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
