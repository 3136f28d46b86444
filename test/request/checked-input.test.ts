/**
 * Input that is held to schemas: by other people's validators, in every part of a request, and whatever a client sends.
 *
 * @module-tag package
 */

import { buffer } from 'node:stream/consumers';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { Ajv } from 'ajv';
import { type } from 'arktype';
import { Effect, Schema as EffectSchema } from 'effect';
import { Type } from 'typebox';
import * as v from 'valibot';
import { z } from 'zod';
import { expect, test } from 'vitest';
import {
  BadRequest, InvalidRequest, Postern, type AnySchema, type Middleware, type SchemaResult, type StandardSchemaV1,
} from 'postern';
import { HEAD, rawRequest } from '../support/raw.js';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

/** A schema by hand. */
const byHand = <T = unknown>(
  validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>,
): StandardSchemaV1<unknown, T> => ({ '~standard': { version: 1, vendor: 'test', validate } });
const issues = (
  ...list: { message: string; path?: readonly (PropertyKey | { readonly key: PropertyKey })[] }[]
): StandardSchemaV1 => byHand(() => ({ issues: list }));

/** The adapter that the README shows, but for its type: in these tables, it would take the compiler a second. */
function checked(schema: Type.TSchema): StandardSchemaV1 {
  const validate = new Ajv({ allErrors: true }).compile(schema);
  const json = Object.fromEntries(Object.entries(schema));
  const found = (): { message: string; path: string[] }[] => (validate.errors ?? [])
    .map(({ message = '', instancePath }) => ({ message, path: instancePath.split('/').slice(1) }));
  return {
    '~standard': {
      version: 1,
      vendor: 'ajv',
      validate: (value) => (validate(value) ? { value } : { issues: found() }),
      jsonSchema: { input: () => json, output: () => json },
    },
  };
}

interface Library {
  readonly name: string;
  /** `{ user: { name: string of 2 or more, age: number } }`. */
  readonly nested: AnySchema;
  /** A text of digits that becomes a number. */
  readonly transform: AnySchema;
  readonly async: AnySchema | null;
}
const libraries: Library[] = [
  {
    name: 'zod',
    nested: z.object({ user: z.object({ name: z.string().min(2), age: z.number() }) }),
    transform: z.object({ n: z.string().regex(/^\d+$/).transform(Number) }),
    async: z.object({ n: z.string().refine(async (text) => text === 'ok', 'not ok') }),
  },
  {
    name: 'valibot',
    nested: v.object({ user: v.object({ name: v.pipe(v.string(), v.minLength(2)), age: v.number() }) }),
    transform: v.object({ n: v.pipe(v.string(), v.digits(), v.transform(Number)) }),
    async: v.objectAsync({ n: v.pipeAsync(v.string(), v.checkAsync(async (text) => text === 'ok', 'not ok')) }),
  },
  {
    name: 'arktype, whose schemas are functions',
    nested: type({ user: { name: 'string >= 2', age: 'number' } }),
    transform: type({ n: 'string.integer.parse' }),
    async: null,
  },
  {
    name: 'effect',
    nested: EffectSchema.standardSchemaV1(
      EffectSchema.Struct({
        user: EffectSchema.Struct({
          name: EffectSchema.String.pipe(EffectSchema.minLength(2)),
          age: EffectSchema.Number,
        }),
      }),
    ),
    transform: EffectSchema.standardSchemaV1(EffectSchema.Struct({ n: EffectSchema.NumberFromString })),
    async: EffectSchema.standardSchemaV1(
      EffectSchema.Struct({
        n: EffectSchema.String.pipe(
          EffectSchema.filterEffect((text) => Effect.promise(async () => text === 'ok' || 'not ok')),
        ),
      }),
    ),
  },
  {
    name: 'TypeBox and ajv by the adapter of the README',
    nested: checked(Type.Object({ user: Type.Object({ name: Type.String({ minLength: 2 }), age: Type.Number() }) })),
    transform: byHand((value) => ({ value: { n: Number((value as { n: string }).n) } })),
    async: byHand(async (value) =>
      (value as { n: string }).n === 'ok' ? { value } : { issues: [{ message: 'not ok', path: ['n'] }] },
    ),
  },
];

const post = (app: Postern, path: string, body: unknown): Promise<Response> =>
  app.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

