/**
 * A connection in memory: at its server's end a `net.Socket` as far as `node:http` and Postern see it, with a client's
 * kernel at the other, in virtual time.
 */

import { AsyncResource } from 'node:async_hooks';
import { Duplex } from 'node:stream';
import { inNextTurn, time } from './time.js';

/** How many bytes the network holds for a client that does not read. */
const WINDOW_BYTES = 128 * 1024;
/** A write of more than this is not done at once. */
const AT_ONCE_BYTES = 64 * 1024;

/** The client's end. */
export class Client {
  readonly socket: ServerSocket = new ServerSocket(this);
  /** Everything that the server sent. */
  readonly received: Buffer[] = [];
  receivedBytes = 0;
  /** Whether it takes what the server sends; if not, its network takes `WINDOW_BYTES`. */
  reads = true;
  /** When its writing side ended or the whole connection was reset. */
  leftAt: number | null = null;
  /** Whether the server had not ended its side by then. */
  leftFirst = false;
  isReset = false;
  /** When the server ended its side, in whatever way. */
  endedAt: number | null = null;
  /** When the server's writes began to be held back. */
  heldAt: number | null = null;
  /** How many bytes had come, and when. */
  readonly #marks: { readonly bytes: number; readonly at: number }[] = [];
  #held: ((error?: Error) => void) | null = null;
  #wake: (() => void) | null = null;

  /** Sends a packet; promises and ticks have their turn between its parts, the phases of the event loop do not. */
  send(...packet: readonly Buffer[]): void {
    if (this.leftAt === null && packet.length > 0) this.socket.arrive(packet);
  }

  /** Ends its side, and goes on reading. */
  finish(): void {
    if (this.leftAt !== null) return;
    this.#leave();
    this.socket.arrive('FIN');
  }

  reset(): void {
    if (this.isReset) return;
    this.#leave();
    this.isReset = true;
    this.socket.arrive('RST');
    const held = this.#held;
    this.#held = null;
    if (held !== null) inNextTurn(() => held(systemError('write EPIPE', 'EPIPE')));
  }

  /** When it had so many bytes. */
  markAt(count: number): number {
    return this.#marks.find(({ bytes }) => bytes >= count)?.at ?? 0;
  }

