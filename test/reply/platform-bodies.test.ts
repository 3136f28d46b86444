/** What `Response` takes goes out as `Response` would send it. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { reply, type HandlerResult } from 'postern';
import { rawExchange } from '../support/raw.js';
import { createApp, expectFailures, serve } from '../support/serve.js';

const OCTETS = 'application/octet-stream';
const form = (): FormData => {
  const data = new FormData();
  data.set('name', 'Ädä');
  data.set('file', new File(['content'], 'a.txt', { type: 'text/plain' }));
  return data;
};

const cases: { what: string; value: () => HandlerResult; type: string; body: string }[] = [
  { what: 'URLSearchParams', value: () => new URLSearchParams({ q: 'a b', ü: '&' }),
    type: 'application/x-www-form-urlencoded;charset=UTF-8', body: 'q=a+b&%C3%BC=%26' },
  { what: 'empty URLSearchParams', value: () => new URLSearchParams(),
    type: 'application/x-www-form-urlencoded;charset=UTF-8', body: '' },
  { what: 'an ArrayBuffer', value: () => new Uint8Array([104, 105]).buffer, type: OCTETS, body: 'hi' },
  { what: 'a DataView', value: () => new DataView(new Uint8Array([0, 104, 105, 0]).buffer, 1, 2), type: OCTETS,
    body: 'hi' },
  { what: 'another typed array', value: () => new Uint16Array(new Uint8Array([104, 105]).buffer), type: OCTETS,
    body: 'hi' },
  { what: 'a Blob', value: () => new Blob(['grüß'], { type: 'text/html' }), type: 'text/html', body: 'grüß' },
  { what: 'a Blob without a type', value: () => new Blob(['x']), type: OCTETS, body: 'x' },
  { what: 'an empty Blob', value: () => new Blob([]), type: OCTETS, body: '' },
  { what: 'a File', value: () => new File(['a,b'], 'a.csv', { type: 'text/csv' }), type: 'text/csv', body: 'a,b' },
];

test.for(cases)('$what', async ({ value, type, body }) => {
  const { url } = await serve(createApp().get('/', value));
  for (const method of ['GET', 'HEAD']) {
    const response = await fetch(url, { method });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe(type);
    expect(response.headers.get('content-length')).toBe(String(Buffer.byteLength(body)));
    expect(await response.text()).toBe(method === 'HEAD' ? '' : body);
  }
  const wrapped = await createApp().get('/', () => reply(value(), { status: 201, headers: { 'content-type': 'a/b' } }))
    .request('/');
  expect([wrapped.status, wrapped.headers.get('content-type'), await wrapped.text()]).toEqual([201, 'a/b', body]);
});

test('FormData is multipart, as Response writes it', async () => {
  const { url } = await serve(createApp().get('/', form));
  const response = await fetch(url);
  expect(response.headers.get('content-type')).toMatch(/^multipart\/form-data; boundary=/);
  const read = await response.formData();
  expect(read.get('name')).toBe('Ädä');
  const file = read.get('file') as File;
  expect([file.name, file.type, await file.text()]).toEqual(['a.txt', 'text/plain', 'content']);
  expect((await fetch(url, { method: 'HEAD' })).headers.get('content-type'))
    .toMatch(/^multipart\/form-data; boundary=/);
});

test.for<[string, () => HandlerResult]>([
  ['FormData', form],
  ['a Response of FormData', () => new Response(form())],
])('%s that is not sent, or in part, fails nothing', async ([, value]) => {
  const app = createApp().get('/', value);
  const { url, port } = await serve(app);
  for (let i = 0; i < 3; i++) {
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(200);
    const socket = connect(port, '127.0.0.1', () => socket.end('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
    await once(socket, 'connect');
    socket.destroy();
  }
});

test('FormData that a handler does not read, or that a call does not send, fails nothing', async () => {
  const app = createApp({ services: { billing: () => new Response() } }).post('/', () => 'unread');
  expect(await (await app.request('/', { method: 'POST', body: form() })).text()).toBe('unread');
  await app.service('billing').post('/', { body: form() });
});

test('what poses as one of them by its tag alone is an ordinary object', async () => {
  for (const tag of ['URLSearchParams', 'Blob', 'FormData', 'Response', 'Reply']) {
    const response = await createApp().get('/', () => ({ a: 1, [Symbol.toStringTag]: tag })).request('/');
    expect([response.status, await response.text()]).toEqual([200, '{"a":1}']);
  }
});

test.for([
  ['a text', () => 'text', 4],
  ['an object', () => ({ a: 1 }), 7],
  ['bytes', () => Buffer.from('text'), 4],
  ['an error', () => { throw new Error('x'); }, 169],
  ['no body', () => reply(undefined, { status: 202 }), 0],
] as [string, () => HandlerResult, number][])(
  'transfer-encoding set by hand never goes out beside the length of %s',
  async ([what, value, length]) => {
    const app = expectFailures(createApp(), ...(what === 'an error' ? [500] : [])).get('/', (ctx) => {
      ctx.raw.res.setHeader('Transfer-Encoding', 'chunked');
      return value();
    });
    app.get('/next', () => 'next');
    const { port } = await serve(app);
    const text = await rawExchange(
      port,
      'GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    expect(text.toLowerCase()).not.toContain('transfer-encoding');
    expect(text).toMatch(new RegExp(`content-length: ${length}\r\n`, 'i'));
    expect(text.endsWith('next')).toBe(true);
  },
);

test('transfer-encoding set by hand on a stream is said once', async () => {
  const app = createApp().get('/', (ctx) => {
    ctx.raw.res.setHeader('Transfer-Encoding', 'chunked');
    return (async function* () { yield 'part'; })();
  });
  const { port } = await serve(app);
  const text = await rawExchange(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(text.match(/transfer-encoding: chunked/gi)).toHaveLength(1);
  expect(text).toContain('\r\n4\r\npart\r\n0\r\n\r\n');
});
