/** The public flag and its query parameters: SPEC.md section 4.3, over real sockets. */

import { expect, test } from 'vitest';
import { publicFacing, type Context } from 'postern';
import { createApp, serve } from '../support/serve.js';

const flagged = { flagged: publicFacing((ctx: Context) => ({ q: ctx.query.get('q') })) };
const usages = [
  { usage: 'publicFacing(handler)', handler: flagged.flagged, allowed: null },
  { usage: 'publicFacing()(handler)', handler: publicFacing()((ctx: Context) => ({ q: ctx.query.get('q') })),
    allowed: null },
  { usage: 'publicFacing({ params: [] })(handler)',
    handler: publicFacing({ params: [] })((ctx: Context) => ({ q: ctx.query.get('q') })), allowed: 'none' },
  { usage: "publicFacing({ params: ['q'] })(handler)",
    handler: publicFacing({ params: ['q'] })((ctx: Context) => ({ q: ctx.query.get('q') })), allowed: 'q' },
  { usage: "publicFacing(handler, { params: ['q', 'page'] })",
    handler: publicFacing((ctx: Context) => ({ q: ctx.query.get('q') }), { params: ['q', 'page'] }),
    allowed: 'q, page' },
];
test.for(usages)('4.3: $usage allows $allowed', async ({ handler, allowed }) => {
  const app = createApp().get('/find', handler);
  const { url } = await serve(app);
  const names = allowed === null || allowed === 'none' ? [] : allowed.split(', ');
  expect(app.router.routes.at(-1)).toMatchObject({ public: true, params: allowed === null ? null : names });

  expect((await fetch(`${url}/find`)).status).toBe(200);
  const withQ = await fetch(`${url}/find?q=1`);
  expect(withQ.status).toBe(allowed === null || names.includes('q') ? 200 : 400);
  if (withQ.status === 200) expect(await withQ.json()).toEqual({ q: '1' });

  const other = await fetch(`${url}/find?other=1&q=1`);
  if (allowed === null) expect(other.status).toBe(200);
  else {
    expect(other.status).toBe(400);
    expect(await other.json()).toEqual({
      message: 'Bad request.',
      description: `Invalid query params. Allowed: ${allowed}`,
      error_code: { name: 'framework_invalid_query_params', value: 999400 },
    });
  }
});

test('4.3: query names are compared after URL decoding', async () => {
  const { url } = await serve(createApp().get('/find', publicFacing({ params: ['q', 'a b', '?x'] })(() => 'ok')));
  for (const query of ['%71=1', 'a+b=1', 'a%20b', 'q=1&q=2', '', '&&', '?x=1'])
    expect((await fetch(`${url}/find?${query}`)).status, query).toBe(200);
  for (const query of ['Q=1', 'q%20=1', 'q[]=1', '=1', 'x=1', '__proto__=1'])
    expect((await fetch(`${url}/find?${query}`)).status, query).toBe(400);
});

test('4.3.1: methods are flagged one by one, and reported sorted in order of the first registration of each path', () => {
  const app = createApp();
  const handler = (): string => 'ok';
  app.put('/private', handler);
  app.route('/things', {
    GET: publicFacing(handler),
    POST: publicFacing(handler),
    DELETE: publicFacing(handler),
    PUT: handler,
  });
  app.get('/users/:id', handler);
  app.get('/n/:n(\\d+)', publicFacing(handler));
  app.patch('/users/:name', publicFacing(handler));
  expect(app.router.routesPublic).toEqual({
    '^/things$': { public_methods: ['DELETE', 'GET', 'POST'] },
    '^/users/([^/]+)$': { public_methods: ['PATCH'] },
    '^/n/(\\d+)$': { public_methods: ['GET'] },
  });
  expect(Object.keys(app.router.routesPublic)).toEqual(['^/things$', '^/users/([^/]+)$', '^/n/(\\d+)$']);
});

test('4.3.1: a flagged handler carries the scope "public", and the one passed in stays as it was', () => {
  const handler = (): string => 'ok';
  const open = publicFacing(handler);
  expect(open.scope).toBe('public');
  expect('scope' in handler).toBe(false);
  expect(open).not.toBe(handler);
});

test('4.3.2: a request within the allowed parameters gets the normal response of its handler', async () => {
  const { url } = await serve(
    createApp().post(
      '/things',
      publicFacing({ params: ['q'] })(async (ctx: Context) => ({ body: await ctx.json(), q: ctx.query.get('q') })),
    ),
  );
  const response = await fetch(`${url}/things?q=lamp`, {
    method: 'POST',
    body: '{"a":1}',
    headers: { 'content-type': 'application/json' },
  });
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ body: { a: 1 }, q: 'lamp' });
});

test('4.3: params that are no list of names throw', () => {
  for (const params of ['q', 5, {}, [1], [null]]) {
    expect(() => publicFacing({ params: params as never })).toThrow(TypeError);
    expect(() => publicFacing(() => 1, { params: params as never })).toThrow(TypeError);
  }
  expect(publicFacing(() => 1, { params: new Set(['a', 'b']) }).params).toEqual(['a', 'b']);
});

test('4.3: flagging twice keeps the restriction of the first time', async () => {
  const { url } = await serve(createApp().get('/find', publicFacing(publicFacing({ params: [] })(() => 'ok'))));
  expect((await fetch(`${url}/find?q=1`)).status).toBe(400);
});
