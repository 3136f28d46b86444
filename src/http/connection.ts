/*
 * One connection of a client: the order of its requests, how it ends, and what may still be read from it.
 *
 * A client may send `GET /a` and `GET /b` without waiting for the first reply (pipelining: RFC 9112, section 9.3.2). A
 * reply to `/b` that is ready early waits for the reply to `/a`. If that ends the connection, `/b` is never answered,
 * and must learn that. A disconnect is noticed only by reading, so something always has to read from the socket.
 */

import type { Duplex } from 'node:stream';
import type { BagMember } from '../base/bag.js';
import { setImmediate } from '../base/clock.js';
import type { HttpError } from '../base/errors.js';
import type { Backlog, Sending, Watched } from './backlog.js';
import { type ParserError, parserErrorOf } from './error-mapper.js';
import { isCut, saysClose, type Exchange } from './exchange.js';
import { CONNECTION, type ConnectionEvent, type ConnectionState } from './life-cycle.js';
import { ReadAhead } from './read-ahead.js';
import { closesByTrailer } from './request.js';
import type { ServerLimits } from './server.js';
import { endInNextTurn, endSoftly, inNextTurn } from './writer.js';

/** Maximum bytes of replies that wait on one connection while further requests of it are run. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

export class Connection implements Sending {
  readonly socket: Duplex;
  /** Bytes of the replies that are known, but not written yet. */
  waitingBytes = 0;
  watched: BagMember<Watched> | null = null;
  readonly #limits: ServerLimits;
  readonly #backlog: Backlog;
  readonly #reading: ReadAhead;
  #state: ConnectionState = 'open';
  /** In the order of their requests; see `life-cycle.ts`. */
  readonly #exchanges: Exchange[] = [];
  /** How many at the end of `#exchanges` are not run yet. */
  #waiting = 0;
  /** How many requests are run by `setImmediate`; see {@link #defer}. */
  #deferred = 0;
  #isAdvancing = false;
  /** Answers malformed bytes or CONNECT after the replies before; null if there is nothing to answer so. */
  #refuse: ((isOpen: boolean) => void) | null = null;

  constructor(socket: Duplex, limits: ServerLimits, backlog: Backlog) {
    this.socket = socket;
    this.#limits = limits;
    this.#backlog = backlog;
    this.#reading = new ReadAhead(socket, limits);
    socket.prependListener('end', () => {
      // When the client ends its side, node:http ends the other, except on a connection that it has stopped parsing.
      if (this.#isBroken) endSoftly(socket);
      // The end may be read in the same turn as requests. They are run, and their replies are written, at its end.
      else if (!this.isFree) endInNextTurn(socket);
    });
    socket.on('close', () => this.#close());
  }

  get isFree(): boolean {
    return this.#exchanges.length === 0 && this.#state === 'open';
  }

  /**
   * Takes a request in. After the last answered request it is dropped; over `maxPipelinedRequests` it waits; with a
   * body it is run in the next phase of the event loop.
   *
   * @param isLast whether no request after this one is answered
   * @returns whether the caller has to run it now; otherwise the connection runs it
   */
  accept(exchange: Exchange, isLast: boolean): boolean {
    if (this.#isLast) {
      exchange.drop();
      // node:http keeps even a dropped request until the connection is closed.
      this.#reading.fallBehind();
      return false;
    }
    this.#reading.arrived();
    const isFull = this.#isFull(this.#exchanges.length);
    this.#exchanges.push(exchange);
    // node:http ends the connection when a request with `Expect: 100-continue` is answered and was never told to
    // continue. That goes for a request without a body, too, although it has nothing to continue with.
    const { awaitsContinue, hasBody, res } = exchange;
    if (isLast || !res.shouldKeepAlive || (awaitsContinue && !hasBody)) {
      this.#move('last');
      // So that a reply which the handler writes itself, by `ctx.raw`, says `connection: close`, too.
      res.shouldKeepAlive = false;
    }
    if (isFull) this.#reading.fallBehind();
    else if (this.#waiting === 0 && !hasBody) return true;
    else if (hasBody || this.#deferred > 0) this.#defer();
    this.#waiting += 1;
    return false;
  }

  /** Whether the reply to this request is the last one on the connection, and so has to say `connection: close`. */
  endsWith(exchange: Exchange, isDraining: boolean = exchange.steps.isDraining): boolean {
    const isLast = this.#state === 'last' || this.#state === 'cut' || (isDraining && this.#state === 'open');
    return isLast && this.#exchanges.at(-1) === exchange;
  }

  /** To be called when a reply is sent, or never will be. Its exchange is let go once its body is here, too. */
  settle(exchange: Exchange): void {
    const { req, res } = exchange;
    if (!this.#exchanges.includes(exchange)) return;
    if (isCut(res)) this.cutBehind(exchange);
    else if (saysClose(res)) this.#endBehind(exchange);
    else if (closesByTrailer(req) || this.endsWith(exchange, false)) {
      // The reply has promised to keep a connection on which no further request is parsed, or run.
      this.#endBehind(exchange);
      this.#move('cut');
    }
    exchange.dropBody();
    if (!req.complete) req.once('close', this.#advance);
    if (!exchange.isOut) res.once('close', this.#advance);
    this.#advance();
  }

  /**
   * Ends the connection because this reply broke off, say after 4 bytes of `content-length: 10`: a client would take
   * whatever follows for the other 6. If the reply still waits for others, those are sent first.
   */
  cutBehind(exchange: Exchange): void {
    const { res } = exchange;
    this.#endBehind(exchange);
    this.#move('cut');
    if (res.socket !== null || this.#state === 'closed') this.socket.destroy();
    else if (!res.destroyed) res.once('socket', () => this.socket.destroy());
  }

  /**
   * Ends the connection after the replies to the requests before.
   *
   * @param write answers malformed bytes or CONNECT, if the connection is open by then; null to answer nothing
   */
  refuse(write: ((isOpen: boolean) => void) | null): void {
    if (this.#isBroken) write?.(false);
    else this.#refuse = write;
    // node:http lets go of the socket for a CONNECT, also for one after the end.
    this.#stopParsing(this.#isLast || write === null ? 'cut' : 'refuse');
  }

  /**
   * Handles a `clientError` of node:http: malformed bytes, a request that takes too long, a reset connection. After
   * malformed bytes node:http raises it again for everything else that arrives.
   *
   * @param refuse answers what could not be parsed as a request
   * @param isLate whether the turn in which the client ended its side is over; the connection may have broken off in it
   */
  breakOff(error: ParserError, refuse: (failure: HttpError) => void, isLate = false): void {
    const { socket } = this;
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    if (this.#isBroken) return isLate ? endSoftly(socket) : undefined;
    const latest = this.#exchanges.at(-1);
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      const late = latest?.req.complete === false ? latest.req : null;
      // The rest of a late body may have come by then.
      if (this.#reading.excuse(() => late?.complete === true || this.breakOff(error, refuse))) return;
    }
    const hasEnded = error.code === 'HPE_INVALID_EOF_STATE';
    if (hasEnded && !isLate && !this.isFree) return inNextTurn(() => this.breakOff(error, refuse, true));
    if (latest !== undefined && !latest.req.complete && !(hasEnded && this.#exchanges.length > 1)) {
      // The body of the latest request is malformed or late: the reply to that request says so, if it has none yet.
      this.#move('cut');
      // The list may have let go of it by then. A handler that still reads the body would wait for ever.
      socket.once('close', () => latest.req.destroy());
      latest.breakBody(parserErrorOf(error));
      this.#stopParsing('cut');
    } else if (hasEnded && latest !== undefined) endSoftly(this.socket);
    // Bytes after `Connection: close`, of a head or a trailer, are not a request to answer.
    else if (this.#isLast || error.code === 'HPE_CLOSED_CONNECTION') this.#stopParsing('cut');
    else if (latest === undefined && socket.writableLength > 0) socket.destroy();
    else this.refuse((isOpen) => isOpen && refuse(parserErrorOf(error)));
  }

  watch(): void {
    this.#backlog.watch(this);
  }

  unsentBytes(): number {
    let bytes = this.waitingBytes + this.socket.writableLength;
    if (this.watched === null) return bytes;
    for (const { raw, res } of this.#exchanges) {
      if (raw !== 'unused' && res.socket === null) bytes += res.writableLength;
    }
    return bytes;
  }

  /** Whether no request after the latest is answered: the head of its reply, maybe a handler's, may have said so. */
  get #isLast(): boolean {
    const latest = this.#exchanges.at(-1);
    if (latest !== undefined && latest.res.headersSent && saysClose(latest.res)) this.#move('last');
    return this.#state !== 'open';
  }

  /** Whether node:http parses no further requests here, because of malformed bytes, CONNECT, or a closed socket. */
  get #isBroken(): boolean {
    return this.#state !== 'open' && this.#state !== 'last';
  }

  #move(event: ConnectionEvent): boolean {
    const before = this.#state;
    this.#state = CONNECTION[before][event] ?? before;
    return this.#state !== before;
  }

  /** Whether a request has to wait for earlier requests. */
  #isFull(before: number): boolean {
    return before > 0 && (before >= this.#limits.maxPipelinedRequests || this.unsentBytes() > MAX_WAITING_BYTES);
  }

  /** Answers no request after this one any more: later requests are dropped (RFC 9112, section 9.6). */
  #endBehind(exchange: Exchange): void {
    const index = this.#exchanges.lastIndexOf(exchange);
    if (index === -1) return;
    this.#move('last');
    const dropped = this.#exchanges.splice(index + 1);
    this.#waiting = Math.max(0, this.#waiting - dropped.length);
    if (dropped.length === 0) return;
    for (const behind of dropped) behind.drop();
    // A handler of one of them may still write to its response, which waits for others.
    const disconnect = (): void => dropped.forEach((behind) => behind.disconnect());
    if (this.socket.closed) disconnect();
    else this.socket.once('close', disconnect);
  }

  /**
   * Runs a request in the next phase of the event loop. By then the body of the same packet is parsed, or found
   * malformed and refused. Requests that arrive in the meantime are deferred as well, to keep the order.
   */
  #defer(): void {
    this.#deferred += 1;
    setImmediate(this.#runDeferred);
  }

  readonly #runDeferred = (): void => {
    this.#deferred -= 1;
    this.#runNext(true);
    this.#advance();
  };

  /** Runs the first waiting request, unless it is deferred now. @returns whether it was run */
  #runNext(isDeferred: boolean): boolean {
    const inFlight = this.#exchanges.length - this.#waiting;
    if (this.#waiting === 0 || this.#isFull(inFlight)) return false;
    const next = this.#exchanges[inFlight] as Exchange;
    // node:http lets promises continue between two chunks of one packet.
    if (next.hasBody && !next.req.complete && !isDeferred) {
      this.#defer();
      return false;
    }
    this.#waiting -= 1;
    next.inContext(() => next.steps.run(next));
    return true;
  }

  /** Lets go of exchanges that are over, and runs waiting requests. */
  readonly #advance = (): void => {
    if (this.#isAdvancing) return;
    this.#isAdvancing = true;
    const exchanges = this.#exchanges;
    for (;;) {
      while (exchanges.length > 0 && (exchanges[0] as Exchange).isOut) {
        // They may have come after a reply that a handler wrote, and that has promised to keep the connection.
        if (closesByTrailer((exchanges.shift() as Exchange).req)) this.#move('cut');
        this.#waiting = Math.min(this.#waiting, exchanges.length);
        this.#reading.advance();
      }
      if (this.#deferred > 0 || !this.#runNext(false)) break;
    }
    this.#isAdvancing = false;
    if (this.#waiting === 0) this.#reading.catchUp();
    if (exchanges.length > 0) return;
    const refuse = this.#state === 'followed' ? this.#refuse : null;
    if (!this.#move('out')) return;
    if (refuse === null) return endSoftly(this.socket);
    this.#refuse = null;
    refuse(true);
  };

  /** From now on reads and drops what arrives, to notice when the client disconnects. */
  #stopParsing(event: 'refuse' | 'cut'): void {
    this.#move(event);
    this.#reading.read();
    // A full body has paused the socket, and node:http 24 lets go of it so. An empty chunk makes it ask for data again.
    this.socket.push('');
    this.#advance();
  }

  #close(): void {
    this.#refuse?.(false);
    this.#reading.close();
    this.#backlog.forget(this);
    this.#move('close');
    this.#waiting = 0;
    for (const exchange of this.#exchanges.splice(0)) exchange.disconnect();
  }
}
