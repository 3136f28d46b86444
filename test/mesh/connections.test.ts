/** The option `connections`, and how the log tells that a connected service fails. */

import dns from 'node:dns';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  connect, defineEndpoint, defineErrorCodes, Postern, ServiceUnavailable, type ConnectionOptions, type PosternOptions,
  type SchemaResult, type StandardSchemaV1,
} from 'postern';
import { clientOf } from '../support/clients.js';
import { startPeer } from '../support/peer.js';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

/** An application with one connection, which a function answers. */
function appWith(connection: ConnectionOptions, answer: (request: Request) => Response | Promise<Response>): Postern {
  return createApp({ connections: { billing: connection }, services: { billing: answer } });
}

const echoHeaders = (request: Request): Response => Response.json(Object.fromEntries(request.headers));

test('a connection that no variable names can be called, and is in the settings', async () => {
  const peer = await startPeer((_req, res) => res.end());
  const app = createApp({ connections: { billing: {}, mail: {} }, settings: {
    SERVICE_CONNECTIONS: [`billing=${peer.url}`, 'auth'],
    SERVICE_URL_TEMPLATE: `${peer.url}/{service}`,
  } });
  expect(app.settings.SERVICE_CONNECTIONS).toEqual([`billing=${peer.url}`, 'auth', 'mail']);
  await app.service('billing').get('/x');
  await app.service('mail').get('/x');
  expect(peer.requests.map(({ url }) => url)).toEqual(['/x', '/mail/x']);
  expect(() => app.service('other')).toThrow('connected: billing, auth, mail');
});

test('timeout and retry are defaults of the calls of each kind, which may override them', async () => {
  let asked = 0;
  const unavailable = appWith({ retry: 2 }, () => {
    asked += 1;
    return new Response(null, { status: 503, headers: { 'retry-after': '0' } });
  });
  const client = unavailable.service('billing');
  const attempts = async (call: Promise<unknown>): Promise<number> => {
    asked = 0;
    await call.catch(() => undefined);
    return asked;
  };
  expect(await attempts(client.get('/'))).toBe(3);
  expect(await attempts(client.fetch('/'))).toBe(3);
  expect(await attempts(client.call(defineEndpoint('GET', '/')))).toBe(3);
  expect(await attempts(client.get('/', { retry: undefined }))).toBe(3);
  expect(await attempts(client.get('/', { retry: 0 }))).toBe(1);
  expect(await attempts(client.post('/'))).toBe(1);

  const silent = appWith({ timeout: 20 }, () => new Promise(() => undefined)).service('billing');
  await expect(silent.get('/')).rejects.toMatchObject({ description: 'billing did not answer within 20 ms' });
  await expect(silent.get('/', { timeout: 30 })).rejects.toMatchObject({ description: 'billing did not answer within 30 ms' });
});

test.for<{ what: string; headers: NonNullable<ConnectionOptions['headers']> }>([
  { what: 'a record', headers: { 'X-Token': 't', accept: 'text/csv', gone: undefined, host: 'other' } },
  { what: 'Headers', headers: new Headers({ 'x-token': 't', accept: 'text/csv' }) },
  { what: 'a function', headers: () => ({ 'x-token': 't', accept: 'text/csv' }) },
  { what: 'a function that returns a promise', headers: async () => [['x-token', 't'], ['accept', 'text/csv']] },
])('headers by $what are sent with each call, and a call overrides them', async ({ headers }) => {
  const client = appWith({ headers }, echoHeaders).service('billing');
  expect((await client.get('/')).body).toMatchObject({ 'x-token': 't', accept: 'text/csv' });
  expect(await (await client.fetch('/')).json()).toMatchObject({ 'x-token': 't', accept: 'text/csv' });
  expect((await client.call(defineEndpoint('GET', '/'))).body).toMatchObject({ 'x-token': 't' });
  expect((await client.post('/', { json: 1, headers: { 'x-token': 'own' } })).body)
    .toMatchObject({ 'x-token': 'own', accept: 'text/csv', 'content-type': 'application/json' });
});

test('a function for headers is called once for each call, whatever its attempts', async () => {
  let tokens = 0;
  const seen: (string | null)[] = [];
  const client = appWith({ retry: 1, headers: () => ({ token: `${(tokens += 1)}` }) }, ({ headers }) => {
    seen.push(headers.get('token'));
    return new Response(null, { status: seen.length === 1 ? 503 : 200, headers: { 'retry-after': '0' } });
  }).service('billing');
  await client.get('/');
  await client.get('/');
  expect(seen).toEqual(['1', '1', '2']);
});

