/** Listening, draining and closing, and the request in memory. */

import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { Postern, publicFacing, reply, TooManyRequests, type Context, type PosternOptions } from 'postern';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp, createRecorder, serve } from '../support/serve.js';

test.for(['', '.', '..', 'a/b', 'a b', 'é', 'a%20', undefined, 5])('the name %j throws a TypeError', (name) => {
  expect(() => new Postern(name as string)).toThrow(TypeError);
});

const invalid: PosternOptions[] = [
  { bodyLimit: -1 },
  { bodyLimit: NaN },
  { bodyLimit: 1.5 },
  { bodyLimit: '10 MB' as never },
  { bodyLimit: null as never },
  { requestTimeout: -1 },
  { headersTimeout: Infinity },
  { keepAliveTimeout: '5' as never },
  { headersTimeout: 2000, requestTimeout: 1000 },
  { maxPingDepth: 0.5 },
  { pingTimeout: -5 },
  { pingTimeout: 0 },
  { version: 5 as never },
  { logger: { info() {} } as never },
  { settings: { SERVICE_CONNECTIONS: ['a=http://x', 'a=http://y'] } },
];
test.for(invalid)('the options %j throw a TypeError', (options) => {
  expect(() => new Postern('users', options)).toThrow(TypeError);
});

test('listen tells where, close ends it, and closing twice is once', async () => {
  const app = createApp().get('/', () => 'ok');
  const { url, host, port } = await serve(app);
  expect([url, host]).toEqual([`http://127.0.0.1:${port}`, '127.0.0.1']);
  expect(await (await fetch(url)).text()).toBe('ok');
  let hooks = 0;
  app.onClose(() => void (hooks += 1));
  await Promise.all([app.close(), app.close()]);
  await app.close();
  expect(hooks).toBe(1);
  await expect(fetch(url)).rejects.toThrow();
  await expect(app.listen({ port: 0 })).rejects.toThrow(/closed/);
});

test('listening on all interfaces gives a URL that can be fetched', async () => {
  const app = createApp().get('/', () => 'ok');
  const { url } = await app.listen({ port: 0 });
  expect(await (await fetch(url)).text()).toBe('ok');
});

test.for([{ host: '127.0.0.1' }, {}])('closing while listen(%j) is under way ends what it opened', async (where) => {
  const app = createApp();
  const listening = app.listen({ port: 0, ...where });
  await app.close();
  const { url } = await listening;
  await expect(fetch(url)).rejects.toThrow();
  expect(app.server.listening).toBe(false);
});

test('a request in memory has read its options when it returns', async () => {
  const app = createApp().get('/', (ctx) => ctx.headers['x-count']);
  const headers = { 'x-count': '0' };
  const requests = ['1', '2', '3'].map((count) => {
    headers['x-count'] = count;
    return app.request('/', { headers });
  });
  expect(await Promise.all(requests.map(async (response) => (await response).text()))).toEqual(['1', '2', '3']);
});

test('the handler of a request in memory does not run behind the close hooks', async () => {
  const order: string[] = [];
  const late = createApp().get('/', () => void order.push('handler'));
  late.onClose(() => void order.push('hook'));
  const outcome = late.request('/').then(() => 'answered', () => 'cut');
  await late.close();
  await outcome;
  expect(order.indexOf('handler')).toBeLessThan(order.indexOf('hook'));
});

test('a request in memory rejects with what the stream of its body fails with', async () => {
  const failure = new Error('source');
  const body = new ReadableStream({ pull: (controller) => controller.error(failure) });
  await expect(createApp().post('/', (ctx) => ctx.text()).request('/', { method: 'POST', body })).rejects.toBe(failure);
});

