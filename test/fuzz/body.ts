/**
 * Random bodies over real sockets, in random pieces, too long or broken off: what a handler reads against what was
 * sent.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { Postern, type Context } from 'postern';
import { cut, oneIn, several, type Random } from '../support/random.js';
import { assertUniformError, WireConnection, type WireResponse } from '../support/strict-client.js';
import { assert, assertSame, type Target } from './target.js';

const READERS = ['bytes', 'text', 'json', 'form', 'stream', 'echo', 'twice', 'ignored'] as const;
type Reader = (typeof READERS)[number];

interface Upload {
  readonly reader: Reader;
  readonly body: Buffer;
  readonly chunked: boolean;
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly awaitsContinue: boolean;
  readonly bytes: Buffer;
  /** Where the body starts in `bytes`. */
  readonly start: number;
}

/** Statuses that an upload may be answered with, and the body that goes with 200. */
interface Expected {
  readonly statuses: readonly number[];
  readonly body: Buffer | null;
  /** A stream that has begun its reply when the limit is met can only be cut. */
  readonly mayBreakOff?: boolean;
}

export const body: Target = {
  name: 'body',
  outcomes: [
    ...READERS.map((reader) => `${reader} 200`), 'json 400', 'json 415', 'form 413', 'form 415', 'bytes 413',
    'stream 413', 'text 415', 'cut off 400', 'cut off', 'left', 'closed', 'kept',
  ],
  async run(random, met) {
    const limit = random.pick([0, 1, 10, 100, 1000, 1000, 5000, 100_000, 1_048_576]);
    const app = new Postern('fuzz', { logger: false, bodyLimit: limit });
    const handlers = { running: 0 };
    addRoutes(app, handlers);
    try {
      const { port } = await app.listen({ host: '127.0.0.1', port: 0 });
      await Promise.all(
        several(random, 6, 12, () => several(random, 1, 3, () => randomUpload(random, limit))).map((uploads) =>
          exchange(random, port, uploads, limit, met),
        ),
      );
      await assertIdle(app, handlers);
    } finally {
      await app.close({ timeout: 0 });
    }
  },
};

function addRoutes(app: Postern, handlers: { running: number }): void {
  app.use(async (_ctx, next) => {
    handlers.running += 1;
    try {
      return await next();
    } finally {
      handlers.running -= 1;
    }
  });
  const collect = async (ctx: Context): Promise<Buffer> => {
    const chunks: Buffer[] = [];
    for await (const chunk of ctx.stream()) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks);
  };
  app.post('/bytes', (ctx) => ctx.bytes());
  app.post('/text', (ctx) => ctx.text());
  app.post('/json', async (ctx) => ({ value: await ctx.json() }));
  app.post('/form', async (ctx) => [...(await ctx.form())]);
  app.post('/stream', (ctx) => collect(ctx));
  app.post('/echo', (ctx) => ctx.stream());
  app.post('/twice', async (ctx) => {
    const text = await ctx.text();
    return [text === (await ctx.text()), Buffer.from(await ctx.bytes()).equals(await collect(ctx)), text];
  });
  app.post('/ignored', () => 'ignored');
  app.get('/after', () => 'after');
}

const AFTER = Buffer.from('GET /after HTTP/1.1\r\nHost: x\r\n\r\n');

/** A connection ends behind requests of which more arrives early. */
const MAX_EARLY_BYTES = 60_000;