test.for<{ what: string; headers: () => never; error: object }>([
  { what: 'throws', headers: () => { throw new Error('no token'); }, error: { message: 'no token' } },
  { what: 'rejects', headers: () => Promise.reject(new Error('no token')) as never, error: { message: 'no token' } },
  { what: 'returns nothing', headers: () => undefined as never,
    error: { message: 'the headers of connections.billing are undefined; return an object' } },
  { what: 'returns an invalid name', headers: () => ({ 'a b': '1' }) as never, error: expect.any(TypeError) },
  { what: 'never settles', headers: () => new Promise(() => undefined) as never,
    error: { statusCode: 504, description: 'the headers of connections.billing were not there within 20 ms' } },
])('a call whose headers come from a function that $what fails', async ({ headers, error }) => {
  const client = appWith({ headers, timeout: 20 }, () => expect.unreachable()).service('billing');
  await expect(client.get('/')).rejects.toMatchObject(error);
});

test('an aborted signal ends the wait for headers', async () => {
  const controller = new AbortController();
  const app = appWith({ headers: () => new Promise(() => undefined) }, () => expect.unreachable());
  const client = app.service('billing');
  const call = client.get('/', { signal: controller.signal });
  controller.abort(new Error('enough'));
  await expect(call).rejects.toThrow('enough');
});

test('headers that throw after the signal has aborted fail the call, and nothing else', async () => {
  const thrown = new Error('no token');
  const headers = (): never => { throw thrown; };
  const client = createApp({ connections: { billing: { headers } } }).service('billing');
  await expect(client.get('/', { signal: AbortSignal.abort() })).rejects.toBe(thrown);
  await new Promise((resolve) => setImmediate(resolve));
});

test.for<{ connections: unknown; message: string }>([
  { connections: [], message: 'connections of new Postern() is an array; give an object' },
  { connections: { 'a b': {} }, message: 'service name "a b" is not a URL path segment; use letters, digits and . _ ~ -' },
  { connections: { billing: true }, message: 'the options of connections.billing are true; give an object' },
  ...[{ url: 'http://b' }, 'http://b'].map((billing) => ({ connections: { billing }, message: 'connections.billing has a '
    + "URL; give it as settings.SERVICE_CONNECTIONS: ['billing=http://10.0.0.7:8080'], or in the variable of that name" })),
  { connections: { billing: { timeuot: 1 } },
    message: 'unknown option "timeuot" of connections.billing; did you mean "timeout"?' },
  { connections: { billing: { timeout: 0 } },
    message: 'timeout of connections.billing is 0; give ms, more than 0 and at most 2147483647' },
  { connections: { billing: { retry: -1 } }, message: 'retry of connections.billing is -1; give a whole number of 0 or more' },
  { connections: { billing: { headers: 'x' } },
    message: 'headers of connections.billing is "x"; give an object, or a function that returns one' },
  { connections: { billing: { headers: { a: {} } } }, message: 'header "a" is an object; give a string, or a list of such' },
  { connections: { billing: { ping: true } }, message: 'ping of connections.billing is true; give false or a path, \'/health\'' },
  { connections: { billing: { ping: 'health' } }, message: 'path "health" must start with one /' },
])('$connections are refused with a remedy', ({ connections, message }) => {
  expect(() => new Postern('shop', { connections } as PosternOptions)).toThrow(new TypeError(message));
});

const pong = { response: 'pong', process_time: expect.stringMatching(/^\d+ ms$/) };

test.for<{ what: string; answer: () => Response; entry: object }>([
  { what: '200', answer: () => new Response('<h1>up'), entry: { status_code: 200, response: pong } },
  { what: '204', answer: () => new Response(null, { status: 204 }), entry: { status_code: 200, response: pong } },
  { what: '302', answer: () => new Response(null, { status: 302 }), entry: { status_code: 502 } },
  { what: '404', answer: () => new Response(null, { status: 404 }), entry: { status_code: 404 } },
  { what: '503', answer: () => new Response('down', { status: 503 }), entry: { status_code: 503 } },
])('a service that is not built with Postern is asked at its own path, and $what is told so', async ({ answer, entry }) => {
  const asked: string[] = [];
  const app = createApp({
    connections: { legacy: { ping: '/health?full' }, odd: { ping: false }, billing: {} },
    services: {
      legacy: ({ url }) => (asked.push(new URL(url).pathname + new URL(url).search), answer()),
      odd: () => expect.unreachable(),
      billing: createApp({}, 'billing'),
    },
  });
  const { response } = (await (await app.request('/users/ping/?depth=2')).json()) as { response: object };
  expect(response).toEqual({
    legacy: { request_time: expect.stringMatching(/^\d+ ms$/), response: expect.anything(), ...entry },
    billing: { status_code: 200, response: pong, request_time: expect.any(String) },
  });
  expect(asked).toEqual(['/health?full']);
});

