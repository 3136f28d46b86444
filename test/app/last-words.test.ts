/**
 * What a process says before it ends for a reason that nobody planned, and what its clients get.
 *
 * @module-tag slow
 */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Run {
  readonly child: ChildProcess;
  /** The next line of stdout. */
  line(): Promise<string>;
  readonly logged: Promise<Record<string, unknown>[]>;
  readonly stderr: Promise<string>;
  readonly exited: Promise<[number | null, string | null]>;
}

/** Runs a service in a process of its own, whose requests `GET /slow` and `GET /never` write a line to stdout. */
function start(script: string, env: Readonly<Record<string, string>> = {}): Run {
  const source = `
    import { Postern } from 'postern';
    const create = (options) => new Postern('shop', { logLevel: 'info', accessLog: true, ...options })
      .get('/slow', () => (console.log('slow'), new Promise((resolve) => setTimeout(resolve, 300, 'done'))))
      .get('/never', () => (console.log('never'), new Promise(() => {})))
      .get('/float', () => (void Promise.reject(new TypeError('floating')), 'sent'))
      .get('/throw', () => (setTimeout(() => { throw new RangeError('thrown'); }), 'sent'))
      .get('/events', async function* () { yield 'one'; console.log('open'); await new Promise(() => {}); });
    const run = async (options, how) => {
      console.log((await create(options).run({ host: '127.0.0.1', port: 0, delay: 0, ...how })).url);
    };
    ${script}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    cwd: ROOT,
    env: { ...process.env, LOG_FORMAT: '', KUBERNETES_SERVICE_HOST: '', ...env },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = child.stdout.setEncoding('utf8').iterator();
  let rest = '';
  const line = async (): Promise<string> => {
    while (!rest.includes('\n')) {
      const { value, done } = await lines.next();
      if (done === true) return 'ended';
      rest += String(value);
    }
    const [first = '', ...others] = rest.split('\n');
    rest = others.join('\n');
    return first;
  };
  const stderr = text(child.stderr);
  const logged = stderr.then((all) => all.trim().split('\n').filter((each) => each.startsWith('{'))
    .map((each) => JSON.parse(each) as Record<string, unknown>));
  return { child, line, stderr, logged, exited: once(child, 'exit') as Run['exited'] };
}

const bodyOf = (url: string): Promise<string> =>
  fetch(url, { headers: { 'x-request-id': new URL(url).pathname.slice(1) } }).then((response) => response.text())
    .catch(() => 'cut');

test.for([
  ['/float', 'unhandled rejection', 'TypeError', 'floating'],
  ['/throw', 'uncaught exception', 'RangeError', 'thrown'],
] as const)('%s: an %s is one line with the requests in flight, which finish; then the process exits with 1',
  async ([path, msg, type, message]) => {
    const { line, logged, stderr, exited } = start('await run({});');
    const url = await line();
    const slow = bodyOf(`${url}/slow`);
    expect(await line()).toBe('slow');
    await bodyOf(url + path);
    expect(await slow).toBe('done');
    expect(await exited).toEqual([1, null]);
    expect((await stderr).split('\n').every((each) => each === '' || each.startsWith('{'))).toBe(true);
    const errors = (await logged).filter(({ level }) => level === 'error');
    expect(errors).toMatchObject([{ msg, err: { type, message, stack: expect.stringContaining(message) } }]);
    expect(errors[0]?.['requests']).toContainEqual(
      { route: '/slow', request_id: 'slow', age_ms: expect.any(Number) },
    );
  });

test('a request that does not end within a second of an uncaught exception is cut off, and one line says so', async () => {
  const { line, logged, exited } = start('await run({});');
  const url = await line();
  const never = bodyOf(`${url}/never`);
  expect(await line()).toBe('never');
  await bodyOf(`${url}/throw`);
  expect([await never, await exited]).toEqual(['cut', [1, null]]);
  const cut = (await logged).filter(({ msg }) => String(msg).startsWith('cut off'));
  expect(cut).toMatchObject([{ requests: [{ route: '/never', request_id: 'never' }], request_count: 1 }]);
});

test.for([
  ['a listener of uncaughtException', `process.on('uncaughtException', () => console.log('caught'));`, '/throw'],
  ['a listener of unhandledRejection', `process.on('unhandledRejection', () => console.log('caught'));`, '/float'],
  ['a capture callback', `process.setUncaughtExceptionCaptureCallback(() => console.log('caught'));`, '/throw'],
] as const)('%s of someone else decides alone', async ([, script, path]) => {
  const { child, line, logged, exited } = start(`${script} await run({});`);
  const url = await line();
  await bodyOf(url + path);
  expect(await line()).toBe('caught');
  expect(await bodyOf(`${url}/slow`)).toBe('done');
  child.kill('SIGINT');
  expect(await exited).toEqual([0, null]);
  expect((await logged).filter(({ level }) => level === 'error')).toEqual([]);
});

test('run() has no listener of its own for exceptions before one happens, and listen() none at all', async () => {
  const { line, stderr, exited } = start(`
    const names = ['uncaughtException', 'unhandledRejection', 'uncaughtExceptionMonitor'];
    const count = () => console.log(names.map((name) => process.listenerCount(name)).join());
    await create({ logger: false }).listen({ host: '127.0.0.1', port: 0 });
    count();
    await run({ logger: false });
    count();
    throw new TypeError('without a logger');`);
  expect([await line(), (await line()).startsWith('http:'), await line()]).toEqual(['0,0,0', true, '0,0,1']);
  expect(await exited).toEqual([1, null]);
  expect(await stderr).toContain('TypeError: without a logger\n    at ');
});

test('an exception while the process drains ends it within a second, with 1', async () => {
  const { child, line, exited, logged } = start(`
    process.on('SIGTERM', () => setTimeout(() => { throw new RangeError('thrown'); }));
    await run({}, { timeout: 60_000 });`);
  const url = await line();
  const never = bodyOf(`${url}/never`);
  expect(await line()).toBe('never');
  child.kill('SIGTERM');
  expect([await never, await exited]).toEqual(['cut', [1, null]]);
  expect((await logged).map(({ msg }) => msg)).toContain('uncaught exception');
});

test('a drain that cuts says what it cut, with 1; the access log has the status that was sent, or null', async () => {
  const { child, line, logged, exited } = start(`
    await run({}, { timeout: 300 });`);
  const url = await line();
  const cut = [bodyOf(`${url}/events`)];
  expect(await line()).toBe('open');
  cut.push(bodyOf(`${url}/never`));
  expect(await line()).toBe('never');
  child.kill('SIGTERM');
  expect([await Promise.all(cut), await exited]).toEqual([['cut', 'cut'], [1, null]]);
  const lines = await logged;
  expect(lines.filter(({ msg }) => String(msg).startsWith('cut off'))).toEqual([
    expect.objectContaining({
      msg: 'cut off what took longer than the timeout of the drain',
      requests: [
        { route: '/events', request_id: 'events', age_ms: expect.any(Number) },
        { route: '/never', request_id: 'never', age_ms: expect.any(Number) },
      ],
      request_count: 2,
      jobs: 0,
      tracked: 0,
      timeout_ms: 300,
    }),
  ]);
  expect(lines.filter(({ msg }) => msg === 'request').map(({ route, status, cut: was }) => [route, status, was]).sort())
    .toEqual([['/events', 200, true], ['/never', null, true]]);
});

test('a signal that comes twice at once counts once: the request in flight finishes, with 0', async () => {
  const { child, line, exited } = start('await run({});');
  const url = await line();
  const slow = bodyOf(`${url}/slow`);
  expect(await line()).toBe('slow');
  child.kill('SIGINT');
  child.kill('SIGINT');
  child.kill('SIGTERM');
  expect([await slow, await exited]).toEqual(['done', [0, null]]);
});

async function takenPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test.for([
  ['the option port', 'await run({}, { port: PORT });'],
  ['PORT', `await create({}).run({ host: '127.0.0.1' });`],
  ['monitor.port or MONITOR_PORT', `await run({ monitor: { port: PORT, host: '127.0.0.1' } });`],
] as const)('run() on a port in use: one line with the remedy, no stack, and 1: %s', async ([from, script]) => {
  const port = await takenPort();
  const { stderr, exited } = start(script.replace('PORT', String(port)), { PORT: String(port) });
  expect(await exited).toEqual([1, null]);
  expect((await stderr).trim().split('\n').map((each) => JSON.parse(each) as object)).toEqual([{
    level: 'error', time: expect.any(String), service: 'shop', code: 'EADDRINUSE',
    msg: `cannot listen: port ${port} (${from}) on "127.0.0.1" is in use; end the process that has it, or choose another port (0 picks a free one)`,
  }]);
});

test('run() on a port in use, without a logger, says so all the same', async () => {
  const port = await takenPort();
  const { stderr, exited } = start(`await run({ logger: false }, { port: ${port} });`);
  expect(await exited).toEqual([1, null]);
  expect(await stderr).toMatch(/^cannot listen: port .* is in use; .*\n$/);
});
