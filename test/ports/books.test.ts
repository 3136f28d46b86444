/**
 * A service with Fastify, zod and OpenAPI, and its port to Postern, answer the same requests alike.
 *
 * @module-tag package
 */

import { expect, onTestFinished, test } from 'vitest';
import { expectFailures, serve, watch } from '../support/serve.js';
import { fillShelf } from './books.js';
import { createBooks as createOriginal } from './books-fastify.js';
import { createBooks as createPort } from './books-postern.js';
import { ALWAYS, compare, expectNoGlue, uniformErrors } from './compare.js';
import type { Asked, Difference, ErrorBody } from './compare.js';

const json = { 'content-type': 'application/json' };
const ada = { authorization: 'Bearer ada' };
/** Requests whose errors are the framework's, with texts of its own. */
const unworded: readonly Asked[] = [
  { name: 'JSON that is broken', method: 'POST', path: '/v1/books', headers: json, body: '{"title":', status: 400 },
  { name: 'an empty body', method: 'POST', path: '/v1/books', headers: json, body: '', status: 400 },
  {
    name: 'a body of another type', method: 'POST', path: '/v1/books',
    headers: { 'content-type': 'text/html' }, body: '<p>', status: 415,
  },
  {
    name: 'a body that is too long', method: 'POST', path: '/v1/books',
    headers: json, body: ' '.repeat(10_001), status: 413,
  },
  { name: 'a bug', path: '/v1/broken', status: 500 },
  { name: 'no such path', path: '/v1/authors', status: 404 },
  { name: 'no prefix', path: '/books', status: 404 },
  { name: 'a slash too many', path: '/v1/books/', status: 404 },
  { name: 'a method that the path lacks', method: 'PUT', path: '/v1/books/1', status: 405 },
  { name: 'OPTIONS', method: 'OPTIONS', path: '/v1/books/1', status: 204 },
  { name: 'a page that is not there', path: '/v1/books?page=0', status: 400 },
  { name: 'two findings', path: '/v1/books?page=x&size=99', status: 400 },
  { name: 'an id that is not a number', path: '/v1/books/emma', status: 400 },
  {
    name: 'a short title', method: 'POST', path: '/v1/books',
    headers: json, body: '{"title":"W","year":1854}', status: 400,
  },
  { name: 'a missing member', method: 'POST', path: '/v1/books', headers: json, body: '{}', status: 400 },
];

/** In their order. */
const requests: readonly Asked[] = [
  { name: 'a page by default', path: '/v1/books', status: 200 },
  { name: 'a page', path: '/v1/books?page=2&size=2', status: 200 },
  { name: 'a member that no client gets', path: '/v1/books/1', status: 200 },
  { name: 'an escape', path: '/v1/b%6Foks/1', status: 200 },
  { name: 'an error of the service', path: '/v1/books/99', status: 404 },
  { name: 'HEAD', method: 'HEAD', path: '/v1/books/1', status: 200 },
  {
    name: 'a new book', method: 'POST', path: '/v1/books',
    headers: json, body: '{"title":"Walden","year":1854}', status: 201,
  },
  { name: 'a default of the schema', path: '/v1/books/4', status: 200 },
  { name: 'a stream', path: '/v1/titles.csv', status: 200 },
  { name: 'a redirect', path: '/v1/latest', status: 302 },
  { name: 'the first search', path: '/v1/search', status: 200 },
  { name: 'the second search', path: '/v1/search', status: 200 },
  { name: 'the third search', path: '/v1/search', status: 429, isWorded: false },
  { name: 'no token', method: 'DELETE', path: '/v1/books/1', status: 401 },
  { name: 'no token for a wrong id', method: 'DELETE', path: '/v1/books/x', status: 401 },
  {
    name: 'the token of somebody else', method: 'DELETE', path: '/v1/books/1',
    headers: { authorization: 'Bearer bob' }, status: 403,
  },
  { name: 'a token', method: 'DELETE', path: '/v1/books/1', headers: ada, status: 204 },
  { name: 'a book that was removed', method: 'DELETE', path: '/v1/books/1', headers: ada, status: 404 },
  ...unworded.map((asked) => ({ ...asked, isWorded: false })),
];

const differences: readonly Difference[] = [
  ...ALWAYS,
  {
    rule: 'a path without the method answers 405 and OPTIONS, with Allow',
    change: ({ status, headers }, port, { method }) => {
      const { allow = '' } = port.headers;
      if (status !== 404 || allow === '') return undefined;
      return method === 'OPTIONS' ? port : { status: 405, headers: { ...headers, allow } };
    },
  },
  {
    rule: 'a finding says what is wrong, not only where',
    change: ({ body }, port) => {
      const { fields } = body as { fields?: string[] };
      const found = (port.body as ErrorBody).errors?.map(({ in: part, pointer }) => part + pointer.slice(1));
      if (fields === undefined || found === undefined) return undefined;
      expect(found).toEqual(fields.map((field) => field.replace('querystring', 'query')));
      return { body: { message: (port.body as ErrorBody).description } };
    },
  },
  uniformErrors(({ message }: { message: string }) => message),
  {
    rule: 'express-rate-limit says when the window ends, not how many seconds that takes',
    change: ({ headers }, port) => {
      const { 'x-ratelimit-reset': seconds } = headers;
      const { 'x-ratelimit-reset': at = '' } = port.headers;
      if (seconds === undefined) return undefined;
      expect(Math.abs(Number(at) - Number(seconds) - Date.now() / 1000)).toBeLessThan(60);
      return { headers: { ...headers, 'x-ratelimit-reset': at } };
    },
  },
];

async function startBoth(...failures: number[]): Promise<{ original: string; port: string }> {
  const original = await createOriginal(fillShelf());
  onTestFinished(() => original.close());
  const port = expectFailures(watch((logger) => createPort(fillShelf(), { logger })), ...failures);
  return { original: await original.listen({ host: '127.0.0.1', port: 0 }), port: (await serve(port)).url };
}

test('each request is answered alike', async () => {
  const urls = await startBoth(500);
  const used = new Set<string>();
  for (const asked of requests) await compare(urls, asked, differences, used);
  expect([...used].sort(), 'differences that occur').toEqual(differences.map(({ rule }) => rule).sort());
});

interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly required?: boolean }[];
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, { readonly content?: unknown }>>;
}
interface Documented {
  readonly info: object;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** What a client generator reads: paths, methods, parameters, bodies and their required members, successes. */
async function readDocument(url: string): Promise<unknown> {
  const { info, paths } = (await (await fetch(`${url}/openapi.json`)).json()) as Documented;
  const requiredIn = (content: unknown): string[] =>
    [...JSON.stringify(content ?? {}).matchAll(/"required":\[([^\]]*)\]/g)].map(([, names = '']) => names);
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody, responses }]) => ({
      operation: `${method} ${path}`,
      parameters: parameters.map(({ in: part, name, required = false }) => `${part} ${name} ${required}`).sort(),
      body: requiredIn(requestBody),
      successes: Object.entries(responses)
        .filter(([status]) => status.startsWith('2'))
        .map(([status, { content }]) => [status, requiredIn(content)]),
    })),
  );
  return { info, operations: operations.sort((a, b) => (a.operation < b.operation ? -1 : 1)) };
}

test('the OpenAPI documents have the same operations', async () => {
  const { original, port } = await startBoth();
  expect(await readDocument(port)).toEqual(await readDocument(original));
});

test('the port is shorter, and does nothing by hand that the middleware or Postern does', () => {
  expectNoGlue('books-fastify.ts', 'books-postern.ts');
});
