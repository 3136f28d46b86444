/*
 * Three small services that call each other on loopback: what `npm start` and `postern demo` show.
 *
 * shop asks billing, billing asks stock, and stock knows shop, so the mesh is a ring.
 */

import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Postern } from '../app/app.js';
import type { PosternOptions } from '../app/options.js';
import { defineErrorCodes } from '../base/error-codes.js';
import { ApiError, NotFound } from '../base/errors.js';
import { publicFacing } from '../endpoint/public-facing.js';

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
 * @param port the first of three ports in a row. Default: 8000, or free ports if these are taken
 * @throws `EADDRINUSE` when the given ports are taken; the process must end then
 */
export async function startDemo(port?: number): Promise<Demo> {
  const ports = port === undefined ? await freePorts() : [port, port + 1, port + 2];
  const [shop = '', billing = '', stock = ''] = ports.map((each) => `http://${HOST}:${each}`);
  const apps = [
    createShop(settingsOf(`billing=${billing}`)),
    createBilling(settingsOf(`stock=${stock}`)),
    createStock(settingsOf(`shop=${shop}`)),
  ];
  for (const [index, app] of apps.entries()) await app.listen({ host: HOST, port: ports[index] as number });
  return {
    urls: { shop, billing, stock },
    close: async () => {
      await Promise.all(apps.map((app) => app.close()));
    },
  };
}

function settingsOf(connection: string): PosternOptions {
  return { version: '1.0.0', settings: { SERVICE_CONNECTIONS: [connection] } };
}

function createShop(options: PosternOptions): Postern {
  return new Postern('shop', options).get(
    '/orders/:item(\\d+)',
    publicFacing({ params: ['quantity'] })(async (ctx) => {
      const quantity = ctx.query.get('quantity') ?? '1';
      const { body } = await ctx.service('billing').get(`/quotes/${ctx.params.item}`, { query: { quantity } });
      return { order: body };
    }),
  );
}

function createBilling(options: PosternOptions): Postern {
  return new Postern('billing', options).get('/quotes/:item(\\d+)', async (ctx) => {
    const { body } = await ctx.service('stock').get(`/items/${ctx.params.item}`);
    const { name, price } = body as { name: string; price: number };
    const quantity = Number(ctx.query.get('quantity') ?? 1);
    return { item: name, quantity, total: price * quantity };
  });
}

function createStock(options: PosternOptions): Postern {
  return new Postern('stock', options).get('/items/:item(\\d+)', ({ params: { item } }) => {
    const found = ITEMS.get(item);
    if (found === undefined) throw new NotFound(`There is no item ${item}.`);
    if (found.left === 0) throw new OutOfStock(`No ${found.name} is left.`);
    return found;
  });
}

/** Three ports from 8000 on, or any three when one of those is taken. */
function freePorts(): Promise<number[]> {
  const tryAll = (ports: readonly number[]): Promise<number[]> => Promise.all(ports.map(tryPort));
  return tryAll([8000, 8001, 8002]).catch(() => tryAll([0, 0, 0]));
}

async function tryPort(port: number): Promise<number> {
  const server = createServer().listen(port, HOST);
  await once(server, 'listening');
  const { port: actual } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return actual;
}
