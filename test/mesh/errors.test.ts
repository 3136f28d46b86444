/** What crosses several services: errors, request ids, traces. */

import { expect, test } from 'vitest';
import { ApiError, defineErrorCodes, ServiceError, type Context } from 'postern';
import { startMesh } from '../support/mesh.js';
import { createRecorder, expectFailures } from '../support/serve.js';

const Codes = defineErrorCodes({ too_slow: 10002 });
class TooSlow extends ApiError {
  static override statusCode = 408;
  static override description = 'Too slow!';
  static override errorCode = Codes.too_slow;
}
const uniform = {
  message: 'An unknown error occurred',
  description: 'Too slow!',
  error_code: { name: 'too_slow', value: 10002 },
};
const forward = (service: string) => async (ctx: Context) => (await ctx.service(service).get('/work')).body;

test('an error raised three services deep reaches the client as it was, with one request id in all logs', async () => {
  const loggers = { a: createRecorder(), b: createRecorder(), c: createRecorder(), d: createRecorder() };
  const mesh = await startMesh({ a: ['b'], b: ['c'], c: ['d'], d: [] }, {}, loggers);
  for (const { app } of Object.values(mesh)) {
    app.use((ctx, next) => {
      ctx.log.info({}, 'request');
      return next();
    });
  }
  mesh.a.app.get('/work', forward('b'));
  mesh.b.app.get('/work', forward('c'));
  mesh.c.app.get('/work', forward('d'));
  mesh.d.app.get('/work', () => {
    throw new TooSlow(undefined, { headers: { 'retry-after': '7' } });
  });
  const response = await fetch(`${mesh.a.url}/work`);
  expect(response.status).toBe(408);
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(response.headers.get('retry-after')).toBe('7');
  expect(await response.json()).toEqual(uniform);
  const id = response.headers.get('x-request-id');
  expect(id).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
  for (const { entries } of Object.values(loggers))
    expect(entries.map(({ object }) => object['request_id'])).toContain(id);
  for (const { entries } of Object.values(loggers))
    expect(new Set(entries.map(({ object }) => object['request_id']))).toEqual(new Set([id]));
});

test('a handler sees which service failed, and may raise its own error instead', async () => {
  const { a, b } = await startMesh({ a: ['b'], b: [] });
  b.app.get('/work', () => {
    throw new TooSlow();
  });
  a.app.get('/work', async (ctx) => {
    try {
      return await forward('b')(ctx);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return { service: error.service, status: error.statusCode, code: error.errorCode };
    }
  });
  expect(await (await fetch(`${a.url}/work`)).json())
    .toEqual({ service: 'b', status: 408, code: { name: 'too_slow', value: 10002 } });
});

test('an unreachable service three hops away is a 503 with its name', async () => {
  const mesh = await startMesh({ a: ['b'], b: ['c'], c: ['d=http://nowhere.invalid'] });
  for (const { app } of Object.values(mesh)) expectFailures(app, 503);
  mesh.a.app.get('/work', forward('b'));
  mesh.b.app.get('/work', forward('c'));
  mesh.c.app.get('/work', forward('d'));
  const response = await fetch(`${mesh.a.url}/work`);
  expect(response.status).toBe(503);
  expect(await response.json()).toEqual({
    message: 'Service Unavailable',
    description: 'd is unreachable',
    error_code: { name: 'framework_error_unspecified', value: 999998 },
  });
});

test('trace and id go through every service as they came, credentials through none', async () => {
  const mesh = await startMesh({ a: ['b'], b: ['c'], c: [] });
  mesh.a.app.get('/work', forward('b'));
  mesh.b.app.get('/work', forward('c'));
  mesh.c.app.get('/work', (ctx) => ctx.headers);
  const headers = {
    'x-request-id': 'mine',
    traceparent: '00-12345678901234567890123456789012-1234567890123456-01',
    tracestate: 'a=1',
    baggage: 'b=2',
    authorization: 'x',
    cookie: 'c=3',
  };
  const seen = (await (await fetch(`${mesh.a.url}/work`, { headers })).json()) as Record<string, string>;
  expect(seen).toMatchObject({
    'x-request-id': 'mine',
    tracestate: 'a=1',
    baggage: 'b=2',
    traceparent: headers.traceparent,
  });
  expect(seen).not.toHaveProperty('authorization');
  expect(seen).not.toHaveProperty('cookie');
});

test('outside a request app.service calls without an id', async () => {
  const { a, b } = await startMesh({ a: ['b'], b: [] });
  b.app.get('/work', (ctx) => Object.keys(ctx.headers).sort());
  expect((await a.app.service('b').get('/work')).body)
    .toEqual(['accept', 'connection', 'host', 'user-agent', 'x-envoy-expected-rq-timeout-ms']);
  expect(() => a.app.service('c')).toThrow(TypeError);
});

test('an unknown service in a handler is a bug of the service: 500', async () => {
  const { a } = await startMesh({ a: [] });
  expectFailures(a.app, 500).get('/work', forward('nobody'));
  expect((await fetch(`${a.url}/work`)).status).toBe(500);
});
