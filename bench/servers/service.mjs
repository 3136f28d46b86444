/**
 * The service that every contender implements, so that all do the same work.
 *
 *   GET  /hello                    → {"message":"Hello, world!"}
 *   POST /echo                     → the JSON body, parsed and written anew
 *   GET  /fail                     → its handler throws an Error; answered with ERROR_BODY
 *   POST /checked                  → for a body that fits its schema, what `summary` makes of it (SPEC.isChecked alone)
 *   GET  /list                     → 150 items, 12 kB of JSON made anew (the bare server, Postern and fastify alone)
 *   for each resource, five routes (SPEC.resources of them; none for the smallest application):
 *   GET  /v1/<resource>            → {"resource":"<resource>"}
 *   POST /v1/<resource>            → the same
 *   GET  /v1/<resource>/:id        → {"id":"<id>"}
 *   GET  /v1/<resource>/:id/parts  → {"id":"<id>"}
 *   GET  /v1/<resource>/:id/parts/:part → {"id":"<id>","part":"<part>"}
 *   anything else                  → 404 with NOT_FOUND_BODY
 */

/**
 * What a server file exports: contenders by name.
 *
 * @typedef {(spec: Spec) => import('node:http').Server | Promise<import('node:http').Server>} Contender
 * @typedef {{ resources: number, isChecked?: boolean }} Spec
 */

export const ROUTES_PER_RESOURCE = 5;

/** Made anew for each request, as a handler would. */
export function hello() {
  return { message: 'Hello, world!' };
}

export function list() {
  const itemOf = (_, id) => ({ id, name: `name of item ${id}`, price: id * 1.5, tags: ['a', 'b', 'c'], isSold: true });
  return { items: Array.from({ length: 150 }, itemOf) };
}

/** What the handler of /fail throws. */
export function fail() {
  throw new Error('boom');
}

/** The uniform error bodies of Postern; the peers send the same, from an error handler as their manuals show it. */
export const ERROR_BODY = {
  message: 'Server Error',
  description: 'Something has blown up really bad. Somebody should be notified?',
  error_code: { name: 'framework_unknown_error', value: 999999 },
};
export const NOT_FOUND_BODY = {
  message: 'Not Found',
  description: 'No route matches this path.',
  error_code: { name: 'framework_error_unspecified', value: 999998 },
};

/** @param {number} count */
export function resourceNames(count) {
  return Array.from({ length: count }, (_, index) => `resource-${index}`);
}

/**
 * Resolves with a server once it listens on a free port of the loopback interface.
 *
 * @param {import('node:http').Server} server
 * @returns {Promise<import('node:http').Server>}
 */
export async function listening(server) {
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', () => resolve(undefined)));
  return server;
}

/**
 * The check of `POST /checked`, loaded where it is measured: a validator costs memory and start-up.
 *
 * @param {Spec} spec
 */
export async function checkedOf({ isChecked }) {
  return isChecked === true ? import('./checked.mjs') : undefined;
}
