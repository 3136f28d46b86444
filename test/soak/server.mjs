/**
 * The service under load, in a process of its own, with a second one that it calls. Told over IPC to report on itself.
 *
 * Started with --expose-gc; the driver is main.ts.
 */

import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { NotFound, Postern, publicFacing } from '../../dist/index.js';

const TIMEOUTS = { headersTimeout: 2_000, requestTimeout: 4_000, keepAliveTimeout: 2_000 };

const stock = new Postern('stock', { ...TIMEOUTS });
stock.get('/items/:id', (ctx) => {
  if (ctx.params.id === 'none') throw new NotFound('There is none.');
  return { id: ctx.params.id, left: 3 };
});
const { url } = await stock.listen({ host: '127.0.0.1', port: 0 });

const app = new Postern('soak', {
  ...TIMEOUTS,
  version: '1.0.0',
  bodyLimit: 65_536,
  // Each request has a line, which is exported.
  accessLog: Boolean(process.env['OTEL_EXPORTER_OTLP_ENDPOINT']),
  settings: { SERVICE_CONNECTIONS: [`stock=${url}`] },
});
app.health.check('always', () => true);
app.get('/hello', () => 'hello');
app.get('/items/:id', (ctx) => ({ id: ctx.params.id, query: [...ctx.query] }));
app.get('/orders/:order(\\d+)/lines/:line', (ctx) => [ctx.params.order, ctx.params.line]);
app.get('/files/*rest', (ctx) => ctx.params.rest);
app.get('/public/:id', publicFacing((ctx) => ({ id: ctx.params.id, q: ctx.query.get('q') }), { params: ['q'] }));
app.post('/echo', async (ctx) => ({ echo: await ctx.json() }));
app.post('/form', async (ctx) => [...(await ctx.form())]);
app.post('/upload', async (ctx) => ({ length: (await ctx.bytes()).length }));
app.post('/stream-up', async (ctx) => {
  let length = 0;
  for await (const chunk of ctx.stream()) length += chunk.length;
  return { length };
});
app.post('/mirror', async (ctx) => {
  const body = ctx.stream();
  await delay(2);
  return body;
});
app.post('/ignored', () => 'ignored');
app.get('/stream', (ctx) => stream(Number(ctx.query.get('chunks'))));
app.get('/broken', () => stream(3, true));
app.get('/slow', async (ctx) => {
  await delay(Number(ctx.query.get('ms')), undefined, { signal: ctx.signal });
  return 'slow';
});
app.get('/fail', () => {
  throw new TypeError('not to be told');
});
app.get('/refuse/:id', (ctx) => {
  throw new NotFound(`There is no ${ctx.params.id}.`);
});
app.get('/stock/:id', async (ctx) => (await ctx.service('stock').get(`/items/${ctx.params.id}`)).body);
app.group('/grouped', (group) => {
  group.use(async (ctx, next) => {
    ctx.state.seen = true;
    const replied = await next();
    replied.headers.set('x-seen', String(ctx.state.seen));
    return replied;
  });
  group.get('/:id', (ctx) => ctx.params.id);
});
app.onClose(() => stock.close());

async function* stream(chunks, fails = false) {
  for (let index = 0; index < chunks; index += 1) {
    yield Buffer.alloc(16_384, 65 + (index % 26));
    if (index % 8 === 7) await delay(1);
  }
  if (fails) throw new Error('broken half-way');
}

/** What must not grow; the heap after a collection. */
function report() {
  globalThis.gc();
  globalThis.gc();
  const { rss, heapUsed, external } = process.memoryUsage();
  const resources = {};
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1;
  return {
    rss,
    heapUsed: heapUsed + external,
    cpu: process.cpuUsage(),
    resources,
    openFiles: readdirSync('/proc/self/fd').length,
    activeTasks: activeTasks(app) + activeTasks(stock),
    exposition: app.metrics.expose(),
  };
}

function activeTasks({ metrics }) {
  return Number(/^active_task_count (\S+)$/m.exec(metrics.expose())[1]);
}

// Opened now, so that it is there when handles are counted first.
void process.stderr;
process.on('warning', (warning) => process.send({ warning: String(warning.stack) }));
process.on('message', (id) => process.send({ id, report: report() }));
process.channel.unref();

const { port } = await app.run({ host: '127.0.0.1', port: 0, timeout: 8_000 });
process.send({ port, routes: app.router.routes });
