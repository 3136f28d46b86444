/**
 * Middleware that was written for Connect and Express, as it is on npm, around replies and errors of ours.
 *
 * @module-tag package
 */

import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { connect, reply, Unauthorized, type ConnectMiddleware, type Postern } from 'postern';
import { activeTasksOf, createApp, createRecorder, expectFailures, serve } from '../support/serve.js';
import { parseResponses, rawExchange } from '../support/raw.js';

const require = createRequire(import.meta.url);
type Factory = (options?: object) => ConnectMiddleware;
const helmet = require('helmet') as Factory;
const cors = require('cors') as Factory;
const compression = require('compression') as Factory;
const morgan = require('morgan') as (format: string, options: object) => ConnectMiddleware;
const multer = require('multer') as (options?: object) => { single(name: string): ConnectMiddleware };

const TEXT = 'text '.repeat(1000);

function routed(app: Postern): Postern {
  app.get('/text', () => TEXT).get('/json', () => ({ a: TEXT })).get('/empty', () => undefined);
  app.get('/refused', () => { throw new Unauthorized('Who are you?', { headers: { 'www-authenticate': 'Basic' } }); });
  app.get('/broken', () => { throw new Error('unforeseen'); });
  app.get('/own', () => reply('own', { headers: { vary: 'x-own' } }));
  app.get('/stream', async function* () { yield TEXT; yield TEXT; });
  return app;
}

const PATHS: readonly (readonly [string, number])[] = [
  ['/text', 200], ['/json', 200], ['/empty', 204], ['/refused', 401], ['/broken', 500], ['/nowhere', 404],
  ['/own', 200], ['/stream', 200], ['/users/health/', 200],
];

const failing = (status: number): number[] => (status === 500 ? [500] : []);

describe('helmet', () => {
  test.for(PATHS)('its headers are on the reply of %s', async ([path, status]) => {
    const app = expectFailures(routed(createApp().use(connect(helmet()))), ...failing(status));
    const response = await app.request(path);
    expect([
      response.status,
      response.headers.get('x-content-type-options'),
      response.headers.get('strict-transport-security'),
    ]).toEqual([status, 'nosniff', expect.stringContaining('max-age')]);
    await response.text();
  });
});

describe('cors', () => {
  test.for(PATHS)('a browser may read the reply of %s, also an error', async ([path, status]) => {
    const app = expectFailures(
      routed(createApp().use(connect(cors({ origin: ['https://a.example'], credentials: true })))),
      ...failing(status),
    );
    const { headers, ...response } = await app.request(path, { headers: { origin: 'https://a.example' } });
    void response;
    expect(headers.get('access-control-allow-origin')).toBe('https://a.example');
    const vary = (headers.get('vary') ?? '').toLowerCase().split(/, */);
    expect(vary).toContain('origin');
    if (status >= 400) expect(vary).toContain('accept');
    if (path === '/own') expect(vary).toContain('x-own');
  });

  test('answers a preflight request itself, which is counted', async () => {
    const app = routed(createApp().use(connect(cors({ origin: true }))));
    const preflight = await app.request('/text', {
      method: 'OPTIONS',
      headers: { origin: 'https://a.example', 'access-control-request-method': 'GET' },
    });
    expect([preflight.status, preflight.headers.get('access-control-allow-methods')])
      .toEqual([204, expect.stringContaining('GET')]);
    await expect.poll(() => app.metrics.expose())
      .toMatch(/http_request_duration_seconds_count\{method="OPTIONS",route="",status_code="204"\} 1\.0/);
  });
});

