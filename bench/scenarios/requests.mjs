/**
 * The requests that the scenarios send, with the answers they must get.
 */

import { ERROR_BODY, hello, list, NOT_FOUND_BODY, resourceNames } from '../servers/service.mjs';

/**
 * @typedef {object} Request
 * @property {string} method
 * @property {string} path
 * @property {string} [body] JSON
 * @property {number} status of the answer
 * @property {unknown} json of the answer
 */

/** More than any cache of look-ups by path holds: ids of real requests vary. */
const DISTINCT = 5000;

/** @type {Request} */
export const HELLO = { method: 'GET', path: '/hello', status: 200, json: hello() };

/** @type {Request} */
export const LIST = { method: 'GET', path: '/list', status: 200, json: list() };

/** @type {Request} */
export const FAIL = { method: 'GET', path: '/fail', status: 500, json: ERROR_BODY };

/** 1 kB of JSON. */
const MESSAGE = {
  id: 'b3f1c2d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d',
  active: true,
  score: 12.75,
  tags: ['alpha', 'beta', 'gamma', 'delta'],
  address: { street: '12 Harbour Street', city: 'Lisbon', country: 'PT' },
  items: Array.from({ length: 12 }, (_, index) => ({
    sku: `item-${index}`,
    count: index * 3,
    price: index * 1.5 + 0.25,
    note: 'as ordered',
  })),
  comment: 'x'.repeat(24),
};

/** @type {Request} */
export const ECHO = { method: 'POST', path: '/echo', body: JSON.stringify(MESSAGE), status: 200, json: MESSAGE };

/** The same, held to a schema. @type {Request} */
export const CHECKED = { ...ECHO, path: '/checked', json: { id: MESSAGE.id, items: MESSAGE.items.length } };

/**
 * Requests with one and with two parameters, by turns, over all resources.
 *
 * @param {number} resources
 * @param {() => number} random
 * @returns {Request[]}
 */
export function parameterised(resources, random) {
  const names = resourceNames(resources);
  return Array.from({ length: DISTINCT }, (_, index) => {
    const name = names[Math.floor(random() * names.length)];
    const id = String(Math.floor(random() * 1e6));
    const part = String(Math.floor(random() * 1e3));
    return index % 2 === 0
      ? { method: 'GET', path: `/v1/${name}/${id}`, status: 200, json: { id } }
      : { method: 'GET', path: `/v1/${name}/${id}/parts/${part}`, status: 200, json: { id, part } };
  });
}

/**
 * @param {() => number} random
 * @returns {Request[]}
 */
export function unknown(random) {
  return Array.from({ length: DISTINCT }, () => ({
    method: 'GET',
    path: `/v1/nothing/${Math.floor(random() * 1e6)}`,
    status: 404,
    json: NOT_FOUND_BODY,
  }));
}

/**
 * Of ten requests six have parameters, one says hello, one echoes, one finds nothing and one fails.
 *
 * @param {number} resources
 * @param {() => number} random
 * @returns {Request[]}
 */
export function mixed(resources, random) {
  const found = parameterised(resources, random);
  const missing = unknown(random);
  return found.map((request, index) => [HELLO, ECHO, missing[index], FAIL][index % 10] ?? request);
}
