/**
 * One instance of a service of the mesh of `test/story/incidents.test.ts`. Its parent sends it a fault, for which it
 * begins anew with an application that has no past. Arguments: name, port, monitor port, connections as JSON.
 */

import { defineEndpoint, Postern } from '../../dist/index.js';

const [, , name, port, monitorPort, connections] = process.argv;
const ENDPOINTS = {
  shop: defineEndpoint('GET', '/checkout/:id', {}),
  orders: defineEndpoint('GET', '/orders/:id', {}),
  billing: defineEndpoint('GET', '/charges/:id', {}),
  stock: defineEndpoint('GET', '/items/:id', {}),
  mail: defineEndpoint('GET', '/mails/:id', {}),
};
/** Which services each one calls for a request. */
const CALLS = { shop: ['orders'], orders: ['billing', 'stock', 'mail'] };

const kept = [];
const FAULTS = {
  none: () => undefined,
  slow: () => new Promise((resolve) => setTimeout(resolve, 3000)),
  blocked: function checksum() {
    const endMs = Date.now() + 1500;
    while (Date.now() < endMs);
  },
  leak: () => void kept.push(new Array(400_000).fill(Math.random())),
  rejection: () => void Promise.reject(new Error('nobody awaits this')),
  failing: () => {
    throw new Error('a bug of this version');
  },
  busy: () => {
    const endMs = Date.now() + 30;
    while (Date.now() < endMs);
  },
};

let app;
let flooding;

async function begin({ fault, retry = 0, address, flood }) {
  await app?.close({ timeout: 0 });
  const urls = { ...JSON.parse(connections), ...address };
  const settings = { SERVICE_CONNECTIONS: Object.entries(urls).map((pair) => pair.join('=')) };
  const monitor = { host: '127.0.0.1', port: Number(monitorPort) };
  app = new Postern(name, { settings, monitor, diagnostics: true, logger: false });
  app.implement(ENDPOINTS[name], async (ctx) => {
    for (const next of CALLS[name] ?? []) {
      const timeout = name === 'shop' ? 4000 : 1000;
      await ctx.service(next).call(ENDPOINTS[next], { params: { id: '7' } }, { timeout, retry });
    }
    await FAULTS[fault]();
    return { id: '7' };
  });
  await app.listen({ host: '127.0.0.1', port: Number(port) });
  process.send({ fault });
  clearInterval(flooding);
  if (flood)
    flooding = setInterval(() => {
      for (let i = 0; i < flood; i += 1)
        app.service('stock').call(ENDPOINTS.stock, { params: { id: '7' } }, { timeout: 1000 }).catch(() => undefined);
    }, 100);
}

process.on('message', (message) => void begin(message));
process.on('disconnect', () => process.exit());
process.send({});
