/**
 * Requests from the public: those with `x-postern-scope`, and all requests of a public server.
 *
 * @module-tag slow
 */

import { createServer, type Server } from 'node:http';
import { describe, expect, test } from 'vitest';
import {
  defineEndpoint, defineErrorCodes, publicFacing, reply, ServiceUnavailable, type Context, type Handler, type Postern,
} from 'postern';
import { rawRequest } from '../support/raw.js';
import { createApp, createRecorder, expectFailures, listening, portOf, serve } from '../support/serve.js';

function usersApp(): Postern {
  const app = createApp();
  app.get('/users/:id', publicFacing((ctx) => `public ${ctx.params.id}`));
  app.get('/users/me', () => 'private');
  app.route('/both', { GET: publicFacing(() => 'read'), PUT: () => 'written' });
  app.route('/head', { GET: publicFacing(() => 'got'), HEAD: () => 'head' });
  app.route('/options', { GET: publicFacing(() => 'got'), OPTIONS: () => 'private' });
  app.route('/open', { OPTIONS: publicFacing(() => 'mine'), GET: () => 'private' });
  app.post('/inner', () => 'private');
  return app;
}

const cases = [
  { method: 'GET', path: '/users/7', status: 200, allow: null, body: 'public 7', route: '/users/:id' },
  { method: 'HEAD', path: '/users/7', status: 200, allow: null, body: '', route: '/users/:id' },
  { method: 'DELETE', path: '/users/7', status: 405, allow: 'GET, HEAD, OPTIONS' },
  { method: 'OPTIONS', path: '/users/7', status: 204, allow: 'GET, HEAD, OPTIONS', body: '' },
  { method: 'GET', path: '/users/me', status: 404, allow: null },
  { method: 'OPTIONS', path: '/users/me', status: 404, allow: null },
  { method: 'GET', path: '/users/m%65', status: 404, allow: null },
  { method: 'GET', path: '/both', status: 200, allow: null, body: 'read', route: '/both' },
  { method: 'PUT', path: '/both', status: 405, allow: 'GET, HEAD, OPTIONS' },
  { method: 'HEAD', path: '/head', status: 405, allow: 'GET, OPTIONS', body: '' },
  { method: 'OPTIONS', path: '/options', status: 204, allow: 'GET, HEAD, OPTIONS', body: '' },
  { method: 'OPTIONS', path: '/open', status: 200, allow: null, body: 'mine', route: '/open' },
  { method: 'GET', path: '/open', status: 405, allow: 'OPTIONS' },
  { method: 'POST', path: '/inner', status: 404, allow: null },
  { method: 'GET', path: '/users/health/', status: 404, allow: null },
  { method: 'GET', path: '/users/metrics/', status: 404, allow: null },
  { method: 'GET', path: '/users/%ZZ', status: 400, allow: null },
] as const;

describe.each(['public', '', 'anything'])('with x-postern-scope: %j', (value) => {
  test.for(cases)('$method $path answers $status', async ({ method, path, status, allow, ...rest }) => {
    const app = usersApp();
    const seen: unknown[] = [];
    app.use((ctx, next) => {
      seen.push(ctx.scope, ctx.route?.path);
      return next();
    });
    const response = await app.request(path, { method, headers: { 'x-postern-scope': value } });
    expect(response.status).toBe(status);
    expect(response.headers.get('allow')).toBe(allow);
    const body = await response.text();
    if ('body' in rest) expect(body).toBe(rest.body);
    const route = 'route' in rest ? rest.route : undefined;
    if (status !== 400) expect(seen).toEqual(['public', route]);
    expect(app.metrics.expose()).toContain(`route="${route ?? ''}",status_code="${status}"`);
  });
});

test('without the header every route answers, and ctx.scope is undefined', async () => {
  const app = usersApp();
  app.get('/scope', (ctx) => String(ctx.scope));
  for (const [path, body] of [['/users/me', 'private'], ['/users/7', 'public 7'], ['/scope', 'undefined']] as const)
    expect(await (await app.request(path)).text()).toBe(body);
  expect((await app.request('/users/health/')).status).toBe(200);
});

test('neither middleware of groups nor of routes runs for a private route', async () => {
  const app = createApp();
  const ran: string[] = [];
  const note = (name: string) => (_ctx: Context, next: () => Promise<unknown>) =>
    (ran.push(name), next() as Promise<never>);
  app.use(note('app'));
  app.group('/g', (group) =>
    group.use(note('group')).get('/x', { middleware: [note('route')] }, () => ran.push('handler')),
  );
  expect((await app.request('/g/x', { headers: { 'x-postern-scope': 'public' } })).status).toBe(404);
  expect(ran).toEqual(['app']);
});

