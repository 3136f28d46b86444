/**
 * Where the requests in a stream of bytes begin and end, as RFC 9112 has it: the oracle for what a server may take for
 * one.
 *
 * Written after the RFC alone, and stricter than a server has to be only where both readings are refused anyway.
 */

import { METHODS } from 'node:http';

/** One request whose head is whole. */
export interface FramedRequest {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  /** Names in lower case. */
  readonly fields: readonly (readonly [string, string])[];
  /** As latin1; null for one that breaks off, or is malformed. */
  readonly body: string | null;
  /** Whether its request line or framing is one that a server may refuse. */
  readonly isDubious: boolean;
}

/** What a stream of bytes holds. */
export interface FramedStream {
  readonly requests: readonly FramedRequest[];
  /**
   * `clean` behind a whole request, `incomplete` inside of one, `malformed` where nothing that follows can be told to
   * be a request, `closed` behind one after which the server closes the connection, `lost` where nothing is promised of
   * what follows: HTTP/2, wrong chunks where another protocol is asked for, a connection to be closed and kept.
   */
  readonly end: 'clean' | 'incomplete' | 'malformed' | 'closed' | 'lost';
}

/** Without a version it is one of HTTP/0.9. */
const REQUEST_LINE = /^([A-Z-]+)( +)([\x21-\x7e]+)(?:( +)HTTP\/(\d\.\d))?$/;
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/;
const CHUNK_SIZE = /^([0-9A-Fa-f]+)((?:;[\t\x20-\x7e\x80-\xff]*)?)$/;
const CHUNK_EXTENSIONS =
  /^(?:;[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:=(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+|"(?:[\t\x20!\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?)*$/;

/** Thrown where the bytes end, or can't be read on. */
class Stop extends Error {
  constructor(readonly end: 'incomplete' | 'malformed' | 'lost') {
    super(end);
  }
}

/** Takes a stream apart; `text` is latin1. */
export function readStream(text: string): FramedStream {
  const requests: FramedRequest[] = [];
  const reader = new Reader(text);
  try {
    for (;;) {
      reader.skipEmptyLines();
      if (reader.isAtEnd) return { requests, end: 'clean' };
      const head = readHead(reader);
      if (valuesOf(head, 'upgrade').length > 0 && valuesOf(head, 'transfer-encoding').length > 0)
        return { requests, end: 'lost' };
      const index = requests.push({ ...head, body: null }) - 1;
      const { body, isOdd } = readBody(reader, head);
      const request = { ...head, body, isDubious: head.isDubious || isOdd };
      requests[index] = request;
      if (saysBoth(request)) return { requests, end: 'lost' };
      if (endsConnection(request)) return { requests, end: 'closed' };
    }
  } catch (error) {
    if (error instanceof Stop) return { requests, end: error.end };
    throw error;
  }
}

type Head = Omit<FramedRequest, 'body'>;

function readHead(reader: Reader): Head {
  const line = reader.line();
  const [, method = '', before, target = '', after, version = '0.9'] = REQUEST_LINE.exec(line) ?? stop('malformed');
  // What HTTP/2 begins with: node:http may close at once, with answers still to be sent.
  if (method === 'PRI') stop('lost');
  if (!METHODS.includes(method)) stop('malformed');
  const fields = readFields(reader);
  const head = {
    method,
    target,
    version,
    fields,
    isDubious: before !== ' ' || after !== ' ' || (version !== '1.0' && version !== '1.1'),
  };
  // A field without a coding says nothing, and a coding besides chunked nothing of the framing.
  const codings = valuesOf(head, 'transfer-encoding');
  return {
    ...head,
    isDubious:
      head.isDubious || (codings.length > 0 && (codings.join().toLowerCase() !== 'chunked' || version !== '1.1')),
  };
}

function readFields(reader: Reader): (readonly [string, string])[] {
  const fields: (readonly [string, string])[] = [];
  for (let line = reader.line(); line !== ''; line = reader.line()) {
    const [, name = '', value = ''] = FIELD.exec(line) ?? stop('malformed');
    // node:http takes no tab behind what frames a message.
    const isFraming = /^(?:content-length|transfer-encoding)$/i.test(name);
    fields.push([name.toLowerCase(), value.replace(/^[\t ]+/, '').replace(isFraming ? / +$/ : /[\t ]+$/, '')]);
  }
  return fields;
}

interface Body {
  readonly body: string;
  /** Whether there is something that has no meaning and does no harm, and that a server may refuse. */
  readonly isOdd: boolean;
}

/** RFC 9112, section 6.3. */
function readBody(reader: Reader, head: Head): Body {
  const lengths = valuesOf(head, 'content-length');
  const codings = listOf(head, 'transfer-encoding');
  if (codings.length > 0) {
    if (lengths.length > 0 || codings.at(-1) !== 'chunked' || codings.indexOf('chunked') < codings.length - 1)
      stop('malformed');
    return readChunks(reader);
  }
  if (lengths.length === 0) return { body: '', isOdd: false };
  const [length = ''] = lengths;
  if (lengths.length > 1 || !/^\d+\t*$/.test(length)) stop('malformed');
  return { body: reader.take(sizeOf(length.trimEnd())), isOdd: length.endsWith('\t') };
}

/** What has more than 64 bits overflows somewhere. */
function sizeOf(digits: string): number {
  return BigInt(digits) < 2n ** 64n ? Number(digits) : stop('malformed');
}

function readChunks(reader: Reader): Body {
  let [body, isOdd] = ['', false];
  for (;;) {
    const [, digits = '', extensions = ''] = CHUNK_SIZE.exec(reader.line()) ?? stop('malformed');
    const size = sizeOf(`0x${digits}`);
    isOdd ||= !CHUNK_EXTENSIONS.test(extensions);
    if (size === 0) break;
    body += reader.take(size);
    if (reader.take(2) !== '\r\n') stop('malformed');
  }
  // Trailers that would say something of the framing are not to be sent (RFC 9110, section 6.5.1).
  if (readFields(reader).some(([name]) => name === 'content-length' || name === 'transfer-encoding')) stop('malformed');
  return { body, isOdd };
}

/** HTTP/1.0 that wants the connection closed and kept: servers differ. */
function saysBoth(request: FramedRequest): boolean {
  const options = listOf(request, 'connection');
  return request.version === '1.0' && options.includes('close') && options.includes('keep-alive');
}

function endsConnection(request: FramedRequest): boolean {
  const options = listOf(request, 'connection');
  // What stands behind one that asks for another protocol, node:http drops if it came in the same packet.
  return (
    request.method === 'CONNECT' ||
    valuesOf(request, 'upgrade').length > 0 ||
    options.includes('close') ||
    (request.version === '1.0' && !options.includes('keep-alive'))
  );
}

function valuesOf({ fields }: Pick<FramedRequest, 'fields'>, name: string): string[] {
  return fields.filter(([other]) => other === name).map(([, value]) => value);
}

/** The members of a list, in lower case. */
function listOf(request: Pick<FramedRequest, 'fields'>, name: string): string[] {
  return valuesOf(request, name)
    .flatMap((value) => value.split(','))
    .map((member) =>
      member
        .replace(/^[\t ]+/, '')
        .replace(/[\t ]+$/, '')
        .toLowerCase(),
    )
    .filter((member) => member !== '');
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#text.length;
  }

  /** RFC 9112, section 2.2; node:http skips either half of a line's end as well. */
  skipEmptyLines(): void {
    while (this.#text[this.#at] === '\r' || this.#text[this.#at] === '\n') this.#at += 1;
  }

  /** A line without its end, which is CRLF and nothing else. */
  line(): string {
    const end = this.#text.indexOf('\n', this.#at);
    if (end === -1) stop('incomplete');
    const line = this.#text.slice(this.#at, end);
    this.#at = end + 1;
    return line.endsWith('\r') ? line.slice(0, -1) : stop('malformed');
  }

  take(length: number): string {
    const text = this.#text.slice(this.#at, this.#at + length);
    if (text.length < length) stop('incomplete');
    this.#at += length;
    return text;
  }
}

function stop(end: Stop['end']): never {
  throw new Stop(end);
}
