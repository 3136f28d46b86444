/** `app.log`: the logger of an application, for what is not a request. */

import { expect, test } from 'vitest';
import { createApp, createRecorder } from '../support/serve.js';

test('app.log writes to the logger of the application, with its bindings, and needs no request', () => {
  const logger = createRecorder();
  const { log } = createApp({ logger });
  const { warn } = log.child({ queue: 'orders' });
  log.info({ port: 6379 }, 'connected');
  warn({ err: new Error('gone') }, 'disconnected');
  expect(logger.entries).toEqual([
    { level: 'info', object: { port: 6379 }, message: 'connected' },
    { level: 'warn', object: { queue: 'orders', err: new Error('gone') }, message: 'disconnected' },
  ]);
});

test('app.log never throws, whatever the logger does and whatever it is given', () => {
  const fail = (): never => {
    throw new Error('disk is full');
  };
  const { log } = createApp({ logger: { debug: fail, info: fail, warn: fail, error: fail } });
  log.info({ port: 6379 }, 'connected');
  log.info('only a text');
  log.error(null as never);
});
