/** Work that is not a request: what it has, where it is counted, and how it ends. */

import { AsyncLocalStorage } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { describe, expect, onTestFinished, test } from 'vitest';
import { HttpError, type Job, type JobTraceMessage, type Postern } from 'postern';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const NEW_ID = /^[0-9a-f-]{36}$/;

/** An application that calls `billing`, whose requests are kept. */
function createShop(options: object = {}) {
  const sent: Request[] = [];
  const logger = createRecorder();
  const billing = (request: Request): Response => {
    sent.push(request);
    return new Response(null, { status: 204 });
  };
  return { shop: createApp({ logger, services: { billing }, ...options }, 'shop'), sent, logger };
}

/** A promise with its function. */
function opened(): { done: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const done = new Promise<void>((resolve) => (open = resolve));
  return { done, open };
}

const metricsOf = (app: Postern): string[] =>
  app.metrics.expose().split('\n').filter((line) => /^job_duration_seconds_count|^active_task_count/.test(line));

test('a job begins at once, has name, id, log and signal, and resolves to what its function returns', async () => {
  const { shop, logger } = createShop();
  let seen: Job | undefined;
  const done = shop.job('orders.placed', (job) => {
    seen = job;
    job.log.info({ order: 7 }, 'placed');
    return 42;
  });
  expect(seen).toMatchObject({ name: 'orders.placed', id: expect.stringMatching(NEW_ID), signal: { aborted: false } });
  expect(await done).toBe(42);
  expect(logger.entries).toEqual([{ level: 'info', object: { request_id: seen?.id, order: 7 }, message: 'placed' }]);
});

describe('headers of a message', () => {
  const id = { 'x-request-id': 'r1' };
  const fresh = { 'x-request-id': expect.stringMatching(NEW_ID) };
  const trace = { traceparent: TRACEPARENT, tracestate: 'a=1', baggage: 'tenant=7' };
  const cases: readonly { what: string; headers: object | null | undefined; passed: object }[] = [
    { what: 'strings', headers: { ...id, ...trace }, passed: { ...id, ...trace } },
    {
      what: 'Buffers, and names in any case',
      headers: { 'X-Request-Id': Buffer.from('r1'), Traceparent: Buffer.from(TRACEPARENT) },
      passed: { ...id, traceparent: TRACEPARENT },
    },
    { what: 'other names', headers: { ...id, authorization: 'secret', 'content-type': 'x' }, passed: id },
    {
      what: 'values that are neither text nor bytes',
      headers: { ...id, traceparent: 7, tracestate: ['a=1'], baggage: null },
      passed: id,
    },
    {
      what: 'values that a header cannot carry',
      headers: { ...id, tracestate: 'a\r\nb: c', baggage: 'x'.repeat(9000), traceparent: 'trace\u2028' },
      passed: id,
    },
    { what: 'an id that is not one', headers: { 'x-request-id': 'a b' }, passed: fresh },
    { what: 'none', headers: undefined, passed: fresh },
    { what: 'null', headers: null, passed: fresh },
  ];
  test.for(cases)('are passed on by calls and by outgoingHeaders(): $what', async ({ headers, passed }) => {
    const { shop, sent } = createShop();
    const out = await shop.job('mail', { headers }, async (job) => {
      await job.service('billing').post('/invoices', { json: {} });
      return job.outgoingHeaders();
    });
    expect(out).toEqual(passed);
    const received = Object.fromEntries(sent[0]?.headers ?? []);
    for (const name of ['x-request-id', 'traceparent', 'tracestate', 'baggage', 'authorization'])
      expect([name, received[name]]).toEqual([name, out[name]]);
  });
});

test('ctx.outgoingHeaders() has the id and the trace of a request; its baggage is not there for the public', async () => {
  const { shop } = createShop();
  shop.get('/', { public: true }, (ctx) => ctx.outgoingHeaders());
  const headers = { 'x-request-id': 'r1', traceparent: TRACEPARENT, baggage: 'tenant=7', cookie: 'a=1' };
  const ask = async (more: object): Promise<unknown> =>
    (await shop.request('/', { headers: { ...headers, ...more } })).json();
  expect(await ask({})).toEqual({ 'x-request-id': 'r1', traceparent: TRACEPARENT, baggage: 'tenant=7' });
  expect(await ask({ 'x-postern-scope': 'public' })).toEqual({ 'x-request-id': 'r1', traceparent: TRACEPARENT });
});

