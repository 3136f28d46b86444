/**
 * One process per core, as the guide shows it: each worker is scraped on a port of its own, and no counter ever falls.
 *
 * @module-tag slow
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createProject } from '../support/command.js';
import { parseExposition } from '../support/exposition-parser.js';

const PAGE = readFileSync(fileURLToPath(new URL('../../docs/guides/deployment.md', import.meta.url)), 'utf8');
const WORKERS = 3;
const SCRAPES = 60;

/** Ports in a row that nobody listens on, below those that outgoing connections get. */
async function freeRow(length: number): Promise<number[]> {
  for (let first = 20_000; ; first += length) {
    const row = Array.from({ length }, (_, index) => first + index);
    const taken = await Promise.all(row.map((port) => isTaken(port)));
    if (!taken.includes(true)) return row;
  }
}

function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(true));
    server.listen(port, () => server.close(() => resolve(false)));
  });
}

/** The samples of a scrape that may only grow, by series. */
async function scrapeCounters(url: string): Promise<Map<string, number>> {
  const response = await fetch(url);
  expect(response.status).toBe(200);
  const growing = parseExposition(await response.text(), 'text')
    .filter(({ type }) => type === 'counter' || type === 'histogram');
  return new Map(
    growing.flatMap(({ samples }) =>
      samples.map(({ name, labels, value }) => [JSON.stringify([name, Object.entries(labels)]), value] as const),
    ),
  );
}

test(
  `${WORKERS} workers of a cluster under load: in ${SCRAPES} scrapes no counter falls`,
  { timeout: 60_000 },
  async () => {
    const [, program = ''] = /^```js run=no\n(import cluster from .*?)^```$/ms.exec(PAGE) ?? [];
    expect(program).toContain('MONITOR_PORT');
    const [port = 0, first = 0] = await freeRow(1 + WORKERS);
    const cwd = createProject({
      'package.json': '{ "type": "module" }',
      'app.js': `import { Postern } from 'postern'; const app = new Postern('users', { logger: false }); app.get('/users/:id', (ctx) => ctx.params.id); export default app;`,
      'main.js': program.replace('9100', String(first)).replace('availableParallelism()', String(WORKERS)),
    });
    const main = fork(join(cwd, 'main.js'), [], {
      cwd,
      execArgv: [],
      env: { ...process.env, PORT: String(port), HOST: '127.0.0.1', DRAIN_DELAY: '0' },
    });
    onTestFinished(() => void main.kill('SIGKILL'));
    const monitors = Array.from({ length: WORKERS }, (_, index) => `http://127.0.0.1:${first + index}/users/metrics/`);
    for (const url of monitors)
      await expect.poll(() => fetch(url).then(({ status }) => status, () => 0)).toBe(200);

    let sent = 0;
    let stopped = false;
    // A connection each, so that the cluster deals them out.
    const load = Promise.all(Array.from({ length: 4 }, async () => {
      while (!stopped) {
        sent += 1;
        expect((await fetch(`http://127.0.0.1:${port}/users/${sent}`, { headers: { connection: 'close' } })).status)
          .toBe(200);
      }
    }));
    const last = new Map<string, Map<string, number>>();
    for (let scrape = 0; scrape < SCRAPES; scrape += 1) {
      const url = monitors[scrape % WORKERS] ?? '';
      const counters = await scrapeCounters(url);
      const fallen = [...(last.get(url) ?? [])].filter(([series, value]) => !((counters.get(series) ?? NaN) >= value));
      expect(fallen, `scrape ${scrape} of ${url}`).toEqual([]);
      last.set(url, counters);
    }
    stopped = true;
    await load;

    const served = await Promise.all(
      monitors.map(async (url) => {
        const counts = [...(await scrapeCounters(url))].filter(
          ([series]) => series.includes('http_request_duration_seconds_count') && series.includes('"/users/:id"'),
        );
        return counts.reduce((sum, [, value]) => sum + value, 0);
      }),
    );
    expect(Math.min(...served)).toBeGreaterThan(0);
    expect(served.reduce((sum, count) => sum + count, 0)).toBe(sent);

    const exited = once(main, 'exit');
    main.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  },
);
