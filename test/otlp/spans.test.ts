/**
 * Traces without an SDK: one tree for each request, whatever happens to it, over three services.
 *
 * @module-tag package
 */

import { connect } from 'node:net';
import { hostname } from 'node:os';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { tracingChannel } from 'node:diagnostics_channel';
import {
  ApiError, defineEndpoint, defineErrorCodes, Postern, reply, type Context, type PosternOptions,
  type RequestTraceMessage,
} from 'postern';
import {
  CLIENT, drawTree, SERVER, setVariables, startCollector, type Collector, type Span,
} from '../support/collector.js';
import { startPeer } from '../support/peer.js';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

const Codes = defineErrorCodes({ sold_out: 7001 });
const getStock = defineEndpoint('GET', '/stock/:id');
const VALID = '00-12345678901234567890123456789012-1234567890123456-01';

async function start(
  options: PosternOptions = {},
): Promise<{ collector: Collector; shop: Postern; billing: Postern; stock: Postern; url: string }> {
  const collector = await startCollector();
  setVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  const stock = createApp({ version: '3' }, 'stock').get('/stock/:id', (ctx) => ({ id: ctx.params.id }));
  stock.get('/sold-out', () => { throw new ApiError('Sold out', { statusCode: 409, errorCode: Codes.sold_out }); });
  stock.get('/broken', () => { throw new RangeError('no shelf'); });
  stock.get('/lines', () =>
    Readable.from(
      (async function* () {
        for (let i = 0; i < 3; i += 1) {
          await new Promise((resolve) => setTimeout(resolve, 10));
          yield `${i}\n`;
        }
      })(),
    ),
  );
  const billing = createApp(
    { version: '2', settings: { SERVICE_CONNECTIONS: [`stock=${(await serve(stock)).url}`] } },
    'billing',
  );
  billing.get(
    '/bills/:id',
    async (ctx) => (await ctx.service('stock').call(getStock, { params: { id: ctx.params.id } })).body as object,
  );
  billing.get('/pass/*path', async (ctx) =>
    reply((await ctx.service('stock').get(`/${ctx.params.path}`)).body as object),
  );
  billing.get('/stream', async (ctx) => ctx.service('stock').fetch('/lines'));
  const shop = createApp(
    { version: '1', settings: { SERVICE_CONNECTIONS: [`billing=${(await serve(billing)).url}`] }, ...options },
    'shop',
  );
  shop.get('/orders/:id', async (ctx) => (await ctx.service('billing').get(`/bills/${ctx.params.id}`)).body as object);
  shop.get('/pass/*path', async (ctx) =>
    reply((await ctx.service('billing').get(`/pass/${ctx.params.path}`)).body as object),
  );
  shop.get('/stream', async (ctx) => ctx.service('billing').fetch('/stream'));
  return { collector, shop, billing, stock, url: (await serve(shop)).url };
}

const settled = async ({ spans }: Collector, count: number): Promise<Span[]> => {
  await expect.poll(() => spans.length).toBe(count);
  return spans;
};

