/*
 * The body of a call: bytes that can be sent again, or a stream that can't.
 */

/** What may be streamed to another service: a `Readable`, a `ReadableStream`, or what else gives bytes or strings. */
export type ServiceStream = AsyncIterable<Uint8Array | string> | ReadableStream<Uint8Array>;

/**
 * What a call may send: text, bytes, a form, or a stream. `Blob` and `FormData` go out as `fetch` would send them.
 */
export type ServiceBody = string | Uint8Array | ArrayBuffer | URLSearchParams | Blob | FormData | ServiceStream;

/** A body that was made ready to be sent. @internal */
export interface RequestBody {
  readonly content: Uint8Array | ServiceStream;
  /** The content type, for a call that gives none; undefined where Fetch names none either. */
  readonly type: string | undefined;
}

/**
 * @returns undefined for no body
 * @throws {TypeError} for both at once, for what has no JSON form, and for a body that is none
 *
 * @internal
 */
export function toRequestBody(json: unknown, body: ServiceBody | null | undefined): RequestBody | undefined {
  if (json !== undefined) {
    if (body !== undefined && body !== null) throw new TypeError('json and body are both given; keep one');
    return { content: formatJson(json), type: 'application/json' };
  }
  if (body === undefined || body === null) return undefined;
  if (typeof body === 'string') return { content: Buffer.from(body), type: 'text/plain;charset=UTF-8' };
  if (body instanceof ArrayBuffer) return toRequestBody(undefined, new Uint8Array(body));
  if (body instanceof Uint8Array || (typeof body === 'object' && Symbol.asyncIterator in body))
    return { content: body, type: 'application/octet-stream' };
  if (body instanceof URLSearchParams) {
    const type = 'application/x-www-form-urlencoded;charset=UTF-8';
    return { content: Buffer.from(body.toString()), type };
  }
  // Naming the globals loads them, so they come last.
  if (body instanceof Blob || body instanceof FormData) {
    const { body: content, headers } = new Response(body);
    return { content: content as ReadableStream<Uint8Array>, type: headers.get('content-type') ?? undefined };
  }
  throw new TypeError(
    `body is a ${typeof body}; give a string, bytes, URLSearchParams or a stream, or json for a value`,
  );
}

/** Whether a body, or the lack of one, can be sent once more: a stream can't. @internal */
export function isRepeatable(body: RequestBody | undefined): boolean {
  return body === undefined || body.content instanceof Uint8Array;
}

function formatJson(value: unknown): Uint8Array {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`json is a ${typeof value}, which has no JSON form`);
  return Buffer.from(text);
}
