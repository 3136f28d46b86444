/*
 * Encodes whatever a handler returned as the body of a reply: text, bytes, a stream, or JSON.
 */

import * as lossCheck from '../payload/lost-members.js';
import { UnsendableError } from '../payload/unsendable.js';
import { isStream, type Stream } from '../payload/stream.js';

/** A body as it is sent. @internal */
export interface EncodedBody {
  readonly body: string | Uint8Array | Stream;
  /** The content type unless one is given. */
  readonly type: string;
  /** In bytes; -1 where it is not known. */
  readonly length: number;
}

const OCTETS = 'application/octet-stream';

/**
 * @param tag of the value
 * @throws {TypeError} when the value can't be sent: a function, a symbol, a bigint, a cycle, or an object with members
 * that JSON loses
 * @throws the value itself when it is an `Error`: returning one is raising it
 *
 * @internal
 */
export function encodeBody(value: unknown, tag: string): EncodedBody {
  if (typeof value === 'string')
    return { body: value, type: 'text/plain; charset=utf-8', length: Buffer.byteLength(value) };
  if (typeof value === 'object' && value !== null) {
    if (value instanceof Uint8Array) return { body: value, type: OCTETS, length: value.byteLength };
    if (value instanceof Error) throw value;
    const encoded =
      tag === '[object Object]' || tag === '[object Array]' ? undefined : encodePlatformObject(value, tag);
    if (encoded !== undefined) return encoded;
    if (isStream(value)) return { body: value, type: OCTETS, length: -1 };
  }
  return encodeJson(value);
}

/** Encodes what else `new Response()` takes (Fetch, "extract a body"). Bytes are octets here, of whatever class. */
function encodePlatformObject(value: object, tag: string): EncodedBody | undefined {
  if (tag === '[object URLSearchParams]' && value instanceof URLSearchParams) {
    const text = value.toString();
    return { body: text, type: 'application/x-www-form-urlencoded;charset=UTF-8', length: text.length };
  }
  if ((tag === '[object Blob]' || tag === '[object File]') && value instanceof Blob)
    return { body: value.stream(), type: value.type || OCTETS, length: value.size };
  if (tag === '[object FormData]' && value instanceof FormData) {
    const { body, headers } = new Response(value);
    return { body: body as Stream, type: headers.get('content-type') as string, length: -1 };
  }
  if (value instanceof ArrayBuffer) return { body: new Uint8Array(value), type: OCTETS, length: value.byteLength };
  if (ArrayBuffer.isView(value)) {
    const { buffer, byteOffset, byteLength } = value;
    return { body: new Uint8Array(buffer, byteOffset, byteLength), type: OCTETS, length: byteLength };
  }
  return undefined;
}

function encodeJson(value: unknown): EncodedBody {
  const json = JSON.stringify(value) as string | undefined;
  const remedy = typeof value === 'function' ? 'call it, or return a value' : 'return a value';
  if (json === undefined)
    throw new UnsendableError(`a handler returned a ${typeof value}, which has no JSON form; ${remedy}`);
  lossCheck.assertNothingLost(value, json);
  return { body: json, type: 'application/json', length: Buffer.byteLength(json) };
}
