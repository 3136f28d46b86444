/** Route options: where they may stand, which one wins, and what they do to a request. */

import { once } from 'node:events';
import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ApiError, connect, defineEndpoint, endpoint, NotFound, publicFacing, reply } from 'postern';
import type { Context, Handler, HandlerResult, Middleware, RouteOptions } from 'postern';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

const ok = (): string => 'ok';
const keep = <F extends (ctx: Context) => unknown>(handler: F): F =>
  Object.assign(((ctx: Context) => handler(ctx)) as F, handler);

class Gone extends ApiError {
  static override statusCode = 410;
}

test.for(['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const)(
  'app.%s takes options between path and handler, a group as well',
  async (verb) => {
    const app = createApp();
    const options: RouteOptions = { meta: { role: 'admin' } };
    app[verb]('/a', options, ok);
    app.group('/v1', (v1) => v1[verb]('/a', options, ok));
    expect(app.router.routes.filter(({ meta }) => meta !== undefined)).toEqual([
      { method: verb.toUpperCase(), path: '/a', pattern: '^/a$', public: false, params: null, meta: { role: 'admin' } },
      { method: verb.toUpperCase(), path: '/v1/a', pattern: '^/v1/a$', public: false, params: null,
        meta: { role: 'admin' } },
    ]);
  },
);

test('endpoint() carries options where no path is known yet, and leaves the handler as it was', () => {
  const handler = endpoint({ public: true, summary: 'A' }, ok);
  expect(handler).not.toBe(ok);
  expect(Object.keys(ok)).toEqual([]);
  expect(Object.isFrozen(handler.routeOptions)).toBe(true);
  expect(handler.name).toBe('ok');
  const app = createApp().route('/a', { GET: handler, PUT: ok });
  expect(app.router.routesPublic).toEqual({ '^/a$': { public_methods: ['GET'] } });
});

test('@endpoint() gives options to a method of a view, beside @publicFacing in either order', async () => {
  class Things {
    readonly name = 'things';
    get(): string {
      return this.name;
    }
    post(): string {
      return this.name;
    }
    put(): string {
      return this.name;
    }
  }
  // As a compiler calls them for `@endpoint({ meta: { a: 1 } }) @publicFacing get() {}`.
  const context = { kind: 'method' };
  type Decorate = (method: () => string, context: object) => () => string;
  const decorate = (flag: unknown, method: () => string): (() => string) => (flag as Decorate)(method, context);
  Things.prototype.get = decorate(endpoint({ meta: { a: 1 } }), decorate(publicFacing, Things.prototype.get));
  Things.prototype.post = decorate(
    publicFacing({ params: ['q'] }),
    decorate(endpoint({ meta: { b: 2 } }), Things.prototype.post),
  );
  const app = createApp().view('/class', Things).view('/instance', new Things());
  expect(app.router.routesPublic)
    .toEqual({ '^/class$': { public_methods: ['GET', 'POST'] }, '^/instance$': { public_methods: ['GET', 'POST'] } });
  expect(
    app.router.routes
      .filter(({ path }) => path === '/instance')
      .map(({ method, params, meta }) => ({ method, params, meta })),
  ).toEqual([
    { method: 'GET', params: null, meta: { a: 1 } },
    { method: 'POST', params: ['q'], meta: { b: 2 } },
    { method: 'PUT', params: null, meta: undefined },
  ]);
  for (const path of ['/class', '/instance'])
    expect(await (await app.request(path, { method: 'PUT' })).text()).toBe('things');
});

const flags: {
  name: string;
  options: RouteOptions;
  handler: () => string;
  open: boolean;
  params: readonly string[] | null;
}[] = [
  { name: 'the option alone', options: { public: true }, handler: ok, open: true, params: null },
  { name: 'the option with parameters', options: { public: { params: new Set(['q', 'page']).values() } }, handler: ok,
    open: true, params: ['q', 'page'] },
  { name: 'the flag alone', options: {}, handler: publicFacing(ok, { params: ['q'] }), open: true, params: ['q'] },
  { name: 'an option that is undefined', options: { public: undefined }, handler: publicFacing(ok), open: true,
    params: null },
  { name: 'false against the flag', options: { public: false }, handler: publicFacing(ok), open: false, params: null },
  { name: 'true against parameters of the flag', options: { public: true }, handler: publicFacing(ok, { params: [] }),
    open: true, params: null },
];
test.for(flags)('public: $name, whatever the order', ({ options, handler, open, params }) => {
  const { public: option } = options;
  const carried =
    option === undefined
      ? handler
      : endpoint({ public: typeof option === 'object' ? { params: [...(params ?? [])] } : option }, handler);
  const reversed =
    option === undefined
      ? handler
      : publicFacing(endpoint({ public: typeof option === 'object' ? { params: [...(params ?? [])] } : option }, ok), {
          params: ['other'],
        });
  const app = createApp().get('/short', options, handler).get('/carried', carried).get('/reversed', reversed)
    .get('/wrapped', keep(keep(carried)));
  for (const path of ['/short', '/carried', '/reversed', '/wrapped'])
    expect(
      app.router.routes.find((route) => route.path === path),
      path,
    ).toMatchObject({ public: open, params });
});

test('options of the route win over those that its handler carries, and middleware of both runs', async () => {
  const seen: string[] = [];
  const note = (name: string): Middleware => (_ctx, next) => {
    seen.push(name);
    return next();
  };
  const handler = endpoint({ meta: { from: 'handler' }, middleware: [note('inner')] }, (ctx) => ({
    meta: ctx.route?.meta,
  }));
  const app = createApp().use(note('app'));
  app.group('', (group) =>
    group
      .use(note('group'))
      .get('/a', { meta: { from: 'route' }, middleware: [note('first'), note('second')] }, handler),
  );
  app.get('/b', handler);
  expect(await (await app.request('/a')).json()).toEqual({ meta: { from: 'route' } });
  expect(seen.splice(0)).toEqual(['app', 'group', 'first', 'second', 'inner']);
  expect(await (await app.request('/b')).json()).toEqual({ meta: { from: 'handler' } });
  expect(seen).toEqual(['app', 'inner']);
});

test('what is declared is kept as it was when the route was registered', async () => {
  const tags = ['a'];
  const meta = { role: 'user' };
  const app = createApp().get('/a', { tags, meta }, (ctx) => ctx.route?.meta);
  tags.push('b');
  meta.role = 'admin';
  expect(await (await app.request('/a')).json()).toEqual({ role: 'user' });
  expect(() => Object.assign(app.router.routes.find(({ path }) => path === '/a')?.meta ?? {}, { role: 'root' }))
    .toThrow(TypeError);
});

const wrong: { options: unknown; message: string }[] = [
  { options: { bodylimit: 1 }, message: 'unknown option "bodylimit" of GET /a; did you mean "bodyLimit"?' },
  { options: { timeOut: 1 }, message: 'did you mean "timeout"?' },
  { options: { bodyLimit: 1.5 }, message: 'bodyLimit of GET /a is 1.5; give a whole number of 0 or more' },
  { options: { bodyLimit: '1' }, message: 'bodyLimit' },
  { options: { timeout: 0 }, message: 'timeout of GET /a is 0; give ms, more than 0 and at most 2147483647' },
  { options: { timeout: Infinity }, message: 'timeout' },
  { options: { middleware: ok }, message: 'middleware' },
  { options: { middleware: ['auth'] }, message: 'middleware' },
  { options: { public: 'yes' }, message: 'the options of GET /a: public are "yes"; give an object' },
  { options: { public: { param: ['q'] } },
    message: 'unknown option "param" of GET /a: public; did you mean "params"?' },
  { options: { public: { params: 'q' } }, message: 'params of GET /a: public is "q"' },
  { options: { errors: Gone }, message: 'errors' },
  { options: { errors: [Error] }, message: 'give a list of ApiError types' },
  { options: { errors: [new Gone()] }, message: 'give a list of ApiError types' },
  { options: { summary: 1 }, message: 'summary' },
  { options: { description: {} }, message: 'description' },
  { options: { operationId: null }, message: 'operationId' },
  { options: { tags: 'a' }, message: 'tags' },
  { options: { tags: [1] }, message: 'tags' },
  { options: { deprecated: 'yes' }, message: 'deprecated' },
  { options: { deprecated: { since: '2026-01-01' } }, message: 'unknown option "since" of GET /a: deprecated' },
  { options: { deprecated: { at: 'soon' } }, message: 'at of GET /a: deprecated is "soon"; give a date' },
  { options: { deprecated: { at: '2026-02-01', sunset: '2026-01-31' } },
    message: 'sunset of GET /a: deprecated is 2026-01-31, before at, 2026-02-01; give a later sunset' },
  { options: { deprecated: { link: '/docs' } }, message: 'link of GET /a: deprecated is "/docs"; give a URL' },
  { options: { meta: 'admin' }, message: 'meta' },
  { options: null, message: 'the options of GET /a are null; give an object' },
  { options: ['a'], message: 'the options of GET /a are an array; give an object' },
];
test.for(wrong)('options $options are refused by name', ({ options, message }) => {
  const app = createApp();
  expect(() => app.get('/a', options as RouteOptions, ok))
    .toThrow(expect.objectContaining({ name: 'TypeError', message: expect.stringContaining(message) }));
  expect(() => endpoint(options as RouteOptions, ok)).toThrow(TypeError);
  expect(app.router.find('GET', '/a'), 'nothing was registered').toBeNull();
});

test('options and handlers that are none are refused', () => {
  const app = createApp();
  expect(() => app.get('/a', {}, 'handler' as never)).toThrow('GET /a has no handler; give a function');
  expect(() => app.get('/a', {} as never)).toThrow('GET /a has no handler; give a function');
  expect(() => endpoint({}, 'handler' as never)).toThrow('endpoint takes functions, not handler');
  expect(() => endpoint({})(ok, { kind: 'class' } as never)).toThrow('endpoint decorates methods, not a class');
  expect(() => publicFacing(ok, { param: ['q'] } as never))
    .toThrow('unknown option "param" of publicFacing(); did you mean "params"?');
  expect(() => publicFacing({ param: ['q'] } as never)).toThrow(TypeError);
});

test('bodyLimit is the route\'s own, also above that of the application', async () => {
  const app = createApp({ bodyLimit: 10 });
  const size = async (ctx: Context): Promise<object> => ({ size: (await ctx.bytes()).length });
  app.post('/default', size).post('/small', { bodyLimit: 5 }, size).post('/large', { bodyLimit: 100 }, size);
  const { url } = await serve(app);
  const statusOf = async (path: string, length: number): Promise<number> =>
    (await fetch(url + path, { method: 'POST', body: 'x'.repeat(length) })).status;
  expect(await statusOf('/default', 10)).toBe(200);
  expect(await statusOf('/default', 11)).toBe(413);
  expect(await statusOf('/small', 5)).toBe(200);
  expect(await statusOf('/small', 6)).toBe(413);
  expect(await statusOf('/large', 100)).toBe(200);
  expect(await statusOf('/large', 101)).toBe(413);
});

const TIMED_OUT = {
  message: 'Gateway timeout.',
  description: 'The request was not answered within 20 ms.',
  error_code: { name: 'framework_timeout', value: 999504 },
};

test('timeout answers 504 and aborts ctx.signal', async () => {
  let reason: unknown;
  const app = expectFailures(createApp(), 504);
  app.get('/slow', { timeout: 20 }, async ({ signal }) => {
    await once(signal, 'abort');
    reason = signal.reason;
    return 'too late';
  });
  const response = await app.request('/slow');
  expect(response.status).toBe(504);
  expect(await response.json()).toEqual(TIMED_OUT);
  expect(reason).toMatchObject({ statusCode: 504 });
});

test('timeout counts middleware that never ends, and leaves what is in time alone', async () => {
  const app = expectFailures(createApp(), 504);
  const never: Middleware = () => new Promise(() => undefined);
  app.get('/own', { timeout: 20, middleware: [never] }, ok);
  app.group('/group', (group) => group.use(never).get('/a', { timeout: 20 }, ok));
  app.get('/quick', { timeout: 10_000 }, async (ctx) => ({ aborted: ctx.signal.aborted }));
  app.get('/fails', { timeout: 10_000 }, () => {
    throw new NotFound('no such thing');
  });
  for (const path of ['/own', '/group/a']) expect(await (await app.request(path)).json(), path).toEqual(TIMED_OUT);
  expect(await (await app.request('/quick')).json()).toEqual({ aborted: false });
  expect((await app.request('/fails')).status).toBe(404);
});

const silent: Record<string, () => HandlerResult> = {
  'a Readable': () => new Readable({ read() {} }),
  'a generator': async function* () {
    await new Promise(() => undefined);
    yield 'never';
  },
  'a Response': () => new Response(new ReadableStream()),
};
test.for(Object.keys(silent))('timeout answers 504 in place of %s without a chunk, with the headers of middleware', async (name) => {
  const app = expectFailures(createApp(), 504);
  let aborted: AbortSignal | undefined;
  app.use(async (_ctx, next) => {
    const replied = await next();
    replied.headers.set('x-middleware', '1');
    return replied;
  });
  app.get('/', { timeout: 20 }, ({ signal }) => {
    aborted = signal;
    return silent[name]!();
  });
  const response = await app.request('/');
  expect([response.status, response.headers.get('x-middleware')]).toEqual([504, '1']);
  expect(await response.json()).toEqual(TIMED_OUT);
  expect(aborted?.reason).toMatchObject({ statusCode: 504 });
});

const begun: Record<string, Handler> = {
  'a stream': async function* (ctx) {
    yield 'a';
    await wait(60);
    yield String(ctx.signal.aborted);
  },
  'ctx.raw': ({ raw: { res } }) => {
    res.write('a');
    setTimeout(() => res.end('false'), 60);
  },
};
test.for(Object.keys(begun))('timeout leaves %s that has begun alone', async (name) => {
  expect(await (await createApp().get('/', { timeout: 20 }, begun[name]!).request('/')).text()).toBe('afalse');
});

test('what a handler gives or throws behind its timeout is let go', async () => {
  let finish: (value: unknown) => void = () => undefined;
  let streamed: () => void = () => undefined;
  const destroyed = new Promise<void>((resolve) => (streamed = resolve));
  async function* chunks(): AsyncGenerator<string> {
    try {
      yield 'a';
    } finally {
      streamed();
    }
  }
  const app = expectFailures(createApp(), 504);
  app.get('/late', { timeout: 20 }, () => new Promise<object>((resolve) => (finish = resolve as typeof finish)));
  expect((await app.request('/late')).status).toBe(504);
  const stream = chunks();
  await stream.next();
  finish(stream);
  await destroyed;
  app.get('/throws', { timeout: 20 }, async ({ signal }) => {
    await once(signal, 'abort');
    throw new Error('late');
  });
  expect((await app.request('/throws')).status).toBe(504);
});

const nothing: Middleware = (_ctx, next) => next();
const instead: Middleware = async (_ctx, next) => {
  const { status } = await next();
  return reply({ failed: true }, { status });
};
test.for<[string, Middleware[]]>([
  ['no middleware', []],
  ['middleware', [nothing]],
  ['middleware that answers with a reply of its own', [nothing, instead, nothing]],
])('with %s, the log has the timeout, whatever the handler throws because of it', async ([, middleware]) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 504);
  for (const each of middleware) app.use(each);
  app.get('/', { timeout: 20, middleware: [nothing] }, ({ signal }) => wait(5_000, undefined, { signal }));
  expect((await app.request('/')).status).toBe(504);
  const err = { errorCode: { name: 'framework_timeout' } };
  expect(logger.entries).toMatchObject([{ object: { status_code: 504, err } }]);
});

