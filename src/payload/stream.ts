/*
 * Bodies that stream, whichever way a platform or a program has them.
 */

import { Readable, type ReadableOptions } from 'node:stream';

/** Source of a streamed body. */
export type Stream = AsyncIterable<unknown>;

/** Whether a body is a stream rather than something whose length is known. @internal */
export function isStream(body: unknown): body is Stream {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

/**
 * The tag of an object, `[object Blob]`; empty for other values. It is compared before `instanceof Blob` is asked,
 * because naming `Blob` or `Response` loads it.
 *
 * @internal
 */
export function tagOf(value: unknown): string {
  return typeof value === 'object' ? Object.prototype.toString.call(value) : '';
}

/**
 * A stream of any kind as one whose `destroy` frees its source: `Readable.from` would cancel a web stream only after
 * its next chunk.
 *
 * @param options for a web stream
 * @internal
 */
export function toReadable(stream: Stream | ReadableStream, options?: ReadableOptions): Readable {
  if (stream instanceof Readable) return stream;
  return isWebStream(stream) ? Readable.fromWeb(stream, options) : Readable.from(stream);
}

function isWebStream(stream: Stream | ReadableStream): stream is Parameters<typeof Readable.fromWeb>[0] {
  return tagOf(stream) === '[object ReadableStream]';
}
