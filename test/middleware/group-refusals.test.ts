/**
 * Middleware of a group runs around the answers in place of its routes: OPTIONS, and 405 for a method without a route.
 *
 * @module-tag package
 */

import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { connect, publicFacing, Unauthorized, type ConnectMiddleware, type Middleware, type Postern } from 'postern';
import { createApp, expectFailures } from '../support/serve.js';

const require = createRequire(import.meta.url);
const cors = require('cors') as (options?: object) => ConnectMiddleware;

const preflight = (method: string): RequestInit => ({
  method: 'OPTIONS', headers: { origin: 'https://shop.example', 'access-control-request-method': method },
});
const auth: Middleware = (ctx, next) => {
  if (ctx.headers.authorization === undefined) throw new Unauthorized();
  return next();
};
/** Adds its name to the header `x-ran`. */
const named = (name: string): Middleware => async (_ctx, next) => {
  const reply = await next();
  reply.headers.append('x-ran', name);
  return reply;
};
type Fields = Readonly<Record<string, string>>;
/** The names, outermost first, of the middleware that ran for a request. */
async function ranFor(app: Postern, method: string, path: string, headers: Fields = {}): Promise<unknown> {
  const response = await app.request(path, { method, headers });
  await response.text();
  return [response.status, response.headers.get('x-ran')?.split(', ').reverse().join(' ') ?? null];
}

describe('CORS for one group', () => {
  const corsOf = connect(cors({ origin: 'https://shop.example', methods: ['GET', 'POST'] }));

  test('answers the preflight requests of its paths, and of no other', async () => {
    const app = createApp();
    app.group('/api', (api) => { api.use(corsOf); api.get('/items/:id', () => 'item').post('/items', () => 'made'); });
    app.get('/page', () => 'page');
    for (const [path, method] of [['/api/items/7', 'GET'], ['/api/items', 'POST'], ['/api/items/7', 'DELETE']] as const) {
      const { status, headers } = await app.request(path, preflight(method));
      expect([path, status, headers.get('access-control-allow-origin'), headers.get('access-control-allow-methods')])
        .toEqual([path, 204, 'https://shop.example', 'GET,POST']);
    }
    for (const path of ['/page', '/api/nothing', '/api']) {
      const { headers } = await app.request(path, preflight('GET'));
      expect([path, headers.get('access-control-allow-origin')]).toEqual([path, null]);
    }
    const refused = await app.request('/api/items', { method: 'DELETE', headers: { origin: 'https://shop.example' } });
    expect([refused.status, refused.headers.get('access-control-allow-origin'), refused.headers.get('allow')])
      .toEqual([405, 'https://shop.example', 'OPTIONS, POST']);
  });

  test('answers them before the authentication of the group, if it comes first', async () => {
    const app = createApp();
    app.group('/first', { middleware: [corsOf, auth] }, (group) => void group.get('/x', () => 'x'));
    app.group('/last', { middleware: [auth, corsOf] }, (group) => void group.get('/x', () => 'x'));
    const statuses = ['/first/x', '/last/x'].map(async (path) => (await app.request(path, preflight('GET'))).status);
    expect(await Promise.all(statuses)).toEqual([204, 401]);
  });

  test('is the CORS of the group that has the method, if another group has the same path', async () => {
    const app = createApp();
    const other = connect(cors({ origin: 'https://other.example' }));
    app.group('', { middleware: [other] }, (group) => void group.get('/items', () => 'items'));
    app.group('', { middleware: [corsOf] }, (group) => void group.post('/items', () => 'made'));
    const allowedFor = async (method: string): Promise<string | null> =>
      (await app.request('/items', preflight(method))).headers.get('access-control-allow-origin');
    expect([await allowedFor('GET'), await allowedFor('POST'), await allowedFor('PATCH'), await allowedFor('*/"')])
      .toEqual(['https://other.example', 'https://shop.example', 'https://other.example', 'https://other.example']);
  });
});

