/** The rules of SPEC.md sections 1, 2 and 4, over real sockets. */

import { expect, test } from 'vitest';
import { Postern, publicFacing, type Context } from 'postern';
import packageJson from '../../package.json' with { type: 'json' };
import { createApp, serve } from '../support/serve.js';

const MONITORS = ['/users/health/', '/users/metrics/', '/users/ping/'];

test('1.1: the three monitoring endpoints are served by default', async () => {
  const { url } = await serve(createApp());
  for (const path of MONITORS) expect((await fetch(url + path)).status, path).toBe(200);
});

test('1.4: attachMonitorEndpoints: false attaches none of them, and leaves their paths free', async () => {
  const app = createApp({ attachMonitorEndpoints: false });
  const { url } = await serve(app);
  for (const path of MONITORS) expect((await fetch(url + path)).status, path).toBe(404);
  app.get('/users/health/', () => 'mine');
  expect(await (await fetch(`${url}/users/health/`)).text()).toBe('mine');
});

test('1: the version comes from the option, else APPLICATION_VERSION, else UNKNOWN', async () => {
  const before = process.env['APPLICATION_VERSION'];
  try {
    delete process.env['APPLICATION_VERSION'];
    expect(new Postern('a').version).toBe('UNKNOWN');
    process.env['APPLICATION_VERSION'] = '';
    expect(new Postern('a').version).toBe('UNKNOWN');
    process.env['APPLICATION_VERSION'] = '7.7';
    expect(new Postern('a').version).toBe('7.7');
    expect(new Postern('a', { version: '1.2' }).version).toBe('1.2');
  } finally {
    if (before === undefined) delete process.env['APPLICATION_VERSION'];
    else process.env['APPLICATION_VERSION'] = before;
  }
});

test('2.1: the health document has exactly its five fields', async () => {
  const { url } = await serve(createApp());
  const response = await fetch(`${url}/users/health/`);
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(await response.json()).toEqual({
    service: 'users',
    application_version: '1.4.2',
    status: 'OK',
    framework_version: packageJson.version,
    ip: expect.stringMatching(/^\d{1,3}(\.\d{1,3}){3}$/),
  });
});

test('2.2: the JSON form of the metrics has exactly its seven fields, all numbers', async () => {
  const { url } = await serve(createApp());
  const before = Date.now() / 1000;
  const document = (await (await fetch(`${url}/users/metrics/?json`)).json()) as Record<string, number>;
  expect(Object.keys(document).sort()).toEqual(
    ['active_task_count', 'proc_cpu_perc', 'proc_rss_mem_bytes', 'proc_rss_mem_perc', 'request_count', 'timestamp', 'total_task_count'].sort(),
  );
  for (const [name, value] of Object.entries(document)) expect(Number.isFinite(value), name).toBe(true);
  expect(document['active_task_count']).toBe(1);
  expect(document['total_task_count']).toBeGreaterThanOrEqual(2);
  expect(document['proc_rss_mem_bytes']).toBeGreaterThan(10_000_000);
  expect(document['proc_rss_mem_perc']).toBeGreaterThan(0);
  expect(document['proc_rss_mem_perc']).toBeLessThan(100);
  expect(document['timestamp']).toBeGreaterThanOrEqual(before);
  expect(document['timestamp']).toBeLessThanOrEqual(Date.now() / 1000);
});

test('2.3: the metrics of the framework are in the registry before anything listened, was asked or was scraped, and keep their names', () => {
  const { metrics } = createApp();
  for (const name of ['request_count_total', 'http_request_duration_seconds', 'process_cpu_seconds_total', 'nodejs_gc_duration_seconds', 'service_info']) {
    expect(metrics.get(name), name).toBeDefined();
    expect(() => metrics.counter({ name: name.replace(/_total$/, ''), help: 'Mine.' }), name).toThrow(/registered already|clashes/);
  }
});

test('2.2: request_count counts every processed request, refused ones included', async () => {
  const { url } = await serve(createApp());
  const count = async (): Promise<number> => ((await (await fetch(`${url}/users/metrics/?json`)).json()) as { request_count: number }).request_count;
  const before = await count();
  await fetch(`${url}/nowhere`);
  await fetch(`${url}/users/ping/`);
  expect(await count()).toBe(before + 3);
});

test('2.3: the text form is Prometheus text 0.0.4 with every metric that the spec names', async () => {
  const { url } = await serve(createApp());
  const response = await fetch(`${url}/users/metrics/`);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const text = await response.text();
  const kinds = {
    request_count_total: 'counter',
    total_task_count: 'gauge',
    active_task_count: 'gauge',
    proc_rss_mem_bytes: 'gauge',
    proc_rss_mem_perc: 'gauge',
    proc_cpu_perc: 'gauge',
    service_info: 'gauge',
    python_gc_collected_objects: 'histogram',
  };
  for (const [name, kind] of Object.entries(kinds)) {
    expect(text).toContain(`# TYPE ${name} ${kind}\n`);
    expect(text).toMatch(new RegExp(`^# HELP ${name} \\S`, 'm'));
  }
  for (const generation of ['0', '1', '2']) {
    for (const le of ['500.0', '1000.0', '5000.0', '10000.0', '50000.0', '+Inf']) {
      expect(text).toContain(`python_gc_collected_objects_bucket{generation="${generation}",le="${le}"} `);
    }
  }
  const info = /^service_info\{(.*)\} (.*)$/m.exec(text);
  expect(info?.[2]).toBe('1.0');
  expect(info?.[1]).toMatch(
    new RegExp(`^application_version="1\\.4\\.2",framework_version="${packageJson.version.replaceAll('.', '\\.')}",ip="[\\d.]+",service="users",status="OK"$`),
  );
});