test('over three services every request is one tree, with times inside each other and names of the semantic conventions', async () => {
  const { collector, url } = await start();
  const count = 20;
  await Promise.all(
    Array.from({ length: count }, async (_, id) =>
      expect((await fetch(`${url}/orders/${id}?secret=1`)).status).toBe(200),
    ),
  );
  const spans = await settled(collector, count * 5);
  const ids = new Set(spans.map(({ traceId }) => traceId));
  expect(ids.size).toBe(count);
  for (const trace of [...ids].map((id) => spans.filter(({ traceId }) => traceId === id))) {
    expect(drawTree(trace)).toBe(
      ['server shop: GET /orders/:id', '  client shop: GET', '    server billing: GET /bills/:id',
        '      client billing: GET /stock/:id', '        server stock: GET /stock/:id'].join('\n'),
    );
  }
  const port = Number(new URL(url).port);
  const root = spans.find(({ service, kind }) => service === 'shop' && kind === SERVER);
  expect(root?.attributes).toEqual({
    'http.request.method': 'GET', 'http.route': '/orders/:id', 'http.response.status_code': 200,
    'url.path': expect.stringMatching(/^\/orders\/\d+$/), 'url.scheme': 'http',
    'server.address': '127.0.0.1', 'server.port': port, 'client.address': '127.0.0.1', 'user_agent.original': 'node',
    'network.protocol.version': '1.1',
  });
  expect(root?.flags).toBe(0x103);
  const typed = spans.find(({ name, kind }) => name === 'GET /stock/:id' && kind === CLIENT);
  expect(typed?.attributes).toEqual({
    'http.request.method': 'GET', 'http.response.status_code': 200,
    'url.full': expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/stock\/\d+$/),
    'service.peer.name': 'stock', 'server.address': '127.0.0.1', 'server.port': expect.any(Number),
    'network.protocol.version': '1.1',
  });
  expect(spans.find(({ service, kind }) => service === 'stock' && kind === SERVER)?.flags).toBe(0x303);
  expect(JSON.stringify(spans)).not.toContain('secret');
  expect(collector.resources).toContainEqual({
    'service.name': 'shop',
    'service.version': '1',
    'service.instance.id': expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
    'host.name': hostname(),
    'process.pid': process.pid,
    'telemetry.sdk.name': 'postern',
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.version': expect.any(String),
  });
  expect(
    collector.requests.every(
      ({ url: target, headers }) =>
        target === '/v1/traces' &&
        headers['content-type'] === 'application/x-protobuf' &&
        headers['traceparent'] === undefined,
    ),
  ).toBe(true);
});

test('a request joins the trace of its caller, with its flags', async () => {
  const { collector, url } = await start();
  await fetch(`${url}/orders/1`, { headers: { traceparent: VALID } });
  await fetch(`${url}/orders/2`, { headers: { traceparent: VALID.replace(/01$/, '00') } });
  const spans = await settled(collector, 5);
  expect(spans.map(({ traceId }) => traceId)).toEqual(spans.map(() => '12345678901234567890123456789012'));
  expect(spans.find(({ service }) => service === 'shop' && SERVER)).toBeDefined();
  expect(spans.find(({ name }) => name === 'GET /orders/:id'))
    .toMatchObject({ parentSpanId: '1234567890123456', flags: 0x301 });
});

test.for([
  {
    path: 'sold-out',
    status: 409,
    tree: [
      'server shop: GET /pass/*path',
      '  client shop: GET !',
      '    server billing: GET /pass/*path',
      '      client billing: GET !',
      '        server stock: GET /sold-out',
    ],
    type: 'sold_out',
    events: 0,
  },
  {
    path: 'broken',
    status: 500,
    tree: [
      'server shop: GET /pass/*path !',
      '  client shop: GET !',
      '    server billing: GET /pass/*path !',
      '      client billing: GET !',
      '        server stock: GET /broken !',
    ],
    type: 'framework_unknown_error',
    events: 1,
  },
  {
    path: 'nowhere',
    status: 404,
    tree: [
      'server shop: GET /pass/*path',
      '  client shop: GET !',
      '    server billing: GET /pass/*path',
      '      client billing: GET !',
      '        server stock: GET',
    ],
    type: 'framework_error_unspecified',
    events: 0,
  },
])('an error: $status', async ({ path, status, tree, type, events }) => {
  const { collector, shop, billing, stock, url } = await start();
  for (const app of [shop, billing, stock]) expectFailures(app, status);
  expect((await fetch(`${url}/pass/${path}`)).status).toBe(status);
  const spans = await settled(collector, 5);
  expect(drawTree(spans)).toBe(tree.join('\n'));
  for (const { isError, attributes } of spans) {
    expect(attributes['error.type']).toBe(isError ? type : undefined);
    expect(attributes['http.response.status_code']).toBe(status);
  }
  const own = spans.find(({ service }) => service === 'stock');
  expect(own?.events).toHaveLength(events);
  if (events > 0)
    expect(own?.events[0]).toEqual({
      name: 'exception',
      attributes: {
        'exception.type': 'RangeError',
        'exception.message': 'no shelf',
        'exception.stacktrace': expect.stringContaining('spans.test.ts'),
      },
    });
});

