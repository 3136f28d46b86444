/**
 * OpenAPI documents of a rich application, judged by other people's validators.
 *
 * @module-tag package
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import openapiTS, { astToString } from 'openapi-typescript';
import typescript from 'typescript';
import * as v from 'valibot';
import { z } from 'zod';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ApiError, BadRequest, defineErrorCodes, endpoint, publicFacing, type AnySchema, type Postern } from 'postern';
import type { StandardSchemaV1 } from 'postern';
import { OpenApiError, toOpenApi, type OpenApiDocument } from 'postern/openapi';
import { lint } from '../support/redocly.mjs';
import { createApp } from '../support/serve.js';

const Codes = defineErrorCodes({ user_gone: 20001, user_moved: 20002 });
class UserGone extends ApiError {
  static override statusCode = 410;
  static override errorCode = Codes.user_gone;
}
class UserMoved extends ApiError {
  static override statusCode = 410;
  static override errorCode = Codes.user_moved;
}

const Category = z.object({ name: z.string(), get children() { return z.array(Category); } });
const Address = z.object({ street: z.string() }).meta({ id: 'Address' });
const User = z.object({ id: z.number(), name: z.string().default('Ann'), home: Address, work: Address.optional() });
const withJsonSchema = (json: Record<string, unknown>): StandardSchemaV1 => {
  const jsonSchema = { input: () => json, output: () => json };
  const standard = { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }), jsonSchema } as const;
  return { '~standard': standard };
};
const silent: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };

function richApp(): Postern {
  const app = createApp({}, 'users');
  const ok = (): never => undefined as never;
  app.get(
    '/users/:id',
    {
      params: z.object({ id: z.coerce.number() }),
      response: User,
      errors: [UserGone, UserMoved],
      summary: 'A user',
      description: 'One **user**.',
      tags: ['users'],
      operationId: 'getUser',
      public: true,
    },
    ok,
  );
  app.put(
    '/users/:name',
    { body: User, response: { 200: User, 201: User, 204: null }, deprecated: { at: '2026-01-01' } },
    ok,
  );
  app.get(
    '/users',
    {
      query: z.object({ tag: z.array(z.string()), page: z.string().optional(), sort: z.enum(['a', 'b']).default('a') }),
      headers: z.object({ 'x-tenant': z.string(), accept: z.string().optional() }),
      public: { params: ['tag', 'page', 'extra'] },
    },
    ok,
  );
  app.post('/tree', { body: Category, response: z.string() }, ok);
  app.post('/arktype', { body: type({ a: 'string', 'b?': 'number[]' }) }, ok);
  app.post(
    '/valibot',
    {
      body: toStandardJsonSchema(v.object({ a: v.string() })),
      query: toStandardJsonSchema(v.intersect([v.object({ p: v.string() }), v.object({ q: v.optional(v.string()) })])),
    },
    ok,
  );
  app.post('/silent/:id', { params: silent, query: silent, headers: silent, body: silent, response: silent }, ok);
  app.post('/optional', { body: z.object({ a: z.string() }).optional() }, ok);
  app.get('/any', { query: z.record(z.string(), z.string()) }, ok);
  app.get('/n/:n(\\d{1,3})/*', { deprecated: true }, ok);
  app.route('/all', {
    HEAD: ok,
    OPTIONS: ok,
    PATCH: ok,
    DELETE: endpoint({ operationId: 'deleteAll' }, ok),
    TRACE: ok,
  });
  return app;
}

const at = (document: OpenApiDocument, path: string, method: string): any => document.paths[path]?.[method];

/** What two validators say; empty lists and true are praise. */
async function complaintsOf(document: object): Promise<object> {
  const source = JSON.stringify(document);
  const { valid } = await new Validator().validate(JSON.parse(source) as Record<string, unknown>);
  return { seriousme: valid, redocly: await lint(source) };
}

