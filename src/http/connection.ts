/**
 * Writes replies: the only file that does, `100 Continue` aside.
 *
 * A reply is written once. What fails after its head is out can only be answered by closing the connection.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { Readable, type Duplex } from 'node:stream';
import { HttpError } from '../errors.js';
import { isReadingBegun } from './body.js';
import { isStream, toReply, type Outgoing, type Stream } from './reply.js';

/** The error of a `clientError` event. */
export interface ParserError extends Error {
  readonly code?: string;
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

/** How a reply ended: written as a whole, or cut because the client left. */
export type Outcome = 'sent' | 'aborted';

/** How long, in ms, an answered client may go on sending a body that nobody will read. */
const LINGER_MS = 2000;
const LINGER_BYTES = 64 * 1024 * 1024;

/**
 * Writes a reply.
 *
 * @param close whether to end the connection with it
 * @param timeoutMs how long a client may take nothing of it; 0 for no limit
 * @returns the outcome; a promise of it for a stream, and for what the client does not take at once
 * @throws when a header is invalid or, as a rejection, when a stream fails; `res.headersSent` tells whether another reply
 * can still be written
 */
export function send(req: IncomingMessage, res: ServerResponse, outgoing: Outgoing, close: boolean, timeoutMs: number): Outcome | Promise<Outcome> {
  const { body, length } = outgoing;
  if (typeof body === 'object' && body !== null && !(body instanceof Uint8Array)) return sendStream(req, res, outgoing, body, close, timeoutMs);
  const unread = !req.complete && (close || mustNotReuse(req));
  writeHead(res, outgoing, close || unread);
  if (unread && !awaitsContinue(req)) {
    if (body === null || req.method === 'HEAD') res.flushHeaders();
    else res.write(body);
    void linger(req).then(() => endWhenTaken(res, timeoutMs));
  } else if (body === null) {
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
    toReadable(body).on('error', () => undefined).destroy();
  } catch {
    // Looking at the value throws: it may be a proxy.
  }
}

/** Whether a reply was cut before its end; `res.destroyed` alone is true of one that went out, too. */
export function isCut(res: ServerResponse): boolean {
  return res.destroyed && !res.writableFinished;
}

/** Ends a response that waits for those before it with its connection: before Node.js 24, nothing tells it. */
export function endWithConnection({ socket }: IncomingMessage, res: ServerResponse): void {
  const onClose = (): void => {
    if (!res.destroyed) res.destroy().emit('close');
  };
  socket.setMaxListeners(0).once('close', onClose);
  res.once('close', () => socket.off('close', onClose));
}

/** Ends a connection whose reply can't be completed. */
export function abandon(res: ServerResponse): void {
  res.destroy();
}

/** Closes the connection of a request whose body will not be complete, behind its reply; what reads the body learns of it. */
export function closeAfter(req: IncomingMessage, res: ServerResponse): void {
  if (res.destroyed) {
    req.destroy();
    return;
  }
  res.once('close', () => req.destroy());
  try {
    res.end();
  } catch {
    // It is shorter than the length that its handler declared.
    abandon(res);
  }
}

/**
 * Answers what `node:http` could not parse, on the bare socket.
 *
 * @param error from {@link parserErrorOf}; its reply closes the connection
 */
export function sendRaw(socket: Duplex, { status, headers, body, length }: Outgoing): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nconnection: close\r\ncontent-length: ${length}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  socket.end(`${head}\r\n${typeof body === 'string' ? body : ''}`);
  // Closing at once could reset the connection under a client that has not read the reply.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** What `node:http` raised as a `clientError`, as the exception it stands for. */
export function parserErrorOf(error: ParserError): HttpError {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new HttpError(408, 'The request took too long to arrive.', { cause: error });
    case 'HPE_HEADER_OVERFLOW':
      return isInRequestLine(error)
        ? new HttpError(414, 'The request target is too long.', { cause: error })
        : new HttpError(431, 'The header fields are too large.', { cause: error });
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new HttpError(413, 'The chunk extensions are too large.', { cause: error });
    default:
      return new HttpError(400, 'The request is malformed.', { cause: error });
  }
}

/** Head and body in one piece: `res.end(body)` would hand them to the socket with an empty one behind, which costs 7 % more. */
function writeAtOnce(res: ServerResponse, body: string | Uint8Array, isAscii: boolean): void {
  const { socket } = res;
  socket?.cork();
  // node:http puts the head before it, which then goes through the cheaper encoder, too.
  if (typeof body === 'string') res.write(body, isAscii ? 'latin1' : 'utf8');
  else res.write(body);
  socket?.uncork();
}

/** Behind `res.end()` a server that closes takes a connection for idle, and cuts what is still to be sent. */
async function endWhenTaken(res: ServerResponse, timeoutMs: number): Promise<Outcome> {
  if (res.writableLength > 0 && !res.writableEnded) await taken(res, timeoutMs);
  if (res.destroyed) return 'aborted';
  res.end();
  return 'sent';
}

function writeHead(res: ServerResponse, { status, statusText, headers, length }: Outgoing, close: boolean): void {
  if (length !== -1) headers.push('content-length', String(length));
  if (close) {
    headers.push('connection', 'close');
    res.shouldKeepAlive = false;
  }
  if (statusText === '') res.writeHead(status, headers);
  else res.writeHead(status, statusText, headers);
}

