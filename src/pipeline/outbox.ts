/*
 * Writes replies: those that are ready in one turn of the event loop together, at the end of it. A write wakes the
 * client up; many in a row wake it up once.
 */

import { clearImmediate, setImmediate } from '../base/clock.js';
import { endWithReply } from '../http/exchange.js';
import type { Outgoing } from '../http/reply.js';
import { discard, send, type Outcome } from '../http/writer.js';
import { isStream } from '../payload/stream.js';
import type { PipelineExchange } from './exchange.js';

/**
 * Three replies are tried before the connection is cut: the handler's; that of the error with which it could not be
 * written; and, where a header of that error can't be written either, the fixed 500.
 */
const MOST_FAILED_WRITES = 2;

/** What becomes of a reply. */
export interface Sender {
  /** It is written, or its client has left. */
  settle(exchange: PipelineExchange, statusCode: number, outcome: Outcome): void;
  /** It waits for a stream, or for its client to take it. */
  wait(exchange: PipelineExchange): void;
  /** It can't be written. */
  fail(exchange: PipelineExchange, thrown: unknown): void;
}

/** The replies of one pipeline on their way out. */
export class Outbox {
  /** Whether replies end their connections. */
  isDraining = false;
  readonly #sender: Sender;
  readonly #sendTimeout: number;
  #ready: PipelineExchange[] = [];
  #flushing: NodeJS.Immediate | undefined;

  constructor(sender: Sender, sendTimeout: number) {
    this.#sender = sender;
    this.#sendTimeout = sendTimeout;
  }

  /**
   * Takes the reply of an exchange, to be written at the end of the turn. It is written at once if it is a stream, if
   * the handler holds the response of `node:http` (`ctx.raw`), and if the body of the request has not arrived: then the
   * reply may end the connection, and requests behind it must not be run first.
   */
  put(exchange: PipelineExchange, outgoing: Outgoing): void {
    if (exchange.hasLeft) {
      discard(outgoing.body);
      this.#sender.settle(exchange, outgoing.status, 'aborted');
      return;
    }
    exchange.outgoing = outgoing;
    if (exchange.isQueued) return;
    const { req, hasBody, awaitsContinue, isRawExposed } = exchange;
    if (isRawExposed || awaitsContinue || (hasBody && !req.complete) || isStream(outgoing.body)) {
      this.#write(exchange);
      return;
    }
    endWithReply(exchange);
    exchange.isQueued = true;
    this.#ready.push(exchange);
    this.#flushing ??= setImmediate(this.#flush);
  }

  /**
   * To be called when a request was put off to the end of the turn: replies are written behind it, its own included.
   */
  flushBehind(): void {
    clearImmediate(this.#flushing);
    this.#flushing = setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    const ready = this.#ready;
    this.#ready = [];
    this.#flushing = undefined;
    for (const exchange of ready) {
      exchange.isQueued = false;
      this.#write(exchange);
    }
  };

  #write(exchange: PipelineExchange): void {
    if (exchange.answered) return;
    const { connection } = exchange;
    const outgoing = exchange.outgoing as Outgoing;
    try {
      const isLast = connection.endsWith(exchange, this.isDraining);
      const outcome = send(exchange, outgoing, isLast, this.#sendTimeout);
      if (typeof outcome === 'string') {
        this.#sender.settle(exchange, outgoing.status, outcome);
        return;
      }
      if (!isStream(outgoing.body)) connection.discardBody(exchange);
      this.#sender.wait(exchange);
      outcome.then(
        (ended) => this.#sender.settle(exchange, outgoing.status, ended),
        (thrown: unknown) => this.#failWriting(exchange, outgoing, thrown),
      );
    } catch (thrown) {
      this.#failWriting(exchange, outgoing, thrown);
    }
  }

  #failWriting(exchange: PipelineExchange, outgoing: Outgoing, thrown: unknown): void {
    const { res, connection } = exchange;
    discard(outgoing.body);
    if (exchange.answered) return;
    exchange.outgoing = null;
    exchange.failedWrites += 1;
    if (exchange.failedWrites > MOST_FAILED_WRITES) {
      connection.cutBehind(exchange);
      this.#sender.settle(exchange, outgoing.status, 'aborted');
      return;
    }
    // A header that the handler has set on `res` itself may be why the reply could not be written.
    if (!res.headersSent) for (const name of res.getHeaderNames()) res.removeHeader(name);
    this.#sender.fail(exchange, thrown);
  }
}
