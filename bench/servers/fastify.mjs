/**
 * Fastify, with and without response schemas, and with fastify-metrics; handlers call `reply.send`, as in its own
 * benchmarks.
 */

import { fastify } from 'fastify';
import { checkedOf, ERROR_BODY, fail, hello, list, NOT_FOUND_BODY, resourceNames } from './service.mjs';

const TEXT = { type: 'string' };
const ERROR = object({
  message: TEXT,
  description: TEXT,
  error_code: object({ name: TEXT, value: { type: 'integer' } }),
});

/** @param {Record<string, unknown>} properties */
function object(properties) {
  return { type: 'object', properties };
}

/**
 * @param {import('./service.mjs').Spec} spec
 * @param {(properties: Record<string, unknown>) => object} options of a route that answers these
 * @param {object} failing options of the route that throws
 * @param {(app: import('fastify').FastifyInstance) => PromiseLike<unknown> | void} prepare
 */
async function serve(spec, options, failing, prepare = () => {}) {
  const app = fastify();
  const checked = await checkedOf(spec);
  await prepare(app);
  app.setErrorHandler((error, request, reply) => reply.code(500).send(ERROR_BODY));
  app.setNotFoundHandler((request, reply) => reply.code(404).send(NOT_FOUND_BODY));
  app.get('/hello', options({ message: TEXT }), (request, reply) => reply.send(hello()));
  app.get('/list', (request, reply) => reply.send(list()));
  // What it answers is not known beforehand: no schema.
  app.post('/echo', (request, reply) => reply.send(request.body));
  if (checked !== undefined) {
    const { response } = options({ id: TEXT, items: { type: 'integer' } }).schema ?? {};
    const schema = { body: checked.MESSAGE_SCHEMA, ...(response === undefined ? {} : { response }) };
    app.post('/checked', { schema }, (request, reply) => reply.send(checked.summary(request.body)));
  }
  app.get('/fail', failing, () => fail());
  for (const resource of resourceNames(spec.resources)) {
    app.get(`/v1/${resource}`, options({ resource: TEXT }), (request, reply) => reply.send({ resource }));
    app.post(`/v1/${resource}`, options({ resource: TEXT }), (request, reply) => reply.send({ resource }));
    app.get(`/v1/${resource}/:id`, options({ id: TEXT }), ({ params }, reply) => reply.send({ id: params.id }));
    app.get(`/v1/${resource}/:id/parts`, options({ id: TEXT }), ({ params }, reply) => reply.send({ id: params.id }));
    app.get(`/v1/${resource}/:id/parts/:part`, options({ id: TEXT, part: TEXT }), ({ params }, reply) =>
      reply.send({ id: params.id, part: params.part }),
    );
  }
  await app.listen({ host: '127.0.0.1', port: 0 });
  return app.server;
}

/** @type {Record<string, import('./service.mjs').Contender>} */
export const contenders = {
  fastify: (spec) => serve(spec, () => ({}), {}),
  'fastify + schema': (spec) =>
    serve(spec, (properties) => ({ schema: { response: { 200: object(properties) } } }), {
      schema: { response: { 500: ERROR } },
    }),
  'fastify + fastify-metrics': (spec) =>
    serve(spec, () => ({}), {}, async (app) => {
      const { default: plugin } = await import('fastify-metrics');
      await app.register(plugin.default ?? plugin, { endpoint: '/metrics' });
    }),
};
