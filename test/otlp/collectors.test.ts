/**
 * Traces without an SDK: what a collector does costs spans, which are counted, and never a request.
 *
 * @module-tag slow
 */

import type { ServerResponse } from 'node:http';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import type { Postern } from 'postern';
import { setVariables, startCollector, type Collector } from '../support/collector.js';
import { toAnswer } from '../support/otlp-messages.js';
import { createApp, createRecorder, ownMetricsOf, serve } from '../support/serve.js';
import { freePort } from '../support/ports.js';

vi.mock('../../src/base/clock.js', async (load) => (await import('../support/faked-clock.js')).fakeClock(await load()));

afterEach(() => void vi.useRealTimers());

const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n';
const REQUESTS = 250;
const QUEUE = 100;

async function start(
  url: string,
  variables: Record<string, string> = {},
): Promise<{ app: Postern; port: number; url: string; warnings: () => object[] }> {
  setVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...variables });
  const logger = createRecorder();
  const app = createApp({ logger }).get('/', () => 'ok');
  const { port, url: own } = await serve(app);
  return {
    app,
    port,
    url: own,
    warnings: () => logger.entries.filter(({ level }) => level === 'warn').map(({ object }) => object),
  };
}
const droppedBy = (app: Postern): number =>
  Number(/^otel_dropped_total\{signal="traces"\} (\d+)/m.exec(ownMetricsOf(app).expose())?.[1]);

