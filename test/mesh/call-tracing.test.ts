/** The tracing channel `postern.call` and the histogram of calls: one message and one observation for each try. */

import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { ApiError, defineEndpoint, defineErrorCodes, type CallTraceMessage, type RequestTraceMessage } from 'postern';
import { startPeer } from '../support/peer.js';
import { createApp } from '../support/serve.js';
import { freePort } from '../support/ports.js';

type Event = [string, CallTraceMessage];
const calls = tracingChannel<CallTraceMessage, CallTraceMessage>('postern.call');

function record(set: Record<string, string> = {}): Event[] {
  const events: Event[] = [];
  const at = (name: string) => (message: unknown): void =>
    void events.push([name, { ...(message as CallTraceMessage) }]);
  const start = (message: unknown): void => {
    Object.assign((message as CallTraceMessage).headers, set);
    at('start')(message);
  };
  const subscribers = {
    start,
    end: at('end'),
    asyncStart: at('asyncStart'),
    asyncEnd: at('asyncEnd'),
    error: at('error'),
  };
  calls.subscribe(subscribers as never);
  onTestFinished(() => void calls.unsubscribe(subscribers as never));
  return events;
}

test('each attempt is a message of its own, with the status that it was answered with', async () => {
  let requests = 0;
  const peer = await startPeer((_req, res) =>
    res.writeHead((requests += 1) === 1 ? 503 : 200, { 'retry-after': '0' }).end(),
  );
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`billing=${peer.url}/base`] } });
  const events = record();
  await app.service('billing').get('/a b', { query: { q: 1 }, retry: 1, headers: { 'X-Mine': '1' } });
  const names = ['start', 'end', 'asyncStart', 'asyncEnd'];
  expect(events.map(([name, { attempt }]) => `${name} ${attempt}`))
    .toEqual([...names.map((name) => `${name} 1`), ...names.map((name) => `${name} 2`)]);
  const [, last] = events.at(-1) as Event;
  expect(last).toEqual({
    service: 'billing',
    method: 'GET',
    path: '/a%20b',
    attempt: 2,
    url: `${peer.url}/base/a%20b`,
    route: undefined,
    headers: expect.objectContaining({ 'x-mine': '1' }),
    trace: undefined,
    statusCode: 200,
  });
  expect(Object.getPrototypeOf(last.headers)).toBe(Object.prototype);
  expect(events[3]?.[1]).toMatchObject({ statusCode: 503, errorCode: { name: 'framework_error_unspecified' } });
  expect(app.metrics.expose()).toMatch(
    /service_request_duration_seconds_count\{service="billing",method="GET",status_code="503"\} 1\.0/,
  );
  expect(app.metrics.expose()).toMatch(
    /service_request_duration_seconds_count\{service="billing",method="GET",status_code="200"\} 1\.0/,
  );
});

test('a message has the pattern of a typed call, and the code of an error', async () => {
  const Codes = defineErrorCodes({ gone: 77 });
  const billing = createApp({}, 'billing')
    .get('/users/:id', () => { throw new ApiError('Gone', { statusCode: 410, errorCode: Codes.gone }); });
  const app = createApp({ services: { billing } });
  const events = record();
  await app.service('billing').call(defineEndpoint('GET', '/users/:id'), { params: { id: 7 } }).catch(() => undefined);
  expect(events.at(-1)?.[1]).toMatchObject({
    path: '/users/7',
    route: '/users/:id',
    url: 'http://billing/users/7',
    statusCode: 410,
    errorCode: Codes.gone,
  });
  expect(events.at(-1)?.[1]).not.toHaveProperty('error');
});

test('without an answer the message has the error, and the histogram the status 0', async () => {
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`billing=http://127.0.0.1:${await freePort()}`] } });
  const events = record();
  const error = await app.service('billing').fetch('/').catch((reason: unknown) => reason);
  expect(events.map(([name]) => name)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
  expect(events.at(-1)?.[1]).toMatchObject({ error });
  expect(events.at(-1)?.[1]).not.toHaveProperty('statusCode');
  expect(app.metrics.expose()).toMatch(
    /service_request_duration_seconds_count\{service="billing",method="GET",status_code="0"\} 1\.0/,
  );
});

test('an answer that breaks off in the packet of its head is a failure', async () => {
  const broken = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n';
  const peer = createServer((socket) => void socket.once('data', () => socket.end(broken)));
  await once(peer.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void peer.close());
  const url = `http://127.0.0.1:${(peer.address() as AddressInfo).port}`;
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`billing=${url}`] } });
  const events = record();
  const answer = await app.service('billing').fetch('/');
  await expect(answer.text()).rejects.toThrow();
  await expect.poll(() => events.at(-1)?.[0]).toBe('asyncEnd');
  expect(events.at(-1)?.[1]).toMatchObject({ statusCode: 200, error: expect.any(Error) });
});

test('a header that a subscriber sets goes out, and its store holds for the request', async () => {
  const peer = await startPeer((req, res) => res.setHeader('content-type', 'text/plain').end(req.headers['x-tenant']));
  const storage = new AsyncLocalStorage<string>();
  calls.start.bindStore(storage as never, (({ path }: CallTraceMessage) => path) as never);
  onTestFinished(() => void calls.start.unbindStore(storage as never));
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`billing=${peer.url}`] } });
  const stores: (string | undefined)[] = [];
  const { end } = calls;
  const onEnd = (): void => void stores.push(storage.getStore());
  end.subscribe(onEnd);
  onTestFinished(() => void end.unsubscribe(onEnd));
  record({ 'x-tenant': 'seven' });
  expect((await app.service('billing').get('/x')).body).toBe('seven');
  expect(stores).toEqual(['/x']);
});

test('with a subscriber to postern.request a try is a span below the request, and it is on the wire', async () => {
  const peer = await startPeer((req, res) => res.setHeader('content-type', 'text/plain').end(req.headers['traceparent']));
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`billing=${peer.url}`] } });
  app.get('/', async (ctx) => [
    (await ctx.service('billing').get('/')).body,
    (await ctx.service('billing').get('/')).body,
  ]);
  const events = record();
  let request: RequestTraceMessage | undefined;
  const requests = tracingChannel<RequestTraceMessage, RequestTraceMessage>('postern.request');
  const onStart = (message: unknown): void => void (request = message as RequestTraceMessage);
  requests.start.subscribe(onStart);
  onTestFinished(() => void requests.start.unsubscribe(onStart));
  const wire = (await (await app.request('/')).json()) as string[];
  const spans = events.filter(([name]) => name === 'start').map(([, { trace }]) => trace);
  expect(spans).toEqual(
    [0, 1].map(() => ({
      traceId: request?.trace.traceId,
      spanId: expect.any(String),
      parentId: request?.trace.spanId,
      flags: '03',
    })),
  );
  expect(wire).toEqual(spans.map((span) => `00-${span?.traceId}-${span?.spanId}-03`));
});
