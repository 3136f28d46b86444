/** The service `stock`, as this one sees it: the endpoint that it calls, and a stand-in for development and tests. */

import { defineEndpoint, NotFound, Postern } from 'postern';
import { z } from 'zod';

/**
 * Both services import this definition from a package that they share: `stock` implements it, this service calls it.
 */
export const getItem = defineEndpoint('GET', '/items/:id', { response: z.object({ price: z.number() }) });

const prices = new Map([['tea', 4], ['coffee', 7]]);

/** Answers in memory. Set `SERVICE_CONNECTIONS=stock=http://stock:8000` to call the real service. */
export const stock = new Postern('stock', { logger: false });
stock.implement(getItem, (ctx) => {
  const price = prices.get(ctx.params.id);
  if (price === undefined) throw new NotFound(`There is no item ${ctx.params.id}.`);
  return { price };
});
