/*
 * What belongs to one connection: the order of its requests, how it ends, and what may still be read from it.
 *
 * A client may send `GET /a` and `GET /b` without waiting for the first reply (pipelining: RFC 9112, section 9.3.2).
 * The replies go out in the order of the requests, so a reply to `/b` that is ready early waits for that to `/a`. When
 * `/a` ends the connection, `/b` is never answered, and has to be told. And as a client that leaves is noticed only by
 * reading from its socket, something always has to read, even where no request is wanted any more.
 */

import type { Duplex } from 'node:stream';
import { setImmediate, setTimeout } from '../base/clock.js';
import { builtin } from '../base/builtin.js';
import type { HttpError } from '../base/errors.js';
import { parserErrorOf, type ParserError } from './error-mapper.js';
import type { Exchange } from './exchange.js';
import { WaitingRequests, type ConnectionLimits } from './waiting-requests.js';

/** How long, in ms, a socket stays open behind its last reply, so that the client can read that reply. */
export const LINGER_MS = 2000;
/** Most bytes that are read and dropped of a body that no handler wants; with more, the connection is cut. */
const DISCARD_BYTES = 64 * 1024 * 1024;

const CONNECTION: unique symbol = Symbol('postern.connection');
type Connected = Duplex & { [CONNECTION]?: Connection };

/** The `Connection` of a socket; made when the socket is first seen. */
export function connectionOf(socket: Connected, limits: ConnectionLimits): Connection {
  return (socket[CONNECTION] ??= new Connection(socket, limits));
}

/** One connection of a client. */
export class Connection {
  readonly #socket: Duplex;
  readonly #limits: ConnectionLimits;
  /** Requests whose reply is not written yet, or whose body has not arrived, in the order in which they came. */
  readonly #exchanges: Exchange[] = [];
  /** Those at the end of `#exchanges` that are not run yet: `maxPipelinedRequests` are in flight before them. */
  readonly #waiting: WaitingRequests;
  /** Whether the latest request is the last to be answered, such as one with `Connection: close`. */
  #isLast = false;
  /** Whether one more answer follows the reply to the latest request: that to malformed bytes, or to CONNECT. */
  #isFollowed = false;
  /** Whether `node:http` parses no further requests here, because of malformed bytes, CONNECT, or a closed socket. */
  #isBroken = false;
  /** The request whose body can't be read to its end, for example because one of its chunks is malformed. */
  #broken: Exchange | undefined;
  /** Called once all replies are out: answers malformed bytes or CONNECT, or just ends the connection. */
  #refusal: (() => void) | undefined;
  /** How many requests are to be run by `setImmediate`; see `#defer`. */
  #deferred = 0;
  #isAdvancing = false;

