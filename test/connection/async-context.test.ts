/**
 * A handler and all that it starts run in the async context in which node:http emitted its own request.
 *
 * @module-tag slow
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NotFound, type Context, type Logger, type Postern } from 'postern';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

const tenant = new AsyncLocalStorage<string>();

/** What runs where: each place notes the store that it sees, beside the one of its request. */
function tenantApp(seen: [place: string, own: string, store: string | undefined][], ...failures: number[]): Postern {
  const note = (place: string, own: string): void => void seen.push([place, own, tenant.getStore()]);
  const logger: Logger = {
    debug: (entry) => noteOf(entry),
    info: (entry) => noteOf(entry),
    warn: (entry) => noteOf(entry),
    error: (entry) => noteOf(entry),
  };
  const noteOf = (entry: object): void => {
    const { target, own } = entry as { target?: string; own?: string };
    const name = own ?? target?.split('/').at(-1);
    if (name !== undefined) note('log', name);
  };
  const app = expectFailures(createApp({ logger }), ...failures);
  app.use(async (ctx, next) => {
    const own = ctx.path.split('/').at(-1) ?? '';
    note('middleware', own);
    const reply = await next();
    note('behind next()', own);
    ctx.log.info({ own }, 'done');
    return reply;
  });
  app.get('/sync/:own', ({ params: { own } }) => (note('sync', own), own));
  app.get('/async/:own', async ({ params: { own } }) => {
    await turn();
    note('async', own);
    await sleep(1);
    note('later', own);
    return own;
  });
  app.post('/body/:own', async (ctx) => {
    const { own } = ctx.params;
    note('before the body', own);
    await ctx.text();
    note('behind the body', own);
    return own;
  });
  app.post('/stream/:own', async (ctx) => {
    for await (const chunk of ctx.stream()) void chunk;
    note('behind the stream', ctx.params.own);
    return ctx.params.own;
  });
  app.get('/chunks/:own', ({ params: { own } }) =>
    (async function* () {
      note('generator', own);
      yield own;
      await turn();
      note('generator, later', own);
      yield '';
    })(),
  );
  app.get('/readable/:own', ({ params: { own } }) => Readable.from([own]));
  app.get('/refused/:own', () => { throw new NotFound(); });
  app.get('/broken/:own', () => { throw new Error('unforeseen'); });
  app.get('/quiet/:own', (ctx) => {
    ctx.signal.addEventListener('abort', () => note('abort', ctx.params.own));
    return new Promise(() => undefined);
  });
  return app;
}

const PLACES = ['sync', 'async', 'body', 'stream', 'chunks', 'readable', 'refused', 'broken'];
let requests = 0;

/** Some requests for one connection, each with a name of its own. */
function batch(count: number): string {
  return Array.from({ length: count }, () => {
    const place = PLACES[requests % PLACES.length] as string;
    const own = `r${(requests += 1)}`;
    const hasBody = place === 'body' || place === 'stream';
    return `${hasBody ? 'POST' : 'GET'} /${place}/${own} HTTP/1.1\r\nHost: x\r\n${hasBody ? 'Content-Length: 4\r\n' : ''}\r\n${hasBody ? 'body' : ''}`;
  }).join('');
}

/** Puts the name of each request into a store around whatever answers it. */
function withTenants(server: Server): void {
  const emit = server.emit.bind(server);
  server.emit = ((event: string, ...args: unknown[]) => {
    const { url = '' } = (args[0] ?? {}) as { url?: string };
    return event === 'request'
      ? tenant.run(url.split('/').at(-1) ?? '', () => emit(event, ...args))
      : emit(event, ...args);
  }) as typeof server.emit;
}

async function load(port: number, connections: number, rounds: number, pipelined: number): Promise<void> {
  const lanes = Array.from({ length: connections }, async () => {
    const socket = connect(port, '127.0.0.1');
    for (let round = 0; round < rounds; round += 1) {
      await new Promise<void>((resolve) => {
        let received = '';
        const read = (chunk: Buffer): void => {
          received += chunk.toString('latin1');
          if (received.match(/HTTP\/1\.1 \d{3}/g)?.length !== pipelined) return;
          socket.off('data', read);
          resolve();
        };
        socket.on('data', read).write(batch(pipelined));
      });
    }
    // Not before the last reply is whole: of one that is cut, node:http publishes no finish.
    socket.end();
  });
  await Promise.all(lanes);
}

const wrongOf = (seen: readonly [string, string, string | undefined][]): unknown[] =>
  seen.filter(([, own, store]) => own !== store);

