/* The body of a request as it arrives: who reads it, and what becomes of the rest. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpError } from '../base/errors.js';

/** Maximum bytes that are read and dropped of a body that no handler wants; with more, the connection is closed. */
const DISCARD_BYTES = 64 * 1024 * 1024;

/** The body of one request; a request without one has none. */
export class IncomingBody {
  /** Why the rest will never come; null while it may. */
  failure: HttpError | null = null;
  #isAsked = false;
  #isDiscarded = false;

  /**
   * @param length the `content-length` of the request; 0 without one
   * @param awaitsContinue whether the client holds it back until it is told to continue (RFC 9110, section 10.1.1)
   */
  constructor(
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    readonly length: number,
    readonly awaitsContinue: boolean,
  ) {}

  /** Whether the client waits to be told to send it. */
  get isHeldBack(): boolean {
    return this.awaitsContinue && !this.isReading;
  }

  /** Whether a part of it was asked for, by Postern's methods or from `req` itself. */
  get isReading(): boolean {
    return this.#isAsked || this.req.readableDidRead;
  }

  /** Whether it was dropped unread, because the request is answered. To be asked before reading. */
  get isDropped(): boolean {
    const { failure, req, res } = this;
    // A body that is here as a whole is dropped by node:http.
    return failure === null && (this.#isDiscarded || (req.readableDidRead && res.writableEnded));
  }

  /** Whether middleware has read from `req` itself, so that the rest is not the body. To be asked before reading. */
  get isReadByOthers(): boolean {
    return this.req.readableDidRead && !this.#isDiscarded;
  }

  /** Begins to read: a client that waits for `100 Continue` gets it. */
  beginReading(): void {
    const { isHeldBack, res } = this;
    this.#isAsked = true;
    if (isHeldBack && !res.headersSent && !res.destroyed) res.writeContinue();
  }

  /** To be called when the rest will never come; what still arrives is dropped. */
  break(error: HttpError): void {
    this.failure = error;
    this.req.removeAllListeners('readable');
    this.#discard();
  }

  /**
   * Reads and drops the rest, which no handler wants any more. Unread, it would fill its buffer, and node:http would
   * stop reading from the socket: a disconnect would go unnoticed.
   */
  drop(): void {
    if (!this.req.complete && this.failure === null) this.#discard();
  }

  #discard(): void {
    const { req } = this;
    this.#isDiscarded = true;
    let budget = DISCARD_BYTES;
    const onData = (chunk: Buffer): void => {
      budget -= chunk.length;
      if (budget < 0) req.socket.destroy();
    };
    req.on('data', onData).unpipe().resume();
  }
}
