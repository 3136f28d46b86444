/*
 * Bounds what waits for clients that do not read: in time for each connection, in bytes for all of one application.
 *
 * A connection is looked at from when something waits on it until nothing does, so a service whose clients keep up has
 * no timer. Only the progress of sending counts: bytes that a client sends meanwhile show nothing about its reading.
 */

import type { Duplex } from 'node:stream';
import { clearInterval, monotonicNow, setInterval } from '../base/clock.js';
import { takenBytes } from './node-internals.js';

/** Maximum bytes that wait on all connections. With more, the slowest clients are disconnected. */
const MAX_WAITING_BYTES = 256 * 1024 * 1024;
/** Maximum time, in ms, between two looks at the connections by the timer. */
const MAX_INTERVAL_MS = 5_000;
/** Minimum looks at a connection in its `sendTimeout`, so that it is closed at most an eighth of that time too late. */
const LOOKS = 8;

/** A connection on which a reply may wait for the client. */
export interface Sending {
  readonly socket: Duplex;
  /** Whether no request is under way: nothing is written without the connection's knowledge, by `ctx.raw`. */
  readonly isFree: boolean;
}

/** The figures about one connection. */
interface Watched {
  /** Bytes that the client has not taken. */
  bytes: number;
  /** How much the client had taken when it was last looked at. */
  taken: number;
  /** When the client took something for the last time, or nothing waited for it. */
  progressAt: number;
}

/** The connections of an application on which replies wait. */
export class SlowClients {
  readonly #sendTimeout: number;
  readonly #watched = new Map<Sending, Watched>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param sendTimeout how long, in ms, a client may take nothing of its reply; 0: no limit */
  constructor(sendTimeout: number) {
    this.#sendTimeout = sendTimeout || Infinity;
  }

  /** Looks at a connection from now on; to be called whenever more waits on it. */
  watch(connection: Sending): void {
    if (connection.socket.destroyed) return;
    const now = monotonicNow();
    let watched = this.#watched.get(connection);
    if (watched === undefined) this.#watched.set(connection, (watched = { bytes: 0, taken: 0, progressAt: now }));
    this.#timer ??= setInterval(this.#look, Math.min(MAX_INTERVAL_MS, Math.max(1, this.#sendTimeout / LOOKS))).unref();
    this.#update(connection, watched, now);
    if (this.#bytes > MAX_WAITING_BYTES) this.#closeSlowest();
  }

  /** Looks at a connection no more; to be called when its socket is closed. */
  forget(connection: Sending): void {
    const watched = this.#watched.get(connection);
    if (watched === undefined) return;
    this.#bytes -= watched.bytes;
    this.#watched.delete(connection);
    if (this.#watched.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  readonly #look = (): void => {
    const now = monotonicNow();
    for (const [connection, watched] of this.#watched) {
      this.#update(connection, watched, now);
      if (watched.bytes === 0 && connection.isFree) this.forget(connection);
      else if (now - watched.progressAt >= this.#sendTimeout) connection.socket.destroy();
    }
    if (this.#bytes > MAX_WAITING_BYTES) this.#closeSlowest();
  };

  #update({ socket }: Sending, watched: Watched, now: number): void {
    const taken = takenBytes(socket);
    const bytes = socket.writableLength;
    if (taken > watched.taken || bytes === 0) watched.progressAt = now;
    watched.taken = taken;
    this.#bytes += bytes - watched.bytes;
    watched.bytes = bytes;
  }

  /** Closes connections until less waits, those first whose clients have taken nothing for the longest time. */
  #closeSlowest(): void {
    const now = monotonicNow();
    for (const [connection, watched] of this.#watched) this.#update(connection, watched, now);
    const slowest = [...this.#watched].sort(([, a], [, b]) => a.progressAt - b.progressAt);
    for (const [connection] of slowest) {
      if (this.#bytes <= MAX_WAITING_BYTES) return;
      this.forget(connection);
      connection.socket.destroy();
    }
  }
}
