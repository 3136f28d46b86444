/**
 * Postern as it is built: monitoring attached and every request measured, as always. Nothing is logged, as in the peers.
 *
 * POSTERN_DIST names the build, for comparing two.
 */

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fail, hello, resourceNames } from './service.mjs';

const dist = process.env['POSTERN_DIST'] ?? resolve(import.meta.dirname, '../../dist');
const { Postern } = await import(pathToFileURL(resolve(dist, 'index.js')).href);

/** @type {Record<string, import('./service.mjs').Contender>} */
export const contenders = {
  async postern({ resources }) {
    const app = new Postern('bench', { logger: false });
    app.get('/hello', hello);
    app.post('/echo', (ctx) => ctx.json());
    app.get('/fail', fail);
    for (const resource of resourceNames(resources)) {
      app.get(`/v1/${resource}`, () => ({ resource }));
      app.post(`/v1/${resource}`, () => ({ resource }));
      app.get(`/v1/${resource}/:id`, (ctx) => ({ id: ctx.params.id }));
      app.get(`/v1/${resource}/:id/parts`, (ctx) => ({ id: ctx.params.id }));
      app.get(`/v1/${resource}/:id/parts/:part`, (ctx) => ({ id: ctx.params.id, part: ctx.params.part }));
    }
    await app.listen({ host: '127.0.0.1', port: 0 });
    return app.server;
  },
};
