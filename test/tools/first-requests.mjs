/**
 * Sends nine requests at once to a service that has just begun to listen, from the same process, and writes their
 * statuses: `node first-requests.mjs TURN`. The turn is the number of the request that is sent first.
 */

import { request } from 'node:http';
import { Postern } from 'postern';

/** A schema without a library: loading one takes longer than the rest of a start. */
const Order = {
  '~standard': {
    version: 1,
    vendor: 'shop',
    validate: (value) =>
      Number.isInteger(value.count) ? { value } : { issues: [{ message: 'count is not a whole number' }] },
  },
};

const billing = new Postern('billing', { logger: false }).get('/invoices/7', () => ({ invoice: '7' }));
const settings = { SERVICE_CONNECTIONS: ['billing'] };
const app = new Postern('shop', { logger: false, settings, services: { billing } });
app.post('/orders', { body: Order }, (_ctx, { body }) => body);
app.get('/invoice', async (ctx) => (await ctx.service('billing').get('/invoices/7')).body);
app.get('/stream', async function* () {
  yield 'a';
  yield 'b';
});

const REQUESTS = [
  { path: '/orders', body: '{"count":1}' },
  { path: '/orders', body: '{"count":"one"}' },
  { path: '/invoice' },
  { path: '/stream' },
  { path: '/nothing' },
  { path: '/shop/metrics/' },
  { path: '/shop/health/' },
  { path: '/shop/ping/' },
  { path: '/shop/openapi/' },
];

/** @returns the status */
function send(url, { path, body }) {
  const options = body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' } };
  return new Promise((resolve, reject) => {
    const sent = request(url + path, { ...options, agent: false }, (res) => {
      res.resume().once('error', reject).once('end', () => resolve(res.statusCode));
    });
    sent.once('error', reject).end(body);
  });
}

const turn = Number(process.argv[2]);
const statuses = [];
const { url } = await app.listen({ port: 0, host: '127.0.0.1' });
await Promise.all(
  REQUESTS.map(async (_, nth) => {
    const index = (nth + turn) % REQUESTS.length;
    statuses[index] = await send(url, REQUESTS[index]);
  }),
);
console.log(statuses.join(' '));
await app.close();
