/**
 * A stream below compression is sent as it yields: an event that waits in a buffer of gzip does not arrive. A reply
 * that such middleware writes later is under way until it is written.
 *
 * @module-tag package
 */

import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import {
  brotliCompressSync, createBrotliDecompress, createGunzip, createInflate, deflateSync, gzipSync,
} from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connect, reply, type ConnectMiddleware, type HandlerResult } from 'postern';
import { activeTasksOf, createApp, createRecorder, serve } from '../support/serve.js';

const compression = createRequire(import.meta.url)('compression') as (options?: object) => ConnectMiddleware;

const DECODERS = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress };
type Coding = keyof typeof DECODERS;
const CODINGS = Object.keys(DECODERS) as Coding[];

/** A source that yields a chunk when the test says so. */
class Source {
  #wake: (chunk: string | null) => void = () => undefined;
  readonly #chunks: (string | null)[] = [];

  give(chunk: string | null): void {
    this.#chunks.push(chunk);
    this.#wake(chunk);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      if (this.#chunks.length === 0) await new Promise((resolve) => (this.#wake = resolve));
      const chunk = this.#chunks.shift();
      if (chunk == null) return;
      yield chunk;
    }
  }
}

const BODIES: Record<string, (source: Source) => HandlerResult> = {
  'a generator': (source) => source[Symbol.asyncIterator](),
  'an iterable': (source) => source as object,
  'a Readable': (source) => Readable.from(source),
  'a ReadableStream': (source) => {
    const chunks = source[Symbol.asyncIterator]();
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(Buffer.from(value));
      },
    });
  },
  'a Response': (source) => new Response(BODIES['a ReadableStream']?.(source) as ReadableStream),
};

interface Reading {
  headers(): IncomingMessage['headers'] | undefined;
  /** The part of the body that can be decoded so far. */
  text(): string;
  /** The length of the body so far, as it is sent. */
  bytes(): number;
}

/** Sends a request, and reads its reply as it arrives. */
function ask(port: number, coding: Coding): Reading {
  const outgoing = request({ port, host: '127.0.0.1', agent: false, headers: { 'accept-encoding': coding } }).end();
  onTestFinished(() => void outgoing.destroy());
  let response: IncomingMessage | undefined;
  let text = '';
  let bytes = 0;
  outgoing.on('error', () => undefined).on('response', (incoming: IncomingMessage) => {
    response = incoming.on('data', (chunk: Buffer) => (bytes += chunk.length));
    incoming.pipe(DECODERS[coding]()).on('data', (chunk) => (text += String(chunk))).on('error', () => undefined);
  });
  return { headers: () => response?.headers, text: () => text, bytes: () => bytes };
}

const KINDS: readonly { coding: Coding; type: string }[] = [
  { coding: 'gzip', type: 'text/event-stream' },
  { coding: 'deflate', type: 'text/event-stream' },
  { coding: 'br', type: 'text/event-stream' },
  { coding: 'gzip', type: 'text/plain' },
  { coding: 'gzip', type: 'application/json' },
];

describe.for(Object.keys(BODIES))('%s below compression', (body) => {
  test.for(KINDS)('arrives as it yields ($coding, $type)', async ({ coding, type }) => {
    const source = new Source();
    const app = createApp().use(connect(compression()));
    app.use(async (_ctx, next) => {
      (await next()).headers.set('content-type', type);
    });
    const { port } = await serve(app.get('/', () => BODIES[body]?.(source)));
    const { headers, text } = ask(port, coding);
    let sent = '';
    for (const n of [1, 2, 3]) {
      source.give(`data: ${n}\n\n`);
      sent += `data: ${n}\n\n`;
      await expect.poll(text).toBe(sent);
    }
    expect(headers()).toMatchObject({ 'content-encoding': coding, 'content-type': type });
    source.give(null);
    await expect.poll(() => activeTasksOf(app)).toBe(0);
    expect(text()).toBe(sent);
  });
});

const LINES = Array.from({ length: 5000 }, (_, n) => `line ${n} of a long and rather dull report\n`);
const REPORTS: Readonly<Record<string, () => HandlerResult>> = {
  'a generator': async function* () {
    yield* LINES;
  },
  'a Readable': () => Readable.from(LINES),
};
const COMPRESSED = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };

describe.for(Object.keys(REPORTS))('%s that does not wait, below compression', (body) => {
  test.for(CODINGS)('arrives whole, and not compressed line by line (%s)', async (coding) => {
    const app = createApp().use(connect(compression()));
    app.get('/', () => reply(REPORTS[body]?.(), { headers: { 'content-type': 'text/plain' } }));
    const { port } = await serve(app);
    const { headers, text, bytes } = ask(port, coding);
    const report = LINES.join('');
    await expect.poll(() => text().length).toBe(report.length);
    expect([headers()?.['content-encoding'], text()]).toEqual([coding, report]);
    expect(bytes()).toBeLessThan(2 * COMPRESSED[coding](report).length);
  });
});

const LATE: Readonly<Record<string, () => HandlerResult>> = {
  'a text': () => 'x'.repeat(50_000),
  'bytes': () => Buffer.alloc(50_000, 'x'),
  'a stream': () => Readable.from(['x'.repeat(25_000), 'x'.repeat(25_000)]),
};

test.for(Object.keys(LATE))('the access log has the compressed bytes of %s', async (body) => {
  const logger = createRecorder();
  const app = createApp({ logger, accessLog: true }).use(connect(compression({ threshold: 0 })));
  const { port } = await serve(app.get('/', () => reply(LATE[body]?.(), { headers: { 'content-type': 'text/plain' } })));
  const outgoing = request({ port, host: '127.0.0.1', agent: false, headers: { 'accept-encoding': 'gzip' } }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  let received = 0;
  for await (const chunk of response) received += (chunk as Buffer).length;
  const lines = (): object[] =>
    logger.entries.filter(({ message }) => message === 'request').map(({ object }) => object);
  await expect.poll(lines).toMatchObject([{ status: 200, bytes: received }]);
  expect(received).toBeLessThan(1000);
});

test.for(Object.keys(LATE))('a drain waits for %s that middleware writes later', async (body) => {
  let write = (): void => undefined;
  // As compression, which writes when zlib has ended.
  const later: ConnectMiddleware = (_req, res, next) => {
    const end = res.end;
    res.end = ((...args: unknown[]) => {
      write = () => void Reflect.apply(end, res, args);
      return res;
    }) as typeof end;
    next();
  };
  const app = createApp().use(connect(later)).get('/', () => LATE[body]?.());
  const { url } = await serve(app);
  const response = await fetch(url, { headers: { connection: 'close' } });
  let isClosed = false;
  const closing = app.close().then(() => (isClosed = true));
  expect(/^active_task_count (\S+)/m.exec(app.metrics.expose())?.[1]).toBe('1.0');
  expect(isClosed).toBe(false);
  write();
  expect(await response.text()).toBe('x'.repeat(50_000));
  await closing;
});
