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

/** Reads the socket of one connection while requests wait, or leaves it unread. */
export class EarlyRequests {
  /** Maximum of `bytesRead` of the socket; 0 while no request waits. */
  #readUpTo = 0;
  /** Reads on; undefined while the socket is read. */
  #readOn: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param requestTimeout how long, in ms, a reply may take to be sent while requests wait; 0: no limit
   * @param onFull called when more has arrived than is read
   */
  constructor(
    readonly socket: Duplex,
    readonly requestTimeout: number,
    readonly onFull: () => void,
  ) {}

  /** To be called when a request has to wait, or will not be answered. */
  hold(): void {
    if (this.#readUpTo === 0) {
      this.#readUpTo = this.#bytesRead + EARLY_BYTES;
      this.socket.on('pause', this.#onPause);
      // While nobody reads the socket, a disconnect goes unnoticed. So close it if no reply is sent in this time.
      if (this.requestTimeout > 0)
        this.#timer = setTimeout(() => this.socket.destroy(), this.requestTimeout).unref();
    }
    if (this.#bytesRead >= this.#readUpTo) this.#stop();
  }

  /** To be called when a waiting request begins. */
  advance(): void {
    this.#timer?.refresh();
  }

  /** To be called when no request waits, or the connection is gone. */
  release(): void {
    if (this.#readUpTo === 0) return;
    this.#readUpTo = 0;
    this.socket.off('pause', this.#onPause);
    clearTimeout(this.#timer);
    this.readOn();
  }

  /** Reads from the socket, whether requests wait or not. */
  readOn(): void {
    const readOn = this.#readOn;
    this.#readOn = undefined;
    readOn?.();
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
