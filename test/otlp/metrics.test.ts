/**
 * Metrics without an SDK: what Prometheus scrapes, by OpenTelemetry's names, units and attributes.
 *
 * @module-tag package
 */

import { afterEach, expect, test, vi } from 'vitest';
import { reply, type Postern, type PosternOptions } from 'postern';
import { setVariables, startCollector, type Collector } from '../support/collector.js';
import { byName, pointsOf, type Plain, type WireMetric } from '../support/otlp-messages.js';
import { startPeer } from '../support/peer.js';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

vi.mock('../../src/base/clock.js', async (load) => (await import('../support/faked-clock.js')).fakeClock(await load()));

afterEach(() => void vi.useRealTimers());

const ONLY_METRICS = { OTEL_METRICS_EXPORTER: 'otlp', OTEL_TRACES_EXPORTER: 'none' };

async function start(
  variables: Readonly<Record<string, string>> = {},
  options: PosternOptions = {},
  collector?: Collector,
): Promise<{ app: Postern; collector: Collector; url: string; warnings: () => (string | undefined)[]; }> {
  const own = collector ?? (await startCollector());
  setVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: own.url, ...ONLY_METRICS, ...variables });
  const logger = createRecorder();
  const app = createApp({ logger, ...options });
  const { url } = await serve(app);
  const warnings = (): (string | undefined)[] =>
    logger.entries.filter(({ level }) => level === 'warn').map(({ message }) => message);
  return { app, collector: own, url, warnings };
}
const metricsOf = (collector: Collector): WireMetric[] =>
  collector.requests.filter(({ signal }) => signal === 'metrics').flatMap(({ items }) => items as WireMetric[]);
/** The points of the last export of a metric: attributes, then value, or count and sum. */
function lastOf(collector: Collector, name: string): [Record<string, Plain>, ...unknown[]][] {
  const metric = metricsOf(collector).findLast((each) => each.name === name);
  expect(metric, `${name} is exported`).toBeDefined();
  return pointsOf(metric as WireMetric).map(({ attributes, asDouble, count, sum }) => [
    byName(attributes), ...(asDouble === undefined ? [Number(count), sum] : [asDouble]),
  ]);
}

test('a summary has every quantile that is not below 0', async () => {
  const { app, collector } = await start();
  const balance = app.metrics.summary({ name: 'balance', help: 'Balances.', percentiles: [0, 0.5, 1] });
  for (const value of [-1, 0, 3]) balance.observe(value);
  await app.close();
  const metric = metricsOf(collector).find(({ name }) => name === 'balance') as WireMetric;
  expect(pointsOf(metric).map(({ quantileValues }) => quantileValues))
    .toMatchObject([[{ quantile: 0.5, value: 0 }, { quantile: 1, value: 3 }]]);
});

