/**
 * The check of `POST /checked`, the same for every contender: the JSON Schema of a body of 1 kB, compiled by ajv, which
 * is what fastify compiles schemas with.
 */

import { Ajv } from 'ajv';

const TEXT = { type: 'string' };
const NUMBER = { type: 'number' };

/** @param {Record<string, unknown>} properties */
function object(properties) {
  return { type: 'object', required: Object.keys(properties), properties };
}

/** Of the message in `scenarios/requests.mjs`. */
export const MESSAGE_SCHEMA = object({
  id: TEXT,
  active: { type: 'boolean' },
  score: NUMBER,
  tags: { type: 'array', items: TEXT },
  address: object({ street: TEXT, city: TEXT, country: TEXT }),
  items: { type: 'array', items: object({ sku: TEXT, count: NUMBER, price: NUMBER, note: TEXT }) },
  comment: TEXT,
});

export const validate = new Ajv().compile(MESSAGE_SCHEMA);

/** The same as a Standard Schema: the adapter of the README. */
export const standardSchema = {
  '~standard': {
    version: 1,
    vendor: 'ajv',
    validate: (value) =>
      validate(value)
        ? { value }
        : {
            issues: (validate.errors ?? []).map(({ message = '', instancePath }) => ({
              message,
              path: instancePath.split('/').slice(1),
            })),
          },
  },
};

/** What the handler answers. */
export function summary({ id, items }) {
  return { id, items: items.length };
}