test.for(libraries)(
  '$name: what fits reaches the handler as its schema gives it, what does not is a 400 with a pointer',
  async ({ nested, transform, async: asynchronous }) => {
    const app = createApp();
    app.post('/nested', { body: nested }, (_ctx, { body }) => ({ body }));
    app.get('/n/:n', { params: transform }, (ctx, { params }) => ({ params, own: ctx.params.n }));
    if (asynchronous !== null) app.get('/async', { query: asynchronous }, (_ctx, { query }) => ({ query }));

    expect(await (await post(app, '/nested', { user: { name: 'Ann', age: 7 } })).json())
      .toEqual({ body: { user: { name: 'Ann', age: 7 } } });
    const refused = await post(app, '/nested', { user: { name: 'Ann', age: 'seven' } });
    expect(refused.status).toBe(400);
    const error = (await refused.json()) as {
      description: string;
      errors: { in: string; pointer: string; detail: string }[];
    };
    expect(error).toMatchObject({
      message: 'Bad request.',
      error_code: { name: 'framework_invalid_request', value: 999401 },
    });
    expect(error.errors).toEqual([{ in: 'body', pointer: '#/user/age', detail: expect.any(String) }]);
    expect(error.description).toBe(`body/user/age: ${error.errors[0]?.detail}`);
    expect(await (await app.request('/n/7')).json()).toEqual({ params: { n: 7 }, own: '7' });
    if (asynchronous === null) return;
    expect(await (await app.request('/async?n=ok')).json()).toEqual({ query: { n: 'ok' } });
    expect(await (await app.request('/async?n=no')).json())
      .toMatchObject({ description: 'query/n: not ok', errors: [{ in: 'query', pointer: '#/n', detail: 'not ok' }] });
  },
);

test('the input has exactly the declared parts', async () => {
  const any = byHand((value) => ({ value }));
  const app = createApp();
  app.post('/all/:id', { params: any, query: any, headers: any, body: any }, (_ctx, input) => ({
    keys: Object.keys(input),
    ...input,
    headers: undefined,
    host: (input.headers as { host: string }).host,
  }));
  app.post('/none/:id', {}, (_ctx, input?: unknown) => ({ input: input === undefined }));
  app.post('/body', { body: any }, (_ctx, input) => Object.keys(input));
  expect(await (await post(app, '/all/a%2Fb?q=1&q=2&p=', { a: 1 })).json()).toEqual({
    keys: ['params', 'query', 'headers', 'body'],
    params: { id: 'a/b' },
    query: { q: ['1', '2'], p: '' },
    body: { a: 1 },
    host: expect.any(String),
  });
  expect(await (await post(app, '/none/1', {})).json()).toEqual({ input: true });
  expect(await (await post(app, '/body', 5)).json()).toEqual(['body']);
});

/** The same schema of a library that writes no JSON Schema. */
function unconvertible(schema: z.ZodType): AnySchema {
  const fail = (): never => { throw new Error('not in JSON Schema'); };
  return { '~standard': { ...schema['~standard'], jsonSchema: { input: fail, output: fail } } } as AnySchema;
}

const queries: { name: string; schema: AnySchema; query: string; seen: unknown }[] = [
  { name: 'zod', schema: z.object({ tag: z.array(z.string()), q: z.string().optional() }), query: 'tag=a&q=b',
    seen: { tag: ['a'], q: 'b' } },
  { name: 'zod, optional and nullable', schema: z.object({ tag: z.array(z.string()).nullable().optional() }),
    query: 'tag=a', seen: { tag: ['a'] } },
  { name: 'zod, any name', schema: z.record(z.string(), z.array(z.string())), query: 'a=1&b=2&b=3',
    seen: { a: ['1'], b: ['2', '3'] } },
  { name: 'zod, either', schema: z.object({ tag: z.union([z.string(), z.array(z.string())]) }), query: 'tag=a',
    seen: { tag: 'a' } },
  { name: 'arktype', schema: type({ tag: 'string[]' }), query: 'tag=a', seen: { tag: ['a'] } },
  { name: 'valibot with JSON Schema', schema: toStandardJsonSchema(v.object({ tag: v.array(v.string()) })),
    query: 'tag=a', seen: { tag: ['a'] } },
  { name: 'TypeBox', schema: checked(Type.Object({ tag: Type.Array(Type.String()) })), query: 'tag=a',
    seen: { tag: ['a'] } },
  { name: 'zod with a member that JSON Schema lacks', query: 'tag=a&at=2026-01-01',
    schema: z.object({ tag: z.array(z.string()), at: z.coerce.date(), n: z.bigint().optional() }),
    seen: { tag: ['a'], at: '2026-01-01T00:00:00.000Z' } },
  { name: 'valibot with a member that JSON Schema lacks', query: 'tag=a',
    schema: toStandardJsonSchema(v.object({ tag: v.array(v.string()), at: v.optional(v.date()) })),
    seen: { tag: ['a'] } },
  { name: 'arktype with a member that JSON Schema lacks', query: 'tag=a',
    schema: type({ tag: 'string[]', 'at?': 'Date' }), seen: { tag: ['a'] } },
  { name: 'a schema that can not be converted', schema: unconvertible(z.object({ tag: z.array(z.string()) })),
    query: 'tag=a&tag=b', seen: { tag: ['a', 'b'] } },
];
test.for(queries)('query of $name: ?$query', async ({ schema, query, seen }) => {
  const app = createApp().get('/q', { query: schema }, (_ctx, input) => input.query as object);
  expect(await (await app.request(`/q?${query}`)).json()).toEqual(seen);
});

