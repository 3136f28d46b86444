import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApp } from '../src/app.ts';
import { stock } from '../src/stock.ts';

const app = createApp({ logger: false, services: { stock } });

const order = (body: object) =>
  app.request('/orders', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

test('an order is priced by stock, and kept', async () => {
  const made = await order({ item: 'tea', quantity: 3 });
  assert.equal(made.status, 201);
  const kept = await app.request(made.headers.get('location') ?? '');
  assert.deepEqual(await kept.json(), await made.json());
});

test('wrong requests are refused', async () => {
  const refused = await order({ item: 'tea', quantity: 0 });
  assert.equal(refused.status, 400);
  assert.match((await refused.json()).description, /^body\/quantity: /);
  assert.equal((await order({ item: 'gold', quantity: 1 })).status, 404);
  assert.equal((await app.request('/orders/none')).status, 404);
});
