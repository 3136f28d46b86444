/** Mistakes at registration: each is a TypeError that says what to write instead. */

import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import {
  defineEndpoint, endpoint, Postern, publicFacing, Router, type Context, type Middleware, type RouteGroup,
} from 'postern';
import { createApp } from '../support/serve.js';

const ok = (): string => 'ok';
const auth = (_ctx: Context, next: () => Promise<never>): Promise<never> => next();
/** Calls a method as JavaScript would, where the compiler says nothing. */
function call(target: object, method: string, ...args: readonly unknown[]): unknown {
  const { [method]: run } = target as Record<string, (...args: readonly unknown[]) => unknown>;
  return run?.apply(target, [...args]);
}

const mistakes: readonly (readonly [what: string, run: (app: Postern) => unknown, message: string | RegExp])[] = [
  ['get(/x/)', (app) => call(app, 'get', /x/, ok),
    'path /x/ is not a string; give one such as "/users/:id" or "/n/:n(\\\\d+)"'],
  ['get(undefined)', (app) => call(app, 'get', undefined, ok),
    'path undefined is not a string; give one such as "/users/:id" or "/n/:n(\\\\d+)"'],
  ['a router alone', () => call(new Router(), 'add', 'GET', /x/, ok), /^path \/x\/ is not a string/],
  ['a query', (app) => app.get('/a?b=1', ok),
    'character "?" at index 2 in "/a?b=1"; end the path before it: a path has no query and no fragment'],
  ['a fragment', (app) => app.get('/a/b#c', ok),
    'character "#" at index 4 in "/a/b#c"; end the path before it: a path has no query and no fragment'],
  ['two dots', (app) => app.get('/a/../b', ok),
    'dot segment ".." at index 3 in "/a/../b"; remove it: clients resolve it'],
  ['one dot', (app) => app.get('/.', ok), 'dot segment "." at index 1 in "/."; remove it: clients resolve it'],
  ['an object in place of a path', (app) => call(app, 'route', { method: 'GET', url: '/x', handler: ok }),
    'path an object is not a string; give one such as "/users/:id" or "/n/:n(\\\\d+)"'],
  ['a list of methods', (app) => call(app, 'route', '/a', ['GET']),
    'route "/a" has no handlers by method; give an object such as { GET: handler }'],
  ['a function for all methods', (app) => call(app, 'route', '/a', ok),
    'route "/a" has no handlers by method; give an object such as { GET: handler }'],
  ['a method in lower case', (app) => call(app, 'route', '/a', { get: ok }), 'unknown method "get"; write "GET"'],
  ['a shared endpoint in lower case', () => call({ defineEndpoint }, 'defineEndpoint', 'get', '/a'),
    'unknown method "get"; write "GET"'],
  ['no such method', (app) => call(app, 'route', '/a', { FETCH: ok }),
    'unknown method "FETCH"; use one of http.METHODS'],
  ['a handler before its options', (app) => call(app, 'get', '/a', ok, { timeout: 5 }),
    'GET /a has its options after the handler; swap them: get(path, options, handler)'],
  ['several handlers', (app) => call(app, 'get', '/a', auth, ok),
    'GET /a has several handlers; give middleware as an option: get(path, { middleware: [auth] }, handler)'],
  ['three handlers', (app) => call(app, 'post', '/a', auth, auth, ok),
    /^POST \/a has several handlers; give middleware as an option: post\(/],
  ['handlers in a list', (app) => call(app, 'get', '/a', [auth, ok]),
    /^GET \/a has several handlers; give middleware as an option/],
  ['one handler in a list', (app) => call(app, 'get', '/a', [ok]),
    'GET /a has a list in place of its handler; give the function itself'],
  ['no handler', (app) => call(app, 'get', '/a'), 'GET /a has no handler; give a function'],
  ['options without a handler', (app) => call(app, 'get', '/a', { timeout: 5 }),
    'GET /a has no handler; give a function'],
  ['a group without a function', (app) => call(app, 'group', '/v1'),
    'group "/v1" has no function; give one that adds its routes: (group) => { group.get(...) }'],
  ['a group with options only', (app) => call(app, 'group', '/v1', { tags: [] }), /^group "\/v1" has no function/],
  ['a function of a group before its options', (app) => call(app, 'group', '/v1', () => {}, { middleware: [auth] }),
    'group "/v1" has its options after the function; swap them: group(prefix, options, define)'],
  ['two functions of a group', (app) => call(app, 'group', '/v1', auth, () => {}),
    'the options of group "/v1" are a function; give an object'],
  ['null as the options of a group', (app) => call(app, 'group', '/v1', null, () => {}),
    'the options of group "/v1" are null; give an object'],
  ['a body of a group', (app) => call(app, 'group', '/v1', { body: {} }, () => {}),
    /^unknown option "body" of group "\/v1"/],
  ['a summary of a group', (app) => call(app, 'group', '/v1', { summary: 'x' }, () => {}),
    /^unknown option "summary" of group "\/v1"/],
  ['middleware for Express', (app) => call(app, 'use', (_req: unknown, _res: unknown, next: () => void) => next()),
    'middleware must be a function (ctx, next) => reply, not a function; wrap (req, res, next) in connect()'],
  ['several middlewares', (app) => call(app, 'use', auth, auth),
    'use() takes one middleware at a time; call it for each: use(first).use(second)'],
  ['several middlewares of a group', (app) => app.group('/v1', (group) => call(group, 'use', auth, auth)),
    'use() takes one middleware at a time; call it for each: use(first).use(second)'],
  ['a handler as a view', (app) => call(app, 'view', '/a', () => 1),
    'view of "/a" is a function; give a class or an instance of one'],
  ['middleware of a path', (app) => call(app, 'use', '/v1', auth),
    'middleware must be a function (ctx, next) => reply, not "/v1"; use() takes no path: open a group'],
  ['middleware for Express as an option',
    (app) => call(app, 'get', '/a', { middleware: [(_q: unknown, _s: unknown, next: () => void) => next()] }, ok),
    /give a list of functions \(ctx, next\) => reply; connect\(\) adapts \(req, res, next\)/],
  ['an unknown priority', (app) => call(app, 'get', '/a', { priority: 'urgent' }, ok),
    'priority of GET /a is "urgent"; give one of low, normal, high'],
  ['an openapi option that is true', (app) => call(app, 'get', '/a', { openapi: true }, ok),
    'openapi of GET /a is true; give an object, or false'],
  ['attach(5)', (app) => call(app, 'attach', 5), 'attach() takes a server of node:http, not 5'],
  ['half a character', (app) => app.get('/\ud800', ok), 'path "/\\ud800" has half a character; remove it'],
  ['a mount with a parameter', (app) => app.mount('/:id', ok), 'mount at "/:id" has a parameter; give a static prefix'],
  ['a mount with a slash', (app) => app.mount('/a/', ok), 'mount at "/a/" ends in a slash; give "/a"'],
  ['a mount without a listener', (app) => call(app, 'mount', '/a'),
    'mount at "/a" has undefined as listener; give a function (req, res)'],
  ['a mount twice', (app) => app.mount('/a', ok).mount('/a', ok), 'mount at "/a" is there already; remove one'],
  ['a wildcard without a name before the end', (app) => app.get('/*/a', ok),
    'wildcard "*" before the end at index 1 in "/*/a"; move it to the last segment'],
  ['publicFacing without its handler', (app) => app.get('/a', publicFacing({ params: ['q'] })),
    'GET /a has a flag without its handler; write publicFacing(options)(handler), or endpoint(options, handler)'],
  ['endpoint without its handler', (app) => app.route('/a', { PUT: endpoint({ timeout: 5 }) }),
    'PUT /a has a flag without its handler; write publicFacing(options)(handler), or endpoint(options, handler)'],
  ['options of publicFacing before the handler', () => call({ publicFacing }, 'publicFacing', { params: ['q'] }, ok),
    'publicFacing() takes the handler first; write publicFacing(handler, { params: ["q"] })'],
  ['a mount without a slash', (app) => app.mount('a', ok), 'path "a" does not start with "/"; add it'],
];
test.for(mistakes)('%s', ([, run, message]) => {
  const app = createApp();
  expect(() => run(app)).toThrow(typeof message === 'string' ? new TypeError(message) : message);
  expect(() => run(app)).toThrow(TypeError);
});

test('a server is attached as before', () => {
  expect(() => createApp().attach(createServer())).not.toThrow();
});

describe('a flag of a view that would have no effect is a TypeError', () => {
  class Fetches {
    fetch() {}
    get() {}
  }
  Fetches.prototype.fetch = publicFacing(Fetches.prototype.fetch);
  class Wrapped {
    fetch = publicFacing(ok);
    get = ok;
  }
  class Optional {
    load = endpoint({ timeout: 5 }, ok);
    get() {}
  }
  class Inherited extends Fetches {}
  class Static {
    static get = publicFacing(ok);
    get() {}
  }
  class InheritedStatic extends Static {}
  class Symbolic {
    [Symbol.iterator] = publicFacing(ok);
    get() {}
  }
  class Field {
    get = { scope: 'public' };
    put() {}
  }
  test.for([
    [Fetches, 'fetch of the view of "/a" is flagged, and not an HTTP method'],
    [new Fetches(), 'fetch of the view of "/a" is flagged, and not an HTTP method'],
    [Wrapped, 'fetch of the view of "/a" is flagged, and not an HTTP method'],
    [Optional, 'load of the view of "/a" is flagged, and not an HTTP method'],
    [Inherited, 'fetch of the view of "/a" is flagged, and not an HTTP method'],
    [Static, 'get of the view of "/a" is flagged, and static'],
    [InheritedStatic, 'get of the view of "/a" is flagged, and static'],
    [Symbolic, 'Symbol(Symbol.iterator) of the view of "/a" is flagged, and not an HTTP method'],
    [Field, 'get of the view of "/a" is an object, not a method; rename it'],
    [undefined, 'view of "/a" is undefined; give a class or an instance of one'],
  ] as const)('%o', ([view, message]) => {
    const app = createApp();
    expect(() => call(app, 'view', '/a', view)).toThrow(TypeError);
    expect(() => call(app, 'view', '/a', view)).toThrow(message);
  });

  test('decorators refuse static members and fields where they stand', () => {
    const context = (kind: string, isStatic: boolean) => ({ kind, name: 'get', static: isStatic });
    const flags = [publicFacing, publicFacing(), publicFacing({ params: [] }), endpoint({})] as readonly ((
      ...args: readonly unknown[]
    ) => unknown)[];
    for (const flag of flags) {
      expect(() => flag(ok, context('method', true)))
        .toThrow('decorates methods, not a static member (get); make it a method of instances');
      expect(() => flag(undefined, context('field', false)))
        .toThrow('decorates methods, not a field (get); make it a method of instances');
      expect(() => flag(class {}, 'get', { value: ok })).toThrow('not a static member (get)');
      expect(() => flag({}, 'get', undefined)).toThrow('not a field or an accessor (get)');
    }
  });
});

describe('options of a group', () => {
  test('are defaults of its routes, which an option of the route or a flag on its handler overrides', () => {
    const app = createApp({ attachMonitorEndpoints: false });
    app.group('/g', { public: true, meta: { role: 'any' }, timeout: 500 }, (group) => {
      group.get('/default', ok);
      group.get('/option', { public: false, meta: { role: 'admin' } }, ok);
      group.get('/flag', publicFacing(ok, { params: ['q'] }));
      group.get('/carried', endpoint({ public: false }, ok));
      group.group('/in', { public: false }, (inner) => inner.get('/default', ok).get('/flag', publicFacing(ok)));
    });
    app.get('/outside', ok);
    expect(app.router.routes.map(({ path, public: isOpen, params, meta }) => [path, isOpen, params, meta])).toEqual([
      ['/g/default', true, null, { role: 'any' }],
      ['/g/option', false, null, { role: 'admin' }],
      ['/g/flag', true, ['q'], { role: 'any' }],
      ['/g/carried', false, null, { role: 'any' }],
      ['/g/in/default', false, null, { role: 'any' }],
      ['/g/in/flag', true, null, { role: 'any' }],
      ['/outside', false, null, undefined],
    ]);
  });

  test('tags, errors and middleware add up; the middleware of the option is outside that of use', async () => {
    const app = createApp();
    const ran: string[] = [];
    const note = (name: string): Middleware => (_ctx, next) => (ran.push(name), next());
    app.use(note('app'));
    app.group('/a', { tags: ['a'], middleware: [note('a option')] }, (outer) => {
      outer.use(note('a use'));
      outer.group('/b', { tags: ['b', 'a'], middleware: [note('b option')] }, (inner) => {
        inner.get('/c', { tags: ['c'], middleware: [note('route')], priority: 'high', openapi: { security: [] } }, ok);
        inner.use(note('b use'));
      });
    });
    expect((await app.request('/a/b/c')).status).toBe(200);
    expect(ran).toEqual(['app', 'a option', 'a use', 'b option', 'b use', 'route']);
    const [record] = app.router.entries.filter(({ path }) => path === '/a/b/c').map(({ options }) => options);
    expect(record).toMatchObject({ tags: ['a', 'b', 'c'], priority: 'high', openapi: { security: [] } });
  });

  test('middleware that a group gets after a route of it was served runs from then on', async () => {
    const app = createApp();
    const ran: string[] = [];
    let group: RouteGroup<'/g'> | undefined;
    app.group('/g', (routes) => void (group = routes).get('', ok));
    expect((await app.request('/g')).status).toBe(200);
    group?.use((_ctx, next) => (ran.push('late'), next()));
    expect((await app.request('/g')).status).toBe(200);
    expect(ran).toEqual(['late']);
  });

  test('a function for a group of any prefix may be declared elsewhere', async () => {
    const items = (routes: RouteGroup): void => void routes.get('/items/:id', (ctx) => ctx.params.id);
    const app = createApp();
    app.group('/v1', items).group('/v2', { tags: ['v2'] }, items);
    items(app);
    for (const path of ['/v1/items/7', '/v2/items/7', '/items/7'])
      expect(await (await app.request(path)).text()).toBe('7');
  });
});
