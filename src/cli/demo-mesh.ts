/**
 * Three small services that call each other on loopback: what `npm start` and `postern demo` show.
 *
 * shop asks billing, billing asks stock, and stock knows shop, so the mesh is a ring.
 */

import { createServer, type AddressInfo } from 'node:net';
import { Postern } from '../app/app.js';
import { ApiError, defineErrorCodes, NotFound } from '../errors.js';
import type { Logger } from '../log.js';
import { publicFacing } from '../routing/public-facing.js';

/** The demo, running. */
export interface Demo {
  /** What to print: addresses, and requests to try. */
  readonly text: string;
  /** The service that answers the public. */
  readonly url: string;
  close(): Promise<void>;
}

const HOST = '127.0.0.1';
const ITEMS: ReadonlyMap<string, { name: string; price: number; left: number }> = new Map([
  ['1', { name: 'lamp', price: 40, left: 3 }],
  ['2', { name: 'desk', price: 180, left: 1 }],
  ['3', { name: 'chair', price: 75, left: 0 }],
]);

const StockCodes = defineErrorCodes({ out_of_stock: 20_001 });

class OutOfStock extends ApiError {
  static override statusCode = 409;
  static override message = 'Out of stock.';
  static override errorCode = StockCodes.out_of_stock;
}

/**
 * Starts the demo.
 *
 * @param port the first of three ports in a row; 8000 unless given, or free ones when those are taken
 * @throws `EADDRINUSE` when the ports that were asked for are taken
 */
export async function startDemo(port?: number, logger?: Logger | false): Promise<Demo> {
  const ports = port === undefined ? await freePorts(8000) : [port, port + 1, port + 2];
  const [shopUrl, billingUrl, stockUrl] = ports.map((each) => `http://${HOST}:${each}`);
  const options = (...connections: string[]): ConstructorParameters<typeof Postern>[1] => ({
    version: '1.0.0',
    settings: { SERVICE_CONNECTIONS: connections },
    ...(logger === undefined ? {} : { logger }),
  });
  const apps = [createShop(options(`billing=${billingUrl}`)), createBilling(options(`stock=${stockUrl}`)), createStock(options(`shop=${shopUrl}`))];
  const started: Postern[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(started.map((app) => app.close()));
  };
  try {
    for (const [index, app] of apps.entries()) {
      await app.listen({ host: HOST, port: ports[index] as number });
      started.push(app);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { text: describe(`${shopUrl}`, `${billingUrl}`, `${stockUrl}`), url: `${shopUrl}`, close };
}

function createShop(options: ConstructorParameters<typeof Postern>[1]): Postern {
  const shop = new Postern('shop', options);
  shop.get('/orders/:item(\\d+)', publicFacing({ params: ['quantity'] })(async (ctx) => {
    const quantity = ctx.query.get('quantity') ?? '1';
    const { body } = await ctx.service('billing').get(`/quotes/${ctx.params.item}`, { query: { quantity } });
    return { order: body };
  }));
  return shop;
}

function createBilling(options: ConstructorParameters<typeof Postern>[1]): Postern {
  const billing = new Postern('billing', options);
  billing.get('/quotes/:item(\\d+)', async (ctx) => {
    const { body } = await ctx.service('stock').get(`/items/${ctx.params.item}`);
    const { name, price } = body as { name: string; price: number };
    const quantity = Number(ctx.query.get('quantity') ?? 1);
    return { item: name, quantity, total: price * quantity };
  });
  return billing;
}

function createStock(options: ConstructorParameters<typeof Postern>[1]): Postern {
  const stock = new Postern('stock', options);
  stock.get('/items/:item(\\d+)', (ctx) => {
    const item = ITEMS.get(ctx.params.item);
    if (item === undefined) throw new NotFound(`There is no item ${ctx.params.item}.`);
    if (item.left === 0) throw new OutOfStock(`No ${item.name} is left.`);
    return item;
  });
  return stock;
}

function describe(shop: string, billing: string, stock: string): string {
  return `Three services are running: shop ${shop}, billing ${billing}, stock ${stock}

An order, through all three           curl ${shop}/orders/1?quantity=2
An error of stock, seen at shop       curl -i ${shop}/orders/3
A parameter that is not allowed       curl -i ${shop}/orders/1?color=red
Health                                curl ${shop}/shop/health/
The mesh, three levels deep           curl ${shop}/shop/ping/?depth=3
Metrics for Prometheus                curl ${billing}/billing/metrics/
Metrics as JSON                       curl ${stock}/stock/metrics/?json

Ctrl-C drains and stops them.
`;
}

/** Three ports from `first` on, or any three when one of those is taken. */
async function freePorts(first: number): Promise<number[]> {
  const wanted = [first, first + 1, first + 2];
  const free = await Promise.all(wanted.map((port) => tryPort(port)));
  if (free.every((port) => port !== null)) return wanted;
  return Promise.all([0, 0, 0].map(async () => (await tryPort(0)) as number));
}

function tryPort(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen(port, HOST, () => {
      const { port: actual } = server.address() as AddressInfo;
      server.close(() => resolve(actual));
    });
  });
}
