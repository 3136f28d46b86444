/**
 * Retries that can't storm: their budget, and who repeats when several services could.
 *
 * @module-tag slow
 */

import { expect, onTestFinished, test } from 'vitest';
import type { Context, ServiceClient, ServiceError } from 'postern';
import { createRetryBudget } from '../../src/mesh/retry.js';
import { clientOf, clientsOf } from '../support/clients.js';
import { startMesh } from '../support/mesh.js';
import { PATIENCE_MS } from '../support/patience.js';
import { startPeer } from '../support/peer.js';
import { createApp, expectFailures } from '../support/serve.js';

test('a budget starts full with 100 retries, gains a fifth of each call, and forgets after ten seconds', () => {
  let nowMs = 5_500;
  const budget = createRetryBudget(() => nowMs);
  const takeAll = (): number => {
    let taken = 0;
    while (budget.take()) taken += 1;
    return taken;
  };
  expect(takeAll()).toBe(100);
  for (let i = 0; i < 50; i += 1) budget.addCall();
  expect(takeAll()).toBe(10);
  nowMs += 8_000;
  expect(takeAll()).toBe(0);
  nowMs += 2_000;
  expect(takeAll()).toBe(100);
  nowMs += 1_000_000;
  expect(takeAll()).toBe(100);
});

test('all calls of a service share its budget; tries are no calls', async () => {
  const peer = await startPeer((_req, res) => res.writeHead(503, { 'retry-after': '0' }).end());
  const clients = clientsOf({ billing: peer.url });
  const failed = await Promise.allSettled(
    Array.from({ length: 50 }, () => clients.client('billing').get('/', { retry: 10 })),
  );
  expect(failed.every(({ status }) => status === 'rejected')).toBe(true);
  expect(peer.requests.length).toBe(50 + 100 + 10);
  await expect(clients.client('billing').get('/')).rejects.toMatchObject({ statusCode: 503 });
  clients.close();
});

test('without retry nothing is repeated, and the error does not say that it was', async () => {
  const peer = await startPeer((_req, res) => res.writeHead(503).end());
  const client = clientOf(peer);
  const once = await client.get('/').catch((error: unknown) => error);
  expect(once).toMatchObject({ headers: {} });
  const repeated = await client.get('/', { retry: 1 }).catch((error: unknown) => error);
  expect(repeated).toMatchObject({ headers: { 'x-envoy-overloaded': 'true' } });
  const posted = await client.post('/', { retry: 1 }).catch((error: unknown) => error);
  expect(posted).toMatchObject({ headers: {} });
  expect(peer.requests).toHaveLength(4);
});

test('a Retry-After in the past is no pause, and no warning of the process', async () => {
  const warnings: unknown[] = [];
  const onWarning = (warning: unknown): number => warnings.push(warning);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const peer = await startPeer((_req, res) =>
    res.writeHead(503, { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }).end(),
  );
  await expect(clientOf(peer).get('/', { retry: 1 })).rejects.toMatchObject({ statusCode: 503 });
  expect(peer.requests).toHaveLength(2);
  // Node.js emits a warning in the tick after a timer with a negative time was set.
  await new Promise(setImmediate);
  expect(warnings).toEqual([]);
});

test.for([
  { header: 'true', requests: 1, headers: { 'x-envoy-overloaded': 'true' } },
  { header: 'false', requests: 2, headers: {} },
])('an answer with x-envoy-overloaded: $header is followed by $requests requests in all', async (expected) => {
  const { header, requests, headers } = expected;
  const peer = await startPeer((_req, res) =>
    res.writeHead(503, { 'retry-after': '0', 'x-envoy-overloaded': header }).end(),
  );
  const client = clientOf(peer);
  const failed = await client.get('/').catch((error: unknown) => (error as ServiceError).headers);
  expect(failed).toEqual({ 'retry-after': '0', ...headers });
  await client.get('/', { retry: 1 }).catch(() => undefined);
  expect(peer.requests).toHaveLength(1 + requests);
});

test('fetch repeats as the verbs do, and gives the last answer', async () => {
  const peer = await startPeer((_req, res) => res.writeHead(503, { 'retry-after': '0' }).end('busy'));
  const response = await clientOf(peer).fetch('/', { retry: 2 });
  expect([response.status, await response.text(), peer.requests.length, peer.sockets.length])
    .toEqual([503, 'busy', 3, 1]);
});

test.for<[how: string, call: (client: ServiceClient) => Promise<unknown>, asked: number]>([
  ['get', async (client) => (await client.get('/', { retry: 2 })).body, 3],
  ['fetch', (client) => client.fetch('/', { retry: 2 }), 3],
  ['fetch without retry', (client) => client.fetch('/'), 3],
])('a caller does not repeat what the hop behind it has repeated by %s', async ([, call, asked]) => {
  let requests = 0;
  const busy = (): Response => {
    requests += 1;
    return new Response('', { status: 503, headers: { 'retry-after': '0' } });
  };
  const b = expectFailures(createApp({ services: { c: busy } }, 'b'), 503);
  b.get('/', { public: true }, async (ctx) => (await call(ctx.service('c'))) as object);
  const a = createApp({ services: { b } }, 'a');
  await expect(a.service('b').get('/', { retry: 2 })).rejects.toMatchObject({ statusCode: 503 });
  expect(requests).toBe(asked);
  const open = await b.request('/', { headers: { 'x-postern-scope': 'public' } });
  expect(open.headers.has('x-envoy-overloaded')).toBe(false);
});

test('over three hops with the last one failing, each retries and none multiplies the tries of another', async () => {
  // A call that takes too long is a 504, which is repeated, and a busy machine sheds load.
  const mesh = await startMesh({ a: ['b'], b: ['c'], c: ['d'], d: [] }, { loadShedding: false });
  const forward = (service: string) => async (ctx: Context) =>
    (await ctx.service(service).get('/work', { retry: 2, timeout: PATIENCE_MS })).body;
  mesh.a.app.get('/work', forward('b'));
  mesh.b.app.get('/work', forward('c'));
  mesh.c.app.get('/work', forward('d'));
  mesh.d.app.get('/work', (ctx) => {
    ctx.raw.res.writeHead(503, { 'retry-after': '0' }).end();
  });
  for (const { app } of Object.values(mesh)) expectFailures(app, 503);
  const offered = 300;
  const startedMs = performance.now();
  for (let sent = 0; sent < offered; sent += 50) {
    const batch = await Promise.all(Array.from({ length: 50 }, () => fetch(`${mesh.a.url}/work`)));
    for (const response of batch) {
      expect(response.status).toBe(503);
      await response.arrayBuffer();
    }
  }
  const load = { b: mesh.b.seen.length, c: mesh.c.seen.length, d: mesh.d.seen.length };
  expect(load).toMatchObject({ b: offered, c: offered });
  // The budget of the hop before it: a fifth of the calls, and ten a second from ten seconds before the first.
  const seconds = 10 + (performance.now() - startedMs) / 1000;
  expect(load.d).toBeLessThanOrEqual(offered * 1.2 + 10 * seconds);
  expect(load.d).toBeGreaterThan(offered);
}, 60_000);