describe('OPTIONS and 405', () => {
  test('run inside application, outer and inner groups, and outside of the middleware of a route', async () => {
    const app = createApp().use(named('app'));
    app.group('/v1', { middleware: [named('option')] }, (outer) => {
      outer.use(named('outer'));
      outer.group('/items', (inner) => {
        inner.get('/:id', { middleware: [named('route')] }, () => 'item');
        inner.use(named('inner'));
      });
      outer.get('/own', () => 'own').options('/own', () => 'options');
    });
    expect(await ranFor(app, 'GET', '/v1/items/7')).toEqual([200, 'app option outer inner route']);
    expect(await ranFor(app, 'OPTIONS', '/v1/items/7')).toEqual([204, 'app option outer inner']);
    expect(await ranFor(app, 'DELETE', '/v1/items/7')).toEqual([405, 'app option outer inner']);
    expect(await ranFor(app, 'OPTIONS', '/v1/own')).toEqual([200, 'app option outer']);
    expect(await ranFor(app, 'GET', '/v1/nothing')).toEqual([404, 'app']);
    expect(await ranFor(app, 'OPTIONS', '/v1')).toEqual([404, 'app']);
  });

  test('have no route, the parameters of the best route, and count as no route', async () => {
    const seen: unknown[] = [];
    const app = createApp();
    app.group('/tenants/:tenant', (group) => {
      group.use(async (ctx, next) => {
        const reply = await next();
        seen.push([ctx.method, ctx.route, ctx.params, reply.status, reply.headers.get('allow')]);
      });
      group.get('/users/:id', () => 'user');
    });
    for (const method of ['OPTIONS', 'PUT'])
      await (await app.request('/tenants/a%20b/users/7', { method })).text();
    expect(seen).toEqual([
      ['OPTIONS', null, { tenant: 'a b', id: '7' }, 204, 'GET, HEAD, OPTIONS'],
      ['PUT', null, { tenant: 'a b', id: '7' }, 405, 'GET, HEAD, OPTIONS'],
    ]);
    const text = app.metrics.expose();
    expect(text).toContain('http_request_duration_seconds_count{method="OPTIONS",route="",status_code="204"} 1.0');
    expect(text).toContain('http_request_duration_seconds_count{method="PUT",route="",status_code="405"} 1.0');
  });

  test('are answered by the middleware, or fail with it', async () => {
    const app = expectFailures(createApp(), 500);
    app.group('/a', { middleware: [() => 'mine'] }, (group) => void group.get('/x', () => 'x'));
    app.group('/b', { middleware: [() => { throw new Error('broken'); }] }, (group) => void group.get('/x', () => 'x'));
    const answers = ['/a/x', '/b/x'].map(async (path) => (await app.request(path, { method: 'PUT' })).status);
    expect(await Promise.all(answers)).toEqual([200, 500]);
  });

  test('take the best route: static before constrained before plain before wildcard, in whatever order they came', async () => {
    const app = createApp();
    const add = (path: string): unknown =>
      app.group('', { middleware: [named(path)] }, (group) => void group.post(path, () => path));
    for (const path of ['/f/*rest', '/f/:name', '/f/:n(\\d+)', '/f/me', '/f/:name/x']) add(path);
    const bests = [
      ['/f/me', '/f/me'], ['/f/7', '/f/:n(\\d+)'], ['/f/a', '/f/:name'], ['/f/a/x', '/f/:name/x'], ['/f/a/b', '/f/*rest'],
    ] as const;
    for (const [path, best] of bests)
      expect([path, await ranFor(app, 'GET', path)]).toEqual([path, [405, best]]);
  });

  test('run middleware that a group adds later', async () => {
    const app = createApp();
    let add = (_middleware: Middleware): unknown => undefined;
    app.group('/g', (group) => {
      add = (middleware) => group.use(middleware);
      group.get('/x', () => 'x');
    });
    expect(await ranFor(app, 'PUT', '/g/x')).toEqual([405, null]);
    add(named('later'));
    expect(await ranFor(app, 'PUT', '/g/x')).toEqual([405, 'later']);
    app.use(named('app'));
    expect(await ranFor(app, 'PUT', '/g/x')).toEqual([405, 'app later']);
  });

  test('go to a mount, without the middleware of groups', async () => {
    const app = createApp().mount('/', (_req, res) => void res.end('mount'));
    app.group('/g', { middleware: [named('group')] }, (group) => void group.get('/x', () => 'x'));
    expect([await ranFor(app, 'OPTIONS', '/g/x'), await ranFor(app, 'GET', '/g/x')]).toEqual([[200, null], [200, 'group']]);
  });

  test('of a monitoring endpoint, and OPTIONS *, have no group', async () => {
    const app = createApp();
    app.group('', { middleware: [named('group')] }, (group) => void group.get('/:a/:b/', () => 'x'));
    expect(await ranFor(app, 'OPTIONS', '/users/health/')).toEqual([204, null]);
    expect(await ranFor(app, 'OPTIONS', '/users/other/')).toEqual([204, 'group']);
  });
});

describe('for the public', () => {
  const scoped = { 'x-postern-scope': 'public' };
  type Routes = readonly (readonly [method: string, path: string, scope: 'public' | 'private'])[];
  /** Groups named by a scope and a method, each with one route. */
  function appWith(routes: Routes): Postern {
    const app = createApp();
    for (const [method, path, scope] of routes) {
      const handler = scope === 'public' ? publicFacing(() => 'x') : () => 'x';
      const middleware = [named(`${scope}:${method}`)];
      app.group('', { middleware }, (group) => void group.route(path, { [method]: handler }));
    }
    return app;
  }

  test.for<[string, Routes, string, unknown]>([
    ['a private route has no group', [['GET', '/x', 'private']], 'OPTIONS', [404, null]],
    ['a public route has its group', [['GET', '/x', 'public']], 'PUT', [405, 'public:GET']],
    ['of two methods, the public one', [['GET', '/x', 'private'], ['POST', '/x', 'public']], 'OPTIONS', [204, 'public:POST']],
    ['of two methods, the public one, whichever came first', [['POST', '/x', 'public'], ['GET', '/x', 'private']], 'GET',
      [405, 'public:POST']],
    ['a public route below a better private one', [['GET', '/x', 'private'], ['POST', '/:name', 'public']], 'PUT',
      [405, 'public:POST']],
    ['a public route that a private one hides', [['GET', '/x', 'private'], ['GET', '/:name', 'public']], 'OPTIONS', [404, null]],
    ['a better public route', [['POST', '/:name', 'public'], ['GET', '/x', 'public']], 'PUT', [405, 'public:GET']],
    ['an own OPTIONS route that is private', [['OPTIONS', '/x', 'private'], ['GET', '/x', 'public']], 'OPTIONS',
      [204, 'public:GET']],
    ['an own OPTIONS route that is public', [['OPTIONS', '/x', 'public'], ['GET', '/x', 'private']], 'GET',
      [405, 'public:OPTIONS']],
  ])('%s', async ([, routes, method, expected]) => {
    const app = appWith(routes);
    expect(await ranFor(app, method, '/x', scoped)).toEqual(expected);
    // A preflight request names a method; no private group runs for that, either.
    for (const named of ['GET', 'POST', 'PUT']) {
      const ran = await ranFor(app, 'OPTIONS', '/x', { ...scoped, 'access-control-request-method': named });
      expect(JSON.stringify(ran)).not.toContain('private');
    }
  });
});