test('each attempt of a call is a span, repeated ones with their count; one without an answer has no status', async () => {
  const collector = await startCollector();
  setVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  let requests = 0;
  const peer = await startPeer((req, res) => {
    requests += 1;
    if (requests === 1) res.writeHead(503, { 'retry-after': '0', connection: 'close' }).end();
    else if (requests === 2) req.socket.destroy();
    else res.end('done');
  });
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } })
    .get('/', async (ctx) => (await ctx.service('peer').get('/', { retry: 3 })).body as string);
  await fetch((await serve(app)).url);
  const spans = (await settled(collector, 4)).filter(({ kind }) => kind === CLIENT);
  expect(
    spans.map(({ isError, attributes }) => [
      attributes['http.request.resend_count'],
      attributes['http.response.status_code'],
      attributes['error.type'],
      isError,
    ]),
  ).toEqual([
    [undefined, 503, 'framework_error_unspecified', true],
    [1, undefined, 'framework_error_unspecified', true],
    [2, 200, undefined, false],
  ]);
});

test('a stream: every span ends with the last byte', async () => {
  const { collector, url } = await start();
  const startedMs = performance.now();
  expect(await (await fetch(`${url}/stream`)).text()).toBe('0\n1\n2\n');
  const tookMs = performance.now() - startedMs;
  const spans = await settled(collector, 5);
  expect(drawTree(spans).split('\n')).toHaveLength(5);
  for (const { startTimeUnixNano, endTimeUnixNano } of spans) {
    const lastedMs = Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6;
    expect(lastedMs).toBeGreaterThan(20);
    expect(lastedMs).toBeLessThanOrEqual(tookMs + 1);
  }
});

test('a client that disconnects ends the spans of its request and of its calls', async () => {
  const collector = await startCollector();
  setVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  const peer = await startPeer(() => undefined);
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } })
    .get('/wait', async (ctx) => (await ctx.service('peer').get('/')).body as string);
  const client = connect((await serve(app)).port, '127.0.0.1');
  client.write('GET /wait HTTP/1.1\r\nhost: x\r\n\r\n');
  await expect.poll(() => peer.requests.length).toBe(1);
  client.destroy();
  const spans = await settled(collector, 2);
  expect(drawTree(spans)).toBe('server users: GET /wait\n  client users: GET !');
  expect(spans.find(({ kind }) => kind === SERVER)?.attributes['http.response.status_code']).toBe(499);
  expect(spans.find(({ kind }) => kind === CLIENT)?.attributes['error.type']).toBe('AbortError');
});

test('what a drain lets finish is exported before close() resolves, and nothing after it', async () => {
  const { collector, shop, url } = await start();
  setVariables({ OTEL_BSP_SCHEDULE_DELAY: '600000' });
  let release: () => void = () => undefined;
  shop.get('/slow', () => new Promise((resolve) => (release = () => resolve('done'))));
  const reply = fetch(`${url}/slow`);
  await expect
    .poll(async () => (await (await fetch(`${url}/shop/metrics/?json`)).json()) as { active_task_count: number })
    .toMatchObject({ active_task_count: 2 });
  const closed = shop.close();
  release();
  expect((await reply).status).toBe(200);
  await closed;
  expect(collector.spans.map(({ name }) => name)).toEqual(['GET /slow']);
  await shop.request('/slow', { signal: AbortSignal.timeout(50) }).catch(() => undefined);
  expect(collector.spans).toHaveLength(1);
});

