/*
 * Every member of node:http that Postern reads or replaces although the documentation of Node.js does not provide for
 * it, each with its reason. `test/connection/node-internals.test.ts` fails when a Node.js changes one of them.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { endsAtHead } from '../payload/bodiless.js';

/**
 * Whether the head of a reply, once it is sent, says `connection: close`, by whatever means: node:http sets `_last` for
 * a given `connection: close` and for a reply without a length to HTTP/1.0.
 */
export function saysClose(res: ServerResponse & { readonly _last?: boolean }): boolean {
  return !res.shouldKeepAlive || res._last === true;
}

/** Lets another reply have a body after a 204 or 304 that could not be written: node:http would send none. */
export function allowBody(res: ServerResponse, isAllowed: boolean): void {
  Reflect.set(res, '_hasBody', isAllowed);
}

/**
 * Calls back before the first byte of a body is read, whichever way: each of them calls `_read` (Node.js documentation,
 * "readable._read(size)").
 */
export function beforeFirstRead(req: IncomingMessage, callback: () => void): void {
  const read = req._read.bind(req);
  req._read = (size) => {
    req._read = read;
    callback();
    read(size);
  };
}

/** Replaces what node:http does to a socket after a reply that says `connection: close`. */
export function replaceDestroySoon(socket: Socket, end: () => void): void {
  socket.destroySoon = end;
}

/** Puts off the `socket.end()` with which node:http answers that the client has ended its side. */
export function deferEnd(socket: Duplex, defer: (end: () => void) => void): void {
  const { end } = socket;
  socket.end = () => {
    socket.end = end;
    defer(() => socket.end());
    return socket;
  };
}

/**
 * Stops reading from a socket until the returned function is called. node:http resumes a socket after every request
 * that it has parsed, so `pause` is not enough.
 */
export function stopReading(socket: Duplex): () => void {
  socket.pause();
  const { resume } = socket;
  socket.resume = () => socket;
  return () => {
    socket.resume = resume;
    socket.resume();
  };
}

/**
 * Whether node:http has paused a socket until its client takes more of a reply. It resumes the socket then, and pauses
 * it again at once if anybody else resumes it earlier.
 */
export function isHeldBack(socket: Duplex & { readonly _paused?: boolean }): boolean {
  return socket._paused === true;
}

/** Makes a socket ask for data again: one that a full body has paused, and that node:http 24 has let go of, stays so. */
export function wakeReading(socket: Duplex): void {
  socket.push('');
}

/**
 * Bytes that the operating system has taken from a socket; only differences have a meaning. On a socket of node:net its
 * queue would not do: a text that waits counts in characters there. One without a handle (in memory) has only its
 * queue.
 */
export function takenBytes(socket: Duplex): number {
  const { _handle, bytesWritten = 0, writableLength }: Measured = socket;
  return (_handle?.bytesWritten ?? bytesWritten - writableLength) - (_handle?.writeQueueSize ?? 0);
}

type Measured = Duplex & {
  readonly bytesWritten?: number;
  readonly _handle?: { readonly bytesWritten?: number; readonly writeQueueSize?: number } | null;
};

/** The server of a request; undefined if node:http does not parse its socket. */
export function serverOf({ socket }: IncomingMessage): Server | undefined {
  return Reflect.get(socket, 'server') as Server | undefined;
}

/** Keeps a server from answering a request without `Host` by itself, with an empty body. */
export function takeRequestsWithoutHost(server: Server): void {
  Reflect.set(server, 'requireHostHeader', false);
}

/**
 * Keeps the connections whose clients still read a reply from counting as idle: for node:http a connection is idle as
 * soon as `end` of its reply was called. `server.close()` closes idle connections, too.
 *
 * @param open the connections that are open
 */
export function spareReaders(server: Server, open: Iterable<Duplex>): void {
  const closeIdle = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => {
    const reading = [...open].filter(({ writableLength }) => writableLength > 0);
    for (const socket of reading) socket.destroy = () => socket;
    closeIdle();
    for (const socket of reading) Reflect.deleteProperty(socket, 'destroy');
  };
}

/**
 * Calls a function before the listeners of `upgrade`, which get the request only if it calls `proceed`. A server
 * without such listeners is not touched: with a listener of ours, node:http would hand over the socket.
 */
export function guardUpgrades(server: Server, guard: (req: IncomingMessage, proceed: () => void) => void): void {
  const install = (): void => {
    const emit = server.emit.bind(server) as (event: string | symbol, ...args: unknown[]) => boolean;
    server.emit = (event: string | symbol, ...args: unknown[]) => {
      if (event !== 'upgrade') return emit(event, ...args);
      guard(args[0] as IncomingMessage, () => void emit(event, ...args));
      return true;
    };
  };
  const onNewListener = (event: string | symbol): void => {
    if (event !== 'upgrade') return;
    server.off('newListener', onNewListener);
    install();
  };
  if (server.listenerCount('upgrade') > 0) install();
  else server.on('newListener', onNewListener);
}

/**
 * To be called before a request is answered in place of its handler. Whatever head the handler writes after that reply,
 * in a callback for one, is dropped: the error of node:http would end the process.
 */
export function dropLateHeaders(res: ServerResponse): void {
  for (const name of ['setHeader', 'setHeaders', 'appendHeader', 'removeHeader', 'writeHead'] as const) {
    const method = res[name].bind(res) as (...given: unknown[]) => unknown;
    Reflect.set(res, name, (...given: unknown[]) => (res.headersSent ? res : method(...given)));
  }
}

type Header = [name: string, value: string | string[]];
type WriteHead = (status: number, ...rest: unknown[]) => ServerResponse;

/** Calls a function before each head that a handler writes, with the headers that `writeHead` was given. */
export function beforeHead(res: ServerResponse, prepare: (status: number, given: readonly Header[]) => void): void {
  const writeHead = res.writeHead.bind(res) as WriteHead;
  const write: WriteHead = (status, ...rest) => {
    const at = typeof rest[0] === 'string' ? 1 : 0;
    prepare(status, toPairs(rest[at]));
    return writeHead(status, ...rest.slice(0, at));
  };
  res.writeHead = write as typeof res.writeHead;
}

/** The headers that `writeHead` was given, in any form that it takes. */
function toPairs(headers: unknown): Header[] {
  if (!Array.isArray(headers)) return Object.entries(headers ?? {});
  if (Array.isArray(headers[0])) return headers;
  return headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]]] : []));
}

/** Counts the bytes of a reply's body while they are written, also by a handler. @returns how many there are so far */
export function countBytes({ method }: IncomingMessage, res: ServerResponse): () => number {
  let count = 0;
  const counting =
    <Result>(write: (...args: never[]) => Result) =>
    (...args: unknown[]): Result => {
      const [chunk, encoding] = args;
      // Where a body is not allowed, node:http drops what is written.
      const isDropped = method === 'HEAD' || endsAtHead(res.statusCode);
      if (typeof chunk === 'string' && !isDropped) count += Buffer.byteLength(chunk, encoding as BufferEncoding);
      else if (chunk instanceof Uint8Array && !isDropped) count += chunk.byteLength;
      return Reflect.apply(write, res, args) as Result;
    };
  res.write = counting(res.write);
  // `end` of node:http does not call `write`.
  res.end = counting(res.end);
  return () => count;
}
