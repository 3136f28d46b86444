/* The reply of another service, over HTTP or in memory. Nothing in it is trusted: every part is checked before use. */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { adoptErrorCode } from '../base/error-codes.js';
import { builtin } from '../base/builtin.js';
import { CALLS_HEADER, NO_RETRY_HEADER } from '../propagation/mesh-headers.js';
import { callError, type CallName, type ServiceError } from './service-error.js';
import { parseList } from '../payload/accept.js';
import { isBodiless } from '../payload/bodiless.js';
import { Bytes, isJsonType, mediaTypeOf } from '../payload/bytes.js';
import { readErrorBody } from '../payload/error-body.js';
import { fromHeaderList } from '../payload/headers.js';
import { parseJson, parseShallowJson } from '../payload/json.js';
import { parseCalls, type CallTuple } from '../story/calls.js';
import type { Limit } from './limit.js';

/** A message of `node:http`, or what stands in for one. */
export type AnswerSource = Readable & Pick<IncomingMessage, 'statusCode' | 'statusMessage' | 'headers' | 'rawHeaders'>;

/** An answer that was read whole. */
export interface WholeAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** How much of a streamed body may wait to be read. */
const WAITING_BYTES = 65_536;
/** Larger bodies are not read as an error body: nothing that explains an error needs as much. */
const MAX_ERROR_BYTES = 65_536;
/** Whole seconds, or a date in the form that every server sends (RFC 9110, sections 10.2.3 and 5.6.7). */
const RETRY_AFTER = /^(?:\d{1,9}|[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT)$/;

/** The head of an answer; its body is read once, by one of the methods. */
export class Answer {
  readonly status: number;
  /** The calls that the service made for it, if it failed or was slow. */
  readonly calls: CallTuple[];

  /**
   * @param limit released with the last byte of the body. It is ended if the body fails, and at once by a status that
   * is not from 200 to 599. If it is ended, the reader of the body fails
   */
  constructor(
    readonly call: CallName,
    readonly source: AnswerSource,
    readonly limit: Limit,
  ) {
    const { service } = call;
    this.status = source.statusCode ?? 0;
    this.calls = takeCalls(source);
    if (this.status < 200 || this.status > 599)
      limit.end(callError(call, 502, `${service} answered with the status ${this.status}`));
    source.on('error', (cause) => limit.end(callError(call, 503, `${service} broke off its answer`, { cause })));
    source.on('end', () => limit.release());
  }

  /** The reason phrase; empty if it has characters that a `Response` refuses. */
  get statusText(): string {
    const { statusMessage = '' } = this.source;
    return /^[\t\x20-\x7e\x80-\xff]*$/.test(statusMessage) ? statusMessage : '';
  }

  /** All header fields, as received. */
  toHeaders(): Headers {
    return fromHeaderList(this.source.rawHeaders);
  }

  /**
   * Reads the whole answer.
   *
   * @throws {ServiceError} 502 for more than `maxBytes`, 503 when the connection fails
   * @throws the reason for which the attempt was ended
   */
  whole(maxBytes: number): Promise<WholeAnswer> {
    const { status, source } = this;
    const { headers } = source;
    return new Promise((resolve, reject) => {
      this.limit.whenEnded(reject);
      const length = Number(headers['content-length'] ?? 0) || 0;
      const body = new Bytes(maxBytes, length);
      const what = `${this.call.service} answered with more than ${maxBytes} bytes`;
      const refuse = (): void => this.limit.end(callError(this.call, 502, what));
      source.on('data', (chunk: Buffer<ArrayBuffer>) => {
        if (!body.add(chunk)) refuse();
      });
      source.on('end', () => resolve({ status, headers, body: body.read() }));
      if (length > maxBytes && this.#hasBody) refuse();
    });
  }

  /** The body as a stream, which fails as {@link whole} does; null where a status or method has none. */
  stream(): ReadableStream<Uint8Array> | null {
    const source = this.source;
    if (!this.#hasBody) {
      source.resume();
      return null;
    }
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          source.on('data', (chunk: Buffer) => {
            if (this.limit.isOver) return;
            controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length));
            if ((controller.desiredSize ?? 0) <= 0) source.pause();
          });
          this.limit.whenOver(({ failure }) => {
            if (failure === undefined) controller.close();
            else controller.error(failure.reason);
          });
        },
        pull: () => void source.resume(),
        cancel: (reason) => this.limit.end(reason),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: WAITING_BYTES }),
    );
  }

  get #hasBody(): boolean {
    // Fetch, "null body status".
    return this.call.method !== 'HEAD' && !isBodiless(this.status);
  }
}

/** Types whose bodies are texts, besides JSON (XML: RFC 7303). */
const TEXT_TYPE = /^text\/|^application\/(?:x-www-form-urlencoded|xml)$|\+xml$/;

/**
 * The body of an answer: JSON parsed, `text/*`, XML and forms as text in their charset, other types as bytes. Undefined
 * for an answer without a byte of body that has no type, the type of JSON, or a status without a body.
 *
 * @throws {ServiceError} 502 for a content coding, for a charset that Node.js does not know, for invalid JSON, and for
 * JSON that a request could not have either, such as the key `__proto__`
 */
