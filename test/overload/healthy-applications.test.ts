/**
 * Applications that are not overloaded, however it may look: in virtual time, nothing of theirs is refused.
 *
 * @module-tag slow
 */

import { expect, test, vi } from 'vitest';
import { connect, reply, type Context, type Postern, type PosternOptions } from 'postern';
import { MemoryClients } from '../support/memory-clients.js';
import { createRandom, type Random } from '../support/random.js';
import { createApp, expectFailures } from '../support/serve.js';
import { time } from '../support/virtual-clock.js';

vi.mock('../../src/base/clock.js', async (load) =>
  (await import('../support/virtual-clock.js')).time.replace(await load()),
);
const wait = (ms: number): Promise<void> => time.wait(ms);

const DEADLINE = 'x-envoy-expected-rq-timeout-ms';

/** One scenario under way. */
interface Play {
  readonly app: Postern;
  readonly random: Random;
  /** Sends a request; its client gives up after a while, and says so beforehand if deadlines are stated. */
  send(path: string, patienceMs: number): void;
  /** As {@link send}, for a client that does more than wait. */
  request(path: string, patienceMs: number, init?: RequestInit): Promise<Response>;
}

/** Modules are loaded with the first request, which takes real time. */
const warmUp = async (app: Postern): Promise<void> => void (await (await app.request('/users/ping/')).text());

const between = ({ random }: Play, low: number, high: number): number => low + random.next() * (high - low);

/** Sends requests at random times. */
async function sendOften(
  play: Pick<Play, 'random' | 'send'>,
  everyMs: number,
  lengthMs: number,
  path: string,
  patienceMs: () => number,
): Promise<void> {
  const endMs = time.nowMs + lengthMs;
  for (let nextMs = time.nowMs; nextMs < endMs; nextMs -= Math.log(1 - play.random.next()) * everyMs) {
    if (nextMs > time.nowMs) await time.pass(nextMs - time.nowMs);
    play.send(path, patienceMs());
  }
}

function sendBurst(play: Pick<Play, 'send'>, count: number, path: string, patienceMs: number): void {
  for (let i = 0; i < count; i += 1) play.send(path, patienceMs);
}

const SCENARIOS: Readonly<Record<string, (play: Play) => Promise<void>>> = {
  'a burst of 500 on an idle service': async (play) => {
    play.app.get('/', () => wait(between(play, 40, 60)));
    await sendOften(play, 100, 1000, '/', () => 1000);
    for (let i = 0; i < 2; i += 1) {
      sendBurst(play, 500, '/', 1000);
      await time.pass(50);
      await sendOften(play, 100, 1000, '/', () => 1000);
    }
  },
  'a steady report of 3 s under 5 s, in bursts of ten': async (play) => {
    play.app.get('/', () => wait(between(play, 2900, 3100)));
    for (let i = 0; i < 12; i += 1) {
      sendBurst(play, 10, '/', 5000);
      await time.pass(between(play, 500, 4000));
    }
  },
  'typeahead, 80 % aborted': async (play) => {
    play.app.get('/', () => wait(between(play, 50, 400)));
    await sendOften(play, 8, 6000, '/', () => (play.random.next() < 0.8 ? between(play, 30, 300) : 5000));
  },
  'one client that aborts ten times the traffic of all others': async (play) => {
    play.app.get('/', () => wait(between(play, 50, 400)));
    await sendOften(play, 8, 6000, '/', () => (play.random.next() < 0.91 ? 100 : 5000));
  },
  'two latencies, of which the longer one remains': async (play) => {
    play.app.get('/', () => wait(play.random.next() < 0.9 ? 10 : between(play, 4000, 8000)));
    await sendOften(play, 10, 6000, '/', () => 5000);
    await sendOften(play, 800, 12_000, '/', () => 5000);
  },
  'a slow start': async (play) => {
    const startMs = time.nowMs;
    play.app.get('/', () => wait(Math.max(0, 3000 - (time.nowMs - startMs)) + 50));
    await sendOften(play, 20, 8000, '/', () => 5000);
  },
  'long polls': async (play) => {
    play.app.get('/', (ctx: Context) =>
      Promise.race([
        wait(play.random.next() < 0.1 ? 5 : 30_000),
        new Promise((resolve) => ctx.signal.addEventListener('abort', resolve)),
      ]),
    );
    await sendOften(play, 100, 45_000, '/', () => (play.random.next() < 0.3 ? between(play, 1000, 30_000) : 35_000));
  },
  'server-sent events': async (play) => {
    play.app.get('/', async (ctx: Context) => {
      await wait(10);
      return reply(events(ctx.signal), { headers: { 'content-type': 'text/event-stream' } });
    });
    play.app.get('/raw', async (ctx: Context) => {
      await wait(10);
      const { res } = ctx.raw;
      for (res.writeHead(200, { 'content-type': 'text/event-stream' }); !ctx.signal.aborted; await wait(500))
        res.write('data: tick\n\n');
    });
    await sendOften(play, 100, 6000, '/', () => between(play, 1000, 6000));
    await sendOften(play, 100, 6000, '/raw', () => between(play, 1000, 6000));
  },
  'slow uploads': async (play) => {
    play.app.post('/', async (ctx: Context) => ({ length: (await ctx.bytes()).length }));
    await sendEach(play, 60, async (patienceMs) => {
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          await wait(play.random.next() < 0.5 ? 20 : 400);
          if (play.random.next() < 0.1) controller.close();
          else controller.enqueue(new Uint8Array(100));
        },
      });
      await play.request('/', patienceMs, { method: 'POST', body, duplex: 'half' } as RequestInit);
    });
  },
  'slow readers': async (play) => {
    const large = new Uint8Array(500_000);
    play.app.get('/', async () => {
      await wait(10);
      return large;
    });
    await sendEach(play, 60, async (patienceMs) => {
      const reader = (await play.request('/', patienceMs)).body?.getReader();
      while (reader !== undefined && !(await reader.read()).done) await wait(500);
    });
  },
  'a dependency that is slow and steady': async (play) => {
    const startMs = time.nowMs;
    play.app.get('/', () => wait(time.nowMs - startMs < 4000 ? between(play, 30, 60) : between(play, 2900, 3300)));
    await sendOften(play, 25, 13_000, '/', () => 5000);
  },
  'a stop of five seconds': async (play) => {
    play.app.get('/', () => wait(between(play, 20, 50)));
    await sendOften(play, 20, 4000, '/', () => 5000);
    time.stop(5000);
    sendBurst(play, 250, '/', 5000);
    await sendOften(play, 20, 6000, '/', () => 1000);
  },
};

