/** Middleware that replaces the body of a reply with a stream that reads it. */

import { Readable, Transform } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { reply, type HandlerResult, type Postern } from 'postern';
import { rawExchange } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

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
    await expect.poll(() => app.metrics.expose()).toContain('active_task_count 0.0');
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
