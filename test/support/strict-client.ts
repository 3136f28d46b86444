/** Talks to a server in bytes, and reads what comes back as strictly as a client could. */

import { connect, type Socket } from 'node:net';
import { PATIENCE_MS } from './patience.js';

/** One response, informational ones included. */
export interface WireResponse {
  readonly status: number;
  /** Names in lower case; a name that came twice has both values, joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FIELD_VALUE = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;
const CRLF = '\r\n';

/** Takes responses off a stream of bytes, one after the other (RFC 9112). */
export class ResponseReader {
  #bytes: Buffer = Buffer.alloc(0);
  #chunks: Buffer[] = [];
  #ended = false;

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  /** No more bytes will come. */
  end(): void {
    this.#ended = true;
  }

  /** Bytes that belong to no response yet. */
  get rest(): Buffer {
    if (this.#chunks.length > 0) this.#bytes = Buffer.concat([this.#bytes, ...this.#chunks.splice(0)]);
    return this.#bytes;
  }

  /**
   * The next response, or null as long as it is not whole.
   *
   * @param method of the request that is answered
   * @throws {Error} for what is no response, and for one that broke off
   */
  next(method: string): WireResponse | null {
    const bytes = this.rest;
    const end = bytes.indexOf('\r\n\r\n');
    if (end === -1) return this.#incomplete(bytes.length > 0 ? 'in its head' : null);
    const [statusLine = '', ...lines] = bytes.toString('latin1', 0, end).split(CRLF);
    const [, digits] =
      /^HTTP\/1\.1 ([1-5]\d\d) [\t\x20-\x7e\x80-\xff]*$/.exec(statusLine) ??
      wrong(`status line ${JSON.stringify(statusLine)}`);
    const status = Number(digits);
    const headers = parseFields(lines);
    const start = end + 4;
    if (status < 200 || status === 204 || status === 304 || method === 'HEAD') {
      if (status < 200 || status === 204)
        for (const name of ['content-length', 'transfer-encoding'])
          if (name in headers) wrong(`${name} in a ${status}`);
      return this.#take({ status, headers, body: Buffer.alloc(0) }, start);
    }
    const coding = headers['transfer-encoding'];
    const length = headers['content-length'];
    if (coding !== undefined) {
      if (coding !== 'chunked' || length !== undefined) wrong(`framing by ${JSON.stringify({ coding, length })}`);
      const chunked = readChunks(bytes, start);
      return chunked === null
        ? this.#incomplete('in its chunks')
        : this.#take({ status, headers, body: chunked.body }, chunked.end);
    }
    if (length === undefined) {
      if (headers['connection'] !== 'close') wrong('a body without an end');
      return this.#ended ? this.#take({ status, headers, body: bytes.subarray(start) }, bytes.length) : null;
    }
    if (!/^(?:0|[1-9]\d*)$/.test(length)) wrong(`content-length ${JSON.stringify(length)}`);
    const bodyEnd = start + Number(length);
    return bodyEnd > bytes.length
      ? this.#incomplete('in its body')
      : this.#take({ status, headers, body: bytes.subarray(start, bodyEnd) }, bodyEnd);
  }

  #take(response: WireResponse, end: number): WireResponse {
    this.#bytes = this.#bytes.subarray(end);
    return response;
  }

  #incomplete(where: string | null): null {
    return this.#ended && where !== null
      ? wrong(`the connection ended ${where}: ${JSON.stringify(this.#bytes.toString('latin1', 0, 300))}`)
      : null;
  }
}