describe('what the public may not set', () => {
  test('deadlines and baggage of the request are ignored, and the scope is not passed on', async () => {
    const received: Record<string, unknown>[] = [];
    const other = createApp({}, 'other').get('/', (ctx) => void received.push(ctx.headers));
    const app = createApp({ services: { other }, settings: { SERVICE_CONNECTIONS: ['other'] } });
    app.get('/', publicFacing(async (ctx) => {
      await ctx.service('other').get('/');
    }));
    const inner = {
      'x-envoy-expected-rq-timeout-ms': '2500',
      'x-envoy-overloaded': 'true',
      baggage: 'a=b',
      'x-request-id': 'seven',
    };
    expect((await app.request('/', { headers: inner })).status).toBe(204);
    expect((await app.request('/', { headers: { ...inner, 'x-postern-scope': 'public' } })).status).toBe(204);
    const [within, outside] = received;
    expect(Number(within?.['x-envoy-expected-rq-timeout-ms'])).toBeLessThanOrEqual(2500);
    expect(within).toMatchObject({ baggage: 'a=b', 'x-request-id': 'seven' });
    expect(Number(outside?.['x-envoy-expected-rq-timeout-ms'] ?? Infinity)).toBeGreaterThan(2500);
    expect(outside).toMatchObject({ 'x-request-id': 'seven' });
    for (const name of ['baggage', 'x-postern-scope', 'x-envoy-overloaded']) expect(outside).not.toHaveProperty(name);
  });

  const failures = [
    { status: 503, body: { message: 'Service Unavailable', description: 'Service Unavailable' } },
    { status: 502, body: { message: 'Bad Gateway', description: 'Bad Gateway' } },
    { status: 429, body: { message: 'pool of db-7', description: 'db-7 is down' } },
  ];
  test.for(
    failures.flatMap((failure) => [
      { ...failure, middleware: false },
      { ...failure, middleware: true },
    ]),
  )('an uncaught $status of another service, middleware: $middleware', async ({ status, body, middleware }) => {
    const answer = {
      message: 'pool of db-7',
      description: 'db-7 is down',
      error_code: { name: 'pool_empty', value: 10_007 },
    };
    const other = (): Response =>
      Response.json(answer, { status, headers: { 'retry-after': '7', 'x-envoy-overloaded': 'true' } });
    const logger = createRecorder();
    const app = expectFailures(
      createApp({ services: { other }, settings: { SERVICE_CONNECTIONS: ['other'] }, logger }),
      status,
    );
    if (middleware) app.use((_ctx, next) => next());
    app.get('/', publicFacing((ctx) => ctx.service('other').get('/').then(({ body }) => body)));
    const within = await app.request('/');
    expect(await within.json()).toMatchObject(answer);
    const response = await app.request('/', { headers: { 'x-postern-scope': 'public' } });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ ...body, error_code: { name: 'pool_empty', value: 10_007 } });
    expect(response.headers.get('retry-after')).toBe('7');
    expect(response.headers.get('x-envoy-overloaded')).toBe(null);
    if (status >= 500) expect(JSON.stringify(logger.entries.at(-1)?.object)).toContain('db-7');
  });

  test.for<[string, string, (error: Error) => Error]>([
    ['that a typed call declares', 'Service Unavailable', (error) => error],
    ['with a text of its own', 'try later', (cause) => new ServiceUnavailable('try later', { cause })],
  ])('a 503 of another service as an error %s: %s', async ([, description, replace]) => {
    class PoolEmpty extends ServiceUnavailable {
      static override errorCode = defineErrorCodes({ pool_empty: 10_007 }).pool_empty;
    }
    const getMail = defineEndpoint('GET', '/', { errors: [PoolEmpty] });
    const other = expectFailures(createApp(), 503).implement(getMail, () => { throw new PoolEmpty('db-7 is down'); });
    const app = expectFailures(createApp({ services: { other } }), 503);
    app.get('/', publicFacing(async (ctx) => {
      await ctx.service('other').call(getMail).catch((error: Error) => { throw replace(error); });
    }));
    const response = await app.request('/', { headers: { 'x-postern-scope': 'public' } });
    expect([response.status, await response.json()]).toMatchObject([503, { description }]);
  });
});

