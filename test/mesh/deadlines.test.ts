/** How long calls last: the deadline of the request on whose behalf they are made, and the client that leaves. */

import { createHook } from 'node:async_hooks';
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { Context, PosternOptions, Postern } from 'postern';
import { startPeer } from '../support/peer.js';
import { createApp, expectFailures, serve } from '../support/serve.js';
import { startMesh } from '../support/mesh.js';

const DEADLINE = 'x-envoy-expected-rq-timeout-ms';
const appOf = (url: string, options: PosternOptions = {}): Postern =>
  createApp({ settings: { SERVICE_CONNECTIONS: [`billing=${url}`] }, ...options });
const startHeaders = (): ReturnType<typeof startPeer> =>
  startPeer((req, res) => void res.setHeader('content-type', 'application/json').end(JSON.stringify(req.headers)));
const sent = async (app: Postern, headers: Record<string, string>, path = '/'): Promise<string | undefined> =>
  ((await (await app.request(path, { headers })).json()) as Record<string, string>)[DEADLINE];

test('the deadline goes on, less what has passed, and is never more than the timeout of the call', async () => {
  const peer = await startHeaders();
  const app = appOf(peer.url);
  app.get('/', async (ctx) => (await ctx.service('billing').get('/')).body);
  app.get('/late', async (ctx) => {
    await new Promise((resolve) => setTimeout(resolve, 60));
    return (await ctx.service('billing').get('/')).body;
  });
  app.get('/short', async (ctx) => (await ctx.service('billing').get('/', { timeout: 300 })).body);
  app.get('/route', { timeout: 2000 }, async (ctx: Context) => (await ctx.service('billing').get('/')).body);
  const first = Number(await sent(app, { [DEADLINE]: '3000' }));
  expect(first).toBeGreaterThan(1000);
  expect(first).toBeLessThanOrEqual(3000);
  expect(Number(await sent(app, { [DEADLINE]: '3000' }, '/late'))).toBeLessThanOrEqual(2950);
  expect(await sent(app, { [DEADLINE]: '3000' }, '/short')).toBe('300');
  expect(await sent(app, { [DEADLINE]: '9999999' })).toBe('5000');
  expect(Number(await sent(app, {}, '/route'))).toBeLessThanOrEqual(2000);
  expect(Number(await sent(app, { [DEADLINE]: '1000' }, '/route'))).toBeLessThanOrEqual(1000);
});

test.for(['', '0', '-1', '1.5', '1e3', 'soon', '10, 20', '0x10'])('the deadline %j is ignored', async (value) => {
  const app = appOf((await startHeaders()).url).get('/', async (ctx) => (await ctx.service('billing').get('/')).body);
  expect(await sent(app, { [DEADLINE]: value })).toBe('5000');
});

test('without a deadline, and without a request, a call sends its own timeout', async () => {
  const app = appOf((await startHeaders()).url).get('/', async (ctx) => (await ctx.service('billing').get('/')).body);
  expect(await sent(app, {})).toBe('5000');
  expect((await app.service('billing').get<object>('/', { timeout: 100 })).body).toHaveProperty(DEADLINE, '100');
  expect(
    (
      await app
        .service('billing')
        .get<object>('/', { timeout: 0.5 })
        .catch(() => ({ body: { [DEADLINE]: '1' } }))
    ).body,
  ).toHaveProperty(DEADLINE, '1');
  expect(await (await app.service('billing').fetch('/', { timeout: 2000 })).json()).toHaveProperty(DEADLINE, '2000');
});

test('a call ends at the deadline, and is not sent when no time is left', async () => {
  const peer = await startPeer(() => undefined);
  const app = expectFailures(appOf(peer.url), 504);
  app.get('/', (ctx) => ctx.service('billing').get('/').then(({ body }) => body));
  app.get('/late', async (ctx) => {
    await new Promise((resolve) => setTimeout(resolve, 60));
    return (await ctx.service('billing').get('/')).body;
  });
  const response = await app.request('/', { headers: { [DEADLINE]: '1000' } });
  expect([response.status, ((await response.json()) as { description: string }).description])
    .toEqual([504, expect.stringMatching(/^billing did not answer within \d{1,4} ms$/)]);
  const unsent = await app.request('/late', { headers: { [DEADLINE]: '50' } });
  expect([unsent.status, ((await unsent.json()) as { description: string }).description])
    .toEqual([504, 'the time was up before billing was called']);
  expect(peer.requests).toHaveLength(1);
});

