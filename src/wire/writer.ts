/*
 * Writes the replies of Postern. Only `100 Continue`, and what a handler writes to `ctx.raw`, is written elsewhere.
 *
 * A reply is written once, when it is ready. After its head is sent, a failure can only be answered by closing the
 * connection.
 */

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { builtin } from '../base/builtin.js';
import { Date, nextTick, setImmediate, setTimeout } from '../base/clock.js';
import { HIDDEN_HEADERS } from '../propagation/mesh-headers.js';
import { discardStream, letFail, mediaTypeOf, openStream, type BodySource, type Stream } from '../payload/bytes.js';
import type { Exchange } from './exchange.js';
import { closesByTrailer } from './head.js';
import type { IncomingBody } from './incoming-body.js';
import { replaceDestroySoon, saysClose } from './node-internals.js';
import { hasStream, type Outgoing } from './outgoing.js';

const { STATUS_CODES } = builtin('node:http');

/** How long, in ms, a socket stays open after its last reply, so that the client can read that reply. */
const LINGER_MS = 2000;

/** Maximum length of a body that nobody has begun to read, and that is read and dropped to keep the connection. */
const MAX_DROPPED_BYTES = 1024 * 1024;

/**
 * Writes a reply.
 *
 * @returns null once the whole reply is with the kernel; a promise for a stream, and for a reply that the client does
 * not take at once. It resolves when the reply is written, or its client has disconnected
 * @throws when a header is invalid or, as a rejection, when a stream fails; `res.headersSent` shows whether another
 * reply can still be written
 */
export function send(exchange: Exchange, outgoing: Outgoing): Promise<void> | null {
  const { req, res, method } = exchange;
  const { length } = outgoing;
  let { body } = outgoing;
  if (body !== null && typeof body !== 'string' && !ArrayBuffer.isView(body)) {
    if (method !== 'HEAD') return sendStream(exchange, outgoing, body);
    // The stream that the GET route opened is not sent, so nobody else would free it.
    free(outgoing);
    body = null;
  }
  const isEnding = exchange.carrier.endsWith(exchange) || (exchange.body !== null && mustEnd(exchange.body));
  writeHead(exchange, outgoing, isEnding);
  if (isEnding && !req.complete) lingerAtEnd(exchange);
  if (body === null || method === 'HEAD') res.end();
  else writeAtOnce(res, body, length === body.length);
  if (res.writableLength > 0) return endWhenTaken(exchange);
  res.end();
  return exchange.raw === 'unused' || res.writableEnded ? null : written(exchange);
}

/** Frees the body of a reply that will not be sent. */
export function free(outgoing: Outgoing): void {
  if (!hasStream(outgoing)) return;
  const { body, context } = outgoing;
  if (context === undefined) discardStream(body);
  else context.runInAsyncScope(discardStream, undefined, body);
}

