/**
 * Advisories about series that a client can invent.
 *
 * @module-tag slow
 */

import { readdirSync, readFileSync } from 'node:fs';
import { METHODS } from 'node:http';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Postern } from 'postern';
import { createRandom } from '../support/random.js';
import { rawExchange, rawRequest } from '../support/raw.js';
import { createApp, expectFailures, serve } from '../support/serve.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const SERIES = /^(\w+(?:\{[^}]*\})?) /;
/** Every series of an exposition, save those that tell of the process. */
function seriesOf(app: Postern): string[] {
  const lines = app.metrics.expose().split('\n')
    .filter((line) => line !== '' && !/^(?:#|nodejs_|process_|python_)/.test(line));
  return lines.map((line) => SERIES.exec(line)?.[1] ?? line).sort();
}

/** How many requests a connection may have waiting. */
const MAX_EARLY = 100;

/** The statuses of requests that are sent one behind the other, as many on a connection as it takes. */
async function pipeline(port: number, requests: readonly string[]): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  for (let at = 0; at < requests.length; at += MAX_EARLY) {
    const batch = requests.slice(at, at + MAX_EARLY);
    const last = batch.pop() ?? '';
    const bytes = [...batch, last.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')].join('');
    for (const [, status = ''] of (await rawExchange(port, bytes)).matchAll(/HTTP\/1\.1 (\d{3}) /g))
      statuses[status] = (statuses[status] ?? 0) + 1;
  }
  return statuses;
}

test('1,000 methods and 10,000 paths that a client invents add no series (CVE-2022-21698)', async () => {
  const random = createRandom(30);
  const text = (alphabet: string): string =>
    Array.from({ length: 4 + random.int(12) }, () => alphabet[random.int(alphabet.length)]).join('');
  const METHOD = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ-';
  const app = expectFailures(createApp(), 501).get('/users/:id', () => 'user').get('/files/*rest', () => 'file')
    .get('/n/:n(\\d+)', () => 'number');
  app.route('/dav', { PROPFIND: () => 'found' });
  const { port } = await serve(app);

  const methods = async (count: number): Promise<void> => {
    // CONNECT and what node:http does not know end their connection.
    for (let i = 0; i < count; i += 50) {
      const batch = Array.from(
        { length: 50 },
        () => `${text(METHOD)} /${text('abc')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
      );
      await Promise.all(
        [...batch, 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n'].map((bytes) => rawRequest(port, bytes)),
      );
    }
    const known = METHODS.filter((method) => method !== 'CONNECT' && method !== 'HEAD');
    await pipeline(
      port,
      known.flatMap((method) =>
        ['/nowhere', '/users/7', '/dav'].map((path) => `${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`),
      ),
    );
  };
  const target = (): string => {
    const name = text('abcdefghijklmnopqrstuvwxyz0123456789-_~');
    const paths = [
      `/${name}`, `/users/${name}`, `/files/${name}/${name}`, `/n/${name}`, `/n/${random.int(1e9)}`,
      `/${name}?${name}=${name}`, `/users/${name}/`,
    ];
    return random.pick([...paths, `http://${name.replace(/[~_]/g, '')}a/${name}`]);
  };
  const paths = async (count: number): Promise<number> => {
    const requests = Array.from(
      { length: count },
      () =>
        `GET ${target()} HTTP/1.1\r\nHost: ${text('abc')}\r\nX-Request-Id: ${text('abc')}\r\nUser-Agent: ${text('abc')}\r\n\r\n`,
    );
    const statuses = await pipeline(port, requests);
    expect(Object.keys(statuses)).toEqual(['200', '404']);
    return (statuses['200'] ?? 0) + (statuses['404'] ?? 0);
  };
  await methods(50);
  await paths(200);
  const before = seriesOf(app);
  await methods(1000);
  expect(await paths(10_000)).toBe(10_000);
  expect(seriesOf(app)).toEqual(before);

  const counts = before.flatMap(
    (series) => /^http_request_duration_seconds_count\{method="([^"]*)",route="([^"]*)"/.exec(series)?.slice(1) ?? [],
  );
  const labels = {
    methods: new Set(counts.filter((_, i) => i % 2 === 0)),
    routes: new Set(counts.filter((_, i) => i % 2 === 1)),
  };
  expect([...labels.methods].sort()).toEqual([
    'CONNECT',
    'DELETE',
    'GET',
    'OPTIONS',
    'PATCH',
    'POST',
    'PROPFIND',
    'PUT',
    ...(METHODS.includes('QUERY') ? ['QUERY'] : []),
    'TRACE',
    '_OTHER',
  ]);
  expect([...labels.routes].sort()).toEqual(['', '/dav', '/files/*rest', '/n/:n(\\\\d+)', '/users/:id']);
});

test('a method that gets a route has a series of its own from then on, on other paths too', async () => {
  const app = createApp();
  const purge = async (): Promise<number> => (await app.request('/nowhere', { method: 'PURGE' })).status;
  await purge();
  app.route('/cache', { PURGE: () => 'purged' });
  await purge();
  const counts = seriesOf(app).filter((name) => name.startsWith('http_request_duration_seconds_count{'));
  expect(counts).toEqual(
    ['PURGE', '_OTHER'].map((method) => expect.stringContaining(`{method="${method}",route="",status_code="404"}`)),
  );
});

test('the metrics are those of one process: nothing collects those of workers or forks any', () => {
  // Only with the option `diagnostics`: a profile, and the worker that watches the event loop.
  const diagnostics = ['process/blocked-loop.ts', 'monitor/profile.ts'];
  for (const file of readdirSync(`${ROOT}/src`, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /^(?!cli\/).*\.ts$/.test(name),
  )) {
    if (diagnostics.includes(file)) continue;
    expect(readFileSync(`${ROOT}/src/${file}`, 'utf8'), file).not.toMatch(
      /['"]node:(?:cluster|worker_threads|child_process|dgram|tls|http2|vm|inspector)['"]/,
    );
  }
});
