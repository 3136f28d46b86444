import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os, { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import v8 from 'node:v8';
import { afterEach, expect, test, vi } from 'vitest';
import { RESOLUTION_MS } from '../../src/process/watch.js';
import { collectProcess, type ProcessSampler } from '../../src/process/sampler.js';
import { Registry } from '../../src/metrics/registry.js';
import { parseExposition, sampleMap } from '../support/exposition-parser.js';

vi.mock('../../src/base/clock.js', async (load) => (await import('../support/faked-clock.js')).fakeClock(await load()));

const cleanUps: (() => void)[] = [];

afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const NAMES = [
  'proc_rss_mem_bytes gauge',
  'proc_rss_mem_perc gauge',
  'proc_cpu_perc gauge',
  'process_resident_memory_bytes gauge',
  'process_cpu_user_seconds_total counter',
  'process_cpu_system_seconds_total counter',
  'process_cpu_seconds_total counter',
  'process_start_time_seconds gauge',
  'process_virtual_memory_bytes gauge',
  'process_heap_bytes gauge',
  'process_open_fds gauge',
  'process_max_fds gauge',
  'nodejs_eventloop_lag_seconds gauge',
  'nodejs_eventloop_lag_min_seconds gauge',
  'nodejs_eventloop_lag_max_seconds gauge',
  'nodejs_eventloop_lag_mean_seconds gauge',
  'nodejs_eventloop_lag_stddev_seconds gauge',
  'nodejs_eventloop_lag_p50_seconds gauge',
  'nodejs_eventloop_lag_p90_seconds gauge',
  'nodejs_eventloop_lag_p99_seconds gauge',
  'nodejs_eventloop_utilization gauge',
  'nodejs_active_resources gauge',
  'nodejs_active_resources_total gauge',
  'nodejs_active_handles gauge',
  'nodejs_active_handles_total gauge',
  'nodejs_active_requests gauge',
  'nodejs_active_requests_total gauge',
  'nodejs_heap_size_total_bytes gauge',
  'nodejs_heap_size_used_bytes gauge',
  'nodejs_external_memory_bytes gauge',
  'nodejs_heap_size_limit_bytes gauge',
  'nodejs_heap_space_size_total_bytes gauge',
  'nodejs_heap_space_size_used_bytes gauge',
  'nodejs_heap_space_size_available_bytes gauge',
  'nodejs_version_info gauge',
  'nodejs_gc_duration_seconds histogram',
  'python_gc_collected_objects histogram',
];

test('a real process has every metric on Linux, with values that make sense', async () => {
  const { registry, sampler } = create('', { onError: (name, error) => expect.fail(`${name}: ${error}`) });
  await sampler.start();
  const families = parseExposition(registry.expose(), 'text').filter(({ name }) => !name.startsWith('process_cgroup_'));
  expect(families.map(({ name, type }) => `${name} ${type}`)).toEqual(NAMES);
  const samples = sampleMap(registry.expose('openmetrics'), 'openmetrics');
  for (const [name, value] of samples) {
    if (name !== 'process_max_fds')
      expect(value, name).toSatisfy((number: number) => Number.isFinite(number) && number >= 0);
  }
  for (const name of [
    'proc_rss_mem_bytes',
    'proc_rss_mem_perc',
    'proc_cpu_perc',
    'process_virtual_memory_bytes',
    'process_heap_bytes',
    'process_open_fds',
    'nodejs_heap_size_used_bytes',
  ]) {
    expect(samples.get(name), name).toBeGreaterThan(0);
  }
  expect(samples.get('proc_rss_mem_perc')).toBeLessThan(100);
  expect(samples.get('proc_cpu_perc')).toBeLessThanOrEqual(100);
  expect(samples.get('process_start_time_seconds')).toBeLessThanOrEqual(Date.now() / 1000);
  const [major, minor, patch] = process.version.slice(1).split('.');
  expect(samples.get(`nodejs_version_info{version=${process.version},major=${major},minor=${minor},patch=${patch}}`))
    .toBe(1);
  expect(samples.has('nodejs_heap_space_size_used_bytes{space=new}')).toBe(true);
});

test('promtool objects to three names that dashboards ask for, and to nothing else', { tags: ['prometheus'] }, () => {
  const { registry } = create(recordQuota());
  const { error, status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: registry.expose(),
    encoding: 'utf8',
  });
  if (error !== undefined)
    throw new Error('this test needs promtool; install the Debian package "prometheus"', { cause: error });
  const objections = ['handles', 'requests', 'resources'].map(
    (what) => `nodejs_active_${what}_total non-counter metrics should not have "_total" suffix\n`,
  );
  expect({ status, stdout, stderr }).toEqual({ status: 3, stdout: '', stderr: objections.join('') });
});

