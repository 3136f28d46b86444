/*
 * How far a connection is read while requests wait: `maxPipelinedRequests` are in flight, or too much of their replies
 * is not sent. Only so much is read after the first of them: a client that sends on and on must not fill our memory.
 */

import type { Duplex } from 'node:stream';
import { clearTimeout, setTimeout } from '../base/clock.js';
import type { ServerLimits } from './server.js';

/**
 * Maximum bytes that are read after the first waiting request, and then what the socket has at once, 64 KiB. Reading a
 * little further is what shows that a client has disconnected.
 */
const READ_AHEAD_BYTES = 64 * 1024;

/** Reads the socket of one connection, or leaves it unread. */
export class ReadAhead {
  /** Maximum of `bytesRead` of the socket while requests wait; 0 when none has waited since all were run. */
  #readUpTo = 0;
  /** The socket's own method, as long as another one is in its place. */
  #resume: Duplex['resume'] | undefined;
  /** Reports again that a request takes too long, as node:http did while it was we who did not read the rest of it. */
  #report: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly socket: Duplex,
    readonly limits: ServerLimits,
  ) {}

  /** To be called when a request has to wait. */
  fallBehind(): void {
    // A socket in memory doesn't count its bytes, and is held back at once.
    const bytesRead = 'bytesRead' in this.socket ? Number(this.socket.bytesRead) : Infinity;
    if (this.#readUpTo === 0) {
      this.#readUpTo = bytesRead + READ_AHEAD_BYTES;
      const { requestTimeout } = this.limits;
      // While nobody reads the socket, a disconnect goes unnoticed. So close it if no reply is sent in this time.
      if (requestTimeout > 0) this.#timer = setTimeout(() => this.socket.destroy(), requestTimeout).unref();
    }
    if (bytesRead < this.#readUpTo || this.#resume !== undefined) return;
    const socket = this.socket.pause();
    this.#resume = socket.resume;
    // node:http resumes a socket after every request that it has parsed.
    socket.resume = () => socket;
  }

  /** To be called when a reply is sent, and requests still wait. */
  advance(): void {
    if (this.#readUpTo > 0) this.#timer?.refresh();
  }

  /** To be called when no request waits. */
  catchUp(): void {
    if (this.#readUpTo === 0) return;
    this.#readUpTo = 0;
    clearTimeout(this.#timer);
    const { headersTimeout } = this.limits;
    if (this.#report !== undefined && headersTimeout > 0)
      this.#timer = setTimeout(this.#report, headersTimeout).unref();
    if (this.#resume !== undefined) this.read();
  }

  /** Reads from the socket, whether requests wait or not. */
  read(): void {
    if (this.#resume !== undefined) this.socket.resume = this.#resume;
    this.#resume = undefined;
    this.socket.resume();
  }

  /**
   * Whether a request takes too long because we don't read it, rather than because of its client. It gets
   * `headersTimeout` again once the socket is read, and is reported then.
   */
  excuse(report: () => void): boolean {
    const isBehind = this.#readUpTo > 0;
    if (isBehind) this.#report = report;
    return isBehind;
  }

  /** To be called when a request has arrived. */
  arrived(): void {
    if (this.#report === undefined) return;
    this.#report = undefined;
    if (this.#readUpTo === 0) clearTimeout(this.#timer);
  }

  /** To be called when the connection is gone. */
  close(): void {
    clearTimeout(this.#timer);
  }
}