describe('a job that fails', () => {
  const fails: Record<string, () => unknown> = {
    'throws an error': () => {
      throw new Error('boom');
    },
    rejects: () => Promise.reject(new Error('boom')),
    'throws undefined': () => {
      throw undefined;
    },
    'throws a Proxy that cannot be read': () => {
      throw hostile;
    },
  };
  const hostile = new Proxy({}, { get: refuse, ownKeys: refuse, getPrototypeOf: refuse });
  function refuse(): never {
    throw new Error('unreadable');
  }
  test.for(Object.keys(fails))('is logged once with its id, and ends no process: one that %s', async (what) => {
    const { shop, logger } = createShop();
    expectFailures(shop, 'job failed');
    const fail = (): unknown => fails[what]?.();
    // Nobody awaits this one: a rejection that nobody handles would fail this test run.
    void shop.job('mail', { headers: { 'x-request-id': 'r1' } }, fail);
    const awaited = shop.job('mail', { headers: { 'x-request-id': 'r2' } }, fail);
    expect(await awaited.then(() => 'done', () => 'rejected')).toBe('rejected');
    const line = { level: 'error', message: 'job failed', job: 'mail', hasError: true };
    const lines = logger.entries.map(({ object, level, message }) => {
      const { job, request_id } = object;
      return { level, message, job, request_id, hasError: 'err' in object };
    });
    expect(lines).toEqual([{ ...line, request_id: 'r1' }, { ...line, request_id: 'r2' }]);
  });
});

test('a job is an active task, and is counted by name and outcome; beyond 100 names as _OTHER', async () => {
  const { shop } = createShop();
  expectFailures(shop, 'job failed');
  const { done, open } = opened();
  const running = shop.job('slow', () => done);
  expect(metricsOf(shop)).toContain('active_task_count 1.0');
  open();
  await running;
  await shop.job('slow', () => Promise.reject(new Error('boom'))).catch(() => undefined);
  expect(metricsOf(shop).sort()).toEqual([
    'active_task_count 0.0',
    'job_duration_seconds_count{name="slow",outcome="done"} 1.0',
    'job_duration_seconds_count{name="slow",outcome="failed"} 1.0',
  ]);
  for (let n = 0; n < 120; n += 1) await shop.job(`job ${n}`, () => undefined);
  expect(metricsOf(shop)).toContain('job_duration_seconds_count{name="_OTHER",outcome="done"} 21.0');
  expect(metricsOf(shop)).toHaveLength(103);
});

describe('the end of a job', () => {
  test('timeout aborts the signal and ends the calls, not the function', async () => {
    const { shop, logger } = createShop({ services: { billing: () => new Promise(() => undefined) } });
    const seen = await shop.job('mail', { timeout: 50 }, async (job) => {
      const aborted = new Promise((resolve) => job.signal.addEventListener('abort', () => resolve(job.signal.reason)));
      const call = await job.service('billing').get('/').catch((error: unknown) => error);
      return [call, await aborted];
    });
    expect(seen).toMatchObject([{ statusCode: 504 }, { statusCode: 504 }]);
    expect(logger.entries).toEqual([]);
  });

  test('a drain waits for it', async () => {
    const { shop } = createShop();
    const { done, open } = opened();
    const events: string[] = [];
    shop.onClose(() => void events.push('closed'));
    const job = shop.job('mail', async () => {
      await done;
      events.push('done');
    });
    const closed = shop.close();
    open();
    await Promise.all([job, closed]);
    expect(events).toEqual(['done', 'closed']);
  });

  test('its signal aborts when the timeout of the drain is over, and not before', async () => {
    const { shop, logger } = createShop();
    const aborted = shop.job('mail', (job) => new Promise((resolve) => {
      job.signal.addEventListener('abort', () => resolve(job.signal.reason));
    }));
    await shop.close({ timeout: 50 });
    expect(await aborted).toMatchObject({ statusCode: 503 });
    expect(logger.entries).toMatchObject([{ level: 'warn', object: { jobs: 1, tracked: 0, request_count: 0 } }]);
  });

  test('a job that would begin after app.closing has aborted is a 503, and is neither run nor logged', async () => {
    const { shop, logger } = createShop();
    await shop.close();
    let hasRun = false;
    const late = shop.job('mail', () => void (hasRun = true));
    await expect(late).rejects.toMatchObject({ statusCode: 503 });
    // Nobody handles this one.
    void shop.job('mail', () => undefined);
    expect([hasRun, logger.entries]).toEqual([false, []]);
  });
});

