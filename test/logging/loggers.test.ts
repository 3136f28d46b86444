/** Loggers that users bring along: pino as it is, others that have to be adapted. */

import log4js from 'log4js';
import pino from 'pino';
import winston from 'winston';
import { Writable } from 'node:stream';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { Postern, type Logger } from 'postern';
import { createApp, expectFailures } from '../support/serve.js';

const trap = (): never => {
  throw new Error('trap');
};

test.for<[string, () => Error]>([
  ['an error', () => new TypeError('boom')],
  ['a frozen error', () => Object.freeze(new TypeError('boom'))],
  ['an error whose stack throws', () => Object.defineProperty(new TypeError('boom'), 'stack', { get: trap })],
  ['an error with a cause that is frozen', () => new TypeError('boom', { cause: Object.freeze(new Error('inner')) })],
])('pino writes the line of a 500 for %s', async ([, create]) => {
  let written = '';
  const logger = pino({}, { write: (line: string) => void (written += line) });
  const app = expectFailures(createApp({ logger }), 500).get('/', () => {
    throw create();
  });
  await (await app.request('/')).text();
  const lines = written.trim().split('\n').map((line) => JSON.parse(line) as object);
  expect(lines).toMatchObject([{
    level: 50, msg: 'request failed', status_code: 500, target: '/',
    err: { type: 'TypeError', message: expect.stringContaining('boom'), stack: expect.any(String) },
  }]);
});

test('a logger that throws gets the entry once more, as plain text', () => {
  const entries: unknown[] = [];
  const error = (...entry: unknown[]): void => {
    entries.push(entry);
    if (entries.length === 1) trap();
  };
  const { log } = createApp({ logger: { debug: trap, info: trap, warn: trap, error } });
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  log.error({ a: 1, err: new TypeError('boom'), cycle, big: 7n, none: null }, 'failed');
  expect(entries[1]).toEqual([
    {
      a: 1,
      err: { name: 'TypeError', message: 'boom', stack: expect.stringContaining('TypeError: boom\n    at ') },
      cycle: expect.stringContaining('[Circular *1]'),
      big: '7n',
      none: null,
    },
    'failed',
  ]);
});

const lines: string[] = [];
const stream = new Writable({ write: (chunk, _encoding, done) => (lines.push(String(chunk)), done()) });
const ofWinston = winston.createLogger({ transports: [new winston.transports.Stream({ stream })] });

test.for([
  ['winston', ofWinston],
  ['log4js', log4js.getLogger()],
] as const)('%s, which takes the message first, is refused with the remedy', ([, logger]) => {
  const remedy = 'takes the message first, as winston and log4js do; swap the arguments of each method: ' +
    '{ info: (object, message) => logger.info(message, object), ... }; for winston, write object.err by inspect()';
  expect(() => new Postern('users', { logger: logger as unknown as Logger }))
    .toThrow(new TypeError(`logger ${remedy}`));
});

test('winston with its arguments swapped, as the remedy says, writes the line of a 500 with its error', async () => {
  const swap = (level: 'debug' | 'info' | 'warn' | 'error') => (object: object, message?: string) => {
    ofWinston[level](message ?? '', 'err' in object ? { ...object, err: inspect(object.err) } : object);
  };
  const logger = { debug: swap('debug'), info: swap('info'), warn: swap('warn'), error: swap('error') };
  const app = expectFailures(createApp({ logger }), 500).get('/', () => {
    throw new TypeError('boom');
  });
  await (await app.request('/')).text();
  const err: unknown = expect.stringMatching(/^TypeError: boom\n +at /);
  expect(lines.map((line) => JSON.parse(line) as object))
    .toMatchObject([{ level: 'error', message: 'request failed', status_code: 500, err }]);
});

test('a logger that takes both orders, such as consola, is accepted', () => {
  const consola = { level: 3, log() {}, debug() {}, info() {}, warn() {}, error() {} };
  expect(() => createApp({ logger: consola })).not.toThrow();
  expect(() => createApp({ logger: console })).not.toThrow();
});
