/*
 * One connection of a client: its requests one after another, what may still be read from it, and how it ends.
 *
 * A client may send `GET /a` and `GET /b` without waiting for the first reply (pipelining: RFC 9112, section 9.3.2).
 * The second request begins when node:http assigns the socket to its response: then the first reply is with the
 * kernel. If the first reply ends the connection, the second request never begins.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { builtin } from '../base/builtin.js';
import { nextTick, setImmediate } from '../base/clock.js';
import type { HttpError } from '../base/errors.js';
import { EarlyRequests } from './early-requests.js';
import { CLIENT_CLOSED_REQUEST, Exchange, type Carrier } from './exchange.js';
import { closesByTrailer } from './head.js';
import type { IncomingBody } from './incoming-body.js';
import { allowBody, deferEnd, dropLateHeaders, saysClose, wakeReading } from './node-internals.js';
import type { Answering } from './answering.js';
import { hasStream, type Outgoing } from './outgoing.js';
import { parserErrorOf, type ParserError } from './parser-error.js';
import type { Sending, SlowClients } from './slow-clients.js';
import { endSoftly, free, send, sendRaw } from './writer.js';

/** Maximum requests that wait for their turn. With more, the connection ends after their replies. */
const MAX_EARLY_REQUESTS = 100;

/** Three replies are attempted: the handler's, the error for what is wrong with it, and the fixed 500. */
const MAX_FAILED_REPLIES = 2;

/**
 * - `open`: further requests are answered (persistent by default: RFC 9112, section 9.3).
 * - `last`: nothing after the latest request is answered, and its reply says `connection: close` (section 9.6).
 * - `cut`: the same, and the rest can't be parsed: Postern ends the connection after the latest reply.
 * - `closed`: the connection is closed, or will be when the client has taken what was written.
 */
type ConnectionState = 'open' | 'last' | 'cut' | 'closed';

/** Parts that all connections of one listener share. */
export interface ListenerParts<Handling> {
  readonly answering: Answering<Handling>;
  readonly requestTimeout: number;
  readonly slowClients: SlowClients;
  /** Every exchange that is not over. */
  readonly exchanges: Set<Exchange<Handling>>;
  /** Whether replies end their connections: the application drains. */
  isDraining: boolean;
  /** Called when the last of {@link exchanges} is over. */
  onIdle(): void;
}

export class Connection<Handling> implements Carrier, Sending {
  readonly socket: Duplex;
  readonly #parts: ListenerParts<Handling>;
  /** Null until a request has to wait. */
  #early: EarlyRequests | null = null;
  #state: ConnectionState = 'open';
  /** The request whose reply has the socket; null once it is over and its body is here, unless others wait. */
  #current: Exchange<Handling> | null = null;
  /** Requests whose responses wait for the socket, in their order. */
  readonly #waiting: Exchange<Handling>[] = [];
  /** Answers malformed bytes or CONNECT after the latest reply. */
  #refusal: ((isOpen: boolean) => void) | null = null;