function byteLength(uploads: readonly Upload[]): number {
  return uploads.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

/** Sends uploads on one connection, the last one maybe not as a whole, and looks at every answer. */
async function exchange(
  random: Random,
  port: number,
  uploads: readonly Upload[],
  limit: number,
  met: (outcome: string) => void,
): Promise<void> {
  const connection = await WireConnection.open(port);
  const end = random.pick(['leaves', 'cut off', 'whole', 'whole', 'whole'] as const);
  const most = random.pick([1, 3, 10]);
  for (let from = 0, to = 0; from < uploads.length; from = to) {
    // What is sent behind an answer that closes the connection can make the client lose that answer.
    do to += 1;
    while (
      to < uploads.length &&
      !mayClose(uploads[to - 1], limit) &&
      !isPolite(uploads[to], limit) &&
      byteLength(uploads.slice(from + 1, to + 1)) < MAX_EARLY_BYTES
    );
    const group = uploads.slice(from, to);
    const last = group.at(-1);
    assert(last !== undefined, 'nothing to send');
    const isCut = end !== 'whole' && to === uploads.length && last.bytes.length > last.start;
    const bytes = group.map((upload) =>
      isCut && upload === last
        ? upload.bytes.subarray(0, upload.start + random.int(upload.bytes.length - upload.start))
        : upload.bytes,
    );
    const isFollowed = !isCut && !mayClose(last, limit);
    if (isPolite(last, limit) && !isCut) {
      await connection.write(last.bytes.subarray(0, last.start));
      const interim = await connection.response('POST');
      if (interim?.status === 100) await connection.write(...cut(random, last.bytes.subarray(last.start), most));
      if (
        interim === null ||
        isClosedBy(last, interim.status === 100 ? await nextAnswer(connection, last) : interim, limit, false, met)
      )
        break;
      continue;
    }
    const written = connection.write(...cut(random, Buffer.concat(isFollowed ? [...bytes, AFTER] : bytes), most));
    if (isCut) {
      await written;
      if (end === 'leaves') {
        met('left');
        break;
      }
      connection.end();
    }
    let closed = false;
    for (const upload of group)
      closed ||= isClosedBy(upload, await answerTo(connection, upload), limit, isCut && upload === last, met);
    if (closed) break;
    if (isFollowed) {
      const after = await connection.finalResponse();
      assertSame(
        [after?.status, after?.body.toString()],
        [200, 'after'],
        'the answer to the request behind',
        uploads.map(describe),
      );
      met('kept');
    }
    await written;
  }
  await connection.destroy();
}

function mayClose(upload: Upload | undefined, limit: number): boolean {
  return (
    upload === undefined ||
    upload.reader === 'ignored' ||
    upload.awaitsContinue ||
    expectedOf(upload, limit).body === null
  );
}

/** Whether a client has to wait for 100 Continue, lest the answer be lost behind what it sends unasked. */
function isPolite(upload: Upload | undefined, limit: number): boolean {
  return (
    upload !== undefined &&
    upload.awaitsContinue &&
    (upload.reader === 'ignored' || expectedOf(upload, limit).body === null)
  );
}

/** Looks at the answer to one upload; true when it is the last one. */
function isClosedBy(
  upload: Upload,
  response: WireResponse | null,
  limit: number,
  isCut: boolean,
  met: (outcome: string) => void,
): boolean {
  const expected = expectedOf(upload, limit);
  if (response === null) {
    assert(isCut || expected.mayBreakOff === true, 'an upload without an answer', describe(upload));
    met('cut off');
    return true;
  }
  try {
    // What does not need the whole body may be answered as if it were whole.
    const early = expected.statuses.filter((status) => status === 413 || status === 415 || upload.reader === 'ignored');
    assertAnswer(response, isCut ? { statuses: [400, ...early], body: expected.body } : expected);
  } catch (error) {
    throw new Error(
      `${JSON.stringify({ ...describe(upload), isCut, limit })} was answered with ${response.status} ${response.body.toString('latin1').slice(0, 300)}`,
      { cause: error },
    );
  }
  met(isCut ? `cut off ${response.status}` : `${upload.reader} ${response.status}`);
  const isClosing = response.headers['connection'] === 'close';
  // node:http closes where 100 Continue was asked for and not sent, as behind replies that are not out yet.
  assert(
    !isClosing || isCut || expected.body === null || upload.reader === 'ignored' || upload.awaitsContinue,
    'a connection was closed behind a body that was read',
    describe(upload),
  );
  if (isClosing) met('closed');
  return isClosing || isCut;
}

/** The final response; an interim one may come once, and only when it was asked for. */
async function answerTo(connection: WireConnection, upload: Upload): Promise<WireResponse | null> {
  const response = await nextAnswer(connection, upload);
  if (response?.status !== 100) return response;
  assert(upload.awaitsContinue, '100 Continue was not asked for', describe(upload));
  return nextAnswer(connection, upload);
}

/**
 * The next response; null where the connection ended instead, or cut one of unknown length, which is all that can be
 * done then.
 */
async function nextAnswer(connection: WireConnection, { reader }: Upload): Promise<WireResponse | null> {
  try {
    return await connection.response('POST');
  } catch (error) {
    if (reader === 'echo' && /the connection ended in its chunks/.test(String(error))) return null;
    throw error;
  }
}

function assertAnswer(response: WireResponse, { statuses, body: expected }: Expected): void {
  assert(statuses.includes(response.status), `status ${response.status} is none of ${statuses.join()}`);
  if (response.status === 200)
    assert(
      expected !== null && response.body.equals(expected),
      `the body is not ${expected?.toString('latin1').slice(0, 300)}`,
    );
  else assertUniformError(response);
}

/** Every handler has ended, and no request counts as active. */
async function assertIdle(app: Postern, handlers: { running: number }): Promise<void> {
  const isIdle = (): boolean => handlers.running === 0 && app.metrics.expose().includes('\nactive_task_count 0.0\n');
  for (let tries = 0; !isIdle(); tries += 1) {
    assert(tries < 500, `${handlers.running} handlers are still running, or requests count as active`);
    await delay(10);
  }
}

function describe({ reader, body: { length }, bytes, start, chunked, ...upload }: Upload): object {
  return {
    reader,
    length,
    chunked,
    ...upload,
    head: bytes.toString('latin1', 0, start),
    body: bytes.toString('latin1', start, start + 200),
  };
}

function randomUpload(random: Random, limit: number): Upload {
  const reader = random.pick(READERS);
  const content = randomBody(random, reader, limit);
  const chunked = oneIn(random, 2);
  const fits = { json: 'application/json', form: 'application/x-www-form-urlencoded', text: 'text/plain' };
  const contentType = oneIn(random, 3)
    ? undefined
    : reader in fits && !oneIn(random, 6)
      ? fits[reader as keyof typeof fits]
      : random.pick(['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'a', '']);
  const contentEncoding = oneIn(random, 12) ? random.pick(['gzip', 'identity', 'Identity', 'br, identity']) : undefined;
  const awaitsContinue = oneIn(random, 8);
  const fields = ['Host: x'];
  if (contentType !== undefined) fields.push(`Content-Type: ${contentType}`);
  if (contentEncoding !== undefined) fields.push(`Content-Encoding: ${contentEncoding}`);
  if (awaitsContinue) fields.push(`Expect: ${random.pick(['100-continue', '100-Continue'])}`);
  if (chunked) fields.push('Transfer-Encoding: chunked');
  else if (content.length > 0 || oneIn(random, 2))
    fields.push(`Content-Length: ${random.pick(['', '', '0'])}${content.length}`);
  const head = Buffer.from(`POST /${reader} HTTP/1.1\r\n${fields.map((field) => `${field}\r\n`).join('')}\r\n`);
  const bytes = Buffer.concat([head, chunked ? encodeChunks(random, content) : content]);
  return { reader, body: content, chunked, contentType, contentEncoding, awaitsContinue, bytes, start: head.length };
}

function encodeChunks(random: Random, content: Buffer): Buffer {
  const chunks = cut(random, content, random.pick([1, 4, 40])).filter(({ length }) => length > 0);
  const size = (n: number): string =>
    `${random.pick(['', '', '0', '000'])}${oneIn(random, 2) ? n.toString(16).toUpperCase() : n.toString(16)}${oneIn(random, 8) ? random.pick([';a', ';a=b', ';a="b c"', ';a;b=c']) : ''}\r\n`;
  const trailer = oneIn(random, 8) ? random.pick(['X: y\r\n', 'X-Request-Id: b\r\n', 'Host: y\r\n']) : '';
  return Buffer.concat([
    ...chunks.flatMap((chunk) => [Buffer.from(size(chunk.length)), chunk, Buffer.from('\r\n')]),
    Buffer.from(`${size(0)}${trailer}\r\n`),
  ]);
}

function randomBody(random: Random, reader: Reader, limit: number): Buffer {
  if (oneIn(random, 4)) {
    // Around the limit.
    const length = Math.max(0, limit + random.int(5) - 2);
    if (length <= 110_000 || oneIn(random, 8)) return Buffer.alloc(length, random.pick(['a', '7', 'é', '[', ' ']));
  }
  if (reader === 'json' || oneIn(random, 8)) return randomJson(random);
  if (reader === 'form') {
    const many = oneIn(random, 12) ? 990 + random.int(20) : random.int(6);
    return Buffer.from(
      several(random, many, many, () =>
        random.pick([
          'a=b',
          'a',
          '=b',
          'é=ü',
          '%C3%A9=%',
          'a+b=c%20d',
          '%zz=%4',
          'a=b=c',
          '%FF=%C3',
          '?a=1',
          '%00',
          '__proto__=x',
          'a=%EF%BB%BF',
          '\ufeffa=',
        ]),
      ).join('&'),
    );
  }
  if (oneIn(random, 3)) return Buffer.from(several(random, 0, 300, () => random.int(256)));
  return Buffer.from(
    several(random, 0, 60, () =>
      random.pick([
        'a',
        'é',
        '漢',
        '😀',
        '\ufeff',
        '\u0000',
        '\r\n',
        '0\r\n\r\n',
        'GET /bytes HTTP/1.1\r\nHost: x\r\n\r\n',
      ]),
    ).join(''),
  );
}

const KEYS = ['a', 'b', '', '__proto__', 'constructor', 'prototype', 'toString', 'é'];

function randomJson(random: Random): Buffer {
  if (oneIn(random, 12)) {
    const depth = 990 + random.int(20);
    return Buffer.from(
      `${random.pick(['[', '[ ', '{"a":']).repeat(depth)}1${random.pick([']', '}']).repeat(depth)}`.replace(
        /^(\{"a":)+1\]+$/,
        '[]',
      ),
    );
  }
  const text = (plain: string): string =>
    JSON.stringify(plain).replace(/[a-z_]/g, (char) =>
      oneIn(random, 12) ? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}` : char,
    );
  const value = (depth: number): string => {
    const kind = random.int(depth > 3 ? 5 : 8);
    if (kind === 0) return text(random.pick(['', 'a', '__proto__', '\ud83d', '😀', '"\\']));
    if (kind < 5)
      return random.pick(['1', '-0', '1e400', '0.1', 'true', 'false', 'null', '12345678901234567890', '"a"']);
    if (kind === 5) return `[${several(random, 0, 3, () => value(depth + 1)).join(',')}]`;
    return `{${several(random, 0, 3, () => `${text(random.pick(KEYS))}:${value(depth + 1)}`).join(random.pick([',', ' ,\n']))}}`;
  };
  const json = `${oneIn(random, 12) ? '\ufeff' : ''}${value(oneIn(random, 3) ? 2 : 0)}`;
  const bytes = Buffer.from(json);
  if (!oneIn(random, 4)) return bytes;
  const at = random.int(bytes.length);
  return Buffer.concat([
    bytes.subarray(0, at),
    Buffer.from(several(random, 0, 2, () => random.pick([0x22, 0x7b, 0x5d, 0x2c, 0xff, 0xc3, 0x00, 0x61, 0x5c]))),
    bytes.subarray(at + random.int(2)),
  ]);
}

function expectedOf({ reader, body: content, chunked, contentType, contentEncoding }: Upload, limit: number): Expected {
  if (reader === 'ignored') return { statuses: [200], body: Buffer.from('ignored') };
  if (reader === 'json' && !chunked && content.length === 0) return { statuses: [400], body: null };
  const isForm =
    contentType === undefined || contentType === 'application/x-www-form-urlencoded' || content.length === 0;
  const wrongType = (reader === 'json' && contentType !== 'application/json') || (reader === 'form' && !isForm);
  const isCoded = contentEncoding !== undefined && contentEncoding.toLowerCase() !== 'identity';
  // A chunked body may have no byte: only its end shows whether it has a wrong type, unless it is too large before.
  if (reader === 'json' && chunked && !isCoded && content.length === 0) return { statuses: [400], body: null };
  if (chunked && !isCoded && wrongType && content.length > limit) return { statuses: [413], body: null };
  if (wrongType || isCoded) return { statuses: [415], body: null };
  if (content.length > limit) return { statuses: [413], body: null, mayBreakOff: reader === 'echo' && chunked };
  const text = new TextDecoder().decode(content);
  if (reader === 'json') {
    const value = parse(content);
    return value === undefined
      ? { statuses: [400], body: null }
      : { statuses: [200], body: Buffer.from(JSON.stringify({ value })) };
  }
  // A form is no text: its first name keeps a byte order mark (URL standard, section 5.1).
  const form = new TextDecoder('utf-8', { ignoreBOM: true }).decode(content);
  if (reader === 'form')
    return form.split('&').length > 1000
      ? { statuses: [413], body: null }
      : { statuses: [200], body: Buffer.from(JSON.stringify(parseForm(form))) };
  if (reader === 'text') return { statuses: [200], body: Buffer.from(text) };
  if (reader === 'twice') return { statuses: [200], body: Buffer.from(JSON.stringify([true, true, text])) };
  return { statuses: [200], body: content };
}

/** The value of JSON that is taken; undefined for what is refused. */
function parse(content: Buffer): unknown {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(content));
  } catch {
    return undefined;
  }
  const waiting: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value: current, depth } = next;
    if (typeof current !== 'object' || current === null) continue;
    if (depth === 1000) return undefined;
    for (const [key, child] of Object.entries(current)) {
      const isPrototype = key === 'constructor' && typeof child === 'object' && child !== null && Object.keys(child)
        .includes('prototype');
      if (key === '__proto__' || isPrototype) return undefined;
      waiting.push({ value: child, depth: depth + 1 });
    }
  }
  return value;
}

/** WHATWG URL, section 5.1. */
function parseForm(text: string): [string, string][] {
  const decode = (part: string): string => {
    const bytes: number[] = [];
    const source = Buffer.from(part.replaceAll('+', ' '));
    for (let i = 0; i < source.length; i += 1) {
      const hex = source.toString('latin1', i + 1, i + 3);
      if (source[i] === 0x25 && /^[0-9A-Fa-f]{2}$/.test(hex)) {
        bytes.push(parseInt(hex, 16));
        i += 2;
      } else bytes.push(source[i] ?? 0);
    }
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.from(bytes));
  };
  return text.split('&').filter((part) => part !== '').map((part) => {
    const equals = part.indexOf('=');
    return equals === -1 ? [decode(part), ''] : [decode(part.slice(0, equals)), decode(part.slice(equals + 1))];
  });
}
