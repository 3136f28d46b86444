/**
 * What one exchange does to itself, or its client to it, ends neither the process nor any other exchange.
 *
 * @module-tag slow
 */

import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect as connectTo } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connect, type Context } from 'postern';
import { PATIENCE_MS } from '../support/patience.js';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp, expectFailures, serve } from '../support/serve.js';

const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
const CLOSE = 'Connection: close\r\n';

const uncaught: unknown[] = [];
const onUncaught = (error: unknown): void => void uncaught.push(error);
beforeEach(() => void process.on('uncaughtException', onUncaught).on('unhandledRejection', onUncaught));
afterEach(() => {
  process.off('uncaughtException', onUncaught).off('unhandledRejection', onUncaught);
  expect(uncaught.splice(0)).toEqual([]);
});

/** Streams whose chunks come after a while. */
const SLOW: Record<string, () => AsyncIterable<unknown>> = {
  generator: async function* () {
    for (let i = 0; i < 3; i += 1) {
      await sleep(60);
      yield `chunk ${i}\n`;
    }
  },
  readable: () => Readable.from(SLOW['generator']?.() as AsyncIterable<unknown>),
  'web stream': () =>
    ReadableStream.from(SLOW['generator']?.() as AsyncIterable<string>) as unknown as AsyncIterable<unknown>,
  'failing generator': async function* () {
    yield 'chunk\n';
    await sleep(60);
    throw new Error('the source failed');
  },
  'failing at once': async function* () {
    await sleep(60);
    throw new Error('the source failed');
  },
};

describe('a slow stream behind another, whose request breaks off', () => {
  const breaks: Record<string, { first: string; then: string; ends: boolean }> = {
    'a body that ends too soon': { first: 'Content-Length: 9\r\n', then: 'x', ends: true },
    'a body that never begins': { first: 'Content-Length: 1\r\n', then: '', ends: true },
    'a bad chunk': { first: 'Transfer-Encoding: chunked\r\n', then: 'zz\r\n', ends: false },
    'a bad chunk, and more': {
      first: 'Transfer-Encoding: chunked\r\n',
      then: 'zz\r\nmore\r\nand more\r\n\r\n',
      ends: false,
    },
    'a bad chunk, and its end': { first: 'Transfer-Encoding: chunked\r\n', then: 'zz\r\n', ends: true },
  };
  const rows = Object.keys(SLOW).flatMap((first) =>
    Object.keys(SLOW).flatMap((second) => Object.keys(breaks).map((how) => ({ first, second, how }))),
  );
  test.for(rows)('$first, $second, $how', async ({ first, second, how }) => {
    const app = createApp();
    const { first: headers, then, ends } = breaks[how] as (typeof breaks)[string];
    if (first === 'failing at once' || second === 'failing at once') expectFailures(app);
    app.get('/first', () => SLOW[first]?.()).get('/second', () => SLOW[second]?.());
    const { port } = await serve(app);
    const received = await new Promise<string>((resolve) => {
      void rawBehind(port, get('/first') + get('/second', headers), then, ends).then(resolve);
    });
    // Whatever was sent is made of whole heads, and there is one for each request at most.
    expect(received.match(/HTTP\/1\.1 \d{3}/g)?.length ?? 0).toBeLessThanOrEqual(2);
    await expect.poll(() => active(app)).toBe(0);
    app.metrics.clear?.();
  });
});

test('a header that the handler has set on res and that can not be sent is a 500, and its neighbours are answered', async () => {
  const app = expectFailures(createApp(), 500);
  app.get('/bad', (ctx) => {
    ctx.raw.res.setHeader('trailer', 'x');
    return 'x';
  });
  app.get('/good', () => 'good');
  const { port } = await serve(app);
  const [pipelined, ...others] = await Promise.all([
    rawExchange(port, get('/good') + get('/bad') + get('/good', CLOSE)),
    ...Array.from({ length: 20 }, () => rawExchange(port, get('/good', CLOSE))),
  ]);
  expect(parseResponses(pipelined).map(({ status }) => status)).toEqual([200, 500, 200]);
  for (const other of others) expect(parseResponses(other).map(({ body }) => body)).toEqual(['good']);
});

describe('a method of res that somebody has replaced, and that throws', () => {
  test.for(['writeHead', 'write', 'end', 'flushHeaders', 'setHeader', 'getHeaderNames'] as const)(
    '%s',
    async (name) => {
      const app = createApp();
      const patch = (ctx: Context): void => {
        Object.defineProperty(ctx.raw.res, name, { value: () => { throw new Error(`${name} was replaced`); } });
      };
      app.get('/text', (ctx) => (patch(ctx), 'text'));
      app.get('/stream', (ctx) => (patch(ctx), Readable.from(['a', 'b'])));
      app.get('/empty', (ctx) => patch(ctx));
      app.post('/unread', (ctx) => (patch(ctx), 'unread'));
      app.get('/good', () => 'good');
      const { port } = await serve(app);
      const targets = [
        get('/text'),
        get('/stream'),
        get('/empty'),
        `POST /unread HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`,
      ];
      const outcomes = await Promise.all(
        targets.flatMap((bad) => [
          rawExchange(port, get('/good') + bad + get('/good', CLOSE)),
          rawExchange(port, bad.replace('Host: x\r\n', `Host: x\r\n${CLOSE}`)),
          rawExchange(port, get('/good', CLOSE)),
        ]),
      );
      for (const [index, outcome] of outcomes.entries()) {
        if (index % 3 !== 1) expect(outcome, targets[Math.floor(index / 3)]).toContain('good');
        expect((outcome.match(/HTTP\/1\.1 \d{3}/g) ?? []).length).toBeLessThanOrEqual(3);
      }
      await expect.poll(() => active(app)).toBe(0);
      expectFailures(app, ...failuresOf(app));
    },
  );
});

