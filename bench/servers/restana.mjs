/**
 * restana, as it is and with its `setImmediate` before each request off.
 *
 * Its security headers are off: no other contender sends any.
 */

import restana from 'restana';
import { readJson } from './json-body.mjs';
import { ERROR_BODY, fail, hello, NOT_FOUND_BODY, resourceNames } from './service.mjs';

/**
 * @param {import('./service.mjs').Spec} spec
 * @param {object} options
 */
function serve({ resources }, options) {
  const app = restana({
    ...options,
    securityHeaders: false,
    errorHandler: (error, req, res) => res.send(ERROR_BODY, 500),
    defaultRoute: (req, res) => res.send(NOT_FOUND_BODY, 404),
  });
  app.get('/hello', (req, res) => res.send(hello()));
  app.post('/echo', (req, res) =>
    readJson(req, (error, value) => (error === null ? res.send(value) : res.send(ERROR_BODY, 500))),
  );
  app.get('/fail', () => fail());
  for (const resource of resourceNames(resources)) {
    app.get(`/v1/${resource}`, (req, res) => res.send({ resource }));
    app.post(`/v1/${resource}`, (req, res) => res.send({ resource }));
    app.get(`/v1/${resource}/:id`, (req, res) => res.send({ id: req.params.id }));
    app.get(`/v1/${resource}/:id/parts`, (req, res) => res.send({ id: req.params.id }));
    app.get(`/v1/${resource}/:id/parts/:part`, (req, res) => res.send({ id: req.params.id, part: req.params.part }));
  }
  return app.start(0, '127.0.0.1');
}

/** @type {Record<string, import('./service.mjs').Contender>} */
export const contenders = {
  restana: (spec) => serve(spec, {}),
  'restana no prio': (spec) => serve(spec, { prioRequestsProcessing: 0 }),
};
