/** A log call never throws, and its level and message survive whatever it is given. */

import { expect, test } from 'vitest';
import type { Context } from 'postern';
import { bindLogger, JsonLogger } from '../../src/base/log.js';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const cycle: Record<string, unknown> = { a: 1 };
cycle['self'] = cycle;
const trap = (): never => {
  throw new Error('trap');
};

const given: [string, unknown, object][] = [
  ['a getter at the top', { a: 1, get b(): never { return trap(); } }, { a: 1, b: expect.stringContaining('trap') }],
  ['a proxy that throws at everything', new Proxy({}, { ownKeys: trap, get: trap, getPrototypeOf: trap }), {}],
  ['a revoked proxy', revoked(), {}],
  ['a revoked proxy as a member', { a: 1, b: revoked() }, { a: 1, b: expect.any(String) }],
  ['a cycle', cycle, { a: 1, self: expect.any(String) }],
  ['a cycle among arrays', { a: [cycle] }, { a: expect.any(String) }],
  ['a BigInt', { a: 2n ** 70n }, { a: '1180591620717411303424' }],
  ['a member whose toJSON throws', { a: 1, b: { toJSON: trap } }, { a: 1 }],
  ['a toJSON at the top', { a: 1, toJSON: () => 'forged' }, { a: 1 }],
  ['a toJSON at the top that gives nothing', { a: 1, toJSON: () => undefined }, { a: 1 }],
  ['a function and a symbol', { a: 1, b: () => 1, c: Symbol('c') }, { a: 1 }],
  ['a cycle beside a function', { a: cycle, b: () => 1 }, { b: null }],
  ['a name of the prototype', JSON.parse('{"a":1,"__proto__":{"b":2}}'), { a: 1 }],
  ['undefined', undefined, {}],
  ['null', null, {}],
  ['a number', 7, {}],
  ['a symbol', Symbol('s'), {}],
  ['a function', () => 1, {}],
  ['an error', new TypeError('boom'), { err: expect.objectContaining({ type: 'TypeError', message: 'boom' }) }],
  ['an error with a getter', Object.assign(new Error('boom'), { get a(): number { return 1; } }),
    { err: expect.objectContaining({ message: 'boom' }) }],
];

test.for(given)('%s', ([, value, members]) => {
  for (const bindings of [{}, { request_id: 'r' }]) {
    const lines: string[] = [];
    const logger = bindLogger(new JsonLogger('users', (line) => lines.push(line)), bindings);
    logger.warn(value as object, 'told');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^[^\r\n]+\n$/);
    expect(JSON.parse(lines[0] as string))
      .toMatchObject({ level: 'warn', service: 'users', msg: 'told', ...bindings, ...members });
  }
});

test.for(given)('%s, by a logger of the user and from a handler', async ([, value]) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 'told').get('/', (ctx: Context) => {
    ctx.log.error(value as object, 'told');
    return 'sent';
  });
  expect(await (await app.request('/')).text()).toBe('sent');
  expect(logger.entries).toMatchObject([
    { level: 'error', message: 'told', object: { request_id: expect.any(String) } },
  ]);
});

test('a call without a message calls the logger of the user without one', () => {
  const calls: unknown[][] = [];
  const write = (...args: unknown[]): void => void calls.push(args);
  const log = bindLogger({ debug: write, info: write, warn: write, error: write }, {});
  log.info({ a: 1 });
  log.info({ a: 1 }, 'told');
  expect(calls).toEqual([[{ a: 1 }], [{ a: 1 }, 'told']]);
});

test('a text as first argument is the message, whatever stands behind it', () => {
  const lines: string[] = [];
  const logger = bindLogger(new JsonLogger('users', (line) => lines.push(line)), {});
  logger.info('started');
  logger.info('started', { port: 80 } as never);
  logger.info('started', 'twice' as never);
  logger.info(503 as never);
  expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
    { level: 'info', time: expect.any(String), service: 'users', msg: 'started' },
    { level: 'info', time: expect.any(String), service: 'users', port: 80, msg: 'started' },
    { level: 'info', time: expect.any(String), service: 'users', msg: 'started' },
    { level: 'info', time: expect.any(String), service: 'users', msg: '503' },
  ]);
});