test('deprecated: true is for documents; dates and a link go out with replies', async () => {
  const app = createApp();
  app.get('/marked', { deprecated: true }, ok);
  app.get(
    '/dated',
    {
      deprecated: {
        at: new Date('2026-01-01T00:00:00.500Z'),
        sunset: '2027-06-30T12:00:00Z',
        link: 'https://docs.example/users',
      },
    },
    async () => new Response('ok', { headers: { link: '</next>; rel="next"' } }),
  );
  app.get('/fails', { deprecated: { sunset: '2027-06-30T12:00:00Z', link: 'https://docs.example/users' } }, () => {
    throw new NotFound();
  });
  app.get('/own', { deprecated: { sunset: '2027-06-30' } }, () => new Response(null, { headers: { sunset: 'never' } }));
  app.get('/sunset', { deprecated: { sunset: '2027-06-30' } }, ok);
  const marked = await app.request('/marked');
  for (const name of ['deprecation', 'sunset', 'link']) expect(marked.headers.get(name)).toBeNull();
  const dated = await app.request('/dated');
  expect(dated.headers.get('deprecation')).toBe('@1767225600');
  expect(dated.headers.get('sunset')).toBe('Wed, 30 Jun 2027 12:00:00 GMT');
  expect(dated.headers.get('link')).toBe('</next>; rel="next", <https://docs.example/users>; rel="deprecation"');
  const failed = await app.request('/fails');
  expect([failed.status, failed.headers.get('sunset'), failed.headers.get('link')])
    .toEqual([404, 'Wed, 30 Jun 2027 12:00:00 GMT', '<https://docs.example/users>; rel="deprecation"']);
  const ignored = await app.request('/own');
  expect(ignored.headers.get('sunset'), 'what the reply says itself').toBe('never');
  const sunset = await app.request('/sunset');
  expect([sunset.headers.get('deprecation'), sunset.headers.get('sunset')])
    .toEqual([null, 'Wed, 30 Jun 2027 00:00:00 GMT']);
});

