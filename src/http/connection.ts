/*
 * What belongs to one connection: the order of its requests, how it ends, and what may still be read from it.
 *
 * A client may send many requests without waiting for replies (pipelining: RFC 9112, section 9.3.2), and replies go out
 * in the order of the requests. So whatever ends a connection concerns the replies that still wait behind others, and
 * a connection that nobody reads from is one whose client can leave unnoticed.
 */

import { AsyncResource } from 'node:async_hooks';
import type { Duplex } from 'node:stream';
import type { HttpError } from '../errors.js';
import { parserErrorOf, type ParserError } from './error-mapper.js';
import type { Exchange } from './exchange.js';
import { WaitingRequests, type ConnectionLimits } from './waiting-requests.js';

/** How long, in ms, a connection that is over may take to be gone. */
export const LINGER_MS = 2000;
/** Most bytes of a body that nobody wants. */
const DISCARD_BYTES = 64 * 1024 * 1024;

const CONNECTION: unique symbol = Symbol('postern.connection');
type Connected = Duplex & { [CONNECTION]?: Connection };

/** The one of a socket; made when the socket is first seen. */
export function connectionOf(socket: Connected, limits: ConnectionLimits): Connection {
  return (socket[CONNECTION] ??= new Connection(socket, limits));
}

/** One connection of a client. */
export class Connection {
  readonly #socket: Duplex;
  readonly #limits: ConnectionLimits;
  /** Requests whose reply is not out, or whose body is not here, in order. */
  readonly #exchanges: Exchange[] = [];
  /** The last of them, which are more than may be in flight. */
  readonly #waiting: WaitingRequests;
  /** Whether nothing behind the latest request is answered. */
  #isLast = false;
  /** Whether an answer to something that is no request follows the reply to the latest one. */
  #isFollowed = false;
  /** Whether nothing more can be parsed. */
  #isBroken = false;
  /** The request whose body broke off. */
  #broken: Exchange | undefined;
  /** What remains to be done when all replies are out: to answer something that is no request, or to end. */
  #refusal: (() => void) | undefined;
  /** How many requests are run in the next phase of the event loop. */
  #deferred = 0;
  #isAdvancing = false;

  constructor(socket: Duplex, limits: ConnectionLimits) {
    this.#socket = socket;
    this.#limits = limits;
    this.#waiting = new WaitingRequests(socket, limits);
    socket.on('end', () => {
      // node:http ends its side of a connection whose client has ended its own, unless it has given up parsing before.
      if (this.#isBroken) this.#cut();
    });
    socket.on('close', () => this.#close());
  }

  /**
   * Takes a request in: it is run when it may be in flight, and dropped when nothing more is answered.
   *
   * @param isLast whether nothing behind it is answered
   * @returns whether it is the caller's to run, now
   */
  accept(exchange: Exchange, isLast: boolean): boolean {
    if (this.#isLast) {
      exchange.leave();
      this.discardBody(exchange);
      return false;
    }
    this.#waiting.arrived();
    this.#exchanges.push(exchange);
    // Without a body, node:http ends a connection whose request expects 100-continue all the same.
    const { awaitsContinue, hasBody, res } = exchange;
    if (isLast || !res.shouldKeepAlive || (awaitsContinue && !hasBody)) this.#isLast = true;
    if (this.#waiting.count > 0 || this.#exchanges.length > this.#limits.maxPipelinedRequests) this.#postpone(exchange);
    else if (this.#deferred > 0 || hasBody) this.#defer(exchange);
    else return true;
    return false;
  }

  /** Whether the reply to this request is the last one. */
  endsWith(exchange: Exchange, isDraining: boolean): boolean {
    return (this.#isLast || isDraining) && !this.#isFollowed && this.#exchanges.at(-1) === exchange;
  }

  /** From now on nothing behind this request is answered (RFC 9112, section 9.6). */
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
   * Reads the rest of a body that nobody wants any more. Left alone, it would stop the reading from this connection,
   * and its client could leave unnoticed while an earlier reply is quiet.
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

  /** To be called when the outcome of a request is known; it is let go when its reply is out and its body is here. */
  settle(exchange: Exchange): void {
    const { req, res } = exchange;
    if (!res.shouldKeepAlive) {
      // It has said close, as node:http does for a body that was never asked for: nothing may follow it.
      if (this.#isFollowed && this.#exchanges.includes(exchange)) this.#refusal = () => this.#cut();
      this.endBehind(exchange);
    }
    this.discardBody(exchange);
    if (!req.complete) req.once('close', this.#advance);
    if (!isOut(exchange)) res.once('close', this.#advance);
    this.#advance();
  }

  /**
   * Ends a connection whose reply to this request broke off: what was sent of it can't be completed. A reply that waits
   * behind others breaks off when it is its turn.
   */
  cutBehind(exchange: Exchange): void {
    const { res } = exchange;
    this.endBehind(exchange);
    if (res.socket !== null || res.destroyed) this.#socket.destroy();
    else res.once('socket', () => this.#socket.destroy());
  }

  /** Answers something that is no request, behind the replies to those before, as the last thing on this connection. */
  refuse(write: () => void): void {
    if (this.#refusal !== undefined) return;
    // Behind a request that ends the connection nothing is answered: its own reply is the last one.
    this.#isFollowed = !this.#isLast;
    this.#refusal = this.#isLast ? () => this.#cut() : write;
    this.#isLast = true;
    this.#isBroken = true;
    this.#watch();
    this.#advance();
  }

  /**
   * Deals with a `clientError` of node:http, which comes again with each byte behind the first.
   *
   * @param refuse answers in place of a request that could not be parsed
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
      // The body of a request is broken: its own reply says so, if it has none yet.
      this.#isLast = true;
      this.#broken = latest;
      this.#refusal = () => this.#cut();
      latest.fail(parserErrorOf(error));
      latest.breakBody();
      this.#watch();
      this.#advance();
    } else if (hasEnded && latest !== undefined) this.#cut();
    else if (this.#isLast || error.code === 'HPE_CLOSED_CONNECTION') {
      // What stands behind a request that says close, in its head or in its trailers, is no request.
      this.#isLast = true;
      this.#watch();
    } else if (latest === undefined && socket.writableLength > 0) socket.destroy();
    else this.refuse(() => refuse(parserErrorOf(error)));
  }

  /** Lets go of what is done, runs what may be run, and reads on. */
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
   * Runs a request in the next phase of the event loop: by then most bodies are here, and can be read without waiting
   * for them, and one that broke off in the same packet has been refused. What follows it is run behind it.
   */
  #defer(exchange: Exchange): void {
    this.#deferred += 1;
    setImmediate(this.#runDeferred, exchange);
  }

  #postpone(exchange: Exchange): void {
    this.#waiting.add(AsyncResource.bind(() => exchange.run()));
  }

  readonly #runDeferred = (exchange: Exchange): void => {
    this.#deferred -= 1;
    exchange.run();
  };

  /** Reads on, so that a client who leaves is noticed; of a connection that is broken nothing is parsed any more. */
  #watch(): void {
    this.#socket.resume();
    // Behind a body that had stopped it, a socket that node:http 24 lets go of takes itself for reading, and is not. An
    // empty chunk makes a stream ask again.
    this.#socket.push('');
  }

  /** Ends a connection whose client has left, behind what was written. */
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
      // Once it is answered, node:http does not tell a request that its connection is gone.
      if (!req.complete) req.destroy();
      // Before Node.js 24, nothing tells a response that waits behind others.
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
