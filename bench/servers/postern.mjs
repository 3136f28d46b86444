/**
 * Postern as it is built: monitoring attached and every request measured, as always. Nothing is logged, as in the
 * peers.
 *
 * POSTERN_DIST names the build, for comparing two.
 */

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { checkedOf, fail, hello, list, resourceNames } from './service.mjs';

const dist = process.env['POSTERN_DIST'] ?? resolve(import.meta.dirname, '../../dist');
const { BadRequest, Postern } = await import(pathToFileURL(resolve(dist, 'index.js')).href);

/**
 * @param {import('./service.mjs').Spec} spec
 * @param {(app: object, checked: typeof import('./checked.mjs')) => void} addChecked
 */
async function serve(spec, addChecked) {
  const app = new Postern('bench', { logger: false });
  const checked = await checkedOf(spec);
  if (checked !== undefined) addChecked(app, checked);
  app.get('/hello', hello);
  app.get('/list', list);
  app.post('/echo', (ctx) => ctx.json());
  app.get('/fail', fail);
  for (const resource of resourceNames(spec.resources)) {
    app.get(`/v1/${resource}`, () => ({ resource }));
    app.post(`/v1/${resource}`, () => ({ resource }));
    app.get(`/v1/${resource}/:id`, (ctx) => ({ id: ctx.params.id }));
    app.get(`/v1/${resource}/:id/parts`, (ctx) => ({ id: ctx.params.id }));
    app.get(`/v1/${resource}/:id/parts/:part`, (ctx) => ({ id: ctx.params.id, part: ctx.params.part }));
  }
  await app.listen({ host: '127.0.0.1', port: 0 });
  return app.server;
}

/** @type {Record<string, import('./service.mjs').Contender>} */
export const contenders = {
  postern: (spec) =>
    serve(spec, (app, { standardSchema, summary }) =>
      app.post('/checked', { body: standardSchema }, (ctx, { body }) => summary(body)),
    ),
  'postern by hand': (spec) =>
    serve(spec, (app, { validate, summary }) =>
      app.post('/checked', async (ctx) => {
        const body = await ctx.json();
        if (!validate(body)) throw new BadRequest(validate.errors[0].message);
        return summary(body);
      }),
    ),
};
