/** Which entries are written: `logLevel`, `LOG_LEVEL`, and the bindings of children. */

import { expect, onTestFinished, test, vi } from 'vitest';
import { Postern, type LogLevel, type PosternOptions } from 'postern';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

/** What the default logger writes while a test runs. */
function captureStderr(): Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    lines.push(JSON.parse(String(text)) as Record<string, unknown>);
    return true;
  });
  onTestFinished(() => spy.mockRestore());
  return lines;
}

function setEnv(name: string, value: string | undefined): void {
  vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

async function logAt(options: PosternOptions): Promise<unknown[]> {
  const lines = captureStderr();
  const app = new Postern('users', options).get('/', (ctx) => {
    for (const level of LEVELS) ctx.log[level]({ at: level }, 'm');
  });
  await app.request('/');
  await app.close();
  return lines.map(({ at }) => at);
}

test.for<{ logLevel?: LogLevel; env?: string; first: number }>([
  { first: 1 },
  { env: '', first: 1 },
  { env: 'debug', first: 0 },
  { env: 'error', first: 3 },
  { logLevel: 'debug', first: 0 },
  { logLevel: 'info', first: 1 },
  { logLevel: 'warn', first: 2 },
  { logLevel: 'error', env: 'debug', first: 3 },
])('logLevel $logLevel with LOG_LEVEL $env', async ({ logLevel, env, first }) => {
  setEnv('LOG_LEVEL', env);
  expect(await logAt(logLevel === undefined ? {} : { logLevel })).toEqual(LEVELS.slice(first));
});

test('at debug, a refused request is a line', async () => {
  const lines = captureStderr();
  const app = new Postern('users', { logLevel: 'debug' });
  await app.request('/nowhere');
  await app.close();
  expect(lines).toMatchObject([{ level: 'debug', msg: 'request refused', status_code: 404, target: '/nowhere' }]);
});

test.for(['loud', 'INFO', 'trace', ' info', '0', 'toString'])(
  'LOG_LEVEL=%j is a TypeError, unless the logger is given',
  (level) => {
    setEnv('LOG_LEVEL', level);
    expect(() => new Postern('users'))
      .toThrow(new TypeError(`LOG_LEVEL is "${level}"; give one of debug, info, warn, error`));
    expect(() => new Postern('users', { logger: false })).not.toThrow();
    expect(() => new Postern('users', { logger: createRecorder() })).not.toThrow();
  },
);

test.for(['loud', 5, null])('the option logLevel: %j is a TypeError', (logLevel) => {
  expect(() => createApp({ logLevel } as never))
    .toThrow(/^logLevel of new Postern\(\) is .*; give one of debug, info, warn, error$/);
});

test('a child adds its bindings to those of its parent, and an entry beats both', async () => {
  const logger = createRecorder();
  const app = createApp({ logger }).get('/', (ctx) => {
    const child = ctx.log.child({ user: 'ada', step: 1 });
    child.child({ step: 2 }).info({ a: 1 }, 'm');
    child.warn({ user: 'eve' }, 'm');
    ctx.log.info({}, 'm');
    child.child(null as never).info({}, 'm');
  });
  await app.request('/', { headers: { 'x-request-id': 'r' } });
  expect(logger.entries.map(({ object }) => object)).toEqual([
    { request_id: 'r', user: 'ada', step: 2, a: 1 },
    { request_id: 'r', user: 'eve', step: 1 },
    { request_id: 'r' },
    { request_id: 'r', user: 'ada', step: 1 },
  ]);
});

test('what the framework logs of a request goes through the log that middleware put there', async () => {
  const logger = createRecorder();
  const other = createRecorder();
  const app = expectFailures(createApp({ logger, accessLog: true }), 500);
  app.use((ctx, next) => {
    if (ctx.query.has('other')) ctx.log = other;
    else ctx.log = ctx.log.child({ user: 'ada' });
    return next();
  });
  app.get('/', () => {
    throw new Error('boom');
  });
  await app.request('/?a=1', { headers: { 'x-request-id': 'r' } });
  expect(logger.entries).toMatchObject([
    { level: 'error', message: 'request failed',
      object: { user: 'ada', request_id: 'r', status_code: 500, target: '/', err: { message: 'boom' } } },
    { level: 'info', message: 'request', object: { user: 'ada', request_id: 'r', status: 500 } },
  ]);
  await app.request('/?other');
  expect(logger.entries).toHaveLength(2);
  expect(other.entries.map(({ level }) => level)).toEqual(['error', 'info']);
});

test.for([null, undefined, {}, 'log', { info() {} }])('ctx.log = %j is a TypeError', async (log) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500).get('/', (ctx) => {
    ctx.log = log as never;
  });
  expect((await app.request('/')).status).toBe(500);
  expect(logger.entries).toMatchObject([
    { object: { err: new TypeError(`ctx.log has no method "debug"; give debug, info, warn and error`) } },
  ]);
});

test('where it listens is one line at info', async () => {
  const lines = captureStderr();
  const app = new Postern('users');
  const listening = await app.listen({ host: '127.0.0.1', port: 0 });
  await app.close();
  expect(lines).toEqual([
    { level: 'info', time: expect.any(String), service: 'users', ...listening, msg: 'listening' },
  ]);
});
