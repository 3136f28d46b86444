/**
 * What a newer OpenAPI document breaks for clients of an older one.
 *
 * @module-tag package
 */

import { expect, test } from 'vitest';
import { findBreaks } from '../../src/openapi/breaks.js';
import { BadRequest, type RouteOptions } from 'postern';
import { toOpenApi, type OpenApiDocument } from 'postern/openapi';
import { z } from 'zod';
import { createApp } from '../support/serve.js';

const schemas = {
  User: {
    type: 'object',
    required: ['id'],
    properties: {
      id: { type: 'string' },
      tags: { type: 'array', items: { type: 'object', properties: { t: { type: 'string' } } } },
    },
  },
};
const documentOf = (operation: object, path = '/a/{id}', components: object = schemas): OpenApiDocument =>
  ({
    openapi: '3.1.1',
    info: { title: 'a', version: '1' },
    paths: { [path]: { get: operation } },
    components: { schemas: components },
  }) as unknown as OpenApiDocument;
const replying = (schema: object, status = '200'): object =>
  ({ responses: { [status]: { content: { 'application/json': { schema } } }, default: {} } });
const taking = (schema: object, required = true): object =>
  ({ requestBody: { required, content: { 'application/json': { schema } } }, responses: {} });
const $ref = '#/components/schemas/User';

/** A schema that refers to itself in four ways, and has further members. */
const tree = (...others: string[]): object => ({
  User: {
    type: 'object',
    properties: Object.fromEntries([...'abcd'].map((name): [string, object] => [name, { anyOf: [{ $ref }, { type: 'null' }] }])
      .concat(others.map((name) => [name, {}]))),
  },
});

const changes: { name: string; before: OpenApiDocument; after: OpenApiDocument; breaks: string[] }[] = [
  { name: 'a parameter of the path is renamed', before: documentOf({ responses: {} }),
    after: documentOf({ responses: {} }, '/a/{other}'), breaks: [] },
  { name: 'an operation is gone', before: documentOf({ responses: {} }), after: documentOf({ responses: {} }, '/b'),
    breaks: ['GET /a/{id} was removed'] },
  { name: 'a query parameter is required', before: documentOf({ responses: {} }),
    after: documentOf({ parameters: [{ name: 'q', in: 'query', required: true }], responses: {} }),
    breaks: ['GET /a/{id} now requires query "q"'] },
  { name: 'a query parameter became required',
    before: documentOf({ parameters: [{ name: 'q', in: 'query' }], responses: {} }),
    after: documentOf({ parameters: [{ name: 'q', in: 'query', required: true }], responses: {} }),
    breaks: ['GET /a/{id} now requires query "q"'] },
  { name: 'a query parameter is new and may be absent', before: documentOf({ responses: {} }),
    after: documentOf({ parameters: [{ name: 'q', in: 'query' }], responses: {} }), breaks: [] },
  { name: 'a body is required', before: documentOf(taking({}, false)), after: documentOf(taking({})),
    breaks: ['GET /a/{id} now requires a body'] },
  { name: 'a member of the body is required',
    before: documentOf(taking({ properties: { a: { properties: { b: {} } } } })),
    after: documentOf(taking({ properties: { a: { required: ['b'], properties: { b: {} } } } })),
    breaks: ['GET /a/{id} now requires body/a/b'] },
  { name: 'a status is gone', before: documentOf({ responses: { 200: {}, 204: {} } }),
    after: documentOf({ responses: { 200: {} } }), breaks: ['GET /a/{id} no longer declares 204'] },
  {
    name: 'a member of a reply is gone, behind references and lists',
    before: documentOf(replying({ type: 'array', items: { $ref } })),
    after: documentOf(replying({ type: 'array', items: { $ref } }), '/a/{id}', {
      User: {
        type: 'object',
        required: ['id'],
        properties: { id: { type: 'string' }, tags: { type: 'array', items: { type: 'object' } } },
      },
    }),
    breaks: ['GET /a/{id} no longer returns 200/*/tags/*/t'],
  },
  { name: 'a member of a reply may be absent', before: documentOf(replying({ $ref })),
    after: documentOf(replying({ $ref }), '/a/{id}', { User: { ...schemas.User, required: [] } }),
    breaks: ['GET /a/{id} no longer always returns 200/id'] },
  { name: 'a member has another type', before: documentOf(replying({ $ref })),
    after: documentOf(replying({ type: 'object', required: ['id'], properties: { id: { type: 'number' }, tags: {} } })),
    breaks: ['GET /a/{id} returns another type at 200/id'] },
  { name: 'an input takes more types', before: documentOf(taking({ type: 'integer' })),
    after: documentOf(taking({ type: ['number', 'null'] })), breaks: [] },
  { name: 'an input takes fewer types', before: documentOf(taking({ type: 'number' })),
    after: documentOf(taking({ type: 'integer' })), breaks: ['GET /a/{id} takes another type at body'] },
  { name: 'a status loses its body', before: documentOf(replying({ $ref })),
    after: documentOf({ responses: { 200: {}, default: {} } }), breaks: ['GET /a/{id} no longer returns a body with 200'] },
  { name: 'a reply becomes a reference to a reply', before: documentOf(replying({ $ref })),
    after: documentOf({ responses: { 200: { $ref: '#/components/responses/User' }, default: {} } }), breaks: [] },
  { name: 'a reply has fewer types', before: documentOf(replying({ type: ['number', 'null'] })),
    after: documentOf(replying({ type: 'integer' })), breaks: [] },
  { name: 'a reply has more types', before: documentOf(replying({ type: 'integer' })),
    after: documentOf(replying({ type: 'number' })), breaks: ['GET /a/{id} returns another type at 200'] },
  ...['#/components/schemas/None', '#/%E0', 'other.json#/User'].map((nowhere) => ({
    name: `a reference leads nowhere: ${nowhere}`,
    before: documentOf(replying({ $ref: nowhere })),
    after: documentOf(replying({ type: 'string' })),
    breaks: [],
  })),
  { name: 'a schema that refers to itself has a member less', before: documentOf(replying({ $ref }), '/a/{id}', tree('v')),
    after: documentOf(replying({ $ref }), '/a/{id}', tree()), breaks: ['GET /a/{id} no longer returns 200/v'] },
  { name: 'a schema refers to itself',
    before: documentOf(replying({ $ref }), '/a/{id}', { User: { properties: { u: { $ref } } } }),
    after: documentOf(replying({ $ref }), '/a/{id}', { User: { properties: { u: { $ref } } } }), breaks: [] },
];
test.for(changes)('what breaks when $name', ({ before, after, breaks }) => {
  expect(findBreaks(before, after)).toEqual(breaks);
  expect(findBreaks(before, before)).toEqual([]);
});