const ADVICE = { 'X-Envoy-Overloaded': 'true', 'retry-after': '3' };
const advising: Record<string, Handler> = {
  'an error': () => new ServiceUnavailable('later', { headers: ADVICE }),
  'a reply': () => reply({ description: 'later' }, { status: 503, headers: ADVICE }),
  'a Response': () => Response.json({ description: 'later' }, { status: 503, headers: ADVICE }),
  'ctx.raw': ({ raw: { res } }) => void res.writeHead(503, ADVICE).end('{"description":"later"}'),
};
test.for(Object.keys(advising))('the public gets no advice about retries from %s', async (name) => {
  const app = expectFailures(createApp(), 503).get('/', publicFacing(advising[name]!));
  for (const [scope, advice] of [[{}, 'true'], [{ 'x-postern-scope': 'public' }, null]] as const) {
    const response = await app.request('/', { headers: scope });
    expect(await response.json()).toMatchObject({ description: 'later' });
    expect([response.headers.get('x-envoy-overloaded'), response.headers.get('retry-after')]).toEqual([advice, '3']);
  }
});

describe('a public server', () => {
  test('listen({ scope }) serves public routes only, warns about monitoring, and leaves app.request alone', async () => {
    const logger = createRecorder();
    const app = createApp({ logger }).get('/open', publicFacing((ctx) => ctx.scope)).get('/closed', () => 'private');
    const { url } = await app.listen({ port: 0, host: '127.0.0.1', scope: 'public' });
    expect(await (await fetch(`${url}/open`)).text()).toBe('public');
    for (const path of ['/closed', '/users/ping/', '/users/health/'])
      expect((await fetch(url + path)).status).toBe(404);
    const { port } = new URL(url);
    const expecting =
      'POST /closed HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n';
    expect((await rawRequest(Number(port), expecting)).status).toBe(404);
    expect(await (await app.request('/closed')).text()).toBe('private');
    expect(logger.entries.filter(({ level }) => level === 'warn')).toEqual([
      { level: 'warn', object: { scope: 'public' },
        message: 'nothing can reach the monitoring endpoints; set the option monitor, or MONITOR_PORT' },
    ]);
  });

  test('with the option monitor, monitoring is on the second listener, and nothing is warned of', async () => {
    const logger = createRecorder();
    const app = createApp({ logger, monitor: { port: 0, host: '127.0.0.1' } });
    const { url, monitor } = await app.listen({ port: 0, host: '127.0.0.1', scope: 'public' });
    expect((await fetch(`${url}/users/ping/`)).status).toBe(404);
    expect((await fetch(`${monitor?.url}/users/ping/`)).status).toBe(200);
    expect(logger.entries.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  test('attach(server, { scope }) does the same for a server of someone else', async () => {
    const app = createApp().get('/open', publicFacing(() => 'open')).get('/closed', () => 'private');
    const server = await listening(createServer());
    app.attach(server, { scope: 'public' });
    expect((await fetch(`${urlOf(server)}/open`)).status).toBe(200);
    expect((await fetch(`${urlOf(server)}/closed`)).status).toBe(404);
  });

  test('listen({ scope }) that fails leaves a later listen() without a scope', async () => {
    const app = createApp().get('/closed', () => 'private');
    const taken = portOf(await listening(createServer()));
    await expect(app.listen({ port: taken, host: '127.0.0.1', scope: 'public' })).rejects.toThrow('in use');
    expect((await fetch(`${(await serve(app)).url}/closed`)).status).toBe(200);
  });

  test('a scope other than "public" is refused', async () => {
    const app = createApp();
    expect(() => app.attach(createServer(), { scope: 'private' as 'public' }))
      .toThrow('scope of attach() is "private"; give one of public');
    await expect(app.listen({ scope: 'private' as 'public' })).rejects.toThrow(
      'scope of listen() is "private"; give one of public',
    );
  });
});

describe('upgrades', () => {
  const upgrade = (path: string, method = 'GET', headers = ''): string =>
    `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n${headers}\r\n`;
  const scoped = 'X-Postern-Scope: public\r\n';
  const table = [
    { path: '/open', headers: '', status: 101 },
    { path: '/closed', headers: '', status: 101 },
    { path: '/open', headers: scoped, status: 101 },
    { path: '/closed', headers: scoped, status: 404 },
    { path: '/posted', headers: scoped, status: 405, allow: 'OPTIONS, POST' },
    { path: '/posted', method: 'POST', headers: scoped, status: 405, allow: 'OPTIONS, POST' },
    { path: '/nothing', headers: scoped, status: 404 },
    { path: '/%ZZ', headers: scoped, status: 400 },
  ];

  const servers = {
    'app.server': async (app: Postern, listen: () => void) => (listen(), new URL((await serve(app)).url)),
    'app.server, listened to later': async (app: Postern, listen: () => void) => {
      const { url } = await serve(app);
      listen();
      return new URL(url);
    },
  };
  describe.each(Object.entries(servers))('of %s', (_name, start) => {
    test.for(table)('$method $path $headers answers $status', async ({ path, method, headers, status, allow }) => {
      const app = openApp();
      const { port } = await start(app, () => answerUpgrades(app.server));
      const response = await rawRequest(Number(port), upgrade(path, method, headers));
      expect(response.status).toBe(status);
      expect(response.headers['allow']).toBe(allow);
    });
  });

  test.for([
    { path: '/open', status: 101 },
    { path: '/closed', status: 404 },
  ])('of a public server: $path answers $status', async ({ path, status }) => {
    const app = openApp();
    answerUpgrades(app.server);
    const { port } = await app.listen({ port: 0, host: '127.0.0.1', scope: 'public' });
    expect((await rawRequest(port, upgrade(path))).status).toBe(status);
    const attached = answerUpgrades(await listening(createServer()));
    app.attach(attached, { scope: 'public' });
    expect((await rawRequest(portOf(attached), upgrade(path))).status).toBe(status);
  });

  // node:http drops fields beyond `maxHeadersCount`, the header of the scope among them.
  test.for<[string, string, number, string?]>([
    ['too many fields', `${'A: b\r\n'.repeat(2000)}${scoped}`, 431], ['two hosts', 'Host: y\r\n', 400],
    ['a malformed host', '', 400, 'a,b'], ['a fragment in its target', '', 400, '/closed#x'],
  ])('with %s is refused, whoever sends it', async ([, headers, status, odd]) => {
    const app = openApp();
    answerUpgrades(app.server);
    const { port } = await serve(app);
    const text = odd?.startsWith('/') ? upgrade(odd) : upgrade('/closed', 'GET', headers).replace('x', odd ?? 'x');
    expect((await rawRequest(port, text)).status).toBe(status);
  });

  test('the refusal of a HEAD has no body', async () => {
    const app = openApp();
    answerUpgrades(app.server);
    const { port } = await serve(app);
    const { status, body } = await rawRequest(port, upgrade('/closed', 'HEAD', scoped));
    expect([status, body]).toEqual([404, '']);
  });

  test('without listeners of upgrade, the request is an ordinary one', async () => {
    const { port } = await serve(openApp());
    expect((await rawRequest(port, upgrade('/open', 'GET', scoped))).status).toBe(200);
    expect((await rawRequest(port, upgrade('/closed', 'GET', scoped))).status).toBe(404);
  });

  function openApp(): Postern {
    return createApp().get('/open', publicFacing(() => 'open')).get('/closed', () => 'private')
      .post('/posted', publicFacing(() => 'posted'));
  }

  function answerUpgrades(server: Server): Server {
    return server.on('upgrade', (_req, socket) =>
      socket.end('HTTP/1.1 101 Switching Protocols\r\nContent-Length: 0\r\n\r\n'),
    );
  }
});

describe('a head that fills maxHeadersCount', () => {
  const fields = (count: number): string => Array.from({ length: count - 2 }, (_, i) => `A${i}: x\r\n`).join('');
  const head = (count: number): string =>
    `GET /closed HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${fields(count)}\r\n`;

  test.for([
    { most: 40, count: 39, status: 200 },
    { most: 40, count: 40, status: 431 },
    { most: 40, count: 60, status: 431 },
    { most: undefined, count: 998, status: 200 },
    { most: undefined, count: 1000, status: 431 },
    { most: 0, count: 998, status: 200 },
  ])('$most of a server of someone else: $count fields answer $status', async ({ most, count, status }) => {
    const app = createApp({ maxHeadersCount: 5000, maxHeaderSize: 100_000 }).get('/closed', () => 'private');
    const server = await listening(createServer({ maxHeaderSize: 100_000 }, app.handler));
    if (most !== undefined) server.maxHeadersCount = most;
    expect((await rawRequest(portOf(server), head(count))).status).toBe(status);
  });

  test.for([
    { most: 40, count: 39, status: 200 },
    { most: 40, count: 40, status: 431 },
    { most: 40, count: 60, status: 431 },
  ])('$most, set after attach(): $count fields answer $status', async ({ most, count, status }) => {
    const server = await listening(createServer());
    createApp().get('/closed', () => 'private').attach(server);
    server.maxHeadersCount = most;
    expect((await rawRequest(portOf(server), head(count))).status).toBe(status);
  });
});

function urlOf(server: Server): string {
  return `http://127.0.0.1:${portOf(server)}`;
}
