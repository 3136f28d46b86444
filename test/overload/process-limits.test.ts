/**
 * Limits of the process: requests are refused while a limit is exceeded, and monitoring endpoints answer.
 *
 * @module-tag slow
 */

import { afterAll, expect, onTestFinished, test } from 'vitest';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

/** Stops the event loop. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test('while the event loop is late requests get 503 with Retry-After and a code of their own, monitoring is served, and it ends', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger, loadShedding: { maxEventLoopDelay: 100, retryAfter: 7 } }), 503);
  app.get('/', () => 'ok');
  const { url } = await serve(app);
  expect((await fetch(url)).status).toBe(200);

  // Every turn takes twice as long as the limit, until the refusals were read: how fast the machine is does not matter.
  let isLate = true;
  onTestFinished(() => void (isLate = false));
  setImmediate(function keepLate() {
    block(220);
    if (isLate) setImmediate(keepLate);
  });
  await expect.poll(async () => (await fetch(url)).status, { timeout: 10_000 }).toBe(503);
  const ask = (path: string, method = 'GET'): Promise<Response> => fetch(url + path, { method });
  const asked = ['GET', 'POST', 'OPTIONS'].map((method) => ask('/users/health/', method));
  const [refused, unmatched, ...health] = await Promise.all([ask('/'), ask('/nowhere'), ...asked]);
  isLate = false;
  expect([refused, unmatched, ...health].map(({ status }) => status)).toEqual([503, 503, 200, 405, 204]);
  expect(refused.headers.get('retry-after')).toBe('7');
  expect(await refused.json()).toEqual({
    message: 'Service unavailable.',
    description: 'The service has more to do than it can; try again later.',
    error_code: { name: 'framework_overloaded', value: 999503 },
  });
  expect(app.metrics.expose()).toContain('http_requests_refused_total{route="/",reason="event_loop"} 2.0\n');

  await expect.poll(async () => (await fetch(url)).status).toBe(200);
  const messages = logger.entries.filter(({ level }) => level !== 'debug').map(({ message }) => message);
  expect(messages).toEqual(['overloaded: requests are refused', 'no longer overloaded: no more requests are refused']);
});

test('without the option a late event loop refuses nobody', async () => {
  const app = createApp().get('/', () => 'ok').get('/slow', () => { block(800); return 'slow'; });
  const { url } = await serve(app);
  await fetch(url);
  const statuses = await Promise.all(['/slow', '/', '/'].map(async (path) => (await fetch(url + path)).status));
  expect(statuses).toEqual([200, 200, 200]);
});

test('application middleware runs for refused requests, so that its headers are on the 503', async () => {
  const app = expectFailures(createApp({ loadShedding: { maxMemoryPercent: 1 } }), 503);
  const ran: string[] = [];
  app.use(async (_ctx, next) => {
    const reply = await next();
    reply.headers.set('access-control-allow-origin', '*');
    return reply;
  });
  app.group('/group', (group) => {
    group.use((_ctx, next) => (ran.push('group'), next()));
    group.get('', () => 'ok');
  });
  await holdMemory();
  const { url } = await serve(app);
  await expect.poll(async () => (await fetch(`${url}/group`)).status, { timeout: 5000 }).toBe(503);
  ran.length = 0;
  const refused = await fetch(`${url}/group`);
  expect([refused.status, refused.headers.get('access-control-allow-origin'), ran]).toEqual([503, '*', []]);
});

test('{ observe: true } refuses nothing, and counts what would be refused', async () => {
  const app = createApp({ loadShedding: { maxMemoryPercent: 1, observe: true } }).get('/', () => 'ok');
  await holdMemory();
  const { url } = await serve(app);
  await expect.poll(async () => (await fetch(url)).status === 200 && app.metrics.expose(), { timeout: 5000 })
    .toMatch(/^http_requests_refusable_total\{route="\/",reason="memory"\} /m);
});

test('while memory is short requests are refused', async () => {
  const app = expectFailures(createApp({ loadShedding: { maxMemoryPercent: 1 } }), 503).get('/', () => 'ok');
  await holdMemory();
  const { url } = await serve(app);
  await expect.poll(async () => (await fetch(url)).status, { timeout: 5000 }).toBe(503);
  expect((await fetch(`${url}/users/ping/`)).status).toBe(200);
});

/** More than one percent of the process's memory limit, as its own metrics tell. */
let held: Buffer | undefined;
afterAll(() => void (held = undefined));

async function holdMemory(): Promise<void> {
  const metrics = (await (await createApp().request('/users/metrics/?json')).json()) as Record<string, number>;
  const limit = ((metrics['proc_rss_mem_bytes'] ?? 0) * 100) / (metrics['proc_rss_mem_perc'] ?? 1);
  held ??= Buffer.alloc(Math.ceil(limit / 90), 1);
}