describe('compression', () => {
  test.for([
    ['/text', TEXT],
    ['/json', JSON.stringify({ a: TEXT })],
    ['/stream', TEXT + TEXT],
  ] as const)('%s comes zipped, and whole', async ([path, body]) => {
    const app = routed(createApp().use(connect(compression({ threshold: 0 }))));
    if (path === '/stream')
      app.use(async (_ctx, next) => {
        (await next()).headers.set('content-type', 'text/plain');
      });
    const { port } = await serve(app);
    const received = await rawExchange(port, `GET ${path} HTTP/1.0\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n`);
    const [response] = parseResponses(received);
    expect([response?.status, response?.headers['content-encoding']]).toEqual([200, 'gzip']);
    expect(gunzipSync(Buffer.from(response?.body ?? '', 'latin1')).toString()).toBe(body);
  });

  test.for([[8, 2_000], [40, 64_000]] as const)('a stream of %i chunks of %i bytes ends', async ([count, size]) => {
    const app = createApp().use(connect(compression({ threshold: 0 })));
    app.get('/', () =>
      reply(
        (async function* () {
          for (let i = 0; i < count; i += 1) yield randomBytes(size / 2).toString('hex');
        })(),
        { headers: { 'content-type': 'text/plain' } },
      ),
    );
    const { url } = await serve(app);
    const response = await fetch(url, { headers: { 'accept-encoding': 'gzip' } });
    expect([response.headers.get('content-encoding'), (await response.text()).length]).toEqual(['gzip', count * size]);
    await expect.poll(() => activeTasksOf(app)).toBe(0);
  });

  test('an error comes as the uniform body', async () => {
    const app = routed(createApp().use(connect(compression({ threshold: 0 }))));
    const { url } = await serve(app);
    const response = await fetch(`${url}/refused`, { headers: { 'accept-encoding': 'gzip' } });
    expect([response.status, response.headers.get('content-encoding'), await response.json()])
      .toEqual([401, 'gzip', expect.objectContaining({ description: 'Who are you?' })]);
  });
});

test('morgan writes a line for each request, errors included', async () => {
  const lines: string[] = [];
  const app = expectFailures(
    routed(
      createApp().use(
        connect(
          morgan(':method :url :status :res[content-length]', {
            stream: { write: (line: string) => lines.push(line.trim()) },
          }),
        ),
      ),
    ),
    500,
  );
  const { url } = await serve(app);
  for (const path of ['/text', '/refused', '/broken', '/nowhere', '/empty']) await (await fetch(url + path)).text();
  await expect.poll(() => lines.length).toBe(5);
  expect(lines.map((line) => line.replace(/ [\d-]+$/, '')))
    .toEqual(['GET /text 200', 'GET /refused 401', 'GET /broken 500', 'GET /nowhere 404', 'GET /empty 204']);
});

describe('multer', () => {
  const upload = (fileSize: number): Postern => {
    const app = createApp();
    app.post('/files', { middleware: [connect(multer({ limits: { fileSize } }).single('file'))] }, (ctx) => {
      const { file, body } = ctx.raw.req as unknown as {
        file: { originalname: string; size: number };
        body: Record<string, string>;
      };
      return { name: file.originalname, size: file.size, title: body['title'] };
    });
    return app;
  };
  const form = (): FormData => {
    const data = new FormData();
    data.set('title', 'A file');
    data.set('file', new Blob(['x'.repeat(5000)]), 'a.txt');
    return data;
  };

  test('reads an upload', async () => {
    const { url } = await serve(upload(10_000));
    expect(await (await fetch(`${url}/files`, { method: 'POST', body: form() })).json())
      .toEqual({ name: 'a.txt', size: 5000, title: 'A file' });
  });

  test('what it gives to next() is an error like any other', async () => {
    const { url } = await serve(expectFailures(upload(10), 500));
    const response = await fetch(`${url}/files`, { method: 'POST', body: form() });
    expect([response.status, await response.json()])
      .toEqual([500, expect.objectContaining({ message: 'Server Error' })]);
  });
});

