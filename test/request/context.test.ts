/** What a handler sees of a request. */

import { connect } from 'node:net';
import { expect, test } from 'vitest';
import type { Context } from 'postern';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp, createRecorder, serve } from '../support/serve.js';

test('method, path, params, query and headers', async () => {
  const app = createApp().post('/u/:id/*rest', (ctx) => ({
    method: ctx.method,
    path: ctx.path,
    params: ctx.params,
    query: [...ctx.query],
    header: ctx.headers['x-a'],
    raw: ctx.raw.req.url,
  }));
  const { url } = await serve(app);
  const response = await fetch(`${url}/u/J%C3%BC%2Frgen/a/b%20c?a=1&a=2&b=%20x`, { method: 'POST', headers: { 'X-A': 'y' } });
  expect(await response.json()).toEqual({
    method: 'POST',
    path: '/u/Jü/rgen/a/b c',
    params: { id: 'Jü/rgen', rest: 'a/b c' },
    query: [['a', '1'], ['a', '2'], ['b', ' x']],
    header: 'y',
    raw: '/u/J%C3%BC%2Frgen/a/b%20c?a=1&a=2&b=%20x',
  });
});

test('the query starts after the first question mark and keeps the others', async () => {
  const app = createApp().get('/', (ctx) => [...ctx.query]);
  const { port } = await serve(app);
  const query = async (target: string): Promise<unknown> => JSON.parse(parseResponses(await rawExchange(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`))[0]?.body ?? '');
  expect(await query('/??q=1')).toEqual([['?q', '1']]);
  expect(await query('/?a[0][__proto__]=x')).toEqual([['a[0][__proto__]', 'x']]);
  expect(await query('/?')).toEqual([]);
});

test('the query, the state and the rest are made once', async () => {
  const app = createApp().get('/', (ctx) => ctx.query === ctx.query && ctx.state === ctx.state && ctx.signal === ctx.signal && ctx.id === ctx.id && ctx.log === ctx.log);
  expect(await (await fetch((await serve(app)).url)).json()).toBe(true);
});

test('a body that was read may be read again in another form', async () => {
  const app = createApp().post('/', async (ctx) => {
    const value = await ctx.json<{ a: number }>();
    const text = await ctx.text();
    const bytes = (await ctx.bytes()).length;
    let streamed = '';
    for await (const chunk of ctx.stream()) streamed += String(chunk);
    return { value, text, bytes, streamed };
  });
  const response = await fetch((await serve(app)).url, { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json; charset=utf-8' } });
  expect(await response.json()).toEqual({ value: { a: 1 }, text: '{"a":1}', bytes: 7, streamed: '{"a":1}' });
});

test('a body that went out as a stream cannot be read again', async () => {
  const app = createApp({ logger: false }).post('/', async (ctx) => {
    ctx.stream().resume();
    await expect(ctx.text()).rejects.toThrow(TypeError);
    expect(() => ctx.stream()).toThrow(TypeError);
    return 'ok';
  });
  expect(await (await fetch((await serve(app)).url, { method: 'POST', body: 'x' })).text()).toBe('ok');
});

test.for([
  ['application/json', 200],
  ['Application/JSON ; charset="utf-8"', 200],
  ['application/vnd.api+json', 200],
  [null, 200],
  ['application/jsonx', 415],
  ['text/json', 415],
  ['json', 415],
  ['application/x-www-form-urlencoded', 415],
] as const)('json() with content type %s: %i', async ([type, status]) => {
  const app = createApp().post('/', (ctx) => ctx.json());
  const body = Buffer.from('\ufeff{"a":1}');
  const response = await fetch((await serve(app)).url, { method: 'POST', body, headers: type === null ? {} : { 'content-type': type } });
  expect(response.status).toBe(status);
  if (status === 200) expect(await response.json()).toEqual({ a: 1 });
});

test('form() gives a URLSearchParams, a leading question mark kept', async () => {
  const app = createApp().post('/', async (ctx) => [...(await ctx.form())]);
  const response = await fetch((await serve(app)).url, { method: 'POST', body: '?a=1&b=x+y', headers: { 'content-type': 'application/x-www-form-urlencoded' } });
  expect(await response.json()).toEqual([['?a', '1'], ['b', 'x y']]);
});

test('the signal aborts when the client leaves, and not when its reply is done', async () => {
  const signals: AbortSignal[] = [];
  let left = (): void => undefined;
  const gone = new Promise<void>((resolve) => (left = resolve));
  const app = createApp().get('/quick', (ctx) => void signals.push(ctx.signal)).get('/slow', (ctx) => new Promise((resolve) => {
    signals.push(ctx.signal);
    ctx.signal.addEventListener('abort', () => { resolve('late'); left(); });
  }));
  const { url, port } = await serve(app);
  await fetch(`${url}/quick`);
  const socket = connect(port, '127.0.0.1', () => socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n'));
  while (signals.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  socket.destroy();
  await gone;
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
});

test('a client that left is counted as 499, not as a failure', async () => {
  const app = createApp().get('/slow', (ctx) => new Promise((_resolve, reject) => {
    ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error));
    socket.destroy();
  }));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n'));
  await expect.poll(() => app.metrics.expose()).toContain('http_request_duration_seconds_count{method="GET",route="/slow",status_code="499"} 1.0');
});

test('the log of a request carries its id', async () => {
  const logger = createRecorder();
  const app = createApp({ logger }).get('/', (ctx) => ctx.log.info({ a: 1 }, 'seen'));
  await fetch((await serve(app)).url, { headers: { 'x-request-id': 'me-1' } });
  expect(logger.entries).toEqual([{ level: 'info', object: { request_id: 'me-1', a: 1 }, message: 'seen' }]);
});

const addresses: { trustProxy: string[]; forwarded: string | null; ip: string }[] = [
  { trustProxy: [], forwarded: '1.1.1.1', ip: '127.0.0.1' },
  { trustProxy: ['10.0.0.0/8'], forwarded: '1.1.1.1', ip: '127.0.0.1' },
  { trustProxy: ['127.0.0.0/8'], forwarded: null, ip: '127.0.0.1' },
  { trustProxy: ['127.0.0.0/8'], forwarded: '1.1.1.1', ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1'], forwarded: '9.9.9.9, 1.1.1.1', ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1', '10.0.0.0/8'], forwarded: '9.9.9.9, 1.1.1.1,10.1.2.3', ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1', '10.0.0.0/8'], forwarded: '10.0.0.9, 10.1.2.3', ip: '10.0.0.9' },
  { trustProxy: ['127.0.0.1', '10.0.0.0/8'], forwarded: '1.1.1.1, nonsense, 10.1.2.3', ip: '10.1.2.3' },
  { trustProxy: ['127.0.0.1', '10.0.0.0/8'], forwarded: '1.1.1.1, ::ffff:10.1.2.3', ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1', '2001:db8::/32'], forwarded: '1.1.1.1, 2001:0db8:0:0::1', ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1'], forwarded: `${' ,'.repeat(4000)}1.1.1.1`, ip: '1.1.1.1' },
  { trustProxy: ['127.0.0.1'], forwarded: '', ip: '127.0.0.1' },
];
test.for(addresses)('behind $trustProxy, "$forwarded" means $ip', async ({ trustProxy, forwarded, ip }) => {
  const { url } = await serve(createApp({ trustProxy }).get('/', (ctx: Context) => ctx.ip));
  expect(await (await fetch(url, { headers: forwarded === null ? {} : { 'x-forwarded-for': forwarded } })).text()).toBe(ip);
});

test.for(['10.0.0.0/33', '10.0.0/8', 'x', '', '10.0.0.0/8/8', '::/129', '1.1.1.1/-1', '1.1.1.1/ 8'])('trustProxy with %j throws', (network) => {
  expect(() => createApp({ trustProxy: [network] })).toThrow(TypeError);
});
