/** The level of the default logger changes while the process runs, for a while, and only for who may ask. */

import { expect, onTestFinished, test, vi } from 'vitest';
import { Postern, type PosternOptions } from 'postern';
import { runCommand } from '../support/command.js';
import { createApp } from '../support/serve.js';

interface Started { readonly app: Postern; readonly url: string; readonly lines: () => Record<string, unknown>[] }

const LOOPBACK = { host: '127.0.0.1', port: 0 };

/** A service whose default logger is read; `url` is that of its log-level endpoint. */
async function start(options: PosternOptions = {}): Promise<Started> {
  let text = '';
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => ((text += String(chunk)), true));
  const app = new Postern('shop', { monitor: LOOPBACK, accessLog: false, ...options });
  onTestFinished(async () => {
    await app.close();
    spy.mockRestore();
  });
  const { monitor } = await app.listen(LOOPBACK);
  const lines = (): Record<string, unknown>[] =>
    text.trim().split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as Record<string, unknown>);
  return { app, url: `${monitor?.url}/shop/log-level/`, lines };
}

const put = (url: string, headers = {}): Promise<Response> => fetch(url, { method: 'PUT', headers });

test('the level changes for loggers that exist already, and is what it was when the time is over', async () => {
  const { app, url, lines } = await start();
  const child = app.log.child({ queue: 'orders' });
  child.debug({}, 'before');
  const response = await put(`${url}?level=debug&seconds=1`, { 'x-request-id': 'r' });
  expect([response.status, await response.json()]).toEqual([200, { level: 'debug', seconds: 1 }]);
  child.debug({}, 'during');
  await expect.poll(() => lines().map(({ msg }) => msg), { timeout: 10_000 }).toContain('log level restored');
  child.debug({}, 'after');
  expect(lines().slice(1)).toMatchObject([
    { level: 'warn', msg: 'log level changed', log_level: 'debug', seconds: 1, request_id: 'r' },
    { level: 'debug', msg: 'during', queue: 'orders' },
    { level: 'warn', msg: 'log level restored', log_level: 'info' },
  ]);
});

test('a level that hides warnings is logged all the same; a second change keeps the first level', async () => {
  const { app, url, lines } = await start({ logLevel: 'error' });
  await put(`${url}?level=info`);
  await put(`${url}?level=error&seconds=1`);
  await expect.poll(() => lines().length, { timeout: 10_000 }).toBe(3);
  app.log.warn({}, 'hidden');
  expect(lines().map(({ msg, log_level }) => [msg, log_level])).toEqual([
    ['log level changed', 'info'], ['log level changed', 'error'], ['log level restored', 'error'],
  ]);
});

test.for(['', '?level=trace', '?level=debug&seconds=0', '?level=debug&seconds=3601', '?level=debug&seconds=1.5',
  '?level=debug&seconds=x', '?level=debug&seconds=1e2', '?level=debug&seconds=0x10', '?level=debug&seconds='])('PUT %j is a 400', async (query) => {
  const { app, url, lines } = await start();
  expect((await put(url + query)).status).toBe(400);
  app.log.debug({}, 'hidden');
  expect(lines().map(({ msg }) => msg)).toEqual(['listening']);
});

test.for([
  [{ origin: 'http://127.0.0.1' }, 403],
  [{ 'x-forwarded-for': '192.0.2.1' }, 403],
  [{ 'x-forwarded-for': '192.0.2.1', authorization: 'Bearer wrong' }, 403],
  [{ 'x-forwarded-for': '192.0.2.1', authorization: 'Bearer secret' }, 200],
] as const)('a request with %j is answered with %j', async ([headers, status]) => {
  const { url } = await start({ diagnostics: { token: 'secret' } });
  expect((await put(`${url}?level=debug`, headers)).status).toBe(status);
});

test('the endpoint is on the monitor listener only, and missing for a logger of the user', async () => {
  const { app } = await start();
  expect((await app.request('/shop/log-level/?level=debug', { method: 'PUT' })).status).toBe(404);
  expect(() => app.put('/shop/log-level/', () => 'mine')).not.toThrow();
  const { monitor } = await createApp({ monitor: LOOPBACK }, 'shop').listen(LOOPBACK);
  expect((await put(`${monitor?.url}/shop/log-level/?level=debug`)).status).toBe(404);
});

test('postern log-level changes it, and names the remedy where it may not', async () => {
  const { app, url, lines } = await start();
  const service = url.replace('log-level/', '');
  expect(await runCommand(['log-level', service, 'debug', '--for', '60']))
    .toMatchObject({ code: 0, stdout: 'shop logs from debug up for 60 s\n' });
  app.log.debug({}, 'seen');
  expect(lines().map(({ msg }) => msg)).toContain('seen');
  const wrong: [string[], string][] = [
    [[service], 'LEVEL is missing; see postern log-level --help'],
    [[service, 'trace'], 'LEVEL is "trace"; give one of debug, info, warn, error'],
    [[service, 'debug', 'more'], 'unexpected argument "more"; the options are --for, --token'],
    [[service.replace('/shop/', '/other/'), 'debug'], 'other answered 404; give the URL of its monitor listener'],
  ];
  for (const [args, message] of wrong) {
    const { code, stderr } = await runCommand(['log-level', ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  }
});