export function readBody(call: CallName, { status, headers, body }: WholeAnswer): unknown {
  const { service } = call;
  const type = mediaTypeOf(headers['content-type']);
  const isJson = isJsonType(type);
  const isText = TEXT_TYPE.test(type);
  if (body.length === 0) {
    if (isJson || type === '' || isBodiless(status)) return undefined;
    return isText ? '' : new Uint8Array();
  }
  if (isCoded(headers)) throw callError(call, 502, `${service} answered in a content coding that was not asked for`);
  if (!isJson && !isText) return new Uint8Array(body.buffer, body.byteOffset, body.length);
  const charset = charsetOf(headers);
  try {
    const text = decode(charset, body, isJson);
    return isJson ? parseJson(text) : text;
  } catch (cause) {
    const isUnknown = cause instanceof RangeError;
    const what = isUnknown ? `in the charset ${JSON.stringify(charset.slice(0, 40))}` : 'with invalid JSON';
    throw callError(call, 502, `${service} answered ${what}`, { cause });
  }
}

/** The charset of a content type in lower case. Default: `utf-8`. */
function charsetOf({ 'content-type': header = '' }: IncomingHttpHeaders): string {
  if (!/charset/i.test(header)) return 'utf-8';
  const [item] = parseList(header);
  return item?.parameters.get('charset')?.toLowerCase() ?? 'utf-8';
}

/** Decodes without a byte order mark; JSON has to be in its charset. @throws {RangeError} for an unknown charset */
function decode(charset: string, body: Buffer, isJson: boolean): string {
  return new TextDecoder(charset, { fatal: isJson }).decode(body);
}

/** Content codings of answers, besides `identity`. A server may send a `deflate` without its frame (RFC 9110, 8.4.1). */
const DECODERS = {
  gzip: () => builtin('node:zlib').gunzip,
  deflate: (body) => (((body[0] ?? 0) & 0x0f) === 8 ? builtin('node:zlib').inflate : builtin('node:zlib').inflateRaw),
  br: () => builtin('node:zlib').brotliDecompress,
} satisfies Record<string, (body: Buffer) => Decoder>;

type Decoder = (
  body: Buffer,
  options: { maxOutputLength: number },
  done: (error: Error | null, decoded: Buffer<ArrayBuffer>) => void,
) => void;

/**
 * An answer without its content coding, if it has one of those that Postern decodes.
 *
 * @throws {ServiceError} 502 for a body that is not in its coding, or is larger than `maxBytes` without it
 */
export async function decodeAnswer(call: CallName, answer: WholeAnswer, maxBytes: number): Promise<WholeAnswer> {
  const { 'content-encoding': coding = '', ...headers } = answer.headers;
  const name = coding.trim().toLowerCase();
  if (!Object.hasOwn(DECODERS, name) || answer.body.length === 0) return answer;
  const decoder: Decoder = DECODERS[name as keyof typeof DECODERS](answer.body);
  return new Promise((resolve, reject) =>
    decoder(answer.body, { maxOutputLength: maxBytes }, (cause, body) => {
      if (cause === null) return resolve({ ...answer, headers, body });
      // Its status says more.
      if (answer.status >= 400) return resolve(answer);
      const isLong = 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE';
      const what = isLong ? `more than ${maxBytes} bytes` : `a body that is not ${name}`;
      reject(callError(call, 502, `${call.service} answered with ${what}`, { cause }));
    }),
  );
}

/** The body as JSON, or undefined if it is not JSON; its keys are not checked. */
export function readJson({ headers, body }: WholeAnswer): unknown {
  if (isCoded(headers) || !isJsonType(mediaTypeOf(headers['content-type']))) return undefined;
  try {
    return parseShallowJson(decode(charsetOf(headers), body, true));
  } catch {
    return undefined;
  }
}

/** The header `Retry-After`, if it is valid. */
export function retryAfterOf({ 'retry-after': value }: IncomingHttpHeaders): string | undefined {
  return value !== undefined && RETRY_AFTER.test(value) ? value : undefined;
}

/** The error of an answer from 400 to 599. Without the uniform body it has only the status. */
export function toServiceError(call: CallName, answer: WholeAnswer): ServiceError {
  const { status } = answer;
  // Callers further up need to know when to repeat a call, and whether to.
  const headers: Record<string, string> = {};
  const retryAfter = retryAfterOf(answer.headers);
  if (retryAfter !== undefined) headers['retry-after'] = retryAfter;
  if (answer.headers[NO_RETRY_HEADER] === 'true') headers[NO_RETRY_HEADER] = 'true';
  const body = answer.body.length > MAX_ERROR_BYTES ? undefined : readErrorBody(readJson(answer));
  if (body === undefined) return callError(call, status, `${call.service} answered ${status}`, { headers });
  const { message, description, error_code: code } = body;
  return callError(call, status, description, { message, errorCode: adoptErrorCode(code.name, code.value), headers });
}

/** Takes the header with the calls out of an answer: no handler sees it, and none can pass it on to the public. */
function takeCalls({ headers, rawHeaders }: AnswerSource): CallTuple[] {
  const text = headers[CALLS_HEADER];
  if (text === undefined) return [];
  delete headers[CALLS_HEADER];
  for (let i = rawHeaders.length - 2; i >= 0; i -= 2)
    if (rawHeaders[i]?.toLowerCase() === CALLS_HEADER) rawHeaders.splice(i, 2);
  return parseCalls(String(text));
}

function isCoded(headers: IncomingHttpHeaders): boolean {
  return (headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity';
}
