/**
 * Hono on its server for Node.js.
 */

import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { ERROR_BODY, fail, hello, listening, NOT_FOUND_BODY, resourceNames } from './service.mjs';

/** @type {Record<string, import('./service.mjs').Contender>} */
export const contenders = {
  hono({ resources }) {
    const app = new Hono();
    app.onError((error, c) => c.json(ERROR_BODY, 500));
    app.notFound((c) => c.json(NOT_FOUND_BODY, 404));
    app.get('/hello', (c) => c.json(hello()));
    app.post('/echo', async (c) => c.json(await c.req.json()));
    app.get('/fail', () => fail());
    for (const resource of resourceNames(resources)) {
      app.get(`/v1/${resource}`, (c) => c.json({ resource }));
      app.post(`/v1/${resource}`, (c) => c.json({ resource }));
      app.get(`/v1/${resource}/:id`, (c) => c.json({ id: c.req.param('id') }));
      app.get(`/v1/${resource}/:id/parts`, (c) => c.json({ id: c.req.param('id') }));
      app.get(`/v1/${resource}/:id/parts/:part`, (c) => c.json({ id: c.req.param('id'), part: c.req.param('part') }));
    }
    return listening(createAdaptorServer({ fetch: app.fetch }));
  },
};
