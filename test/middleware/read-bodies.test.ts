/**
 * A body that middleware for Express has read is not there for the handler: a 500 whose line in the log has the remedy.
 *
 * @module-tag package
 */

import { createRequire } from 'node:module';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { connect, type ConnectMiddleware, type Context } from 'postern';
import { z } from 'zod';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';
import { rawExchange } from '../support/raw.js';

const require = createRequire(import.meta.url);
type Parsers = Record<'json' | 'text' | 'raw' | 'urlencoded', (options?: object) => ConnectMiddleware>;
const express = require('express') as Parsers;

const REMEDY =
  'middleware for Express has read the body already; use what it made of it, ctx.raw.req.body, or remove that middleware';

/** Reads a part of the body, and goes on. */
const readPart: ConnectMiddleware = (req, _res, next) => {
  req.once('data', () => { req.pause(); next(); });
};
/** Middleware that reads a body, and what it needs to do so. */
const READERS: readonly (readonly [string, ConnectMiddleware, string])[] = [
  ['express.json()', express.json(), 'application/json'],
  ['express.text()', express.text({ type: '*/*' }), 'application/json'],
  ['express.raw()', express.raw({ type: '*/*' }), 'application/json'],
  ['express.urlencoded()', express.urlencoded({ extended: false }), 'application/x-www-form-urlencoded'],
  ['for await', async (req, _res, next) => { for await (const _chunk of req); next(); }, 'application/json'],
  ['a listener that reads a part', readPart, 'application/json'],
];
/** Methods of the context that read it. */
const FORMS: Readonly<Record<string, (ctx: Context) => unknown>> = {
  json: (ctx) => ctx.json(),
  text: (ctx) => ctx.text(),
  bytes: (ctx) => ctx.bytes(),
  stream: async (ctx) => { for await (const _chunk of ctx.stream()); },
};
const cases = READERS.flatMap(([reader, middleware, type]) =>
  Object.entries({ ...FORMS, ...(reader.includes('urlencoded') ? { form: (ctx: Context) => ctx.form() } : {}) })
    .filter(([form]) => form !== 'json' || type === 'application/json')
    .flatMap(([form, read]) =>
      ['content-length: 11', 'transfer-encoding: chunked', 'expect: 100-continue\r\ncontent-length: 11'].map((framing) => ({
        reader, middleware, type, form, read, framing,
      })),
    ),
);

test.for(cases)('$reader, then $form(), with $framing', async ({ middleware, type, read, framing }) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500);
  app.post('/', { middleware: [connect(middleware)] }, async (ctx) => { await read(ctx); return 'read'; });
  const { port } = await serve(app);
  const body = framing.includes('chunked') ? '5\r\n{"a":\r\n6\r\n"bcd"}\r\n0\r\n\r\n' : '{"a":"bcd"}';
  const fields = `Host: x\r\nConnection: close\r\n${framing}\r\nContent-Type: ${type}`;
  const received = await rawExchange(port, `POST / HTTP/1.1\r\n${fields}\r\n\r\n${body}`);
  expect(received.match(/HTTP\/1\.1 (?!100)\d+/g)).toEqual(['HTTP/1.1 500']);
  expect(logger.entries.filter(({ level }) => level === 'error')).toMatchObject([
    { message: 'request failed', object: { err: { message: REMEDY } } },
  ]);
});

test('a route with a schema for its body is no exception', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500).use(connect(express.json()));
  app.post('/', { body: z.object({ a: z.string() }) }, (_ctx, { body }) => body);
  const headers = { 'content-type': 'application/json' };
  expect((await app.request('/', { method: 'POST', body: '{"a":"b"}', headers })).status).toBe(500);
  expect(logger.entries).toMatchObject([{ object: { err: { message: REMEDY } } }]);
});

describe('a body is there for the handler', () => {
  const unread: readonly (readonly [string, ConnectMiddleware])[] = [
    ['express.json() for another type', express.json({ type: 'application/other' })],
    ['a middleware that only listens for its end', (req, _res, next) => { req.once('end', () => undefined); next(); }],
    ['a middleware that looks at the head', (req, _res, next) => { void req.headers; next(); }],
  ];
  test.for(unread)('after %s', async ([, middleware]) => {
    const app = createApp().use(connect(middleware)).post('/', (ctx) => ctx.json());
    for (const body of ['{"a":"b"}', Readable.from(['{"a":', '"b"}'])]) {
      const response = await app.request('/', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
      expect([response.status, await response.json()]).toEqual([200, { a: 'b' }]);
    }
  });

  test('in what middleware has made of it', async () => {
    const app = createApp().use(connect(express.json()));
    app.post('/', ({ raw }) => (raw.req as unknown as { body: object }).body);
    const response = await app.request('/', {
      method: 'POST', body: '{"a":"b"}', headers: { 'content-type': 'application/json' },
    });
    expect(await response.json()).toEqual({ a: 'b' });
  });
});
