/**
 * prom-client's default metrics in a registry of one's own.
 *
 * @module-tag package
 */

import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { collectDefaultMetrics, Registry, type DefaultMetricsOptions } from 'postern/metrics';
import { collectProcess } from '../../src/process/sampler.js';
import { parseExposition, sampleMap } from '../support/exposition-parser.js';
import { createApp } from '../support/serve.js';

/** What prom-client 15 registers, on Linux. */
const DEFAULTS = [
  ...['user_seconds_total', 'system_seconds_total', 'seconds_total'].map((name) => `process_cpu_${name}`),
  ...['start_time_seconds', 'resident_memory_bytes', 'virtual_memory_bytes', 'heap_bytes', 'open_fds', 'max_fds'].map(
    (name) => `process_${name}`,
  ),
  ...['', 'min_', 'max_', 'mean_', 'stddev_', 'p50_', 'p90_', 'p99_'].map(
    (name) => `nodejs_eventloop_lag_${name}seconds`,
  ),
  ...['resources', 'handles', 'requests'].flatMap((name) => [`nodejs_active_${name}`, `nodejs_active_${name}_total`]),
  ...[
    'heap_size_total_bytes',
    'heap_size_used_bytes',
    'external_memory_bytes',
    'version_info',
    'gc_duration_seconds',
  ].map((name) => `nodejs_${name}`),
  ...['total', 'used', 'available'].map((name) => `nodejs_heap_space_size_${name}_bytes`),
];

function create(options?: DefaultMetricsOptions): Registry {
  const registry = new Registry({ onError: (name, error) => expect.fail(`${name}: ${String(error)}`) });
  collectDefaultMetrics(registry, options);
  onTestFinished(() => registry.clear());
  return registry;
}

test("a registry gets prom-client's default metrics, two more, and nothing that is a service's", () => {
  const families = parseExposition(create().expose(), 'text').map(({ name }) => name);
  expect(families.sort()).toEqual([...DEFAULTS, 'nodejs_heap_size_limit_bytes', 'nodejs_eventloop_utilization'].sort());
});

test("so has an application's, beside those of the spec", () => {
  const families = parseExposition(createApp().metrics.expose(), 'text').map(({ name }) => name);
  expect(families).toEqual(
    expect.arrayContaining([
      ...DEFAULTS,
      'nodejs_heap_size_limit_bytes',
      'nodejs_eventloop_utilization',
      'proc_rss_mem_bytes',
      'python_gc_collected_objects',
    ]),
  );
});

test('a prefix stands in front of every name, and labels on every sample; a metric of its own label keeps that', () => {
  const registry = create({ prefix: 'my_', labels: { app: 'shop', type: 'mine' } });
  const families = parseExposition(registry.expose('openmetrics'), 'openmetrics');
  for (const { name, samples } of families) {
    expect(name).toMatch(/^my_/);
    for (const { labels } of samples)
      expect(labels, name).toMatchObject({
        app: 'shop',
        ...(/active_(?:resources|handles|requests)$/.test(name) ? {} : { type: 'mine' }),
      });
  }
  expect(sampleMap(registry.expose()).get('my_nodejs_gc_duration_seconds_count{kind=minor,app=shop,type=mine}'))
    .toBeGreaterThanOrEqual(0);
  const types = families
    .find(({ name }) => name === 'my_nodejs_active_resources')
    ?.samples.map(({ labels }) => labels['type']);
  expect(types?.length).toBeGreaterThan(0);
  expect(types).not.toContain('mine');
});

test('what is open is counted by type and in all', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const samples = sampleMap(create().expose());
  expect(samples.get('nodejs_active_handles{type=Server}')).toBeGreaterThanOrEqual(1);
  expect(samples.get('nodejs_active_resources{type=TCPServerWrap}')).toBeGreaterThanOrEqual(1);
  for (const what of ['resources', 'handles', 'requests']) {
    const each = [...samples].filter(([name]) => name.startsWith(`nodejs_active_${what}{`))
      .reduce((sum, [, value]) => sum + value, 0);
    expect(samples.get(`nodejs_active_${what}_total`), what).toBe(each);
  }
});

test('values make sense', () => {
  const samples = sampleMap(create().expose());
  expect(samples.get('nodejs_heap_size_limit_bytes'))
    .toBeGreaterThan(samples.get('nodejs_heap_size_total_bytes') ?? Infinity);
  expect(samples.get('nodejs_eventloop_utilization')).toBeGreaterThanOrEqual(0);
  expect(samples.get('nodejs_eventloop_utilization')).toBeLessThanOrEqual(1);
  expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(1e7);
});

