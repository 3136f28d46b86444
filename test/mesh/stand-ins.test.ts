/** Services played in memory. */

import { expect, test } from 'vitest';
import {
  NotFound, Postern, ServiceError, type Handler, type PosternOptions, type ServiceFetchOptions, type ServiceStandIn,
} from 'postern';
import { createApp, expectFailures, serve } from '../support/serve.js';

const callOf = (standIn: ServiceStandIn, options: object = {}) =>
  createApp({ services: { billing: standIn }, ...options }).service('billing');
const billing = (): Postern =>
  createApp({}, 'billing')
    .get('/invoices/:id', (ctx) => ({ id: ctx.params.id, q: ctx.query.get('q'), accept: ctx.headers.accept }))
    .post('/invoices', async (ctx) => ({ sent: await ctx.text(), type: ctx.headers['content-type'] }))
    .get('/missing', () => { throw new NotFound('No such invoice.'); });

test('an application answers calls, streams and errors as it would over the network', async () => {
  const client = callOf(billing());
  expect((await client.get('/invoices/7', { query: { q: 'x' } })).body)
    .toEqual({ id: '7', q: 'x', accept: 'application/json, */*;q=0.5' });
  expect((await client.post('/invoices', { json: { sum: 1 } })).body)
    .toEqual({ sent: '{"sum":1}', type: 'application/json' });
  expect((await client.post('/invoices', { body: (async function* () { yield 'a'; yield 'b'; })() })).body)
    .toMatchObject({ sent: 'ab' });
  expect(await (await client.fetch('/invoices/8')).json()).toMatchObject({ id: '8' });
  await expect(client.get('/missing')).rejects.toMatchObject({
    statusCode: 404,
    description: 'No such invoice.',
    service: 'billing',
    method: 'GET',
    path: '/missing',
  });
});

const BODIES: Readonly<Record<string, () => ServiceFetchOptions['body']>> = {
  'a text': () => 'x',
  'no byte': () => '',
  'a stream': () => (async function* () { yield Buffer.from('x'); })(),
};

test.for(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'POST'].flatMap((method) =>
  Object.keys(BODIES).map((body) => [method, body] as const),
))('a %s with %s arrives as over the network', async ([method, body]) => {
  const app = createApp({}, 'billing');
  const read: Handler = async (ctx) => {
    const headers = { 'x-read': await ctx.text(), 'x-framed': String(ctx.headers['content-length']) };
    return new Response(null, { headers });
  };
  app.route('/', { [method]: read });
  const byFunction = async (request: Request): Promise<Response> =>
    new Response(null, { headers: { 'x-read': await request.text(), 'x-method': request.method } });
  const { url } = await serve(app);
  const answer = async (options: PosternOptions): Promise<Response> =>
    createApp(options).service('billing').fetch('/', { method, body: BODIES[body]?.() });
  const shown = ({ status, headers }: Response): unknown => [status, headers.get('x-read'), headers.get('x-framed')];
  const overNetwork = shown(await answer({ settings: { SERVICE_CONNECTIONS: [`billing=${url}`] } }));
  expect(shown(await answer({ services: { billing: app } }))).toEqual(overNetwork);
  const { headers } = await answer({ services: { billing: byFunction } });
  expect([headers.get('x-method'), headers.get('x-read')]).toEqual([method, body === 'no byte' ? '' : 'x']);
});

test('a function gets a Request and gives a Response', async () => {
  const client = callOf(async (request) =>
    Response.json({
      url: request.url,
      method: request.method,
      mine: request.headers.get('x-mine'),
      body: await request.text(),
    }),
  );
  expect((await client.put('/a?b=1', { body: 'x', headers: { 'x-mine': '1' } })).body)
    .toEqual({ url: 'http://billing/a?b=1', method: 'PUT', mine: '1', body: 'x' });
  expect((await callOf(() => new Response(null, { status: 204 })).delete('/')).status).toBe(204);
  expect((await callOf(() => Response.redirect('http://elsewhere.test/', 302)).get('/')).headers.get('location'))
    .toBe('http://elsewhere.test/');
});

test.for<{ what: string; standIn: ServiceStandIn }>([
  { what: 'throws', standIn: () => { throw new Error('secret'); } },
  { what: 'rejects', standIn: () => Promise.reject(new Error('secret')) },
  { what: 'gives no Response', standIn: () => ({ status: 200 }) as never },
  { what: 'gives a network error', standIn: () => Response.error() },
])('one that $what is a 502', async ({ standIn }) => {
  const error = await callOf(standIn).get('/').catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ServiceError);
  expect(error).toMatchObject({ statusCode: 502, message: 'Bad Gateway' });
  expect((error as ServiceError).description).not.toContain('secret');
});

test('time, signals, sizes and retries hold in memory as they do over the network', async () => {
  const never = callOf(() => new Promise<Response>(() => undefined));
  await expect(never.get('/', { timeout: 20 })).rejects.toMatchObject({ statusCode: 504 });
  await expect(never.get('/', { signal: AbortSignal.timeout(20) })).rejects.toMatchObject({ name: 'TimeoutError' });
  let aborted = false;
  const listening = callOf(
    (request) =>
      new Promise<Response>((_, reject) => request.signal.addEventListener('abort', () => reject((aborted = true)))),
  );
  await expect(listening.get('/', { timeout: 20 })).rejects.toMatchObject({ statusCode: 504 });
  expect(aborted).toBe(true);
  await expect(callOf(() => new Response('x'.repeat(11 * 1024 * 1024))).get('/')).rejects.toMatchObject({
    statusCode: 502,
  });
  let tries = 0;
  const flaky = callOf(
    () => new Response('ok', { status: (tries += 1) < 3 ? 503 : 200, headers: { 'retry-after': '0' } }),
  );
  expect((await flaky.get('/', { retry: 2 })).body).toBe('ok');
});

test('it stands for a connection of that name, ping included, and for one that is not configured', async () => {
  const app = createApp({
    services: { billing: billing() },
    settings: { SERVICE_CONNECTIONS: ['billing=http://nowhere.invalid', 'mail=http://nowhere.invalid'] },
  });
  app.get('/', async (ctx) => (await ctx.service('billing').get('/invoices/7')).body);
  expect(await (await app.request('/')).json()).toMatchObject({ id: '7' });
  const ping = await (await app.request('/users/ping/?depth=1')).json();
  expect(ping).toMatchObject({
    response: { billing: { status_code: 200, response: { response: 'pong' } }, mail: { status_code: 503 } },
  });
});

test.for<{ what: string; services: object }>([
  { what: 'no object', services: [] },
  { what: 'a value that answers nothing', services: { billing: {} } },
  { what: 'a URL', services: { billing: 'http://billing' } },
  { what: 'a name that is none', services: { 'a/b': () => new Response() } },
])('$what is refused', ({ services }) => {
  expect(() => new Postern('users', { services: services as never })).toThrow(TypeError);
});

test('an error of a service in memory goes through', async () => {
  const app = expectFailures(createApp({ services: { billing: billing() } }))
    .get('/', (ctx) => ctx.service('billing').get('/missing').then(({ body }) => body));
  expect((await app.request('/')).status).toBe(404);
});
