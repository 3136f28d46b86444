/**
 * Errors of ours whose fields can't be read are mistakes of the service, and reach neither the client nor the process.
 */

import { expect, test } from 'vitest';
import { HttpError, NotFound } from 'postern';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

test.for(['message', 'description', 'statusCode', 'errorCode', 'headers'])(
  'an error whose %s throws is the fixed 500, logged at error',
  async (field) => {
    for (const error of [new NotFound('secret'), new HttpError(404, 'secret')]) {
      Object.defineProperty(error, field, { get: () => { throw new Error('secret'); } });
      const logger = createRecorder();
      const app = expectFailures(createApp({ logger }), 500);
      app.get('/sync', () => { throw error; });
      app.get('/async', async () => { throw error; });
      app.group('/around', (group) => group.use((_ctx, next) => next()).get('', () => { throw error; }));
      for (const path of ['/sync', '/async', '/around']) {
        const response = await app.request(path);
        expect(response.status).toBe(500);
        expect(await response.json()).toMatchObject({ message: 'Server Error', error_code: { value: 999999 } });
      }
      expect(logger.entries.map(({ level }) => level)).toEqual(['error', 'error', 'error']);
    }
  },
);

const hostile = { toString: (): never => { throw new Error('secret'); } };

test.for<[string, () => object]>([
  ['message', () => Object.assign(new NotFound('x'), { message: hostile })],
  ['description', () => Object.assign(new NotFound('x'), { description: hostile })],
  ['message of an HttpError', () => Object.assign(new HttpError(404, 'x'), { message: hostile })],
  ['description of an HttpError', () => Object.assign(new HttpError(404, 'x'), { description: hostile })],
])('an error whose %s alone cannot become text is the fixed 500, logged at error', async ([, create]) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500);
  app.get('/thrown', () => { throw create(); }).get('/returned', () => create());
  app.get('/around', { middleware: [(_ctx, next) => next()] }, async () => { throw create(); });
  for (const path of ['/thrown', '/returned', '/around']) {
    const response = await app.request(path);
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ message: 'Server Error', error_code: { value: 999999 } });
  }
  expect(logger.entries.map(({ level, message }) => [level, message]))
    .toEqual(['/thrown', '/returned', '/around'].map(() => ['error', 'request failed']));
  expect(app.metrics.expose()).not.toContain('status_code="404"');
});
