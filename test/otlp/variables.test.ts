/**
 * Traces without an SDK: every environment variable, with valid and with invalid values.
 *
 * @module-tag package
 */

import { expect, onTestFinished, test } from 'vitest';
import { Postern, type PosternOptions } from 'postern';
import { setVariables, startCollector, type Collector } from '../support/collector.js';
import { startPeer } from '../support/peer.js';
import { createApp, createRecorder, serve } from '../support/serve.js';

type Variables = Readonly<Record<string, string>>;
interface Run {
  readonly collector: Collector;
  readonly app: Postern;
  readonly warnings: (string | undefined)[];
  readonly infos: (string | undefined)[];
  /** Sends one request, closes, and thereby exports. */
  finish(headers?: Record<string, string>): Promise<void>;
}

async function start(
  variables: (url: string) => Variables,
  options: PosternOptions = {},
  collector?: Collector,
): Promise<Run> {
  const own = collector ?? (await startCollector());
  setVariables(variables(own.url));
  const logger = createRecorder();
  const app = createApp({ ...options, logger }).get('/', () => 'ok');
  const { url } = await serve(app);
  const at = (level: string): (string | undefined)[] => logger.entries.filter((entry) => entry.level === level)
    .map(({ message }) => message);
  return {
    collector: own,
    app,
    get warnings() { return at('warn'); },
    get infos() { return at('info'); },
    async finish(headers = {}) {
      await (await fetch(url, { headers })).text();
      await app.close();
    },
  };
}
const endpoint = (more: Variables = {}) => (url: string): Variables => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...more });
const SAMPLED = '00-12345678901234567890123456789012-1234567890123456-01';
const UNSAMPLED = SAMPLED.replace(/01$/, '00');

