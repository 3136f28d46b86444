/** Whatever a client sends: the right status, the uniform body, and a process that goes on serving. */

import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Postern } from 'postern';
import { parseResponses, rawExchange, rawRequest } from '../support/raw.js';

const app = new Postern('users', { logger: false, bodyLimit: 1000 });
app.get('/', () => ({ hello: 'world' }));
app.get('/users/:id', (ctx) => ({ id: ctx.params.id }));
app.post('/json', (ctx) => ctx.json());
app.post('/text', (ctx) => ctx.text());
app.post('/form', async (ctx) => Object.fromEntries(await ctx.form()));
app.post('/bytes', async (ctx) => ({ length: (await ctx.bytes()).length }));
app.post('/stream', async (ctx) => {
  let length = 0;
  for await (const chunk of ctx.stream()) length += (chunk as Buffer).length;
  return { length };
});
app.post('/ignored', () => 'not read');
app.get('/throws/string', () => { throw 'a string'; });
app.get('/throws/undefined', async () => { throw undefined; });
app.get('/late', () => (async function* () { yield 'partial'; throw new Error('too late'); })());
app.get('/early', () => (async function* (): AsyncGenerator<string> { throw new Error('at once'); })());
app.get('/objects', () => (async function* () { yield { not: 'bytes' }; })());

/** Waits for a short time only: for requests that never end. */
const hurried = new Postern('users', { logger: false, requestTimeout: 400, headersTimeout: 300 });
hurried.post('/text', (ctx) => ctx.text());

let port = 0;
let hurriedPort = 0;
beforeAll(async () => {
  ({ port } = await app.listen({ host: '127.0.0.1', port: 0 }));
  hurriedPort = (await hurried.listen({ host: '127.0.0.1', port: 0 })).port ?? 0;
});
afterAll(() => Promise.all([app, hurried].map((each) => each.close({ timeout: 100 }))));

