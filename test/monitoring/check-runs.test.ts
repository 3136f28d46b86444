/** When health checks run: once at a time, kept for their age, and started by scrapes. */

import { beforeEach, expect, test, vi } from 'vitest';
import type { Postern } from 'postern';
import { createApp, createRecorder } from '../support/serve.js';
import { VirtualTime } from '../support/virtual-clock.js';

const time = vi.hoisted(() => ({ current: undefined as unknown }));
vi.mock('../../src/base/clock.js', async (load) => {
  const { VirtualTime } = await import('../support/virtual-clock.js');
  const virtual = new VirtualTime();
  time.current = virtual;
  return virtual.replace(await load<object>());
});
let clock: VirtualTime;
beforeEach(() => (clock = time.current as VirtualTime));

interface Run {
  readonly signal: AbortSignal;
  finish(): void;
}

/** A check of which each run ends when it is told to. */
function addCheck(app: Postern, options: { timeout?: number; maxAge?: number } = {}): Run[] {
  const runs: Run[] = [];
  app.health.check('db', (signal) => new Promise<void>((finish) => void runs.push({ signal, finish })), options);
  return runs;
}

const statusOf = (app: Postern): string | undefined => {
  const values = /^service_info\{.*status="(\w+)"/m.exec(app.metrics.expose());
  return values?.[1];
};
const turn = (): Promise<void> => new Promise(setImmediate);

test('a check that hangs is one run, whose end lets the next request start another', async () => {
  const logger = createRecorder();
  const app = createApp({ logger });
  const runs = addCheck(app, { timeout: 500 });
  const first = app.health.report();
  const second = app.health.report();
  await clock.pass(500);
  expect((await first).checks).toEqual({ db: { status: 'FAIL', time: '500 ms' } });
  expect((await second).checks).toEqual({ db: { status: 'FAIL', time: '500 ms' } });
  expect(runs[0]?.signal.aborted).toBe(true);
  await clock.pass(11_500);
  for (let probe = 0; probe < 3; probe += 1) {
    const { status, checks } = await app.health.report();
    expect([status, checks]).toEqual(['FAIL', { db: { status: 'FAIL', time: '12000 ms' } }]);
  }
  expect(runs).toHaveLength(1);
  const reasons = logger.entries.map(({ object }) => String((object['err'] as Error | undefined)?.message));
  expect(reasons).toEqual([
    'health check "db" did not finish within 500 ms',
    'health check "db" is still running after 12 s',
  ]);

  runs[0]?.finish();
  await turn();
  const next = app.health.report();
  expect(runs).toHaveLength(2);
  runs[1]?.finish();
  expect(await next).toMatchObject({ status: 'OK', checks: { db: { status: 'OK', time: '0 ms' } } });
  expect(logger.entries.at(-1)?.message).toBe('health check recovered');
});

test('a run that ends after its time limit is a failure, and the next request runs the check again', async () => {
  const app = createApp();
  const runs = addCheck(app, { timeout: 500 });
  const late = app.health.report();
  await clock.pass(500);
  expect((await late).status).toBe('FAIL');
  runs[0]?.finish();
  await turn();
  expect(app.health.status).toBe('FAIL');
  void app.health.report();
  expect(runs).toHaveLength(2);
});

test('a check that hangs keeps no other check from running', async () => {
  const app = createApp();
  addCheck(app, { timeout: 500 });
  let others = 0;
  app.health.check('cache', () => (others += 1));
  const first = app.health.report();
  await clock.pass(500);
  await first;
  expect((await app.health.report()).checks).toMatchObject({ db: { status: 'FAIL' }, cache: { status: 'OK' } });
  expect(others).toBe(2);
});

test('a result is kept for maxAge, whatever it is', async () => {
  const app = createApp();
  let isHealthy = false;
  let runs = 0;
  app.health.check('db', () => { runs += 1; return isHealthy; }, { maxAge: 3_000 });
  expect((await app.health.report()).status).toBe('FAIL');
  isHealthy = true;
  await clock.pass(2_999);
  expect((await app.health.report()).status).toBe('FAIL');
  expect(runs).toBe(1);
  await clock.pass(1);
  expect((await app.health.report()).status).toBe('OK');
  expect(runs).toBe(2);
});

test('service_info has the status of checks that only scrapes start, one scrape late', async () => {
  const app = createApp();
  let isHealthy = false;
  let runs = 0;
  app.health.check('db', async () => { runs += 1; return isHealthy; });
  statusOf(app);
  await turn();
  expect([statusOf(app), runs]).toEqual(['FAIL', 1]);
  isHealthy = true;
  await clock.pass(5_000);
  expect([statusOf(app), runs]).toEqual(['FAIL', 1]);
  await clock.pass(1);
  expect(statusOf(app)).toBe('FAIL');
  await turn();
  expect([statusOf(app), runs]).toEqual(['OK', 2]);
});

test('a scrape waits for no check and starts none that still runs', async () => {
  const app = createApp();
  const runs = addCheck(app, { timeout: 500 });
  expect(statusOf(app)).toBe('OK');
  await clock.pass(20_000);
  expect(statusOf(app)).toBe('FAIL');
  expect(runs).toHaveLength(1);
});

test.for([-1, NaN, '1'])('the maxAge %s of a check is refused', (maxAge) => {
  const { health } = createApp();
  expect(() => health.check('db', () => true, { maxAge: maxAge as number }))
    .toThrow(/^maxAge of health check "db" is .*; give ms, 0 or more$/);
});
