/** Messages for mistakes: what is wrong, where, and what to write instead. */

import { createServer, type Server } from 'node:http';
import { createServer as createNetServer, type AddressInfo } from 'node:net';
import express from 'express';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ApiError, reply, Registry, type Context, type Middleware, type Postern } from 'postern';
import { collectDefaultMetrics } from 'postern/metrics';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

async function takenPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test('a port that is taken, from the option', async () => {
  const port = await takenPort();
  const app = createApp();
  await expect(app.listen({ port, host: '127.0.0.1' })).rejects.toMatchObject({
    code: 'EADDRINUSE',
    message: `cannot listen: port ${port} (the option port) on "127.0.0.1" is in use; end the process that has it, or choose another port (0 picks a free one)`,
    cause: { code: 'EADDRINUSE' },
  });
  expect((await serve(app)).port, 'it may listen afterwards').toBeGreaterThan(0);
});

test('a port of the monitor that is taken says where it came from', async () => {
  const port = await takenPort();
  const app = createApp({ monitor: { port, host: '127.0.0.1' } });
  await expect(serve(app)).rejects.toThrow(
    `cannot listen: port ${port} (monitor.port or MONITOR_PORT) on "127.0.0.1" is in use`,
  );
});

test.for([
  [
    '192.0.2.1',
    'EADDRNOTAVAIL',
    'cannot listen: port 0 (the option port) on "192.0.2.1": the host is not an address of this machine; choose one of these, or leave host out',
  ],
  [
    'no.such.host.invalid',
    'ENOTFOUND',
    'cannot listen: port 0 (the option port) on "no.such.host.invalid": the host has no address; check its spelling, or leave host out',
  ],
] as const)('the host %s', async ([host, code, message]) => {
  const error: unknown = await createApp().listen({ port: 0, host }).catch((thrown: unknown) => thrown);
  // Some machines have no name server.
  if ((error as { code: string }).code !== 'EAI_AGAIN') expect(error).toMatchObject({ code, message });
});

test('a port that needs rights', async () => {
  const app = createApp();
  const denied = Object.assign(new Error('listen EACCES: permission denied'), { code: 'EACCES' });
  vi.spyOn(app.server, 'listen').mockImplementation(
    () => (queueMicrotask(() => app.server.emit('error', denied)), app.server),
  );
  await expect(app.listen({ port: 80 })).rejects.toMatchObject({
    code: 'EACCES',
    message:
      'cannot listen: port 80 (the option port) on all interfaces needs rights that this process lacks; choose a port from 1024 on',
  });
});

test('a second listen(), and a callback, are refused with what to write', async () => {
  const app = createApp();
  await serve(app);
  await expect(app.listen({ port: 0 })).rejects.toThrow(
    new TypeError('the application listens already; call listen() or run() once, or create another application'),
  );
  const listen = app.listen.bind(app) as (...args: unknown[]) => Promise<unknown>;
  await expect(listen({ port: 0 }, () => undefined)).rejects.toThrow(
    new TypeError('listen() takes no callback; write const { url } = await app.listen()'),
  );
});

/** Ways to have one server hand each request to an application twice. */
const TWICE: Readonly<Record<string, (app: Postern, server: Server) => Postern>> = {
  'attached twice': (app, server) => app.attach(server).attach(server, { scope: 'public' }),
  'attached, and made with app.handler': (app) => app.attach(createServer(app.handler)),
  'its own server': (app) => app.attach(app.server),
};