async function* events(signal: AbortSignal): AsyncGenerator<string> {
  for (; !signal.aborted; await wait(500)) yield 'data: tick\n\n';
}

/** Lets clients begin one after another, whatever each of them does. */
async function sendEach(play: Play, count: number, one: (patienceMs: number) => Promise<void>): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    void one(between(play, 2000, 9000)).catch(() => undefined);
    await time.pass(150);
  }
}

async function run(name: string, statesDeadline: boolean, options: PosternOptions): Promise<string> {
  const app = createApp(options);
  const random = createRandom(name.length);
  const clients = new MemoryClients(app);
  const headersOf = (patienceMs: number): Record<string, string> =>
    statesDeadline ? { [DEADLINE]: String(Math.ceil(patienceMs)) } : {};
  const play: Play = {
    app,
    random,
    send(path, patienceMs) {
      let isAnswered = false;
      const connection = clients.get(path, headersOf(patienceMs), () => (isAnswered = true));
      time.after(patienceMs, () => void (isAnswered || connection.destroy()));
    },
    async request(path, patienceMs, init) {
      const leaving = new AbortController();
      time.after(patienceMs, () => leaving.abort());
      return app.request(path, { headers: headersOf(patienceMs), ...init, signal: leaving.signal });
    },
  };
  await warmUp(app);
  await SCENARIOS[name]?.(play);
  await time.pass(40_000);
  return app.metrics.expose();
}