/** The head goes out with the first chunk, so that a source which fails at once still gets a proper error reply. */
async function sendStream(req: IncomingMessage, res: ServerResponse, outgoing: Outgoing, stream: Stream, close: boolean, timeoutMs: number): Promise<Outcome> {
  const source = toReadable(stream);
  if (req.method === 'HEAD') {
    source.on('error', () => undefined).destroy();
    writeHead(res, outgoing, close);
    res.end();
    return 'sent';
  }
  // A declared length that the source does not keep would frame the next reply wrongly.
  res.strictContentLength = true;
  // Not every source can be interrupted, and none may hold the request of a client that has left.
  const left = new Promise<Outcome>((resolve) => res.once('close', () => resolve('aborted')));
  try {
    return await Promise.race([pump(req, res, outgoing, source, close, timeoutMs), left]);
  } finally {
    source.destroy();
  }
}

async function pump(req: IncomingMessage, res: ServerResponse, outgoing: Outgoing, source: AsyncIterable<unknown>, close: boolean, timeoutMs: number): Promise<Outcome> {
  try {
    for await (const chunk of source) {
      if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) throw new TypeError(`a stream gave a chunk of type ${typeof chunk}; give strings or bytes`);
      if (!res.headersSent) writeHead(res, outgoing, close);
      if (chunk.length === 0) res.flushHeaders();
      else if (!res.write(chunk) && !res.destroyed) await taken(res, timeoutMs);
      if (res.destroyed) return 'aborted';
    }
    if (!res.headersSent) writeHead(res, outgoing, close);
    // Until then, what was written in this turn is held back.
    if (res.writableLength > 0) await new Promise<void>(process.nextTick);
    const unread = !req.complete && (close || mustNotReuse(req));
    if (unread && !awaitsContinue(req)) await linger(req);
    // The head may have promised to keep the connection.
    if (unread && !req.complete) res.once('close', () => req.destroy());
    return await endWhenTaken(res, timeoutMs);
  } catch (error) {
    if (res.destroyed) return 'aborted';
    throw error;
  }
}

/** `Readable.from` would cancel a web stream only after its next chunk. */
function toReadable(stream: Stream): Readable {
  if (stream instanceof Readable) return stream;
  return isWebStream(stream) ? Readable.fromWeb(stream, { objectMode: true, highWaterMark: 1 }) : Readable.from(stream);
}

/** By tag: naming the global `ReadableStream` loads it. */
function isWebStream(stream: Stream): stream is Stream & Parameters<typeof Readable.fromWeb>[0] {
  return Object.prototype.toString.call(stream) === '[object ReadableStream]';
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
    // Nothing more, to be told when it is its turn; a buffer that is not full has no `drain`.
    res.write('', (error) => {
      // Of a connection that is going, `close` tells; writing on until then would leave it no turn.
      if (error == null || res.destroyed) settle();
    });
  });
}

/** From now on, a client that takes nothing for that long is cut. A socket in memory has no timer. */
function limitSending(res: ServerResponse, timeoutMs: number): void {
  if (res.socket !== null) res.socket.setTimeout?.(timeoutMs);
  else if (timeoutMs > 0) res.once('socket', (socket: Socket) => socket.setTimeout?.(timeoutMs));
}

/** The same until the reply is out, whose end was called; before node:http sets the limit of an idle connection. */
function limitEnding(res: ServerResponse, timeoutMs: number): void {
  limitSending(res, timeoutMs);
  res.prependOnceListener('finish', () => limitSending(res, 0));
}

/**
 * Whether a connection is lost to further requests because the body before them was not read to its end: it was read in
 * part, is of unknown length, too long to be thrown away, or may never be sent (RFC 9110, section 10.1.1).
 */
function mustNotReuse(req: IncomingMessage): boolean {
  const { headers } = req;
  if (headers['transfer-encoding'] !== undefined) return true;
  const length = headers['content-length'];
  if (length === undefined || length === '0') return false;
  return isReadingBegun(req) || awaitsContinue(req) || Number(length) > 1024 * 1024;
}

/** Whether a client has not been told to send its body. */
function awaitsContinue(req: IncomingMessage): boolean {
  return req.headers.expect !== undefined && !isReadingBegun(req);
}

/** Reads on for a while behind a reply: an early close would make the client lose it. */
function linger(req: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    let budget = LINGER_BYTES;
    const timer = setTimeout(settle, LINGER_MS).unref();
    const onData = (chunk: Buffer): void => {
      budget -= chunk.length;
      if (budget < 0) settle();
    };
    function settle(): void {
      clearTimeout(timer);
      req.off('data', onData).off('end', settle).off('close', settle);
      resolve();
    }
    req.on('data', onData).on('end', settle).on('close', settle).unpipe().resume();
  });
}

/** Whether the parser gave up before the first line of the request ended, as far as the packet at hand tells. */
function isInRequestLine({ rawPacket, bytesParsed }: ParserError): boolean {
  if (rawPacket === undefined) return false;
  const parsed = rawPacket.toString('latin1', 0, bytesParsed);
  const start = parsed.lastIndexOf('\r\n\r\n');
  return /^[A-Z-]+ [^\r\n]*$/.test(start === -1 ? parsed : parsed.slice(start + 4));
}