test('requests in memory have spans, monitoring endpoints and embedded applications have none', async () => {
  const { collector, shop, url } = await start();
  for (const path of ['health', 'metrics', 'ping', 'openapi']) await fetch(`${url}/shop/${path}/`);
  await fetch(`${url}/shop/ping/?depth=2`);
  await shop.request('/orders/1');
  const embedded = createApp({}, 'embedded').get('/', () => 'ok');
  await embedded.request('/');
  expect((await settled(collector, 5)).map(({ name }) => name).sort())
    .toEqual(['GET', 'GET /bills/:id', 'GET /orders/:id', 'GET /stock/:id', 'GET /stock/:id']);
  expect(collector.spans.map(({ service }) => service)).not.toContain('embedded');
});

test('applications that do not export pass traces on unchanged, and begin none, beside one that does', async () => {
  await start();
  const peer = await startPeer((req, res) => res.end(req.headers['traceparent'] ?? 'none'));
  const settings = { SERVICE_CONNECTIONS: [`peer=${peer.url}`] };
  const untraced = createApp({ settings, tracing: false }, 'untraced');
  await serve(untraced);
  const ask = async (app: Postern, headers: Record<string, string>): Promise<string> =>
    (await app.request('/ask', { headers })).text();
  for (const app of [untraced, createApp({ settings }, 'embedded')]) {
    app.get('/ask', async (ctx) => (await ctx.service('peer').get('/')).body as string);
    expect(await ask(app, { traceparent: VALID })).toBe(VALID);
    expect(await ask(app, {})).toBe('none');
  }
});

test('a call that outlives its request belongs to its trace, a call outside a request has no span', async () => {
  const { collector, shop, url } = await start();
  let later: Promise<unknown> = Promise.resolve();
  shop.get('/later', (ctx) => {
    later = new Promise((resolve) => setTimeout(resolve, 30)).then(() =>
      ctx.service('billing').get('/bills/9', { signal: null }),
    );
    return 'accepted';
  });
  await fetch(`${url}/later`);
  await later;
  await shop.service('billing').get('/bills/10');
  const spans = await settled(collector, 5 + 3);
  const ofLater = spans.filter(({ traceId }) => traceId === spans.find(({ name }) => name === 'GET /later')?.traceId);
  expect(ofLater.map(({ service, kind }) => `${kind} ${service}`))
    .toEqual(expect.arrayContaining(['2 shop', '3 shop', '2 billing', '3 billing', '2 stock']));
  expect(spans.filter(({ service, kind }) => service === 'shop' && kind === CLIENT)).toHaveLength(1);
});

test('log lines of a request have the ids of its trace, and exemplars its trace', async () => {
  const logger = createRecorder();
  const services = { old: () => new Response('', { headers: { deprecation: '@0' } }) };
  const { collector, shop, url } = await start({ logger, accessLog: true, services });
  expectFailures(shop, 500);
  shop.get('/log', async (ctx: Context) => {
    ctx.log.info({}, 'mine');
    await ctx.service('old').get('/');
    throw new Error('x');
  });
  await fetch(`${url}/log`);
  const span = (await settled(collector, 2)).find(({ name }) => name === 'GET /log');
  const ids = { trace_id: span?.traceId, span_id: span?.spanId };
  const messages = ['mine', 'a deprecated route of another service is called', 'request failed', 'request'];
  const lines = logger.entries.filter(({ message }) => messages.includes(message ?? ''));
  expect(lines).toHaveLength(4);
  for (const { object } of lines) expect(object).toMatchObject(ids);
  const metrics = await (await fetch(`${url}/shop/metrics/`, { headers: { accept: 'application/openmetrics-text' } }))
    .text();
  expect(metrics).toContain(`trace_id="${span?.traceId}"`);
});