const countOf = (text: string): string[] =>
  [...text.matchAll(/^http_requests_refus\w+\{.*reason="queue".*/gm)].map(([line]) => line);

test.for(
  Object.keys(SCENARIOS).flatMap((name) =>
    [true, false].map(
      (statesDeadline) => [name, statesDeadline ? 'deadlines' : 'clients that leave', statesDeadline] as const,
    ),
  ),
)('%s, with %s: nothing is refused', async ([name, , statesDeadline]) => {
  const text = await run(name, statesDeadline, {});
  expect(text).toMatch(/^http_request_duration_seconds_count/m);
  expect(countOf(text)).toEqual([]);
});

test.for(Object.keys(SCENARIOS))('%s, observed: nothing would be refused', async (name) => {
  const text = await run(name, false, { loadShedding: { observe: true } });
  expect(countOf(text)).toEqual([]);
});

test('a pool that is asked for twice its capacity keeps answering, and what it refuses is logged as one episode', async () => {
  const lines: [string, object][] = [];
  const push = (object: object, message = ''): void => {
    if (message.includes('overloaded')) lines.push([message, object]);
  };
  const app = expectFailures(createApp({ logger: { debug() {}, info: push, warn: push, error: push } }), 503);
  let free = 10;
  const queue: (() => void)[] = [];
  let began = 0;
  app.group('/g', (group) => {
    group.use((_ctx, next) => ((began += 1), next()));
    group.get('', async () => {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => void queue.push(resolve));
      await wait(100);
      const next = queue.shift();
      if (next === undefined) free += 1;
      else next();
      return 'ok';
    });
  });
  app.use(async (_ctx, next) => {
    const answer = await next();
    answer.headers.set('access-control-allow-origin', '*');
    return answer;
  });
  await warmUp(app);
  const good: number[] = [];
  const refusals: Response[] = [];
  const startMs = time.nowMs;
  const request = async (path: string, patienceMs: number): Promise<void> => {
    const leaving = new AbortController();
    time.after(patienceMs, () => leaving.abort());
    const response = await app.request(path, { signal: leaving.signal, headers: { [DEADLINE]: '1000' } });
    const second = Math.floor((time.nowMs - startMs) / 1000);
    if (response.status === 200) good[second] = (good[second] ?? 0) + 1;
    else refusals.push(response);
  };
  const send = (path: string, patienceMs: number): void => void request(path, patienceMs).catch(() => undefined);
  const play = { random: createRandom(1), send };
  await sendOften(play, 40, 2000, '/g', () => 1000);
  await sendOften(play, 5, 8000, '/g', () => 1000);
  await time.pass(2000);
  expect(Math.min(...good.slice(5, 10)), good.join(' ')).toBeGreaterThan(85);
  const [refused] = refusals;
  expect([refused?.status, refused?.headers.get('retry-after'), refused?.headers.get('access-control-allow-origin')])
    .toEqual([503, '1', '*']);
  const text = app.metrics.expose();
  expect(Number(/^http_requests_refused_total\{route="\/g",reason="queue"\} (\d+)/m.exec(text)?.[1]))
    .toBe(refusals.length);
  const total = [...text.matchAll(/^http_request_duration_seconds_count\{.*route="\/g".*\} (\d+)/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
  expect(began).toBe(total - refusals.length);
  expect(lines.map(([message]) => message))
    .toEqual(['overloaded: requests are refused', 'no longer overloaded: no more requests are refused']);
  expect(lines[0]?.[1]).toMatchObject({
    route: 'GET /g',
    patience_ms: expect.closeTo(1000, -2),
    usual_ms: expect.any(Number),
    requests_per_second: expect.any(Number),
  });
  expect(lines[1]?.[1]).toMatchObject({ route: 'GET /g', refused: refusals.length });
  expect((await app.request('/users/ping/')).status).toBe(200);
});

test('a stream that a handler writes to ctx.raw does not count as work, also with middleware of Express', async () => {
  const inFlight: unknown[] = [];
  const warn = (entry: object): void => {
    if ('requests_in_flight' in entry) inFlight.push(entry.requests_in_flight);
  };
  const app = expectFailures(createApp({ logger: { debug() {}, info() {}, warn, error() {} } }), 503);
  // As helmet does.
  app.use(connect((_req, res, next) => next(void res.setHeader('x-frame-options', 'DENY'))));
  let last = Promise.resolve();
  app.get('/', (ctx) => {
    if (!ctx.query.has('stream')) return (last = last.then(() => wait(20)));
    ctx.raw.res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: now\n\n');
    return new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
  });
  await warmUp(app);
  const send = (path: string, patienceMs: number): void => {
    const leaving = new AbortController();
    time.after(patienceMs, () => leaving.abort());
    void app.request(path, { headers: { [DEADLINE]: '1000' }, signal: leaving.signal }).catch(() => undefined);
  };
  const play = { random: createRandom(1), send };
  const streams = sendOften(play, 10, 2000, '/?stream', () => 5000);
  await Promise.all([streams, sendOften(play, 40, 2000, '/', () => 1000)]);
  await sendOften(play, 5, 3000, '/', () => 1000);
  await time.pass(4000);
  // Of about 200 streams and as many others.
  expect(inFlight.map((count) => Number(count) < 150)).toEqual([true]);
});