describe('a request behind a slow reply whose body breaks, with more behind it, is answered once', () => {
  const bodies = ['zz\r\n', '5\r\nabcdefgh\r\n', '5\r\nabcde\r\nzz\r\n', 'zz', '-1\r\n', '0\r\nbad trailer\r\n\r\n'];
  const behind = ['', 'x', '\r\n', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 'zz\r\n'.repeat(100)];
  test.for(
    bodies.flatMap((body) =>
      behind.flatMap((more) => ['/read', '/now', '/later', '/nowhere'].map((path) => ({ body, more, path }))),
    ),
  )('$body and $more to $path', async ({ body, more, path }) => {
    const app = createApp();
    app.get('/slow', async () => (await sleep(30), 'slow'));
    app
      .post('/read', (ctx) => ctx.text())
      .post('/now', () => 'now')
      .post('/later', async () => (await sleep(10), 'later'));
    app.get('/', () => 'smuggled');
    const { port } = await serve(app);
    const received = await rawBehind(
      port,
      `${get('/slow')}POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
      more,
      false,
    );
    const responses = parseResponses(received);
    expect(responses.map(({ status }) => status).slice(0, 1)).toEqual([200]);
    expect(responses).toHaveLength(2);
    expect(received).not.toContain('smuggled');
  });
});

describe('a handler that holds the response and writes to it after it was answered in its place', () => {
  type Late = (res: ServerResponse) => unknown;
  const late: Record<string, Late> = {
    setHeader: (res) => res.setHeader('x', 'y').end('late'),
    appendHeader: (res) => res.appendHeader('x', 'y').end('late'),
    setHeaders: (res) => (res.setHeaders(new Map([['x', 'y']])), res.end('late')),
    removeHeader: (res) => (res.removeHeader('content-length'), res.end('late')),
    writeHead: (res) => res.writeHead(201, { x: 'y' }).end('late'),
    write: (res) => (res.write('late'), res.end()),
  };
  /** Calls back when the client has the answer that was given in place of the handler's. */
  type Later = (write: () => void) => Promise<void>;
  const read = (req: IncomingMessage): unknown => req.on('error', () => undefined).resume();
  type Holder = (app: ReturnType<typeof createApp>, timeout: number, later: Later, write: Late) => unknown;
  const holders: Record<string, Holder> = {
    handler: (app, timeout, later, write) =>
      app.post('/held', { timeout }, ({ raw: { req, res } }) => (read(req), later(() => write(res)))),
    'handler that asks for the response late': (app, timeout, later, write) =>
      app.post('/held', { timeout }, (ctx) => new Promise<void>(() => void later(() => write(ctx.raw.res)))),
    middleware: (app, timeout, later, write) => app.post(
      '/held',
      { timeout, middleware: [connect((req, res) => (read(req), void later(() => write(res))))] },
      () => '',
    ),
    mount: (app, _timeout, later, write) =>
      app.mount('/held', (req, res) => (read(req), void later(() => write(res)))),
  };
  const breaks = { 'bad chunk': 'zz\r\n', timeout: '' };
  const rows = Object.keys(holders).flatMap((who) =>
    Object.keys(late).flatMap((how) => Object.keys(breaks).map((why) => ({ who, how, why }))),
  );
  // A mount has no time limit.
  test.for(rows.filter(({ who, why }) => who !== 'mount' || why !== 'timeout'))('$who, $how, $why', async (row) => {
    const { who, how, why } = row as { who: string; how: string; why: keyof typeof breaks };
    const app = createApp();
    if (why === 'timeout') expectFailures(app, 504);
    let wrote = false;
    const answered = new EventEmitter();
    const later: Later = (write) => once(answered, 'answered').then(write);
    holders[who]?.(app, why === 'timeout' ? 30 : 2 * PATIENCE_MS, later, (res) => {
      late[how]?.(res);
      wrote = true;
    });
    const began = new Promise<void>((resolve) => app.use((_ctx, next) => (setImmediate(resolve), next())));
    const { port } = await serve(app);
    const received = await rawBehind(
      port,
      'POST /held HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n',
      breaks[why],
      false,
      began,
      () => answered.emit('answered'),
    );
    await expect.poll(() => wrote).toBe(true);
    expect(parseResponses(received).map(({ status }) => status)).toEqual([why === 'timeout' ? 504 : 400]);
    expect(received).not.toContain('late');
  });
});

function active(app: ReturnType<typeof createApp>): number {
  return Number(/^active_task_count (\S+)/m.exec(app.metrics.expose())?.[1]);
}

function failuresOf(app: ReturnType<typeof createApp>): number[] {
  return [...app.metrics.expose().matchAll(/^http_request_duration_seconds_count\{.*status_code="(5\d\d)"\}/gm)].map(
    ([, status]) => Number(status),
  );
}

/**
 * Sends some bytes, the rest a moment later, and reads until the server closes the connection.
 *
 * @param moment resolves when the rest may be sent
 * @param onData runs with every packet that comes back
 */
function rawBehind(
  port: number,
  bytes: string,
  then: string,
  ends: boolean,
  moment: Promise<void> = sleep(20),
  onData: () => unknown = () => undefined,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connectTo(port, '127.0.0.1');
    socket.setTimeout(PATIENCE_MS, () => reject(new Error(`the connection is open after ${JSON.stringify(received)}`)));
    socket
      .on('data', (chunk) => (received += chunk.toString('latin1')))
      .on('data', onData)
      .on('error', () => undefined)
      .on('close', () => resolve(received));
    socket.write(bytes);
    void moment.then(() => (ends ? socket.end(then) : socket.write(then)));
  });
}