const written: Record<string, [options: RouteOptions, handler: Handler]> = {
  'ctx.raw': [{}, ({ raw: { res } }) => void res.end('x')],
  'writeHead of ctx.raw': [{}, ({ raw: { res } }) => void res.writeHead(200, { link: '</a>; rel="b"' }).end('x')],
  'ctx.raw later': [{}, async ({ raw: { res } }) => (await wait(1), void res.end('x'))],
  'middleware of Express': [{ middleware: [connect((_req, res) => void res.end('x'))] }, ok],
  'a reply after ctx.raw': [{}, ({ raw }) => (raw.res.setHeader('x-a', '1'), 'x')],
};
test.for(Object.keys(written))('deprecated goes out once with what %s writes', async (name) => {
  const [options, handler] = written[name]!;
  const deprecated = { at: '2026-01-01', link: 'https://docs.example/users' };
  const { headers } = await createApp().get('/', { ...options, deprecated }, handler).request('/');
  expect(headers.get('deprecation')).toBe('@1767225600');
  expect(headers.get('link')?.match(/rel="deprecation"/g)).toHaveLength(1);
  if (name.startsWith('writeHead')) expect(headers.get('link')).toContain('rel="b"');
});

test('a reply that a handler returns again and again gets the link of deprecated once', async () => {
  const same = reply('ok');
  const app = createApp().get('/', { deprecated: { link: 'https://docs.example/users' } }, () => same);
  for (let i = 0; i < 3; i += 1)
    expect((await app.request('/')).headers.get('link')).toBe('<https://docs.example/users>; rel="deprecation"');
});

