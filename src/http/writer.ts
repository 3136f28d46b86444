/*
 * Writes the replies of Postern. Only `100 Continue`, and what a handler writes to `ctx.raw`, is written elsewhere.
 *
 * A reply is written once. After its head is sent, a failure can only be answered by closing the connection.
 */

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { builtin } from '../base/builtin.js';
import { Date, nextTick, setImmediate, setTimeout } from '../base/clock.js';
import { isStream, toReadable, type Stream } from '../payload/bytes.js';
import { saysClose, type Exchange } from './exchange.js';
import { toReply, type Outgoing } from './reply.js';
import { closesByTrailer } from './request.js';

const { STATUS_CODES } = builtin('node:http');

/** How long, in ms, a socket stays open after its last reply, so that the client can read that reply. */
const LINGER_MS = 2000;

/** How a reply ended: written as a whole, or aborted because the client disconnected. */
export type ReplyOutcome = 'sent' | 'aborted';

/**
 * Writes a reply.
 *
 * @returns the outcome; a promise of it for a stream, and for a reply that the client does not take at once
 * @throws when a header is invalid or, as a rejection, when a stream fails; `res.headersSent` shows whether another
 * reply can still be written
 */
export function send(exchange: Exchange, outgoing: Outgoing): ReplyOutcome | Promise<ReplyOutcome> {
  const { req, res } = exchange;
  const { body, length } = outgoing;
  if (isStream(body) && req.method !== 'HEAD') return sendStream(exchange, outgoing, body);
  // HEAD: the stream that the GET route opened is not sent, so nobody else would free it.
  if (isStream(body)) discard(body);
  const text = isStream(body) || req.method === 'HEAD' ? null : body;
  const close = exchange.connection.endsWith(exchange);
  const unread = isLeftUnread(exchange, close);
  writeHead(exchange, outgoing, close || unread || closesByTrailer(req));
  if (unread) lingerAtEnd(exchange);
  if (text === null) res.end();
  else writeAtOnce(res, text, length === text.length);
  if (res.writableLength > 0) return endWhenTaken(exchange);
  res.end();
  return res.destroyed ? 'aborted' : 'sent';
}

/** Frees the stream in a value that will not be sent; never throws, whatever the value. */
export function discard(value: unknown): void {
  try {
    const { body } = toReply(value);
    if (!isStream(body)) return;
    const source = toReadable(body);
    source.on('error', () => undefined).destroy();
  } catch {
    // Reading the value can throw, for example from a Proxy.
  }
}

