/** What an order is, and where orders are kept. */

import { z } from 'zod';

export const NewOrder = z.object({ item: z.string().regex(/^[a-z-]{1,40}$/), quantity: z.int().min(1).max(100) });
export const Order = NewOrder.extend({ id: z.string(), total: z.number() });
export type Order = z.infer<typeof Order>;

/** Keeps orders in memory: replace it with your database. */
export class Orders {
  readonly #orders = new Map<string, Order>();

  add(order: Order): void {
    this.#orders.set(order.id, order);
  }

  find(id: string): Order | undefined {
    return this.#orders.get(id);
  }

  /** Whether orders can be read and written. */
  async isReady(): Promise<boolean> {
    return true;
  }
}
