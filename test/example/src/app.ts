/** The service: its routes, what it calls, what it needs. */

import { randomUUID } from 'node:crypto';
import { defineEndpoint, NotFound, Postern, reply, type PosternOptions } from 'postern';
import { z } from 'zod';
import { openOrders, Order, type Orders } from './orders.js';

/** Of the service stock, which imports and implements the same definition, if it is yours. */
const getItem = defineEndpoint('GET', '/items/:id', { response: z.object({ price: z.number() }) });

const NewOrder = z.object({ item: z.string().regex(/^[a-z-]{1,40}$/), quantity: z.int().min(1).max(100) });

export function createApp(orders: Orders, options: PosternOptions = {}): Postern {
  const stock = process.env['STOCK_URL'] ?? 'http://stock:8000';
  const app = new Postern('orders', { settings: { SERVICE_CONNECTIONS: [`stock=${stock}`] }, ...options });
  app.health.check('database', () => orders.check());
  app.onClose(() => orders.close());

  app.post('/orders', { body: NewOrder, response: { 201: Order }, public: true }, async (ctx, { body }) => {
    const item = await ctx.service('stock').call(getItem, { params: { id: body.item } });
    const order = { id: randomUUID(), ...body, total: item.body.price * body.quantity };
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

/** For main.ts, and for `npx postern`. */
export default createApp(await openOrders(process.env['DATABASE'] ?? ':memory:'));
