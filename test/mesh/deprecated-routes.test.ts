/** Who calls a deprecated route, and which of the called routes are deprecated: one line each, on both sides. */

import { expect, test } from 'vitest';
import { defineEndpoint, type Postern } from 'postern';
import { createApp, createRecorder } from '../support/serve.js';

const CALLED = 'a deprecated route is called';
const CALLS = 'a deprecated route of another service is called';

type Recorder = ReturnType<typeof createRecorder>;
const linesOf = ({ entries }: Recorder, message: string): object[] =>
  entries.filter((entry) => entry.message === message && entry.level === 'warn').map(({ object }) => object);

function createBilling(): { billing: Postern; logger: Recorder } {
  const logger = createRecorder();
  const billing = createApp({ logger }, 'billing');
  const ends = { at: '2026-01-01', sunset: '2027-01-01T00:00:00Z', link: 'https://docs.example/v2' };
  billing.get('/v1/invoices/:id', { deprecated: ends }, () => 'x');
  billing.get('/v1/plain', { deprecated: true }, () => 'x');
  billing.get('/v1/kept', { deprecated: false }, () => 'x');
  return { billing, logger };
}

test('a deprecated route logs each of its callers once, and all others together once', async () => {
  const { billing, logger } = createBilling();
  const ask = async (path: string, agent: string, id: string): Promise<void> => {
    const headers = { 'user-agent': agent, 'x-request-id': id };
    expect((await billing.request(path, { headers })).status).toBe(200);
  };
  for (const id of ['a', 'b']) {
    await ask('/v1/invoices/7', 'shop/1 postern/1', `shop-${id}`);
    await ask('/v1/invoices/7', 'mail/1 postern/1', `mail-${id}`);
    await ask('/v1/invoices/7', `curl/${id}`, `curl-${id}`);
    await ask('/v1/plain', 'shop/2 postern/1', `plain-${id}`);
    await ask('/v1/kept', 'shop/1 postern/1', `kept-${id}`);
  }
  const invoices = { method: 'GET', route: '/v1/invoices/:id' };
  expect(linesOf(logger, CALLED)).toEqual([
    { ...invoices, caller: 'shop', request_id: 'shop-a' },
    { ...invoices, caller: 'mail', request_id: 'mail-a' },
    { ...invoices, request_id: 'curl-a' },
    { method: 'GET', route: '/v1/plain', caller: 'shop', request_id: 'plain-a' },
  ]);
});

test('clients that invent names add 100 lines at most', async () => {
  const { billing, logger } = createBilling();
  for (let n = 0; n < 120; n += 1)
    await billing.request('/v1/plain', { headers: { 'user-agent': `c${n}/1 postern/1` } });
  expect(linesOf(logger, CALLED)).toHaveLength(100);
});

test('the calling service logs each deprecated route of another service once, with its dates', async () => {
  const { billing } = createBilling();
  const logger = createRecorder();
  const shop = createApp({ logger, services: { billing } }, 'shop');
  const getInvoice = defineEndpoint('GET', '/v1/invoices/:id');
  shop.get('/', async (ctx) => {
    const client = ctx.service('billing');
    for (const id of ['7', '8']) {
      await client.get(`/v1/invoices/${id}`);
      await (await client.fetch(`/v1/invoices/${id}`)).text();
      await client.call(getInvoice, { params: { id } });
    }
    await client.get('/v1/plain');
  });
  expect((await shop.request('/', { headers: { 'x-request-id': 'r' } })).status).toBe(204);
  const dates = { deprecation: '@1767225600', sunset: 'Fri, 01 Jan 2027 00:00:00 GMT' };
  const line = { service: 'billing', method: 'GET', ...dates, request_id: 'r' };
  expect(linesOf(logger, CALLS)).toEqual([
    { ...line, route: '/*/invoices/*' },
    { ...line, route: '/v1/invoices/:id' },
  ]);
});

test('a called service adds 100 lines at most, each with 100 characters of a header at most', async () => {
  const logger = createRecorder();
  const other = (): Response => new Response('x', { headers: { deprecation: 'd'.repeat(5000) } });
  const shop = createApp({ logger, services: { other } }, 'shop');
  const letters = [...'abcdefghijk'];
  for (const a of letters) for (const b of letters) await shop.service('other').get(`/${a}/${b}`);
  const lines = linesOf(logger, CALLS);
  expect(lines).toHaveLength(100);
  expect(lines[0]).toEqual({ service: 'other', method: 'GET', route: '/a/a', deprecation: 'd'.repeat(100) });
});