/** Ends a connection after what was written; a client that does not end its side is disconnected after a while. */
export function endSoftly(socket: Duplex): void {
  socket.end();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
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

/** Answers a request whose protocol frames the reply by itself: HTTP/2. */
export function sendUnframed(res: ServerResponse, { status, headers, body }: Outgoing): void {
  res.on('error', () => undefined);
  for (let i = 0; i < headers.length; i += 2) res.setHeader(String(headers[i]), headers[i + 1] as string);
  res.statusCode = status;
  res.end(body);
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
async function endWhenTaken(exchange: Exchange): Promise<void> {
  const { res } = exchange;
  const { socket } = res;
  // node:http drops what is written to a socket that has ended, and calls it sent.
  if (socket !== null && !socket.writable) return written(exchange);
  if (res.writableLength > 0 && socket !== null) {
    exchange.carrier.watch();
    await taken(socket);
  }
  if (!res.destroyed) res.end();
  if (!res.writableEnded) await written(exchange);
}

/** Waits for middleware with an `end` of its own, such as compression or a session store, to write the reply. */
function written({ res }: Exchange): Promise<void> {
  return new Promise((resolve) => {
    if (res.closed) resolve();
    else res.once('close', resolve);
  });
}

/** Writes the head of a reply; every head that Postern sends on a response is written here. */
function writeHead(exchange: Exchange, outgoing: Outgoing, close: boolean): void {
  const { res, raw } = exchange;
  const { status, statusText, headers, length } = outgoing;
  if (length !== -1) headers.push('content-length', String(length));
  if (exchange.scope !== undefined) for (const name of HIDDEN_HEADERS) removeHeader(headers, name);
  // The reply's own would replace a header that middleware has set on `res` itself.
  if (raw !== 'unused') combineHeaders(res, headers);
  if (close) {
    const given = indexOfHeader(headers, 'connection');
    if (given === -1) headers.push('connection', 'close');
    else headers[given + 1] = 'close';
    res.shouldKeepAlive = false;
  }
  try {
    if (statusText === '') res.writeHead(status, headers);
    else res.writeHead(status, statusText, headers);
  } catch (error) {
    // node:http may have set some of them on `res` already.
    for (let i = 0; i < headers.length; i += 2) res.removeHeader(String(headers[i]));
    throw error;
  }
}

/** Headers whose values are combined (RFC 9110, section 5.3; RFC 6265, section 3). */
const COMBINED = ['vary', 'link', 'set-cookie'];

function combineHeaders(res: ServerResponse, headers: Outgoing['headers']): void {
  for (const name of COMBINED) {
    const own = res.getHeader(name);
    if (own !== undefined) addHeader(headers, name, own);
  }
}

/** Adds a header to a list that does not have it, or combines both values. @param name in lower case */
export function addHeader(list: Outgoing['headers'], name: string, value: number | string | string[]): void {
  const at = indexOfHeader(list, name) + 1;
  const known = list[at];
  if (at === 0) list.push(name, typeof value === 'number' ? String(value) : value);
  else if (name === 'set-cookie') list[at] = [value, known].flat().map(String);
  else if (COMBINED.includes(name)) list[at] = `${String(value)}, ${String(known)}`;
}

function removeHeader(list: Outgoing['headers'], name: string): void {
  for (let at = indexOfHeader(list, name); at !== -1; at = indexOfHeader(list, name)) list.splice(at, 2);
}

/** Index of a name, in lower case, in a list; -1 if it is missing. */
function indexOfHeader(list: Outgoing['headers'], name: string): number {
  return list.findIndex((each, i) => i % 2 === 0 && String(each).toLowerCase() === name);
}

/**
 * Sends the head with the first chunk; until then the source may fail, a drain may begin, and requests may follow. The
 * head of an event stream is sent at once: its client waits for the head, and the first event may be minutes away.
 */
function sendStream(exchange: Exchange, outgoing: Outgoing, stream: Stream): Promise<void> {
  const read = (): Promise<void> => readAndSend(exchange, outgoing, stream);
  return outgoing.context === undefined ? read() : outgoing.context.runInAsyncScope(read);
}

async function readAndSend(exchange: Exchange, outgoing: Outgoing, stream: Stream): Promise<void> {
  const { res } = exchange;
  const source = openStream(stream);
  // A source that yields 4 bytes under `content-length: 10` fails: the client would take the next reply for the rest.
  res.strictContentLength = true;
  // A source whose next chunk never comes can't be interrupted. The request ends when the client disconnects.
  const left = new Promise<void>((resolve) => {
    exchange.onGone(resolve);
    res.once('close', resolve).on('error', () => resolve());
  });
  try {
    await Promise.race([pump(exchange, outgoing, source), left]);
  } finally {
    source.free();
  }
}

async function pump(exchange: Exchange, outgoing: Outgoing, source: BodySource): Promise<void> {
  const { req, res, body, carrier } = exchange;
  // Another reply may have taken the place of the stream's.
  const isOver = (): boolean => exchange.outgoing !== outgoing || res.destroyed || res.writableEnded;
  let wake: (() => void) | undefined;
  let isFlushing = false;
  // When the source keeps its reader waiting. A flush after each row of a report would send a multiple of the bytes.
  const flushSoon = (): void => {
    if (isFlushing || !Object.hasOwn(res, 'flush')) return;
    isFlushing = true;
    setImmediate(() => {
      isFlushing = false;
      if (!isOver()) flushCoding(res);
    });
  };
  try {
    if (isEventStream(outgoing)) {
      writeHead(exchange, outgoing, carrier.endsWith(exchange));
      res.flushHeaders();
    }
    for (;;) {
      const { done, value: chunk } = await source.next();
      if (isOver()) return;
      if (done === true) break;
      if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) {
        letFail(chunk, true);
        throw new TypeError(`a stream yielded a chunk of type ${typeof chunk}; yield strings or bytes`);
      }
      if (!res.headersSent) {
        assertLength(outgoing, chunk, false);
        writeHead(exchange, outgoing, carrier.endsWith(exchange));
      }
      const isTaken = chunk.length === 0 || res.write(chunk);
      if (chunk.length === 0) res.flushHeaders();
      else flushSoon();
      if (!isTaken && !res.destroyed) {
        carrier.watch();
        // One listener for all: middleware such as compression hands it on to another stream, from which `once` could
        // not remove it.
        if (wake === undefined) res.on('drain', () => wake?.());
        await new Promise<void>((resolve) => {
          wake = resolve;
          // After an `Upgrade` that follows it, node:http forwards the socket's `drain` no more. From Node.js 26 on, the
          // socket gets the chunk at the end of this turn.
          const follow = (): void => {
            if (res.socket?.writableNeedDrain === true) res.socket.once('drain', resolve);
          };
          follow();
          nextTick(follow);
        });
      }
    }
    if (!res.headersSent) {
      assertLength(outgoing, '', true);
      writeHead(exchange, outgoing, carrier.endsWith(exchange) || closesByTrailer(req));
    }
    // node:http holds back what was written in this turn until its end, so it would count as not taken by the client.
    if (res.writableLength > 0) await new Promise<void>(nextTick);
    const isEnding = carrier.endsWith(exchange) || (body !== null && mustEnd(body));
    if (isEnding && !req.complete) lingerAtEnd(exchange);
    if (!isOver()) await endWhenTaken(exchange);
  } catch (error) {
    if (!isOver()) throw error;
  }
}

function isEventStream({ headers }: Outgoing): boolean {
  const at = indexOfHeader(headers, 'content-type');
  return at !== -1 && mediaTypeOf(String(headers[at + 1])) === 'text/event-stream';
}

/** @throws if a stream surely breaks its declared length: nothing is sent yet, so that its error can be */
function assertLength({ headers }: Outgoing, first: string | Uint8Array, isWhole: boolean): void {
  const at = indexOfHeader(headers, 'content-length');
  if (at === -1) return;
  const [declared, length] = [Number(headers[at + 1]), Buffer.byteLength(first)];
  if (length > declared || (isWhole && length < declared))
    throw new Error(`a stream yielded ${length} bytes and declares ${declared} as its content-length; correct the header`);
}

/**
 * Sends what middleware that compresses holds back: its client waits for each chunk of a stream.
 *
 * @param res with a `flush` of its own: node:http has a method of that name, too, which is deprecated
 */
function flushCoding(res: ServerResponse): void {
  const flush: unknown = Reflect.get(res, 'flush');
  try {
    if (typeof flush === 'function') Reflect.apply(flush, res, []);
  } catch (error) {
    res.destroy(error instanceof Error ? error : undefined);
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
      // On an error `close` follows, and settles. node:net calls back without an error, too, when a socket is
      // destroyed: to settle here would count the reply as sent, and begin the next request.
      if (error == null && !socket.destroyed) settle();
    });
  });
}

/**
 * Whether a reply has to end its connection because of the body of its request. Trailers may say so. If the body was
 * not read to its end, the rest of it comes first where the next request is expected. Only a body that is short, of
 * known length and not yet begun is read and dropped instead. One that the client holds back (`Expect: 100-continue`)
 * may never come at all (RFC 9110, section 10.1.1).
 */
function mustEnd({ req, length, isReading, isHeldBack }: IncomingBody): boolean {
  if (req.complete) return closesByTrailer(req);
  if (req.headers['transfer-encoding'] !== undefined) return true;
  return length > 0 && (isReading || isHeldBack || length > MAX_DROPPED_BYTES);
}

/**
 * Goes on reading after a reply that ends its connection before the body of its request has arrived: if a socket is
 * closed with bytes unread, the client's side is reset, and may lose the reply (RFC 9112, section 9.6).
 */
function lingerAtEnd({ req, res }: Exchange): void {
  const { socket } = req;
  // node:http does this after a reply that says `connection: close`.
  replaceDestroySoon(socket, () => endSoftly(socket));
  if (saysClose(res)) return;
  // The head is sent, and has promised to keep the connection. The rest of the body still makes that impossible.
  res.shouldKeepAlive = false;
  res.once('finish', () => endSoftly(socket));
}
