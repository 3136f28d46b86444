/**
 * Replies that are held to the response of their route.
 *
 * @module-tag package
 */

import { Readable } from 'node:stream';
import { z } from 'zod';
import { expect, test } from 'vitest';
import { BadRequest, InvalidRequest, NotFound, reply, type RequestFinding, type RouteOptions } from 'postern';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

const User = z.object({ id: z.string(), age: z.number() });
const fits: { name: string; response: RouteOptions['response']; result: () => unknown; status: number }[] = [
  { name: 'a plain value', response: User, result: () => ({ id: '7', age: 1 }), status: 200 },
  { name: 'a reply of another 2xx', response: User, result: () => reply({ id: '7', age: 1 }, { status: 201 }),
    status: 201 },
  { name: 'what goes out as text', response: z.object({ at: z.iso.datetime() }), result: () => ({ at: new Date(0) }),
    status: 200 },
  { name: 'members beyond the schema, which stay', response: { 200: User },
    result: () => ({ id: '7', age: 1, more: true }), status: 200 },
  { name: 'nothing', response: { 204: null }, result: () => undefined, status: 204 },
  { name: 'a reply that is no 2xx', response: User,
    result: () => reply({ any: 1 }, { status: 303, headers: { location: '/' } }), status: 303 },
  { name: 'a standard Response', response: { 200: User }, result: () => new Response('{}'), status: 200 },
  { name: 'an error that is thrown', response: User, result: () => { throw new NotFound(); }, status: 404 },
  { name: 'an error that is returned', response: User, result: () => new NotFound(), status: 404 },
  { name: 'an error in a reply', response: User, result: () => reply(new NotFound()), status: 404 },
  { name: 'bytes', response: { 200: User }, result: () => new Uint8Array(1), status: 200 },
];
test.for(fits)('validateResponses lets $name through as it is', async ({ response, result, status }) => {
  const app = createApp({ validateResponses: true }).get('/a', { response }, result as never);
  const answer = await app.request('/a', { redirect: 'manual' });
  expect(answer.status).toBe(status);
  if (status === 200 && answer.headers.get('content-type') === 'application/json')
    expect(await answer.text()).toBe(JSON.stringify(result()));
});

test('a stream with a 2xx that is not declared is released', async () => {
  const body = Readable.from(['x']);
  const app = expectFailures(createApp({ validateResponses: true }), 500);
  app.get('/a', { response: { 201: User } }, (() => body) as never);
  expect((await app.request('/a')).status).toBe(500);
  expect(body.destroyed).toBe(true);
});

const misfits: { name: string; response: RouteOptions['response']; result: () => unknown; log: string }[] = [
  { name: 'another type', response: User, result: () => ({ id: '7', age: 'old' }),
    log: 'the reply of GET /a does not fit its response 200: body/age: ' },
  { name: 'data with the tag of a Response', response: User, result: () => ({ [Symbol.toStringTag]: 'Response' }),
    log: 'the reply of GET /a does not fit its response 200: body' },
  { name: 'two findings', response: User, result: () => ({}), log: '(and 1 more)' },
  { name: 'a 2xx that is not declared', response: { 201: User }, result: () => ({ id: '7', age: 1 }),
    log: 'GET /a replied with 200, which its response does not declare' },
  { name: 'a Response with a 2xx that is not declared', response: { 201: User }, result: () => new Response('x'),
    log: 'GET /a replied with 200' },
  { name: 'a body where there is none', response: { 200: null }, result: () => 'x',
    log: 'GET /a replied to 200 with a body' },
  { name: 'no body where there is one', response: User, result: () => undefined, log: 'does not fit its response 204' },
  { name: 'a schema that throws', response: { 200: z.string().refine(() => { throw new Error('oh'); }) },
    result: () => 'x', log: 'the schema for the response of GET /a failed' },
  {
    name: 'a schema that rejects',
    response: {
      200: {
        '~standard': { version: 1, vendor: 'test', validate: async () => Promise.reject(new Error('oh')) },
      } as never,
    },
    result: () => 'x',
    log: 'the schema for the response of GET /a failed',
  },
];
test.for(misfits)(
  'validateResponses makes $name the fixed 500, and the log says where',
  async ({ response, result, log }) => {
    const recorder = createRecorder();
    const app = expectFailures(createApp({ validateResponses: true, logger: recorder }), 500)
      .get('/a', { response }, result as never);
    const answer = await app.request('/a');
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ message: 'Server Error', error_code: { value: 999999 } });
    expect(String(recorder.entries.find(({ level }) => level === 'error')?.object['err'])).toContain(log);
  },
);

