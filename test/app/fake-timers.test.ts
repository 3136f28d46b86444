/**
 * An application under fake timers: what a test freezes is the test's own time, never that of the application.
 *
 * @module-tag package
 */

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test, vi } from 'vitest';
import { reply } from 'postern';
import { get, rawRequest } from '../support/raw.js';
import { createApp, expectFailures, serve } from '../support/serve.js';

afterEach(() => void vi.useRealTimers());

/** Without `queueMicrotask`: Node's own `Request` and `Response` need it to read a body. */
const ALL = ['setTimeout', 'setInterval', 'setImmediate', 'performance', 'Date'] as const;

test.for<[what: string, config: Parameters<typeof vi.useFakeTimers>[0]]>([
  ['what Vitest fakes by default', {}],
  ['every timer and clock', { toFake: [...ALL] }],
])('app.request() answers under fake timers: %s', async ([, config]) => {
  vi.useFakeTimers(config);
  const app = expectFailures(createApp(), 504);
  app.get('/value', () => ({ id: 7 }));
  app.get('/stream', async function* () { yield 'a'; yield 'b'; });
  app.post('/echo', async (ctx) => reply(await ctx.json(), { status: 201 }));
  app.get('/late', { timeout: 20 }, () => new Promise(() => undefined));
  const json = { 'content-type': 'application/json' };
  expect(await (await app.request('/value')).json()).toEqual({ id: 7 });
  expect(await (await app.request('/stream')).text()).toBe('ab');
  expect(await (await app.request('/echo', { method: 'POST', headers: json, body: '[1]' })).json()).toEqual([1]);
  expect((await app.request('/late')).status).toBe(504);
  expect((await app.request('/users/health/')).status).toBe(200);
  await app.close({ delay: 1 });
});

test('calls of a stand-in answer, and are repeated, while timers are fake', async () => {
  vi.useFakeTimers();
  let calls = 0;
  const billing = (): Response => ((calls += 1) === 1 ? new Response(null, { status: 503 }) : Response.json({ calls }));
  const app = createApp({ services: { billing } });
  expect((await app.service('billing').get('/x', { retry: 1 })).body).toEqual({ calls: 2 });
});

test('an application that listens answers, and drains, while timers are fake', async () => {
  vi.useFakeTimers();
  const app = createApp().get('/', () => 'hello');
  const { port } = await serve(app);
  expect((await rawRequest(port, get('/'))).body).toBe('hello');
  await app.close({ delay: 1 });
});

const SCRIPT = `
import { request } from 'node:http';
import { mock } from 'node:test';
import { Postern } from 'postern';
mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'setImmediate', 'Date'] });
const app = new Postern('users', { logger: false }).get('/', () => 'hello');
app.get('/late', { timeout: 20 }, () => new Promise(() => undefined));
const { port } = await app.listen({ port: 0, host: '127.0.0.1' });
const listening = await new Promise((resolve) => {
  request({ port, host: '127.0.0.1' }, (res) => res.setEncoding('utf8').on('data', resolve)).end();
});
console.log(await (await app.request('/')).text(), listening, (await app.request('/late')).status);
await app.close({ delay: 1 });
console.log('closed');
`;

test('an application answers and closes under the timers of node:test', () => {
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', SCRIPT], {
    cwd,
    encoding: 'utf8',
    timeout: 20_000,
  });
  expect(output).toBe('hello hello 504\nclosed\n');
});
