/*
 * Requests of one connection that wait because `maxPipelinedRequests` are in flight already. Only so much is read
 * behind the first of them: a client that sends on and on must not fill our memory.
 */

import type { Duplex } from 'node:stream';
import { clearTimeout, setTimeout } from '../base/clock.js';
import type { ParserError } from './error-mapper.js';

/**
 * Most bytes that are read behind the first waiting request, and then what the socket gives at once, 64 KiB. Reading a
 * little further is what tells that a client has left.
 */
const READ_AHEAD_BYTES = 64 * 1024;

/** What a client may do to one connection; times in ms, 0 for no limit. */
export interface ConnectionLimits {
  readonly maxPipelinedRequests: number;
  readonly requestTimeout: number;
  readonly headersTimeout: number;
}

/** The waiting requests of a connection, first come first served. */
export class WaitingRequests {
  readonly #socket: Duplex;
  readonly #limits: ConnectionLimits;
  readonly #runs: (() => void)[] = [];
  /** How many bytes of the socket are read, at most, while requests wait. */
  #readUpTo = 0;
  /** Whether requests have waited since the last time that all were run. */
  #isBehind = false;
  /** The socket's own method, as long as another one stands in for it. */
  #resume: Duplex['resume'] | undefined;
  /** Whether node:http has reported that a request takes too long, while it was we who did not read the rest of it. */
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
    // A socket in memory doesn't count its bytes, and is held back at once.
    const bytesRead = 'bytesRead' in this.#socket ? Number(this.#socket.bytesRead) : Infinity;
    this.#runs.push(run);
    if (!this.#isBehind) {
      this.#isBehind = true;
      this.#readUpTo = bytesRead + READ_AHEAD_BYTES;
      const { requestTimeout } = this.#limits;
      // That a client leaves goes unnoticed as long as nobody reads, so one that gets no reply in that time is cut.
      if (requestTimeout > 0) this.#timer = setTimeout(() => this.#socket.destroy(), requestTimeout).unref();
    }
    if (bytesRead >= this.#readUpTo) this.#holdBack();
  }

  #holdBack(): void {
    if (this.#resume !== undefined) return;
    const socket = this.#socket.pause();
    this.#resume = socket.resume;
    // node:http resumes a socket behind every request that it has parsed.
    socket.resume = () => socket;
  }

  /** Takes the next one out. */
  next(): (() => void) | undefined {
    return this.#runs.shift();
  }

  /** Forgets them all. */
  clear(): void {
    this.#runs.length = 0;
  }

  /** Reads from the socket again if no request waits. @param progress whether a reply went out since the last call */
  readOn(progress: boolean): void {
    if (!this.#isBehind) return;
    if (this.#runs.length > 0) {
      if (progress) this.#timer?.refresh();
      return;
    }
    this.#isBehind = false;
    clearTimeout(this.#timer);
    const { headersTimeout } = this.#limits;
    if (this.#isOverdue && headersTimeout > 0) {
      const late: ParserError = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      this.#timer = setTimeout(() => this.#socket.emit('error', late), headersTimeout).unref();
    }
    if (this.#resume !== undefined) this.read();
  }

  /** Reads from the socket, whether requests wait or not. */
  read(): void {
    if (this.#resume !== undefined) this.#socket.resume = this.#resume;
    this.#resume = undefined;
    this.#socket.resume();
  }

  /**
   * Whether a request takes too long because we don't read it, rather than because of its client. It gets
   * `headersTimeout` again once the socket is read.
   */
  excuse(): boolean {
    if (this.#isBehind) this.#isOverdue = true;
    return this.#isBehind;
  }

  /** To be called when a request has arrived. */
  arrived(): void {
    if (!this.#isOverdue || this.#isBehind) return;
    this.#isOverdue = false;
    clearTimeout(this.#timer);
  }

  /** To be called when the connection is gone. */
  close(): void {
    this.clear();
    clearTimeout(this.#timer);
  }
}