/** @returns the port of a server that accepts connections and reads nothing */
async function unreadPort(): Promise<number> {
  const sockets: Socket[] = [];
  const server = createServer({ pauseOnConnect: true }, (socket) => sockets.push(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function load(url: string): Promise<void> {
  const work = async (): Promise<void> => {
    for (let sent = 0; sent < REQUESTS / 50; sent += 1) expect((await fetch(url)).status).toBe(200);
  };
  await Promise.all(Array.from({ length: 50 }, work));
}

test.for<{ what: string; respond: ((res: ServerResponse) => void) | 'unread' | null; reason: RegExp }>([
  { what: 'refuses connections', respond: null,
    reason: /^(the collector is unreachable: ECONNREFUSED|the queue is full)$/ },
  { what: 'never answers', respond: () => undefined, reason: /^(no answer within 300 ms|the queue is full)$/ },
  { what: 'answers 500', respond: (res) => void res.writeHead(500).end(),
    reason: /^(the collector answered 500|the queue is full)$/ },
  { what: 'answers 400', respond: (res) => void res.writeHead(400).end(),
    reason: /^(the collector answered 400|the queue is full)$/ },
  { what: 'closes its connections', respond: (res) => void res.destroy(),
    reason: /^(the collector is unreachable: \w+|the queue is full)$/ },
  { what: 'answers 101 and never speaks HTTP again', respond: (res) => void res.socket?.write(SWITCH),
    reason: /^(no answer within 300 ms|the queue is full)$/ },
  { what: 'reads nothing', respond: 'unread', reason: /^(no answer within 300 ms|the queue is full)$/ },
  { what: 'answers without end',
    respond: (res) => void setInterval(() => res.destroyed || res.write('x'.repeat(70_000)), 10).unref(),
    reason: /^(the answer of the collector is too long|the queue is full)$/ },
])(
  'a collector that $what: no request fails, every span is counted as dropped, and one warning says why',
  async ({ respond, reason }) => {
    const collector = typeof respond === 'function' ? (await startCollector(respond)).url : undefined;
    const port = respond === null ? await freePort() : await unreadPort();
    const { app, url, warnings } = await start(collector ?? `http://127.0.0.1:${port}`, {
      OTEL_BSP_MAX_QUEUE_SIZE: String(QUEUE),
      OTEL_EXPORTER_OTLP_TIMEOUT: reason.test('no answer within 300 ms') ? '300' : '50000',
    });
    await load(url);
    await app.close();
    expect(droppedBy(app)).toBe(REQUESTS);
    expect(warnings()).toEqual([{ traces: expect.any(Number), reason: expect.stringMatching(reason) }]);
  },
);

test('while a collector hangs, a batch and a full queue wait, and every further span is dropped at once', async () => {
  const collector = await startCollector(() => undefined);
  const { app, warnings } = await start(collector.url, {
    OTEL_BSP_MAX_QUEUE_SIZE: '100',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '50',
    OTEL_BSP_SCHEDULE_DELAY: '600000',
    OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
  });
  for (let sent = 0; sent < 50; sent += 1) await app.request('/');
  await expect.poll(() => collector.requests.length).toBe(1);
  for (let sent = 50; sent < 180; sent += 1) expect((await app.request('/')).status).toBe(200);
  expect(droppedBy(app)).toBe(180 - 50 - 100);
  await app.close();
  expect(droppedBy(app)).toBe(180);
  expect(warnings()).toEqual([{ traces: 1, reason: 'the queue is full' }]);
});

test('a collector that is slow gets what it can take, the rest is dropped and counted', async () => {
  const collector = await startCollector((res) => void setTimeout(() => res.end(), 100));
  const { app, url } = await start(collector.url, {
    OTEL_BSP_MAX_QUEUE_SIZE: String(QUEUE),
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '100',
  });
  await load(url);
  await app.close();
  expect(collector.spans.length).toBeGreaterThanOrEqual(100);
  expect(collector.spans.length + droppedBy(app)).toBe(REQUESTS);
  expect(collector.requests.every(({ count }) => count <= 100)).toBe(true);
}, 60_000);

test.for([
  { status: 429, retryAfter: '1' },
  { status: 503, retryAfter: new Date(Date.now() + 60_000).toUTCString() },
])('close() sends what waits for the Retry-After of a $status at once', async ({ status, retryAfter }) => {
  const collector = await startCollector(
    (res, nth) => void (nth === 1 ? res.writeHead(status, { 'retry-after': retryAfter }).end() : res.end()),
  );
  const { app } = await start(collector.url, { OTEL_EXPORTER_OTLP_TIMEOUT: '120000' });
  await app.request('/');
  await expect.poll(() => collector.requests.length).toBe(1);
  await app.close();
  expect(collector.requests).toHaveLength(2);
  expect(collector.spans).toHaveLength(1);
});

test.for([429, 502, 503, 504])('a batch is sent again after a %i, not before its Retry-After', async (status) => {
  const collector = await startCollector(
    (res, nth) => void (nth === 1 ? res.writeHead(status, { 'retry-after': '1' }).end() : res.end()),
  );
  const { app } = await start(collector.url);
  await app.request('/');
  await expect.poll(() => collector.spans.length).toBe(1);
  const [first, second] = collector.requests;
  expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(990);
  expect(droppedBy(app)).toBe(0);
});

test('a Retry-After that is longer than the time limit drops the batch, and holds back the next one', async () => {
  const collector = await startCollector(
    (res, nth) => void (nth === 1 ? res.writeHead(503, { 'retry-after': '1' }).end() : res.end()),
  );
  const { app } = await start(collector.url, { OTEL_EXPORTER_OTLP_TIMEOUT: '500' });
  await app.request('/');
  await expect.poll(() => droppedBy(app)).toBe(1);
  await app.request('/');
  await expect.poll(() => collector.spans.length).toBe(1);
  const [first, second] = collector.requests;
  expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(990);
});

test.for(['Infinity', '1000000000', 'Fri, 31 Dec 9999 23:59:59 GMT'])(
  'a Retry-After of %s holds back the next batch for five minutes only',
  async (retryAfter) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const collector = await startCollector(
      (res, nth) => void (nth === 1 ? res.writeHead(503, { 'retry-after': retryAfter }).end() : res.end()),
    );
    const { app } = await start(collector.url, { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1' });
    await app.request('/');
    await expect.poll(() => droppedBy(app)).toBe(1);
    await app.request('/');
    await vi.advanceTimersByTimeAsync(300_000);
    await expect.poll(() => collector.spans.length).toBe(1);
  },
);

test('with a delay of 0 a span is sent at once, and without spans nothing wakes the process', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const collector = await startCollector();
  const { app } = await start(collector.url, { OTEL_BSP_SCHEDULE_DELAY: '0' });
  for (let sent = 1; sent <= 2; sent += 1) {
    await app.request('/');
    await vi.advanceTimersByTimeAsync(1);
    await expect.poll(() => collector.spans.length).toBe(sent);
  }
  const idleSinceMs = performance.now();
  for (let timer = 0; timer < 10; timer += 1) await vi.advanceTimersToNextTimerAsync();
  expect(performance.now() - idleSinceMs).toBeGreaterThan(1000);
});

test('a request that node:http refuses to make drops its batch, and close() resolves', async () => {
  const collector = await startCollector();
  const headers = 'expect=100-continue,trailer=x';
  const { app, warnings } = await start(collector.url, { OTEL_EXPORTER_OTLP_HEADERS: headers });
  await app.request('/');
  await app.close();
  expect(droppedBy(app)).toBe(1);
  expect(warnings()).toEqual([{ traces: 1, reason: 'the collector is unreachable: ERR_HTTP_TRAILER_INVALID' }]);
});

test.for<{ protocol: string; answer: string | Uint8Array; rejected: number }>([
  { protocol: 'http/json', answer: '{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}', rejected: 2 },
  { protocol: 'http/json', answer: '{"partialSuccess":{}}', rejected: 0 },
  { protocol: 'http/json', answer: '', rejected: 0 },
  { protocol: 'http/protobuf', answer: toAnswer({ rejectedSpans: 2, errorMessage: 'too old' }), rejected: 2 },
  { protocol: 'http/protobuf', answer: toAnswer({ rejectedSpans: 70_000, errorMessage: 'é'.repeat(300) }),
    rejected: 70_000 },
  { protocol: 'http/protobuf', answer: toAnswer({ errorMessage: 'only a warning' }), rejected: 0 },
  { protocol: 'http/protobuf', answer: toAnswer({}), rejected: 0 },
  { protocol: 'http/protobuf', answer: '', rejected: 0 },
])('$rejected spans that a collector rejects in $protocol are counted, and not sent again', async (given) => {
  const { protocol, answer, rejected } = given;
  const collector = await startCollector((res) => void res.end(answer));
  const { app, warnings } = await start(collector.url, { OTEL_EXPORTER_OTLP_PROTOCOL: protocol });
  await app.request('/');
  await app.close();
  expect(collector.requests).toHaveLength(1);
  expect(droppedBy(app)).toBe(rejected);
  const reason = 'the collector rejected them';
  expect(warnings()).toEqual(rejected === 0 ? [] : [{ traces: rejected, reason }]);
});

test('OTEL_EXPORTER_OTLP_TRACES_TIMEOUT overrides OTEL_EXPORTER_OTLP_TIMEOUT', async () => {
  const collector = await startCollector(() => undefined);
  const timeouts = { OTEL_EXPORTER_OTLP_TIMEOUT: '600000', OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '100' };
  const { app, warnings } = await start(collector.url, timeouts);
  await app.request('/');
  await expect.poll(() => droppedBy(app)).toBe(1);
  expect(warnings()).toEqual([{ traces: 1, reason: 'no answer within 100 ms' }]);
});

test('close() gives up on a collector that never answers', async () => {
  const collector = await startCollector(() => undefined);
  const { app } = await start(collector.url);
  for (let i = 0; i < 3; i += 1) await app.request('/');
  await app.close();
  expect(droppedBy(app)).toBe(3);
}, 8_000);

test('one connection is kept for all batches, and it keeps no process alive', async () => {
  const sockets = new Set<unknown>();
  const collector: Collector = await startCollector((res, _nth, req) => {
    sockets.add(req.socket);
    res.end();
  });
  const { app } = await start(collector.url);
  for (let sent = 1; sent <= 3; sent += 1) {
    await app.request('/');
    await expect.poll(() => collector.spans.length).toBe(sent);
  }
  expect(sockets.size).toBe(1);
});
