/**
 * A service that uses each feature once, for the tools that load, bundle and run it: `shop`. It calls `stock`, of the
 * same process, over HTTP, and `billing`, a stand-in. Its types can be erased, so that Node.js runs the file unchanged.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import cors from 'cors';
import {
  ApiError, connect, type Context, defineEndpoint, defineErrorCodes, HttpError, type Logger, NotFound, path, Postern,
  publicFacing, redirect, Registry, reply, ServiceError,
} from 'postern';
import { toCaddy, toGatewayApi, toHAProxy, toKong, toNginx } from 'postern/gateway';
import { collectDefaultMetrics, Registry as LibraryRegistry } from 'postern/metrics';
import { toOpenApi } from 'postern/openapi';
// Parcel 2.16 does not find the `z` that zod exports by name.
import * as z from 'zod';

const Codes = defineErrorCodes({ sold_out: 10_001 });

class SoldOut extends ApiError {
  static override statusCode = 409;
  static override message = 'Sold out.';
  static override description = 'The last one is gone.';
  static override errorCode = Codes.sold_out;
}

const Article = z.object({ id: z.string(), name: z.string() });
const Order = z.object({ article: z.string().min(1), count: z.int().positive() });

const getArticle = defineEndpoint('GET', '/articles/:id', {
  params: z.object({ id: z.string() }),
  response: Article,
  errors: [SoldOut],
});
/** `stock` answers this one with another type than it declares. */
const getPrice = defineEndpoint('GET', '/prices/:id', { response: z.object({ cents: z.int() }) });

class ShelfView {
  get(ctx: Context<{ readonly id: string }>): { shelf: string } {
    return { shelf: ctx.params.id };
  }
  delete(): void {
    // 204.
  }
}

/** @returns `shop`, which closes `stock` after itself; `stock` listens already */
export async function createService(logger?: Logger): Promise<Postern> {
  const logging = logger === undefined ? {} : { logger };
  const stock = new Postern('stock', logging);
  stock.implement(getArticle, (_ctx, { params }) => {
    if (params.id === '0') throw new SoldOut();
    return { id: params.id, name: `Article ${params.id}` };
  });
  stock.get('/prices/:id', () => ({ cents: 'many' }));
  const { url } = await stock.listen({ port: 0, host: '127.0.0.1' });

  const billing = new Postern('billing', { logger: false });
  billing.get('/invoices/:id', (ctx) => ({ invoice: ctx.params.id }));

  const app = new Postern('shop', {
    ...logging,
    version: '1.2.3',
    bodyLimit: 1000,
    settings: { SERVICE_CONNECTIONS: [`stock=${url}`, 'billing'] },
    services: { billing },
    monitor: { port: 0, host: '127.0.0.1' },
    errorCodes: [Codes],
  });
  app.onClose(() => stock.close());
  app.health.check('shelves', () => true);
  addMiddleware(app);
  addRoutes(app);
  addReplies(app);
  addErrors(app);
  addCalls(app);
  addDocuments(app);
  return app;
}

function addMiddleware(app: Postern): void {
  app.use(connect(cors({ origin: 'https://shop.example' })));
  app.use(async (ctx, next) => {
    const answered = await next();
    // A mount has written its reply by now.
    if (ctx.route !== null) answered.headers.set('x-shop', String(answered.status));
    return answered;
  });
}

function addRoutes(app: Postern): void {
  app.get('/', () => 'hello');
  app.route('/articles', { GET: publicFacing(() => ['chair']), PUT: () => undefined });
  app.view('/shelves/:id', ShelfView);
  app.group('/v1', { tags: ['v1'] }, (v1) => {
    v1.use((ctx, next) => {
      ctx.state['version'] = 1;
      return next();
    });
    v1.get('/version', (ctx) => ({ version: ctx.state['version'] }));
  });
  const Placed = z.object({ placed: z.string(), count: z.int() });
  app.post('/orders', { body: Order, response: { 201: Placed }, errors: [SoldOut] }, (_ctx, { body }) => {
    if (body.count > 100) throw new SoldOut();
    return reply({ placed: body.article, count: body.count }, { status: 201 });
  });
  const Search = z.object({ tag: z.array(z.string()), page: z.coerce.number().default(1) });
  app.get('/search', { query: Search, public: { params: ['tag', 'page'] } }, (_ctx, { query }) => query);
  app.post('/json', (ctx) => ctx.json());
  app.post('/form', async (ctx) => Object.fromEntries(await ctx.form()));
  app.post('/upload', { bodyLimit: 1_000_000 }, async (ctx) => {
    let length = 0;
    for await (const chunk of ctx.stream()) length += (chunk as Uint8Array).length;
    return { length };
  });
  // On a busy machine, a shorter time may be over before the handler runs; then nothing is logged.
  app.get('/slow', { timeout: 500 }, () => new Promise(() => undefined));
  app.mount('/legacy', (req: IncomingMessage, res: ServerResponse) => res.end(`legacy ${req.url}`));
}

