/* A reply in the form that a connection writes. */

import type { AsyncResource } from 'node:async_hooks';
import type { Stream } from '../payload/bytes.js';

/** A reply that is ready to be written: header names and values alternately. */
export interface Outgoing {
  readonly status: number;
  /** The reason phrase; empty for the usual one of the status. */
  readonly statusText: string;
  /** The values of a repeated name in one array. */
  readonly headers: (string | string[])[];
  readonly body: string | Uint8Array | Stream | null;
  /** Length of the body, in bytes; -1 for no `content-length`. */
  readonly length: number;
  /** The async context to read a stream in, if it is not the request's. */
  readonly context?: AsyncResource | undefined;
}

/** Whether the body is a stream. It is not looked at, which can throw: a handler may have returned a Proxy. */
export function hasStream(outgoing: Outgoing): outgoing is Outgoing & { readonly body: Stream } {
  const { body } = outgoing;
  return typeof body === 'object' && body !== null && !ArrayBuffer.isView(body);
}