test('a job is a span of a consumer, whose parent is remote, in the trace of its message; its calls are below it', async () => {
  const { collector, shop } = await start();
  expectFailures(shop, 'job failed');
  await shop.job('orders.placed', { headers: { traceparent: VALID } }, async (job) => {
    await job.service('billing').get('/bills/1');
  });
  await shop.job('orders.failed', {}, () => { throw new RangeError('no order'); }).catch(() => undefined);
  await shop.job('orders.skipped', { headers: { traceparent: VALID.replace(/01$/, '00') } }, () => undefined);
  const spans = await settled(collector, 5 + 1);
  const [placed, failed] = ['orders.placed', 'orders.failed'].map((job) => spans.find(({ name }) => name === job));
  expect(placed).toMatchObject({
    kind: 5, service: 'shop', parentSpanId: '1234567890123456', traceId: VALID.slice(3, 35), attributes: {},
    isError: false, flags: 0x301,
  });
  expect(spans.filter(({ parentSpanId }) => parentSpanId === placed?.spanId).map(({ name, kind }) => [name, kind]))
    .toEqual([['GET', CLIENT]]);
  expect(failed).toMatchObject({ kind: 5, isError: true, attributes: { 'error.type': 'RangeError' } });
  expect(failed?.events).toMatchObject([{ attributes: { 'exception.message': 'no order' } }]);
});

const THROWN: readonly { what: string; thrown: unknown; type: string; events: number }[] = [
  { what: 'undefined', thrown: undefined, type: '_OTHER', events: 1 },
  { what: 'a text', thrown: 'x', type: '_OTHER', events: 1 },
  { what: 'an error with a code', thrown: new ApiError('x', { statusCode: 409, errorCode: Codes.sold_out }),
    type: 'sold_out', events: 1 },
  { what: 'an error whose name is no text', thrown: Object.assign(new Error('x'), { name: Object.create(null) }),
    type: '_OTHER', events: 0 },
  { what: 'a Proxy that throws', thrown: new Proxy(new Error('x'), { get: () => { throw new Error('trap'); } }),
    type: '_OTHER', events: 0 },
];

test.for(THROWN)('a job that throws $what rejects with it, and has a span', async ({ thrown, type, events }) => {
  const { collector, shop } = await start();
  expectFailures(shop, 'job failed');
  const reason = await shop.job('mail', () => { throw thrown; }).then(() => 'no failure', (error: unknown) => [error]);
  expect((reason as unknown[])[0] === thrown).toBe(true);
  const [span] = await settled(collector, 1);
  expect(span).toMatchObject({ name: 'mail', isError: true, attributes: { 'error.type': type } });
  expect(span?.events).toHaveLength(events);
});

test('a call that is aborted with an error whose name is no text rejects with it, and has a span', async () => {
  const thrown = Object.assign(new Error('x'), { name: Object.create(null) });
  const { collector, shop } = await start({ services: { never: () => new Promise(() => undefined) } });
  const reason = await shop.job('mail', async (job) => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(thrown), 1);
    return job.service('never').get('/', { signal: abort.signal }).then(() => [], (error: unknown) => [error]);
  });
  expect(reason[0] === thrown).toBe(true);
  const span = (await settled(collector, 2)).find(({ kind }) => kind === CLIENT);
  expect(span).toMatchObject({ isError: true, attributes: { 'error.type': '_OTHER' } });
});

test('a request that throws undefined has the event of an exception', async () => {
  const { collector, shop, url } = await start();
  expectFailures(shop, 500).get('/throw', () => { throw undefined; });
  expect((await fetch(`${url}/throw`)).status).toBe(500);
  expect((await settled(collector, 1))[0]?.events).toHaveLength(1);
});

test('a subscriber that clears the sampled flag at start is a sampler', async () => {
  const { collector, url } = await start();
  const { start: channel } = tracingChannel<RequestTraceMessage, RequestTraceMessage>('postern.request');
  const onStart = (message: unknown): void => {
    const { ctx, trace } = message as RequestTraceMessage;
    if (ctx.path === '/orders/1') trace.flags = '02';
  };
  channel.subscribe(onStart);
  onTestFinished(() => void channel.unsubscribe(onStart));
  await fetch(`${url}/orders/1`);
  await fetch(`${url}/orders/2`);
  const spans = await settled(collector, 5);
  expect(spans.find(({ service, kind }) => service === 'shop' && kind === SERVER)?.attributes['url.path'])
    .toBe('/orders/2');
});

