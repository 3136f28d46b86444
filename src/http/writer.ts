/*
 * Writes replies: the only file that does, `100 Continue` aside.
 *
 * A reply is written once. What fails after its head is out can only be answered by closing the connection.
 */

import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { clearTimeout, Date, nextTick, setTimeout } from '../base/clock.js';
import { indexOfHeader } from '../payload/header-list.js';
import { isStream, toReadable, type Stream } from '../payload/stream.js';
import { LINGER_MS } from './connection.js';
import type { Exchange } from './exchange.js';
import { toReply, type Outgoing } from './reply.js';

/** How a reply ended: written as a whole, or cut because the client left. */
export type Outcome = 'sent' | 'aborted';

/**
 * Writes a reply.
 *
 * @param close whether to end the connection with it
 * @param timeoutMs how long a client may take nothing of it; 0 for no limit
 * @returns the outcome; a promise of it for a stream, and for what the client does not take at once
 * @throws when a header is invalid or, as a rejection, when a stream fails; `res.headersSent` tells whether another
 * reply can still be written
 */
export function send(
  exchange: Exchange,
  outgoing: Outgoing,
  close: boolean,
  timeoutMs: number,
): Outcome | Promise<Outcome> {
  const { req, res } = exchange;
  const { body, length } = outgoing;
  if (isStream(body) && req.method !== 'HEAD') return sendStream(exchange, outgoing, body, close, timeoutMs);
  // HEAD: the stream that the GET route opened is not sent, so nobody else would free it.
  if (isStream(body)) discard(body);
  const unread = isLeftUnread(exchange, close);
  writeHead(res, outgoing, close || unread || closesByTrailer(req));
  if (unread && !exchange.isBodyHeldBack && !exchange.isBodyBroken) {
    if (body === null || isStream(body) || req.method === 'HEAD') res.flushHeaders();
    else res.write(body);
    linger(exchange)
      .then(() => endWhenTaken(res, timeoutMs))
      .catch(() => req.socket.destroy());
  } else if (body === null || isStream(body)) {
    res.end();
    if (res.writableLength > 0) limitEnding(res, timeoutMs);
  } else {
    writeAtOnce(res, body, length === body.length);
    if (res.writableLength > 0) return endWhenTaken(res, timeoutMs);
    res.end();
  }
  return res.destroyed ? 'aborted' : 'sent';
}

/** Frees the stream in a value that will not be sent; never throws, whatever the value. */
export function discard(value: unknown): void {
  try {
    const { body } = toReply(value);
    if (!isStream(body)) return;
    toReadable(body)
      .on('error', () => undefined)
      .destroy();
  } catch {
    // Looking at the value throws: it may be a proxy.
  }
}

/** Whether a client left before it had the whole reply. */
export function isCut(res: ServerResponse): boolean {
  return res.destroyed && !res.writableFinished;
}

/** Whether the trailers behind a chunked body end the connection: node:http parses no request behind these. */
// "0\r\nConnection: close\r\n\r\n"
export function closesByTrailer({ rawTrailers }: IncomingMessage): boolean {
  for (let i = 0; i < rawTrailers.length; i += 2) {
    if (/^(?:proxy-)?connection$/i.test(rawTrailers[i] as string) && /\bclose\b/i.test(rawTrailers[i + 1] as string)) {
      return true;
    }
  }
  return false;
}

/** Answers what `node:http` could not parse, on the bare socket, and closes it. */
export function sendRaw(socket: Duplex, { status, headers, body, length }: Outgoing): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nconnection: close\r\ndate: ${new Date().toUTCString()}\r\n`;
  head += `content-length: ${length}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  socket.end(`${head}\r\n${typeof body === 'string' ? body : ''}`);
  // Closing at once could reset the connection under a client that has not read the reply.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/**
 * Hands head and body to the socket in one piece. `res.end(body)` would hand it an empty piece behind them, which costs
 * 7 % more.
 */
