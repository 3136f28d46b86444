/** The service: its routes, the service that it calls, and what it needs to be ready. */

import { randomUUID } from 'node:crypto';
import { NotFound, Postern, reply, type PosternOptions } from 'postern';
import { NewOrder, Order, Orders } from './orders.ts';
import { getItem, stock } from './stock.ts';

export function createApp(options: PosternOptions = {}): Postern {
  const orders = new Orders();
  const app = new Postern('service-name', { connections: { stock: { timeout: 2_000, retry: 1 } }, ...options });
  app.health.check('orders', () => orders.isReady());

  app.post('/orders', { body: NewOrder, response: { 201: Order }, public: true }, async (ctx, { body }) => {
    const { body: item } = await ctx.service('stock').call(getItem, { params: { id: body.item } });
    const order = { id: randomUUID(), ...body, total: item.price * body.quantity };
    orders.add(order);
    return reply(order, { status: 201, headers: { location: `/orders/${order.id}` } });
  });

  app.get('/orders/:id', { response: Order, public: true }, (ctx) => {
    const order = orders.find(ctx.params.id);
    if (order === undefined) throw new NotFound(`There is no order ${ctx.params.id}.`);
    return order;
  });

  return app;
}

// Without a connection to the real service, the stand-in answers. It invents prices, so never in production.
const isConnected = process.env['SERVICE_CONNECTIONS'] !== undefined;
if (!isConnected && process.env['NODE_ENV'] === 'production')
  throw new Error('SERVICE_CONNECTIONS is not set; set it, for example to stock=http://stock:8000');

/** For main.ts, and for `npx postern routes src/app.ts`. */
export default createApp(isConnected ? {} : { services: { stock } });