test('without validateResponses nothing is looked at', async () => {
  const response = z.string().refine(() => { throw new Error('oh'); });
  const app = createApp().get('/a', { response }, () => 5 as never);
  expect(await (await app.request('/a')).json()).toBe(5);
});

const outputs: {
  name: string;
  response: RouteOptions['response'];
  result: () => unknown;
  status: number;
  body: string;
}[] = [
  { name: 'a member that the schema drops', response: User, result: () => ({ id: '7', age: 1, secret: 'x' }),
    status: 200, body: '{"id":"7","age":1}' },
  { name: 'a member of data with the tag of a Response, which the schema drops', response: User,
    result: () => ({ [Symbol.toStringTag]: 'Response', id: '7', age: 1, secret: 'x' }), status: 200,
    body: '{"id":"7","age":1}' },
  { name: 'a default', response: z.object({ a: z.number().default(1) }), result: () => ({}), status: 200,
    body: '{"a":1}' },
  { name: 'a value before it is JSON', response: z.object({ at: z.date().transform((date) => date.getTime()) }),
    result: () => ({ at: new Date(5) }), status: 200, body: '{"at":5}' },
  { name: 'status and headers', response: { 201: User },
    result: () => reply({ id: '7', age: 1, secret: 'x' }, { status: 201, headers: { 'x-a': 'b' } }), status: 201,
    body: '{"id":"7","age":1}' },
  { name: 'a text', response: z.string().transform((text) => text.toUpperCase()), result: () => 'a', status: 200,
    body: 'A' },
  { name: 'nothing', response: { 204: null }, result: () => undefined, status: 204, body: '' },
  {
    name: 'an error',
    response: User,
    result: () => new NotFound('No.'),
    status: 404,
    body: '{"message":"Not found.","description":"No.","error_code":{"name":"framework_error_unspecified","value":999998}}',
  },
];
test.for(outputs)(
  "validateResponses: 'output' sends what the schema returns: $name",
  async ({ response, result, status, body }) => {
    const app = createApp({ validateResponses: 'output' }).get('/a', { response }, result as never);
    const seen: unknown[] = [];
    app.use(async (_ctx, next) => {
      const inner = await next();
      seen.push(inner.status, inner.headers.get('x-a'));
      return inner;
    });
    const answer = await app.request('/a');
    expect([answer.status, await answer.text()]).toEqual([status, body]);
    expect(seen).toEqual([status, status === 201 ? 'b' : null]);
  },
);

test("validateResponses: 'output' makes a misfit the fixed 500", async () => {
  const app = expectFailures(createApp({ validateResponses: 'output' }), 500)
    .get('/a', { response: User }, (() => ({ id: 7 })) as never);
  expect((await app.request('/a')).status).toBe(500);
});

test('a refused request is an InvalidRequest with its findings, for middleware', async () => {
  const errors: unknown[] = [];
  const app = createApp().use(async (_ctx, next) => void errors.push((await next()).error));
  app.post('/', { body: User }, () => 1);
  const answer = await app.request('/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"id":7,"age":1}',
  });
  const { errors: sent } = (await answer.json()) as { errors: object[] };
  const [error] = errors;
  expect(error).toBeInstanceOf(InvalidRequest);
  expect(error).toBeInstanceOf(BadRequest);
  const findings: readonly RequestFinding[] = (error as InvalidRequest).findings;
  expect(findings).toEqual(sent);
  expect(findings.map(({ in: part, pointer }) => [part, pointer])).toEqual([['body', '#/id']]);
});

test('a reply that the handler writes by ctx.raw is not checked', async () => {
  const app = createApp({ validateResponses: true }).get('/', { response: User }, async ({ raw: { res } }) => {
    res.writeHead(200).write('a');
    setTimeout(() => res.end('b'), 5);
    return undefined as never;
  });
  expect(await (await app.request('/')).text()).toBe('ab');
});