function writeAtOnce(res: ServerResponse, body: string | Uint8Array, isAscii: boolean): void {
  const { socket } = res;
  socket?.cork();
  try {
    // node:http puts the head before a text and encodes both as one; for ASCII, latin1 gives the same bytes and is
    // cheaper.
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
async function endWhenTaken(res: ServerResponse, timeoutMs: number): Promise<Outcome> {
  if (res.writableLength > 0 && !res.writableEnded) await taken(res, timeoutMs);
  if (res.destroyed) return 'aborted';
  res.end();
  return 'sent';
}

function writeHead(res: ServerResponse, { status, statusText, headers, body, length }: Outgoing, close: boolean): void {
  // A handler may have set `transfer-encoding` on `res` itself. Beside a `content-length` it would tell the client two
  // different ends of the body (RFC 9112, section 6.3).
  if ((length !== -1 || body === null) && res.hasHeader('transfer-encoding')) res.removeHeader('transfer-encoding');
  if (length !== -1) headers.push('content-length', String(length));
  // Middleware may have set a `vary` on `res` itself, which that of the reply would replace.
  if (res.hasHeader('vary')) mergeVary(res, headers);
  if (close) {
    headers.push('connection', 'close');
    res.shouldKeepAlive = false;
  }
  if (statusText === '') res.writeHead(status, headers);
  else res.writeHead(status, statusText, headers);
}

function mergeVary(res: ServerResponse, headers: (string | string[])[]): void {
  const index = indexOfHeader(headers, 'vary');
  if (index !== -1) headers[index + 1] = `${String(res.getHeader('vary'))}, ${String(headers[index + 1])}`;
}

/** The head goes out with the first chunk, so that a source which fails at once still gets a proper error reply. */
async function sendStream(
  exchange: Exchange,
  outgoing: Outgoing,
  stream: Stream,
  close: boolean,
  timeoutMs: number,
): Promise<Outcome> {
  const { res } = exchange;
  const source = toReadable(stream, { objectMode: true, highWaterMark: 1 });
  // A source that gives 4 bytes under `content-length: 10` fails: the client would take the next reply for the other 6.
  res.strictContentLength = true;
  // A source whose next chunk never comes can't be interrupted; when the client leaves, the request ends all the same.
  const left = new Promise<Outcome>((resolve) => {
    const leave = (): void => resolve('aborted');
    exchange.onAbort(leave);
    res.once('close', leave).on('error', leave);
  });
  try {
    return await Promise.race([pump(exchange, outgoing, source, close, timeoutMs), left]);
  } finally {
    source.on('error', () => undefined).destroy();
  }
}

async function pump(
  exchange: Exchange,
  outgoing: Outgoing,
  source: AsyncIterable<unknown>,
  close: boolean,
  timeoutMs: number,
): Promise<Outcome> {
  const { req, res } = exchange;
  try {
    for await (const chunk of source) {
      if (isOver(exchange)) return 'aborted';
      if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) {
        throw new TypeError(`a stream gave a chunk of type ${typeof chunk}; give strings or bytes`);
      }
      if (!res.headersSent) writeHead(res, outgoing, close);
      if (chunk.length === 0) res.flushHeaders();
      else if (!res.write(chunk) && !res.destroyed) await taken(res, timeoutMs);
      if (isOver(exchange)) return 'aborted';
    }
    if (isOver(exchange)) return 'aborted';
    if (!res.headersSent) writeHead(res, outgoing, close || closesByTrailer(req));
    // node:http holds back what was written in this turn until its end, so it would count as not taken by the client.
    if (res.writableLength > 0) await new Promise<void>(nextTick);
    const unread = isLeftUnread(exchange, close);
    if (unread && !exchange.isBodyHeldBack) await linger(exchange);
    // The head is out, and may have promised to keep the connection. The rest of the body still makes that impossible.
    if (unread && !req.complete) res.once('close', () => req.destroy());
    return isOver(exchange) ? 'aborted' : await endWhenTaken(res, timeoutMs);
  } catch (error) {
    if (isOver(exchange)) return 'aborted';
    throw error;
  }
}

/** Whether another reply has taken the place of a stream's, or its client has left. */
function isOver({ answered, res }: Exchange): boolean {
  return answered || res.destroyed || res.writableEnded;
}

/** Resolves when the client has taken what was written, or its connection is gone. */
function taken(res: ServerResponse, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    limitSending(res, timeoutMs);
    const settle = (): void => {
      res.off('close', settle);
      // From here on it is the source that may be slow.
      limitSending(res, 0);
      resolve();
    };
    res.on('close', settle);
    // An empty chunk: its callback comes when all before it is taken. `drain` would come for a full buffer alone.
    res.write('', (error) => {
      // On an error `close` follows, and settles. To settle here would have the caller write on and on, and `close`
      // would never get its turn.
      if (error == null || res.destroyed) settle();
    });
  });
}

/** From now on, a client that takes nothing for that long is cut. A socket in memory has no timer. */
function limitSending(res: ServerResponse, timeoutMs: number): void {
  if (res.socket !== null) res.socket.setTimeout?.(timeoutMs);
  else if (timeoutMs > 0) res.once('socket', (socket: Socket) => socket.setTimeout?.(timeoutMs));
}

/**
 * Limits sending until a reply is out whose `end` was called. The limit is lifted before node:http, with its own
 * listener, sets that of an idle connection.
 */
function limitEnding(res: ServerResponse, timeoutMs: number): void {
  limitSending(res, timeoutMs);
  res.prependOnceListener('finish', () => limitSending(res, 0));
}

/**
 * Whether a reply has to end its connection because the body of its request was not read to its end: the rest of that
 * body comes first where the next request is expected. Only a body that is short, of known length and not yet begun is
 * read and dropped instead. One that the client holds back (`Expect: 100-continue`) may never come at all (RFC 9110,
 * section 10.1.1).
 */
function isLeftUnread(exchange: Exchange, close: boolean): boolean {
  const { req } = exchange;
  if (req.complete) return false;
  if (close || req.headers['transfer-encoding'] !== undefined) return true;
  const length = Number(req.headers['content-length'] ?? 0);
  return length > 0 && (exchange.isReading || exchange.isBodyHeldBack || length > 1024 * 1024);
}

/**
 * Goes on reading the body for a while behind a reply. If a socket is closed with bytes unread, the client's side is
 * reset, and may lose the reply (RFC 9112, section 9.6).
 */
function linger(exchange: Exchange): Promise<void> {
  const { req } = exchange;
  return new Promise((resolve) => {
    const timer = setTimeout(settle, LINGER_MS).unref();
    function settle(): void {
      clearTimeout(timer);
      req.off('end', settle).off('close', settle);
      resolve();
    }
    exchange.onAbort(settle);
    req.on('end', settle).on('close', settle).unpipe().resume();
  });
}
