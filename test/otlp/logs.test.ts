/**
 * Logs without an SDK: what the default logger writes, to stderr as before, is exported with severity and trace.
 *
 * @module-tag package
 */

import { expect, onTestFinished, test, vi } from 'vitest';
import { Postern, type PosternOptions } from 'postern';
import { setVariables, startCollector, type Collector } from '../support/collector.js';
import { byName, toPlainValue, type Plain, type WireRecord } from '../support/otlp-messages.js';
import { createRecorder, serve } from '../support/serve.js';

interface Line extends Record<string, Plain> {
  readonly level: string;
}

async function start(
  variables: Readonly<Record<string, string>> = {},
  options: PosternOptions = {},
  collector?: Collector,
): Promise<{ app: Postern; collector: Collector; url: string; lines: Line[] }> {
  const own = collector ?? (await startCollector());
  setVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: own.url, OTEL_LOGS_EXPORTER: 'otlp', ...variables });
  const lines: Line[] = [];
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    for (const line of String(text).trimEnd().split('\n')) lines.push(JSON.parse(line) as Line);
    return true;
  });
  onTestFinished(() => spy.mockRestore());
  vi.stubEnv('LOG_FORMAT', 'json');
  const app = new Postern('shop', options);
  onTestFinished(() => app.close());
  const { url } = await serve(app);
  return { app, collector: own, url, lines };
}
const recordsOf = (collector: Collector): WireRecord[] =>
  collector.requests.filter(({ signal }) => signal === 'logs').flatMap(({ items }) => items as WireRecord[]);
const bodiesOf = (collector: Collector): Plain[] =>
  recordsOf(collector).map(({ body }) => (body === undefined ? null : toPlainValue(body)));

test('an entry has severity, time, message, its members, and the ids of its trace; stderr is written as before', async () => {
  const { app, collector, url, lines } = await start({}, { logLevel: 'debug' });
  app.get('/orders/:id', (ctx) => {
    ctx.log.debug({ order: 7, tags: ['a', { b: null }], share: 0.5, isNew: true }, 'debugged');
    ctx.log.info('paid');
    ctx.log.warn({ negative: -3 }, 'late');
    ctx.log.error({ err: new RangeError('no shelf') }, 'failed');
    return 'ok';
  });
  await fetch(`${url}/orders/1`, { headers: { 'x-request-id': 'r1' } });
  app.log.info({}, 'outside');
  await app.close();
  const records = recordsOf(collector);
  expect(bodiesOf(collector)).toEqual(['listening', 'debugged', 'paid', 'late', 'failed', 'outside']);
  expect(lines.map(({ msg }) => msg)).toEqual(bodiesOf(collector));
  expect(records.map(({ severityNumber, severityText }) => [severityNumber, severityText])).toEqual([
    [9, 'info'], [5, 'debug'], [9, 'info'], [13, 'warn'], [17, 'error'], [9, 'info'],
  ]);
  const [, debugged, , late, failed, outside] = records;
  const [span] = collector.spans;
  for (const record of [debugged, late, failed])
    expect(record).toMatchObject({ traceId: span?.traceId, spanId: span?.spanId });
  expect([outside?.traceId, outside?.spanId]).toEqual([undefined, undefined]);
  expect(byName(debugged?.attributes))
    .toEqual({ request_id: 'r1', order: 7, tags: ['a', { b: null }], share: 0.5, isNew: true });
  expect(byName(failed?.attributes)).toEqual({
    request_id: 'r1',
    err: { type: 'RangeError', message: 'no shelf', stack: expect.stringContaining('logs.test.ts') },
  });
  expect(lines[4]).toMatchObject({ trace_id: span?.traceId, service: 'shop', level: 'error' });
  for (const [index, { timeUnixNano }] of records.entries())
    expect(Number(BigInt(timeUnixNano) / 1_000_000n)).toBe(Date.parse(String(lines[index]?.['time'])));
  expect(collector.resources.map((resource) => resource['service.instance.id']))
    .toEqual(collector.resources.map(() => collector.resources[0]?.['service.instance.id']));
});

