/*
 * `postern demo`: three services that call each other and their live page, until the process is told to stop.
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
import type { LivePage } from '../live/live-server.js';
import { defineCommand, whole, type Command } from './command.js';
import { showMesh } from './live-command.js';

const usage = `Usage: postern demo [--port P]

Starts three services that call each other, on loopback, and a live page of
their mesh, and prints what to try.

  --port P  first of three ports in a row. Default: 8000, or free ones
`;

const SERVICE_VARIABLES = [
  'REQUIRED_SERVICE_CONNECTIONS', 'SERVICE_URL_TEMPLATE', 'MONITOR_PORT', 'OTEL_SERVICE_NAME', 'OTEL_RESOURCE_ATTRIBUTES',
];

export const demo: Command = defineCommand(usage, '', { port: whole(1, 65_533) }, async ({ port }) => {
  // These are meant for one service, but the demo runs three of them in this process.
  for (const name of SERVICE_VARIABLES) delete process.env[name];
  const ports = port === undefined ? await freePorts() : [port, port + 1, port + 2];
  const [shop = '', billing = '', stock = ''] = ports.map((each) => `http://${DEMO_HOST}:${each}`);
  const apps = [createShop(billing), createBilling(stock), createStock(shop)];
  for (const [index, app] of apps.entries()) await app.listen({ host: DEMO_HOST, port: ports[index] });
  // The live page has the port after these, or a free port if that is taken.
  const show = (at: number): Promise<LivePage> => showMesh({ service: 'shop', base: shop }, 3, at);
  const live = await show(Math.min(Math.max(...ports) + 1, 65_535)).catch(() => show(0));
  const close = (): Promise<unknown> => Promise.all([live, ...apps].map((each) => each.close()));
  return { text: describeDemo(shop, billing, stock, live.url), close };
});

/** Each address on a line of its own: terminals make a link of it, and a triple click selects nothing else. */
function describeDemo(shop: string, billing: string, stock: string, live: string): string {
  const toTry = [
    ['The mesh, live in a browser', live],
    ['An order, through all three services', `${shop}/orders/1?quantity=2`],
    ['An error of stock, seen at shop', `${shop}/orders/3`],
    ['A parameter that is not allowed', `${shop}/orders/1?color=red`],
    ['Health', `${shop}/shop/health/`],
    ['The mesh, three levels deep', `${shop}/shop/ping/?depth=3`],
    ['Metrics for Prometheus', `${billing}/billing/metrics/`],
    ['Metrics as JSON', `${stock}/stock/metrics/?json`],
  ];
  return `Three services are running: shop asks billing, billing asks stock, and stock knows shop.

${toTry.map(([what, url]) => `${what}:\n${url}\n`).join('\n')}
To see its traces in a collector (OTLP/HTTP) on this machine:
OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 npx postern demo

Ctrl-C drains and stops them.
`;
}

const DEMO_HOST = '127.0.0.1';
const ITEMS: ReadonlyMap<string, { name: string; price: number; left: number }> = new Map([
  ['1', { name: 'lamp', price: 40, left: 3 }],
  ['2', { name: 'desk', price: 180, left: 1 }],
  ['3', { name: 'chair', price: 75, left: 0 }],
]);

class OutOfStock extends ApiError {
  static override statusCode = 409;
  static override message = 'Out of stock.';
  static override errorCode = defineErrorCodes({ out_of_stock: 20_001 }).out_of_stock;
}

function optionsOf(connection: string): PosternOptions {
  return { version: '1.0.0', settings: { SERVICE_CONNECTIONS: [connection] } };
}

/** The service that answers the public. */
function createShop(billing: string): Postern {
  return new Postern('shop', optionsOf(`billing=${billing}`)).get(
    '/orders/:item(\\d+)',
    publicFacing({ params: ['quantity'] })(async (ctx) => {
      const quantity = ctx.query.get('quantity') ?? '1';
      const { body } = await ctx.service('billing').get(`/quotes/${ctx.params.item}`, { query: { quantity } });
      return { order: body };
    }),
  );
}

function createBilling(stock: string): Postern {
  return new Postern('billing', optionsOf(`stock=${stock}`)).get('/quotes/:item(\\d+)', async (ctx) => {
    const { body } = await ctx.service('stock').get(`/items/${ctx.params.item}`);
    const { name, price } = body as { name: string; price: number };
    const quantity = Number(ctx.query.get('quantity') ?? 1);
    return { item: name, quantity, total: price * quantity };
  });
}

function createStock(shop: string): Postern {
  return new Postern('stock', optionsOf(`shop=${shop}`)).get('/items/:item(\\d+)', ({ params: { item } }) => {
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
  const server = createServer().listen(port, DEMO_HOST);
  await once(server, 'listening');
  const { port: actual } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return actual;
}
