/** The log of one request. */

import { expect, test } from 'vitest';
import { ApiError, HttpError, reply } from 'postern';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

test('the log of a request carries its id', async () => {
  const logger = createRecorder();
  const app = createApp({ logger }).get('/', (ctx) => ctx.log.info({ a: 1 }, 'seen'));
  await fetch((await serve(app)).url, { headers: { 'x-request-id': 'me-1' } });
  expect(logger.entries).toEqual([{ level: 'info', object: { request_id: 'me-1', a: 1 }, message: 'seen' }]);
});

test.for<[string, ApiError | HttpError, string]>([
  ['501 of the server', new HttpError(501), 'debug'],
  ['505 of the server', new HttpError(505), 'debug'],
  ['503 of the server', new HttpError(503), 'error'],
  ['501 of the service', new ApiError('x', { statusCode: 501 }), 'error'],
])('a %s is logged as it should be: any client can ask for what nobody serves', async ([, error, level]) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), error.statusCode).get('/', () => {
    throw error;
  });
  await app.request('/');
  expect(logger.entries.map((entry) => entry.level)).toEqual([level]);
});

test.for([
  ['Reply', reply('gone', { status: 404 })],
  ['Response', new Response('gone', { status: 404 })],
] as const)('a thrown %s has its remedy in the log', async ([, thrown]) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500).get('/', () => {
    throw thrown;
  });
  expect((await app.request('/')).status).toBe(500);
  expect(logger.entries.map(({ object }) => object))
    .toEqual([expect.objectContaining({ err: 'a reply was thrown; return it, or throw an ApiError' })]);
});
