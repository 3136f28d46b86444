/** Middleware that replaces the body of a reply with a stream that reads it. */

import { createReadStream } from 'node:fs';
import { PassThrough, pipeline, Readable, Transform } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { reply, type HandlerResult, type Postern } from 'postern';
import { rawExchange } from '../support/raw.js';
import { activeTasksOf, createApp, serve } from '../support/serve.js';
import { WireConnection } from '../support/strict-client.js';

const TEXT = 'some text, '.repeat(10_000);
const CHUNKS = TEXT.match(/[^]{1,5000}/g) as string[];

/** Bodies of the handler; each calls back when it is closed. */
const BODIES: Record<string, (closed: () => void) => HandlerResult> = {
  'a generator': (closed) => (async function* () {
    try {
      yield* CHUNKS;
    } finally {
      closed();
    }
  })(),
  'a Readable': (closed) => Readable.from(CHUNKS).on('close', closed),
  'a ReadableStream': (closed) => {
    const rest = CHUNKS.map((chunk) => Buffer.from(chunk));
    return new ReadableStream({
      pull: (controller) => {
        const next = rest.shift();
        if (next === undefined) {
          controller.close();
          closed();
        } else controller.enqueue(next);
      },
      cancel: closed,
    });
  },
};
type Body = AsyncIterable<string | Buffer>;
const upper = async function* (body: unknown): AsyncGenerator<string> {
  for await (const chunk of body as Body) yield String(chunk).toUpperCase();
};
const upperStream = (): Transform =>
  new Transform({ transform: (chunk: Buffer, _encoding, done) => done(null, String(chunk).toUpperCase()) });
const TRANSFORMS: Record<string, (body: unknown) => object> = {
  'a generator': upper,
  'Readable.from': (body) => Readable.from(upper(body)),
  'a pipe into a Transform': (body) => {
    if (body instanceof ReadableStream)
      return body.pipeThrough(
        new TransformStream({
          transform: (chunk, controller) =>
            controller.enqueue(Buffer.from(String(Buffer.from(chunk as Uint8Array)).toUpperCase())),
        }),
      );
    return (body instanceof Readable ? body : Readable.from(body as Body)).pipe(upperStream());
  },
};

const combinations = Object.keys(BODIES).flatMap((body) =>
  Object.keys(TRANSFORMS).flatMap((how) => ['assigned', 'returned'].map((way) => ({ body, how, way }))),
);

function transforming({ body, how, way }: (typeof combinations)[number], closed: () => void): Postern {
  const app = createApp();
  app.use(async (_ctx, next) => {
    const inner = await next();
    if (way === 'returned') return reply(TRANSFORMS[how]?.(inner.body));
    inner.body = TRANSFORMS[how]?.(inner.body);
    return undefined;
  });
  return app.get('/', () => BODIES[body]?.(closed));
}

describe.for(combinations)('$body, $way as $how', (combination) => {
  test('arrives whole', async () => {
    let closed = 0;
    const app = transforming(combination, () => void (closed += 1));
    expect(await (await app.request('/')).text()).toBe(TEXT.toUpperCase());
    await expect.poll(() => closed).toBe(1);
  });

  test('is freed when the client disconnects', async () => {
    let closed = 0;
    const app = transforming(combination, () => void (closed += 1));
    const response = await app.request('/');
    await response.body?.cancel();
    if (combination.body !== 'a generator') await expect.poll(() => closed).toBe(1);
    await expect.poll(() => activeTasksOf(app)).toBe(0);
  });

  test('is freed after HEAD', async () => {
    let closed = 0;
    const { port } = await serve(transforming(combination, () => void (closed += 1)));
    expect(await rawExchange(port, 'HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toContain('200 OK');
    // A generator that has not begun has nothing to free.
    if (combination.body !== 'a generator') await expect.poll(() => closed).toBe(1);
  });
});

test('a stream is freed at once when a value takes its place', async () => {
  let close = (): void => undefined;
  const closed = new Promise<void>((resolve) => (close = resolve));
  const app = createApp().get('/', () => BODIES['a Readable']?.(close));
  app.use(async (_ctx, next) => {
    const reply = await next();
    await closed;
    return reply;
  });
  app.use(async (_ctx, next) => {
    (await next()).body = 'other';
  });
  expect(await (await app.request('/')).text()).toBe('other');
});

/** Bodies that have no end, or not yet. */
const OPEN: Record<string, (closed: () => void) => HandlerResult> = {
  'a file': (closed) => createReadStream(process.execPath).on('close', closed),
  'a Readable that goes on': (closed) =>
    new Readable({ read() { setImmediate(() => this.push(TEXT)); } }).on('close', closed),
  'a Readable that is quiet': (closed) => new Readable({ read() {} }).on('close', closed),
  'a generator': (closed) => Readable.from((async function* () { for (;;) yield TEXT; })()).on('close', closed),
  'a ReadableStream': (closed) =>
    new ReadableStream({ pull: (controller) => controller.enqueue(Buffer.from(TEXT)), cancel: closed }),
};

/** Ways to read the body by other streams. */
const READERS: Record<string, (body: Body) => Readable> = {
  'Readable.from, piped': (body) => Readable.from(body).pipe(new PassThrough()),
  'Readable.from, piped twice': (body) => Readable.from(body).pipe(upperStream()).pipe(new PassThrough()),
  'Readable.from of a generator, piped': (body) => Readable.from(upper(body)).pipe(new PassThrough()),
  'Readable.from of a generator': (body) => Readable.from(upper(body)),
  'pipeline': (body) => pipeline(Readable.from(body), new PassThrough(), () => undefined),
};

/** How a reply ends before its body does: by its request, or by middleware around. */
const ENDS = ['HEAD', 'a 304', 'another body', 'a client that disconnects'];

describe.for(Object.keys(READERS))('a body without an end that %s reads', (reader) => {
  test.for(ENDS.flatMap((end) => Object.keys(OPEN).map((body) => ({ body, end }))))(
    'is freed without harm: $body, $end',
    async ({ body, end }) => {
      let closed = 0;
      const app = createApp().get('/', () => OPEN[body]?.(() => void (closed += 1)));
      app.use(async (_ctx, next) => {
        const answered = await next();
        if (end === 'a 304') answered.status = 304;
        if (end === 'another body') answered.body = 'other';
      });
      app.use(async (_ctx, next) => {
        const answered = await next();
        answered.body = READERS[reader]?.(answered.body as Body);
      });
      const { port } = await serve(app);
      const client = await WireConnection.open(port);
      onTestFinished(() => client.destroy());
      const method = end === 'HEAD' ? 'HEAD' : 'GET';
      await client.write(`${method} / HTTP/1.1\r\nHost: x\r\n\r\n`);
      if (end !== 'a client that disconnects') await client.finalResponse(method);
      else {
        const isQuiet = body === 'a Readable that is quiet';
        if (!isQuiet) await expect.poll(() => client.rest.length).toBeGreaterThan(1000);
        await client.destroy();
      }
      await expect.poll(() => closed).toBe(1);
      await expect.poll(() => activeTasksOf(app)).toBe(0);
    },
  );
});