test('with no service left to ping, a ping of any depth is a pong', async () => {
  const app = createApp({ connections: { legacy: { ping: false } } });
  expect(await (await app.request('/users/ping/?depth=2')).json()).toEqual(pong);
});

test('the log has one line when pings of a service begin to fail, and one when they succeed again', async () => {
  const logger = createRecorder();
  let isUp = false;
  const app = createApp({
    logger,
    connections: { billing: {}, mail: { ping: '/up' } },
    services: { billing: createApp({}, 'billing'), mail: () => new Response(null, { status: isUp ? 200 : 503 }) },
  });
  for (let i = 0; i < 3; i += 1) await app.request(`/users/ping/?depth=${i + 1}`);
  isUp = true;
  for (let i = 0; i < 2; i += 1) await app.request('/users/ping/?depth=1');
  isUp = false;
  await app.request('/users/ping/?depth=1');
  expect(logger.entries.map(({ level, message, object }) => [level, message, object['service']])).toEqual([
    ['warn', 'ping failed', 'mail'],
    ['warn', 'ping recovered', 'mail'],
    ['warn', 'ping failed', 'mail'],
  ]);
});

test.for<{ what: string; answer?: (request: Request) => Response; url?: string; says: string }>([
  { what: 'that is unreachable', url: 'http://127.0.0.1:1', says: 'billing is unreachable' },
  { what: 'with long texts', says: `d${'x'.repeat(40)}…`,
    answer: () => Response.json({ message: 'm'.repeat(9000), description: `d${'x'.repeat(9000)}`,
      error_code: { name: 'n'.repeat(9000), value: 10_003 } }, { status: 500 }) },
  { what: 'with texts beyond ASCII', says: `${'漢'.repeat(13)}…`,
    answer: () => Response.json({ message: '漢'.repeat(3000), description: '漢'.repeat(3000),
      error_code: { name: '漢'.repeat(3000), value: 10_003 } }, { status: 500 }) },
])('a request that fails with a call to a service $what is one line of at most 500 bytes, without a stack', async ({
  answer, url, says,
}) => {
  const lines: string[] = [];
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((line) => lines.push(String(line)) > 0);
  onTestFinished(() => void write.mockRestore());
  const app = new Postern('users', {
    settings: { SERVICE_CONNECTIONS: [`billing=${url ?? 'http://billing'}`] },
    ...(answer === undefined ? {} : { services: { billing: answer } }),
  });
  onTestFinished(() => app.close());
  app.get('/users/:id', async (ctx) => (await ctx.service('billing').get('/invoices/7')).body);
  await app.request('/users/7');
  await app.request('/users/ping/?depth=1');
  const entries = lines.map((line) => JSON.parse(line) as { msg: string; err: object });
  expect(entries.map(({ msg }) => msg)).toEqual(['request failed', 'ping failed']);
  for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(500);
  expect(entries[0]).toMatchObject({ err: { type: 'ServiceError', service: 'billing', method: 'GET', path: '/invoices/7' } });
  expect(entries[0]?.err).toMatchObject({ description: says });
  for (const { err } of entries) expect(err).not.toHaveProperty('stack');
});

const Codes = defineErrorCodes({ busy: 10_004 });
class Busy extends ServiceUnavailable {
  static override errorCode = Codes.busy;
}
const getInvoice = defineEndpoint('GET', '/invoices/:id', { errors: [Busy] });
type Failing = (app: Postern, call: () => Promise<never>) => unknown;
test.for<[line: string, where: string, fail: Failing]>([
  ['health check fails', 'a health check', async (app, call) => {
    app.health.check('billing', call);
    await app.request('/users/health/');
  }],
  ['tracked task failed', 'a tracked promise', (app, call) => app.track(call()).catch(() => undefined)],
  ['job failed', 'a job', (app, call) => app.job('mail', call).catch(() => undefined)],
  ['close hook failed', 'a close hook', (app, call) => app.onClose(call).close()],
  ['middleware failed too late to change the reply', 'late middleware', async (app, call) => {
    app.get('/', { middleware: [connect((_req, _res, next) => (next(), call()))] }, () => 1);
    await app.request('/');
  }],
  ['request failed', 'a typed call that declares the error', async (app) => {
    app.get('/', async (ctx) => (await ctx.service('billing').call(getInvoice, { params: { id: '7' } })).body);
    await app.request('/');
  }],
])('the line "%s" of a failed call in %s has at most 500 bytes and no stack', async ([line, , fail]) => {
  const lines: string[] = [];
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => lines.push(String(text)) > 0);
  onTestFinished(() => void write.mockRestore());
  const error = new Busy('d'.repeat(9000));
  const billing = expectFailures(createApp({}, 'billing'), 503).implement(getInvoice, () => { throw error; });
  const app = new Postern('users', { accessLog: false, services: { billing } });
  onTestFinished(() => app.close());
  await fail(app, () => app.service('billing').get('/invoices/7') as Promise<never>);
  await expect.poll(() => lines.length).toBe(1);
  expect(Buffer.byteLength(lines[0]!)).toBeLessThanOrEqual(500);
  const { msg, err } = JSON.parse(lines[0]!) as { msg: string; err: object };
  expect(msg).toBe(line);
  expect(err).toMatchObject({ type: expect.stringMatching(/^(?:ServiceError|Busy)$/), service: 'billing', method: 'GET',
    path: '/invoices/7', errorCode: { name: 'busy' }, description: expect.stringMatching(/^d+…$/) });
  expect(err).not.toHaveProperty('stack');
});