describe.for([
  { how: 'one at a time', pipelined: 1 },
  { how: 'pipelined', pipelined: 8 },
  { how: 'pipelined, many at a time', pipelined: 24 },
])('$how', ({ pipelined }) => {
  test.for([1, 4, 16, 64])('over %i connections', { timeout: 60_000 }, async (connections) => {
    const seen: [string, string, string | undefined][] = [];
    const app = tenantApp(seen, 500);
    withTenants(app.server);
    const { port } = await serve(app);
    await load(port, connections, Math.max(2, Math.ceil(8 / connections)), pipelined);
    expect(wrongOf(seen)).toEqual([]);
    expect(seen.length).toBeGreaterThan(connections * pipelined);
  });
});

test('embedded in a server of somebody else', async () => {
  const seen: [string, string, string | undefined][] = [];
  const app = tenantApp(seen, 500);
  const server = createServer((req: IncomingMessage, res: ServerResponse) =>
    tenant.run(req.url?.split('/').at(-1) ?? '', () => app.handler(req, res)),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => { server.close(); server.closeAllConnections(); });
  await load((server.address() as { port: number }).port, 16, 4, 8);
  expect(wrongOf(seen)).toEqual([]);
});

test('listeners of ctx.signal, when many clients leave at once', async () => {
  const seen: [string, string, string | undefined][] = [];
  const app = tenantApp(seen);
  withTenants(app.server);
  const { port } = await serve(app);
  const sockets = Array.from({ length: 20 }, (_, index) => {
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET /quiet/q${index} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return socket;
  });
  await expect.poll(() => seen.filter(([place]) => place === 'middleware').length).toBe(20);
  for (const socket of sockets) socket.destroy();
  await expect.poll(() => seen.filter(([place]) => place === 'abort').length).toBe(20);
  expect(wrongOf(seen)).toEqual([]);
});

test('what runs after a handler: the access log, the trace, http.server.response.finish', async () => {
  const seen: [string, string, string | undefined][] = [];
  const note = (place: string, url: string): void => void seen.push([place, nameIn(url), tenant.getStore()]);
  const trace = tracingChannel('postern.request');
  const events = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;
  const subscribers = Object.fromEntries(
    events.map((event) => [event, (message: unknown) => note(event, (message as { ctx: Context }).ctx.path)]),
  );
  const finish = (message: unknown): void =>
    note('finish', (message as { request: IncomingMessage }).request.url ?? '');
  trace.subscribe(subscribers as never);
  subscribe('http.server.response.finish', finish);
  onTestFinished(() => {
    trace.unsubscribe(subscribers as never);
    unsubscribe('http.server.response.finish', finish);
  });
  const logger = createRecorder();
  const info: Logger['info'] = (entry) => note('log', (entry as { target: string }).target);
  const app = expectFailures(createApp({ logger: { ...logger, info }, accessLog: true }), 500);
  app.get('/sync/:own', ({ params }) => params.own);
  app.get('/async/:own', async ({ params }) => (await turn(), params.own));
  app.get('/readable/:own', ({ params }) => Readable.from([params.own]));
  app.get('/chunks/:own', ({ params }) => (async function* () { yield params.own; await turn(); yield params.own; })());
  app.post('/body/:own', async (ctx) => ctx.text()).post('/stream/:own', (ctx) => ctx.stream());
  app
    .get('/refused/:own', () => {
      throw new NotFound();
    })
    .get('/broken/:own', () => {
      throw new Error('unforeseen');
    });
  withTenants(app.server);
  const { port } = await serve(app);
  for (const pipelined of [1, 3, 12]) await load(port, 20, 2, pipelined);
  await expect.poll(() => seen.filter(([place]) => place === 'log').length)
    .toBe(seen.filter(([place]) => place === 'finish').length);
  expect(seen.length).toBeGreaterThan(2000);
  expect(wrongOf(seen)).toEqual([]);
});

test('the access log and the trace of clients that disconnect', async () => {
  const seen: [string, string, string | undefined][] = [];
  const info: Logger['info'] = (entry) => {
    const { target } = entry as { target?: string };
    if (target !== undefined) seen.push(['log', nameIn(target), tenant.getStore()]);
  };
  const app = createApp({ logger: { ...createRecorder(), info }, accessLog: true });
  let begun = 0;
  app.get('/quiet/:own', ({ signal }) => {
    begun += 1;
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve('late')));
  });
  withTenants(app.server);
  const { port } = await serve(app);
  // The second request of each connection waits for the first one, and is dropped with it.
  const sockets = Array.from({ length: 20 }, (_, index) =>
    connect(port, '127.0.0.1').on('connect', function (this: Socket) {
      this.write(`GET /quiet/q${index} HTTP/1.1\r\nHost: x\r\n\r\nGET /quiet/p${index} HTTP/1.1\r\nHost: x\r\n\r\n`);
    }),
  );
  await expect.poll(() => begun).toBeGreaterThanOrEqual(20);
  for (const socket of sockets) socket.destroy();
  await expect.poll(() => seen.length).toBe(40);
  expect(wrongOf(seen)).toEqual([]);
});

function nameIn(url: string): string {
  return url.split('/').at(-1) ?? '';
}