test('params, query and headers are reported together and in this order; the body is not read then', async () => {
  const app = createApp();
  const wrong = (name: string): StandardSchemaV1 => issues({ message: `wrong ${name}`, path: [name] });
  const body = byHand(() => { throw new Error('the body was checked'); });
  app.post('/:id', { headers: wrong('x-a'), query: wrong('q'), params: wrong('id'), body }, () => 'ok');
  const response = await post(app, '/7', '{');
  expect(await response.json()).toMatchObject({
    description: 'params/id: wrong id (and 2 more)',
    errors: [
      { in: 'params', pointer: '#/id', detail: 'wrong id' },
      { in: 'query', pointer: '#/q', detail: 'wrong q' },
      { in: 'headers', pointer: '#/x-a', detail: 'wrong x-a' },
    ],
  });
  expect(
    (await app.request('/7', { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'x' })).status,
    'no 415 before',
  ).toBe(400);
});

test('the order is middleware, allowed query parameters, schemas, handler', async () => {
  const seen: string[] = [];
  const note: Middleware = (_ctx, next) => {
    seen.push('middleware');
    return next();
  };
  const query = byHand((value) => {
    seen.push('schema');
    return { value };
  });
  const app = createApp().get('/a', { middleware: [note], query, public: { params: ['q'] } }, () => {
    seen.push('handler');
    return 'ok';
  });
  expect((await app.request('/a?q=1')).status).toBe(200);
  expect(seen.splice(0)).toEqual(['middleware', 'schema', 'handler']);
  expect(await (await app.request('/a?other=1')).json()).toMatchObject({ error_code: { value: 999400 } });
  expect(seen).toEqual(['middleware']);
});

