/**
 * h3.
 */

import { createServer } from 'node:http';
import { H3, HTTPResponse, readBody, toNodeHandler } from 'h3';
import { ERROR_BODY, fail, hello, listening, NOT_FOUND_BODY, resourceNames } from './service.mjs';

const JSON_HEADERS = { 'content-type': 'application/json' };

/** @type {Record<string, import('./service.mjs').Contender>} */
export const contenders = {
  h3({ resources }) {
    const app = new H3({
      silent: true,
      onError: (error) =>
        error.status === 404
          ? new HTTPResponse(JSON.stringify(NOT_FOUND_BODY), { status: 404, headers: JSON_HEADERS })
          : new HTTPResponse(JSON.stringify(ERROR_BODY), { status: 500, headers: JSON_HEADERS }),
    });
    app.get('/hello', () => hello());
    app.post('/echo', (event) => readBody(event));
    app.get('/fail', () => fail());
    for (const resource of resourceNames(resources)) {
      app.get(`/v1/${resource}`, () => ({ resource }));
      app.post(`/v1/${resource}`, () => ({ resource }));
      app.get(`/v1/${resource}/:id`, (event) => ({ id: event.context.params.id }));
      app.get(`/v1/${resource}/:id/parts`, (event) => ({ id: event.context.params.id }));
      app.get(`/v1/${resource}/:id/parts/:part`, (event) => ({
        id: event.context.params.id,
        part: event.context.params.part,
      }));
    }
    return listening(createServer(toNodeHandler(app)));
  },
};