describe.each(['3.1', '3.2'] as const)('version %s', (version) => {
  test('two validators find nothing wrong', async () => {
    const app = richApp();
    if (version === '3.2') app.route('/all', { QUERY: () => 'ok', PURGE: () => 'ok' });
    const document = toOpenApi(app, { version, servers: ['https://api.example/v1'] });
    expect(await complaintsOf(document)).toEqual({ seriousme: true, redocly: [] });
    const broken = { ...document, paths: { '/a/{id}': { get: { parameters: 'none', responses: { ok: {} } } } } };
    expect(await complaintsOf(broken))
      .toMatchObject({ seriousme: false, redocly: expect.arrayContaining([expect.any(String)]) });
  });

  test('openapi-typescript makes types of it that compile', async () => {
    const types = astToString(await openapiTS(JSON.stringify(toOpenApi(richApp(), { version }))));
    const folder = mkdtempSync(join(tmpdir(), 'postern-openapi-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const use = `import type { paths } from './api.js';
type Get = paths['/users/{id}']['get']['responses']['200']['content']['application/json'];
export const user: Get = { id: 7, name: 'Ann', home: { street: 'A' } };
// @ts-expect-error: an id is a number
export const wrong: Get = { id: '7', home: { street: 'A' } };
`;
    writeFileSync(join(folder, 'api.ts'), types);
    writeFileSync(join(folder, 'use.ts'), use);
    const program = typescript.createProgram([join(folder, 'use.ts')], {
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      types: [],
      lib: ['lib.esnext.d.ts'],
      module: typescript.ModuleKind.NodeNext,
      moduleResolution: typescript.ModuleResolutionKind.NodeNext,
    });
    expect(typescript.getPreEmitDiagnostics(program).map(({ messageText }) => messageText)).toEqual([]);
  });

  test('it is the same each time', () => {
    expect(JSON.stringify(toOpenApi(richApp(), { version }))).toBe(JSON.stringify(toOpenApi(richApp(), { version })));
  });
});

test('a path has its first name, parameters theirs, and every operation an error', () => {
  const document = toOpenApi(richApp());
  expect(document).toMatchObject({ openapi: '3.1.1', info: { title: 'users', version: '1.4.2' } });
  expect(Object.keys(document.paths)).toEqual([
    '/users/{id}', '/users', '/tree', '/arktype', '/valibot', '/silent/{id}', '/optional', '/any', '/n/{n}/{rest}',
    '/all',
  ]);
  const get = at(document, '/users/{id}', 'get');
  expect(get).toMatchObject({
    operationId: 'getUser',
    summary: 'A user',
    description: 'One **user**.',
    tags: ['users'],
    'x-public': true,
    parameters: [{ name: 'id', in: 'path', required: true }],
  });
  expect(get.responses['200'].content['application/json'].schema.properties.home)
    .toEqual({ $ref: '#/components/schemas/Address' });
  expect(get.responses['200'].content['application/json'].schema.required, 'what goes out is the input side')
    .toEqual(['id', 'home']);
  expect(get.responses['410'].description).toBe('Gone: user_gone, user_moved');
  expect(get.responses['410'].content['application/json'].schema.allOf[1].properties.error_code.properties.name.enum)
    .toEqual(['user_gone', 'user_moved']);
  const put = at(document, '/users/{id}', 'put');
  expect(put).toMatchObject({
    deprecated: true,
    parameters: [{ name: 'id', in: 'path' }],
    requestBody: { required: true },
  });
  expect(put['x-public']).toBeUndefined();
  expect(Object.keys(put.responses)).toEqual(['200', '201', '204', '400', 'default']);
  expect(put.responses['204'].content).toBeUndefined();
  for (const item of Object.values(document.paths))
    for (const operation of Object.values(item) as any[])
      expect(operation.responses.default.content).toEqual({
        'application/json': { schema: { $ref: '#/components/schemas/Error' } },
        'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
      });
});

test('query and headers are parameters; allowed ones that no schema names are texts', () => {
  const document = toOpenApi(richApp());
  expect(at(document, '/users', 'get').parameters).toEqual([
    { name: 'tag', in: 'query', required: true, schema: { type: 'array', items: { type: 'string' } } },
    { name: 'page', in: 'query', schema: { type: 'string' } },
    { name: 'extra', in: 'query', schema: { type: 'string' } },
    { name: 'x-tenant', in: 'header', required: true, schema: { type: 'string' } },
  ]);
  expect(
    at(document, '/valibot', 'post').parameters.map(
      ({ name, required = false }: { name: string; required?: boolean }) => [name, required],
    ),
  ).toEqual([
    ['p', true],
    ['q', false],
  ]);
  expect(at(document, '/any', 'get').parameters)
    .toMatchObject([{ in: 'query', schema: { type: 'object', additionalProperties: { type: 'string' } } }]);
  expect(at(document, '/n/{n}/{rest}', 'get').parameters).toEqual([
    { name: 'n', in: 'path', required: true, schema: { type: 'string', pattern: '^(\\d{1,3})$' } },
    { name: 'rest', in: 'path', required: true, schema: { type: 'string' } },
  ]);
});

test('a parameter of the path may have the name of a member that every object has', () => {
  const app = createApp().get('/a/:constructor', { params: z.object({}) }, () => 1);
  expect(at(toOpenApi(app), '/a/{constructor}', 'get').parameters)
    .toEqual([{ name: 'constructor', in: 'path', required: true, schema: { type: 'string' } }]);
});

test('parameters without a name of their own get one that no other parameter has', () => {
  const query = z.object({ others: z.string() }).catchall(z.string());
  const document = toOpenApi(createApp().get('/a/:rest/*', { query }, () => 1));
  expect(at(document, '/a/{rest}/{rest_}', 'get').parameters.map(({ name }: { name: string }) => name))
    .toEqual(['rest', 'rest_', 'others', 'others_']);
});

test('a query that is a union is one object of parameters, and headers that are one are an OpenApiError', async () => {
  const query = z.union([z.object({ near: z.string() }), z.object({ x: z.string(), y: z.string() })]);
  const app = createApp().get('/a', { query }, () => 1);
  const other = { oneOf: [{ additionalProperties: { type: 'string' } }] };
  const both = withJsonSchema({ allOf: [{ properties: { q: {} } }, other] });
  app.get('/both', { query: both }, () => 1);
  app.get('/some', { query, public: { params: ['near'] } }, () => 1);
  const named = { type: 'object', properties: { q: {}, r: {} } };
  const either = withJsonSchema({ ...named, anyOf: [{ required: ['q'] }, { required: ['r'] }] });
  app.get('/either', { query: either, headers: either }, () => 1);
  const document = toOpenApi(app);
  const { $schema, ...schema } = z.toJSONSchema(query, { io: 'input' });
  expect($schema).toBeTypeOf('string');
  expect(at(document, '/a', 'get').parameters).toEqual([{ name: 'others', in: 'query', schema }]);
  expect(at(document, '/both', 'get').parameters).toMatchObject([{ name: 'others', schema: { allOf: [{}, other] } }]);
  expect(at(document, '/some', 'get').parameters).toEqual([{ name: 'near', in: 'query', schema: { type: 'string' } }]);
  expect(at(document, '/either', 'get').parameters.map(({ name }: { name: string }) => name))
    .toEqual(['q', 'r', 'q', 'r']);
  expect(await complaintsOf(document)).toEqual({ seriousme: true, redocly: [] });
  app.get('/headers', { headers: query }, () => 1);
  expect(() => toOpenApi(app))
    .toThrow(new OpenApiError('/headers', 'its headers are a union; declare one object with all of them'));
});

test('a schema without JSON Schema is {}, a body that may be absent is not required, a text is text', () => {
  const document = toOpenApi(richApp());
  const operation = at(document, '/silent/{id}', 'post');
  expect(operation.parameters).toEqual([{ name: 'id', in: 'path', required: true, schema: {} }]);
  expect(operation.requestBody.content['application/json'].schema).toEqual({});
  expect(operation.responses['200'].content['application/json'].schema).toEqual({});
  expect(at(document, '/optional', 'post').requestBody.required).toBe(false);
  expect(Object.keys(at(document, '/tree', 'post').responses['200'].content)).toEqual(['text/plain']);
});

const anyOf = [{ type: 'string' }, { type: 'object' }];
const REPLIES: readonly { name: string; response: AnySchema; types: readonly string[] }[] = [
  { name: 'a text with a name', response: z.string().meta({ id: 'Name' }), types: ['text/plain'] },
  { name: 'two schemas of one text', response: z.string().and(z.string()), types: ['text/plain'] },
  { name: 'a union of texts', response: z.string().min(3).or(z.literal('q')), types: ['text/plain'] },
  { name: 'texts without a type', response: withJsonSchema({ enum: ['a', 'b'] }), types: ['text/plain'] },
  { name: 'a text or null', response: z.string().nullable(), types: ['text/plain', 'application/json'] },
  { name: 'a text or an object', response: withJsonSchema({ anyOf }), types: ['text/plain', 'application/json'] },
  { name: 'values without a type', response: withJsonSchema({ enum: ['a', 1] }), types: ['text/plain', 'application/json'] },
  { name: 'a number', response: z.number(), types: ['application/json'] },
  { name: 'an object with a text', response: z.object({ a: z.string() }), types: ['application/json'] },
];
test.for(REPLIES)('the content of $name is $types', ({ response, types }) => {
  const document = toOpenApi(createApp().get('/a', { response }, () => undefined as never));
  expect(Object.keys(at(document, '/a', 'get').responses['200'].content)).toEqual(types);
});

test('a schema that rejects later when it is asked about a request without a body ends no process', () => {
  const validate = (): Promise<never> => Promise.reject(new Error('no body'));
  const body: StandardSchemaV1 = { '~standard': { version: 1, vendor: 'test', validate } };
  const document = toOpenApi(createApp().post('/a', { body }, () => 1));
  expect(at(document, '/a', 'post').requestBody.required).toBe(true);
});

test('references are lifted to the components, recursive ones too, and equal ones once', () => {
  const document = toOpenApi(richApp());
  const body = at(document, '/tree', 'post').requestBody.content['application/json'].schema;
  expect(body.properties.children.items).toEqual({ $ref: expect.stringMatching(/^#\/components\/schemas\/\w+$/) });
  const name = body.properties.children.items.$ref.split('/').at(-1);
  expect(document.components.schemas[name])
    .toMatchObject({ type: 'object', properties: { children: { items: { $ref: `#/components/schemas/${name}` } } } });
  expect(Object.keys(document.components.schemas).filter((key) => key.startsWith('Address'))).toEqual(['Address']);
  expect(JSON.stringify(document)).not.toContain('#/$defs');

  const other = createApp().post(
    '/a',
    { body: z.object({ e: z.object({ x: z.string() }).meta({ id: 'Error' }) }) },
    () => 'ok',
  );
  expect(Object.keys(toOpenApi(other).components.schemas)).toEqual(['Error', 'Problem', 'Error2']);
});

test('a schema with a name is one, whatever other names its routes have, and two if it refers to another', () => {
  const T = z.object({ v: z.string() }).meta({ id: 'T' });
  const within = z.object({ get t() { return Outer.optional(); } }).meta({ id: 'Within' });
  const Outer = z.object({ within }).meta({ id: 'Outer' });
  const app = createApp().post('/1', { body: z.object({ t: T }) }, () => '');
  app.post('/2', { body: z.object({ t: T, o: Outer }) }, () => '').post('/3', { body: z.object({ o: Outer }) }, () => '');
  const U = { properties: { v: { $ref: '#/$defs/V' } } };
  for (const [i, type] of ['string', 'number', 'string'].entries())
    app.put(`/${i}`, { body: withJsonSchema({ $ref: '#/$defs/U', $defs: { U, V: { type } } }) }, () => '');
  expect(Object.keys(toOpenApi(app).components.schemas))
    .toEqual(['Error', 'Problem', 'T', 'Within', 'Outer', 'V', 'U', 'V2', 'U2']);
});

test('the name of a schema may have a percent sign', () => {
  const named = (id: string): z.ZodNumber => z.number().meta({ id });
  const body = z.object({ share: named('100%'), part: named('a b'), escaped: named('5%25') });
  const document = toOpenApi(createApp().post('/a', { body }, () => 'ok'));
  expect(at(document, '/a', 'post').requestBody.content['application/json'].schema.properties).toEqual({
    share: { $ref: '#/components/schemas/100_' },
    part: { $ref: '#/components/schemas/a_b' },
    escaped: { $ref: '#/components/schemas/5_' },
  });
  expect(document.components.schemas['100_']).toMatchObject({ type: 'number' });
});

test.for([
  ['#/$defs/a~1b', 'a_1b'], ['#/$defs/a%7E1b', 'a_1b'], ['#/%24defs/a~1b', 'a_1b'], ['#/allOf/0', '0'],
])('the reference %s is followed as RFC 6901 says', ([reference, name]) => {
  const json = {
    type: 'object', properties: { part: { $ref: reference } }, allOf: [{ type: 'number' }],
    $defs: { 'a/b': { type: 'number' } },
  };
  const document = toOpenApi(createApp().post('/a', { body: withJsonSchema(json) }, () => 'ok'));
  expect(document.components.schemas[name as string]).toEqual({ type: 'number' });
});

test('to change a document changes nothing else', () => {
  const app = createApp({ openapi: { tags: [{ name: 'a' }] } }).get('/a', { openapi: { security: [] } }, () => 'ok');
  const before = JSON.stringify(toOpenApi(app));
  const changed = toOpenApi(app) as { tags?: object[] } & OpenApiDocument;
  changed.tags?.push({ name: 'b' });
  Object.assign(changed.components.schemas['Error'] as object, { description: 'changed' });
  expect(JSON.stringify(toOpenApi(app))).toBe(before);
});

test('scope public has public operations alone, and monitoring endpoints are in neither', () => {
  expect(Object.keys(toOpenApi(richApp(), { scope: 'public' }).paths)).toEqual(['/users/{id}', '/users']);
  const flagged = createApp()
    .get('/flag', publicFacing(() => 1))
    .group('/group', { public: true }, (group) => { group.get('', () => 1); })
    .get('/option', { public: false }, publicFacing(() => 1));
  expect(Object.keys(toOpenApi(flagged, { scope: 'public' }).paths)).toEqual(['/flag', '/group']);
  expect(JSON.stringify(toOpenApi(richApp()))).not.toContain('/health/');
  expect(toOpenApi(createApp({}, 'none')).paths).toEqual({});
});

/** A schema of a library that writes no JSON Schema for it. */
const unconvertible = { '~standard': {
  ...z.string()['~standard'],
  jsonSchema: { input: () => { throw new Error('not in JSON Schema'); }, output: () => ({}) },
} };

test.for([
  { library: 'zod',
    schema: z.object({ tags: z.array(z.string()), at: z.date(), n: z.bigint(), m: z.map(z.string(), z.int()) }) },
  { library: 'valibot',
    schema: toStandardJsonSchema(v.object({ tags: v.array(v.string()), at: v.date(), n: v.bigint(), m: v.symbol() })) },
  { library: 'arktype', schema: type({ tags: 'string[]', at: 'Date', n: 'bigint', m: 'symbol' }) },
])('a member that JSON Schema lacks is {}, and the others are described: $library', ({ schema: of }) => {
  const app = createApp();
  const schema: AnySchema = of;
  app.post('/a', { body: schema, query: schema, response: { 200: schema } }, () => ({}) as never);
  const { paths } = toOpenApi(app);
  const operation = paths['/a']?.['post'] as {
    parameters: { name: string; schema: object }[];
    requestBody: { content: { 'application/json': { schema: { properties: object } } } };
    responses: { 200: { content: { 'application/json': { schema: { properties: object } } } } };
  };
  const properties = { tags: { type: 'array', items: { type: 'string' } }, at: {}, n: {}, m: {} };
  expect(operation.requestBody.content['application/json'].schema.properties).toEqual(properties);
  expect(operation.responses[200].content['application/json'].schema.properties).toEqual(properties);
  expect(operation.parameters.find(({ name }) => name === 'tags')?.schema).toEqual(properties.tags);
});

const unsayable: { name: string; define: (app: Postern) => unknown; route: string; reason: string }[] = [
  { name: 'two routes that are one templated path',
    define: (app) => app.get('/n/:n(\\d+)', () => '').get('/n/:name', () => ''), route: '/n/:name',
    reason: 'it and /n/:n(\\d+) are one templated path' },
  { name: 'a schema whose conversion throws',
    define: (app) => app.post('/a', { body: unconvertible }, () => ''), route: '/a',
    reason: 'the schema of its body has no JSON Schema' },
  { name: 'a method that the version lacks', define: (app) => app.route('/a', { PURGE: () => '' }), route: '/a',
    reason: 'OpenAPI 3.1 has no PURGE; use 3.2, or leave the route out by openapi: false' },
  { name: 'one operationId twice, by the option openapi',
    define: (app) => app.get('/a', { operationId: 'x' }, () => '').get('/b', { openapi: { operationId: 'x' } }, () => ''),
    route: '/b', reason: 'operationId "x" is also used by GET /a' },
  { name: 'one operationId twice',
    define: (app) => app.get('/a', { operationId: 'x' }, () => '').get('/b', { operationId: 'x' }, () => ''),
    route: '/b', reason: 'operationId "x" is also used by GET /a' },
];
test.for(unsayable)('$name is refused by name', ({ define, route, reason }) => {
  const app = createApp();
  define(app);
  const thrown = ((): unknown => {
    try {
      return toOpenApi(app);
    } catch (error) {
      return error;
    }
  })();
  expect(thrown).toBeInstanceOf(OpenApiError);
  expect(thrown).toMatchObject({
    name: 'OpenApiError',
    route,
    reason: expect.stringContaining(reason),
    message: expect.stringContaining(route),
  });
});

test.for([
  { scope: 'private' },
  { version: '3.0' },
  { servers: ['/v1'] },
  { servers: 'https://a' },
  { title: 1 },
  { titel: 'x' },
])('options %o are refused', (options) => {
  expect(() => toOpenApi(createApp(), options as object)).toThrow(TypeError);
});

test.for([{ routes: [] }, { routes: [], entries: [] }])('what is no application is refused: %o', (router) => {
  expect(() => toOpenApi({ name: 'a', version: '1', router })).toThrow('toOpenApi() takes a Postern application');
});
test.for([null, undefined, 'app', {}])('what is no application is refused: %o', (app) => {
  expect(() => toOpenApi(app as never)).toThrow('toOpenApi() takes a Postern application');
});

test('GET /<name>/openapi/ serves the document, and tells of routes that came later', async () => {
  const app = richApp();
  expect(await (await app.request('/users/openapi/')).json()).toEqual(JSON.parse(JSON.stringify(toOpenApi(app))));
  app.get('/later', () => 'ok');
  expect((await (await app.request('/users/openapi/')).json()) as object).toHaveProperty(['paths', '/later']);
  expect(() => app.get('/users/openapi/', () => 'ok')).toThrow('monitoring endpoint');
});

const codesOf = (app: Postern, path: string): string[] | undefined =>
  at(toOpenApi(app), path, 'get').responses['400']?.content['application/json'].schema.allOf[1].properties.error_code
    .properties.name.enum;

test('the 400 of an operation has the codes that the service answers with', () => {
  class Odd extends BadRequest { static override errorCode = defineErrorCodes({ odd: 1 }).odd; }
  const app = createApp().get('/none', () => 1).get('/checked', { query: z.object({}) }, () => 1);
  app
    .get('/allowed', { public: { params: [] } }, () => 1)
    .get('/all', { public: { params: ['q'] }, query: z.object({}), errors: [Odd, BadRequest] }, () => 1);
  expect(['/none', '/checked', '/allowed', '/all'].map((path) => codesOf(app, path))).toEqual([
    undefined,
    ['framework_invalid_request'],
    ['framework_invalid_query_params'],
    ['odd', 'framework_error_unspecified', 'framework_invalid_request', 'framework_invalid_query_params'],
  ]);
});

test("the application's option is merged into its document, and arguments override it", async () => {
  const scheme = { type: 'http', scheme: 'bearer' };
  const openapi = {
    info: { description: 'Users.', title: 'User service', contact: { name: 'Ada' } },
    servers: [{ url: 'https://a.example', description: 'A' }],
    tags: [{ name: 'users' }],
    security: [{ bearer: [] }],
    components: { securitySchemes: { bearer: scheme }, schemas: { Mine: { type: 'string' } } },
  };
  const app = createApp({ openapi }).get('/', () => 1);
  const own = toOpenApi(app);
  expect(own).toMatchObject({ ...openapi, info: { ...openapi.info, version: '1.4.2' } });
  expect(Object.keys(own.components.schemas)).toEqual(['Error', 'Problem', 'Mine']);
  expect(await complaintsOf(own)).toEqual({ seriousme: true, redocly: [] });
  expect(await (await app.request('/users/openapi/')).json()).toEqual(own);
  expect(toOpenApi(app, { title: 'Other', servers: ['https://b.example'] }))
    .toMatchObject({ info: { title: 'Other', description: 'Users.' }, servers: [{ url: 'https://b.example' }] });
});

test("a route's option is merged into its operation, and false leaves the route out", async () => {
  const multipart = { schema: { type: 'object', properties: { photo: { type: 'string', format: 'binary' } } } };
  const openapi = {
    summary: 'Replaces the photo',
    security: [{ bearer: [] }],
    requestBody: { content: { 'multipart/form-data': multipart } },
    responses: { '200': { description: 'The photo' }, '304': { description: 'Not modified' } },
    'x-team': 'images',
  };
  const components = { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } };
  const app = createApp({ openapi: { components } });
  app.post('/photo', { summary: 'before', tags: ['photos'], response: z.string(), openapi }, () => '');
  app.group('/internal', { openapi: false }, (group) => {
    group.get('/left-out', () => 1).get('/shown', { openapi: { deprecated: true } }, () => 1);
  });
  const document = toOpenApi(app);
  expect(Object.keys(document.paths)).toEqual(['/photo', '/internal/shown']);
  const { responses, ...rest } = at(document, '/photo', 'post');
  const { responses: added, ...replaced } = openapi;
  expect(rest).toMatchObject({ ...replaced, tags: ['photos'] });
  expect(responses['200']).toMatchObject({ description: 'The photo', content: { 'text/plain': {} } });
  expect([responses['304'], Object.keys(responses).sort()]).toEqual([added['304'], ['200', '304', 'default']]);
  expect(at(document, '/internal/shown', 'get').deprecated).toBe(true);
  expect(await complaintsOf(document)).toEqual({ seriousme: true, redocly: [] });
  expect(await (await app.request('/users/openapi/')).json()).toEqual(document);
});

test.for([
  [{ tag: [] }, 'unknown option "tag" of openapi; did you mean "tags"?'],
  [{ info: 'Users' }, 'info of openapi is "Users"; give an object'],
  ...[['https://a.example'], [new URL('https://a.example')], [{ description: 'A' }]].map((servers) => (
    [{ servers }, 'servers of openapi is an array; give a list of objects, such as [{ url: "https://api.example" }]'])),
  [{ tags: ['users'] }, 'tags of openapi is an array; give a list of objects, such as [{ name: "users" }]'],
  [{ security: ['bearer'] }, 'security of openapi is an array; give a list of objects, such as [{ bearer: [] }]'],
])('the option openapi %j is refused', ([openapi, message]) => {
  expect(() => createApp({ openapi: openapi as object })).toThrow(new TypeError(message as string));
});

test("the output side of a response is documented where the service sends the schema's output", () => {
  const response = z.object({ name: z.string().default('Ada') });
  const required = (validateResponses: boolean | 'output'): unknown =>
    at(toOpenApi(createApp({ validateResponses }).get('/', { response }, () => ({}))), '/', 'get').responses['200']
      .content['application/json'].schema.required;
  expect([required(true), required('output')]).toEqual([undefined, ['name']]);
});