test.for<{ what: string; variables: Readonly<Record<string, string>>; options?: PosternOptions }>([
  { what: 'OTEL_LOGS_EXPORTER=none', variables: { OTEL_LOGS_EXPORTER: 'none' } },
  { what: 'only an endpoint for traces',
    variables: { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:1' } },
  { what: 'a logger of the user', variables: {}, options: { logger: createRecorder() } },
  { what: 'no logger', variables: {}, options: { logger: false } },
  { what: 'OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=grpc', variables: { OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: 'grpc' } },
])('with $what no log is exported', async ({ variables, options }) => {
  const { app, collector } = await start({ OTEL_TRACES_EXPORTER: 'none', ...variables }, options);
  app.log.error({}, 'mine');
  await app.close();
  expect(collector.requests).toEqual([]);
});

test('what the level leaves out is not exported, and nothing is after close()', async () => {
  const { app, collector } = await start({ LOG_LEVEL: 'warn' });
  app.log.info({}, 'not written');
  app.log.warn({}, 'written');
  await app.close();
  app.log.warn({}, 'too late');
  expect(bodiesOf(collector)).toEqual(['written']);
});

test('LOG_FORMAT=text changes what stderr shows, not what is exported', async () => {
  const { app, collector } = await start();
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
  vi.stubEnv('LOG_FORMAT', 'text');
  const texts = new Postern('texts');
  await serve(texts);
  texts.log.info({ order: 7 }, 'paid');
  await texts.close();
  await app.close();
  expect(spy.mock.calls.join('')).toMatch(/paid/);
  expect(recordsOf(collector).map(({ attributes }) => byName(attributes))).toContainEqual({ order: 7 });
});

test('a collector that is down costs the entries, and one warning, which is not exported itself', async () => {
  const collector = await startCollector((res) => void res.writeHead(400).end());
  const { app, lines } = await start({ OTEL_TRACES_EXPORTER: 'none' }, {}, collector);
  for (let count = 1; count <= 3; count += 1) {
    app.log.info({ count }, 'mine');
    await expect.poll(() => bodiesOf(collector).length).toBe(1 + count);
  }
  await app.close();
  expect(app.metrics.expose()).toMatch(/^otel_dropped_total\{signal="logs"\} 4\.0$/m);
  expect(bodiesOf(collector)).toEqual(['listening', 'mine', 'mine', 'mine']);
  const warnings = lines.filter(({ level }) => level === 'warn');
  expect(warnings).toMatchObject([{ logs: expect.any(Number), reason: 'the collector answered 400' }]);
});

test('while a collector hangs, a batch and a full queue of entries wait, and further entries are dropped', async () => {
  const collector = await startCollector(() => undefined);
  const { app } = await start(
    {
      OTEL_TRACES_EXPORTER: 'none', OTEL_BSP_MAX_QUEUE_SIZE: '100', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '50',
      OTEL_BSP_SCHEDULE_DELAY: '600000', OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
    },
    {},
    collector,
  );
  for (let count = 2; count <= 50; count += 1) app.log.info({ count }, 'mine');
  await expect.poll(() => collector.requests.length).toBe(1);
  for (let count = 0; count < 130; count += 1) app.log.info({ count }, 'mine');
  expect(app.metrics.expose()).toMatch(/^otel_dropped_total\{signal="logs"\} 30\.0$/m);
  await app.close();
  expect(app.metrics.expose()).toMatch(/^otel_dropped_total\{signal="logs"\} 180\.0$/m);
});

test('what would burst a collector is cut: long texts, deep values, odd names', async () => {
  const { app, collector } = await start();
  let deep: unknown = 'end';
  for (let depth = 0; depth < 200; depth += 1) deep = [deep];
  app.log.info({ long: 'é'.repeat(1_000_000), more: 'x', '': 1 }, 'long');
  app.log.info({ deep, ['__proto__']: 'own', half: '\ud83d' }, 'deep');
  app.log.info({ trace_id: 'mine', span_id: 7, msg: { is: 'no text' } });
  await app.close();
  const [, long, deepOne, ids] = recordsOf(collector);
  expect(long?.droppedAttributesCount).toBe(3);
  expect(long?.body).toEqual({ stringValue: 'long' });
  expect(JSON.stringify(long).length).toBeLessThan(40_000);
  expect(deepOne).toMatchObject({ droppedAttributesCount: 1 });
  expect(Object.entries(byName(deepOne?.attributes))).toEqual([
    ['deep', expect.stringMatching(/^\[{100}/)], ['__proto__', 'own'], ['half', '\ufffd'],
  ]);
  expect([byName(ids?.attributes), ids?.traceId]).toEqual([{ trace_id: 'mine', span_id: 7 }, undefined]);
  expect(ids?.body && toPlainValue(ids.body)).toEqual({ is: 'no text' });
});
