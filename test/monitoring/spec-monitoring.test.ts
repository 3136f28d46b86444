/** The rules of SPEC.md sections 1, 2 and 4, over real sockets. */

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Postern } from 'postern';
import packageJson from '../../package.json' with { type: 'json' };
import { get, HEAD, rawRequest } from '../support/raw.js';
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
    expect(new Postern('a', { version: '' }).version).toBe('7.7');
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
    ['active_task_count', 'proc_cpu_perc', 'proc_rss_mem_bytes', 'proc_rss_mem_perc', 'request_count', 'timestamp',
      'total_task_count'].sort(),
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
  for (const name of [
    'request_count_total',
    'http_request_duration_seconds',
    'process_cpu_seconds_total',
    'nodejs_gc_duration_seconds',
    'service_info',
  ]) {
    expect(metrics.get(name), name).toBeDefined();
    expect(() => metrics.counter({ name: name.replace(/_total$/, ''), help: 'Mine.' }), name)
      .toThrow(/registered already|clashes/);
  }
});

test('2.2: request_count counts every processed request, refused ones included', async () => {
  const { url } = await serve(createApp());
  const count = async (): Promise<number> =>
    ((await (await fetch(`${url}/users/metrics/?json`)).json()) as { request_count: number }).request_count;
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
    new RegExp(
      `^application_version="1\\.4\\.2",framework_version="${packageJson.version.replaceAll('.', '\\.')}",ip="[\\d.]+",service="users",status="OK"$`,
    ),
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
  const response = await fetch(`${url}/users/metrics/`, {
    headers: { accept: 'application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3', 'accept-encoding': 'gzip' },
  });
  expect(response.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
  expect(response.headers.get('content-encoding')).toBe('gzip');
  expect((await response.text()).endsWith('# EOF\n')).toBe(true);
});

test('4.2.1: ping without depth answers for itself only, whatever connections there are', async () => {
  const app = createApp({ settings: { SERVICE_CONNECTIONS: ['billing=http://127.0.0.1:1'] } });
  const { url } = await serve(app);
  expect(await (await fetch(`${url}/users/ping/`)).json()).toMatchObject({ response: 'pong' });
});

const SRC = fileURLToPath(new URL('../../src', import.meta.url));
const sources = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));

test('no token is compared: what a client claims to be changes no monitoring endpoint (CVE-2024-47178)', async () => {
  const { port } = await serve(createApp());
  const documentOf = async (path: string, fields = ''): Promise<unknown> => {
    const { status, headers, body } = await rawRequest(port, get(path, HEAD + fields));
    return [
      status,
      headers['content-type'],
      headers['www-authenticate'],
      path === '/users/metrics/' ? body.match(/^# TYPE .*/gm) : body.replace(/\d+ ms/, 'n ms'),
    ];
  };
  for (const path of ['/users/health/', '/users/metrics/', '/users/ping/']) {
    const plain = await documentOf(path);
    for (const fields of [
      'Authorization: Bearer x\r\n', 'Authorization: Basic eDp5\r\n', 'X-Api-Key: x\r\n', 'Cookie: session=x\r\n',
    ]) expect(await documentOf(path, fields)).toEqual(plain);
  }
  // Express's `res.cookie` signs a cookie; nothing compares one. The token of `diagnostics` is for the second listener.
  const others = /^(?:answer\/cookies|monitor\/monitoring-options|monitor\/guard|cli\/.*)\.ts$/;
  for (const file of sources.filter((name) => !others.test(name.replaceAll('\\', '/')))) {
    expect(
      readFileSync(`${SRC}/${file}`, 'utf8').replace(/'proxy-authorization'|www-authenticate/g, ''),
      file,
    ).not.toMatch(/authorization|api-?key|timingSafeEqual|createHmac/i);
  }
});
