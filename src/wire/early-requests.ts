/*
 * How far a connection is read while requests of it wait for their turn, or are not answered any more.
 *
 * About 64 KiB is read after the first of them, bodies included: a client that sends on and on must not fill our
 * memory. Reading that far is what shows that a client has disconnected.
 */

import type { Duplex } from 'node:stream';
import { clearTimeout, nextTick, setTimeout } from '../base/clock.js';
import { isHeldBack, stopReading } from './node-internals.js';

/** Maximum bytes that are read after the first waiting request, and then what the socket has at once, 64 KiB. */
const EARLY_BYTES = 64 * 1024;

/** Times in ms, 0 for no limit. */
interface Limits {
  readonly requestTimeout: number;
  readonly headersTimeout: number;
}

/** Reads the socket of one connection while requests wait, or leaves it unread. */
export class EarlyRequests {
  /** Maximum of `bytesRead` of the socket; 0 while no request waits. */
  #readUpTo = 0;
  /** Reads on; undefined while the socket is read. */
  #readOn: (() => void) | undefined;
  /** Reports again that a request takes too long, as node:http did while it was we who did not read the rest of it. */
  #report: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param onFull called when more has arrived than is read */
  constructor(
    readonly socket: Duplex,
    readonly limits: Limits,
    readonly onFull: () => void,
  ) {}

  /** To be called when a request has to wait, or will not be answered. */
  hold(): void {
    if (this.#readUpTo === 0) {
      this.#readUpTo = this.#bytesRead + EARLY_BYTES;
      this.socket.on('pause', this.#onPause);
      const { requestTimeout } = this.limits;
      // While nobody reads the socket, a disconnect goes unnoticed. So close it if no reply is sent in this time.
      if (requestTimeout > 0) this.#timer = setTimeout(() => this.socket.destroy(), requestTimeout).unref();
    }
    if (this.#bytesRead >= this.#readUpTo) this.#stop();
  }

  /** To be called when a waiting request begins. */
  advance(): void {
    if (this.#readUpTo > 0) this.#timer?.refresh();
  }

  /** To be called when no request waits. */
  release(): void {
    if (this.#readUpTo === 0) return;
    this.#readUpTo = 0;
    this.socket.off('pause', this.#onPause);
    clearTimeout(this.#timer);
    const { headersTimeout } = this.limits;
    if (this.#report !== undefined && headersTimeout > 0)
      this.#timer = setTimeout(this.#report, headersTimeout).unref();
    this.readOn();
  }

  /** Reads from the socket, whether requests wait or not. */
  readOn(): void {
    const readOn = this.#readOn;
    this.#readOn = undefined;
    readOn?.();
  }

  /**
   * Whether a request takes too long because we don't read it, rather than because of its client. It gets
   * `headersTimeout` again once the socket is read, and is reported then.
   */
  excuses(report: () => void): boolean {
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

  /** 0 for a socket in memory, which doesn't count its bytes. */
  get #bytesRead(): number {
    return 'bytesRead' in this.socket ? Number(this.socket.bytesRead) : 0;
  }

  #stop(): void {
    if (this.#readOn !== undefined) return;
    this.socket.off('pause', this.#onPause);
    this.#readOn = stopReading(this.socket);
    this.onFull();
  }

  /** The body of a waiting request fills its buffer: read on, which keeps the bytes there all the same. */
  readonly #onPause = (): void => {
    if (this.#bytesRead === 0 || this.#bytesRead >= this.#readUpTo) this.#stop();
    else if (!isHeldBack(this.socket)) nextTick(() => this.#readOn ?? this.socket.resume());
  };
}
