/** The request in memory, answered as over a socket. */

import { expect, test } from 'vitest';
import { publicFacing, reply, TooManyRequests, type Context } from 'postern';
import { createApp, expectFailures, serve } from '../support/serve.js';

test('a request in memory has read its options when it returns', async () => {
  const app = createApp().get('/', (ctx) => ctx.headers['x-count']);
  const headers = { 'x-count': '0' };
  const requests = ['1', '2', '3'].map((count) => {
    headers['x-count'] = count;
    return app.request('/', { headers });
  });
  expect(await Promise.all(requests.map(async (response) => (await response).text()))).toEqual(['1', '2', '3']);
});

test('a request that waits for the CPU is answered although no other one of its route follows', async () => {
  const app = createApp().get('/other', () => 'ok').get('/busy', () => {
    const until = performance.now() + 15;
    while (performance.now() < until);
    return 'done';
  });
  const responses = await Promise.all(['/busy', '/other'].map((path) => app.request(path)));
  expect(responses.map(({ status }) => status)).toEqual([200, 200]);
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
  { what: 'a body given as a stream', path: '/echo',
    init: () => ({ method: 'POST', body: new Response('streamed').body, duplex: 'half' }) },
  { what: 'a long body, both ways', path: '/echo', init: () => ({ method: 'POST', body: 'x'.repeat(900_000) }) },
  { what: 'a long stream, both ways', path: '/pipe',
    init: () => ({ method: 'POST', body: longStream(), duplex: 'half' }) },
  { what: 'an empty body', path: '/echo', init: () => ({ method: 'POST', body: '' }) },
  { what: 'no body', path: '/echo', init: () => ({ method: 'POST' }) },
  { what: 'headers given twice and beyond ASCII', path: '/echo',
    init: () => ({ headers: [['x-a', '1'], ['X-A', '2'], ['x-b', 'na\xefve'], ['x-c', '']] }) },
  { what: 'HEAD', path: '/echo', init: () => ({ method: 'HEAD' }) },
  { what: 'HEAD of a stream', path: '/stream', init: () => ({ method: 'HEAD' }) },
  { what: 'OPTIONS', path: '/echo', init: () => ({ method: 'OPTIONS' }) },
  { what: 'a 404', path: '/nowhere' },
  { what: 'a 405', path: '/echo', init: () => ({ method: 'DELETE' }) },
  { what: 'a 413', path: '/echo', init: () => ({ method: 'POST', body: 'x'.repeat(1_048_577) }) },
  { what: 'a 415', path: '/json',
    init: () => ({ method: 'POST', body: '{}', headers: { 'content-type': 'text/html' } }) },
  { what: 'a body that is not JSON', path: '/json',
    init: () => ({ method: 'POST', body: '{', headers: { 'content-type': 'application/json' } }) },
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
  const app = expectFailures(createApp(), ...(/^\/(?:bug|fails)/.test(path) ? [500] : []));
  const echo = async (ctx: Context): Promise<object> => ({
    method: ctx.method,
    query: String(ctx.query),
    body: await ctx.text(),
    headers: ['content-type', 'content-length', 'transfer-encoding', 'x-a', 'x-b', 'x-c'].map(
      (name) => ctx.headers[name] ?? null,
    ),
    ip: ctx.ip,
  });
  app.route('/echo', { GET: echo, POST: echo }).post('/json', (ctx) => ctx.json()).post('/pipe', (ctx) => ctx.stream());
  app
    .get('/empty', () => undefined)
    .get('/away', () =>
      reply('', {
        status: 302,
        headers: [
          ['location', '/echo'],
          ['set-cookie', 'a=b'],
          ['set-cookie', 'c=d'],
        ],
      }),
    );
  app
    .get('/same', () => reply(undefined, { status: 304, headers: { etag: '"1"' } }))
    .get('/bytes', () => Uint8Array.from({ length: 256 }, (_, i) => i));
  app.get('/stream', async function* () { yield 'a'; yield 'b'; });
  app.get('/fails/:at', async function* ({ params }) { if (params.at === '1') yield 'a'; throw new Error('broken'); });
  app
    .get('/response', () => new Response('made', { status: 203, statusText: 'Made', headers: { 'x-a': 'na\xefve' } }))
    .get('/p/*rest', (ctx) => [ctx.path, ctx.params.rest, String(ctx.query)]);
  app.get('/hand', ({ raw: { res } }) => void res.writeHead(299, 'By Hand', { 'x-a': '1' }).end('by hand'));
  app.get(
    '/hints',
    ({ raw: { res } }) =>
      new Promise((resolve) => res.writeEarlyHints({ link: '</a>; rel=preload' }, () => resolve('hinted'))),
  );
  app
    .get('/limited', () => {
      throw new TooManyRequests('Slow down', { retryAfter: 3 });
    })
    .get('/bug', () => {
      throw new TypeError('secret');
    });
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
  const app = createApp()
    .post('/', async (ctx) => `got ${await ctx.text()} from ${ctx.ip}`)
    .get(
      '/never',
      (ctx) =>
        new Promise((resolve) => {
          ctx.signal.addEventListener('abort', () => { seen(); resolve('x'); });
          abort.abort(new Error('changed my mind'));
        }),
    );
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('streamed'));
      controller.close();
    },
  });
  expect(await (await app.request('http://example.test/', { method: 'POST', body })).text())
    .toBe('got streamed from 127.0.0.1');
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

test.for([101, 600, 999])('a request in memory whose handler writes the status %i by itself rejects', async (status) => {
  const app = expectFailures(createApp(), ...(status > 500 ? [status] : [])).get('/', ({ raw }) => {
    raw.res.writeHead(status).end();
  });
  await expect(app.request('/')).rejects.toThrow(RangeError);
});

test('a request in memory rejects when it is upgraded', async () => {
  const app = createApp();
  app.server.on('upgrade', (_req, socket) =>
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'));
  const headers = { connection: 'upgrade', upgrade: 'websocket' };
  await expect(app.request('/', { headers })).rejects.toThrow('the connection was closed or upgraded');
});

test('null is no options, as for fetch', async () => {
  expect((await createApp().get('/', () => 'x').request('/', null as never)).status).toBe(200);
});

test('many requests in memory leave nothing behind', async () => {
  const app = createApp().get('/', () => 'ok');
  const answers = await Promise.all(Array.from({ length: 200 }, async () => (await app.request('/')).text()));
  expect(new Set(answers)).toEqual(new Set(['ok']));
  const active = ((await (await app.request('/users/metrics/?json')).json()) as { active_task_count: number })
    .active_task_count;
  expect(active).toBe(1);
});
