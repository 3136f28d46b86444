/* Bodies as bytes, collected from their chunks and decoded, or as streams; and the content types of bodies. */

import { Readable } from 'node:stream';
import { ignoreRejection } from '../base/promises.js';

/**
 * Bytes up to a limit, copied together: a chunk of one byte can hold on to the 64 kB that it was read into.
 *
 * Its declaration would name `Buffer<ArrayBuffer>`, which TypeScript 5.6 does not know. @internal
 */
export class Bytes {
  #buffer: Buffer<ArrayBuffer> = Buffer.alloc(0);
  #size = 0;

  /** @param expected how many there will be, as far as that is known */
  constructor(
    readonly limit: number,
    readonly expected: number,
  ) {}

  /** Whether the chunk was within the limit. */
  add(chunk: Buffer<ArrayBuffer>): boolean {
    const total = this.#size + chunk.length;
    if (total > this.limit) return false;
    // The first chunk is not copied: most bodies are one chunk.
    if (this.#size === 0) this.#buffer = chunk;
    else {
      if (total > this.#buffer.length) {
        const grown = Buffer.allocUnsafe(Math.min(this.limit, Math.max(total, this.expected, this.#size * 2)));
        this.#buffer.copy(grown, 0, 0, this.#size);
        this.#buffer = grown;
      }
      chunk.copy(this.#buffer, this.#size);
    }
    this.#size = total;
    return true;
  }

  read(): Buffer<ArrayBuffer> {
    return this.#buffer.subarray(0, this.#size);
  }
}

/**
 * Lets a stream or a promise fail before it is read, and the streams and promises that are members of a value: without
 * a listener, that ends the process. A later reader gets the error. Never throws, whatever the value.
 *
 * @param isDeep whether to look at members of members, too
 */
export function letFail(value: unknown, isDeep = false): void {
  try {
    if (!isDeep) {
      letOneFail(value);
      return eachMember(value, letOneFail);
    }
    const seen = new Set([value]);
    for (const each of seen) {
      letOneFail(each);
      eachMember(each, (member) => seen.add(member));
    }
  } catch (thrown) {
    // Reading the value can throw, for example from a Proxy; and what is thrown may be a promise that rejects.
    ignoreRejection(thrown);
  }
}

function letOneFail(value: unknown): void {
  if (isPlainObject(value)) return;
  if (isNodeStream(value)) value.on('error', () => undefined);
  else ignoreRejection(value);
}

/**
 * Calls back for each member, of a plain object or an array, that is an object. It makes no list of them: it runs for
 * each reply that passes middleware.
 */
function eachMember(value: unknown, callback: (member: object) => void): void {
  const isList = Array.isArray(value);
  if (!isList && !isPlainObject(value)) return;
  const members = value as Readonly<Record<string | number, unknown>>;
  const visit = (member: unknown): void => {
    if (typeof member === 'object' && member !== null) callback(member);
  };
  if (isList) for (const member of value) visit(member);
  else for (const name in members) visit(members[name]);
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Makes a stream fail when the stream that it reads fails; `pipe` does not do that. */
export function failWith(source: unknown, body: unknown): void {
  if (isNodeStream(source) && isNodeStream(body)) source.on('error', (error) => body.destroy(error));
}

/** Decodes without a byte order mark; invalid UTF-8 becomes U+FFFD. */
export function decodeUtf8(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

const JSON_TYPE = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json$/;

/** Type and subtype in lower case, without parameters; empty without the header. */
// "Application/JSON ; charset=utf-8" → "application/json"
export function mediaTypeOf(header = ''): string {
  const semicolon = header.indexOf(';');
  let end = semicolon === -1 ? header.length : semicolon;
  // A regular expression that trims the end would be quadratic on runs of spaces.
  while (end > 0 && (header[end - 1] === ' ' || header[end - 1] === '\t')) end -= 1;
  return header.slice(0, end).toLowerCase();
}

/** `application/json`, or anything that ends in `+json` (RFC 6839, section 3.1). */
export function isJsonType(mediaType: string): boolean {
  return mediaType === 'application/json' || JSON_TYPE.test(mediaType);
}

/** Source of a streamed body. */
export type Stream = AsyncIterable<unknown>;

/** A `ReadableStream` of bytes: of Node.js, or of the compiler's library `DOM`, where it is not an `AsyncIterable`. */
export interface ByteStream {
  /** Stops the source. */
  cancel(reason?: unknown): Promise<void>;
  /** Reads the stream. */
  // With a `value` that may be undefined, the compiler takes `new ReadableStream({ … })` for a stream of undefined, too.
  getReader(): { read(): Promise<{ readonly done: false; readonly value: Uint8Array } | { readonly done: true }> };
}

/** Whether a body is a stream rather than something whose length is known. */
export function isStream(body: unknown): body is Stream {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

/** Whether a value is a `Readable` of `node:stream`, or of a copy such as readable-stream, which archiver has. */
export function isNodeStream(value: unknown): value is Readable {
  if (value instanceof Readable) return true;
  return isStream(value) && ['on', 'pipe', 'destroy'].every((name) => typeof Reflect.get(value, name) === 'function');
}

/** The content type of a form that undici writes. */
const WRITTEN_FORM = /^multipart\/form-data; boundary=-+formdata-undici/;

/**
 * The body of a `Response`, as a stream that may be destroyed at any time; undefined for none. undici (Node.js 24)
 * writes a form into its body even after `cancel()`, and the error of that ends the process. A form is not cancelled.
 */
export function streamOf({ body, headers }: Response): Stream | undefined {
  const isForm = body !== null && WRITTEN_FORM.test(headers.get('content-type') ?? '');
  return isForm ? body.values({ preventCancel: true }) : ((body ?? undefined) as Stream | undefined);
}

/**
 * The tag of an object, `[object Blob]`; empty for other values. It is compared before `instanceof Blob` is asked,
 * because naming `Blob` or `Response` loads it.
 */
export function tagOf(value: unknown): string {
  return typeof value === 'object' ? Object.prototype.toString.call(value) : '';
}

/** Whether a value is a `Response`, of whatever copy of Fetch: it has the tag and the methods. */
export function isResponse(value: unknown): value is Response {
  if (tagOf(value) !== '[object Response]') return false;
  const methods = ['arrayBuffer', 'json', 'text', 'clone'];
  return methods.every((name) => typeof Reflect.get(value as object, name) === 'function');
}

/**
 * A stream of any kind as one whose `destroy` frees its source: `Readable.from` would cancel a web stream only after
 * its next chunk.
 */
export function toReadable(stream: Stream | ByteStream): Readable {
  if (stream instanceof Readable) return stream;
  return isWebStream(stream) ? Readable.fromWeb(stream) : Readable.from(stream as Stream);
}

function isWebStream(stream: unknown): stream is ReadableStream & Parameters<typeof Readable.fromWeb>[0] {
  return tagOf(stream) === '[object ReadableStream]';
}

/** Reads a stream chunk by chunk. */
export interface BodySource {
  next(): Promise<IteratorResult<unknown, unknown>>;
  /** Frees the source and the streams that are piped into it, whether or not it has ended. Never throws. */
  free(): void;
}

/**
 * Opens a stream of any kind and of whatever copy of its class. A generator is read directly: a `Readable` around it
 * would read the stack of what it throws, and that can throw in its turn. A web stream is cancelled at once; its
 * iterator would do so only after its next chunk.
 *
 * @throws what the stream throws, such as a web stream that is locked
 */
export function openStream(stream: Stream): BodySource {
  if (isNodeStream(stream)) {
    const { destroyed } = stream;
    const chunks = stream[Symbol.asyncIterator]();
    const next = async (): Promise<IteratorResult<unknown, unknown>> => {
      const result = await chunks.next();
      // For the iterator, `emit('error')` without an error is an end; for the iterator of a copy, each earlier failure.
      const hasFailed = result.done === true && !(stream.readableEnded ?? !destroyed);
      if (hasFailed) throw new Error('the stream failed without an error');
      return result;
    };
    return { next, free: () => destroyAll(stream) };
  }
  if (isWebStream(stream)) {
    const reader = stream.getReader();
    return { next: () => reader.read(), free: () => forget(() => reader.cancel()) };
  }
  const chunks = stream[Symbol.asyncIterator]();
  return { next: async () => chunks.next(), free: () => forget(() => chunks.return?.()) };
}

/** Frees a stream that nobody will read; never throws, whatever the stream. */
export function discardStream(stream: Stream): void {
  try {
    openStream(stream).free();
  } catch {
    // Looking at the stream can throw, for example at a Proxy, or at a web stream that is locked.
  }
}

/** Calls a function; nobody waits for its promise, or for what it throws. */
function forget(run: () => unknown): void {
  Promise.resolve()
    .then(run)
    .catch(ignoreRejection);
}

/** Destroys a stream and those that are piped into it: `pipe` passes no `destroy` on. */
function destroyAll(stream: Readable): void {
  // The reply needs them.
  if (isReceived(stream)) return;
  stream
    .on('error', () => undefined)
    .on('unpipe', destroyAll)
    .destroy();
}

/** A stream that a server may have received: a request has a socket, and a socket its server. */
interface Received extends Readable {
  readonly socket?: { readonly server?: object | null } | null;
  readonly server?: object | null;
}

/** Whether a stream is a request that a server of `node:http` has received (`ctx.raw.req`), or its socket. */
function isReceived({ socket, server }: Received): boolean {
  return 'closeIdleConnections' in Object(socket?.server ?? server);
}
