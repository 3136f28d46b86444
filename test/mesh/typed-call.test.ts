/**
 * Endpoints that services share: what goes over the wire, what comes back, and errors as their own types.
 *
 * @module-tag package
 */

import { z } from 'zod';
import { expect, test } from 'vitest';
import { ApiError, defineEndpoint, defineErrorCodes, NotFound, reply, ServiceError, type Postern } from 'postern';
import { createApp, expectFailures, serve } from '../support/serve.js';

const Codes = defineErrorCodes({ user_gone: 20001, other: 20002 });
class UserGone extends ApiError {
  static override statusCode = 410;
  static override message = 'Gone.';
  static override errorCode = Codes.user_gone;
  constructor(readonly id: string) {
    super(`User ${id} is gone`, { headers: { 'retry-after': '5' } });
  }
}

const User = z.object({ id: z.string(), since: z.iso.datetime().transform((text) => new Date(text)) });
const getUser = defineEndpoint('GET', '/users/:id', {
  params: z.object({ id: z.string() }),
  response: User,
  errors: [UserGone],
});
const search = defineEndpoint('POST', '/files/*rest', {
  query: z.object({ tag: z.array(z.string()), page: z.coerce.number().optional() }),
  headers: z.object({ 'x-tenant': z.string() }),
  body: z.object({ q: z.string().trim() }),
  response: { 200: z.array(z.unknown()), 204: null },
});
const plain = defineEndpoint('DELETE', '/plain/:a/:b(\\d+)');

function usersApp(): Postern {
  const app = createApp({}, 'users');
  app.implement(getUser, (_ctx, { params: { id } }) => {
    if (id === 'gone') throw new UserGone(id);
    if (id === 'none') throw new NotFound('never was');
    return { id, since: '2026-01-02T03:04:05Z' };
  });
  app.implement(search, (ctx, { query, headers, body }) =>
    body.q === '' ? undefined : [ctx.params.rest, query, headers['x-tenant'], body],
  );
  app.implement(plain, (ctx) => reply({ path: ctx.path }, { status: 202 }));
  return app;
}

