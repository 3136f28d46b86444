/** The access log: one line for each request, whatever became of it. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { reply, type Postern } from 'postern';
import { rawExchange } from '../support/raw.js';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

function logged(options: object = {}): { app: Postern; lines: () => Record<string, unknown>[] } {
  const logger = createRecorder();
  const app = createApp({ logger, accessLog: true, ...options });
  return {
    app,
    lines: () =>
      logger.entries
        .filter(({ level, message }) => level === 'info' && message === 'request')
        .map(({ object }) => object),
  };
}

async function* chunks(): AsyncGenerator<string> {
  yield 'grü';
  yield 'ß';
}

test('a line has method, route, target, status, ms, bytes and request_id', async () => {
  const { app, lines } = logged();
  app.get('/users/:id', ({ params }) => ({ id: params.id }));
  app.get('/text', () => 'grüß');
  app.get('/stream', () => chunks());
  app.get('/none', () => undefined);
  app.get('/raw', (ctx) => void ctx.raw.res.end('by hand'));
  expectFailures(app, 500).get('/fails', () => {
    throw new Error('boom');
  });
  app.post('/made', () => reply(Buffer.alloc(10), { status: 201 }));
  const { url } = await serve(app);
  const send = async (path: string, method = 'GET'): Promise<void> => {
    await (await fetch(url + path, { method, headers: { 'x-request-id': 'r' } })).arrayBuffer();
  };
  await send('/users/7?token=secret');
  await send('/users/7', 'HEAD');
  await send('/text');
  await send('/stream');
  await send('/none');
  await send('/raw');
  await send('/fails?token=secret');
  await send('/made', 'POST');
  await send('/nowhere?token=secret');
  await send('/text', 'DELETE');
  const line = (method: string, route: string | null, target: string, status: number, bytes: unknown) =>
    ({ method, route, target, status, bytes, ms: expect.any(Number), request_id: 'r' });
  await expect.poll(lines).toHaveLength(10);
  expect(lines()).toEqual([
    line('GET', '/users/:id', '/users/7', 200, 10),
    line('HEAD', '/users/:id', '/users/7', 200, 0),
    line('GET', '/text', '/text', 200, 6),
    line('GET', '/stream', '/stream', 200, 6),
    line('GET', '/none', '/none', 204, 0),
    line('GET', '/raw', '/raw', 200, 7),
    line('GET', '/fails', '/fails', 500, 169),
    line('POST', '/made', '/made', 201, 10),
    line('GET', null, '/nowhere', 404, expect.any(Number)),
    line('DELETE', null, '/text', 405, expect.any(Number)),
  ]);
  for (const { ms } of lines()) expect(ms).toBeGreaterThan(0);
});

test('what could not be parsed is a line, with null for what it does not tell', async () => {
  const { app, lines } = logged();
  const { port } = await serve(app);
  const reply = await rawExchange(port, 'GET /?token=secret HTTP/1.1\r\nbroken\r\n\r\n');
  expect(lines()).toEqual([
    {
      method: null,
      route: null,
      target: null,
      status: 400,
      ms: 0,
      bytes: (reply.split('\r\n\r\n')[1] as string).length,
      request_id: null,
    },
  ]);
});

test.for([
  ['a refused head', 'GET /x?token=secret HTTP/1.1\r\n\r\n', 400, '/x'],
  ['a method that is not served', 'CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n', 501, 'h:1'],
  ['an expectation that is not met',
    'GET /x?token=secret HTTP/1.1\r\nHost: x\r\nExpect: more\r\nConnection: close\r\n\r\n', 417, '/x'],
] as const)('%s is a line, and its id that of the reply', async ([, request, status, target]) => {
  const { app, lines } = logged();
  expectFailures(app, status);
  const { port } = await serve(app);
  const text = await rawExchange(port, request);
  expect(lines()).toMatchObject([{ status, target, route: null, request_id: /x-request-id: (\S+)/i.exec(text)?.[1] }]);
});

test('a client that left is a line with 499', async () => {
  const { app, lines } = logged();
  let arrived = (): void => undefined;
  const running = new Promise<void>((resolve) => (arrived = resolve));
  app.get('/slow', async ({ signal }) => {
    arrived();
    await once(signal, 'abort');
    return 'late';
  });
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write('GET /slow?token=secret HTTP/1.1\r\nHost: x\r\n\r\n'));
  await running;
  socket.destroy();
  await expect.poll(lines)
    .toMatchObject([{ method: 'GET', route: '/slow', target: '/slow', status: 499, bytes: 0 }]);
});

test('pipelined requests are a line each, in order', async () => {
  const { app, lines } = logged();
  app.get('/:n', ({ params }) => params.n);
  const { port } = await serve(app);
  await rawExchange(
    port,
    ['1', '22', '333']
      .map((n) => `GET /${n} HTTP/1.1\r\nHost: x\r\n${n === '333' ? 'Connection: close\r\n' : ''}\r\n`)
      .join(''),
  );
  expect(lines().map(({ target, bytes }) => [target, bytes])).toEqual([['/1', 1], ['/22', 2], ['/333', 3]]);
});

test.for([
  [true, [503]],
  ['all', [200, 200, 200, 503]],
] as const)('with accessLog: %j, monitoring requests are logged with status %j', async ([accessLog, statuses]) => {
  const { app, lines } = logged({ accessLog });
  for (const path of ['/users/ping/', '/users/metrics/', '/users/health/']) await app.request(path);
  app.health.check('database', () => false);
  expectFailures(app, 503);
  await app.request('/users/health/');
  expect(lines().map(({ status }) => status)).toEqual(statuses);
  expect(lines().every(({ route }) => String(route).startsWith('/users/'))).toBe(true);
});

test.for([true, false])('without the option, requests are logged if stderr is a terminal: %s', async (isTTY) => {
  const before = process.stderr.isTTY;
  process.stderr.isTTY = isTTY;
  onTestFinished(() => void (process.stderr.isTTY = before));
  const { app, lines } = logged({ accessLog: undefined });
  app.get('/', () => 'x');
  await app.request('/');
  expect(lines().length).toBe(isTTY ? 1 : 0);
});

test('with accessLog: false there is no such line', async () => {
  const { app, lines } = logged({ accessLog: false });
  await app.request('/users/ping/');
  expect(lines()).toEqual([]);
});

test('a failure says where, without the query', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500).get('/', () => {
    throw new Error('boom');
  });
  await app.request('/?token=secret');
  await app.request('/nowhere?token=secret');
  expect(logger.entries.map(({ level, object }) => [level, object['target']]))
    .toEqual([['error', '/'], ['debug', '/nowhere']]);
});

test('the target is the path as sent, whatever middleware makes of ctx.raw.req.url', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger, accessLog: true }), 500);
  app.use((ctx, next) => {
    ctx.raw.req.url = '/changed';
    return next();
  });
  app.get('/sent', () => { throw new Error('boom'); });
  await app.request('/sent?token=secret');
  await expect.poll(() => logger.entries.map(({ object, message }) => [message, object['target']]))
    .toEqual([['request failed', '/sent'], ['request', '/sent']]);
});

test.for<[string, unknown, string]>([
  ['a number', 7, '/sent'],
  ['an object', { url: '/object' }, '/sent'],
  ['null', null, '/sent'],
  ['undefined', undefined, '/sent'],
  ['a text', '/original?token=secret', '/original'],
])('originalUrl that middleware set to %s is the target if it is text', async ([, originalUrl, target]) => {
  const { app, lines } = logged();
  app.use((ctx, next) => {
    Object.assign(ctx.raw.req, { originalUrl });
    return next();
  });
  app.get('/sent', () => 'sent');
  expect((await app.request('/sent?token=secret')).status).toBe(200);
  await expect.poll(lines).toHaveLength(1);
  expect(lines()).toMatchObject([{ target, status: 200 }]);
});