test('a request without a body has the body undefined, and what is no JSON is no finding', async () => {
  const app = createApp().post('/a', { body: z.object({ n: z.number() }).optional() }, (_ctx, { body }) => ({
    body: body ?? null,
  }));
  app.post('/b', { body: z.object({ n: z.number() }) }, () => 'ok');
  expect(await (await app.request('/a', { method: 'POST' })).json()).toEqual({ body: null });
  expect(await (await app.request('/b', { method: 'POST' })).json())
    .toMatchObject({ error_code: { value: 999401 }, errors: [{ in: 'body', pointer: '#' }] });
  expect(await (await post(app, '/b', '{')).json()).toMatchObject({ error_code: { value: 999998 } });
  expect((await app.request('/b', { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{}' })).status)
    .toBe(415);
});

const CHUNKED = 'Transfer-Encoding: chunked\r\n\r\n';
test.for<{ what: string; fields: string; status: number; answer?: object }>([
  { what: 'no byte in chunks', fields: `${CHUNKED}0\r\n\r\n`, status: 200, answer: { body: null } },
  { what: 'no byte in chunks, as JSON', fields: `Content-Type: application/json\r\n${CHUNKED}0\r\n\r\n`, status: 200,
    answer: { body: null } },
  { what: 'no byte in chunks, as text', fields: `Content-Type: text/plain\r\n${CHUNKED}0\r\n\r\n`, status: 200,
    answer: { body: null } },
  { what: 'no byte in chunks, as gzip', fields: `Content-Encoding: gzip\r\n${CHUNKED}0\r\n\r\n`, status: 200,
    answer: { body: null } },
  { what: 'a byte in chunks, as gzip',
    fields: `Content-Type: application/json\r\nContent-Encoding: gzip\r\n${CHUNKED}1\r\n1\r\n0\r\n\r\n`, status: 415 },
  { what: 'no byte by its length', fields: 'Content-Length: 0\r\n\r\n', status: 200, answer: { body: null } },
  { what: 'a byte in chunks without a type', fields: `${CHUNKED}2\r\n{}\r\n0\r\n\r\n`, status: 415 },
  { what: 'a space in chunks', fields: `Content-Type: application/json\r\n${CHUNKED}1\r\n \r\n0\r\n\r\n`, status: 400 },
])('a body with $what, where it may be left out, is a $status', async ({ fields, status, answer }) => {
  const app = createApp()
    .post('/checked', { body: z.object({}).optional() }, (_ctx, { body }) => ({ body: body ?? null }))
    .post('/json', (ctx) => ctx.json<object>())
    .post('/stream', (ctx) => buffer(ctx.stream()));
  const { port } = await serve(app);
  const checked = await rawRequest(port, `POST /checked HTTP/1.1\r\n${HEAD}${fields}`);
  expect(checked.status).toBe(status);
  if (answer !== undefined) expect(JSON.parse(checked.body)).toEqual(answer);
  const read = await rawRequest(port, `POST /json HTTP/1.1\r\n${HEAD}${fields}`);
  expect(read.status).toBe(status === 200 ? 400 : status);
  if (status === 200) expect(read.body).toContain('The body is empty; send JSON.');
  const streamed = await rawRequest(port, `POST /stream HTTP/1.1\r\n${HEAD}${fields}`);
  expect(streamed.status).toBe(fields.includes('gzip') ? status : 200);
});

const failing: { name: string; schema: AnySchema }[] = [
  { name: 'throws', schema: byHand((value) => { throw new BadRequest(`secret ${JSON.stringify(value)}`); }) },
  { name: 'throws with expose',
    schema: byHand(() => { throw Object.assign(new Error('secret'), { expose: true, status: 400 }); }) },
  { name: 'rejects', schema: byHand(async () => Promise.reject(new Error('secret'))) },
  { name: 'gives nothing', schema: byHand(() => undefined as never) },
  { name: 'gives neither a value nor issues', schema: byHand(() => ({}) as never) },
  { name: 'gives issues that are no list', schema: byHand(() => ({ issues: 'secret' }) as never) },
];
test.for(failing)('a schema that $name is a 500 that tells nothing', async ({ schema }) => {
  const recorder = createRecorder();
  const app = expectFailures(createApp({ logger: recorder }), 500).post('/a', { body: schema }, () => 'ok')
    .get('/b', { query: schema }, () => 'ok');
  for (const response of [await post(app, '/a', { secret: 'secret' }), await app.request('/b?secret=secret')]) {
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain('secret');
  }
  expect(recorder.entries.filter(({ level }) => level === 'error')).toHaveLength(2);
});

test('a schema that rejects after another part has failed ends no process', async () => {
  const rejects = byHand(async () => Promise.reject(new Error('no database')));
  const app = expectFailures(createApp({ parameterLimit: 2 }), 500)
    .get('/a/:id', { params: rejects, query: byHand(() => ({ value: {} })) }, () => 'ok')
    .get('/b/:id', { params: rejects, query: byHand(() => { throw new Error('down'); }) }, () => 'ok');
  expect((await app.request('/a/7?x=1&y=2&z=3')).status).toBe(400);
  expect((await app.request('/b/7')).status).toBe(500);
});

const pointers: { path: readonly (PropertyKey | { readonly key: PropertyKey })[]; pointer: string; at: string }[] = [
  { path: [], pointer: '#', at: 'body' },
  { path: ['a', 0, { key: 'b' }], pointer: '#/a/0/b', at: 'body/a/0/b' },
  { path: ['a/b', 'm~n'], pointer: '#/a~1b/m~0n', at: 'body/a~1b/m~0n' },
  { path: ['', ' ', 'c%d', '"'], pointer: '#//%20/c%25d/%22', at: 'body// /c%d/"' },
  { path: ['ä\n\u0000x'], pointer: '#/%C3%A4%0A%00x', at: 'body/ä x' },
  { path: ['\ud800'], pointer: '#/%EF%BF%BD', at: 'body/\ufffd' },
  { path: [Symbol('s')], pointer: '#/Symbol(s)', at: 'body/Symbol(s)' },
  { path: ['a', 'x'.repeat(1_000_000), 'b'], pointer: '#/a', at: 'body/a' },
];
test.for(pointers)('the path $path is the pointer $pointer', async ({ path, pointer, at }) => {
  const app = createApp().post('/a', { body: issues({ message: 'no', path }) }, () => 'ok');
  expect(await (await post(app, '/a', {})).json())
    .toMatchObject({ description: `${at}: no`, errors: [{ in: 'body', pointer, detail: 'no' }] });
});

const messages: { message: unknown; detail: string }[] = [
  { message: 'two\r\nlines\u2028and \u001b[31mred', detail: 'two lines and  [31mred' },
  { message: 'x'.repeat(201), detail: `${'x'.repeat(199)}…` },
  { message: 'x'.repeat(200), detail: 'x'.repeat(200) },
  { message: `${'x'.repeat(198)}😀😀`, detail: `${'x'.repeat(198)}…` },
  { message: '', detail: 'Invalid.' },
  { message: undefined, detail: 'Invalid.' },
];
test.for(messages)('the message $message is told as $detail', async ({ message, detail }) => {
  const app = createApp().post('/a', { body: issues({ message: message as string }) }, () => 'ok');
  const { errors } = (await (await post(app, '/a', {})).json()) as { errors: { detail: string }[] };
  expect(errors).toEqual([{ in: 'body', pointer: '#', detail }]);
});

test('of 10,000 findings 32 are told and all are counted; nothing of an issue goes out but message and path', async () => {
  const app = createApp({ bodyLimit: 10_000_000 });
  app.post('/zod', { body: z.array(z.string()) }, () => 'ok');
  app.post('/valibot', { body: v.array(v.string()) }, () => 'ok');
  app.post('/none', { body: byHand(() => ({ issues: [], value: 1 }) as never) }, () => 'ok');
  for (const path of ['/zod', '/valibot']) {
    const response = await post(app, path, Array.from({ length: 10_000 }, () => 4711));
    const text = await response.text();
    const body = JSON.parse(text) as { description: string; errors: object[] };
    expect(response.status).toBe(400);
    expect(body.description).toContain('(and 9999 more)');
    expect(body.errors).toHaveLength(32);
    for (const finding of body.errors) expect(Object.keys(finding).sort()).toEqual(['detail', 'in', 'pointer']);
    expect(text.length).toBeLessThan(5000);
  }
  expect(await (await post(app, '/none', 1)).json())
    .toMatchObject({ description: 'body: Invalid.', errors: [{ pointer: '#', detail: 'Invalid.' }] });
});

test('deep bodies, huge names and names of prototypes give bounded 400s', async () => {
  const app = createApp({ bodyLimit: 10_000_000 });
  app.post('/record', { body: z.record(z.string(), z.number()) }, () => 'ok');
  app.post('/strict', { body: z.strictObject({ a: z.string() }) }, () => 'ok');
  app.get('/q', { query: z.strictObject({}) }, () => 'ok');
  const { url } = await serve(app);
  const bodies = [
    '['.repeat(5000) + ']'.repeat(5000),
    JSON.stringify({ ['x'.repeat(5_000_000)]: 'x' }),
    JSON.stringify({ 'a/b~c\u0000': 'x', constructor: 'y', toString: 'z' }),
  ];
  for (const path of ['/record', '/strict']) {
    for (const body of bodies) {
      const response = await fetch(url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      const text = await response.text();
      expect(response.status).toBe(400);
      expect(text.length, text.slice(0, 100)).toBeLessThan(50_000);
    }
  }
  expect((await fetch(`${url}/q?__proto__=1&constructor=2`)).status).toBe(400);
});

test.for([{}, { '~standard': {} }, { '~standard': { validate: 1 } }, 'string', () => true, null])(
  '%s is not a schema',
  (schema) => {
    const app = createApp();
    for (const part of ['params', 'query', 'headers', 'body'] as const)
      expect(() => app.get('/a', { [part]: schema } as object, () => 'ok'), part).toThrow(
        `${part} of GET /a is not a schema`,
      );
    if (schema !== null)
      expect(() => app.get('/a', { response: { 200: schema } } as object, () => 'ok')).toThrow(
        'response 200 of GET /a is not a schema',
      );
    expect(() => app.get('/a', { response: schema } as object, () => 'ok')).toThrow(TypeError);
  },
);

test('a response by status takes 2xx alone, and at least one', () => {
  const app = createApp();
  const schema = z.string();
  expect(() => app.get('/a', { response: {} }, (() => 'ok') as never)).toThrow('has no status');
  for (const status of [404, 20, 'ok'])
    expect(() => app.get('/a', { response: { [status]: schema } as never }, (() => 'ok') as never)).toThrow(
      'give those from 200 to 299',
    );
});

test('an InvalidRequest of a handler has the options of every ApiError, and findings if they are given', async () => {
  const findings = [{ in: 'body', pointer: '#/name', detail: 'Taken' }] as const;
  const app = createApp().get('/', ({ query }) => {
    const options = query.has('found') ? { findings } : {};
    throw new InvalidRequest('Not so.', { headers: { 'x-a': '1' }, cause: 'secret', ...options });
  });
  for (const [path, errors] of [['/', []], ['/?found', findings]] as const) {
    const response = await app.request(path);
    expect([response.status, response.headers.get('x-a')]).toEqual([400, '1']);
    expect(await response.json()).toMatchObject({ description: 'Not so.', errors });
  }
});
