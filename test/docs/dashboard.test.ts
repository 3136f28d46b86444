/**
 * Each query of the dashboard finds series in a real Prometheus that scrapes two applications.
 *
 * @module-tag prometheus
 */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { monotonicNow } from '../../src/base/clock.js';
import { readPage } from '../support/markdown.js';
import { startPrometheus } from '../support/prometheus.js';
import { createApp, expectFailures, serve } from '../support/serve.js';

interface Dashboard {
  readonly templating: { readonly list: readonly { readonly type: string; readonly query: string }[] };
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
}

const dashboard = JSON.parse(readPage('docs/grafana.json')) as Dashboard;
const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })));
const variables = dashboard.templating.list.filter(({ type }) => type === 'query');

/** A query as Grafana sends it, with all jobs and instances chosen. */
const complete = (query: string): string => query.replaceAll(/\$(?:job|instance)/g, '.*')
  .replaceAll('$__rate_interval', '10s');

/** Keeps a request of libuv under way until the test ends: the opening of a pipe that nobody writes to. */
function holdRequest(): void {
  const folder = mkdtempSync(join(tmpdir(), 'postern-pipe-'));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const reading = open(pipe, 'r');
  onTestFinished(async () => {
    for (const handle of await Promise.all([reading, open(pipe, 'w')])) await handle.close();
    rmSync(folder, { recursive: true });
  });
}

test('Prometheus finds series for each query and each variable of the dashboard', { timeout: 120_000 }, async () => {
  const users = createApp().get('/users/:id', () => 'ok');
  const { port } = await serve(users);
  const shop = createApp({ services: { users } }, 'shop');
  expectFailures(shop, 504);
  // The deadline of a late request has passed when its route may run: that counts as refused.
  shop.use((ctx, next) => {
    const end = monotonicNow() + (ctx.path === '/late' ? 5 : 0);
    while (monotonicNow() < end);
    return next();
  });
  shop.get('/late', () => 'ok').get('/orders', async (ctx) => (await ctx.service('users').get('/users/7')).body);
  const { url, port: shopPort } = await serve(shop);
  const jobs = setInterval(() => void shop.job('mails.send', () => undefined), 500);
  onTestFinished(() => clearInterval(jobs));
  holdRequest();
  const { url: prometheus, stop } = await startPrometheus({ users: port, shop: shopPort }, (job) => `/${job}/metrics/`);
  onTestFinished(stop);
  const found = async (query: string): Promise<Record<string, string>[]> => {
    const answer = await fetch(`${prometheus}/api/v1/query?query=${encodeURIComponent(complete(query))}`);
    const { status, error, data } = (await answer.json()) as {
      status: string;
      error?: string;
      data: { result: { metric: Record<string, string> }[] };
    };
    expect([status, error], query).toEqual(['success', undefined]);
    return data.result.map(({ metric }) => metric);
  };
  const send = async (): Promise<void> => {
    await (await fetch(`${url}/orders`)).text();
    await (await fetch(`${url}/late`, { headers: { 'x-envoy-expected-rq-timeout-ms': '1' } })).text();
  };
  const empty = async (): Promise<string[]> => {
    await send();
    const results = await Promise.all(
      queries.map(async ({ title, expr }) => ((await found(expr)).length === 0 ? title : '')),
    );
    return results.filter((title) => title !== '');
  };

  expect(queries.length).toBeGreaterThan(50);
  await expect.poll(empty, { timeout: 60_000, interval: 500 }).toEqual([]);
  for (const { title, expr, legendFormat } of queries) {
    const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
    for (const series of await found(expr)) expect(Object.keys(series), title).toEqual(expect.arrayContaining(labels));
  }
  for (const { query } of variables) {
    const [, series = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(query) ?? [];
    expect((await found(series)).map((metric) => metric[label]), query).toHaveLength(2);
  }
});
