/**
 * Express, alone and with prom-client.
 */

import { createServer } from 'node:http';
import express from 'express';
import { ERROR_BODY, fail, hello, listening, NOT_FOUND_BODY, resourceNames } from './service.mjs';

/**
 * @param {import('./service.mjs').Spec} spec
 * @param {(app: import('express').Express) => void} prepare
 */
function serve({ resources }, prepare = () => {}) {
  const app = express();
  prepare(app);
  app.get('/hello', (req, res) => res.json(hello()));
  app.post('/echo', express.json(), (req, res) => res.json(req.body));
  app.get('/fail', () => fail());
  for (const resource of resourceNames(resources)) {
    app.get(`/v1/${resource}`, (req, res) => res.json({ resource }));
    app.post(`/v1/${resource}`, (req, res) => res.json({ resource }));
    app.get(`/v1/${resource}/:id`, (req, res) => res.json({ id: req.params.id }));
    app.get(`/v1/${resource}/:id/parts`, (req, res) => res.json({ id: req.params.id }));
    app.get(`/v1/${resource}/:id/parts/:part`, (req, res) => res.json({ id: req.params.id, part: req.params.part }));
  }
  app.use((req, res) => res.status(404).json(NOT_FOUND_BODY));
  // Four parameters make it an error handler.
  app.use((error, req, res, next) => res.status(500).json(ERROR_BODY));
  return listening(createServer(app));
}

/** @type {Record<string, import('./service.mjs').Contender>} */
export const contenders = {
  express: (spec) => serve(spec),
  async 'express + prom-client'(spec) {
    const { default: client } = await import('prom-client');
    client.collectDefaultMetrics();
    const durations = new client.Histogram({
      name: 'http_request_duration_seconds',
      help: 'Requests.',
      labelNames: ['method', 'route', 'status_code'],
    });
    return serve(spec, (app) => {
      app.use((req, res, next) => {
        const stop = durations.startTimer();
        res.once('finish', () =>
          stop({ method: req.method, route: req.route?.path ?? '', status_code: res.statusCode }),
        );
        next();
      });
    });
  },
};
