/** Health checks, and when they run. */

import { expect, test } from 'vitest';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

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

test('probes that come at the same time share one round of checks', async () => {
  const app = createApp();
  let runs = 0;
  let release = (): void => undefined;
  app.health.check('db', () => { runs += 1; return new Promise<void>((resolve) => (release = resolve)); });
  const { url } = await serve(app);
  const probes = Array.from({ length: 10 }, () => fetch(`${url}/users/health/`));
  await expect.poll(() => app.metrics.expose()).toContain('active_task_count 10.0');
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