test('no try and no pause goes beyond the deadline', async () => {
  const peer = await startPeer((_req, res) => res.writeHead(503, { 'retry-after': '60' }).end());
  const app = expectFailures(appOf(peer.url), 503).get('/', (ctx) => ctx.service('billing').get('/', { retry: 5 }).then(({ body }) => body));
  expect((await app.request('/', { headers: { [DEADLINE]: '10000' } })).status).toBe(503);
  expect(peer.requests).toHaveLength(1);
});

test('a client that leaves ends the calls three hops down, with nothing left open', async () => {
  const mesh = await startMesh({ a: ['b'], b: ['c'], c: ['d'], d: [] });
  const aborted: string[] = [];
  const waiting = { d: 0 };
  for (const [name, next] of [['a', 'b'], ['b', 'c'], ['c', 'd']] as const) {
    mesh[name].app.get('/work', async (ctx) => {
      ctx.signal.addEventListener('abort', () => aborted.push(name));
      return (await ctx.service(next).get('/work', { retry: 3 })).body;
    });
  }
  mesh.d.app.get('/work', (ctx) => {
    waiting.d += 1;
    return new Promise((resolve) => ctx.signal.addEventListener('abort', () => resolve(aborted.push('d'))));
  });
  const timers = watchTimers();
  const client = connect(Number(new URL(mesh.a.url).port), '127.0.0.1');
  client.write('GET /work HTTP/1.1\r\nhost: x\r\n\r\n');
  await expect.poll(() => waiting.d).toBe(1);
  expect(timers.size).toBeGreaterThanOrEqual(3);
  client.destroy();
  await expect.poll(() => aborted).toHaveLength(4);
  for (const { sockets } of Object.values(mesh)) {
    for (const socket of sockets) if (!socket.destroyed) await once(socket, 'close');
    expect(sockets).toHaveLength(1);
  }
  expect(waiting.d).toBe(1);
  await expect.poll(() => [...timers.values()]).toEqual([]);
});

/** Timers that Postern starts from now on and that are neither over nor cleared: where each was started. */
function watchTimers(): ReadonlyMap<number, string> {
  const timers = new Map<number, string>();
  const hook = createHook({
    init(id, type) {
      const { stack = '' } = new Error();
      if (type === 'Timeout' && /[\\/]src[\\/](?!.*node_modules)/.test(stack)) timers.set(id, stack);
    },
    destroy: (id) => void timers.delete(id),
  }).enable();
  onTestFinished(() => void hook.disable());
  return timers;
}

test('signal: null lets a call outlive the deadline of its request', async () => {
  const app = appOf((await startHeaders()).url);
  app.get('/', { timeout: 2000 }, async (ctx: Context) => {
    await new Promise((resolve) => setTimeout(resolve, 600));
    return (await ctx.service('billing').get('/', { signal: null })).body;
  });
  expect(await sent(app, { [DEADLINE]: '500' })).toBe('5000');
});

test("a call that ends because its client disconnected counts as 499, at the deadline or the route's timeout as 0", async () => {
  const peer = await startPeer(() => undefined);
  const app = expectFailures(appOf(peer.url), 504);
  const call = (ctx: Context): Promise<unknown> => ctx.service('billing').get('/');
  app.get('/', call).get('/short', { timeout: 500 }, call);
  const counts = (): string[] =>
    [...app.metrics.expose().matchAll(/^service_request_duration_seconds_count\{.*status_code="(\d+)"\} (\d)/gm)].map(
      ([, status, count]) => `${count} × ${status}`,
    );
  await app.request('/short');
  await app.request('/', { headers: { [DEADLINE]: '500' } });
  expect(counts()).toEqual(['2 × 0']);
  const { port } = await serve(app);
  const client = connect(port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await expect.poll(() => peer.requests.length).toBe(3);
  client.destroy();
  await expect.poll(counts).toEqual(['2 × 0', '1 × 499']);
});

test('signal: null lets a call outlive the client of its request', async () => {
  let finish: () => void = () => undefined;
  const peer = await startPeer((_req, res) => {
    finish = () => void res.setHeader('content-type', 'text/plain').end('done');
  });
  const app = appOf(peer.url);
  const outcome = new Promise<unknown>((resolve) => {
    app.get('/', async (ctx) => resolve((await ctx.service('billing').get('/', { signal: null })).body));
  });
  const { port } = await serve(app);
  const client = connect(port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await expect.poll(() => peer.requests.length).toBe(1);
  client.destroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
  finish();
  expect(await outcome).toBe('done');
});
