/** What a handler may return, and what goes over the wire for it. */

import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { reply, type HandlerResult } from 'postern';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

async function* chunks(...parts: (string | Uint8Array)[]): AsyncGenerator<string | Uint8Array> {
  yield* parts;
}

const JSON_TYPE = 'application/json';
const TEXT = 'text/plain; charset=utf-8';
const OCTETS = 'application/octet-stream';
const cases: {
  what: string;
  value: () => HandlerResult;
  status?: number;
  type: string | null;
  body: string;
  length?: string | null;
  headers?: Record<string, string>;
}[] = [
  { what: 'an object', value: () => ({ hello: 'wörld' }), type: JSON_TYPE, body: '{"hello":"wörld"}' },
  { what: 'an array', value: () => [1, null], type: JSON_TYPE, body: '[1,null]' },
  { what: 'null', value: () => null, type: JSON_TYPE, body: 'null' },
  { what: 'a number', value: () => 0, type: JSON_TYPE, body: '0' },
  { what: 'a boolean', value: () => false, type: JSON_TYPE, body: 'false' },
  { what: 'a date', value: () => new Date(0), type: JSON_TYPE, body: '"1970-01-01T00:00:00.000Z"' },
  { what: 'a string', value: () => 'grüß', type: TEXT, body: 'grüß' },
  { what: 'an empty string', value: () => '', type: TEXT, body: '' },
  { what: 'bytes', value: () => new Uint8Array([104, 105]), type: OCTETS, body: 'hi' },
  { what: 'a Buffer', value: () => Buffer.from('hi'), type: OCTETS, body: 'hi' },
  { what: 'a Readable', value: () => Readable.from(['a', 'b']), type: OCTETS, body: 'ab', length: null },
  { what: 'a ReadableStream', value: () => new Response('web').body, type: OCTETS, body: 'web', length: null },
  { what: 'an async iterable', value: () => chunks('a', Buffer.from('b')), type: OCTETS, body: 'ab', length: null },
  { what: 'an empty stream', value: () => chunks(), type: OCTETS, body: '', length: null },
  { what: 'undefined', value: () => undefined, status: 204, type: null, body: '', length: null },
  { what: 'reply with a status', value: () => reply({ id: 7 }, { status: 201, headers: { location: '/7' } }),
    status: 201, type: JSON_TYPE, body: '{"id":7}', headers: { location: '/7' } },
  { what: 'reply with a type', value: () => reply('<p>', { headers: { 'Content-Type': 'text/html' } }),
    type: 'text/html', body: '<p>' },
  { what: 'reply with a JSON type',
    value: () => reply({ a: 1 }, { headers: [['content-type', 'application/problem+json']] }),
    type: 'application/problem+json', body: '{"a":1}' },
  { what: 'reply with a stream', value: () => reply(chunks('x'), { headers: { 'content-type': 'text/csv' } }),
    type: 'text/csv', body: 'x', length: null },
  { what: 'reply without a body', value: () => reply(undefined, { status: 202 }), status: 202, type: null, body: '',
    length: '0' },
  { what: 'reply of nothing', value: () => reply(), status: 204, type: null, body: '', length: null },
  { what: 'a body with 304', value: () => reply('ignored', { status: 304, headers: { etag: '"1"' } }), status: 304,
    type: null, body: '', length: null, headers: { etag: '"1"' } },
  { what: 'a wrong length', value: () => reply('four', { headers: { 'content-length': '99' } }), type: TEXT,
    body: 'four' },
  { what: 'a Response', value: () => new Response('made', { status: 203, headers: { 'x-a': '1' } }), status: 203,
    type: 'text/plain;charset=UTF-8', body: 'made', length: null, headers: { 'x-a': '1' } },
  { what: 'a Response of JSON', value: () => Response.json({ a: 1 }), type: JSON_TYPE, body: '{"a":1}', length: null },
  { what: 'a Response without a body', value: () => new Response(null, { status: 204 }), status: 204, type: null,
    body: '', length: null },
];
const both = cases.flatMap((row) => [{ ...row, how: 'returned' }, { ...row, how: 'promised' }]);

test.for(both)('$what, $how', async ({ value, status = 200, type, body, length, headers = {}, how }) => {
  const { url } = await serve(createApp().get('/', how === 'returned' ? value : async () => value()));
  for (const method of ['GET', 'HEAD']) {
    const response = await fetch(url, { method });
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toBe(type);
    expect(response.headers.get('content-length'))
      .toBe(length === undefined ? String(Buffer.byteLength(body)) : length);
    for (const [name, expected] of Object.entries(headers)) expect(response.headers.get(name)).toBe(expected);
    expect(await response.text()).toBe(method === 'HEAD' ? '' : body);
  }
});

const cyclic: Record<string, unknown> = {};
cyclic['self'] = cyclic;
test.for<[string, () => unknown]>([
  ['a function', () => () => 1],
  ['a symbol', () => Symbol('x')],
  ['a bigint', () => 1n],
  ['a cycle', () => cyclic],
  ['a status that is none', () => reply('x', { status: 99 })],
  ['a status of another range', () => reply('x', { status: 600 })],
  ['a header with a line break', () => reply('x', { headers: { 'x-a': 'b\r\nset-cookie: c' } })],
  ['a header name with a space', () => reply('x', { headers: { 'x a': 'b' } })],
  ['a status text with a line break', () => reply('x', { statusText: 'a\r\nb: c' })],
])('%s cannot be sent: the uniform 500, and the reason in the log', async ([, value]) => {
  const logger = createRecorder();
  const { url } = await serve(expectFailures(createApp({ logger }), 500).get('/', () => value() as string));
  const response = await fetch(url);
  expect(response.status).toBe(500);
  expect(await response.json()).toMatchObject({ error_code: { name: 'framework_unknown_error', value: 999999 } });
  expect(logger.entries.at(-1)).toMatchObject({ level: 'error' });
});

test.for([
  ['a Reply', () => reply(reply('x'))],
  ['a Response', () => reply(new Response('x'))],
] as const)('%s as the body of a reply gives 500', async ([, handler]) => {
  expect((await expectFailures(createApp(), 500).get('/', handler).request('/')).status).toBe(500);
});

test('several set-cookie headers stay several', async () => {
  const { url } = await serve(createApp().get('/', () => {
    const replied = reply('x');
    replied.headers.append('set-cookie', 'a=1');
    replied.headers.append('set-cookie', 'b=2');
    return replied;
  }));
  expect((await fetch(url)).headers.getSetCookie()).toEqual(['a=1', 'b=2']);
});

test('a handler that writes to res itself has its return value ignored', async () => {
  const { url } = await serve(createApp().get('/', (ctx) => void ctx.raw.res.writeHead(299).end('by hand')));
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([299, 'by hand']);
});