test('percentages are of the control group where it has limits, else of the machine', () => {
  fake({ cpu: { user: 1_500_000, system: 500_000 }, memoryBytes: 400_000_000, cpus: 4 });
  const limited = create(recordQuota());
  expect(limited.sampler.read())
    .toEqual({ proc_rss_mem_bytes: 50_000_000, proc_rss_mem_perc: 50, proc_cpu_perc: 100 });
  const samples = sampleMap(limited.registry.expose());
  expect([samples.get('proc_rss_mem_bytes'), samples.get('proc_rss_mem_perc'), samples.get('proc_cpu_perc')])
    .toEqual([50_000_000, 50, 100]);
  const unlimited = create('/nonexistent');
  expect(unlimited.sampler.read())
    .toEqual({ proc_rss_mem_bytes: 50_000_000, proc_rss_mem_perc: 12.5, proc_cpu_perc: 12.5 });
});

test('without a file descriptor, memory and CPU are left out, and the heap is not', () => {
  vi.spyOn(process, 'memoryUsage').mockImplementation(() => {
    throw Object.assign(new Error('EMFILE: too many open files, uv_resident_set_memory'), { code: 'EMFILE' });
  });
  const { sampler, registry } = create('/nonexistent');
  expect(sampler.read()).toEqual({});
  const samples = sampleMap(registry.expose());
  for (const name of ['proc_rss_mem_bytes', 'proc_rss_mem_perc', 'proc_cpu_perc', 'process_resident_memory_bytes'])
    expect(samples.get(name), name).toBe(undefined);
  expect(samples.get('nodejs_heap_size_used_bytes')).toBeGreaterThan(1_000_000);
});

test('a limit above the machine is none, and pinned CPUs are fewer', () => {
  const root = record({
    'proc/self/cgroup': '0::/\n',
    'sys/fs/cgroup/memory.max': '99999999999\n',
    'proc/self/status': 'Cpus_allowed_list:\t0,2-3\n',
  });
  fake({ cpu: { user: 3e6, system: 0 }, memoryBytes: 100_000_000, cpus: 8 });
  const { sampler } = create(root);
  expect(sampler.read()).toEqual({ proc_rss_mem_bytes: 50_000_000, proc_rss_mem_perc: 50, proc_cpu_perc: 25 });
});

test('files under /proc become bytes and counts', () => {
  const root = record({
    'proc/self/status': 'Name:\tnode\nVmSize:\t 1034500 kB\nVmRSS:\t 62020 kB\nVmData:\t 98768 kB\n',
    'proc/self/limits':
      'Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 4096                 files     \n',
    'proc/self/fd/0': '',
    'proc/self/fd/1': '',
    'proc/self/fd/2': '',
  });
  const { registry } = create(root);
  const samples = sampleMap(registry.expose());
  expect(samples.get('process_virtual_memory_bytes')).toBe(1_034_500 * 1024);
  expect(samples.get('process_heap_bytes')).toBe(98_768 * 1024);
  expect(samples.get('process_open_fds')).toBe(2);
  expect(samples.get('process_max_fds')).toBe(1024);
  writeFileSync(
    join(root, 'proc/self/limits'),
    'Max open files            unlimited            unlimited            files     \n',
  );
  expect(sampleMap(registry.expose()).get('process_max_fds')).toBe(Infinity);
});

test('where /proc is missing its metrics have no samples, and elsewhere than on Linux they are not there', () => {
  const without = sampleMap(create('/nonexistent').registry.expose());
  expect([...without.keys()].filter((name) => /_fds|virtual|process_heap/.test(name))).toEqual([]);
  const platform = Object.getOwnPropertyDescriptor(process, 'platform')!;
  Object.defineProperty(process, 'platform', { ...platform, value: 'darwin' });
  cleanUps.push(() => void Object.defineProperty(process, 'platform', platform));
  const { registry } = create();
  expect(registry.get('process_open_fds')).toBeUndefined();
  expect(registry.get('process_cpu_seconds_total')).toBeDefined();
});

test('CPU counters are absolute, however often they are read', () => {
  let user = 1e6;
  vi.spyOn(process, 'cpuUsage').mockImplementation(() => ({ user, system: 500_000 }));
  const { registry } = create();
  registry.expose();
  user = 2e6;
  registry.expose();
  const samples = sampleMap(registry.expose());
  expect(samples.get('process_cpu_user_seconds_total')).toBe(2);
  expect(samples.get('process_cpu_system_seconds_total')).toBe(0.5);
  expect(samples.get('process_cpu_seconds_total')).toBe(2.5);
});

test('a source is read once for each exposition', () => {
  const heapSpaces = vi.spyOn(v8, 'getHeapSpaceStatistics').mockReturnValue([]);
  const { registry } = create();
  registry.expose();
  registry.expose();
  expect(heapSpaces).toHaveBeenCalledTimes(2);
});

