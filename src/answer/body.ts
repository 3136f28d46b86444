/* Reads a request's body within a limit that holds whatever the headers claim. */

import { Readable, Transform } from 'node:stream';
import { HttpError } from '../base/errors.js';
import { Bytes, decodeUtf8, isJsonType, mediaTypeOf } from '../payload/bytes.js';
import { decodeJson, parseJson } from '../payload/json.js';
import type { Exchange } from '../wire/exchange.js';
import { parseParameters } from './target.js';

const FORM_TYPE = 'application/x-www-form-urlencoded';

/**
 * The body of one request, for the methods of `Context` of the same names. Bytes that were read are kept, so that they
 * can be read again in another form.
 */
export class Body {
  #bytes: Promise<Buffer<ArrayBuffer>> | undefined;
  #streamed = false;

  constructor(
    readonly exchange: Exchange,
    readonly limitBytes: number,
    readonly parameterLimit: number,
  ) {}

  /**
   * The whole body.
   *
   * @throws {HttpError} 413 beyond the limit, 415 with a content coding, 400 when the client leaves half-way
   * @throws {TypeError} when the body was already handed out as a stream, the request is answered, or middleware for
   * Express has read from it
   */
  async bytes(): Promise<ReturnType<typeof Uint8Array.of>> {
    // A copy: the body may be read again, and may lie in the pool of node:buffer. No Buffer, as in Fetch: `slice` and
    // `toString` of a Buffer do something else.
    return new Uint8Array(await this.#read());
  }

  /** Decodes UTF-8 without a byte order mark; invalid UTF-8 becomes U+FFFD, as in Fetch. */
  async text(): Promise<string> {
    return decodeUtf8(await this.#read());
  }

  /** @throws {HttpError} 400 also for JSON that could do harm; the rest as `Context.json` */
  async json(): Promise<unknown> {
    const value = await this.jsonIfAny();
    if (value === undefined) throw new HttpError(400, 'The body is empty; send JSON.');
    return value;
  }

  /** The body as JSON; undefined if it has no byte. Throws as {@link json} does. */
  async jsonIfAny(): Promise<unknown> {
    const { req, body } = this.exchange;
    if (body === null) return undefined;
    // A page of another site can send a body without a type, or as text, without asking first (Fetch, "CORS-safelisted
    // request-header").
    const assertJson = (): void => assertType(req.headers['content-type'] ?? '', isJsonType, 'application/json');
    // A chunked body may have no byte, which only its end shows.
    if (body.length > 0) assertJson();
    const read = this.#read();
    const bytes = read instanceof Promise ? await read : read;
    if (bytes.length === 0) return undefined;
    assertJson();
    return parseJson(decodeJson(bytes));
  }

  /** @throws {HttpError} 415 for another content type, if one is given; 413 also for too many parameters */
  async form(): Promise<URLSearchParams> {
    const { req, body } = this.exchange;
    const assertForm = (): void =>
      assertType(req.headers['content-type'] ?? FORM_TYPE, (type) => type === FORM_TYPE, FORM_TYPE);
    // As for JSON: a body without a byte may have any type.
    if (body !== null && body.length > 0) assertForm();
    const bytes = await this.#read();
    if (bytes.length > 0) assertForm();
    // A byte order mark is kept: it is part of the first name (URL standard, "urlencoded parsing").
    return parseParameters(bytes.toString('utf8'), this.parameterLimit, 413);
  }

  /** The body as it arrives; fails with a 413 as soon as it exceeds the limit. Throws as {@link bytes} does. */
  stream(): Readable {
    if (this.#bytes !== undefined) return heard(Readable.from([this.#bytes], { objectMode: false }));
    this.#begin();
    this.#streamed = true;
    return limitStream(this.exchange, this.limitBytes);
  }

  /** Begins to read, unless that was done; returns the body itself if it is here already, which saves a wait. */
  #read(): Buffer<ArrayBuffer> | Promise<Buffer<ArrayBuffer>> {
    if (this.#bytes !== undefined) return this.#bytes;
    this.#begin();
    const arrived = takeArrived(this.exchange);
    this.#bytes = arrived === undefined ? collect(this.exchange, this.limitBytes) : Promise.resolve(arrived);
    return arrived ?? this.#bytes;
  }

  #begin(): void {
    if (this.#streamed)
      throw new TypeError('the body was taken as a stream already; take it once, or read it by bytes() where it is needed twice');
    const { body } = this.exchange;
    if (body === null) return;
    // A chunked body may have no byte, and then it has no coding either.
    const coded = body.length > 0 ? refuseCoding(this.exchange) : undefined;
    if (coded !== undefined) throw coded;
    if (body.length > this.limitBytes) throw tooLarge(this.limitBytes);
    if (body.isDropped)
      throw new TypeError('the request is answered, and its body was dropped; read it before the reply');
    if (body.isReadByOthers)
      throw new TypeError(
        'middleware for Express has read the body already; use what it made of it, ctx.raw.req.body, or remove that middleware',
      );
    body.beginReading();
  }
}

/** The body at once, if all of it is here already; most are, that came with their head. */
function takeArrived({ req, body }: Exchange): Buffer<ArrayBuffer> | undefined {
  const length = body?.length ?? 0;
  const isHere = req.complete && req.readableFlowing !== true && !req.readableEnded && length === req.readableLength;
  // Without a length, `read` of Node.js 26 would return only the first buffer.
  if (!isHere || length === 0) return undefined;
  const bytes = req.read(length) as Buffer<ArrayBuffer>;
  // A stream whose last byte was read ends when more is asked for. A handler may wait for that, by `ctx.raw`.
  req.resume();
  return bytes;
}

function collect(exchange: Exchange, limitBytes: number): Promise<Buffer<ArrayBuffer>> {
  const { req } = exchange;
  return new Promise((resolve, reject) => {
    const coded = refuseCoding(exchange);
    const bytes = new Bytes(limitBytes, exchange.body?.length ?? 0);
    const settle = (failure?: HttpError): void => {
      req.off('data', onData).off('end', onEnd).off('error', onAbort).off('close', onAbort);
      if (failure === undefined) resolve(bytes.read());
      else reject(failure);
    };
    const onData = (chunk: Buffer<ArrayBuffer>): void => {
      if (coded === undefined && bytes.add(chunk)) return;
      req.pause();
      settle(coded ?? tooLarge(limitBytes));
    };
    const onEnd = (): void => settle();
    const onAbort = (): void => settle(failureOf(exchange));
    if (req.readableEnded) onEnd();
    else if (req.destroyed) onAbort();
    else {
      req.on('data', onData).on('end', onEnd).on('error', onAbort).on('close', onAbort);
      exchange.onGone(onAbort);
    }
  });
}

function limitStream(exchange: Exchange, limitBytes: number): Readable {
  const { req } = exchange;
  const coded = refuseCoding(exchange);
  let size = 0;
  const limiter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      if (coded !== undefined || size > limitBytes) done(coded ?? tooLarge(limitBytes));
      else done(null, chunk);
    },
  });
  const abort = (): void => {
    limiter.destroy(failureOf(exchange));
  };
  const abortIncomplete = (): void => {
    if (!req.complete) abort();
  };
  req.once('error', abort).once('close', abortIncomplete);
  // A handler that still reads when the request is answered gets no more: the rest of the body is dropped.
  limiter.once('unpipe', () => {
    if (!limiter.writableEnded) abort();
  });
  if (req.destroyed && !req.readableEnded) abort();
  exchange.onGone(abortIncomplete);
  return heard(req.pipe(limiter));
}

/** Gives a stream a listener for errors: as with node:http, a client that hangs up must not end the process. */
function heard(stream: Readable): Readable {
  return stream.on('error', () => undefined);
}

/** The error for a body with a content coding; undefined for one without. */
function refuseCoding({ req }: Exchange): HttpError | undefined {
  const coding = req.headers['content-encoding'];
  if (coding === undefined || coding.trim().toLowerCase() === 'identity') return undefined;
  const headers = { 'accept-encoding': 'identity' };
  return new HttpError(415, 'Bodies with a content coding are not read.', { headers });
}

function assertType(header: string, isExpected: (mediaType: string) => boolean, name: string): void {
  if (!isExpected(mediaTypeOf(header))) throw new HttpError(415, `The body must be ${name}.`);
}

function tooLarge(limitBytes: number): HttpError {
  return new HttpError(413, `The body may have at most ${limitBytes} bytes.`);
}

function failureOf({ body }: Exchange): HttpError {
  return body?.failure ?? new HttpError(400, 'The request ended before its body was complete.');
}