/** Ends a connection after what was written; a client that does not end its side is disconnected after a while. */
export function endSoftly(socket: Duplex): void {
  socket.end();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** Calls back when the requests that this turn of the event loop has read are run, and their replies written. */
export function inNextTurn(callback: () => void): void {
  // In the first phase requests are run, and in the same or the next one replies are written.
  setImmediate(() => setImmediate(callback));
}

/** Puts off to the next turn the `socket.end()` with which node:http answers that the client has ended its side. */
export function endInNextTurn(socket: Duplex): void {
  const { end } = socket;
  socket.end = () => {
    socket.end = end;
    inNextTurn(() => socket.end());
    return socket;
  };
}

/** Answers what `node:http` could not parse, on the bare socket, and closes it. */
export function sendRaw(socket: Duplex, { status, headers, body, length }: Outgoing): void {
  if (!socket.writable) return void socket.destroy();
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nconnection: close\r\ndate: ${new Date().toUTCString()}\r\n`;
  head += `content-length: ${length}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  socket.write(`${head}\r\n${typeof body === 'string' ? body : ''}`);
  endSoftly(socket);
}

/** Hands head and body to the socket in one piece: `res.end(body)` adds an empty one, which costs 7 % more. */
function writeAtOnce(res: ServerResponse, body: string | Uint8Array, isAscii: boolean): void {
  const { socket } = res;
  socket?.cork();
  try {
    // node:http encodes the head and a text as one. For ASCII, latin1 has the same bytes and is cheaper.
    if (typeof body === 'string') res.write(body, isAscii ? 'latin1' : 'utf8');
    else res.write(body);
  } finally {
    socket?.uncork();
  }
}

/**
 * Waits until the client has taken what was written, and calls `res.end()` only then. For node:http a connection is
 * idle as soon as `end` was called: a server that closes would cut it with a part of the reply still to be sent.
 */
async function endWhenTaken(exchange: Exchange): Promise<ReplyOutcome> {
  const { res } = exchange;
  if (res.writableLength > 0 && res.socket !== null && res.socket.writable) {
    exchange.connection.watch();
    await taken(res.socket);
  }
  if (res.destroyed) return 'aborted';
  res.end();
  return 'sent';
}

function writeHead(exchange: Exchange, outgoing: Outgoing, close: boolean): void {
  const { res, raw } = exchange;
  const { status, statusText, headers, length } = outgoing;
  if (length !== -1) headers.push('content-length', String(length));
  // The reply's own would replace a header that middleware has set on `res` itself.
  for (const name of raw === 'unused' ? [] : COMBINED) {
    const own = res.getHeader(name);
    if (own !== undefined) addHeader(headers, name, own);
  }
  if (close) {
    const given = indexOfHeader(headers, 'connection');
    if (given === -1) headers.push('connection', 'close');
    else headers[given + 1] = 'close';
    res.shouldKeepAlive = false;
  }
  if (statusText === '') res.writeHead(status, headers);
  else res.writeHead(status, statusText, headers);
}

/** Headers whose values are combined (RFC 9110, section 5.3; RFC 6265, section 3). */
const COMBINED = ['vary', 'link', 'set-cookie'];

/** Adds a header to a list that does not have it, or combines both values. @param name in lower case */
export function addHeader(list: Outgoing['headers'], name: string, value: number | string | string[]): void {
  const at = indexOfHeader(list, name) + 1;
  const known = list[at];
  if (at === 0) list.push(name, typeof value === 'number' ? String(value) : value);
  else if (name === 'set-cookie') list[at] = [value, known].flat().map(String);
  else if (COMBINED.includes(name)) list[at] = `${String(value)}, ${String(known)}`;
}

/** Index of a name, in lower case, in a list; -1 if it is missing. */
function indexOfHeader(list: Outgoing['headers'], name: string): number {
  return list.findIndex((each, i) => i % 2 === 0 && String(each).toLowerCase() === name);
}

/** Sends the head with the first chunk. Until then its source may fail, a drain may begin, and requests may follow. */
async function sendStream(exchange: Exchange, outgoing: Outgoing, stream: Stream): Promise<ReplyOutcome> {
  const { res } = exchange;
  const source = toReadable(stream, { objectMode: true, highWaterMark: 1 });
  // A source that yields 4 bytes under `content-length: 10` fails: the client would take the next reply for the rest.
  res.strictContentLength = true;
  // A source whose next chunk never comes can't be interrupted. The request ends when the client disconnects.
  const left = new Promise<ReplyOutcome>((resolve) => {
    const leave = (): void => resolve('aborted');
    exchange.onAbort(leave);
    res.once('close', leave).on('error', leave);
  });
  try {
    return await Promise.race([pump(exchange, outgoing, source), left]);
  } finally {
    source.on('error', () => undefined).destroy();
  }
}

async function pump(exchange: Exchange, outgoing: Outgoing, source: AsyncIterable<unknown>): Promise<ReplyOutcome> {
  const { req, res, connection } = exchange;
  // Another reply may have taken the place of the stream's.
  const isOver = (): boolean => exchange.outgoing !== outgoing || res.destroyed || res.writableEnded;
  let wake: (() => void) | undefined;
  try {
    for await (const chunk of source) {
      if (isOver()) return 'aborted';
      if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) {
        throw new TypeError(`a stream yielded a chunk of type ${typeof chunk}; yield strings or bytes`);
      }
      if (!res.headersSent) writeHead(exchange, outgoing, connection.endsWith(exchange));
      if (chunk.length === 0) res.flushHeaders();
      else if (!res.write(chunk) && !res.destroyed) {
        connection.watch();
        // One listener for all: middleware such as compression hands it on to another stream, from which `once` could
        // not remove it.
        if (wake === undefined) res.on('drain', () => wake?.());
        await new Promise<void>((resolve) => {
          wake = resolve;
          // After an `Upgrade` that follows it, node:http forwards the socket's `drain` no more.
          if (res.socket?.writableNeedDrain === true) res.socket.once('drain', resolve);
        });
      }
    }
    if (isOver()) return 'aborted';
    if (!res.headersSent) writeHead(exchange, outgoing, connection.endsWith(exchange) || closesByTrailer(req));
    // node:http holds back what was written in this turn until its end, so it would count as not taken by the client.
    if (res.writableLength > 0) await new Promise<void>(nextTick);
    if (isLeftUnread(exchange, connection.endsWith(exchange))) lingerAtEnd(exchange);
    return isOver() ? 'aborted' : await endWhenTaken(exchange);
  } catch (error) {
    if (isOver()) return 'aborted';
    throw error;
  }
}

/**
 * Resolves when everything that was written to a socket is taken, or the socket is closed. The socket is asked, because
 * middleware may replace `res.write`, and then need not call back.
 */
function taken(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      socket.off('close', settle);
      resolve();
    };
    socket.on('close', settle);
    // An empty chunk: its callback comes when all before it is taken. `drain` would come for a full buffer only.
    socket.write('', (error) => {
      // On an error `close` follows, and settles. To settle here would have the caller write on and on, and `close`
      // would never get its turn.
      if (error == null || socket.destroyed) settle();
    });
  });
}

/**
 * Whether a reply has to end its connection because the body of its request was not read to its end: the rest of that
 * body comes first where the next request is expected. Only a body that is short, of known length and not yet begun is
 * read and dropped instead. One that the client holds back (`Expect: 100-continue`) may never come at all (RFC 9110,
 * section 10.1.1).
 */
function isLeftUnread(exchange: Exchange, close: boolean): boolean {
  const { req, contentLength } = exchange;
  if (req.complete) return false;
  if (close || req.headers['transfer-encoding'] !== undefined) return true;
  return contentLength > 0 && (exchange.isReading || exchange.isBodyHeldBack || contentLength > 1024 * 1024);
}

/**
 * Goes on reading after a reply that ends its connection before the body of its request has arrived: if a socket is
 * closed with bytes unread, the client's side is reset, and may lose the reply (RFC 9112, section 9.6).
 */
function lingerAtEnd({ req, res }: Exchange): void {
  const { socket } = req;
  // node:http calls this after a reply that says `connection: close`.
  socket.destroySoon = () => endSoftly(socket);
  if (saysClose(res)) return;
  // The head is sent, and has promised to keep the connection. The rest of the body still makes that impossible.
  res.shouldKeepAlive = false;
  res.once('finish', () => endSoftly(socket));
}
