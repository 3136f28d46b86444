/** What a handler sees of a request. */

import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { parseResponses, rawExchange } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

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
  const response = await fetch(`${url}/u/J%C3%BC%2Frgen/a/b%20c?a=1&a=2&b=%20x`, {
    method: 'POST',
    headers: { 'X-A': 'y' },
  });
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
  const query = async (target: string): Promise<unknown> =>
    JSON.parse(
      parseResponses(await rawExchange(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`))[0]
        ?.body ?? '',
    );
  expect(await query('/??q=1')).toEqual([['?q', '1']]);
  expect(await query('/?a[0][__proto__]=x')).toEqual([['a[0][__proto__]', 'x']]);
  expect(await query('/?')).toEqual([]);
});

test('the query, the state and the rest are made once', async () => {
  const app = createApp().get(
    '/',
    (ctx) =>
      ctx.query === ctx.query &&
      ctx.state === ctx.state &&
      ctx.signal === ctx.signal &&
      ctx.id === ctx.id &&
      ctx.log === ctx.log,
  );
  expect(await (await fetch((await serve(app)).url)).json()).toBe(true);
});

test('the signal aborts when the client leaves, and not when its reply is done', async () => {
  const signals: AbortSignal[] = [];
  let left = (): void => undefined;
  const gone = new Promise<void>((resolve) => (left = resolve));
  let arrive = (): void => undefined;
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const app = createApp()
    .get('/quick', (ctx) => void signals.push(ctx.signal))
    .get(
      '/slow',
      (ctx) =>
        new Promise((resolve) => {
          signals.push(ctx.signal);
          arrive();
          ctx.signal.addEventListener('abort', () => { resolve('late'); left(); });
        }),
    );
  const { url, port } = await serve(app);
  await fetch(`${url}/quick`);
  const socket = connect(port, '127.0.0.1', () => socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n'));
  await arrived;
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
  await expect.poll(() => app.metrics.expose())
    .toContain('http_request_duration_seconds_count{method="GET",route="/slow",status_code="499"} 1.0');
});

test("a client that left is counted when the route's time is up, though the handler never ends", async () => {
  const app = createApp().get('/hangs', { timeout: 100 }, () => new Promise(() => socket.destroy()));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write('GET /hangs HTTP/1.1\r\nHost: x\r\n\r\n'));
  await expect.poll(() => app.metrics.expose())
    .toContain('http_request_duration_seconds_count{method="GET",route="/hangs",status_code="499"} 1.0');
  expect(app.metrics.expose()).toMatch(/^active_task_count 0\.0$/m);
});
