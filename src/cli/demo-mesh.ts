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
  /** Where each service is; shop answers the public. */
  readonly urls: { readonly shop: string; readonly billing: string; readonly stock: string };
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
  const urlOf = (index: number): string => `http://${HOST}:${ports[index]}`;
  const urls = { shop: urlOf(0), billing: urlOf(1), stock: urlOf(2) };
  const options = (...connections: string[]): ConstructorParameters<typeof Postern>[1] => ({
    version: '1.0.0',
    settings: { SERVICE_CONNECTIONS: connections },
    ...(logger === undefined ? {} : { logger }),
  });
  const apps = [
    createShop(options(`billing=${urls.billing}`)),
    createBilling(options(`stock=${urls.stock}`)),
    createStock(options(`shop=${urls.shop}`)),
  ];
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
  return { urls, close };
}

function createShop(options: ConstructorParameters<typeof Postern>[1]): Postern {
  const shop = new Postern('shop', options);
  shop.get(
    '/orders/:item(\\d+)',
    publicFacing({ params: ['quantity'] })(async (ctx) => {
      const quantity = ctx.query.get('quantity') ?? '1';
      const { body } = await ctx.service('billing').get(`/quotes/${ctx.params.item}`, { query: { quantity } });
      return { order: body };
    }),
  );
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
