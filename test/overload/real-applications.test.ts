/**
 * Overload protection of a whole application in virtual time: what counts as load, and what does not.
 *
 * @module-tag slow
 */

import { setImmediate as turn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { BadRequest, reply, type Context, type Postern } from 'postern';
import { MemoryClients } from '../support/memory-clients.js';
import { createApp, expectFailures } from '../support/serve.js';
import { createPool, time } from '../support/virtual-clock.js';

vi.mock('../../src/base/clock.js', async (load) =>
  (await import('../support/virtual-clock.js')).time.replace(await load()),
);

/** How clients wait for their replies: they say how long, or disconnect. */
type Patience = 'states its deadline' | 'disconnects';

interface Outcome {
  readonly sentMs: number;
  /** 499 for a request whose client disconnected. */
  readonly status: number;
}

/** Clients of one application. */
class Clients {
  readonly outcomes: Record<string, Outcome[]> = {};
  readonly #clients: MemoryClients;
  #open = 0;

  constructor(
    app: Postern,
    readonly patienceMs: number,
    readonly patience: Patience,
  ) {
    this.#clients = new MemoryClients(app);
  }

  send(path: string): void {
    this.#open += 1;
    const sentMs = time.nowMs;
    let isOver = false;
    const end = (status: number): void => {
      isOver = true;
      this.#open -= 1;
      (this.outcomes[path] ??= []).push({ sentMs, status });
    };
    const isStated = this.patience === 'states its deadline';
    const headers = isStated ? { 'x-envoy-expected-rq-timeout-ms': String(this.patienceMs) } : {};
    const connection = this.#clients.get(path, headers, end);
    if (!isStated) time.after(this.patienceMs, () => {
      if (isOver) return;
      connection.destroy();
      end(499);
    });
  }

  /** 10 ms. The requests reach their handlers before time passes. */
  async pass(): Promise<void> {
    for (let turns = 0; turns < 12; turns += 1) await turn();
    await time.pass(10);
  }

  async settle(): Promise<void> {
    while (this.#open > 0) await this.pass();
  }

  statuses(path: string, fromMs = 0): number[] {
    return (this.outcomes[path] ?? []).filter(({ sentMs }) => sentMs >= fromMs).map(({ status }) => status);
  }
}

async function start(app: Postern, patienceMs: number, patience: Patience): Promise<Clients> {
  // Modules are loaded with the first request, which takes real time.
  await (await app.get('/warm', () => 'warm').request('/warm')).text();
  return new Clients(app, patienceMs, patience);
}

test('a route with five times the load that it can take refuses requests, if every client disconnects', async () => {
  const app = expectFailures(createApp(), 503).get('/work', createPool(10, 100));
  const clients = await start(app, 1000, 'disconnects');
  for (let i = 0; i < 600; i += 1) {
    for (let n = 0; n < 5; n += 1) clients.send('/work');
    await clients.pass();
  }
  await clients.settle();
  expect(clients.statuses('/work')).toContain(503);
  expect(app.metrics.expose()).toMatch(/http_requests_refused_total\{route="\/work",reason="queue"\}/);
  expect(clients.statuses('/work')).toContain(200);
});

test('middleware that is added while a route is overloaded does not make its limiter forget', async () => {
  const app = expectFailures(createApp(), 503).get('/work', createPool(10, 100));
  const clients = await start(app, 1000, 'disconnects');
  let addedMs = Infinity;
  for (let i = 0; i < 700; i += 1) {
    for (let n = 0; n < 5; n += 1) clients.send('/work');
    await clients.pass();
    // Not at the first refusal: the reply to it may come before others that were sent earlier.
    if (addedMs === Infinity && clients.statuses('/work').filter((status) => status === 503).length > 100) {
      addedMs = time.nowMs;
      app.use((_ctx, next) => next());
    }
    if (time.nowMs > addedMs + 500) break;
  }
  await clients.settle();
  expect(addedMs).toBeLessThan(Infinity);
  expect(clients.statuses('/work', addedMs)).toContain(503);
});

test.for<[string, (ctx: Context) => unknown]>([
  ['throw at once', () => { throw new Error('no database'); }],
  ['throw what is not an error', () => { throw 'no database'; }],
  ['reject', async () => { throw new Error('no database'); }],
])('requests whose handlers %s do not count as load: the others are served after an overload', async ([, fail]) => {
  const app = expectFailures(createApp(), 500, 503);
  const work = createPool(10, 100);
  app.get('/work', (ctx) => (ctx.query.has('fail') ? fail(ctx) as string : work()));
  const clients = await start(app, 1000, 'states its deadline');
  for (let i = 0; i < 300; i += 1) {
    for (let n = 0; n < 5; n += 1) clients.send('/work');
    await clients.pass();
  }
  // Few requests that take their time, among many that fail. The overload may take some seconds to end.
  const calmMs = time.nowMs + 5000;
  for (let i = 0; i < 800; i += 1) {
    if (i % 10 === 0) clients.send('/work');
    for (let n = 0; n < 5; n += 1) clients.send('/work?fail');
    await clients.pass();
  }
  await clients.settle();
  expect(clients.statuses('/work', calmMs).filter((status) => status !== 200)).toEqual([]);
  expect(new Set(clients.statuses('/work?fail', calmMs))).toEqual(new Set([500]));
});

test.for<[string, () => unknown]>([
  ['throw', () => { throw new BadRequest(); }],
  ['answer with', () => reply({}, { status: 400 })],
])('quick requests whose handlers %s a 400 do not make an overloaded route look quick', async ([, refuse]) => {
  const app = expectFailures(createApp(), 503);
  const work = createPool();
  app.get('/work', (ctx) => (ctx.query.has('bad') ? refuse() as string : work()));
  const clients = await start(app, 1000, 'states its deadline');
  for (let i = 0; i < 400; i += 1) {
    for (let n = 0; n < 3; n += 1) clients.send('/work');
    clients.send('/work?bad');
    await clients.pass();
  }
  await clients.settle();
  expect(clients.statuses('/work')).toContain(503);
});