test('the line of a typed call says why its reply does not match', async () => {
  const issues = [{ message: 'Invalid input: expected number', path: ['items', 0, 'id'] }];
  const validate = (): SchemaResult => ({ issues });
  const response: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'test', validate } };
  const logger = createRecorder();
  const billing = (): Response => Response.json({ items: [{ id: 'x' }] });
  const app = expectFailures(createApp({ services: { billing }, logger }), 502);
  const list = defineEndpoint('GET', '/invoices', { response });
  app.get('/', async (ctx) => (await ctx.service('billing').call(list)).body);
  await app.request('/');
  const { object } = logger.entries.find(({ message }) => message === 'request failed') ?? {};
  expect(object).toMatchObject({ err: { cause: 'body/items/0/id: Invalid input: expected number' } });
});

test('a failed call that a user logs, or that an error of another kind has as its cause, keeps its stack', async () => {
  const lines: string[] = [];
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => lines.push(String(text)) > 0);
  onTestFinished(() => void write.mockRestore());
  const billing = (): Response => new Response(null, { status: 503 });
  const app = new Postern('users', { accessLog: false, services: { billing } });
  onTestFinished(() => app.close());
  app.get('/', async (ctx) => {
    const cause: unknown = await ctx.service('billing').get('/').catch((err: unknown) => err);
    ctx.log.warn({ err: cause }, 'billing fails');
    throw new Error('a mistake', { cause });
  });
  await app.request('/');
  expect(lines.map((text) => (JSON.parse(text) as { err: object }).err)).toEqual([
    expect.objectContaining({ stack: expect.any(String) }), expect.objectContaining({ stack: expect.any(String) }),
  ]);
});

test('a name with several addresses is called at all of them, and an address that refuses is skipped', async () => {
  const addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4'];
  const counts = new Map<string, number>();
  const listen = (host: string, port: number): Promise<Server> =>
    new Promise((resolve) => {
      const server: Server = createServer((_req, res) => {
        counts.set(host, (counts.get(host) ?? 0) + 1);
        // So that all calls of a round need a connection of their own.
        setTimeout(() => res.end(), 20);
      }).listen(port, host, () => resolve(server));
      onTestFinished(() => void server.close().closeAllConnections());
    });
  const first = await listen('127.0.0.1', 0);
  const { port } = first.address() as AddressInfo;
  for (const address of addresses.slice(1, 3)) await listen(address, port);
  let isDown = false;
  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(((_name: string, _options: object, done: Function) => {
    const found = isDown ? addresses : addresses.slice(0, 3);
    // A resolver may give the addresses in another order each time.
    const shuffled = lookup.mock.calls.length % 2 === 0 ? found : [...found].reverse();
    setImmediate(() => done(null, shuffled.map((address) => ({ address, family: 4 }))));
  }) as typeof dns.lookup);
  onTestFinished(() => void lookup.mockRestore());

  const client = clientOf({ url: `http://billing.test:${port}` });
  const round = async (): Promise<unknown> => Promise.all(Array.from({ length: 30 }, () => client.get('/')));
  for (let i = 0; i < 10; i += 1) await round();
  expect([...counts.values()]).toEqual([100, 100, 100]);

  isDown = true;
  counts.clear();
  const others = clientOf({ url: `http://billing.test:${port}` });
  await Promise.all(Array.from({ length: 40 }, () => others.get('/')));
  expect([...counts.values()].reduce((sum, count) => sum + count)).toBe(40);
  expect(Math.min(...counts.values())).toBeGreaterThanOrEqual(10);
});

test('a stand-in that passes on what fetch received hands out the decoded body', async () => {
  const { gzipSync } = await import('node:zlib');
  const peer = await startPeer((_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(gzipSync('{"a":1}'));
  });
  const app = createApp({ services: { billing: () => fetch(peer.url) } });
  expect((await app.service('billing').get('/')).body).toEqual({ a: 1 });
});