test('a port that is taken rejects', async () => {
  const { port } = await serve(createApp());
  await expect(createApp().listen({ host: '127.0.0.1', port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

test('close lets what is in flight finish, and ends its connection', async () => {
  let arrived = (): void => undefined;
  const waiting = new Promise<void>((resolve) => (arrived = resolve));
  let release = (): void => undefined;
  const app = createApp().get('/slow', () => new Promise((resolve) => {
    release = () => resolve('done');
    arrived();
  }));
  const { port } = await serve(app);
  const idle = connect(port, '127.0.0.1');
  const answered = rawExchange(port, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n', 5000);
  await waiting;
  const closed = app.close({ timeout: 5000 });
  await new Promise((resolve) => idle.once('close', resolve));
  release();
  await closed;
  const [response] = parseResponses(await answered);
  expect([response?.status, response?.body, response?.headers['connection']]).toEqual([200, 'done', 'close']);
});

test('what outlives the time limit is cut', async () => {
  let arrived = (): void => undefined;
  const waiting = new Promise<void>((resolve) => (arrived = resolve));
  const app = createApp().get('/never', () => {
    arrived();
    return new Promise<string>(() => undefined);
  });
  const { port } = await serve(app);
  const answered = rawExchange(port, 'GET /never HTTP/1.1\r\nHost: x\r\n\r\n', 5000);
  await waiting;
  await app.close({ timeout: 20 });
  expect(await answered).toBe('');
});

test('while the application drains, health says so with 503 and requests are still served', async () => {
  const app = createApp().get('/', () => 'ok');
  const { url } = await serve(app);
  const closed = app.close({ delay: 300 });
  const health = await fetch(`${url}/users/health/`);
  expect([health.status, ((await health.json()) as { status: string }).status]).toEqual([503, 'DRAINING']);
  expect(await (await fetch(url)).text()).toBe('ok');
  expect((await fetch(`${url}/users/ping/`)).status).toBe(200);
  expect(await (await fetch(`${url}/users/metrics/`)).text()).toContain('status="DRAINING"');
  await closed;
});

test('health checks: FAIL and 503 while one rejects, returns false or takes too long', async () => {
  const logger = createRecorder();
  const app = createApp({ logger });
  const { url } = await serve(app);
  const health = async (): Promise<[number, Record<string, unknown>]> => {
    const response = await fetch(`${url}/users/health/`);
    return [response.status, (await response.json()) as Record<string, unknown>];
  };
  app.health.check('good', () => true);
  expect(await health()).toMatchObject([200, { status: 'OK', checks: { good: { status: 'OK', time: expect.stringMatching(/^\d+ ms$/) } } }]);
  app.health.check('rejects', async () => Promise.reject(new Error('secret reason')));
  app.health.check('says no', () => false);
  let aborted = false;
  app.health.check('hangs', (signal) => new Promise(() => signal.addEventListener('abort', () => (aborted = true))), { timeout: 20 });
  const [status, document] = await health();
  expect(status).toBe(503);
  expect(document).toMatchObject({ service: 'users', status: 'FAIL', checks: { good: { status: 'OK' }, rejects: { status: 'FAIL' }, 'says no': { status: 'FAIL' }, hangs: { status: 'FAIL' } } });
  expect(JSON.stringify(document)).not.toContain('secret');
  expect(aborted).toBe(true);
  expect(logger.entries.filter(({ level }) => level === 'warn').map(({ object }) => object['check'])).toEqual(['says no', 'rejects', 'hangs']);
  expect(() => app.health.check('good', () => true)).toThrow(TypeError);
});

test('probes that come at the same time share one round of checks', async () => {
  const app = createApp();
  let runs = 0;
  let release = (): void => undefined;
  app.health.check('db', () => { runs += 1; return new Promise<void>((resolve) => (release = resolve)); });
  const { url } = await serve(app);
  const probes = Array.from({ length: 10 }, () => fetch(`${url}/users/health/`));
  await expect.poll(() => app.metrics.expose()).toContain('active_task_count 10.0');
  release();
  await Promise.all(probes);
  expect(runs).toBe(1);
  const later = fetch(`${url}/users/health/`);
  await expect.poll(() => runs).toBe(2);
  release();
  await later;
});

test('track counts a promise until it settles, gives it back, and logs a rejection', async () => {
  const logger = createRecorder();
  const app = createApp({ logger });
  const active = async (): Promise<number> => ((await (await app.request('/users/metrics/?json')).json()) as { active_task_count: number }).active_task_count;
  let settle = (): void => undefined;
  const task = new Promise<void>((_resolve, reject) => (settle = () => reject(new Error('task'))));
  expect(app.track(task)).toBe(task);
  expect(await active()).toBe(2);
  settle();
  await expect(task).rejects.toThrow('task');
  expect(await active()).toBe(1);
  expect(logger.entries).toMatchObject([{ level: 'error', object: { err: { message: 'task' } } }]);
});

test('app.handler serves inside a server that someone else made; attach gives its parse errors the uniform body', async () => {
  const app = createApp().get('/', () => 'embedded');
  const listen = async (server: Server): Promise<number> => {
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  };
  const plain = await listen(createServer(app.handler));
  expect(await (await fetch(`http://127.0.0.1:${plain}/`)).text()).toBe('embedded');
  const server = createServer();
  app.attach(server);
  const attached = await listen(server);
  const [response] = parseResponses(await rawExchange(attached, 'nonsense\r\n\r\n'));
  expect([response?.status, JSON.parse(response?.body ?? '')]).toMatchObject([400, { message: 'Bad Request', error_code: { value: 999998 } }]);
});

function longStream(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (let i = 0; i < 30; i += 1) controller.enqueue(Buffer.alloc(30_000, i));
      controller.close();
    },
  });
}

const parity: { what: string; path: string; init?: () => RequestInit }[] = [
  { what: 'a GET', path: '/echo?x=1' },
  { what: 'a POST', path: '/echo', init: () => ({ method: 'POST', body: 'grüß' }) },
  { what: 'a form', path: '/echo', init: () => ({ method: 'POST', body: new URLSearchParams({ a: 'b c' }) }) },
  { what: 'a body given as a stream', path: '/echo', init: () => ({ method: 'POST', body: new Response('streamed').body, duplex: 'half' }) },
  { what: 'a long body, both ways', path: '/echo', init: () => ({ method: 'POST', body: 'x'.repeat(900_000) }) },
  { what: 'a long stream, both ways', path: '/pipe', init: () => ({ method: 'POST', body: longStream(), duplex: 'half' }) },
  { what: 'an empty body', path: '/echo', init: () => ({ method: 'POST', body: '' }) },
  { what: 'no body', path: '/echo', init: () => ({ method: 'POST' }) },
  { what: 'headers given twice and beyond ASCII', path: '/echo', init: () => ({ headers: [['x-a', '1'], ['X-A', '2'], ['x-b', 'na\xefve'], ['x-c', '']] }) },
  { what: 'HEAD', path: '/echo', init: () => ({ method: 'HEAD' }) },
  { what: 'HEAD of a stream', path: '/stream', init: () => ({ method: 'HEAD' }) },
  { what: 'OPTIONS', path: '/echo', init: () => ({ method: 'OPTIONS' }) },
  { what: 'a 404', path: '/nowhere' },
  { what: 'a 405', path: '/echo', init: () => ({ method: 'DELETE' }) },
  { what: 'a 413', path: '/echo', init: () => ({ method: 'POST', body: 'x'.repeat(1_048_577) }) },
  { what: 'a 415', path: '/json', init: () => ({ method: 'POST', body: '{}', headers: { 'content-type': 'text/html' } }) },
  { what: 'a body that is not JSON', path: '/json', init: () => ({ method: 'POST', body: '{', headers: { 'content-type': 'application/json' } }) },
  { what: 'a malformed escape', path: '/echo/%ZZ' },
  { what: 'a query parameter that is not allowed', path: '/public?b=1' },
  { what: 'an error with headers', path: '/limited' },
  { what: 'a bug', path: '/bug' },
  { what: 'a health document', path: '/users/health/' },
  { what: 'a 204', path: '/empty' },
  { what: 'a 304', path: '/same' },
  { what: 'a stream', path: '/stream' },
  { what: 'a stream that fails at once', path: '/fails/0' },
  { what: 'a stream that fails half-way', path: '/fails/1' },
  { what: 'bytes', path: '/bytes' },
  { what: 'a Response', path: '/response' },
  { what: 'a reply written by hand', path: '/hand' },
  { what: 'early hints', path: '/hints' },
  { what: 'a redirect', path: '/away', init: () => ({ redirect: 'manual' }) },
  { what: 'two slashes', path: '//echo' },
  { what: 'dots, spaces and letters beyond ASCII', path: '/x/../p/a b/ü/%2F/?q=ü#gone' },
];
test.for(parity)('a request in memory is answered as over a socket: $what', async ({ path, init }) => {
  const app = createApp();
  const echo = async (ctx: Context): Promise<object> => ({
    method: ctx.method,
    query: String(ctx.query),
    body: await ctx.text(),
    headers: ['content-type', 'content-length', 'transfer-encoding', 'x-a', 'x-b', 'x-c'].map((name) => ctx.headers[name] ?? null),
    ip: ctx.ip,
  });
  app.route('/echo', { GET: echo, POST: echo }).post('/json', (ctx) => ctx.json()).post('/pipe', (ctx) => ctx.stream());
  app.get('/empty', () => undefined).get('/away', () => reply('', { status: 302, headers: [['location', '/echo'], ['set-cookie', 'a=b'], ['set-cookie', 'c=d']] }));
  app.get('/same', () => reply(undefined, { status: 304, headers: { etag: '"1"' } })).get('/bytes', () => Uint8Array.from({ length: 256 }, (_, i) => i));
  app.get('/stream', async function* () { yield 'a'; yield 'b'; });
  app.get('/fails/:at', async function* ({ params }) { if (params.at === '1') yield 'a'; throw new Error('broken'); });
  app.get('/response', () => new Response('made', { status: 203, statusText: 'Made', headers: { 'x-a': 'na\xefve' } })).get('/p/*rest', (ctx) => [ctx.path, ctx.params.rest, String(ctx.query)]);
  app.get('/hand', ({ raw: { res } }) => void res.writeHead(299, 'By Hand', { 'x-a': '1' }).end('by hand'));
  app.get('/hints', ({ raw: { res } }) => new Promise((resolve) => res.writeEarlyHints({ link: '</a>; rel=preload' }, () => resolve('hinted'))));
  app.get('/limited', () => { throw new TooManyRequests('Slow down', { retryAfter: 3 }); }).get('/bug', () => { throw new TypeError('secret'); });
  app.get('/public', publicFacing({ params: ['a'] })(() => 'x'));
  const { url } = await serve(app);
  const initOf = (): RequestInit => {
    const given = init?.() ?? {};
    const headers = new Headers(given.headers);
    headers.set('x-request-id', 'same');
    return { ...given, headers };
  };
  const answers = await Promise.all([fetch(url + path, initOf()), app.request(path, initOf())]);
  const [bySocket, inMemory] = await Promise.all(answers.map(async (response) => ({
    status: response.status,
    statusText: response.statusText,
    headers: [...response.headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name)),
    body: await response.arrayBuffer().then((bytes) => Buffer.from(bytes).toString('latin1'), () => 'broken off'),
  })));
  expect(inMemory).toEqual(bySocket);
});

test('a request in memory needs no port, streams its body, and aborts with its signal', async () => {
  const app = createApp().post('/', async (ctx) => `got ${await ctx.text()} from ${ctx.ip}`).get('/never', (ctx) => new Promise((resolve) => {
    ctx.signal.addEventListener('abort', () => { seen(); resolve('x'); });
    abort.abort(new Error('changed my mind'));
  }));
  const body = new ReadableStream({ start(controller) { controller.enqueue(new TextEncoder().encode('streamed')); controller.close(); } });
  expect(await (await app.request('http://example.test/', { method: 'POST', body })).text()).toBe('got streamed from 127.0.0.1');
  const abort = new AbortController();
  let seen = (): void => undefined;
  const aborted = new Promise<void>((resolve) => (seen = resolve));
  await expect(app.request('/never', { signal: abort.signal })).rejects.toThrow('changed my mind');
  await aborted;
  expect(app.server.listening).toBe(false);
});

test('a request in memory is framed by its body, whatever its headers say', async () => {
  const app = createApp().post('/', (ctx) => ctx.text());
  const headers = { 'content-length': '99', 'transfer-encoding': 'chunked' };
  expect(await (await app.request('/', { method: 'POST', body: 'abc', headers })).text()).toBe('abc');
});

test('many requests in memory leave nothing behind', async () => {
  const app = createApp().get('/', () => 'ok');
  const answers = await Promise.all(Array.from({ length: 200 }, async () => (await app.request('/')).text()));
  expect(new Set(answers)).toEqual(new Set(['ok']));
  const active = ((await (await app.request('/users/metrics/?json')).json()) as { active_task_count: number }).active_task_count;
  expect(active).toBe(1);
});
