/*
 * Bounds what waits for clients that do not read: in time for each connection, in bytes for all of one pipeline.
 *
 * A connection is looked at from when something waits on it until nothing does, so a service whose clients keep up has
 * no timer. Only the progress of sending counts: bytes that a client sends meanwhile show nothing about its reading.
 */

import type { Duplex } from 'node:stream';
import { Bag, type BagMember } from '../base/bag.js';
import { clearInterval, monotonicNow, setInterval } from '../base/clock.js';

/** Maximum bytes that wait on all connections of a pipeline. With more, the slowest clients are disconnected. */
const MAX_WAITING_BYTES = 256 * 1024 * 1024;
/** Maximum time, in ms, between two looks at the connections by the timer. */
const MAX_INTERVAL_MS = 5_000;
/** Minimum time, in ms, between two looks by {@link Backlog.watch}, once a quarter of the maximum bytes waits. */
const MIN_INTERVAL_MS = 50;
/** Minimum looks at a connection in its `sendTimeout`, so that it is closed at most an eighth of that time too late. */
const LOOKS = 8;

/** A connection on which replies may wait for the client. */
export interface Sending {
  readonly socket: Duplex;
  /** Bytes of replies that the client has not taken. */
  unsentBytes(): number;
  /** Whether no request is under way: nothing is written without the connection's knowledge, by `ctx.raw`. */
  readonly isFree: boolean;
  /** The figures of the backlog about it; null while it is not looked at. Only the backlog sets this. */
  watched: BagMember<Watched> | null;
}

/** A socket of node:net. Its handle is not documented. */
type Measured = Duplex & {
  readonly bytesWritten?: number;
  readonly _handle?: { readonly bytesWritten?: number; readonly writeQueueSize?: number } | null;
};

/** A connection that is looked at. */
export interface Watched {
  readonly connection: Sending;
  bytes: number;
  /** How much the client had taken when it was last looked at. */
  taken: number;
  /** When the client took something for the last time, or nothing waited for it. */
  progressAt: number;
}

/** The connections of one pipeline on which replies wait; an application with a second listener has two pipelines. */
export class Backlog {
  readonly #sendTimeout: number;
  readonly #watched = new Bag<Watched>();
  #bytes = 0;
  #lookedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param sendTimeout how long, in ms, a client may take nothing of its reply; 0: no limit */
  constructor(sendTimeout: number) {
    this.#sendTimeout = sendTimeout || Infinity;
  }

  /** Looks at a connection from now on; to be called whenever more waits on it. */
  watch(connection: Sending): void {
    if (connection.socket.destroyed) return;
    const now = monotonicNow();
    connection.watched ??= this.#watched.add({ connection, bytes: 0, taken: 0, progressAt: now });
    this.#timer ??= setInterval(this.#look, Math.min(MAX_INTERVAL_MS, Math.max(1, this.#sendTimeout / LOOKS))).unref();
    this.#update(connection.watched.value, now);
    if (this.#bytes < MAX_WAITING_BYTES / 4) return;
    if (this.#bytes > MAX_WAITING_BYTES) this.#closeSlowest();
    else if (now - this.#lookedAt > MIN_INTERVAL_MS) this.#look();
  }

  /** Looks at a connection no more; to be called when its socket is closed. */
  forget(connection: Sending): void {
    const { watched } = connection;
    if (watched === null) return;
    connection.watched = null;
    this.#bytes -= watched.value.bytes;
    this.#watched.delete(watched);
    if (this.#watched.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  readonly #look = (): void => {
    const now = (this.#lookedAt = monotonicNow());
    for (const watched of this.#watched) {
      const { connection } = watched;
      this.#update(watched, now);
      if (watched.bytes === 0 && connection.isFree) this.forget(connection);
      else if (now - watched.progressAt >= this.#sendTimeout) connection.socket.destroy();
    }
    if (this.#bytes > MAX_WAITING_BYTES) this.#closeSlowest();
  };

  #update(watched: Watched, now: number): void {
    const { _handle, bytesWritten = 0, writableLength }: Measured = watched.connection.socket;
    // Bytes that the operating system has taken; only differences have a meaning. A socket without a handle (in memory)
    // has only its queue. On a socket of node:net the queue would not do: a text that waits counts in characters there.
    const taken = (_handle?.bytesWritten ?? bytesWritten - writableLength) - (_handle?.writeQueueSize ?? 0);
    if (taken > watched.taken || writableLength === 0) watched.progressAt = now;
    watched.taken = taken;
    const bytes = watched.connection.unsentBytes();
    this.#bytes += bytes - watched.bytes;
    watched.bytes = bytes;
  }

  /** Closes connections until less waits, those first whose clients have taken nothing for the longest time. */
  #closeSlowest(): void {
    const now = monotonicNow();
    const all = [...this.#watched];
    for (const watched of all) this.#update(watched, now);
    all.sort((a, b) => a.progressAt - b.progressAt);
    for (const { connection } of all) {
      if (this.#bytes <= MAX_WAITING_BYTES) return;
      this.forget(connection);
      connection.socket.destroy();
    }
  }
}