const HEAD = 'Host: x\r\nConnection: close\r\n';
const post = (path: string, headers: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\n${HEAD}${headers}\r\n${body}`;
const sized = (path: string, type: string, body: string): string =>
  post(path, `${type === '' ? '' : `Content-Type: ${type}\r\n`}Content-Length: ${Buffer.byteLength(body)}\r\n`, body);
const CHUNKED = 'Transfer-Encoding: chunked\r\n';

const cases: {
  what: string;
  bytes: string;
  status: number | readonly number[];
  description?: string | RegExp;
  headers?: Record<string, string>;
}[] = [
  { what: 'an unknown route', bytes: `GET /nowhere HTTP/1.1\r\n${HEAD}\r\n`, status: 404 },
  { what: 'the wrong method', bytes: `DELETE /users/7 HTTP/1.1\r\n${HEAD}\r\n`, status: 405,
    headers: { allow: 'GET, HEAD, OPTIONS' } },
  { what: 'a malformed escape', bytes: `GET /users/%ZZ HTTP/1.1\r\n${HEAD}\r\n`, status: 400, description: /escape/ },
  { what: 'a malformed escape in a path without a route', bytes: `GET /nowhere/% HTTP/1.1\r\n${HEAD}\r\n`,
    status: 400 },
  { what: 'an escape that is no UTF-8', bytes: `GET /users/%FF HTTP/1.1\r\n${HEAD}\r\n`, status: 400 },
  { what: 'a fragment in the target', bytes: `GET /users/7#x HTTP/1.1\r\n${HEAD}\r\n`, status: 400 },
  { what: 'bytes beyond ASCII in the target', bytes: `GET /users/\xe9 HTTP/1.1\r\n${HEAD}\r\n`, status: 400 },
  { what: 'an asterisk for GET', bytes: `GET * HTTP/1.1\r\n${HEAD}\r\n`, status: 400 },
  { what: 'a target without a slash', bytes: `GET users HTTP/1.1\r\n${HEAD}\r\n`, status: 400 },
  { what: 'an absolute target with a bad authority', bytes: `GET http://a@b/ HTTP/1.1\r\n${HEAD}\r\n`, status: 400 },
  { what: 'no Host', bytes: 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', status: 400, description: /Host/ },
  { what: 'two Hosts', bytes: `GET / HTTP/1.1\r\nHost: y\r\n${HEAD}\r\n`, status: 400, description: /Host/ },
  { what: 'a malformed Host', bytes: 'GET / HTTP/1.1\r\nHost: a b@c/../\r\nConnection: close\r\n\r\n', status: 400,
    description: /Host/ },
  { what: 'a Host with user info', bytes: 'GET / HTTP/1.1\r\nHost: a@b\r\nConnection: close\r\n\r\n', status: 400 },
  { what: 'an empty Host', bytes: 'GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n', status: 400 },
  { what: 'no version', bytes: 'GET /\r\n\r\n', status: 400 },
  { what: 'version 2.0', bytes: `GET / HTTP/2.0\r\n${HEAD}\r\n`, status: 505 },
  { what: 'version 1.2', bytes: `GET / HTTP/1.2\r\n${HEAD}\r\n`, status: [400, 505] },
  { what: 'an unknown method', bytes: `BREW / HTTP/1.1\r\n${HEAD}\r\n`, status: 501 },
  { what: 'garbage', bytes: '\x16\x03\x01\x02\x00\x01\x00\r\n\r\n', status: 400 },
  { what: 'a bad header name', bytes: `GET / HTTP/1.1\r\n${HEAD}a b: c\r\n\r\n`, status: 400 },
  { what: 'folded header lines', bytes: `GET / HTTP/1.1\r\n${HEAD}A: b\r\n c\r\n\r\n`, status: [200, 400] },
  { what: 'oversized headers', bytes: `GET / HTTP/1.1\r\n${HEAD}A: ${'a'.repeat(20_000)}\r\n\r\n`, status: 431 },
  { what: 'an oversized target', bytes: `GET /${'a'.repeat(20_000)} HTTP/1.1\r\n${HEAD}\r\n`, status: 414 },
  { what: 'more header fields than node:http keeps', bytes: `GET / HTTP/1.1\r\n${HEAD}${'a:\r\n'.repeat(1100)}\r\n`,
    status: 431 },
  { what: 'two lengths', bytes: post('/text', 'Content-Length: 3\r\nContent-Length: 4\r\n', 'abcd'), status: 400 },
  { what: 'a length that is no number', bytes: post('/text', 'Content-Length: 3x\r\n', 'abc'), status: 400 },
  { what: 'a length beside chunks', bytes: post('/text', `Content-Length: 3\r\n${CHUNKED}`, '3\r\nabc\r\n0\r\n\r\n'),
    status: 400 },
  { what: 'broken chunking', bytes: post('/text', CHUNKED, 'zz\r\nabc\r\n0\r\n\r\n'), status: 400 },
  { what: 'chunking that breaks half-way', bytes: post('/text', CHUNKED, '3\r\nabc\r\nzz\r\n'), status: 400 },
  { what: 'broken chunking of a body that nobody reads', bytes: post('/ignored', CHUNKED, 'zz\r\nabc\r\n0\r\n\r\n'),
    status: [200, 400] },
  { what: 'chunk extensions without an end',
    bytes: post('/text', CHUNKED, `3;${'a'.repeat(30_000)}\r\nabc\r\n0\r\n\r\n`), status: [400, 413] },
  { what: 'bad JSON', bytes: sized('/json', 'application/json', '{"a":'), status: 400, description: /JSON/ },
  { what: 'an empty JSON body', bytes: sized('/json', 'application/json', ''), status: 400, description: /JSON/ },
  { what: 'JSON that is no UTF-8',
    bytes: post('/json', 'Content-Type: application/json\r\nContent-Length: 3\r\n', '"\xff"'), status: 400,
    description: /UTF-8/ },
  { what: 'JSON of another type', bytes: sized('/json', 'text/plain', '{}'), status: 415 },
  { what: 'a form of another type', bytes: sized('/form', 'application/json', 'a=b'), status: 415 },
  { what: 'two content types in one', bytes: sized('/json', 'application/json,text/plain', '{}'), status: 415 },
  { what: 'an empty content type', bytes: post('/json', 'Content-Type:\r\nContent-Length: 2\r\n', '{}'), status: 415 },
  { what: 'a content coding', bytes: post('/text', 'Content-Encoding: gzip\r\nContent-Length: 3\r\n', 'abc'),
    status: 415 },
  { what: 'an oversized body that says so', bytes: sized('/text', '', 'a'.repeat(1001)), status: 413,
    headers: { connection: 'close' } },
  { what: 'an oversized body in chunks', bytes: post('/text', CHUNKED, `400\r\n${'a'.repeat(1024)}\r\n0\r\n\r\n`),
    status: 413 },
  { what: 'an oversized body, streamed', bytes: post('/stream', CHUNKED, `400\r\n${'a'.repeat(1024)}\r\n0\r\n\r\n`),
    status: 413 },
  { what: 'an unknown expectation', bytes: post('/text', 'Expect: magic\r\nContent-Length: 1\r\n', 'a'), status: 417 },
  { what: 'CONNECT', bytes: 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n', status: 501 },
  { what: 'a thrown string', bytes: `GET /throws/string HTTP/1.1\r\n${HEAD}\r\n`, status: 500 },
  { what: 'throw undefined', bytes: `GET /throws/undefined HTTP/1.1\r\n${HEAD}\r\n`, status: 500 },
  { what: 'a stream that fails at once', bytes: `GET /early HTTP/1.1\r\n${HEAD}\r\n`, status: 500 },
  { what: 'a stream of objects', bytes: `GET /objects HTTP/1.1\r\n${HEAD}\r\n`, status: 500 },
  { what: 'a head that never ends', bytes: 'GET / HTTP/1.1\r\nHost: x\r\n', status: 408 },
  { what: 'a body that never ends', bytes: post('/text', 'Content-Length: 10\r\n', 'abc'), status: 408 },
];

test.for(cases)('$what: $status', async ({ bytes, status, description, headers = {} }) => {
  const response = await rawRequest(status === 408 ? hurriedPort : port, bytes);
  if (typeof status === 'number') expect(response.status).toBe(status);
  else expect(status).toContain(response.status);
  if (response.status >= 400) {
    expect(response.headers['content-type']).toBe('application/json');
    const body = JSON.parse(response.body) as {
      message: string;
      description: string;
      error_code: { name: string; value: number };
    };
    expect(Object.keys(body)).toEqual(['message', 'description', 'error_code']);
    expect(Object.keys(body.error_code)).toEqual(['name', 'value']);
    expect(body.error_code.name).toBe(
      response.status === 500 ? 'framework_unknown_error' : 'framework_error_unspecified',
    );
    if (description !== undefined) expect(body.description).toMatch(description);
    expect(response.body).not.toMatch(/at .*\(|node:|\.ts|\.js|HPE_/);
  }
  for (const [name, value] of Object.entries(headers)) expect(response.headers[name]).toBe(value);
  expect((await rawRequest(port, `GET / HTTP/1.1\r\n${HEAD}\r\n`)).body).toBe('{"hello":"world"}');
});

test('an error after the head is out closes the connection, and no second reply is sent', async () => {
  const text = await rawExchange(port, 'GET /late HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(text.startsWith('HTTP/1.1 200 OK\r\n')).toBe(true);
  expect(text).toContain('partial');
  expect(text).not.toContain('0\r\n\r\n');
  expect(text).not.toContain('Server Error');
  expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  expect(app.metrics.expose()).toContain(
    'http_request_duration_seconds_count{method="GET",route="/late",status_code="500"} 1.0',
  );
});

test('a method that some route has is counted by its name where no route is found', async () => {
  const before = app.metrics.expose();
  expect(before).not.toContain('PROPFIND');
  app.route('/dav', { PROPFIND: () => 'found' });
  await rawRequest(port, `PROPFIND /nowhere HTTP/1.1\r\n${HEAD}\r\n`);
  await rawRequest(port, `MKCOL /nowhere HTTP/1.1\r\n${HEAD}\r\n`);
  expect(app.metrics.expose()).toContain(
    'http_request_duration_seconds_count{method="PROPFIND",route="",status_code="404"} 1.0',
  );
  expect(app.metrics.expose()).toContain(
    'http_request_duration_seconds_count{method="_OTHER",route="",status_code="404"} 1.0',
  );
});

test('CONNECT is refused with the id of the request, and counted as what it is', async () => {
  const response = await rawRequest(port, 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\nX-Request-Id: abc\r\n\r\n');
  expect([response.status, response.headers['x-request-id']]).toEqual([501, 'abc']);
  expect(app.metrics.expose()).toMatch(
    /http_request_duration_seconds_count\{method="CONNECT",route="",status_code="501"\} \d/,
  );
});

test('a body of exactly the limit passes, one more byte does not, whatever its framing', async () => {
  const body = 'a'.repeat(1000);
  for (const path of ['/bytes', '/stream']) {
    for (const bytes of [sized(path, '', body), post(path, CHUNKED, `3e8\r\n${body}\r\n0\r\n\r\n`)]) {
      const response = await rawRequest(port, bytes);
      expect([response.status, response.body]).toEqual([200, '{"length":1000}']);
    }
    expect((await rawRequest(port, post(path, CHUNKED, `3e8\r\n${body}\r\n1\r\na\r\n0\r\n\r\n`))).status).toBe(413);
  }
});

test('a body in one-byte chunks is put together in order', async () => {
  const text = 'the quick brown fox';
  const response = await rawRequest(
    port,
    post('/text', CHUNKED, `${[...text].map((char) => `1\r\n${char}\r\n`).join('')}0\r\n\r\n`),
  );
  expect(response.body).toBe(text);
});

test('a client that sends far more than the limit still gets to read the 413', async () => {
  const size = 8 * 1024 * 1024;
  const response = await fetch(`http://127.0.0.1:${port}/bytes`, { method: 'POST', body: Buffer.alloc(size) });
  expect(response.status).toBe(413);
  expect(((await response.json()) as { message: string }).message).toBe('Payload Too Large');
});

test('100 Continue is sent when the body is asked for, and not for one that is refused', async () => {
  const expecting = (length: number, path: string): string =>
    `POST ${path} HTTP/1.1\r\n${length === 3 && path === '/text' ? HEAD : 'Host: x\r\n'}Expect: 100-continue\r\nContent-Length: ${length}\r\n\r\n`;
  const accepted = parseResponses(await rawExchange(port, `${expecting(3, '/text')}abc`));
  expect(accepted.map(({ status }) => status)).toEqual([100, 200]);
  const refused = parseResponses(await rawExchange(port, expecting(5000, '/text')));
  expect(refused.map(({ status }) => status)).toEqual([413]);
  const unread = parseResponses(await rawExchange(port, expecting(3, '/ignored')));
  expect(unread.map(({ status, headers }) => [status, headers['connection']])).toEqual([[200, 'close']]);
});

test('an unread body never becomes a second request', async () => {
  const smuggled = 'GET /users/smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
  const bytes = `POST /ignored HTTP/1.1\r\nHost: x\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}GET /users/next HTTP/1.1\r\n${HEAD}\r\n`;
  const responses = parseResponses(await rawExchange(port, bytes));
  expect(responses.map(({ body }) => body)).toEqual(['not read', '{"id":"next"}']);
});

test('pipelined requests are answered in order, a malformed one after them last', async () => {
  const get = (id: string): string => `GET /users/${id} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const responses = parseResponses(await rawExchange(port, `${get('a')}${get('b')}nonsense\r\n\r\n`));
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 400]);
});

test('a client that hangs up at any point leaves the process serving', async () => {
  const bytes = post('/text', 'Content-Length: 10\r\n', 'abc');
  await Promise.all(
    Array.from({ length: bytes.length }, (_, length) => new Promise<void>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(bytes.slice(0, length), () => socket.destroy()));
      socket.on('error', () => undefined).on('close', () => resolve());
    })),
  );
  expect((await rawRequest(port, `GET / HTTP/1.1\r\n${HEAD}\r\n`)).status).toBe(200);
});