  /** Resolves when a condition holds, or a time is over; it is asked whenever the server does something. */
  async until(holds: () => boolean, ms: number): Promise<void> {
    const timer = time.set(() => this.#notify(), ms);
    const end = time.now + ms;
    while (!holds() && time.now < end) await new Promise<void>((resolve) => (this.#wake = resolve));
    time.clear(timer);
  }

  /** @internal */
  take(bytes: Buffer, done: (error?: Error) => void): void {
    time.activity += 1;
    if (this.isReset) {
      done(systemError('write EPIPE', 'EPIPE'));
      return;
    }
    const isHeld = !this.reads && this.receivedBytes + bytes.length > WINDOW_BYTES;
    const taken = isHeld ? bytes.subarray(0, WINDOW_BYTES - this.receivedBytes) : bytes;
    this.received.push(taken);
    this.receivedBytes += taken.length;
    this.#marks.push({ bytes: this.receivedBytes, at: time.now });
    if (isHeld) {
      this.heldAt ??= time.now;
      this.#held = done;
    } else if (bytes.length > AT_ONCE_BYTES) {
      inNextTurn(() => (this.isReset ? done(systemError('write EPIPE', 'EPIPE')) : done()));
    } else done();
    this.#notify();
  }

  /** @internal */
  end(): void {
    time.activity += 1;
    this.endedAt ??= time.now;
    this.#notify();
  }

  /** @internal */
  cancelWrite(): void {
    const held = this.#held;
    this.#held = null;
    held?.();
  }

  #leave(): void {
    if (this.leftAt !== null) return;
    this.leftAt = time.now;
    this.leftFirst = this.endedAt === null;
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}

/** What `node:http` keeps on a socket. */
interface NodeSocket {
  parser: { pause(): void; resume(): void } | null | undefined;
  /** Whether it has paused the socket because replies wait to be sent. */
  _paused: boolean;
}

/** What `node:http` gets as its socket. */
export class ServerSocket extends Duplex {
  readonly remoteAddress = '127.0.0.1';
  readonly remotePort = 1;
  readonly remoteFamily = 'IPv4';
  bytesRead = 0;
  closedAt: number | null = null;
  readonly #client: Client;
  readonly #inbox: (readonly Buffer[] | 'FIN' | 'RST')[] = [];
  readonly #context = new AsyncResource('ServerSocket');
  #isReading = false;
  #isDelivering = false;
  #timer: ReturnType<typeof time.set> | undefined;

  constructor(client: Client) {
    super({ emitClose: false });
    this.#client = client;
    this.once('close', () => {
      this.closedAt = time.now;
      time.clear(this.#timer);
    });
  }

  /** @internal */
  arrive(item: readonly Buffer[] | 'FIN' | 'RST'): void {
    this.#inbox.push(item);
    this.#deliver();
  }

  /** How many packets nobody has read yet. */
  get waiting(): number {
    return this.#inbox.length;
  }

  /** What arrived is read one packet in a turn, in no request's async context. */
  #deliver(): void {
    if (this.#isDelivering || !this.#isReading || this.#inbox.length === 0 || this.destroyed) return;
    this.#isDelivering = true;
    const packet = this.#inbox[0] as readonly Buffer[] | 'FIN' | 'RST';
    const later = (callback: () => void): void => inNextTurn(() => this.#context.runInAsyncScope(callback));
    if (typeof packet === 'string') later(() => this.#deliverEnd());
    // One task for each part: promises and ticks have their turn in between.
    else packet.forEach((_, index) => later(() => this.#deliverPart(index)));
  }

  #deliverEnd(): void {
    this.#isDelivering = false;
    if (!this.#isReading || this.destroyed) return;
    if (this.#inbox.shift() === 'RST') this.destroy(systemError('read ECONNRESET', 'ECONNRESET'));
    else {
      this.push(null);
      this.read(0);
    }
  }

  #deliverPart(index: number): void {
    const parts = this.#inbox[0] as readonly Buffer[];
    const part = parts[index] as Buffer;
    if (index === parts.length - 1) this.#isDelivering = false;
    if (this.destroyed) return;
    this.#touch();
    this.bytesRead += part.length;
    const node = this as unknown as NodeSocket;
    const { parser, _paused: isHeldBack } = node;
    if (index > 0 && this.isPaused() && parser != null) {
      // What node:http has read from a network it parses to the end, even if it pauses the socket meanwhile.
      if (isHeldBack) parser.resume();
      node._paused = false;
      this.emit('data', part);
      if (isHeldBack && !node._paused) {
        node._paused = true;
        node.parser?.pause();
      }
    } else {
      this.#isReading = false;
      if (this.push(part)) this.#isReading = true;
    }
    if (index < parts.length - 1) return;
    this.#inbox.shift();
    // An end that is here already is read in the same turn.
    if (this.#inbox[0] === 'FIN') this.#deliverEnd();
    else this.#deliver();
  }

  override _read(): void {
    this.#isReading = true;
    this.#deliver();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#touch();
    this.#client.take(chunk, (error) => {
      this.#touch();
      done(error);
    });
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'binary', done);
  }

  override _final(done: () => void): void {
    this.#client.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#client.end();
    done(error);
    // As with node:net: a write that is under way is called back as if it were done, and `close` comes after that.
    inNextTurn(() => {
      this.#client.cancelWrite();
      inNextTurn(() => this.emit('close', error !== null));
    });
  }

  setTimeout(ms: number, callback?: () => void): this {
    if (callback !== undefined) this.once('timeout', callback);
    time.clear(this.#timer);
    this.#timer = ms > 0 && !this.destroyed ? time.set(() => this.emit('timeout'), ms) : undefined;
    return this;
  }

  #touch(): void {
    this.#timer?.refresh();
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  setNoDelay(): this { return this; }
  setKeepAlive(): this { return this; }
  ref(): this { return this; }
  unref(): this { return this; }
}

function systemError(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}
