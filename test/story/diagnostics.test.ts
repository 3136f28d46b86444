/**
 * Profiles and the function that blocks the event loop: on the private listener, for those who may ask.
 *
 * @module-tag package
 */

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import v8 from 'node:v8';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Postern, type PosternOptions } from 'postern';
import { runCommand } from '../support/command.js';
import { ROOT } from '../support/markdown.js';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

const LOOPBACK = { host: '127.0.0.1', port: 0 };

async function start(options: PosternOptions): Promise<{ app: Postern; monitor: string; port: number }> {
  const app = createApp({ monitor: { port: 0 }, ...options });
  const { monitor } = await app.listen(LOOPBACK);
  return { app, monitor: `http://127.0.0.1:${monitor?.port}/users/`, port: monitor?.port as number };
}

test('a CPU profile has the functions that ran, and its use is logged', async () => {
  const log = createRecorder();
  const { monitor } = await start({ diagnostics: true, logger: log });
  const response = await fetch(`${monitor}profile/?cpu=1`, { method: 'POST' });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
  expect(await response.json()).toMatchObject({ nodes: expect.any(Array), samples: expect.any(Array) });
  expect(log.entries).toContainEqual({
    level: 'warn',
    message: 'CPU profiled',
    object: { seconds: 1, request_id: expect.any(String) },
  });
});

test('a second one at the same time is a 409, and after it there is another', async () => {
  const { monitor } = await start({ diagnostics: true });
  const ask = async (): Promise<number> => (await fetch(`${monitor}profile/?cpu=1`, { method: 'POST' })).status;
  expect((await Promise.all([ask(), ask()])).sort()).toEqual([200, 409]);
  expect(await ask()).toBe(200);
});

test.for(['', '?cpu=0', '?cpu=61', '?cpu=x', '?cpu'])('%o is a 400', async (query) => {
  const { monitor } = await start({ diagnostics: true });
  expect((await fetch(`${monitor}profile/${query}`, { method: 'POST' })).status).toBe(400);
});

test('without the option, or without the listener, there is no such endpoint', async () => {
  const { monitor } = await start({});
  expect((await fetch(`${monitor}profile/?cpu=1`, { method: 'POST' })).status).toBe(404);
  const { url } = await createApp({ diagnostics: true }).listen(LOOPBACK);
  expect((await fetch(`${url}/users/profile/?cpu=1`, { method: 'POST' })).status).toBe(404);
});

const OTHER = Object.values(networkInterfaces()).flat().find((each) => each?.family === 'IPv4' && !each.internal);

test('others than loopback peers need the token, and a page of a browser gets nothing', async () => {
  const token = 'a-token-of-a-test';
  const { monitor, port } = await start({ diagnostics: { token } });
  const ask = async (base: string, headers: Record<string, string>): Promise<number> =>
    (await fetch(`${base}profile/?cpu=99`, { method: 'POST', headers })).status;
  const bearer = { authorization: `Bearer ${token}` };
  // 400: they may ask, and only the query is wrong.
  expect(await ask(monitor, {})).toBe(400);
  expect(await ask(monitor, { origin: 'http://page.example' })).toBe(403);
  expect(await ask(monitor, { ...bearer, origin: 'http://page.example' })).toBe(403);
  expect(await ask(monitor, { 'x-forwarded-for': '192.0.2.1' })).toBe(403);
  expect(await ask(monitor, { 'x-forwarded-for': '192.0.2.1', ...bearer })).toBe(400);
  expect(await ask(monitor, { 'x-forwarded-for': '192.0.2.1', authorization: `bearer ${token}` })).toBe(400);
  expect(await ask(monitor, { 'x-forwarded-for': '192.0.2.1', authorization: token })).toBe(403);
  if (OTHER === undefined) return;
  const outside = `http://${OTHER.address}:${port}/users/`;
  expect(await ask(outside, {})).toBe(403);
  expect(await ask(outside, { authorization: 'Bearer another' })).toBe(403);
  expect(await ask(outside, bearer)).toBe(400);
});

test('postern profile writes a heap snapshot into a file', async ({ task }) => {
  const { monitor } = await start({ diagnostics: true });
  const out = join(process.env['TMPDIR'] ?? '/tmp', `postern-${process.pid}-${task.id}.heapsnapshot`);
  expect(await runCommand(['profile', monitor, '--heap', '--out', out])).toMatchObject({ code: 0, stdout: `${out}\n` });
  expect(JSON.parse(readFileSync(out, 'utf8'))).toMatchObject({ snapshot: { meta: expect.any(Object) } });
  const { stderr, code } = await runCommand(['profile', monitor.replace('users', 'other'), '--heap', '--out', out]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('set its option diagnostics')]);
});

test('a heap snapshot that needs more memory than is free is a 503, and no line says that it was taken', async () => {
  const log = createRecorder();
  const { app, monitor } = await start({ diagnostics: true, logger: log });
  expectFailures(app, 503);
  vi.spyOn(process, 'availableMemory').mockReturnValue(1);
  onTestFinished(() => void vi.restoreAllMocks());
  expect((await fetch(`${monitor}profile/?heap`, { method: 'POST' })).status).toBe(503);
  expect(log.entries.map(({ message }) => message)).not.toContain('heap snapshot taken');
});

const PERMITTED = `
  import { Postern } from 'postern';
  const loopback = { host: '127.0.0.1', port: 0 };
  const app = new Postern('users', { monitor: loopback, diagnostics: true });
  const { monitor } = await app.listen(loopback);
  // A worker would look now.
  for (const endMs = Date.now() + 1500; Date.now() < endMs;);
  const { status } = await fetch(monitor.url + '/users/profile/?cpu=1', { method: 'POST' });
  console.log(status);
  await app.close();`;

test.for([[], ['--allow-worker']])('under --permission %j it starts, and a warning says that nobody watches', async (more) => {
  const major = Number(process.versions.node.split('.')[0]);
  const flags = [major < 24 ? '--experimental-permission' : '--permission', ...(major > 24 ? ['--allow-net'] : [])];
  const args = [...flags, '--allow-fs-read=*', ...more, '--input-type=module', '-e', PERMITTED];
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(stderr.match(/"event loop [^"]*"/g)).toEqual(['"event loop is not watched"']);
  expect(stdout).toBe('startCpuProfile' in v8 ? '200\n' : '503\n');
});

test('a warning names the function that blocks the event loop, once a minute', async () => {
  const log = createRecorder();
  const { app } = await start({ diagnostics: true, logger: log });
  const blocked = (): object[] => log.entries.filter(({ message }) => message === 'event loop blocked');
  app.get('/', function hashEverything() {
    const endMs = Date.now() + 1500;
    while (Date.now() < endMs);
    return {};
  });
  // The worker needs a moment before it looks for the first time.
  await expect.poll(async () => {
    await app.request('/');
    return blocked().length;
  }, { timeout: 60_000, interval: 500 }).toBe(1);
  expect(blocked()).toEqual([{
    level: 'warn',
    message: 'event loop blocked',
    object: { function: 'hashEverything', file: expect.stringContaining('diagnostics.test'), line: expect.any(Number) },
  }]);
  await app.request('/');
  expect(blocked().length).toBe(1);
});

test.for([1, 'yes', null, { token: '' }, { token: 7 }, { tokens: 'x' }])('diagnostics: %j is a TypeError', (value) => {
  expect(() => createApp({ diagnostics: value as never })).toThrow(TypeError);
});
