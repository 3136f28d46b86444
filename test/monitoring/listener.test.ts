/** The private listener for monitoring: what is served where, and for how long. */

import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { Postern, type PosternOptions } from 'postern';
import { createApp, expectFailures } from '../support/serve.js';
import { freePort } from '../support/ports.js';

const LOOPBACK = { host: '127.0.0.1', port: 0 };
const monitored = (options: PosternOptions = {}): Postern => createApp({ monitor: LOOPBACK, ...options });
const statusOf = async (url: string): Promise<number> => {
  const response = await fetch(url);
  await response.arrayBuffer();
  return response.status;
};

async function takenPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

function setEnv(variables: Record<string, string>): void {
  Object.assign(process.env, variables);
  onTestFinished(() => {
    for (const name of Object.keys(variables)) delete process.env[name];
  });
}

test('health and ping are served on both, metrics and openapi there alone, the routes of the application on the main one alone', async () => {
  const app = monitored().get('/work', () => 'done');
  const { url, monitor } = await app.listen(LOOPBACK);
  expect(monitor).toEqual({ url: `http://127.0.0.1:${monitor?.port}`, host: '127.0.0.1', port: expect.any(Number) });
  const served: Record<string, number[]> = {};
  for (const path of [
    '/users/health/',
    '/users/ping/',
    '/users/metrics/',
    '/users/metrics/?json',
    '/users/openapi/',
    '/work',
    '/nowhere',
  ])
    served[path] = [await statusOf(url + path), await statusOf(monitor?.url + path)];
  expect(served).toEqual({
    '/users/health/': [200, 200],
    '/users/ping/': [200, 200],
    '/users/metrics/': [404, 200],
    '/users/metrics/?json': [404, 200],
    '/users/openapi/': [404, 200],
    '/work': [200, 404],
    '/nowhere': [404, 404],
  });
  const metrics = await (await fetch(`${monitor?.url}/users/metrics/`)).text();
  expect(metrics).toContain('http_request_duration_seconds_count{method="GET",route="/work",status_code="200"} 1.0');
  expect(app.router.routes.map(({ path }) => path)).toEqual(['/users/health/', '/users/ping/', '/work']);
});

test('no route of the application may have the path of a monitoring endpoint, wherever that is served', () => {
  const app = monitored();
  for (const endpoint of ['health', 'metrics', 'openapi', 'ping'])
    expect(() => app.get(`/users/${endpoint}/`, () => 'mine')).toThrow('is a monitoring endpoint; use another path');
});

test('without the option there is no second listener', async () => {
  const listening = await createApp().listen(LOOPBACK);
  expect(listening).not.toHaveProperty('monitor');
  expect(await statusOf(`${listening.url}/users/metrics/`)).toBe(200);
});

test('the middleware of the application runs around both, whatever the order', async () => {
  const app = monitored();
  app.use(async (_ctx, next) => {
    const reply = await next();
    reply.headers.set('x-mine', '1');
    return reply;
  });
  const { url, monitor } = await app.listen(LOOPBACK);
  for (const base of [url, monitor?.url]) {
    for (const path of ['/users/health/', '/nowhere'])
      expect((await fetch(base + path)).headers.get('x-mine')).toBe('1');
  }
});

test('a failing check shows on both', async () => {
  const app = expectFailures(monitored(), 503);
  app.health.check('database', () => false);
  const { url, monitor } = await app.listen(LOOPBACK);
  for (const base of [url, monitor?.url]) expect(await statusOf(`${base}/users/health/`)).toBe(503);
});

test('it can be scraped through the drain, after the main one is closed, until the hooks are done', async () => {
  const app = expectFailures(monitored(), 503);
  let release: () => void = () => undefined;
  const inHook = new Promise<void>((resolve) => {
    app.onClose(() => {
      resolve();
      return new Promise<void>((done) => (release = done));
    });
  });
  const { url, monitor } = await app.listen(LOOPBACK);
  const closed = app.close({ delay: 100 });
  expect(await statusOf(`${url}/users/health/`)).toBe(503);
  expect(await (await fetch(`${monitor?.url}/users/health/`)).json()).toMatchObject({ status: 'DRAINING' });
  await inHook;
  await expect(fetch(`${url}/users/health/`)).rejects.toThrow();
  expect(await statusOf(`${monitor?.url}/users/metrics/`)).toBe(200);
  release();
  await closed;
  await expect(fetch(`${monitor?.url}/users/metrics/`)).rejects.toThrow();
});

test.for(['main', 'monitor'] as const)(
  'where the port of the %s one is taken, nothing is left open, and another try may succeed',
  async (which) => {
    const taken = await takenPort();
    const free = await freePort();
    const at = (port: number): { host: string; port: number } => ({ host: '127.0.0.1', port });
    const app = createApp({ monitor: at(which === 'monitor' ? taken : free) });
    await expect(app.listen(at(which === 'main' ? taken : free))).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await expect(fetch(`http://127.0.0.1:${free}/users/ping/`)).rejects.toThrow();
    expect(app.server.listening).toBe(false);
    expect(app.server.listenerCount('error') + app.server.listenerCount('listening')).toBeLessThanOrEqual(1);
    if (which === 'monitor') return;
    const { monitor } = await app.listen(LOOPBACK);
    expect(await statusOf(`${monitor?.url}/users/ping/`)).toBe(200);
  },
);

test('MONITOR_PORT and MONITOR_HOST stand for the option, which beats them', async () => {
  setEnv({ MONITOR_PORT: '0', MONITOR_HOST: '127.0.0.1' });
  expect((await createApp().listen(LOOPBACK)).monitor).toMatchObject({ host: '127.0.0.1' });
  const port = await freePort();
  expect((await createApp({ monitor: { port } }).listen(LOOPBACK)).monitor).toMatchObject({ host: '127.0.0.1', port });
  expect(await createApp({ attachMonitorEndpoints: false }).listen(LOOPBACK)).not.toHaveProperty('monitor');
});

test.for<{ what: string; options: object; env?: Record<string, string> }>([
  { what: 'a listener without endpoints', options: { attachMonitorEndpoints: false, monitor: { port: 0 } } },
  { what: 'a listener without a port', options: { monitor: {} } },
  { what: 'a port that is none', options: { monitor: { port: 70_000 } } },
  { what: 'a member that does not exist', options: { monitor: { port: 0, prot: 1 } } },
  { what: 'a number', options: { monitor: 9090 } },
  { what: 'a variable that is no port', options: {}, env: { MONITOR_PORT: 'http' } },
])('$what is refused', ({ options, env = {} }) => {
  setEnv(env);
  expect(() => new Postern('users', options)).toThrow(TypeError);
});