test('a message that is no text is told in words', () => {
  const lines: string[] = [];
  bindLogger(new JsonLogger('users', (line) => lines.push(line)), {}).info({}, { a: 1n } as never);
  expect(JSON.parse(lines[0] as string)).toMatchObject({ msg: '{ a: 1n }' });
});

test('a logger of the user that throws, or whose promise rejects, does not reach the handler', async () => {
  const fail = async (): Promise<never> => trap();
  const app = createApp({ logger: { debug: trap, info: trap, warn: fail, error: fail } }).get('/', (ctx) => {
    for (const level of ['debug', 'info', 'warn', 'error'] as const) ctx.log[level]({}, 'm');
    return 'sent';
  });
  expect(await (await app.request('/')).text()).toBe('sent');
  await new Promise((resolve) => setImmediate(resolve));
});

test('the empty message of an AggregateError is made of those of its errors', () => {
  const lines: string[] = [];
  const errors = [new Error('connect ECONNREFUSED ::1:80'), new Error('connect ECONNREFUSED 127.0.0.1:80'), 7n];
  bindLogger(new JsonLogger('users', (line) => lines.push(line)), {}).error(
    { err: new Error('unreachable', { cause: new AggregateError(errors) }) },
    'failed',
  );
  expect(JSON.parse(lines[0] as string)).toMatchObject({
    err: {
      message: 'unreachable',
      cause: {
        type: 'AggregateError',
        message: 'connect ECONNREFUSED ::1:80; connect ECONNREFUSED 127.0.0.1:80; 7n',
        errors: [
          { message: 'connect ECONNREFUSED ::1:80', stack: expect.any(String) },
          { message: 'connect ECONNREFUSED 127.0.0.1:80' },
          '7',
        ],
      },
    },
  });
});

test('causes and errors without an end are followed for a while', () => {
  const lines: string[] = [];
  const error: Error = new AggregateError([], 'outer');
  error.cause = error;
  (error as AggregateError).errors = [error, error];
  bindLogger(new JsonLogger('users', (line) => lines.push(line)), {}).error(error, 'failed');
  expect(JSON.parse(lines[0] as string))
    .toMatchObject({ msg: 'failed', err: { message: 'outer', cause: { message: 'outer' } } });
});

const BOOM = { type: 'TypeError', message: 'boom' };
const trapped = (name: string, value?: unknown): Error => {
  return Object.defineProperty(new TypeError('boom'), name, value === undefined ? { get: trap } : { value });
};

test.for<[string, unknown, object]>([
  ['a stack that throws', trapped('stack'), { ...BOOM, stack: expect.stringContaining('trap') }],
  ['a cause that throws', trapped('cause'), { ...BOOM, stack: expect.stringContaining('boom') }],
  ['a message that throws', trapped('message'), { type: 'TypeError', message: expect.stringContaining('trap') }],
  ['a name that is a number', trapped('name', 7), { type: 'Error', message: 'boom' }],
  ...[7, null, {}, 'entity.too.large'].map((type): [string, unknown, object] => {
    const error = Object.assign(new TypeError('boom'), { type, code: 'E' });
    return [`an own type of ${JSON.stringify(type)}`, error, { type: 'TypeError', message: 'boom', code: 'E' }];
  }),
])('an error with %s keeps its class, message and stack', ([, err, fields]) => {
  const lines: string[] = [];
  bindLogger(new JsonLogger('users', (line) => lines.push(line)), {}).error({ err }, 'failed');
  expect(JSON.parse(lines[0] as string)).toMatchObject({ msg: 'failed', err: fields });
});