test('close() exports every family that a scrape shows, cumulative, with the times of the process', async () => {
  const { app, collector } = await start();
  app.metrics.counter({ name: 'jobs_total', help: 'Jobs.' }).inc(3);
  await app.request('/');
  const families = [...app.metrics.expose().matchAll(/^# HELP (\S+) (.*)\n# TYPE .*\n(?!#)/gm)];
  expect(families.length).toBeGreaterThan(20);
  await app.close();
  const metrics = metricsOf(collector);
  for (const [, name, help] of families)
    expect(metrics.filter(({ description }) => description === help), name).not.toHaveLength(0);
  expect(metrics.map(({ name }) => name).length).toBe(new Set(metrics.map(({ name }) => name)).size);
  expect(metrics.find(({ name }) => name === 'jobs')).toMatchObject({
    description: 'Jobs.', sum: { isMonotonic: true, aggregationTemporality: 2, dataPoints: [{ asDouble: 3 }] },
  });
  const [{ startTimeUnixNano = '', timeUnixNano = '' } = {}] = metrics.flatMap(pointsOf);
  const startedMs = Date.now() - process.uptime() * 1000;
  expect(Math.abs(Number(BigInt(startTimeUnixNano) / 1_000_000n) - startedMs)).toBeLessThan(2_000);
  expect(Math.abs(Number(BigInt(timeUnixNano) / 1_000_000n) - Date.now())).toBeLessThan(60_000);
});

test.for<{ kind: 'counter' | 'gauge' | 'histogram' | 'summary'; name: string; exported: string; unit?: string }>([
  { kind: 'counter', name: 'jobs_total', exported: 'jobs' },
  { kind: 'counter', name: 'cpu_seconds_total', exported: 'cpu', unit: 's' },
  { kind: 'counter', name: 'sent_bytes_total', exported: 'sent', unit: 'By' },
  { kind: 'gauge', name: 'cache_size_bytes', exported: 'cache_size', unit: 'By' },
  { kind: 'gauge', name: 'load_ratio', exported: 'load', unit: '1' },
  { kind: 'gauge', name: 'all_total', exported: 'all_total' },
  { kind: 'gauge', name: 'seconds', exported: 'seconds' },
  { kind: 'histogram', name: 'wait_milliseconds', exported: 'wait', unit: 'ms' },
  { kind: 'summary', name: 'size_kilobytes', exported: 'size', unit: 'kBy' },
])('the $kind $name is exported as $exported in $unit', async ({ kind, name, exported, unit }) => {
  const { app, collector } = await start();
  app.metrics[kind]({ name, help: 'Mine.' });
  if (kind === 'summary') app.metrics.summary({ name: 'other', help: 'Other.' }).observe(1);
  await app.close();
  const metric = metricsOf(collector).find(({ description }) => description === 'Mine.');
  expect(metric).toMatchObject({ name: exported, [kind === 'counter' ? 'sum' : kind]: { dataPoints: [{}] } });
  expect(metric?.unit).toBe(unit);
});

test('of two families that would get one name, the later one keeps its suffix', async () => {
  const { app, collector } = await start();
  for (const name of ['wait_seconds', 'wait_bytes', 'room_bytes', 'room'])
    app.metrics.gauge({ name, help: `Gauge ${name}.` });
  await app.close();
  const named = metricsOf(collector).filter(({ description }) => description.startsWith('Gauge '));
  expect(named.map(({ name, unit }) => [name, unit])).toEqual([
    ['wait', 's'], ['wait_bytes', 'By'], ['room_bytes', 'By'], ['room', undefined],
  ]);
});

test('the durations of requests and calls have names and attributes of semantic conventions', async () => {
  const peer = await startPeer((req, res) => {
    if (req.url === '/gone') req.socket.destroy();
    else res.writeHead(req.url === '/busy' ? 503 : 200).end('{}');
  });
  const { app, collector, url } = await start({}, { settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } });
  expectFailures(app, 503);
  app.get('/call/:path', async (ctx) => {
    await ctx.service('peer').get(`/${ctx.params.path}`).catch(() => undefined);
    return reply(null, { status: ctx.params.path === 'busy' ? 503 : 204 });
  });
  for (const path of ['call/ok', 'call/busy', 'call/gone', 'nowhere']) await fetch(`${url}/${path}`);
  await app.close();
  const server = { 'http.request.method': 'GET', 'http.route': '/call/:path', 'url.scheme': 'http' };
  const attributes = lastOf(collector, 'http.server.request.duration').map(([each]) => each);
  expect(attributes).toEqual([
    { ...server, 'http.response.status_code': 204 },
    { ...server, 'http.response.status_code': 503, 'error.type': '503' },
    { 'http.request.method': 'GET', 'url.scheme': 'http', 'http.response.status_code': 404 },
  ]);
  const client = {
    'http.request.method': 'GET', 'service.peer.name': 'peer', 'server.address': '127.0.0.1',
    'server.port': Number(new URL(peer.url).port),
  };
  const calls = lastOf(collector, 'http.client.request.duration').map(([each]) => each);
  expect(calls).toEqual(expect.arrayContaining([
    { ...client, 'http.response.status_code': 200 },
    { ...client, 'http.response.status_code': 503, 'error.type': '503' },
    { ...client, 'error.type': '_OTHER' },
  ]));
  const unit = metricsOf(collector).filter(({ name }) => name.startsWith('http.')).map((each) => each.unit);
  expect(unit).toEqual(['s', 's']);
});

test('labels are attributes, default labels as well; an exemplar leads to its trace', async () => {
  const { app, collector } = await start();
  app.metrics.setDefaultLabels({ zone: 'a', queue: 'none' });
  const jobs = app.metrics.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue'] });
  const trace = { trace_id: 'a'.repeat(32), span_id: 'b'.repeat(16) };
  jobs.inc({ labels: { queue: 'mail' }, value: 2, exemplarLabels: trace });
  jobs.inc({ labels: { queue: 'é"\\' }, exemplarLabels: { user: 7 } });
  await app.close();
  expect(lastOf(collector, 'jobs')).toEqual([[{ zone: 'a', queue: 'mail' }, 2], [{ zone: 'a', queue: 'é"\\' }, 1]]);
  const exemplars = metricsOf(collector).filter(({ name }) => name === 'jobs').flatMap(pointsOf)
    .map((point) => point.exemplars);
  expect(exemplars).toEqual([
    [{ traceId: trace.trace_id, spanId: trace.span_id, asDouble: 2, timeUnixNano: expect.any(String) }],
    [{
      filteredAttributes: [{ key: 'user', value: { intValue: '7' } }],
      asDouble: 1,
      timeUnixNano: expect.any(String),
    }],
  ]);
});

test('metrics are exported every OTEL_METRIC_EXPORT_INTERVAL, by default every minute, and with close()', async () => {
  for (const [intervalMs, variables] of [[60_000, {}], [5_000, { OTEL_METRIC_EXPORT_INTERVAL: '5000' }]] as const) {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
    const { app, collector } = await start(variables);
    const exports = (): number => metricsOf(collector).filter(({ name }) => name === 'request_count').length;
    for (let count = 1; count <= 2; count += 1) {
      await vi.advanceTimersByTimeAsync(intervalMs - (count === 1 ? 100 : 300));
      expect(exports()).toBe(count - 1);
      await vi.advanceTimersByTimeAsync(300);
      await expect.poll(exports).toBe(count);
    }
    vi.useRealTimers();
    await app.close();
    expect(exports()).toBe(3);
  }
});

test('a family with more series than a batch may have is exported whole, whatever the queue holds', async () => {
  const limits = { OTEL_BSP_MAX_QUEUE_SIZE: '100', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '50' };
  const { app, collector } = await start({ ...limits, OTEL_METRIC_EXPORT_INTERVAL: '200' });
  const family = app.metrics.counter({ name: 'many_total', help: 'Many.', labelNames: ['id'] });
  for (let id = 0; id < 1_234; id += 1) family.inc({ id });
  const ids = (): Set<Plain | undefined> =>
    new Set(metricsOf(collector).filter(({ name }) => name === 'many').flatMap(pointsOf)
      .map(({ attributes }) => byName(attributes)['id']));
  await expect.poll(() => ids().size, { timeout: 20_000 }).toBe(1_234);
  for (const { count } of collector.requests) expect(count).toBeLessThanOrEqual(50);
});

test('while a collector hangs, no more data points wait than the queue holds and one export has', async () => {
  const collector = await startCollector(() => undefined);
  const { app } = await start(
    { OTEL_BSP_MAX_QUEUE_SIZE: '100', OTEL_METRIC_EXPORT_INTERVAL: '5', OTEL_EXPORTER_OTLP_TIMEOUT: '600000' },
    {},
    collector,
  );
  const dropped = (): number =>
    Number(/^otel_dropped_total\{signal="metrics"\} (\S+)$/m.exec(app.metrics.expose())?.[1]);
  await expect.poll(dropped).toBeGreaterThan(500);
  await app.close();
});

test('data points that a collector rejects are counted', async () => {
  const answer = '{"partialSuccess":{"rejectedDataPoints":"3"}}';
  const collector = await startCollector((res) => void res.end(answer));
  const { app } = await start({ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, {}, collector);
  await app.close();
  const { length } = collector.requests;
  expect(app.metrics.expose()).toContain(`otel_dropped_total{signal="metrics"} ${3 * length}.0\n`);
});

test.for(['delta', 'lowmemory'])('the temporality %s is a warning, and metrics are cumulative', async (preference) => {
  const { app, collector, warnings } = await start({
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: preference,
  });
  await app.close();
  expect(warnings()).toEqual([
    `OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE is "${preference}" and is ignored; give cumulative`,
  ]);
  expect(metricsOf(collector)).not.toHaveLength(0);
});

test('a listener of the registry that throws costs the export, and nothing else', async () => {
  const { app, collector, warnings } = await start();
  const stop = app.metrics.onExpose(() => { throw new Error('mine'); });
  await app.close();
  expect(collector.requests).toEqual([]);
  expect(warnings()).toEqual(['metrics could not be read']);
  stop();
});

test('a metric of the user with the name of the counter of what is dropped hinders no start', async () => {
  const collector = await startCollector();
  setVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...ONLY_METRICS });
  const app = createApp();
  app.metrics.counter({ name: 'otel_dropped_total', help: 'Mine.' }).inc();
  await serve(app);
  await app.close();
  expect(metricsOf(collector).map(({ description }) => description)).toContain('Mine.');
});