test('call over three services: input, result, and an error as its own type, with the ServiceError as the cause', async () => {
  const users = await serve(usersApp());
  const shop = createApp({ settings: { SERVICE_CONNECTIONS: [`users=${users.url}`] } }, 'shop');
  shop.get('/owner/:id', async (ctx) => {
    const { status, body } = await ctx.service('users').call(getUser, { params: { id: ctx.params.id } });
    return { status, year: body.since.getUTCFullYear() };
  });
  const { url } = await serve(shop);
  const site = createApp({ settings: { SERVICE_CONNECTIONS: [`shop=${url}`] } }, 'site')
    .get('/:id', async (ctx) => (await ctx.service('shop').get(`/owner/${ctx.params.id}`)).body as object);

  expect(await (await site.request('/7')).json()).toEqual({ status: 200, year: 2026 });
  const gone = await site.request('/gone');
  expect(gone.status).toBe(410);
  expect(await gone.json()).toEqual({
    message: 'Gone.',
    description: 'User gone is gone',
    error_code: { name: 'user_gone', value: 20001 },
  });

  const client = shop.service('users');
  const error: unknown = await client.call(getUser, { params: { id: 'gone' } }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(UserGone);
  expect(error).toMatchObject({
    name: 'UserGone',
    statusCode: 410,
    description: 'User gone is gone',
    headers: { 'retry-after': '5' },
    cause: { name: 'ServiceError', service: 'users' },
  });
  await expect(client.call(getUser, { params: { id: 'none' } })).rejects.toMatchObject({
    name: 'ServiceError',
    statusCode: 404,
    description: 'never was',
  });
});

test('the parts of the input go where they belong, encoded', async () => {
  const client = createApp({ services: { users: usersApp() } }, 'shop').service('users');
  const found = await client.call(search, {
    params: { rest: 'a b/ü%2F' },
    query: { tag: ['x'], page: 2 },
    headers: { 'x-tenant': 't1' },
    body: { q: ' hi ' },
  });
  expect(found).toMatchObject({ status: 200, body: ['a b/ü%2F', { tag: ['x'], page: 2 }, 't1', { q: 'hi' }] });
  expect(
    await client
      .call(search, { params: { rest: 'a' }, query: { tag: [] }, headers: { 'x-tenant': 't1' }, body: { q: '' } })
      .catch((error: unknown) => error),
  ).toMatchObject({ statusCode: 400, errorCode: { value: 999401 } });
  const none = await client.call(
    search,
    { params: { rest: 'a' }, query: { tag: ['x'] }, headers: { 'x-tenant': 't1' }, body: { q: '' } },
    { headers: { 'x-tenant': 't2' } },
  );
  expect(none).toMatchObject({ status: 204, body: undefined });
  const { status, body } = await client.call(plain, { params: { a: 'x/y?#%', b: 7 } });
  expect([status, body]).toEqual([202, { path: '/plain/x/y?#%/7' }]);
});

test.for([{ id: '' }, { id: '.' }, { id: '..' }, {}, { id: null }, { id: {} }, { id: '\ud800' }])(
  'a parameter %j is a TypeError',
  async (params) => {
    const client = createApp({ services: { users: usersApp() } }, 'shop').service('users');
    await expect(client.call(getUser, { params: params as never })).rejects.toThrow(TypeError);
  },
);

test.for(['../x', 'a/../b', './a', ''])('so is a wildcard %j', async (rest) => {
  const client = createApp({ services: { users: usersApp() } }, 'shop').service('users');
  await expect(
    client.call(search, { params: { rest }, query: { tag: [] }, headers: { 'x-tenant': 't' }, body: { q: '' } }),
  ).rejects.toThrow(TypeError);
});

test('wrong arguments are TypeErrors that name what there is', async () => {
  const app = createApp({ services: { users: usersApp() } }, 'shop');
  const client = app.service('users');
  await expect(client.call({} as never, {} as never)).rejects.toThrow('call() takes an endpoint made by defineEndpoint');
  await expect(client.call(getUser, { param: { id: '7' } } as never)).rejects.toThrow(
    'unknown option "param" of the input of call(); did you mean "params"?',
  );
  await expect(client.call(getUser, { params: { id: '7' } }, { query: {} } as never)).rejects.toThrow(
    'unknown option "query" of call()',
  );
  expect(() => app.implement({} as never, () => 'ok')).toThrow('implement() takes an endpoint made by defineEndpoint');
  expect(() => defineEndpoint('get' as never, '/')).toThrow('unknown method "get"');
  expect(() => defineEndpoint('GET', 'users')).toThrow(TypeError);
  expect(() => defineEndpoint('GET', '/', { param: 1 } as never)).toThrow('did you mean "params"?');
  expect(() => defineEndpoint('GET', '/', { body: {} } as never)).toThrow('body of GET / is not a schema');
});

test.for(['', 'x', ' '])('the text %j that a handler returns is the body of the call', async (text) => {
  const note = defineEndpoint('GET', '/note', { response: z.string() });
  const users = createApp({}, 'users').implement(note, () => text);
  const client = createApp({ services: { users } }, 'shop').service('users');
  expect(await client.call(note)).toMatchObject({ status: 200, body: text });
});

test('bytes that a handler returns are the body of the call, if there are none, too', async () => {
  const file = defineEndpoint('GET', '/file', { response: z.instanceof(Uint8Array) });
  const users = createApp({}, 'users').implement(file, () => new Uint8Array());
  const client = createApp({ services: { users } }, 'shop').service('users');
  expect(await client.call(file)).toMatchObject({ status: 200, body: new Uint8Array() });
});

test.for(['text/html', 'application/octet-stream'])(
  'a reply without a byte of %s has no body where its status is declared without one',
  async (type) => {
    const remove = defineEndpoint('DELETE', '/', { response: { 200: null } });
    const users = (): Response => new Response('', { headers: { 'content-type': type } });
    const { body } = await createApp({ services: { users } }, 'shop').service('users').call(remove);
    expect(body).toBeUndefined();
  },
);

const misfits: { name: string; answer: () => Response; reason: string }[] = [
  { name: 'a body of another shape', answer: () => Response.json({ id: 7, since: 'secret' }), reason: 'body/id: ' },
  { name: 'another status', answer: () => new Response(null, { status: 302, headers: { location: '/' } }),
    reason: 'the status 302 is not declared' },
  { name: 'no body', answer: () => new Response(null, { status: 204 }), reason: 'body: ' },
];
test.for(misfits)('$name is a 502 whose reason stays in the log', async ({ answer, reason }) => {
  const app = expectFailures(createApp({ services: { users: answer } }, 'shop'), 502);
  app.get('/', async (ctx) => (await ctx.service('users').call(getUser, { params: { id: '7' } })).body);
  const error = await app.service('users').call(getUser, { params: { id: '7' } }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ServiceError);
  expect(error).toMatchObject({
    statusCode: 502,
    errorCode: { name: 'framework_invalid_response', value: 999502 },
    method: 'GET',
  });
  expect(String((error as ServiceError).cause)).toContain(reason);
  const response = await app.request('/');
  expect(response.status).toBe(502);
  expect(await response.text()).not.toContain('secret');
});

test('a response schema that throws is a 502, and a reply without a response schema comes as it is', async () => {
  const throwing = defineEndpoint('GET', '/', {
    response: z.unknown().transform(() => {
      throw new Error('secret');
    }),
  });
  const open = defineEndpoint('GET', '/');
  const client = createApp({ services: { users: () => Response.json({ a: 1 }) } }, 'shop').service('users');
  await expect(client.call(throwing, {})).rejects.toMatchObject({ statusCode: 502, errorCode: { value: 999502 } });
  expect(await client.call(open)).toMatchObject({ status: 200, body: { a: 1 } });
});

test('an implementation adds its own options, which win', () => {
  const app = createApp().implement(getUser, () => ({ id: '7', since: '' }), {
    public: true,
    bodyLimit: 5,
    meta: { side: 'server' },
  });
  expect(app.router.routes.at(-1))
    .toMatchObject({ method: 'GET', path: '/users/:id', public: true, meta: { side: 'server' } });
  expect(() => app.implement(plain, () => 'ok', { bodylimit: 5 } as never)).toThrow('did you mean "bodyLimit"?');
});

test('problem details of another service are read like the uniform body', async () => {
  const problem = {
    type: 'https://errors.example/user_gone',
    title: 'Gone.',
    status: 410,
    detail: 'User 7 is gone',
    error_code: Codes.user_gone,
  };
  const answer = (): Response =>
    new Response(JSON.stringify(problem), { status: 410, headers: { 'content-type': 'application/problem+json' } });
  const client = createApp({ services: { users: answer } }, 'shop').service('users');
  await expect(client.call(getUser, { params: { id: '7' } })).rejects.toBeInstanceOf(UserGone);
  await expect(client.get('/users/7')).rejects.toMatchObject({
    message: 'Gone.',
    description: 'User 7 is gone',
    errorCode: Codes.user_gone,
  });
});