test('a source that fails loses its own metrics', () => {
  const errors: string[] = [];
  vi.spyOn(v8, 'getHeapSpaceStatistics').mockImplementation(() => {
    throw new Error('no luck');
  });
  const { registry } = create('', { onError: (name) => errors.push(name) });
  const samples = sampleMap(registry.expose());
  expect(errors).toEqual([
    'nodejs_heap_space_size_total_bytes',
    'nodejs_heap_space_size_used_bytes',
    'nodejs_heap_space_size_available_bytes',
  ]);
  expect(samples.has('nodejs_heap_size_used_bytes')).toBe(true);
});

test('resources are counted by type, and gone when they are', () => {
  let resources = ['TCPSocketWrap', 'Timeout', 'TCPSocketWrap'];
  vi.spyOn(process, 'getActiveResourcesInfo').mockImplementation(() => resources);
  const { registry } = create();
  expect(sampleMap(registry.expose()).get('nodejs_active_resources{type=TCPSocketWrap}')).toBe(2);
  resources = ['Timeout'];
  const samples = sampleMap(registry.expose());
  expect(samples.has('nodejs_active_resources{type=TCPSocketWrap}')).toBe(false);
  expect(samples.get('nodejs_active_resources{type=Timeout}')).toBe(1);
});

test('a blocked event loop and a garbage collection show up', async () => {
  const { registry, sampler } = create();
  await sampler.start();
  await sampler.start();
  const clock = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  clock.enable();
  await expect.poll(() => clock.count).toBeGreaterThan(1);
  clock.disable();
  const end = performance.now() + 300;
  let garbage: unknown[] = [];
  while (performance.now() < end)
    garbage = Array.from({ length: 10_000 }, (_, index) => ({ index, garbage: garbage.length }));
  await expect.poll(() => sampleMap(registry.expose()).get('nodejs_eventloop_lag_max_seconds')).toBeGreaterThan(0.2);
  await expect.poll(() => sampleMap(registry.expose()).get('python_gc_collected_objects_sum{generation=0}'))
    .toBeGreaterThan(0);
  const samples = sampleMap(registry.expose());
  expect(samples.get('nodejs_gc_duration_seconds_count{kind=minor}')).toBeGreaterThan(0);
  expect(sampleMap(registry.expose()).get('nodejs_eventloop_lag_max_seconds'))
    .toBe(samples.get('nodejs_eventloop_lag_max_seconds'));
});

test('a sampler that runs keeps no event loop alive', async () => {
  const before = process.getActiveResourcesInfo();
  const { sampler } = create();
  await sampler.start();
  expect(process.getActiveResourcesInfo()).toEqual(before);
});

test('the clock of the sampler runs once a second and stops with it', async () => {
  vi.useFakeTimers();
  const uptime = vi.spyOn(process, 'uptime').mockReturnValue(0);
  const { sampler } = create();
  await sampler.start();
  const before = uptime.mock.calls.length;
  vi.advanceTimersByTime(3000);
  expect(uptime.mock.calls.length - before).toBe(3);
  sampler.close();
  sampler.close();
  expect(vi.getTimerCount()).toBe(0);
});

test('while the sampler runs, the CPU percentage is of late even when nobody reads it', async () => {
  vi.useFakeTimers();
  let seconds = 0;
  vi.spyOn(process, 'uptime').mockImplementation(() => seconds);
  vi.spyOn(process, 'cpuUsage').mockImplementation(() => ({ user: Math.min(seconds, 50) * 1e6, system: 0 }));
  const { sampler } = create('/nonexistent');
  await sampler.start();
  for (; seconds < 100; seconds++) vi.advanceTimersByTime(1000);
  expect(sampler.read().proc_cpu_perc).toBe(0);
});

/** A process that has run for 4 s and has 50 MB, on a machine. */
function fake(given: { cpu: NodeJS.CpuUsage; memoryBytes: number; cpus: number }): void {
  const memory = { rss: 50_000_000, heapTotal: 3, heapUsed: 2, external: 1, arrayBuffers: 0 };
  vi.spyOn(process, 'memoryUsage').mockReturnValue(memory);
  vi.spyOn(process, 'cpuUsage').mockReturnValue(given.cpu);
  vi.spyOn(process, 'uptime').mockReturnValue(4);
  vi.spyOn(os, 'totalmem').mockReturnValue(given.memoryBytes);
  vi.spyOn(os, 'availableParallelism').mockReturnValue(given.cpus);
}

/** @param root prefix of `/proc` and `/sys` */
function create(
  root?: string,
  options: ConstructorParameters<typeof Registry>[0] = {},
): { readonly registry: Registry; readonly sampler: ProcessSampler } {
  const registry = new Registry(options);
  const sampler = collectProcess(registry, root);
  cleanUps.push(() => sampler.close());
  return { registry, sampler };
}

function recordQuota(): string {
  return record({
    'proc/self/cgroup': '0::/\n',
    'sys/fs/cgroup/memory.max': '100000000\n',
    'sys/fs/cgroup/cpu.max': '50000 100000\n',
  });
}

function record(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'postern-'));
  cleanUps.push(() => rmSync(root, { recursive: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}