test('middleware does not change the reply that a handler or inner middleware returns for every request', async () => {
  const same = reply('ok');
  const refusal = reply('no', { status: 403 });
  const mark: Middleware = async (_ctx, next) => {
    const result = await next();
    result.headers.append('set-cookie', 'a=1');
    result.status += 1;
    return result;
  };
  const app = createApp()
    .get('/', { middleware: [mark] }, () => same)
    .get('/refused', { middleware: [mark, () => refusal] }, ok);
  for (const [path, status] of [['/', 201], ['/', 201], ['/refused', 404], ['/refused', 404]] as const) {
    const answer = await app.request(path);
    expect([answer.status, answer.headers.getSetCookie()], path).toEqual([status, ['a=1']]);
  }
});

test('the router alone reads options off its handlers, and refuses a monitoring path as the application does', () => {
  const app = createApp({}, 'users');
  app.router.add('GET', '/direct', endpoint({ public: { params: [] }, meta: { a: 1 } }, ok));
  expect(app.router.routes.at(-1))
    .toEqual({ method: 'GET', path: '/direct', pattern: '^/direct$', public: true, params: [], meta: { a: 1 } });
  for (const path of ['/users/health/', '/users/metrics/', '/users/ping/']) {
    for (const method of ['GET', 'POST'])
      expect(() => app.router.add(method, path, ok), path).toThrow('monitoring endpoint');
    expect(() => app.get(path, ok), path).toThrow('monitoring endpoint');
  }
  expect(() =>
    createApp({ attachMonitorEndpoints: false }, 'users').router.add('GET', '/users/health/', ok),
  ).not.toThrow();
});

