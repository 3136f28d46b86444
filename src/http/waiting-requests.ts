/*
 * Requests of one connection that wait, because more are here than may be in flight, and what the client sends behind
 * them, which is left unread meanwhile.
 */

import type { Duplex } from 'node:stream';
import type { ParserError } from './error-mapper.js';

/** What a client may do to one connection; times in ms, 0 for no limit. */
export interface ConnectionLimits {
  readonly maxPipelinedRequests: number;
  readonly requestTimeoutMs: number;
  readonly headersTimeoutMs: number;
}

/** The ones of a connection, first come first served. */
export class WaitingRequests {
  readonly #socket: Duplex;
  readonly #limits: ConnectionLimits;
  readonly #runs: (() => void)[] = [];
  #isHoldingBack = false;
  /** Whether node:http ran out of patience with a message that was held back. */
  #isOverdue = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: Duplex, limits: ConnectionLimits) {
    this.#socket = socket;
    this.#limits = limits;
  }

  get count(): number {
    return this.#runs.length;
  }

  /** @param run runs the request in its own async context */
  add(run: () => void): void {
    this.#runs.push(run);
    this.#socket.pause();
    if (this.#isHoldingBack) return;
    this.#isHoldingBack = true;
    const { requestTimeoutMs } = this.#limits;
    // A client that leaves is not noticed as long as nobody reads: without a reply in all that time it is cut.
    if (requestTimeoutMs > 0) this.#timer = setTimeout(() => this.#socket.destroy(), requestTimeoutMs).unref();
  }

  /** Takes the next one out. */
  next(): (() => void) | undefined {
    return this.#runs.shift();
  }

  /** Forgets them all. */
  clear(): void {
    this.#runs.length = 0;
  }

  /** Reads on when none is left. @param progress whether a reply went out since the last time */
  readOn(progress: boolean): void {
    if (!this.#isHoldingBack) return;
    if (this.#runs.length > 0) {
      if (progress) this.#timer?.refresh();
      return;
    }
    this.#isHoldingBack = false;
    clearTimeout(this.#timer);
    const { headersTimeoutMs } = this.#limits;
    if (this.#isOverdue && headersTimeoutMs > 0) {
      const late: ParserError = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      this.#timer = setTimeout(() => this.#socket.emit('error', late), headersTimeoutMs).unref();
    }
    this.#socket.resume();
  }

  /** Whether it was not the client who kept a message waiting; it gets its time again when it is read on. */
  excuse(): boolean {
    if (this.#isHoldingBack) this.#isOverdue = true;
    return this.#isHoldingBack;
  }

  /** To be called when a request has arrived. */
  arrived(): void {
    if (!this.#isOverdue || this.#isHoldingBack) return;
    this.#isOverdue = false;
    clearTimeout(this.#timer);
  }

  /** To be called when the connection is gone. */
  close(): void {
    this.clear();
    clearTimeout(this.#timer);
  }
}
