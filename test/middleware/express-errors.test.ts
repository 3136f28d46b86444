/**
 * Errors of middleware and applications written for Express: status, headers and text by Express's convention.
 *
 * @module-tag package
 */

import { once } from 'node:events';
import { STATUS_CODES, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { runInNewContext } from 'node:vm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connect, HttpError, NotFound, TooManyRequests, type ConnectMiddleware, type Postern } from 'postern';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

const require = createRequire(import.meta.url);
type Application = ConnectMiddleware & {
  handle(): void;
  use(middleware: ConnectMiddleware): Application;
  listen(port: number, host: string): Server;
};
const express = require('express') as () => Application;
const createError = require('http-errors') as (...args: unknown[]) => Error;

const withMembers = (members: object, message = 'secret'): Error => Object.assign(new Error(message), members);

/** An error, and the reply to it. */
interface Case {
  readonly what: string;
  readonly error: () => unknown;
  /** 0 for the fixed 500. */
  readonly status: number;
  /** The description. Default: the reason phrase of the status. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string | null>>;
  /** The reason why Express replies in another way. */
  readonly unlike?: string;
}

const STATUSES: readonly Case[] = [
  ...[400, 401, 404, 418, 422, 451, 499, 500, 501, 503, 505, 599].flatMap((status): Case[] => [
    { what: `status ${status}`, error: () => withMembers({ status }), status },
    { what: `statusCode ${status}`, error: () => withMembers({ statusCode: status }), status },
  ]),
  { what: 'status and statusCode', error: () => withMembers({ status: 404, statusCode: 503 }), status: 404 },
  { what: 'status 200 and a statusCode', error: () => withMembers({ status: 200, statusCode: 503 }), status: 503 },
  ...[0, -404, 100, 200, 204, 302, 399, 600, 1000, NaN, Infinity, '404', null, undefined, true, {}, [404]].map(
    (status): Case => ({ what: `status ${JSON.stringify(status)}`, error: () => withMembers({ status }), status: 0 }),
  ),
  { what: 'status 404.5', error: () => withMembers({ status: 404.5 }), status: 0, unlike: 'node:http makes it 404' },
  { what: 'no status', error: () => new Error('secret'), status: 0 },
  { what: 'code 404', error: () => withMembers({ code: 404 }), status: 0 },
];

const TEXTS: readonly Case[] = [
  { what: 'expose', error: () => withMembers({ status: 404, expose: true }, 'no user 7'), status: 404,
    text: 'no user 7' },
  { what: 'expose, 5xx', error: () => withMembers({ status: 503, expose: true }, 'at noon'), status: 503,
    text: 'at noon' },
  { what: 'expose: false', error: () => withMembers({ status: 404, expose: false }), status: 404 },
  { what: "expose: 'yes'", error: () => withMembers({ status: 404, expose: 'yes' }), status: 404 },
  { what: 'expose without a status', error: () => withMembers({ expose: true }), status: 0 },
  { what: 'expose without a text', error: () => withMembers({ status: 404, expose: true }, ''), status: 404 },
  { what: 'createError(404, text)', error: () => createError(404, 'no user 7'), status: 404, text: 'no user 7' },
  { what: 'createError(401)', error: () => createError(401), status: 401 },
  { what: 'createError(503, text)', error: () => createError(503, 'secret'), status: 503 },
  { what: 'createError(503, text, { expose: true })', error: () => createError(503, 'at noon', { expose: true }),
    status: 503, text: 'at noon' },
];

const challenge = { 'www-authenticate': 'Bearer realm="api"' };
const HEADERS: readonly Case[] = [
  { what: 'headers', error: () => withMembers({ status: 401, headers: { 'WWW-Authenticate': 'Basic' } }), status: 401,
    headers: { 'www-authenticate': 'Basic' } },
  { what: 'headers of createError', error: () => createError(401, { headers: challenge }), status: 401,
    headers: challenge },
  { what: 'headers: a number', error: () => withMembers({ status: 429, headers: { 'Retry-After': 30 } }), status: 429,
    headers: { 'retry-after': '30' } },
  { what: 'headers: a list', status: 401,
    error: () => withMembers({ status: 401, headers: { 'www-authenticate': ['Basic', 'Bearer'] } }),
    headers: { 'www-authenticate': 'Basic, Bearer' } },
  { what: 'headers: cookies', error: () => withMembers({ status: 401, headers: { 'set-cookie': ['a=1', 'b=2'] } }),
    status: 401, headers: { 'set-cookie': 'a=1, b=2' } },
  { what: 'headers: vary', error: () => withMembers({ status: 404, headers: { vary: 'origin' } }), status: 404,
    headers: { vary: 'origin, accept' }, unlike: 'the error body depends on Accept' },
  { what: "headers of another body", status: 404,
    error: () => withMembers({ status: 404, headers: { 'content-type': 'text/x', 'content-length': '7' } }) },
  { what: 'headers without a status', error: () => withMembers({ headers: { 'x-a': 'b' } }), status: 0,
    headers: { 'x-a': null } },
  { what: 'headers null', error: () => withMembers({ status: 404, headers: null }), status: 404 },
  { what: 'headers text', error: () => withMembers({ status: 404, headers: 'x-a: b' }), status: 404,
    unlike: 'it sends a header for each character' },
  { what: 'headers: undefined', error: () => withMembers({ status: 404, headers: { 'x-a': undefined } }), status: 404,
    headers: { 'x-a': null }, unlike: 'it throws' },
  { what: 'headers that cannot be sent', error: () => withMembers({ status: 404, headers: { 'x-a': 'b\r\nx-c: d' } }),
    status: 0, headers: { 'x-a': null, 'x-c': null }, unlike: 'it throws' },
];

const VALUES: readonly Case[] = [
  ...['boom', 42, 1n, true, Symbol('boom'), [], {}, () => undefined].map(
    (value): Case => ({ what: `${typeof value} ${String(value)}`, error: () => value, status: 0 }),
  ),
  { what: 'an object', error: () => ({ status: 404, message: 'secret' }), status: 404 },
  { what: 'an object, expose', error: () => ({ status: 404, expose: true, message: 'none' }), status: 404,
    text: 'none' },
  { what: 'an object, expose, no text', error: () => ({ status: 404, expose: true, message: 7 }), status: 404 },
  { what: 'an object without prototype', error: () => Object.assign(Object.create(null) as object, { statusCode: 410 }),
    status: 410, unlike: 'it throws' },
  { what: 'a function', error: () => Object.assign(() => undefined, { status: 410 }), status: 410 },
  { what: 'a frozen error', error: () => Object.freeze(withMembers({ status: 410 })), status: 410 },
  { what: 'an error of another realm', status: 410, headers: { 'x-a': 'b' },
    error: () => runInNewContext("Object.assign(new Error('secret'), { status: 410, headers: { 'x-a': 'b' } })") as object },
  { what: 'a status on the prototype', status: 410,
    error: () => Object.create(withMembers({ status: 410 })) as object },
  { what: 'a getter that throws', error: () => Object.defineProperty(new Error('secret'), 'status', { get: explode }),
    status: 0, unlike: 'it throws' },
  { what: 'a getter of headers that throws', status: 0, unlike: 'it throws',
    error: () => Object.defineProperty(withMembers({ status: 404 }), 'headers', { get: explode }) },
  { what: 'a Proxy that throws', error: () => new Proxy({}, { get: explode, has: explode, getPrototypeOf: explode }),
    status: 0, unlike: 'it throws' },
];

const CASES = [...STATUSES, ...TEXTS, ...HEADERS, ...VALUES];

function explode(): never {
  throw new Error('exploded');
}

/** Each way in which an error leaves a middleware. */
const WAYS: Readonly<Record<string, (error: () => unknown) => ConnectMiddleware>> = {
  'next(error)': (error) => (_req, _res, next) => next(error()),
  'next(error) later': (error) => (_req, _res, next) => void setTimeout(() => next(error()), 1),
  'throw error': (error) => () => { throw error(); },
  'a rejection': (error) => async () => { await null; throw error(); },
};
/** Each place of a middleware. */
const PLACES: Readonly<Record<string, (app: Postern, middleware: ConnectMiddleware) => unknown>> = {
  'the application': (app, middleware) => app.use(connect(middleware)),
  'a group': (app, middleware) =>
    app.group('', { middleware: [connect(middleware)] }, (group) => void group.get('/', () => 'handler')),
  'a route': (app, middleware) => app.get('/', { middleware: [connect(middleware)] }, () => 'handler'),
  'a mounted application of Express': (app, middleware) => app.mount('/', express().use(middleware)),
  'a mounted application with handle': (app, middleware) =>
    app.mount('/', Object.assign(middleware.bind(undefined), { handle: middleware })),
};
const places = Object.entries(WAYS).flatMap(([way, fail]) =>
  Object.entries(PLACES).map(([place, add]) => ({ way, fail, place, add })),
);

/** Of more than ten failures in a second an application logs only the number. */
const CASES_PER_APP = 10;

test.for(places)('$way of a middleware of $place', async ({ way, fail, place, add }) => {
  const isExpress = place === 'a mounted application of Express';
  // Express itself looks at an error that throws, and at a promise's reason.
  const cases = CASES.filter(({ unlike }) => !isExpress || unlike !== 'it throws');
  for (let at = 0; at < cases.length; at += CASES_PER_APP) {
    const part = cases.slice(at, at + CASES_PER_APP);
    const logger = createRecorder();
    const app = expectFailures(createApp({ logger }), ...part.map(({ status }) => status || 500));
    let current: unknown;
    add(app, fail(() => current));
    for (const { what, error, status, text, headers = {} } of part) {
      current = error();
      const response = await app.request('/');
      const message = status === 0 ? 'Server Error' : (STATUS_CODES[status] ?? 'Unknown Error');
      const [description, name] = status === 0
        ? ['Something has blown up really bad. Somebody should be notified?', 'framework_unknown_error']
        : [text ?? message, 'framework_error_unspecified'];
      const lines = logger.entries.splice(0).filter(({ level }) => level === 'error');
      // 501 and 505 are logged at debug, as those of the server itself.
      const isFailure = status === 0 || (status >= 500 && status !== 501 && status !== 505);
      const read = Object.fromEntries(Object.keys(headers).map((header) => [header, response.headers.get(header)]));
      expect([what, way, response.status, await response.json(), response.headers.get('content-type'), read]).toEqual([
        what, way, status || 500, { message, description, error_code: { name, value: expect.any(Number) } },
        'application/json', headers,
      ]);
      expect(JSON.stringify([...response.headers])).not.toContain('secret');
      expect([what, way, lines.map((line) => [line.message, line.object['err'] === current])])
        .toEqual([what, way, isFailure ? [['request failed', true]] : []]);
    }
  }
});

test('Express replies with the same status and headers', async () => {
  let current: unknown;
  const server = express().use((_req, _res, next) => next(current)).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  for (const { what, error, status, headers = {}, unlike } of CASES) {
    if (unlike !== undefined) continue;
    current = error();
    const response = await fetch(url);
    await response.text();
    const names = Object.keys(headers);
    expect([what, response.status, ...names.map((name) => response.headers.get(name))])
      .toEqual([what, status || 500, ...names.map((name) => headers[name])]);
  }
});

describe('an error of a middleware for Express', () => {
  test('is what outer middleware finds, and the same error thrown once more has the same reply', async () => {
    const error = withMembers({ status: 404 });
    const seen: unknown[] = [];
    const app = createApp()
      .use(async (_ctx, next) => {
        const reply = await next();
        seen.push(reply.error === error, reply.status);
        throw reply.error;
      })
      .use(connect((_req, _res, next) => next(error)));
    expect([(await app.request('/')).status, seen]).toEqual([404, [true, 404]]);
  });

  test('leaves the headers that were set, but for those of a body that is not sent', async () => {
    const app = createApp().use(connect((_req, res, next) => {
      res.setHeader('x-a', 'b').setHeader('content-encoding', 'gzip').setHeader('content-language', 'de');
      res.setHeader('content-range', 'bytes */7').setHeader('content-length', '7').setHeader('content-type', 'text/x');
      next(withMembers({ status: 404 }));
    }));
    const response = await app.request('/');
    const names = ['x-a', 'content-encoding', 'content-language', 'content-range', 'content-type'];
    expect(names.map((name) => response.headers.get(name))).toEqual(['b', null, null, null, 'application/json']);
    expect(await response.json()).toMatchObject({ message: 'Not Found' });
  });

  test.for<[string, () => Error, number, string]>([
    ['an ApiError', () => new NotFound('no user 7'), 404, 'no user 7'],
    ['an ApiError with a status', () => Object.assign(new NotFound('no user 7'), { status: 500 }), 404, 'no user 7'],
    ['an HttpError', () => new HttpError(503, 'at noon'), 503, 'at noon'],
    ['an ApiError with headers', () => new TooManyRequests('slowly', { retryAfter: 7 }), 429, 'slowly'],
  ])('keeps its own texts if it is %s', async ([, error, status, description]) => {
    const app = expectFailures(createApp(), status).use(connect((_req, _res, next) => next(error())));
    const response = await app.request('/');
    expect([response.status, await response.json()]).toEqual([status, expect.objectContaining({ description })]);
    expect(response.headers.get('retry-after')).toBe(status === 429 ? '7' : null);
  });

  test.for([
    ['throw null', () => { throw null; }],
    ['throw undefined', () => { throw undefined; }],
    ["throw ''", () => { throw ''; }],
    ['a rejection with null', () => Promise.reject(null)],
  ] as const)('that is nothing (%s) is the fixed 500', async ([, middleware]) => {
    const app = expectFailures(createApp().use(connect(middleware)), 500).get('/', () => 'handler');
    const response = await app.request('/');
    expect([response.status, await response.json()])
      .toEqual([500, expect.objectContaining({ message: 'Server Error' })]);
  });
});

describe('an error of a handler, or of middleware of Postern', () => {
  const throwing = (error: () => unknown): readonly (readonly [string, (app: Postern) => unknown])[] => [
    ['a handler', (app) => app.get('/', () => { throw error(); })],
    ['an asynchronous handler', (app) => app.get('/', async () => { await null; throw error(); })],
    ['middleware', (app) => app.use(() => { throw error(); })],
  ];

  test.for(throwing(() => withMembers({ status: 404, headers: { 'x-a': 'b' } })))(
    'with a status, such as an upstream’s, is the fixed 500: %s',
    async ([, add]) => {
      const app = expectFailures(createApp(), 500);
      add(app);
      const response = await app.request('/');
      expect([response.status, response.headers.get('x-a')]).toEqual([500, null]);
    },
  );

  const exposed = CASES.filter(({ what }) => /^(?:expose|createError|headers)/.test(what))
    .map((each) => ({ ...each, thrown: () => Object.assign(each.error() as Error, { expose: true }) }));
  test.for(exposed)('with expose has its status, text and headers: $what', async ({ thrown, status, headers = {} }) => {
    for (const [where, add] of throwing(thrown)) {
      const app = expectFailures(createApp(), status || 500);
      add(app);
      const response = await app.request('/');
      const description = thrown().message || STATUS_CODES[status];
      const body = status === 0 ? { message: 'Server Error' } : { message: STATUS_CODES[status], description };
      expect([where, response.status, await response.json()])
        .toEqual([where, status || 500, expect.objectContaining(body)]);
      for (const [header, value] of Object.entries(headers))
        expect([where, header, response.headers.get(header)]).toEqual([where, header, value]);
    }
  });

  test('with expose may be of another realm', async () => {
    const app = createApp().get('/', () => {
      throw runInNewContext("Object.assign(new Error('no user 7'), { status: 404, expose: true })");
    });
    const response = await app.request('/');
    expect([response.status, await response.json()])
      .toEqual([404, expect.objectContaining({ description: 'no user 7' })]);
  });

  test('is not taken for one of Express because that error object was passed to next before', async () => {
    const error = withMembers({ status: 404 });
    const app = expectFailures(createApp(), 500);
    app.get('/express', { middleware: [connect((_req, _res, next) => next(error))] }, () => 'handler');
    app.get('/own', () => { throw error; });
    expect([(await app.request('/express')).status, (await app.request('/own')).status]).toEqual([404, 500]);
  });
});