test('an undefined option of implement leaves the option of the endpoint', async () => {
  const shared = defineEndpoint('GET', '/x', { public: true });
  const app = createApp().implement(shared, () => 'ok', { public: undefined } as object);
  expect(Object.keys(app.router.routesPublic)).toEqual(['^/x$']);
});

test('the list of middleware of a group is its own', async () => {
  const list: Middleware[] = [];
  const app = createApp().group('/g', { middleware: list }, (group) => group.get('/a', () => 'a'));
  list.push(() => 'pushed');
  expect(await (await app.request('/g/a')).text()).toBe('a');
});

test.for([
  { names: ['x-tenant'], message: undefined },
  { names: ['x-tenant', 'X-User'], message: 'headers of GET /a names "X-User"; write "x-user"' },
])('a schema of headers with the names $names', ({ names, message }) => {
  const json = (): object => ({ properties: Object.fromEntries(names.map((name) => [name, {}])) });
  const validate = (value: unknown): { value: unknown } => ({ value });
  const jsonSchema = { input: json, output: json };
  const headers = { '~standard': { version: 1, vendor: 'test', validate, jsonSchema } } as RouteOptions['headers'];
  const register = (): unknown => createApp().get('/a', { headers }, () => 'ok');
  if (message === undefined) register();
  else expect(register).toThrow(new TypeError(message));
});

test.for<[string, object | undefined, string | undefined]>([
  ['another name', { properties: { uid: {} } }, 'params of GET /g/:g/users/:id names "uid"; the path has g, id'],
  ['another name in a variant', { anyOf: [{ properties: { id: {} } }, { properties: { uid: {} } }] },
    'params of GET /g/:g/users/:id names "uid"; the path has g, id'],
  ['the name of the path', { properties: { id: {} } }, undefined],
  ['the name of the group', { properties: { g: {}, id: {} } }, undefined],
  ['no JSON Schema', undefined, undefined],
])('a schema of params with %s', ([, json, message]) => {
  const jsonSchema = { input: () => json ?? fail(), output: () => json ?? fail() };
  const fail = (): never => { throw new Error('it has none'); };
  const validate = (value: unknown): { value: unknown } => ({ value });
  const params = { '~standard': { version: 1, vendor: 'test', validate, jsonSchema } } as RouteOptions['params'];
  const register = (): unknown => createApp().group('/g/:g', (group) => group.get('/users/:id', { params }, () => 'ok'));
  if (message === undefined) register();
  else expect(register).toThrow(new TypeError(message));
});