  constructor(socket: Duplex, limits: ConnectionLimits) {
    this.#socket = socket;
    this.#limits = limits;
    this.#waiting = new WaitingRequests(socket, limits);
    socket.on('end', () => {
      // When the client ends its side, node:http ends the other, except on a connection that it has stopped parsing.
      if (this.#isBroken) this.#cut();
    });
    socket.on('close', () => this.#close());
  }

  /**
   * Takes in a request that has arrived. Behind the last request to be answered it is dropped; behind
   * `maxPipelinedRequests` others it waits; with a body it is run in the next phase of the event loop.
   *
   * @param isLast whether no request behind this one is answered
   * @returns whether the caller has to run it now; otherwise the connection sees to it
   */
  accept(exchange: Exchange, isLast: boolean): boolean {
    if (this.#isLast) {
      exchange.leave();
      this.discardBody(exchange);
      return false;
    }
    this.#waiting.arrived();
    this.#exchanges.push(exchange);
    // node:http ends the connection when a request with `Expect: 100-continue` is answered and was never told to
    // continue. That goes for a request without a body, too, although it has nothing to continue with.
    const { awaitsContinue, hasBody, res } = exchange;
    if (isLast || !res.shouldKeepAlive || (awaitsContinue && !hasBody)) {
      this.#isLast = true;
      // So that a reply which the handler writes itself, by `ctx.raw`, says `connection: close`, too.
      res.shouldKeepAlive = false;
    }
    if (this.#waiting.count > 0 || this.#exchanges.length > this.#limits.maxPipelinedRequests) this.#postpone(exchange);
    else if (this.#deferred > 0 || hasBody) this.#defer(exchange);
    else return true;
    return false;
  }

  /** Whether the reply to this request is the last one on the connection, and so has to say `connection: close`. */
  endsWith(exchange: Exchange, isDraining: boolean): boolean {
    return (this.#isLast || isDraining) && !this.#isFollowed && this.#exchanges.at(-1) === exchange;
  }

  /** Makes this request the last to be answered: requests behind it are dropped (RFC 9112, section 9.6). */
  endBehind(exchange: Exchange): void {
    this.#isLast = true;
    const index = this.#exchanges.lastIndexOf(exchange);
    if (index === -1 || index === this.#exchanges.length - 1) return;
    this.#waiting.clear();
    for (const behind of this.#exchanges.splice(index + 1)) {
      behind.leave();
      this.discardBody(behind);
    }
  }

  /**
   * Reads and drops the rest of a body that no handler wants any more. Left unread, it would fill its buffer, and
   * node:http would stop reading from the socket: that the client leaves while an earlier reply still waits for its
   * handler would go unnoticed.
   */
  discardBody(exchange: Exchange): void {
    const { req } = exchange;
    if (req.complete || exchange.isBodyDiscarded) return;
    exchange.isBodyDiscarded = true;
    let budget = DISCARD_BYTES;
    const onData = (chunk: Buffer): void => {
      budget -= chunk.length;
      if (budget < 0) this.#socket.destroy();
    };
    req.on('data', onData).unpipe().resume();
  }

  /** To be called when the outcome of a request is known. It is let go once its reply is out and its body is here. */
  settle(exchange: Exchange): void {
    const { req, res } = exchange;
    if (!res.shouldKeepAlive) {
      // This reply said `connection: close`; node:http adds that by itself when the client was never told to send its
      // body (`Expect: 100-continue`). So no further answer may follow.
      if (this.#isFollowed && this.#exchanges.includes(exchange)) this.#refusal = () => this.#cut();
      this.endBehind(exchange);
    } else if (this.endsWith(exchange, false)) {
      // The handler has said `connection: keep-alive`, on a connection where no further request is run.
      this.#refusal ??= () => this.#cut();
    }
    this.discardBody(exchange);
    if (!req.complete) req.once('close', this.#advance);
    if (!isOut(exchange)) res.once('close', this.#advance);
    this.#advance();
  }

  /**
   * Cuts the connection because the reply to this request broke off, say after 4 bytes of `content-length: 10`: a
   * client would take whatever follows for the other 6. If the reply still waits behind others, those are sent first.
   */
  cutBehind(exchange: Exchange): void {
    const { res } = exchange;
    this.endBehind(exchange);
    if (res.socket !== null || res.destroyed) this.#socket.destroy();
    else res.once('socket', () => this.#socket.destroy());
  }

  /** Answers malformed bytes or CONNECT, behind the replies to the requests before, and ends the connection. */
  refuse(write: () => void): void {
    if (this.#refusal !== undefined) return;
    // Behind a request that ends the connection nothing is answered: the reply to that request is the last one.
    this.#isFollowed = !this.#isLast;
    this.#refusal = this.#isLast ? () => this.#cut() : write;
    this.#isLast = true;
    this.#isBroken = true;
    this.#watch();
    this.#advance();
  }

  /**
   * Deals with a `clientError` of node:http: malformed bytes, a request that takes too long, a reset connection. Behind
   * malformed bytes node:http raises it again for everything else that arrives.
   *
   * @param refuse answers what could not be parsed as a request
   */
  breakOff(error: ParserError, refuse: (failure: HttpError) => void): void {
    const socket = this.#socket;
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    if (this.#isBroken) return;
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && this.#waiting.excuse()) return;
    const latest = this.#exchanges.at(-1);
    const hasEnded = error.code === 'HPE_INVALID_EOF_STATE';
    this.#isBroken = !hasEnded;
    if (latest !== undefined && !latest.req.complete && !(hasEnded && this.#exchanges.length > 1)) {
      // The body of the latest request is malformed or late: the reply to that request says so, if it has none yet.
      this.#isLast = true;
      this.#broken = latest;
      this.#refusal = () => this.#cut();
      latest.fail(parserErrorOf(error));
      latest.breakBody();
      this.#watch();
      this.#advance();
    } else if (hasEnded && latest !== undefined) this.#cut();
    else if (this.#isLast || error.code === 'HPE_CLOSED_CONNECTION') {
      // Bytes behind a request with `Connection: close`, in its head or in its trailers, are no request to answer.
      this.#isLast = true;
      this.#watch();
    } else if (latest === undefined && socket.writableLength > 0) socket.destroy();
    else this.refuse(() => refuse(parserErrorOf(error)));
  }

  /** Lets go of requests that are done, runs waiting ones, and reads from the socket again when none waits. */
  readonly #advance = (): void => {
    if (this.#isAdvancing) return;
    this.#isAdvancing = true;
    const exchanges = this.#exchanges;
    const waiting = this.#waiting;
    let progress = false;
    for (;;) {
      while (exchanges.length > 0 && isOut(exchanges[0] as Exchange)) {
        exchanges.shift();
        progress = true;
      }
      if (exchanges.length - waiting.count >= this.#limits.maxPipelinedRequests) break;
      const next = waiting.next();
      if (next === undefined) break;
      next();
    }
    this.#isAdvancing = false;
    waiting.readOn(progress);
    if (exchanges.length === 0 && this.#refusal !== undefined) {
      const refuse = this.#refusal;
      this.#refusal = () => undefined;
      refuse();
    }
  };

  /**
   * Runs a request with a body in the next phase of the event loop. Most bodies come in the same packet as their head:
   * by then they are parsed, so that a handler need not wait for them, or found malformed, and refused. Requests that
   * arrive in the meantime are deferred as well, to keep the order.
   */
  #defer(exchange: Exchange): void {
    this.#deferred += 1;
    setImmediate(this.#runDeferred, exchange);
  }

  #postpone(exchange: Exchange): void {
    this.#waiting.add(builtin('node:async_hooks').AsyncResource.bind(() => exchange.run()));
  }

  readonly #runDeferred = (exchange: Exchange): void => {
    this.#deferred -= 1;
    exchange.run();
  };

  /** Reads on, to notice when the client leaves. What is read is dropped: node:http has stopped parsing it. */
  #watch(): void {
    this.#waiting.read();
    // A body that filled its buffer has paused the socket. When node:http 24 lets go of such a socket (for CONNECT),
    // the stream is marked as reading, but nobody asks the operating system for data. An empty chunk makes it ask
    // again.
    this.#socket.push('');
  }

  /** Ends the connection behind what was written; a client that does not end its side is cut after a while. */
  #cut(): void {
    const socket = this.#socket;
    socket.end();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }

  #close(): void {
    this.#waiting.close();
    this.#isLast = true;
    this.#isBroken = true;
    this.#refusal = undefined;
    this.#broken?.req.destroy();
    for (const exchange of this.#exchanges.splice(0)) {
      const { req, res } = exchange;
      exchange.leave();
      // node:http does not tell a request that its connection is gone once its reply is out: whoever still reads the
      // body would wait for ever.
      if (!req.complete) req.destroy();
      // A response that waits behind others has no socket yet; before Node.js 24, nothing tells it that none will come.
      if (res.socket === null && !res.destroyed && !res.writableFinished) res.destroy().emit('close');
    }
  }
}

/** Whether a reply has been handed to the socket as a whole, and the request's body is here or gone. */
function isOut({ answered, isBodyBroken, req, res }: Exchange): boolean {
  if (!answered) return false;
  if (res.destroyed && !res.writableFinished) return true;
  return (req.complete || isBodyBroken) && (res.writableFinished || (res.writableEnded && res.socket !== null));
}