function addReplies(app: Postern): void {
  app.get('/replies/bytes', () => new TextEncoder().encode('bytes'));
  app.get('/replies/stream', () => Readable.from(['a', 'b', 'c']));
  app.get('/replies/generator', async function* () {
    yield 'd';
    yield 'e';
  });
  app.get('/replies/web-stream', () => new Response('f').body);
  app.get('/replies/response', () => new Response('of Fetch', { status: 203, headers: { 'x-made-by': 'fetch' } }));
  app.get('/replies/redirect', () => redirect(path`/shelves/${'a b'}`));
}

function addErrors(app: Postern): void {
  app.get('/errors/own', () => {
    throw new SoldOut();
  });
  app.get('/errors/ready-made', () => {
    throw new NotFound('There is no article 7.');
  });
  app.get('/errors/http', () => {
    throw new HttpError(503, 'Down for repairs.');
  });
  app.get('/errors/foreign', () => {
    throw Object.assign(new Error('I am a teapot.'), { status: 418, expose: true });
  });
  app.get('/errors/unknown', () => {
    throw new Error('the shelf fell down');
  });
  app.get('/errors/lost', () => ({ shelves: new Map([['a', 1]]) }) as object);
}

function addCalls(app: Postern): void {
  app.get('/calls/stand-in', async (ctx) => (await ctx.service('billing').get('/invoices/7')).body);
  app.get('/calls/http', async (ctx) => (await ctx.service('stock').get('/articles/7')).body);
  app.get('/calls/typed/:id', async (ctx) => {
    const { body } = await ctx.service('stock').call(getArticle, { params: { id: ctx.params.id } });
    return body.name;
  });
  app.get('/calls/typed-error', async (ctx) => {
    try {
      await ctx.service('stock').call(getArticle, { params: { id: '0' } });
      return 'no error';
    } catch (error) {
      return { isSoldOut: error instanceof SoldOut, byService: (error as Error).cause instanceof ServiceError };
    }
  });
  app.get('/calls/refused', async (ctx) => (await ctx.service('stock').get('/nothing')).body);
  app.get('/calls/mismatch', async (ctx) => {
    await ctx.service('stock').call(getPrice, { params: { id: '7' } });
    return 'no error';
  });
}

function addDocuments(app: Postern): void {
  app.get('/documents/openapi', () => {
    const { openapi, paths } = toOpenApi(app);
    return { openapi, hasOrders: '/orders' in paths };
  });
  app.get('/documents/gateways', () => {
    const shop = { service: 'shop', upstream: 'http://shop:8000' };
    const { router } = app;
    const [nginx, haproxy, caddy, kong] = [toNginx, toHAProxy, toCaddy, toKong].map((write) => write(router, shop));
    const manifests = toGatewayApi(router, { ...shop, gateway: 'edge' });
    return [nginx, haproxy, caddy, kong, manifests].map((text) => /articles/.test(text ?? ''));
  });
  app.get('/documents/registry', () => {
    const registry = new LibraryRegistry();
    registry.counter({ name: 'sales_total', help: 'Sales.', labelNames: ['till'] }).inc({ till: '1' }, 3);
    registry.summary({ name: 'queue_seconds', help: 'Time in the queue.' }).observe(2);
    collectDefaultMetrics(registry);
    const text = registry.expose();
    const sample = /^sales_total.*$/m.exec(text)?.[0];
    registry.clear();
    return { isOneClass: registry instanceof Registry, sample, hasDefaults: text.includes('nodejs_version_info') };
  });
  app.get('/documents/in-memory', async () => (await app.request('/articles')).json());
}