/** One connection to a server on the loopback address. */
export class WireConnection {
  /** Resolves when the socket is closed, whoever closed it. */
  readonly closed: Promise<void>;
  readonly socket: Socket;
  readonly #reader = new ResponseReader();
  #isClosed = false;
  #wake: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#isClosed = true;
        this.#reader.end();
        this.#wake();
        resolve();
      });
    });
    // A server that closes may reset what is still on its way.
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      this.#reader.push(chunk);
      this.#wake();
    });
  }

  /** @throws when nobody listens */
  static open(port: number): Promise<WireConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new WireConnection(socket));
      });
    });
  }

  /** Bytes of no response so far. */
  get rest(): Buffer {
    return this.#reader.rest;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Writes the pieces, each in a packet of its own as far as can be. */
  async write(...pieces: readonly (string | Buffer)[]): Promise<void> {
    for (const [index, piece] of pieces.entries()) {
      if (index > 0) await new Promise((resolve) => setImmediate(resolve));
      if (this.#isClosed || !this.socket.writable) return;
      if (!this.socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)) {
        await new Promise<void>((resolve) => {
          this.socket.once('drain', resolve);
          void this.closed.then(resolve);
        });
      }
    }
  }

  /**
   * The next response, informational ones included; null when the server closed instead.
   *
   * @throws {Error} for what is no response, and when none comes in time
   */
  async response(method = 'GET'): Promise<WireResponse | null> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const response = this.#reader.next(method);
      if (response !== null || this.#isClosed) return response;
      const left = deadline - performance.now();
      if (left <= 0)
        throw new Error(
          `no response within ${PATIENCE_MS} ms; so far ${JSON.stringify(this.rest.toString('latin1', 0, 300))}`,
        );
      await this.#activity(left);
    }
  }

  /** The next response that is final. */
  async finalResponse(method = 'GET'): Promise<WireResponse | null> {
    for (;;) {
      const response = await this.response(method);
      if (response === null || response.status >= 200) return response;
    }
  }

  /** Says that nothing more will be written. */
  end(): void {
    this.socket.end();
  }

  /** Cuts the connection. */
  async destroy(): Promise<void> {
    this.socket.destroy();
    await this.closed;
  }

  #activity(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = () => undefined;
        resolve();
      };
    });
  }
}

/** @throws {Error} unless the response is an error with the uniform body (spec 2.5) */
export function assertUniformError({ status, headers, body }: WireResponse, method = 'GET'): void {
  if (status < 400 || status > 599) wrong(`status ${status} of an error`);
  if (headers['content-type'] !== 'application/json') wrong(`content type ${headers['content-type']} of an error`);
  if (method === 'HEAD') return;
  const text = body.toString('utf8');
  const value: unknown = JSON.parse(text);
  const isObject = (object: unknown): object is Record<string, unknown> =>
    typeof object === 'object' && object !== null;
  if (!isObject(value) || Object.keys(value).join() !== 'message,description,error_code') wrong(`error body ${text}`);
  const { message, description, error_code: code } = value as Record<string, unknown>;
  if (typeof message !== 'string' || typeof description !== 'string') wrong(`error body ${text}`);
  if (
    !isObject(code) ||
    Object.keys(code).join() !== 'name,value' ||
    typeof code['name'] !== 'string' ||
    !Number.isInteger(code['value'])
  )
    wrong(`error body ${text}`);
}

function parseFields(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(colon, 0)).toLowerCase();
    const value = line.slice(colon + 1).replace(/^[ \t]+/, '').replace(/[ \t]+$/, '');
    if (!TOKEN.test(name) || !FIELD_VALUE.test(value)) wrong(`field ${JSON.stringify(line)}`);
    const before = headers[name];
    if (before !== undefined && (name === 'content-length' || name === 'transfer-encoding' || name === 'content-type'))
      wrong(`${name} twice`);
    headers[name] = before === undefined ? value : `${before},${value}`;
  }
  return headers;
}

/** A chunked body without extensions and trailers, as Postern sends them; null while it is not whole. */
function readChunks(bytes: Buffer, start: number): { readonly body: Buffer; readonly end: number } | null {
  const parts: Buffer[] = [];
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf(CRLF, at);
    if (lineEnd === -1) return null;
    const line = bytes.toString('latin1', at, lineEnd);
    if (!/^[0-9a-f]+$/i.test(line)) wrong(`chunk size ${JSON.stringify(line)}`);
    const size = parseInt(line, 16);
    const dataEnd = lineEnd + 2 + size;
    if (bytes.length < dataEnd + 2) return null;
    if (bytes.toString('latin1', dataEnd, dataEnd + 2) !== CRLF) wrong('a chunk without its end');
    if (size === 0) return { body: Buffer.concat(parts), end: dataEnd + 2 };
    parts.push(bytes.subarray(lineEnd + 2, dataEnd));
    at = dataEnd + 2;
  }
}

function wrong(what: string): never {
  throw new Error(`no proper response: ${what}`);
}
