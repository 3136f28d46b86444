/*
 * Keeps replies until they are written. The replies of one turn of the event loop that keep their connections are
 * written together at its end. A write wakes the client up; many in a row wake it up once.
 */

import { clearImmediate, nextTick, setImmediate } from '../base/clock.js';
import { endWithReply } from '../http/exchange.js';
import type { Outgoing } from '../http/reply.js';
import { discard, send } from '../http/writer.js';
import { isStream, letFail } from '../payload/bytes.js';
import type { PipelineExchange } from './observer.js';

/** Maximum bytes of bodies that are kept until the end of the turn. With more, they are written at once. */
const MAX_QUEUED_BYTES = 64 * 1024;

/** Three replies are attempted: the handler's, the error for what is wrong with it, and the fixed 500. */
const MAX_FAILED_WRITES = 2;

/** The replies of one pipeline that are not written yet. */
export class Outbox {
  #queued: PipelineExchange[] = [];
  #queuedBytes = 0;
  #flushing: NodeJS.Immediate | undefined;

  /**
   * Takes the reply of an exchange. It is written after earlier replies of the connection: at once if it is a stream,
   * if the handler holds the response (`ctx.raw`), or if the request's body is not here or held back, because later
   * requests must not be run first; after the packet of its request if it ends the connection; else at the turn's end.
   */
  put(exchange: PipelineExchange, outgoing: Outgoing): void {
    const { req, res, connection, hasBody, awaitsContinue, raw, state } = exchange;
    exchange.outgoing = outgoing;
    connection.waitingBytes += Math.max(0, outgoing.length);
    // It takes the place of a reply that waits already.
    if (state === 'queued') return;
    exchange.move('queue');
    const isMade = !isStream(outgoing.body);
    if (!isMade) letFail(outgoing.body);
    if (res.socket === null) {
      res.once('socket', () => nextTick(() => exchange.inContext(this.#write)));
      connection.watch();
      if (isMade) exchange.dropBody();
      return;
    }
    if (raw !== 'unused' || awaitsContinue || !isMade || (hasBody && !req.complete)) return this.#write(exchange);
    endWithReply(exchange);
    if (!res.shouldKeepAlive) return nextTick(() => exchange.inContext(this.#write));
    this.#queued.push(exchange);
    this.#queuedBytes += outgoing.length;
    if (this.#queuedBytes > MAX_QUEUED_BYTES) this.flush();
    else this.#flushing ??= setImmediate(this.flush);
  }

  /** To be called when a request was put off to the end of the turn: replies are written after it, its own included. */
  flushBehind(): void {
    clearImmediate(this.#flushing);
    this.#flushing = setImmediate(this.flush);
  }

  /** Removes a reply that is not sent, and frees its stream. */
  discard(exchange: PipelineExchange): void {
    const { connection, outgoing, res } = exchange;
    if (outgoing === null) return;
    if (!res.headersSent) connection.waitingBytes -= Math.max(0, outgoing.length);
    discard(outgoing.body);
    exchange.outgoing = null;
  }

  /** Writes what is queued. */
  readonly flush = (): void => {
    const queued = this.#queued;
    this.#queued = [];
    this.#queuedBytes = 0;
    this.#flushing = undefined;
    for (const exchange of queued) exchange.inContext(this.#write);
  };

  readonly #write = (exchange: PipelineExchange): void => {
    const { connection, outgoing, steps } = exchange;
    if (outgoing === null || !exchange.move('write')) return;
    connection.waitingBytes -= Math.max(0, outgoing.length);
    try {
      const outcome = send(exchange, outgoing);
      if (typeof outcome === 'string') return steps.settle(exchange, outgoing.status, outcome);
      if (!isStream(outgoing.body)) exchange.dropBody();
      outcome.then(
        (ended) => exchange.outgoing === outgoing && steps.settle(exchange, outgoing.status, ended),
        (thrown: unknown) => this.#failWriting(exchange, outgoing, thrown),
      );
    } catch (thrown) {
      this.#failWriting(exchange, outgoing, thrown);
    }
  };

  #failWriting(exchange: PipelineExchange, outgoing: Outgoing, thrown: unknown): void {
    const { req, res, connection } = exchange;
    discard(outgoing.body);
    if (exchange.outgoing !== outgoing) return;
    exchange.failedWrites += 1;
    if (exchange.failedWrites > MAX_FAILED_WRITES) {
      connection.cutBehind(exchange);
      exchange.leave();
      return;
    }
    if (!exchange.move('fail')) return;
    exchange.outgoing = null;
    const hasBrokenOff = isStream(outgoing.body) && exchange.failedWrites === 1;
    if (!res.headersSent && !hasBrokenOff) {
      // A header that the handler has set on `res` itself may be why the reply could not be written.
      for (const name of res.getHeaderNames()) res.removeHeader(name);
      // After a 204 that could not be written, node:http would send no body of another reply.
      Reflect.set(res, '_hasBody', req.method !== 'HEAD');
    }
    exchange.steps.fail(exchange, thrown, hasBrokenOff ? outgoing.headers : []);
  }
}