test.for<[() => unknown, string]>([
  [() => new Registry().expose('json' as never), `the format of expose() is "json"; give 'text' or 'openmetrics'`],
  [() => createApp().attach(5 as never), 'attach() takes a server of node:http, not 5'],
  [() => createApp().attach(createNetServer() as never), 'attach() takes a server of node:http, not an object'],
  [() => createApp().attach(express() as never), 'attach() takes a server of node:http, not a function'],
  ...Object.values(TWICE).map((attach): [() => unknown, string] => [
    () => attach(createApp(), createServer()),
    'attach() got a server that serves this application already, so that each handler would run twice; ' +
      'attach it once, without app.handler',
  ]),
  [() => collectDefaultMetrics(undefined as never),
    'collectDefaultMetrics() takes a registry, not undefined; give new Registry()'],
  [() => reply({}, { status: 99 }), 'status of reply() is 99; give a status from 200 to 599, such as 201'],
  [() => reply({}, { code: 201 } as never), 'unknown option "code" of reply(); did you mean "status"?'],
  [() => new ApiError('x', { status: 404 } as never),
    'unknown option "status" of new ApiError(); did you mean "statusCode"?'],
  ...[
    ['billing:8080', '"billing:8080", which has no name; write billing=http://billing:8080'],
    ['10.0.0.7:80', '"10.0.0.7:80", which has no name; write billing=http://10.0.0.7:80'],
    ['http://billing:8080', '"http://billing:8080", which has no name; write billing=http://billing:8080'],
    ['["billing"]', '"[\\"billing\\"]", not a name; write billing,mail=http://10.0.0.7:8080'],
  ].map(([entry = '', message = '']): [() => unknown, string] => [
    () => createApp({ settings: { SERVICE_CONNECTIONS: [entry] } }),
    `SERVICE_CONNECTIONS has ${message}`,
  ]),
  [() => createApp({ settings: { SERVICE_CONNECTIONS: ['billing', 'mail'] } }).service('biling'),
    'service "biling" is not connected (connected: billing, mail); did you mean "billing"?'],
  [() => createApp({ settings: { SERVICE_CONNECTIONS: ['mail'] } }).service('stock'),
    'service "stock" is not connected (connected: mail); add it to SERVICE_CONNECTIONS'],
  [() => createApp().service('stock'),
    'service "stock" is not connected (no service is connected); add it to SERVICE_CONNECTIONS'],
])('%s: %s', ([act, message]) => {
  expect(act).toThrow(new TypeError(message));
});

test.for<[unknown, string]>([
  ['users', '"users"'],
  [new Request('http://localhost/users'), 'an object'],
  [undefined, 'undefined'],
])('a request in memory to %s', async ([target, shown]) => {
  await expect(createApp().request(target as never)).rejects.toThrow(
    new TypeError(`request() got ${shown}; give a path that begins with /, or a URL`),
  );
});

test('hostname for host', async () => {
  await expect(createApp().listen({ hostname: 'x' } as never)).rejects.toThrow(
    new TypeError('unknown option "hostname" of listen(); did you mean "host"?'),
  );
});

const twice: Middleware = async (_ctx, next) => {
  await next();
  return next();
};
test.for<[string, (app: Postern) => unknown, string]>([
  ['a middleware that does nothing', (app) => app.get('/a/:id', { middleware: [function auth() {}] }, () => 1),
    'middleware "auth" of GET /a/:id neither called next() nor returned a reply; return next(), or a reply of its own'],
  [
    'a middleware without a name',
    (app) => app.get('/a/:id', { middleware: [() => undefined] }, () => 1),
    'a middleware without a name of GET /a/:id neither called next() nor returned a reply; return next(), or a reply of its own',
  ],
  ['next() twice', (app) => app.get('/a/:id', { middleware: [twice] }, () => 1),
    'next() was called twice by middleware "twice" of GET /a/:id; call it once and keep its reply'],
  [
    'outside of a route',
    (app) => app.use(function auth() {}),
    'middleware "auth" of GET without a route neither called next() nor returned a reply; return next(), or a reply of its own',
  ],
  ['a function', (app) => app.get('/a/:id', (() => () => 1) as never),
    'GET /a/:id: the value is a function, which JSON loses; call it, or leave it out'],
  ['a Map', (app) => app.get('/a/:id', (() => ({ users: new Map() })) as (ctx: Context) => object),
    'GET /a/:id: /users is a Map, which JSON loses; give Object.fromEntries(map)'],
])('a 500 for %s says in the log what to write', async ([, define, message]) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500);
  define(app);
  expect((await app.request('/a/7')).status).toBe(500);
  expect(logger.entries.filter(({ level }) => level === 'error').map(({ object }) => (object['err'] as Error).message))
    .toEqual([message]);
});