const allowing = (...params: string[]): RouteOptions => ({ public: { params } });
const a = z.object({ a: z.string() });
const ab = z.object({ a: z.string(), b: z.string() });
const c = z.object({ c: z.string() });
/** Schemas of other kinds around `ab`, and the same around `a`; where the difference is. */
const around: readonly (readonly [name: string, before: z.ZodType, after: z.ZodType, at: string])[] = [
  ['what may be null', z.object({ u: ab.nullable() }), z.object({ u: a.nullable() }), '/u/b'],
  ['the whole, which may be null', ab.nullable(), a.nullable(), '/b'],
  ['a variant', z.union([c, ab]), z.union([c, a]), '/b'],
  ['an inner variant', z.union([c, z.union([z.string(), ab])]), z.union([c, z.union([z.string(), a])]), '/b'],
  ['a record', z.record(z.string(), ab), z.record(z.string(), a), '/*/b'],
  ['a tuple', z.tuple([z.string(), ab]), z.tuple([z.string(), a]), '/1/b'],
];
const routeChanges: { name: string; before: RouteOptions; after: RouteOptions; breaks: string[] }[] = [
  { name: 'a query parameter is no longer allowed', before: allowing('q', 'page'), after: allowing('page'),
    breaks: ['GET /a no longer takes query "q"'] },
  { name: 'any query parameter is allowed', before: allowing('q'), after: {}, breaks: [] },
  { name: 'a query parameter is ignored', before: { query: z.object({ q: z.string() }) },
    after: { query: z.object({}) }, breaks: [] },
  { name: 'a response schema is added', before: {}, after: { response: z.string() }, breaks: [] },
  { name: 'a response has no body any more', before: { response: { 200: z.object({}) } },
    after: { response: { 200: null } }, breaks: ['GET /a no longer returns a body with 200'] },
  { name: 'a response schema is removed', before: { response: z.string() }, after: {}, breaks: [] },
  { name: 'a body schema is removed', before: { body: z.string() }, after: {}, breaks: [] },
  ...around.map(([name, before, after, at]) => (
    { name: `${name} has a member less`, before: { response: before }, after: { response: after },
      breaks: [`GET /a no longer returns 200${at}`] })),
  ...around.map(([name, after, before, at]) => (
    { name: `${name} needs another member`, before: { body: before }, after: { body: after },
      breaks: [`GET /a now requires body${at}`] })),
  { name: 'a reply has another variant', before: { response: z.union([a, c]) },
    after: { response: z.union([z.object({ d: z.string() }), c, a]) }, breaks: ['GET /a returns another type at 200'] },
  { name: 'a reply may be null', before: { response: ab }, after: { response: ab.nullable() },
    breaks: ['GET /a returns another type at 200'] },
  { name: 'a reply has a variant less', before: { response: z.union([c, ab]).nullable() }, after: { response: ab },
    breaks: [] },
  { name: 'an input takes a variant less', before: { body: z.union([z.string(), z.number(), ab]) },
    after: { body: z.union([z.string(), z.number()]) }, breaks: ['GET /a takes another type at body'] },
  { name: 'an input takes another variant', before: { body: z.union([z.string(), z.number()]) },
    after: { body: z.union([ab, z.string(), z.number()]) }, breaks: [] },
  { name: 'an error is removed', before: { errors: [BadRequest] }, after: {},
    breaks: ['GET /a no longer declares 400'] },
];
test.for(routeChanges)('what breaks when $name', ({ before, after, breaks }) => {
  const documentWith = (options: RouteOptions): OpenApiDocument => toOpenApi(createApp().get('/a', options, () => ''));
  expect(findBreaks(documentWith(before), documentWith(after))).toEqual(breaks);
});
