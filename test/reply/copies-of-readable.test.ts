/**
 * A stream of a copy of `node:stream` is a stream: archiver, through2 and others bring one along, and its streams are
 * not instances of Node's classes.
 *
 * @module-tag package
 */

import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';
import type { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Handler, Middleware } from 'postern';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';
import { askOrLeave } from '../support/wire.js';

const { PassThrough } = createRequire(import.meta.url)('readable-stream') as typeof import('node:stream');

const later: Middleware = async (_ctx, next) => {
  const answered = await next();
  await turn();
  return answered;
};
const replaceBody: Middleware = async (_ctx, next) => {
  (await next()).body = 'other';
};

/** What leaves a stream unwanted. */
const ENDS: Readonly<Record<string, { middleware?: Middleware[]; method?: string; disconnects?: boolean }>> = {
  'HEAD': { method: 'HEAD' },
  'another body that middleware assigns': { middleware: [replaceBody] },
  'a client that disconnects': { disconnects: true },
};

test.for(Object.keys(ENDS))('it is freed with the file that is piped into it, by %s', async (end) => {
  const { middleware = [], method = 'GET', disconnects = false } = ENDS[end] as (typeof ENDS)[string];
  const streams: Readable[] = [];
  const app = createApp().get('/', { middleware }, () => {
    const source = createReadStream(process.execPath);
    const target = source.pipe(new PassThrough());
    streams.push(source, target);
    return target;
  });
  const { port } = await serve(app);
  await askOrLeave(port, method, disconnects);
  await expect.poll(() => streams.map(({ destroyed }) => destroyed)).toEqual([true, true]);
});

const failing: Handler = () => {
  const stream = new PassThrough();
  setImmediate(() => stream.destroy(new Error('the source failed')));
  return stream;
};

test.for<[string, Middleware[]]>([
  ['that is read', []],
  ['before it is read', [later, later]],
])('one that fails is a 500 and one line: %s', async ([, middleware]) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500).get('/', { middleware }, failing);
  expect((await app.request('/')).status).toBe(500);
  expect(logger.entries.map(({ level, message }) => [level, message])).toEqual([['error', 'request failed']]);
});

test('one that fails and is not wanted is no harm', async () => {
  const app = createApp().get('/', { middleware: [later, replaceBody] }, failing);
  expect(await (await app.request('/')).text()).toBe('other');
});

test('one inside of a value is lost in JSON, and the log says so', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500);
  app.get('/file', async (ctx): Promise<object> => ({ file: await failing(ctx) }));
  expect((await app.request('/file')).status).toBe(500);
  expect(logger.entries).toMatchObject([
    { object: { err: { message: expect.stringContaining('/file is a stream, which JSON loses') as string } } },
  ]);
});