test('event loop utilization is of late, by a clock of its own: one scraper changes nothing for another', () => {
  let [idle, active] = [0, 0];
  const registry = new Registry();
  const usage = vi.spyOn(performance, 'eventLoopUtilization');
  usage.mockImplementation(() => ({ idle, active, utilization: 0 }));
  const sampler = collectProcess(registry);
  onTestFinished(() => {
    sampler.close();
    usage.mockRestore();
  });
  const read = (): number | undefined => sampleMap(registry.expose()).get('nodejs_eventloop_utilization');
  [idle, active] = [3000, 1000];
  expect([read(), read()]).toEqual([0.25, 0.25]);
  [idle, active] = [3000, 7000];
  expect(read()).toBe(0.7);
  [idle, active] = [6000, 10_000];
  expect(read()).toBeCloseTo(0.5);
});

test('once is enough: again is an error, with another prefix and in a registry of an application as well, until it is cleared', () => {
  const registry = create();
  expect(() => collectDefaultMetrics(registry)).toThrow(TypeError);
  expect(() => collectDefaultMetrics(registry, { prefix: 'other_' }))
    .toThrow('the default metrics are collected into this registry already; once is enough');
  expect(registry.expose()).not.toContain('other_');
  expect(() => collectDefaultMetrics(createApp().metrics, { prefix: 'other_' })).toThrow(TypeError);
  registry.clear();
  expect(registry.expose()).toBe('');
  collectDefaultMetrics(registry);
  expect(sampleMap(registry.expose()).get('process_resident_memory_bytes')).toBeGreaterThan(0);
});

test('after a clash of names the registry is as it was, and another attempt works once the clash is gone', () => {
  const registry = new Registry();
  const mine = registry.gauge({ name: 'nodejs_gc_duration_seconds', help: 'Mine.' });
  expect(() => collectDefaultMetrics(registry)).toThrow('"nodejs_gc_duration_seconds" is registered already');
  expect([...registry]).toEqual([mine]);
  registry.remove('nodejs_gc_duration_seconds');
  collectDefaultMetrics(registry);
  onTestFinished(() => registry.clear());
  expect(sampleMap(registry.expose()).get('process_resident_memory_bytes')).toBeGreaterThan(0);
});

const WRONG: readonly { readonly options: object; readonly message: string }[] = [
  { options: { prefx: 'a_' }, message: 'unknown option "prefx" of collectDefaultMetrics(); did you mean "prefix"?' },
  { options: { register: new Registry() }, message: 'unknown option "register"' },
  { options: { prefix: 7 }, message: 'prefix of collectDefaultMetrics() is 7; give a string' },
  { options: { prefix: 'a-' }, message: 'invalid metric name "a-process' },
  { options: { labels: 'app' }, message: 'labels of collectDefaultMetrics() is "app"; give an object' },
  { options: { labels: { 'a-b': 'x' } }, message: 'invalid label name' },
  { options: { labels: { le: 'x' } }, message: 'rename it' },
  { options: { labels: { app: {} } }, message: 'default label "app" is an object' },
];

test.for(WRONG)('the options $options are refused, and may be put right', ({ options, message }) => {
  const registry = new Registry();
  const collect = (): void => collectDefaultMetrics(registry, options);
  expect(collect).toThrow(TypeError);
  expect(collect).toThrow(message);
  expect([...registry]).toEqual([]);
  collectDefaultMetrics(registry);
  registry.clear();
});

test('a process that collects them ends by itself, and importing the library loads nothing for them', async () => {
  const entry = fileURLToPath(new URL('../../dist/metrics.js', import.meta.url));
  const code = `
    const { collectDefaultMetrics, Registry } = await import(${JSON.stringify(entry)});
    const loaded = ['v8', 'os'].filter((name) => process.moduleLoadList.includes('NativeModule internal/' + name) || process.moduleLoadList.includes('NativeModule ' + name));
    const registry = new Registry();
    collectDefaultMetrics(registry);
    console.log(loaded.join(), registry.expose().includes('nodejs_version_info'));`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  const [status] = (await once(child, 'close')) as [number];
  expect([status, output]).toEqual([0, ' true\n']);
});