describe('a middleware of one line', () => {
  test.for<[string, ConnectMiddleware, number]>([
    ['that throws', () => { throw new Unauthorized(); }, 401],
    ['that gives an error to next()', (_req, _res, next) => next(new Unauthorized()), 401],
    ['whose promise rejects', async () => { throw new Unauthorized(); }, 401],
    ['that goes on later', (_req, _res, next) => void setTimeout(next, 5), 200],
    ['that answers', (_req, res) => void res.writeHead(202).end('taken'), 202],
    ['that answers later', (_req, res) => void setTimeout(() => res.writeHead(202).end('taken'), 5), 202],
    ['that answers and goes on', (_req, res, next) => { res.writeHead(202).end('taken'); next(); }, 202],
    ['that goes on twice', (_req, _res, next) => { next(); next(); }, 200],
  ])('%s', async ([, middleware, status]) => {
    const app = createApp().use(connect(middleware)).get('/', () => 'handler');
    const response = await app.request('/');
    expect(response.status).toBe(status);
    expect(await response.text()).toMatch(status === 401 ? /Unauthorized/ : status === 202 ? 'taken' : 'handler');
  });

  test('is a function, or refused', () => {
    expect(() => connect({} as ConnectMiddleware)).toThrow(TypeError);
  });
});

test.for([
  ['set-cookie', 'a=1', 'b=2', 'a=1, b=2'],
  ['link', '</a>; rel="preload"', '</b>; rel="next"', '</a>; rel="preload", </b>; rel="next"'],
  ['vary', 'origin', 'x-own', 'origin, x-own'],
  ['x-other', 'a', 'b', 'b'],
])('the header %s of a middleware and the one of the reply are combined, or the reply has its own', async (header) => {
  const [name, set, own, sent] = header as [string, string, string, string];
  const app = createApp().use(connect((_req, res, next) => { res.setHeader(name, set); next(); }));
  app.get('/', () => reply('ok', { headers: { [name]: own } }));
  expect((await app.request('/')).headers.get(name)).toBe(sent);
});

test.for<[string, (res: ServerResponse) => unknown]>([
  ['an object', (res) => res.writeHead(202, { 'X-A': 'a', 'set-cookie': ['b=1', 'c=2'], 'content-length': 5 })],
  ['a list', (res) => res.writeHead(202, ['X-A', 'a', 'set-cookie', 'b=1', 'set-cookie', 'c=2', 'Content-Length', '5'])],
  ['pairs', (res) => res.writeHead(202, [['X-A', 'a'], ['set-cookie', ['b=1', 'c=2']], ['content-length', 5]] as never)],
  ['an object beside those set before', (res) => {
    res.setHeader('x-a', 'replaced').setHeader('set-cookie', ['b=1', 'c=2']).writeHead(202, { 'X-A': 'a', 'content-length': '5' });
  }],
])('headers that a middleware gives to writeHead as %s are seen by outer middleware, and sent once', async ([, write]) => {
  const seen: unknown[] = [];
  const app = createApp()
    .use(async (_ctx, next) => {
      const { status, headers } = await next();
      seen.push([status, headers.get('x-a'), headers.getSetCookie(), headers.get('content-length')]);
    })
    .use(connect((_req, res) => { write(res); res.end('taken'); }));
  const { port } = await serve(app);
  const received = await rawExchange(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(seen).toEqual([[202, 'a', ['b=1', 'c=2'], '5']]);
  const lines = received.toLowerCase().match(/^(?:x-a|set-cookie|content-length|transfer-encoding):.*$/gm);
  expect(lines?.map((line) => line.trim()).sort()).toEqual(['content-length: 5', 'set-cookie: b=1', 'set-cookie: c=2', 'x-a: a']);
  expect(received.endsWith('\r\n\r\ntaken')).toBe(true);
});

test('an error that outer middleware throws after a middleware has answered is logged', async () => {
  const logger = createRecorder();
  const app = createApp({ logger })
    .use(async (_ctx, next) => {
      await next();
      throw new Error('after the reply');
    })
    .use(connect((_req, res) => void res.writeHead(202).end('taken')));
  expect((await app.request('/')).status).toBe(202);
  await app.close();
  expect(logger.entries).toMatchObject([
    { level: 'error', object: { err: { message: 'after the reply' }, status_code: 500 }, message: 'request failed' },
  ]);
});
