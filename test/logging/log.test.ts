/** The default logger: one JSON object a line, whatever it is given. */

import { expect, test } from 'vitest';
import { bindLogger, JsonLogger, createLogger, logSafely } from '../../src/base/log.js';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

const cyclic: Record<string, unknown> = { a: 1 };
cyclic['self'] = cyclic;
const selfCaused = new Error('outer');
selfCaused.cause = selfCaused;

const naughty: [string, object, string][] = [
  ['line breaks and control characters', { path: '/a\r\nlevel=error\u0000\u001b[31m\u2028' }, 'x\ny'],
  ['a cycle', cyclic, 'm'],
  ['a bigint', { a: 1n }, 'm'],
  ['a getter that throws', { get a(): never { throw new Error('no'); } }, 'm'],
  ['an error that causes itself', { err: selfCaused }, 'm'],
  ['a function', { a: () => 1 }, 'm'],
  ['a forged level', { level: 'debug', msg: 'forged' }, 'real'],
];
test.for(naughty)('%s stays one valid JSON line', ([, object, message]) => {
  let written = '';
  bindLogger(new JsonLogger('users', (line) => (written += line)), {}).error(object, message);
  expect(written.endsWith('\n')).toBe(true);
  expect(written.slice(0, -1)).not.toMatch(/[\n\r]/);
  expect(JSON.parse(written)).toHaveProperty('msg');
});

test('an entry has level, time, service, what was given and the message; an error its type and stack', () => {
  let written = '';
  const cause = new RangeError('inner');
  bindLogger(new JsonLogger('users', (line) => (written += line)), {}).error(
    { err: new TypeError('boom', { cause }), id: 7 },
    'failed',
  );
  expect(JSON.parse(written)).toMatchObject({
    level: 'error',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    service: 'users',
    id: 7,
    msg: 'failed',
    err: {
      type: 'TypeError',
      message: 'boom',
      stack: expect.stringContaining('TypeError: boom'),
      cause: { type: 'RangeError', message: 'inner' },
    },
  });
});

test('debug entries are dropped by default; false drops all', () => {
  let written = '';
  bindLogger(new JsonLogger('users', (line) => (written += line)), {}).debug({}, 'm');
  const silent = createLogger({ logger: false }, 'users', {});
  for (const level of ['debug', 'info', 'warn', 'error'] as const) silent[level]({}, 'm');
  expect(written).toBe('');
});

test('a bound logger adds its bindings, below what the entry itself says', () => {
  const recorder = createRecorder();
  bindLogger(recorder, { request_id: 'a', b: 1 }).warn({ b: 2 }, 'm');
  expect(recorder.entries).toEqual([{ level: 'warn', object: { request_id: 'a', b: 2 }, message: 'm' }]);
});

test('a logger that throws does not reach the caller', () => {
  const broken = {
    ...createLogger({ logger: false }, 'users', {}),
    error: (): never => {
      throw new Error('disk full');
    },
  };
  expect(() => logSafely(broken, 'error', {}, 'm')).not.toThrow();
});

test('a logger whose promise rejects does not take the process down', async () => {
  const fail = async (): Promise<void> => { throw new Error('log'); };
  const app = expectFailures(createApp({ logger: { debug: fail, info: fail, warn: fail, error: fail } }), 500)
    .get('/', () => { throw new Error('x'); });
  const { url } = await serve(app);
  expect((await fetch(url)).status).toBe(500);
  await new Promise((resolve) => setImmediate(resolve));
  expect((await fetch(url)).status).toBe(500);
});

test.for<[what: string, members: object, json: unknown, written: object]>([
  ['an object', { request: cyclic }, { message: 'of toJSON', status: 502, type: 'x' }, { status: 502 }],
  ['a text', { status: 502 }, 'no answer', { status: 502 }],
])('an error whose toJSON returns %s keeps its type, message and stack, as a cause, too', ([, members, json, written]) => {
  const cause = Object.assign(new TypeError('no answer'), members, { toJSON: () => json });
  const err = { ...written, type: 'TypeError', message: 'no answer', stack: expect.stringContaining('at ') };
  let line = '';
  const log = bindLogger(new JsonLogger('users', (text) => (line = text)), {});
  log.error({ err: cause }, 'failed');
  expect(JSON.parse(line)).toMatchObject({ err });
  log.error({ err: new Error('outer', { cause }) }, 'failed');
  expect(JSON.parse(line)).toMatchObject({ err: { message: 'outer', cause: err } });
});

test('an error that can not even be printed is logged all the same', async () => {
  const lines: string[] = [];
  const hostile = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error('trap');
      },
      getPrototypeOf: () => {
        throw new Error('trap');
      },
    },
  );
  bindLogger(new JsonLogger('users', (line) => lines.push(line)), {}).error(
    {
      err: {
        get cause() {
          return hostile;
        },
        [Symbol.for('nodejs.util.inspect.custom')]: () => {
          throw new Error('trap');
        },
        toJSON() {
          throw new Error('trap');
        },
      },
    },
    'failed',
  );
  expect(lines.map((line) => JSON.parse(line) as object))
    .toEqual([expect.objectContaining({ level: 'error', msg: 'failed' })]);
});

test('an error given to the log as the object keeps its type, message and stack', async () => {
  const logger = createRecorder();
  const error = new TypeError('boom');
  const app = expectFailures(createApp({ logger }), 'failed').get('/', (ctx) => ctx.log.error(error, 'failed'));
  await fetch((await serve(app)).url);
  expect(logger.entries[0]).toMatchObject({ object: { err: error }, message: 'failed' });
});