describe('postern.job', () => {
  const channel = tracingChannel<string, JobTraceMessage>('postern.job');
  const events = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

  function record(): { name: string; message: JobTraceMessage }[] {
    const seen: { name: string; message: JobTraceMessage }[] = [];
    const at = (name: string) => (message: JobTraceMessage) => void seen.push({ name, message });
    const subscribers = Object.fromEntries(events.map((name) => [name, at(name)]));
    channel.subscribe(subscribers as never);
    onTestFinished(() => void channel.unsubscribe(subscribers as never));
    return seen;
  }

  test('has a job and its span, which calls and messages name as their parent', async () => {
    const seen = record();
    const { shop, sent } = createShop();
    const out = await shop.job('mail', { headers: { traceparent: TRACEPARENT, tracestate: 'a=1' } }, async (job) => {
      await job.service('billing').get('/');
      return job.outgoingHeaders();
    });
    expect(seen.map(({ name }) => name)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
    const { job, trace } = (seen[0] as { message: JobTraceMessage }).message;
    expect(job.name).toBe('mail');
    const [, traceId, parentId, flags] = TRACEPARENT.split('-');
    expect(trace).toMatchObject({ traceId, parentId, flags });
    const traceparent = `00-${trace.traceId}-${trace.spanId}-01`;
    expect(out).toEqual({ 'x-request-id': job.id, traceparent, tracestate: 'a=1' });
    expect(sent[0]?.headers.get('traceparent')).toBe(traceparent);
  });

  test('begins a sampled trace for a job without one, and reports what it throws', async () => {
    const seen = record();
    const { shop } = createShop();
    expectFailures(shop, 'job failed');
    const error = new HttpError(503, 'no');
    await expect(shop.job('mail', () => Promise.reject(error))).rejects.toBe(error);
    expect(seen.map(({ name }) => name)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    expect(seen[0]?.message).toMatchObject({ trace: { parentId: undefined, flags: '03' }, error });
  });

  test('a store that is bound to its start holds in the function; a job runs in the context of its caller', async () => {
    const { shop } = createShop();
    const bound = new AsyncLocalStorage<string>();
    const own = new AsyncLocalStorage<string>();
    channel.start.bindStore(bound, ({ job }: JobTraceMessage) => job.name);
    onTestFinished(() => void channel.start.unbindStore(bound));
    const seen = await own.run('mine', () => shop.job('mail', async () => {
      await Promise.resolve();
      return [bound.getStore(), own.getStore()];
    }));
    expect(seen).toEqual(['mail', 'mine']);
  });
});

test('options that are undefined are as if they were left out', async () => {
  expect(await createApp().job('mail', undefined, ({ name }) => name)).toBe('mail');
});

const nothing = (): void => undefined;
const wrong: Record<string, (app: Postern) => unknown> = {
  [`the name of a job is ""; give a text, such as 'orders.placed'`]: (app) => app.job('', nothing),
  'job "mail" has no function; give it as the last argument': (app) => app.job('mail', undefined as never),
  'job "sms" has no function; give it as the last argument': (app) => Reflect.apply(app.job, app, ['sms']),
  'unknown option "header" of job(); did you mean "headers"?': (app) =>
    app.job('mail', { header: {} } as never, nothing),
  'headers of job() is "x"; give the headers of a message, by name': (app) =>
    app.job('mail', { headers: 'x' as never }, nothing),
  'timeout of job() is 0; give ms, more than 0 and at most 2147483647': (app) =>
    app.job('mail', { timeout: 0 }, nothing),
};
test.for(Object.keys(wrong))('a wrong argument is a TypeError with a remedy: %s', (message) => {
  expect(() => wrong[message]?.(createApp())).toThrow(new TypeError(message));
});
