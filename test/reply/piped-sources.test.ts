/**
 * When nobody wants a stream any more, the streams that are piped into it are destroyed, too: `pipe` of Node.js does
 * not do that, and each would hold its file open for good.
 */

import { createReadStream } from 'node:fs';
import { createServer, get as httpGet, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable, Transform } from 'node:stream';
import { createGzip } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NotFound, reply, type HandlerResult, type Middleware, type Postern } from 'postern';
import { activeTasksOf, createApp, serve } from '../support/serve.js';
import { WireConnection } from '../support/strict-client.js';
import { askOrLeave } from '../support/wire.js';

/** A file that is longer than all buffers on its way to a client. */
const file = (): Readable => createReadStream(process.execPath);
const upper = (): Transform =>
  new Transform({ transform: (chunk: Buffer, _encoding, done) => done(null, String(chunk).toUpperCase()) });

/** Bodies with the streams that are piped into them, the first source first. */
const BODIES: Record<string, (keep: (...sources: Readable[]) => void) => HandlerResult | Promise<HandlerResult>> = {
  'a file into gzip': (keep) => {
    const source = file();
    keep(source);
    return source.pipe(createGzip({ level: 0 }));
  },
  'a file through three streams': (keep) => {
    const source = file();
    const [first, second] = [new PassThrough(), upper()];
    keep(source, first, second);
    return source.pipe(first).pipe(second).pipe(createGzip({ level: 0 }));
  },
  'two sources into one': (keep) => {
    const [one, other, target] = [file(), file(), new PassThrough()];
    keep(one, other);
    one.pipe(target, { end: false });
    return other.pipe(target);
  },
  'a generator': (keep) => {
    const source = Readable.from((async function* () { for (;;) yield 'x'.repeat(10_000); })());
    keep(source);
    return source.pipe(new PassThrough());
  },
  'a piped file in a reply': (keep) => {
    const source = file();
    keep(source);
    return reply(source.pipe(new PassThrough()), { headers: { 'content-type': 'text/plain' } });
  },
  'the reply of another server': async (keep) => {
    const source = await startEndless();
    keep(source);
    return source.pipe(new PassThrough());
  },
};

async function startEndless(): Promise<IncomingMessage> {
  const server = createServer((_req, res) => void Readable.from((function* () { for (;;) yield 'x'.repeat(9999); })())
    .pipe(res));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve) => {
    httpGet({ port, host: '127.0.0.1', agent: false }, resolve).on('error', () => undefined);
  });
}

const replaceWith = (create: () => HandlerResult): Middleware => async (_ctx, next) => {
  await next();
  return create();
};

/** What leaves a body unwanted: middleware around the handler, and the request. */
const ENDS: Record<string, { add?: (app: Postern) => unknown; method?: string; disconnects?: boolean }> = {
  'HEAD': { method: 'HEAD' },
  'a 304': { add: (app) => app.use(async (_ctx, next) => { (await next()).status = 304; }) },
  'a 204': { add: (app) => app.use(async (_ctx, next) => { (await next()).status = 204; }) },
  'another body that middleware assigns': {
    add: (app) => app.use(async (_ctx, next) => { (await next()).body = 'other'; }),
  },
  'another reply of middleware': { add: (app) => app.use(replaceWith(() => 'other')) },
  'an error of middleware': { add: (app) => app.use(replaceWith(() => { throw new NotFound(); })) },
  'a client that disconnects': { disconnects: true },
};

const cases = Object.keys(ENDS).flatMap((end) => Object.keys(BODIES).map((body) => ({ body, end })));

describe.for(['as the result', 'as the result of middleware'])('%s', (where) => {
  test.for(cases)('$body is freed by $end', async ({ body, end }) => {
    const { add, method = 'GET', disconnects = false } = ENDS[end] as (typeof ENDS)[string];
    const sources: Readable[] = [];
    const create = (): HandlerResult | Promise<HandlerResult> =>
      BODIES[body]?.((...streams) => {
        // A source that is destroyed may say that it was.
        for (const stream of streams) stream.on('error', () => undefined);
        sources.push(...streams);
      });
    const app = createApp();
    add?.(app);
    if (where === 'as the result') app.get('/', create);
    else app.get('/', { middleware: [() => create()] }, () => 'unreachable');
    const { port } = await serve(app);
    await askOrLeave(port, method, disconnects);
    expect(sources.length).toBeGreaterThan(0);
    await expect.poll(() => sources.map(({ closed }) => closed)).toEqual(sources.map(() => true));
    await expect.poll(() => activeTasksOf(app)).toBe(0);
  });
});

test.for(Object.keys(BODIES))('%s that its client left before its handler returned it is freed', async (body) => {
  const sources: Readable[] = [];
  const app = createApp();
  let arrived = false;
  app.get('/', async (ctx) => {
    arrived = true;
    await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
    return BODIES[body]?.((...streams) => {
      for (const stream of streams) stream.on('error', () => undefined);
      sources.push(...streams);
    });
  });
  const { port } = await serve(app);
  const client = await WireConnection.open(port);
  await client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await expect.poll(() => arrived).toBe(true);
  await client.destroy();
  await expect.poll(() => sources.length).toBeGreaterThan(0);
  await expect.poll(() => sources.map(({ closed }) => closed)).toEqual(sources.map(() => true));
});

test('a piped stream that is read to its end arrives whole, and is freed', async () => {
  const source = Readable.from(['a', 'b', 'c']);
  const app = createApp().get('/', () => source.pipe(upper()).pipe(new PassThrough()));
  expect(await (await app.request('/')).text()).toBe('ABC');
  await expect.poll(() => source.closed).toBe(true);
});
