/** Which handler a request reaches, over real sockets. */

import { expect, test } from 'vitest';
import { publicFacing, type Context, type Postern } from 'postern';
import { parseResponses, rawExchange, rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

test('GET answers HEAD too, with the same head and no body', async () => {
  const { port } = await serve(createApp().get('/', () => ({ hello: 'world' })));
  const text = await rawExchange(port, 'HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(text).toContain('HTTP/1.1 200 OK');
  expect(text).toMatch(/content-length: 17/i);
  expect(text.endsWith('\r\n\r\n')).toBe(true);
});

test('a HEAD route of its own beats the one of GET', async () => {
  const app = createApp().get('/', () => 'get')
    .route('/', { HEAD: (ctx) => { ctx.raw.res.setHeader('x-own', '1'); return undefined; } });
  const { url } = await serve(app);
  expect((await fetch(url, { method: 'HEAD' })).headers.get('x-own')).toBe('1');
});

test('OPTIONS answers 204 with Allow, unless the route has its own', async () => {
  const app = createApp().get('/a', () => 1).post('/a', () => 1).options('/b', () => 'mine');
  const { url } = await serve(app);
  const response = await fetch(`${url}/a`, { method: 'OPTIONS' });
  expect([response.status, response.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS, POST']);
  expect(await (await fetch(`${url}/b`, { method: 'OPTIONS' })).text()).toBe('mine');
  expect((await fetch(`${url}/c`, { method: 'OPTIONS' })).status).toBe(404);
});

test('OPTIONS * answers for the server', async () => {
  const { port } = await serve(createApp());
  expect((await rawRequest(port, 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).status).toBe(204);
});

test('405 lists the methods of every route that matches the path', async () => {
  const app = createApp().get('/a/:x', () => 1).put('/:y/b', () => 1).delete('/*', () => 1)
    .route('/a/b', { QUERY: () => 1 });
  const { url } = await serve(app);
  const response = await fetch(`${url}/a/b`, { method: 'POST' });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'DELETE, GET, HEAD, OPTIONS, PUT, QUERY']);
});

test('where the best route lacks the method, the next best that has it answers', async () => {
  const app = createApp().get('/a/b', () => 'static').post('/a/:x', (ctx) => `param ${ctx.params.x}`)
    .put('/*', (ctx) => `rest ${ctx.params['*']}`);
  const { url } = await serve(app);
  const answer = async (method: string): Promise<string> => (await fetch(`${url}/a/b`, { method })).text();
  expect([await answer('GET'), await answer('POST'), await answer('PUT')]).toEqual(['static', 'param b', 'rest a/b']);
});

test('any method of http.METHODS can be registered and reached, QUERY included', async () => {
  const { port } = await serve(
    createApp().route('/q', { QUERY: (ctx: Context) => ctx.text(), PROPFIND: () => 'found' }),
  );
  const [query] = parseResponses(
    await rawExchange(port, 'QUERY /q HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc'),
  );
  expect(query?.body).toBe('abc');
  expect((await rawRequest(port, 'PROPFIND /q HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).body).toBe('found');
});

test.for([
  ['origin-form', 'GET /users/7?a=b HTTP/1.1'],
  ['absolute-form', 'GET http://elsewhere/users/7?a=b HTTP/1.1'],
  ['absolute-form in capitals', 'GET HTTP://elsewhere:80/users/7?a=b HTTP/1.1'],
] as const)('%s reaches the route', async ([, line]) => {
  const { port } = await serve(createApp().get('/users/:id', (ctx) => `${ctx.params.id} ${ctx.query.get('a')}`));
  expect((await rawRequest(port, `${line}\r\nHost: x\r\nConnection: close\r\n\r\n`)).body).toBe('7 b');
});

test('an absolute target without a path is the root, and its query never becomes one', async () => {
  const { port } = await serve(
    createApp()
      .get('/', (ctx) => `root ${ctx.query.get('next')}`)
      .get('/admin', () => 'admin'),
  );
  expect(
    (await rawRequest(port, 'GET http://localhost?next=/admin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).body,
  ).toBe('root /admin');
});

test('HTTP/1.0 needs no Host', async () => {
  const { port } = await serve(createApp().get('/', () => 'ok'));
  expect((await rawRequest(port, 'GET / HTTP/1.0\r\n\r\n')).body).toBe('ok');
});

test('a view serves the methods of its class, with this and flags kept', async () => {
  class Fast {
    #reads = 0;
    get = publicFacing(() => ({ reads: (this.#reads += 1) }));
    delete(): string {
      return `deleted after ${this.#reads}`;
    }
    put(ctx: Context<{ readonly id: string }>): string {
      return ctx.params.id;
    }
  }
  const app = createApp().view('/fast/:id', Fast);
  const { url } = await serve(app);
  expect(await (await fetch(`${url}/fast/1`)).json()).toEqual({ reads: 1 });
  expect(await (await fetch(`${url}/fast/1`, { method: 'DELETE' })).text()).toBe('deleted after 1');
  expect(await (await fetch(`${url}/fast/9`, { method: 'PUT' })).text()).toBe('9');
  expect(app.router.routesPublic).toEqual({ '^/fast/([^/]+)$': { public_methods: ['GET'] } });
});

test('a view may be a module', async () => {
  const users = Object.assign(Object.create(null), { get: () => 'all' }) as { get: () => string };
  expect(await (await createApp().view('/users', users).request('/users')).text()).toBe('all');
});

test('a group puts its prefix before every path: empty is the prefix itself, "/" has a slash behind it', async () => {
  const app = createApp().group('/v1', (v1) => {
    v1.get('', () => 'v1').get('/', () => 'v1 slash').get('/users', () => 'users');
    v1.group('/tenants/:tenant', (tenant) => {
      tenant.get('/users/:id', (ctx) => `${ctx.params.tenant} ${ctx.params.id}`);
    });
  });
  const { url } = await serve(app);
  const text = async (path: string): Promise<string> => (await fetch(url + path)).text();
  expect(await text('/v1')).toBe('v1');
  expect(await text('/v1/')).toBe('v1 slash');
  expect(await text('/v1/users')).toBe('users');
  expect(await text('/v1/tenants/acme/users/7')).toBe('acme 7');
});

const taken = (app: Postern): Postern => app.get('/taken', () => 1).get('/n/:n(\\d+)', () => 1);
test.for<{ what: string; register: (app: Postern) => unknown }>([
  { what: 'a method is taken', register: (app) => app.route('/taken', { POST: () => 1, GET: () => 1 }) },
  { what: 'a method of a constraint is taken',
    register: (app) => app.route('/n/:other(\\d+)', { POST: () => 1, GET: () => 1 }) },
  { what: 'a method is unknown', register: (app) => app.route('/taken', { POST: () => 1, NOPE: () => 1 } as never) },
  { what: 'a handler is not a function', register: (app) => app.route('/taken', { POST: () => 1, PUT: 1 } as never) },
  { what: 'a schema is wrong',
    register: (app) => app.route('/taken', {
      POST: () => 1,
      PUT: Object.assign(() => 1, { routeOptions: { body: {} } }) as never,
    }) },
  { what: 'a method of a view is taken', register: (app) => app.view('/taken', { post: () => 1, get: () => 1 } as never) },
])('if $what, nothing of the call is registered', async ({ register }) => {
  const app = taken(createApp());
  const before = app.router.routes;
  expect(() => register(app)).toThrow(TypeError);
  expect(app.router.routes).toEqual(before);
  const { headers } = await app.request('/taken', { method: 'POST' });
  expect(headers.get('allow')).toBe('GET, HEAD, OPTIONS');
  app.route('/taken', { POST: () => 'later' });
  expect(await (await app.request('/taken', { method: 'POST' })).text()).toBe('later');
  expect(() => app.get('/n/:n(\\d+)', () => 2)).toThrow('registered already');
});

test('what is wrong with a registration is thrown then and there', () => {
  const app = createApp();
  const handler = (): number => 1;
  app.get('/a/:x', handler);
  for (const path of [
    '',
    'a',
    '//',
    '/a//b',
    '/:x/:x',
    '/:',
    '/:x-y',
    '/*rest/b',
    '/:x(',
    '/:x(a)b',
    '/a%20b',
    '/:x((a+)+)',
  ]) {
    expect(() => app.get(path, handler), path).toThrow(TypeError);
  }
  expect(() => app.get('/a/:y', handler)).toThrow(/registered already, as GET \/a\/:x/);
  expect(() => app.route('/b', { get: handler as never })).toThrow(/unknown method "get"/);
  expect(() => app.route('/b', {})).toThrow(TypeError);
  expect(() => app.get('/b', 'no handler' as never)).toThrow(TypeError);
  expect(() => app.use('no middleware' as never)).toThrow(TypeError);
  expect(() => app.view('/b', class {} as never)).toThrow(TypeError);
  expect(() => app.get('/:id/:id', handler)).toThrow('duplicate parameter "id" at index 5 in "/:id/:id"; rename one');
});

test('of several methods of one path none is added when one has no handler', () => {
  const app = createApp();
  expect(() => app.route('/x', { GET: () => 'ok', POST: 5 as never })).toThrow(TypeError);
  expect(app.router.find('GET', '/x')).toBeNull();
});

test('routes can be added while the application serves', async () => {
  const app = createApp();
  const { url } = await serve(app);
  expect((await fetch(`${url}/late`)).status).toBe(404);
  app.get('/late', () => 'here');
  expect(await (await fetch(`${url}/late`)).text()).toBe('here');
});

test('names of Object.prototype are ordinary path segments, parameters and states', async () => {
  const app = createApp().get('/p/:constructor', (ctx) => {
    ctx.state['__proto__'] = 'x';
    return { own: ctx.params.constructor, inherited: 'toString' in ctx.params, state: Object.keys(ctx.state) };
  });
  const { url } = await serve(app);
  expect(await (await fetch(`${url}/p/hasOwnProperty`)).json())
    .toEqual({ own: 'hasOwnProperty', inherited: false, state: ['__proto__'] });
  for (const path of ['/constructor', '/__proto__', '/toString']) expect((await fetch(url + path)).status).toBe(404);
});