test('an error whose stack cannot be read has a span without an event', async () => {
  const { collector, shop, url } = await start();
  expectFailures(shop, 500);
  shop.get('/throw', () => {
    throw Object.defineProperty(new Error('x'), 'stack', { get: () => { throw new Error('no stack'); } });
  });
  expect((await fetch(`${url}/throw`)).status).toBe(500);
  expect(await settled(collector, 1)).toMatchObject([{ isError: true, events: [] }]);
});

test.for<{ what: string; fields: object; attributes: object }>([
  { what: 'a message that is an object', fields: { message: { code: 7 } },
    attributes: { 'exception.message': '[object Object]' } },
  { what: 'a message that is a fraction', fields: { message: 1.5 }, attributes: { 'exception.message': '1.5' } },
  { what: 'a name that is null', fields: { name: null }, attributes: { 'exception.type': 'null' } },
  { what: 'half an emoji in its message', fields: { message: 'half \ud83d' },
    attributes: { 'exception.message': 'half \ufffd' } },
  { what: 'an emoji where its message is cut', fields: { message: `${'x'.repeat(1023)}\u{1f680}` },
    attributes: { 'exception.message': `${'x'.repeat(1023)}\ufffd` } },
  { what: 'a stack that is a list', fields: { stack: ['a', 'b'] }, attributes: { 'exception.stacktrace': 'a,b' } },
])('an error with $what has a span with texts', async ({ fields, attributes }) => {
  const { collector, shop, url } = await start();
  expectFailures(shop, 500);
  shop.get('/throw', () => { throw Object.assign(new Error('x'), fields); });
  expect((await fetch(`${url}/throw`)).status).toBe(500);
  expect(await settled(collector, 1)).toMatchObject([{ isError: true, events: [{ attributes }] }]);
});

test('a call that its signal ends with a text has the error type of semantic conventions for anything else', async () => {
  const { collector, shop, url } = await start();
  shop.get('/stop', async (ctx) => {
    const controller = new AbortController();
    const call = ctx.service('billing').get('/bills/1', { signal: controller.signal });
    setImmediate(() => controller.abort('enough'));
    return call.then(() => 'answered', String);
  });
  expect(await (await fetch(`${url}/stop`)).text()).toBe('enough');
  await expect.poll(() => collector.spans.some(({ name }) => name === 'GET /stop')).toBe(true);
  const spans = collector.spans.filter(({ service, kind }) => service === 'shop' && kind === CLIENT);
  expect(spans.map(({ attributes }) => attributes['error.type'])).toEqual(['_OTHER']);
});

test('hostile input: long values are cut, unknown methods share a name, odd text is still JSON', async () => {
  const { collector, shop, url } = await start();
  expectFailures(shop, 500);
  shop.get('/throw', () => { throw new Error(`half \ud800 ${'x'.repeat(5000)}`); });
  const long = 'y'.repeat(5000);
  await fetch(`${url}/throw`, { headers: { 'user-agent': `${long}\u00e9` } });
  await fetch(`${url}/${long}`);
  await fetch(`${url}/x`, { method: 'PROPFIND' });
  const spans = await settled(collector, 3);
  expect(spans.map(({ name }) => name).sort()).toEqual(['GET', 'GET /throw', 'HTTP']);
  expect(JSON.stringify(spans).length).toBeLessThan(16_000);
  expect(spans.find(({ name }) => name === 'HTTP')?.attributes)
    .toMatchObject({ 'http.request.method': '_OTHER', 'http.request.method_original': 'PROPFIND' });
});
