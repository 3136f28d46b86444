/**
 * One service of an overload scenario in a process of its own: `service.mjs FRAMEWORK KIND [URL of the next service]`.
 * Prints its port.
 */

import { once } from 'node:events';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { KINDS } from './work.mjs';

const [framework = '', kind = '', next = 'http://127.0.0.1:1'] = process.argv.slice(2);
const routes = KINDS[kind]();

/** Asks the next service, as a careful user of a framework without a client would: with a time limit. */
async function fetchNext(retries) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await fetch(`${next}/work`, {
        signal: AbortSignal.timeout(1000),
        headers: { 'x-envoy-expected-rq-timeout-ms': '1000' },
      });
      if (response.status !== 200) throw new Error(`the next service answered ${response.status}`);
      return await response.json();
    } catch (error) {
      if (attempt >= retries) throw error;
    }
  }
}

async function servePostern(loadShedding) {
  const dist = process.env['POSTERN_DIST'] ?? resolve(import.meta.dirname, '../../dist');
  const { endpoint, Postern } = await import(pathToFileURL(resolve(dist, 'index.js')).href);
  const app = new Postern('bench', {
    logger: false,
    loadShedding,
    settings: { SERVICE_CONNECTIONS: [`next=${next}`] },
  });
  for (const [path, { handle, priority }] of Object.entries(routes)) {
    const options = priority === undefined ? {} : { priority };
    const work = endpoint(options, (ctx) =>
      handle(async (retry) => (await ctx.service('next').get('/work', { retry, timeout: 1000 })).body, ctx),
    );
    app.route(path, { GET: work, POST: work });
  }
  const { port } = await app.listen({ host: '127.0.0.1', port: 0 });
  return port;
}

const FRAMEWORKS = {
  postern: () => servePostern(undefined),
  'postern, loadShedding: false': () => servePostern(false),
  'fastify, under-pressure': async () => {
    const { fastify } = await import('fastify');
    const { default: underPressure } = await import('@fastify/under-pressure');
    const app = fastify();
    await app.register(underPressure, { maxEventLoopDelay: 200, maxEventLoopUtilization: 0.98 });
    for (const [path, { handle }] of Object.entries(routes)) app.get(path, async () => handle(fetchNext));
    return Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
  },
  express: async () => {
    const { default: express } = await import('express');
    const app = express();
    for (const [path, { handle }] of Object.entries(routes))
      app.get(path, async (req, res) => void res.json(await handle(fetchNext)));
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server.address().port;
  },
};

console.log(await FRAMEWORKS[framework]());
