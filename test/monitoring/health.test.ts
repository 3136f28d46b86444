/** Health checks, and when they run. */

import { describe, expect, test } from 'vitest';
import type { HealthCheck, HealthDocument } from 'postern';
import { RETURNED, THROWN } from '../support/hostile-values.js';
import { activeTasksOf, createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

test('health checks: FAIL and 503 while one rejects, returns false or takes too long', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 503);
  const { url } = await serve(app);
  const health = async (): Promise<[number, Record<string, unknown>]> => {
    const response = await fetch(`${url}/users/health/`);
    return [response.status, (await response.json()) as Record<string, unknown>];
  };
  app.health.check('good', () => true);
  expect(await health()).toMatchObject([
    200,
    { status: 'OK', checks: { good: { status: 'OK', time: expect.stringMatching(/^\d+ ms$/) } } },
  ]);
  app.health.check('rejects', async () => Promise.reject(new Error('secret reason')));
  app.health.check('says no', () => false);
  let aborted = false;
  app.health.check('hangs', (signal) => new Promise(() => signal.addEventListener('abort', () => (aborted = true))), {
    timeout: 20,
  });
  const [status, document] = await health();
  expect(status).toBe(503);
  expect(document).toMatchObject({
    service: 'users',
    status: 'FAIL',
    checks: {
      good: { status: 'OK' },
      rejects: { status: 'FAIL' },
      'says no': { status: 'FAIL' },
      hangs: { status: 'FAIL' },
    },
  });
  expect(JSON.stringify(document)).not.toContain('secret');
  expect(aborted).toBe(true);
  expect(logger.entries.filter(({ level }) => level === 'warn').map(({ object }) => object['check']))
    .toEqual(['says no', 'rejects', 'hangs']);
  expect(() => app.health.check('good', () => true)).toThrow(TypeError);
});

test.for<[message: string, name: unknown, check: unknown]>([
  ['the name of a health check is ""; give a text', '', () => true],
  ['the name of a health check is undefined; give a text', undefined, () => true],
  ['health check "db" has no function; give it as the second argument', 'db', undefined],
])('%s: a TypeError', ([message, name, check]) => {
  expect(() => createApp().health.check(name as string, check as () => boolean)).toThrow(new TypeError(message));
});

test('probes that come at the same time share one round of checks', async () => {
  const app = createApp();
  let runs = 0;
  let release = (): void => undefined;
  app.health.check('db', () => { runs += 1; return new Promise<void>((resolve) => (release = resolve)); });
  const { url } = await serve(app);
  const probes = Array.from({ length: 10 }, () => fetch(`${url}/users/health/`));
  await expect.poll(() => activeTasksOf(app)).toBe(10);
  release();
  await Promise.all(probes);
  expect(runs).toBe(1);
  const later = fetch(`${url}/users/health/`);
  await expect.poll(() => runs).toBe(2);
  release();
  await later;
});

test('probes share the round that began after a check was added, when the round before it ends, too', async () => {
  const { health } = createApp();
  const releases: (() => void)[] = [];
  health.check('db', () => new Promise<void>((resolve) => releases.push(resolve)));
  const probes = [health.report()];
  health.check('cache', () => true);
  probes.push(health.report());
  releases[0]?.();
  await probes[0];
  await new Promise(setImmediate);
  probes.push(health.report());
  const runs = releases.length;
  for (const release of releases) release();
  const documents = await Promise.all(probes);
  expect(documents.map(({ checks }) => Object.keys(checks ?? {}).length)).toEqual([1, 2, 2]);
  expect(runs).toBe(2);
});

test('a health check that begins to fail is seen by the next probe', async () => {
  let healthy = true;
  const app = expectFailures(createApp(), 503);
  app.health.check('x', () => healthy);
  const { url } = await serve(app);
  expect((await fetch(`${url}/users/health/`)).status).toBe(200);
  healthy = false;
  expect((await fetch(`${url}/users/health/`)).status).toBe(503);
});

test('requests in memory one after the other run the checks each, although no turn of the event loop is between them', async () => {
  let healthy = true;
  const app = expectFailures(createApp(), 503);
  app.health.check('x', () => healthy);
  const health = async (): Promise<number> => (await app.request('/users/health/')).status;
  expect(await health()).toBe(200);
  healthy = false;
  expect(await health()).toBe(503);
});

describe.for(Object.keys(THROWN))('%s', (group) => {
  const values = Object.entries(THROWN[group] ?? {});

  test.for<[string, (create: () => unknown) => HealthCheck]>([
    ['throws', (create) => () => { throw create(); }],
    ['throws later', (create) => async () => { throw create(); }],
    ['rejects with', (create) => () => Promise.reject(create() as Error)],
  ])('that a check %s is a failure of that check, which may recover', async ([, checkOf]) => {
    const logger = createRecorder();
    const app = expectFailures(createApp({ logger }), 503);
    let isHealthy = false;
    for (const [name, create] of values) {
      const fail = checkOf(create);
      app.health.check(name, (signal) => isHealthy || fail(signal));
    }
    const { url } = await serve(app);
    const ask = async (): Promise<[number, string, unknown]> => {
      const response = await fetch(`${url}/users/health/`, { signal: AbortSignal.timeout(20_000) });
      const { status, checks } = (await response.json()) as HealthDocument;
      return [response.status, status, Object.fromEntries(values.map(([name]) => [name, checks?.[name]?.status]))];
    };
    const all = (status: string): unknown => Object.fromEntries(values.map(([name]) => [name, status]));
    expect(await ask()).toEqual([503, 'FAIL', all('FAIL')]);
    isHealthy = true;
    expect(await ask()).toEqual([200, 'OK', all('OK')]);
    expect(logger.entries.map(({ level, message }) => `${level} ${message}`)).toEqual([
      ...values.map(() => 'warn health check fails'),
      ...values.map(() => 'warn health check recovered'),
    ]);
  });
});

test.for(Object.keys(RETURNED))('%s that a check returns leaves the endpoint an answer', async (group) => {
  const app = createApp();
  for (const [name, create] of Object.entries(RETURNED[group] ?? {})) app.health.check(name, () => create());
  const { url } = await serve(app);
  const response = await fetch(`${url}/users/health/`, { signal: AbortSignal.timeout(20_000) });
  if (response.status === 503) expectFailures(app, 503);
  expect([200, 503]).toContain(response.status);
  const { checks } = (await response.json()) as { checks: Record<string, { status: string }> };
  const rejected = Object.entries(checks).filter(([name]) => /promise|object whose then/.test(name));
  expect(rejected.map(([, { status }]) => status)).toEqual(rejected.map(() => 'FAIL'));
});