test('2.4: the ping document is pong and a processing time', async () => {
  const { url } = await serve(createApp());
  const response = await fetch(`${url}/users/ping/`);
  const document = (await response.json()) as Record<string, string>;
  expect(Object.keys(document)).toEqual(['response', 'process_time']);
  expect(document['response']).toBe('pong');
  expect(document['process_time']).toMatch(/^\d+ ms$/);
});

test('4: the monitoring endpoints answer GET and HEAD, on strict paths, and are never public', async () => {
  const app = createApp();
  const { url } = await serve(app);
  for (const path of MONITORS) {
    const refused = await fetch(url + path, { method: 'POST' });
    expect(refused.status).toBe(405);
    expect(refused.headers.get('allow')).toBe('GET, HEAD, OPTIONS');
    expect((await fetch(url + path, { method: 'HEAD' })).status).toBe(200);
    expect((await fetch(url + path.slice(0, -1))).status).toBe(404);
  }
  expect(app.router.routesPublic).toEqual({});
});

test('4: a route of the application with the pattern of a monitoring endpoint throws, whatever its method', () => {
  const app = createApp();
  for (const path of MONITORS) {
    expect(() => app.get(path, () => 1)).toThrow(TypeError);
    expect(() => app.post(path, () => 1)).toThrow(/monitoring endpoint/);
  }
});

test('4.1.2: ?json gives the JSON form with or without a value, and Accept never does', async () => {
  const { url } = await serve(createApp());
  expect((await fetch(`${url}/users/metrics/?json`)).headers.get('content-type')).toBe('application/json');
  expect((await fetch(`${url}/users/metrics/?json=1`)).headers.get('content-type')).toBe('application/json');
  for (const accept of ['application/json', '*/*', 'application/json, text/plain;q=0.1', 'nonsense']) {
    const response = await fetch(`${url}/users/metrics/`, { headers: { accept } });
    expect(response.headers.get('content-type'), accept).toBe('text/plain; version=0.0.4; charset=utf-8');
  }
});

test('4.1: OpenMetrics is sent to whom prefers it, compressed for whom accepts it', async () => {
  const { url } = await serve(createApp());
  const response = await fetch(`${url}/users/metrics/`, { headers: { accept: 'application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3', 'accept-encoding': 'gzip' } });
  expect(response.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
  expect(response.headers.get('content-encoding')).toBe('gzip');
  expect((await response.text()).endsWith('# EOF\n')).toBe(true);
});

test('4.2.1: ping without depth answers for itself only, whatever connections there are', async () => {
  const app = createApp({ settings: { SERVICE_CONNECTIONS: ['billing=http://127.0.0.1:1'] } });
  const { url } = await serve(app);
  expect(await (await fetch(`${url}/users/ping/`)).json()).toMatchObject({ response: 'pong' });
});

const flagged = { flagged: publicFacing((ctx: Context) => ({ q: ctx.query.get('q') })) };
const usages = [
  { usage: 'publicFacing(handler)', handler: flagged.flagged, allowed: null },
  { usage: 'publicFacing()(handler)', handler: publicFacing()((ctx: Context) => ({ q: ctx.query.get('q') })), allowed: null },
  { usage: 'publicFacing({ params: [] })(handler)', handler: publicFacing({ params: [] })((ctx: Context) => ({ q: ctx.query.get('q') })), allowed: 'none' },
  { usage: "publicFacing({ params: ['q'] })(handler)", handler: publicFacing({ params: ['q'] })((ctx: Context) => ({ q: ctx.query.get('q') })), allowed: 'q' },
  { usage: "publicFacing(handler, { params: ['q', 'page'] })", handler: publicFacing((ctx: Context) => ({ q: ctx.query.get('q') }), { params: ['q', 'page'] }), allowed: 'q, page' },
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
  for (const query of ['%71=1', 'a+b=1', 'a%20b', 'q=1&q=2', '', '&&', '?x=1']) expect((await fetch(`${url}/find?${query}`)).status, query).toBe(200);
  for (const query of ['Q=1', 'q%20=1', 'q[]=1', '=1', 'x=1', '__proto__=1']) expect((await fetch(`${url}/find?${query}`)).status, query).toBe(400);
});

test('4.3.1: methods are flagged one by one, and reported sorted in order of the first registration of each path', () => {
  const app = createApp();
  const handler = (): string => 'ok';
  app.put('/private', handler);
  app.route('/things', { GET: publicFacing(handler), POST: publicFacing(handler), DELETE: publicFacing(handler), PUT: handler });
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
  const { url } = await serve(createApp().post('/things', publicFacing({ params: ['q'] })(async (ctx: Context) => ({ body: await ctx.json(), q: ctx.query.get('q') }))));
  const response = await fetch(`${url}/things?q=lamp`, { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } });
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
