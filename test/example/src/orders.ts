/** Where orders are kept. */

import { appendFileSync, readFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';

export type Order = z.infer<typeof Order>;
export const Order = z.object({ id: z.string(), item: z.string(), quantity: z.int(), total: z.number() });

export interface Orders {
  add(order: Order): void;
  find(id: string): Order | undefined;
  check(): boolean;
  close(): void;
}

/** SQLite where Node.js has it (22.13 and later), else a line of JSON for each; `:memory:` keeps nothing. */
export async function openOrders(file: string): Promise<Orders> {
  const sqlite = await import('node:sqlite').catch(() => undefined);
  return sqlite === undefined ? inLines(file) : inTable(new sqlite.DatabaseSync(file));
}

function inTable(database: DatabaseSync): Orders {
  database.exec('CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, item TEXT, quantity INTEGER, total REAL)');
  const insert = database.prepare('INSERT INTO orders (id, item, quantity, total) VALUES (?, ?, ?, ?)');
  const select = database.prepare('SELECT id, item, quantity, total FROM orders WHERE id = ?');
  return {
    add: ({ id, item, quantity, total }) => void insert.run(id, item, quantity, total),
    find: (id) => Order.optional().parse(select.get(id)),
    check: () => select.get('') === undefined,
    close: () => database.close(),
  };
}

function inLines(file: string): Orders {
  const kept = file !== ':memory:';
  const text = kept ? readFileSync(file, { encoding: 'utf8', flag: 'a+' }) : '';
  const lines = text.split('\n').slice(0, -1);
  const orders = new Map(lines.map((line) => Order.parse(JSON.parse(line))).map((order) => [order.id, order]));
  return {
    add(order) {
      if (kept) appendFileSync(file, `${JSON.stringify(order)}\n`);
      orders.set(order.id, order);
    },
    find: (id) => orders.get(id),
    check: () => true,
    close: () => undefined,
  };
}