test.for<{ what: string; variables: (url: string) => Variables; path: string }>([
  { what: 'the base URL', variables: (url) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url }), path: '/v1/traces' },
  { what: 'a base URL with a path', variables: (url) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/otlp/` }),
    path: '/otlp/v1/traces' },
  { what: 'the URL for traces, as it is',
    variables: (url) => ({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/mine?x=1` }), path: '/mine?x=1' },
  {
    what: 'the URL for traces before the base URL',
    variables: (url) => ({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/mine`,
    }),
    path: '/mine',
  },
])('spans go to $what', async ({ variables, path }) => {
  const run = await start(variables);
  await run.finish();
  expect(run.collector.requests.map(({ url }) => url)).toEqual([path]);
  expect(run.warnings).toEqual([]);
});

test.for<{ what: string; variables: (url: string) => Variables; options?: PosternOptions; warning?: RegExp }>([
  { what: 'no variable', variables: () => ({}) },
  { what: 'an empty variable', variables: () => ({ OTEL_EXPORTER_OTLP_ENDPOINT: '' }) },
  { what: 'OTEL_SDK_DISABLED=true', variables: endpoint({ OTEL_SDK_DISABLED: 'TRUE' }) },
  { what: 'OTEL_TRACES_EXPORTER=none', variables: endpoint({ OTEL_TRACES_EXPORTER: 'none' }) },
  { what: 'OTEL_EXPORTER_OTLP_PROTOCOL=grpc', variables: endpoint({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }),
    warning: /^OTEL_EXPORTER_OTLP_PROTOCOL is "grpc", so no traces are exported; give http\/protobuf or http\/json$/ },
  { what: 'tracing: false', variables: endpoint(), options: { tracing: false } },
  { what: 'tracing: true without the variable', variables: () => ({}), options: { tracing: true } },
])('with $what nothing is exported', async ({ variables, options, warning }) => {
  const run = await start(variables, options);
  expect((await run.app.request('/')).status).toBe(200);
  await run.finish();
  expect(run.collector.requests).toEqual([]);
  expect(run.warnings).toEqual(warning === undefined ? [] : [expect.stringMatching(warning)]);
  expect(run.app.metrics.get('otel_dropped_total')).toBeUndefined();
});

test.for<{ variable: string; value: string }>([
  { variable: 'OTEL_SDK_DISABLED', value: 'yes' },
  { variable: 'OTEL_TRACES_EXPORTER', value: 'zipkin' },
  { variable: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', value: 'collector:4318' },
  { variable: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', value: 'http://us%er:pw@collector' },
  { variable: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', value: 'http://user:%zz@collector' },
  { variable: 'OTEL_EXPORTER_OTLP_HEADERS', value: 'no pair' },
  { variable: 'OTEL_EXPORTER_OTLP_HEADERS', value: 'a b=1' },
  { variable: 'OTEL_EXPORTER_OTLP_HEADERS', value: 'a=%0d%0ax: 1' },
  { variable: 'OTEL_EXPORTER_OTLP_TRACES_HEADERS', value: 'a=%zz' },
  { variable: 'OTEL_EXPORTER_OTLP_TIMEOUT', value: '10s' },
  { variable: 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', value: '-1' },
  { variable: 'OTEL_EXPORTER_OTLP_PROTOCOL', value: 'http' },
  { variable: 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', value: 'json' },
  { variable: 'OTEL_EXPORTER_OTLP_COMPRESSION', value: 'br' },
  { variable: 'OTEL_RESOURCE_ATTRIBUTES', value: '=x' },
  { variable: 'OTEL_TRACES_SAMPLER', value: 'sometimes' },
  { variable: 'OTEL_TRACES_SAMPLER_ARG', value: '2' },
  { variable: 'OTEL_BSP_MAX_QUEUE_SIZE', value: '0' },
  { variable: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', value: 'many' },
  { variable: 'OTEL_BSP_SCHEDULE_DELAY', value: '1.5' },
])('$variable=$value is a warning, and the default applies', async ({ variable, value }) => {
  const run = await start(endpoint({ OTEL_TRACES_SAMPLER: 'traceidratio', [variable]: value }));
  await run.finish();
  expect(run.warnings).toEqual([expect.stringMatching(new RegExp(`^${variable} is .*ignored; give `))]);
  expect(run.collector.spans).toHaveLength(1);
});

test.for<{ variables: Variables; type: string; encoding?: string }>([
  { variables: {}, type: 'application/x-protobuf' },
  { variables: { OTEL_EXPORTER_OTLP_PROTOCOL: 'HTTP/JSON' }, type: 'application/json' },
  { variables: { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' },
    type: 'application/x-protobuf' },
  { variables: { OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' }, type: 'application/x-protobuf', encoding: 'gzip' },
  { variables: { OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip', OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'none' },
    type: 'application/x-protobuf' },
  { variables: { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip' },
    type: 'application/json', encoding: 'gzip' },
])('with $variables a batch is $type, encoded $encoding', async ({ variables, type, encoding }) => {
  const run = await start(endpoint(variables));
  await run.finish();
  expect(run.collector.spans).toHaveLength(1);
  expect(run.collector.requests.map(({ headers }) => [headers['content-type'], headers['content-encoding']]))
    .toEqual([[type, encoding]]);
  expect(run.warnings).toEqual([]);
});

test.for<Variables>([
  { OTEL_EXPORTER_OTLP_TIMEOUT: '0' },
  { OTEL_EXPORTER_OTLP_TIMEOUT: '1', OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '0' },
  { OTEL_EXPORTER_OTLP_TIMEOUT: '2147483647' },
  { OTEL_BSP_SCHEDULE_DELAY: '2147483647' },
  { OTEL_BSP_SCHEDULE_DELAY: '0' },
])('with %o, spans are exported to a collector that takes its time', async (variables) => {
  const run = await start(endpoint(variables), {}, await startCollector((res) => void setTimeout(() => res.end(), 20)));
  await run.finish();
  expect(run.warnings).toEqual([]);
  expect(run.collector.spans).toHaveLength(1);
});

test('an invalid endpoint is a warning, and spans go to localhost:4318', async () => {
  const run = await start(() => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'ftp://collector',
    OTEL_EXPORTER_OTLP_TIMEOUT: '200',
  }));
  await run.finish();
  expect(run.warnings[0]).toBe(
    'OTEL_EXPORTER_OTLP_ENDPOINT is "ftp://collector" and is ignored; give an http or https URL',
  );
});

test('a warning about an endpoint does not show its password', async () => {
  const run = await start(endpoint({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://us%er:secret@collector' }));
  expect(run.warnings).toEqual([
    'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is invalid and is ignored; give an http or https URL',
  ]);
});

test('headers of both variables are sent, percent-decoded; no message shows their values', async () => {
  const run = await start(
    endpoint({
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20b%3D, x-team = blue',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'X-Team=red',
    }),
  );
  await run.finish();
  expect(run.collector.requests[0]?.headers)
    .toMatchObject({ 'api-key': 'a b=', 'x-team': 'red' });
  const broken = await start(
    endpoint({ OTEL_EXPORTER_OTLP_HEADERS: 'api-key=secret%zz', OTEL_EXPORTER_OTLP_TRACES_HEADERS: '' }),
  );
  await broken.finish();
  expect(broken.warnings).toHaveLength(1);
  expect(broken.warnings[0]).not.toContain('secret');
});

test.for<{ variables: Variables; resource: Record<string, string> }>([
  { variables: {}, resource: { 'service.name': 'users', 'service.version': '1.4.2' } },
  { variables: { OTEL_RESOURCE_ATTRIBUTES: 'service.name=theirs,deployment.environment.name=a%2Cb , k8s.pod.name=p' },
    resource: { 'service.name': 'theirs', 'deployment.environment.name': 'a,b', 'k8s.pod.name': 'p' } },
  { variables: { OTEL_SERVICE_NAME: 'mine', OTEL_RESOURCE_ATTRIBUTES: 'service.name=theirs,service.version=9' },
    resource: { 'service.name': 'mine', 'service.version': '9' } },
  { variables: { OTEL_RESOURCE_ATTRIBUTES: 'a%22%C3%A9=%22%F0%9F%9A%80%5C' }, resource: { 'a"é': '"🚀\\' } },
])('with $variables the resource is $resource', async ({ variables, resource }) => {
  const run = await start(endpoint(variables));
  await run.finish();
  expect(run.collector.resources).toMatchObject([resource]);
});

test.for<{ sampler: string; arg?: string; traceparent?: string; spans: number }>([
  { sampler: '', spans: 1 },
  { sampler: '', traceparent: SAMPLED, spans: 1 },
  { sampler: '', traceparent: UNSAMPLED, spans: 0 },
  { sampler: 'parentbased_always_on', traceparent: UNSAMPLED, spans: 0 },
  { sampler: 'parentbased_always_off', spans: 0 },
  { sampler: 'parentbased_always_off', traceparent: SAMPLED, spans: 1 },
  { sampler: 'always_on', traceparent: UNSAMPLED, spans: 1 },
  { sampler: 'always_off', traceparent: SAMPLED, spans: 0 },
  { sampler: 'ALWAYS_OFF', spans: 0 },
  { sampler: 'traceidratio', spans: 1 },
  { sampler: 'traceidratio', arg: '0', traceparent: SAMPLED, spans: 0 },
  { sampler: 'traceidratio', arg: '0.5', traceparent: '00-000000000000000000ffffffffffffff-1234567890123456-00',
    spans: 1 },
  { sampler: 'traceidratio', arg: '0.5', traceparent: '00-ffffffffffffffffff00000000000001-1234567890123456-01',
    spans: 0 },
  { sampler: 'parentbased_traceidratio', arg: '0', spans: 0 },
  { sampler: 'parentbased_traceidratio', arg: '0', traceparent: SAMPLED, spans: 1 },
])(
  'the sampler $sampler with $arg and $traceparent records $spans',
  async ({ sampler, arg = '', traceparent, spans }) => {
    const run = await start(endpoint({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: arg }));
    await run.finish(traceparent === undefined ? {} : { traceparent });
    expect(run.collector.spans).toHaveLength(spans);
  },
);

test('the decision of the sampler is on the wire', async () => {
  const collector = await startCollector();
  setVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER: 'always_off' });
  const peer = await startPeer((req, res) => res.end(req.headers['traceparent']));
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } })
    .get('/', async (ctx) => (await ctx.service('peer').get('/')).body as string);
  const { url } = await serve(app);
  expect(await (await fetch(url, { headers: { traceparent: SAMPLED } })).text())
    .toMatch(/^00-12345678901234567890123456789012-[0-9a-f]{16}-00$/);
});

test('a full batch is sent at once, the rest after the delay or with close(); more than the queue holds is dropped', async () => {
  let release: () => void = () => undefined;
  const collector = await startCollector((res) => { release = () => void res.end(); });
  const variables = endpoint({
    OTEL_BSP_MAX_QUEUE_SIZE: '3',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '2',
    OTEL_BSP_SCHEDULE_DELAY: '600000',
  });
  const run = await start(variables, {}, collector);
  for (let i = 0; i < 2; i += 1) await run.app.request('/');
  await expect.poll(() => collector.requests.map(({ count }) => count)).toEqual([2]);
  for (let i = 0; i < 5; i += 1) await run.app.request('/');
  expect(run.app.metrics.expose()).toMatch(/^otel_dropped_total\{signal="traces"\} 2\.0$/m);
  release();
  await expect.poll(() => collector.requests.map(({ count }) => count)).toEqual([2, 2]);
  release();
  const closed = run.app.close();
  await expect.poll(() => collector.requests.map(({ count }) => count)).toEqual([2, 2, 1]);
  release();
  await closed;
  expect(run.warnings).toEqual(['telemetry could not be exported and was dropped']);
});

test.for<{ registered: string; options: PosternOptions; spans: number; infos: number }>([
  { registered: 'a tracer', options: {}, spans: 0, infos: 1 },
  { registered: 'a tracer', options: { tracing: true }, spans: 1, infos: 0 },
  { registered: 'nothing but a logger', options: {}, spans: 1, infos: 0 },
])(
  'with $registered in the OpenTelemetry API and $options there are $spans spans',
  async ({ registered, options, spans, infos }) => {
    const key = Symbol.for('opentelemetry.js.api.1');
    Reflect.set(
      globalThis,
      key,
      registered === 'a tracer' ? { version: '1.9.1', trace: {} } : { version: '1.9.1', diag: {} },
    );
    onTestFinished(() => void Reflect.deleteProperty(globalThis, key));
    const run = await start(endpoint(), options);
    await run.finish();
    expect(run.collector.spans).toHaveLength(spans);
    expect(run.infos.filter((message) => message?.includes('OpenTelemetry'))).toHaveLength(infos);
  },
);

test('without the variable the code is not loaded, and nothing subscribes', async () => {
  const { tracingChannel } = await import('node:diagnostics_channel');
  setVariables({ OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '' });
  await serve(createApp());
  expect(tracingChannel('postern.request').hasSubscribers).toBe(false);
  expect(tracingChannel('postern.call').hasSubscribers).toBe(false);
});
