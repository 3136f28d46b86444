/**
 * Polka; JSON is read and written by hand, as its manual shows.
 */

import polka from 'polka';
import { readJson } from './json-body.mjs';
import { ERROR_BODY, fail, hello, NOT_FOUND_BODY, resourceNames } from './service.mjs';

/**
 * @param {import('node:http').ServerResponse} res
 * @param {number} status
 * @param {unknown} value
 */
function send(res, status, value) {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify(value));
}

/** @type {Record<string, import('./service.mjs').Contender>} */
export const contenders = {
  async polka({ resources }) {
    const app = polka({ onNoMatch: (req, res) => send(res, 404, NOT_FOUND_BODY) });
    app.get('/hello', (req, res) => send(res, 200, hello()));
    app.post('/echo', (req, res) =>
      readJson(req, (error, value) => (error === null ? send(res, 200, value) : send(res, 500, ERROR_BODY))),
    );
    // What a handler throws would end the process, and a route without middleware gets no `next`.
    app.get('/fail', (req, res) => {
      try {
        fail();
      } catch {
        send(res, 500, ERROR_BODY);
      }
    });
    for (const resource of resourceNames(resources)) {
      app.get(`/v1/${resource}`, (req, res) => send(res, 200, { resource }));
      app.post(`/v1/${resource}`, (req, res) => send(res, 200, { resource }));
      app.get(`/v1/${resource}/:id`, (req, res) => send(res, 200, { id: req.params.id }));
      app.get(`/v1/${resource}/:id/parts`, (req, res) => send(res, 200, { id: req.params.id }));
      app.get(`/v1/${resource}/:id/parts/:part`, (req, res) =>
        send(res, 200, { id: req.params.id, part: req.params.part }),
      );
    }
    await new Promise((resolve) => app.listen(0, '127.0.0.1', resolve));
    return app.server;
  },
};
