/**
 * A real Prometheus scrapes a real application in both formats, and promtool has nothing against what it gets.
 *
 * @module-tag prometheus
 * @module-tag slow
 */

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startPrometheus } from '../support/prometheus.js';
import { createApp, serve } from '../support/serve.js';

/** What promtool objects to in names that SPEC.md and CONTRACT.md fix. */
const FIXED = new Set([
  'active_task_count non-histogram and non-summary metrics should not have "_count" suffix',
  'total_task_count non-histogram and non-summary metrics should not have "_count" suffix',
  ...['handles', 'requests', 'resources'].map(
    (what) => `nodejs_active_${what}_total non-counter metrics should not have "_total" suffix`,
  ),
]);

/** Prometheus asks for OpenMetrics; behind this it asks for the text format alone. */
async function startTextProxy(target: number): Promise<number> {
  const server = createServer((req, res) => {
    const upstream = request(
      {
        port: target,
        host: '127.0.0.1',
        path: req.url,
        headers: {
          accept: 'text/plain;version=0.0.4',
          'accept-encoding': req.headers['accept-encoding'] ?? 'identity',
        },
      },
      (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      },
    );
    upstream.on('error', () => res.destroy()).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test('Prometheus scrapes OpenMetrics and text 0.0.4: targets up, series as expected', { timeout: 60_000 }, async () => {
  const app = createApp().get('/things/:id', () => 'ok');
  app.metrics
    .counter({ name: 'odd_total', help: 'With "quotes" and \\ and\nlines.', labelNames: ['label'] })
    .inc({ label: 'a"b\\c\nd|é' }, 5);
  const { url, port } = await serve(app);
  for (const id of ['1', '2', '3']) await fetch(`${url}/things/${id}`);
  await fetch(`${url}/nowhere/secret`);
  const targets = { openmetrics: port, text: await startTextProxy(port) };
  const { url: prometheus, stop } = await startPrometheus(targets);
  onTestFinished(stop);
  const api = async (path: string): Promise<unknown> =>
    ((await (await fetch(`${prometheus}/api/v1/${path}`)).json()) as { data: unknown }).data;
  type Vector = { result: { metric: Record<string, string>; value: [number, string] }[] };
  const query = async (expression: string): Promise<Vector['result']> =>
    ((await api(`query?query=${encodeURIComponent(expression)}`)) as Vector).result;

  await expect.poll(() => query('up == 1 and scrape_samples_scraped > 100'), { timeout: 20_000, interval: 200 })
    .toHaveLength(2);
  const { activeTargets } = (await api('targets')) as { activeTargets: { health: string; lastError: string }[] };
  expect(activeTargets.map(({ health, lastError }) => [health, lastError])).toEqual([['up', ''], ['up', '']]);

  for (const job of ['openmetrics', 'text']) {
    const value = async (selector: string): Promise<number[]> => (await query(selector.replace('{', `{job="${job}",`)))
      .map((row) => Number(row.value[1]));
    expect(await value('http_request_duration_seconds_count{route="/things/:id",status_code="200"}'), job).toEqual([3]);
    expect(await value('http_request_duration_seconds_bucket{route="/things/:id",le="+Inf"}'), job).toEqual([3]);
    expect(await value('http_request_duration_seconds_count{status_code="404",route=""}'), job).toEqual([1]);
    expect(await value('odd_total{label="a\\"b\\\\c\\nd|é"}'), job).toEqual([5]);
    expect((await value('request_count_total{}'))[0], job).toBeGreaterThanOrEqual(4);
    expect(await value('service_info{service="users",application_version="1.4.2",status="OK"}'), job).toEqual([1]);
    expect(await value('python_gc_collected_objects_bucket{generation="0",le="500.0"}'), job).toHaveLength(1);
    expect((await value('proc_rss_mem_bytes{}'))[0], job).toBeGreaterThan(1e7);
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'process_start_time_seconds',
      'process_open_fds',
      'process_max_fds',
      'nodejs_eventloop_lag_p99_seconds',
      'nodejs_heap_size_used_bytes',
      'nodejs_version_info',
      'nodejs_external_memory_bytes',
    ]) {
      expect(await value(`${name}{}`), `${job} ${name}`).toHaveLength(1);
    }
  }
});

test(
  'Prometheus scrapes the listener for monitoring through the drain, to the end of the close hooks',
  { timeout: 60_000 },
  async () => {
    const app = createApp({ monitor: { host: '127.0.0.1', port: 0 } }).get('/', () => 'ok');
    let release: () => void = () => undefined;
    const inHook = new Promise<void>((resolve) => app.onClose(() => {
      resolve();
      return new Promise<void>((done) => (release = done));
    }));
    const { url, monitor } = await app.listen({ host: '127.0.0.1', port: 0 });
    const { url: prometheus, stop } = await startPrometheus({ users: monitor?.port ?? 0 });
    onTestFinished(stop);
    const count = async (expression: string): Promise<number> => {
      const answer = (await (
        await fetch(`${prometheus}/api/v1/query?query=${encodeURIComponent(expression)}`)
      ).json()) as { data: { result: unknown[] } };
      return answer.data.result.length;
    };
    await expect.poll(() => count('up == 1 and on() service_info{status="OK"} == 1'), { timeout: 20_000, interval: 200 })
      .toBe(1);
    const closed = app.close();
    await inHook;
    await expect(fetch(url)).rejects.toThrow();
    await expect
      .poll(() => count('up == 1 and on() service_info{status="DRAINING"} == 1'), { timeout: 20_000, interval: 200 })
      .toBe(1);
    expect(await count('min_over_time(up[1m]) == 1')).toBe(1);
    release();
    await closed;
    await expect.poll(() => count('up == 0'), { timeout: 20_000, interval: 200 }).toBe(1);
  },
);

test('promtool check metrics objects to the names that the spec fixes, and to nothing else', async () => {
  const app = createApp().get('/', () => 'ok');
  const { url } = await serve(app);
  await fetch(url);
  const text = await (await fetch(`${url}/users/metrics/`)).text();
  const { stdout, stderr, error } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  expect(error, 'promtool comes with the Debian package prometheus').toBeUndefined();
  const objections = `${stdout}${stderr}`.split('\n').filter((line) => line.trim() !== '');
  expect(objections.filter((line) => !FIXED.has(line.trim()))).toEqual([]);
});