  constructor(socket: Duplex, parts: ListenerParts<Handling>) {
    this.socket = socket;
    this.#parts = parts;
    socket.prependListener('end', () => {
      // When the client ends its side, node:http ends the other, except on a connection that it has stopped parsing.
      // The end may come in the same turn as a request. Its handler begins, and its reply is written, in that turn.
      if (this.#isBroken) inNextTurn(() => endSoftly(socket));
      else if (!this.isFree) deferEnd(socket, inNextTurn);
    });
    socket.on('close', () => this.#close());
    // A server that someone else made may hand over a request after its client has left.
    if (socket.destroyed) this.#state = 'closed';
  }

  /** Whether no request is under way. */
  get isFree(): boolean {
    const isOver = this.#current === null && this.#waiting.length === 0;
    // A handler may have destroyed its reply, or its client reset the connection: `close` comes later.
    return isOver && this.#state === 'open' && this.socket.writable;
  }

  /** The request that was accepted last. */
  get #latest(): Exchange<Handling> | null {
    return this.#waiting.at(-1) ?? this.#current;
  }

  /**
   * Takes a request in: it begins at once, or when its turn comes, or never.
   *
   * @param isLast whether no request after this one is answered
   */
  accept(req: IncomingMessage, res: ServerResponse, awaitsContinue: boolean, refusal: unknown, isLast: boolean): void {
    const exchange = new Exchange<Handling>(req, res, this, awaitsContinue, refusal);
    const hasSocket = res.socket !== null;
    this.#parts.exchanges.add(exchange);
    if (this.#waiting.length >= MAX_EARLY_REQUESTS) this.#acceptNoMore('last');
    const before = hasSocket ? undefined : this.#current?.res;
    // Its head, maybe written by the handler, may have said that nothing after it is answered.
    if (this.#state !== 'open' || (before?.headersSent === true && saysClose(before))) {
      // node:http keeps even a request that is not answered until the connection is closed.
      this.#hold();
      return this.#leave(exchange);
    }
    if (hasSocket) this.#current = exchange;
    else this.#waiting.push(exchange);
    // node:http ends the connection when a request with `Expect: 100-continue` is answered and was never told to
    // continue. That goes for a request without a body, too, although it has nothing to continue with.
    if (isLast || !res.shouldKeepAlive || (awaitsContinue && exchange.body === null)) this.#acceptNoMore('last');
    if (hasSocket && exchange.body === null) return this.#begin(exchange);
    exchange.keepContext();
    if (hasSocket) return this.#beginAfterPacket(exchange);
    this.#hold();
    res.once('socket', () => exchange.inContext(() => this.#beginWaiting(exchange)));
  }

  endsWith(exchange: Exchange): boolean {
    // Requests that had arrived when a drain began are answered: a client may not send them again.
    const isLast = (this.#state !== 'open' || this.#parts.isDraining) && this.#refusal === null;
    return isLast && exchange === this.#latest;
  }

  watch(): void {
    this.#parts.slowClients.watch(this);
  }

  /**
   * Ends the connection after the replies that are under way. Then what is not a request to answer is refused, if the
   * connection is open by then.
   *
   * @param req an upgrade or CONNECT, whose socket node:http has let go of; null for malformed bytes
   * @param error null to answer nothing
   */
  refuse(req: IncomingMessage | null, error: Error | null): void {
    const { AsyncResource } = builtin('node:async_hooks');
    const answer = (isOpen: boolean): void => {
      if (error === null || (req === null && !isOpen)) return;
      const outgoing = this.#parts.answering.refuseSocket(req, error, isOpen);
      if (isOpen) sendRaw(this.socket, req?.method === 'HEAD' ? { ...outgoing, body: null } : outgoing);
    };
    // After a reply that says `connection: close`, nothing is answered.
    if (error !== null && this.#state === 'open') this.#refusal = AsyncResource.bind(answer);
    else answer(false);
    this.#stopParsing();
  }

  /**
   * Handles a `clientError` of node:http: malformed bytes, a request that takes too long, a reset connection. After
   * malformed bytes node:http raises it again for everything else that arrives.
   *
   * @param isLate whether the turn in which the client ended its side is over; the connection may have broken off in it
   */
  breakOff(error: ParserError, isLate = false): void {
    const { socket } = this;
    const latest = this.#latest;
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    if (this.#isBroken) return isLate ? endSoftly(socket) : undefined;
    const hasEnded = error.code === 'HPE_INVALID_EOF_STATE';
    if (hasEnded && !isLate && !this.isFree) return inNextTurn(() => this.breakOff(error, true));
    if (latest !== null && latest.body !== null && !latest.req.complete && !(hasEnded && this.#waiting.length > 0)) {
      this.#acceptNoMore('cut');
      this.#breakBody(latest, latest.body, parserErrorOf(error));
      this.#stopParsing();
    } else if (hasEnded && latest !== null) endSoftly(socket);
    // Bytes after `Connection: close`, of a head or a trailer, are not a request to answer.
    else if (this.#state === 'last' || error.code === 'HPE_CLOSED_CONNECTION') this.#stopParsing();
    else this.refuse(null, parserErrorOf(error));
  }

  /** Whether node:http parses no further requests here, because of malformed bytes, CONNECT, or a closed socket. */
  get #isBroken(): boolean {
    return this.#state === 'cut' || this.#state === 'closed';
  }

  /** Reads no more than a little ahead: a request has to wait, or is not answered. */
  #hold(): void {
    if (this.socket.destroyed) return;
    this.#early ??= new EarlyRequests(this.socket, this.#parts.requestTimeout, () => this.#acceptNoMore('last'));
    this.#early.hold();
  }

  #acceptNoMore(state: 'last' | 'cut'): void {
    if (!this.#isBroken) this.#state = state;
    const latest = this.#latest;
    // So that a reply which the handler writes itself, by `ctx.raw`, says `connection: close`, too.
    if (latest !== null && this.#refusal === null && !latest.res.headersSent) latest.res.shouldKeepAlive = false;
  }

  /** Begins in the next phase of the event loop: by then the body of the same packet is parsed, or found malformed. */
  #beginAfterPacket(exchange: Exchange<Handling>): void {
    setImmediate(() => exchange.inContext(() => this.#begin(exchange)));
  }

  #beginWaiting(exchange: Exchange<Handling>): void {
    this.#waiting.shift();
    this.#current = exchange;
    if (this.#waiting.length === 0) this.#early?.release();
    else this.#early?.advance();
    // node:http lets promises continue between two chunks of one packet.
    if (exchange.body !== null && !exchange.req.complete) this.#beginAfterPacket(exchange);
    else this.#begin(exchange);
  }

  #begin(exchange: Exchange<Handling>): void {
    // `close` is still to come. For node:http the reply before is finished when it could not be written, too.
    if (!this.socket.writable) return;
    if (!exchange.move('begin')) return;
    const answer = this.#parts.answering.answer(exchange);
    if (answer instanceof Promise) void answer.then((outgoing) => this.#reply(exchange, outgoing));
    else this.#reply(exchange, answer);
  }

  #reply(exchange: Exchange<Handling>, outgoing: Outgoing | null): void {
    if (outgoing === null) return this.#leaveToHandler(exchange);
    if (exchange.state === 'running' && !exchange.isHandedOver) return this.#send(exchange, outgoing);
    // The request was answered in its handler's place, or its client has left.
    free(outgoing);
    if (exchange.state === 'left') this.#settle(exchange, CLIENT_CLOSED_REQUEST);
    else if (exchange.state === 'running') this.#abort(exchange, outgoing.status);
  }

  #send(exchange: Exchange<Handling>, outgoing: Outgoing, failures = 0): void {
    exchange.move('send');
    exchange.outgoing = outgoing;
    try {
      const sending = send(exchange, outgoing);
      if (sending === null) return this.#settle(exchange, outgoing.status);
      if (!hasStream(outgoing)) exchange.body?.drop();
      sending.then(
        () => this.#sent(exchange, outgoing),
        (thrown: unknown) => this.#failSending(exchange, outgoing, thrown, failures + 1),
      );
    } catch (thrown) {
      this.#failSending(exchange, outgoing, thrown, failures + 1);
    }
  }

  #sent(exchange: Exchange<Handling>, outgoing: Outgoing): void {
    if (exchange.outgoing !== outgoing) return;
    if (exchange.isCut) this.#leave(exchange);
    else this.#settle(exchange, outgoing.status);
  }

  #failSending(exchange: Exchange<Handling>, outgoing: Outgoing, thrown: unknown, failures: number): void {
    const { method, res } = exchange;
    // Another reply has taken its place.
    if (exchange.outgoing !== outgoing) return;
    if (failures > MAX_FAILED_REPLIES) return this.#abort(exchange, CLIENT_CLOSED_REQUEST);
    const instead = this.#parts.answering.refuse(exchange, thrown, failures === 1 ? outgoing : null);
    if (exchange.isHandedOver) return this.#abort(exchange, instead.status);
    // A header that was set on `res` itself may be why the next reply could not be written either.
    if (failures > 1) for (const name of res.getHeaderNames()) res.removeHeader(name);
    allowBody(res, method !== 'HEAD');
    exchange.move('fail');
    this.#send(exchange, instead, failures);
  }

  /** The handler writes the reply itself: the exchange is over when that reply is. */
  #leaveToHandler(exchange: Exchange<Handling>): void {
    const { res } = exchange;
    if (!exchange.move('send')) {
      if (exchange.state === 'left') this.#settle(exchange, CLIENT_CLOSED_REQUEST);
      return;
    }
    const settle = (): void =>
      exchange.inContext(() => {
        if (exchange.isCut) this.#leave(exchange);
        else this.#settle(exchange, res.statusCode);
      });
    const isWritten = res.writableEnded && res.writableLength === 0;
    if (res.destroyed || res.writableFinished || isWritten) settle();
    else res.once('close', settle);
  }

  /** Ends the connection because a reply broke off: a client would take whatever follows for the rest of it. */
  #abort(exchange: Exchange<Handling>, status: number): void {
    const { res, isCut } = exchange;
    exchange.move('send');
    if (!res.writableEnded) {
      // Malformed bytes or CONNECT would be answered inside the reply that broke off.
      this.#answerNothingMore();
      // In the next tick: node:http hands to the socket what was written in this one, and can't if it is ended before.
      this.#state = 'closed';
      nextTick(() => this.socket.destroy());
    }
    this.#settle(exchange, isCut ? CLIENT_CLOSED_REQUEST : res.writableEnded ? res.statusCode : status);
  }

  /**
   * The rest of the body will never come: the request is answered with an error, unless a reply is begun. A handler
   * that reads the body gets that error, so that middleware sees it, too.
   */
  #breakBody(exchange: Exchange<Handling>, body: IncomingBody, error: HttpError): void {
    const { req, res } = exchange;
    // A handler that still reads the body would wait for ever.
    this.socket.once('close', () => req.destroy());
    body.break(error);
    dropLateHeaders(res);
    exchange.inContext(() => {
      if (exchange.state === 'over') return;
      if (exchange.state === 'waiting') exchange.refusal = error;
      exchange.notifyGone();
      if (exchange.state === 'sending') this.replace(exchange, error);
      else if (exchange.state === 'running') inNextTurn(() => exchange.inContext(() => this.#giveUp(exchange, error)));
    });
  }

  /** Answers for a handler that continues without the body. */
  #giveUp(exchange: Exchange<Handling>, error: HttpError): void {
    if (exchange.state === 'running') this.replace(exchange, error);
  }

  replace(exchange: Exchange<Handling>, thrown: unknown): void {
    const { res, outgoing } = exchange;
    // The reply is known, and only waits for its client to take it.
    if (res.headersSent && outgoing !== null && !hasStream(outgoing)) return;
    exchange.outgoing = null;
    const instead = this.#parts.answering.refuse(exchange, thrown, outgoing);
    if (exchange.isHandedOver) return this.#abort(exchange, instead.status);
    exchange.move('fail');
    this.#send(exchange, instead);
  }

  /** Nobody can receive the reply to this request any more. */
  #leave(exchange: Exchange<Handling>): void {
    // A handler that has written its reply whole, by `ctx.raw`, may still run; its client had no reason to stay.
    if (exchange.isWritten || !exchange.move('leave')) return;
    exchange.outgoing = null;
    exchange.inContext(() => {
      this.#parts.answering.gone(exchange);
      exchange.notifyGone();
      if (exchange.state === 'over') this.#settle(exchange, CLIENT_CLOSED_REQUEST);
      else if (this.#parts.isDraining) this.dismiss(exchange);
      else if (exchange.isCut) this.socket.destroy();
    });
  }

  dismiss(exchange: Exchange<Handling>): void {
    if (exchange.state === 'left') this.#settle(exchange, CLIENT_CLOSED_REQUEST);
  }

  /** The exchange is over. */
  #settle(exchange: Exchange<Handling>, status: number): void {
    const { answering, exchanges } = this.#parts;
    exchange.move('end');
    if (!exchanges.delete(exchange)) return;
    answering.settled(exchange, status);
    exchange.outgoing = null;
    exchange.body?.drop();
    if (exchange === this.#current && this.#waiting.length === 0) this.#conclude(exchange);
    if (this.#parts.isDraining && exchanges.size === 0) this.#parts.onIdle();
  }

  /** The latest reply is handed to the socket, or never will be. */
  #conclude(exchange: Exchange<Handling>): void {
    const { req, res, body } = exchange;
    const isClosing = saysClose(res);
    if (isClosing) this.#answerNothingMore();
    if (body !== null && !req.complete && this.#state !== 'cut') {
      req.once('close', () => exchange === this.#latest && this.#conclude(exchange));
      return;
    }
    this.#current = null;
    if (this.#state === 'open' && !(body !== null && closesByTrailer(req))) return;
    // The reply may have promised to keep a connection on which no further request is parsed.
    if (this.#isBroken || !isClosing) this.#end();
  }

  /** The latest reply says `connection: close` by itself, or broke off. */
  #answerNothingMore(): void {
    if (this.#state === 'open') this.#state = 'last';
    this.#answerRefusal(false);
  }

  /** Nothing more is answered, but what could not be parsed: Postern ends the connection. */
  #end(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    if (!this.#answerRefusal(true)) endSoftly(this.socket);
  }

  /** Answers what could not be parsed, unless the connection is not open any more. @returns whether there was any */
  #answerRefusal(isOpen: boolean): boolean {
    const refusal = this.#refusal;
    this.#refusal = null;
    refusal?.(isOpen);
    return refusal !== null;
  }

  /** From now on reads and drops what arrives, to notice when the client disconnects. */
  #stopParsing(): void {
    this.#acceptNoMore('cut');
    this.#early?.readOn();
    this.socket.resume();
    wakeReading(this.socket);
    const latest = this.#latest;
    if (latest === null || latest.state === 'over') this.#end();
  }

  #close(): void {
    this.#state = 'closed';
    this.#answerRefusal(false);
    this.#early?.release();
    this.#parts.slowClients.forget(this);
    const current = this.#current;
    this.#current = null;
    if (current !== null) {
      this.#leave(current);
      // After the reply, node:http does not end a body whose connection is gone: its reader would wait for ever.
      if (!current.req.complete) current.req.destroy();
    }
    for (const exchange of this.#waiting.splice(0)) this.#leave(exchange);
  }
}

/** Calls back when the requests that this turn of the event loop has read have begun, and written what they can. */
function inNextTurn(callback: () => void): void {
  // In the first phase requests begin, and in the same or the next one replies are written.
  setImmediate(() => setImmediate(callback));
}
