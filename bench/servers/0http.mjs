/**
 * 0http; JSON is read and written by hand, as its manual shows.
 */

import zero from '0http';
import { readJson } from './json-body.mjs';
import { ERROR_BODY, fail, hello, listening, NOT_FOUND_BODY, resourceNames } from './service.mjs';

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
  async '0http'({ resources }) {
    const { router, server } = zero({
      errorHandler: (error, req, res) => send(res, 500, ERROR_BODY),
      defaultRoute: (req, res) => send(res, 404, NOT_FOUND_BODY),
    });
    router.get('/hello', (req, res) => send(res, 200, hello()));
    router.post('/echo', (req, res) =>
      readJson(req, (error, value) => (error === null ? send(res, 200, value) : send(res, 500, ERROR_BODY))),
    );
    router.get('/fail', () => fail());
    for (const resource of resourceNames(resources)) {
      router.get(`/v1/${resource}`, (req, res) => send(res, 200, { resource }));
      router.post(`/v1/${resource}`, (req, res) => send(res, 200, { resource }));
      router.get(`/v1/${resource}/:id`, (req, res) => send(res, 200, { id: req.params.id }));
      router.get(`/v1/${resource}/:id/parts`, (req, res) => send(res, 200, { id: req.params.id }));
      router.get(`/v1/${resource}/:id/parts/:part`, (req, res) =>
        send(res, 200, { id: req.params.id, part: req.params.part }),
      );
    }
    return listening(server);
  },
};
