/** The service client against peers that behave: what goes out, what comes back. */

import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { ServiceClient, ServiceRequestOptions } from 'postern';
import { clientOf as clientOfUrl, clientsOf } from '../support/clients.js';
import { readText, startPeer, type TestServer } from '../support/peer.js';
import { createApp } from '../support/serve.js';

const clientOf = (peer: TestServer, base = ''): ServiceClient => clientOfUrl({ url: peer.url + base });

/** A peer that tells what it was sent. */
async function startEcho(): Promise<Awaited<ReturnType<typeof startPeer>>> {
  return startPeer((req, res) => {
    void readText(req).then((body) => {
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify({ method: req.method, url: req.url, headers: req.headers, body }));
    });
  });
}

interface Echo {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
}

test('a GET has no body and its answer is parsed', async () => {
  const { status, headers, body } = await clientOf(await startEcho()).get<Echo>('/invoices/7');
  expect(status).toBe(200);
  expect(headers).toBeInstanceOf(Headers);
  expect(headers.get('content-type')).toBe('application/json');
  expect(body).toMatchObject({ method: 'GET', url: '/invoices/7', body: '' });
  expect(body.headers).not.toHaveProperty('content-length');
  expect(body.headers).not.toHaveProperty('transfer-encoding');
});

test.for(['post', 'put', 'patch', 'delete'] as const)('%s sends JSON', async (method) => {
  const { body } = await clientOf(await startEcho())[method]<Echo>('/invoices', { json: { sum: 12, to: 'é' } });
  expect(body).toMatchObject({
    method: method.toUpperCase(),
    body: '{"sum":12,"to":"é"}',
    headers: { 'content-type': 'application/json', 'content-length': '20' },
  });
});

test.for([null, false, 0, '', []])('%j is sent as JSON', async (json) => {
  const { body } = await clientOf(await startEcho()).post<Echo>('/', { json });
  expect(body.body).toBe(JSON.stringify(json));
});

test('a POST without JSON has an empty body of known length', async () => {
  const { body } = await clientOf(await startEcho()).post<Echo>('/close');
  expect(body).toMatchObject({ body: '', headers: { 'content-length': '0' } });
  expect(body.headers).not.toHaveProperty('content-type');
});

test.for<{ path: string; options?: ServiceRequestOptions; url: string }>([
  { path: '/', url: '/base/' },
  { path: '/a', options: { query: { q: 'a b&c', n: 1, yes: true, big: 5n } },
    url: '/base/a?q=a+b%26c&n=1&yes=true&big=5' },
  { path: '/a', options: { query: { id: [1, 2], none: [], gone: undefined, nil: null, some: [undefined, 'x'] } },
    url: '/base/a?id=1&id=2&some=x' },
  { path: '/a', options: { query: new URLSearchParams('x=1&x=2') }, url: '/base/a?x=1&x=2' },
  { path: '/a', options: { query: { since: new Date(0), both: [new Date(1), 'x'] } },
    url: '/base/a?since=1970-01-01T00%3A00%3A00.000Z&both=1970-01-01T00%3A00%3A00.001Z&both=x' },
  { path: '/a', options: { query: {} }, url: '/base/a' },
  { path: '/a?x=1', options: { query: { y: 2 } }, url: '/base/a?x=1&y=2' },
  { path: '/a b/é', url: '/base/a%20b/%C3%A9' },
  { path: '/a%2Fb/100%25/50%', url: '/base/a%2Fb/100%25/50%' },
  { path: '/a//b/', url: '/base/a//b/' },
  { path: '/.well-known/...', url: '/base/.well-known/...' },
  { path: '/http://evil.test/', url: '/base/http://evil.test/' },
])('$path with $options becomes $url', async ({ path, options, url }) => {
  const { body } = await clientOf(await startEcho(), '/base').get<Echo>(path, options);
  expect(body.url).toBe(url);
});

test.for([
  '',
  'a',
  '//evil.test/x',
  '/\\evil.test',
  '\\a',
  'http://evil.test/',
  '?x=1',
  '/a/../b',
  '/..',
  '/.',
  '/%2e%2E/b',
  '/.%2e',
  '/a/%2E/b',
  '/a\r\nx: y',
  '/a\nb',
  '/a\tb',
  '/a\u0000',
  '/a#b',
  '/\ud800',
])('the path %j is refused', async (path) => {
  const peer = await startEcho();
  await expect(clientOf(peer).get(path)).rejects.toThrow(TypeError);
  expect(peer.requests).toHaveLength(0);
});

test.for<{ options: object; message: string | RegExp | TypeError }>([
  { options: { query: 'a=1' }, message: 'query of get() is "a=1"; give an object' },
  ...[{}, new Map(), [[1]], NaN, -Infinity, [1, NaN], Symbol('s'), () => 1,
    new (class Money {})()]
    .map((a) => ({ options: { query: { a } }, message: /^query parameter "a" is .*; give a string, a number, a boolean/ })),
  { options: { query: { a: new Date(NaN) } }, message: /^query parameter "a" is an invalid time; give/ },
  { options: { headers: { a: {} } }, message: 'header "a" is an object; give a string, or a list of such' },
  { options: { headers: { a: new Date(0) } }, message: /^header "a" is an object; give a string/ },
  ...['Łukasz', 'secret\r\nb: c', 'secret\0'].map((a) => ({ options: { headers: { a } }, message: new TypeError(
    'header "a" has a character in its name or its value that HTTP does not carry; encode it, as by encodeURIComponent()',
  ) })),
  { options: { headers: { 'a b': '1' } }, message: /^header "a b" has a character in its name .*; encode it/ },
  { options: { headers: 'a' }, message: 'headers of get() is "a"; give an object, pairs or Headers' },
])('$options are refused with a remedy', async ({ options, message }) => {
  const failure = clientOf(await startEcho()).get('/', options);
  await expect(failure).rejects.toThrow(TypeError);
  await expect(failure).rejects.toThrow(message);
});

test('headers may be an object, pairs and Headers', async () => {
  const client = clientOf(await startEcho());
  for (const headers of [{ 'x-a': '1' }, [['x-a', '1']] as const, new Headers({ 'x-a': '1' }), new Map([['x-a', '1']])])
    expect((await client.get<Echo>('/', { headers })).body.headers).toMatchObject({ 'x-a': '1' });
});

test.for<{ what: string; options: object }>([
  { what: 'a timeout of 0', options: { timeout: 0 } },
  { what: 'a timeout that no timer takes', options: { timeout: 2 ** 31 } },
  { what: 'a timeout that is no number', options: { timeout: NaN } },
  { what: 'a negative retry', options: { retry: -1 } },
  { what: 'half a retry', options: { retry: 0.5 } },
  { what: 'a header name with a space', options: { headers: { 'x y': '1' } } },
  { what: 'a header value with a line break', options: { headers: { x: 'a\r\nb: c' } } },
  { what: 'JSON that has no JSON form', options: { json: () => 1 } },
])('$what is refused', async ({ options }) => {
  const peer = await startEcho();
  await expect(clientOf(peer).post('/', options)).rejects.toThrow(TypeError);
  expect(peer.requests).toHaveLength(0);
});

test('given headers are sent and beat our own, those of a connection are not', async () => {
  const client = clientOf(await startEcho());
  const headers = {
    'X-Mine': '1', Accept: 'text/csv', 'Content-Type': 'application/merge-patch+json', gone: undefined,
    many: ['a', 'b'],
    Connection: 'close, X-Hop', 'X-Hop': '1', 'Keep-Alive': 'timeout=9', 'Transfer-Encoding': 'chunked',
    'Content-Length': '99', TE: 'trailers', Upgrade: 'h2c', 'Proxy-Authorization': 'x', Expect: '100-continue',
  };
  const { body } = await client.patch<Echo>('/', { json: 1, headers });
  expect(Object.keys(body.headers).sort()).toEqual([
    'accept', 'connection', 'content-length', 'content-type', 'host', 'many', 'x-envoy-expected-rq-timeout-ms',
    'x-mine',
  ]);
  expect(body.headers).toMatchObject({
    accept: 'text/csv',
    connection: 'keep-alive',
    'content-length': '1',
    'content-type': 'application/merge-patch+json',
    many: 'a, b',
    'x-mine': '1',
  });
  expect((await client.get<Echo>('/', { headers: new Headers({ a: '1' }) })).body.headers).toMatchObject({ a: '1' });
  expect((await client.get<Echo>('/', { headers: [['a', '1'], ['a', '2']] })).body.headers)
    .toMatchObject({ a: '1, 2' });
});

const bodies: { type?: string; text: string | Buffer; body: unknown }[] = [
  { type: 'application/json', text: '{"a":1}', body: { a: 1 } },
  { type: 'Application/JSON ; charset=utf-8', text: '\u{feff}[1]', body: [1] },
  { type: 'application/problem+json', text: '"x"', body: 'x' },
  { type: 'application/json', text: '', body: undefined },
  { type: 'text/plain; charset=utf-8', text: '', body: '' },
  { type: 'text/plain; charset=klingon', text: '', body: '' },
  { type: 'application/xml', text: '', body: '' },
  { type: 'application/octet-stream', text: '', body: new Uint8Array() },
  { text: '', body: undefined },
  { type: 'text/plain; charset=utf-8', text: 'é', body: 'é' },
  { type: 'text/html', text: '<p>', body: '<p>' },
  { type: 'application/json; charset=ISO-8859-1', text: Buffer.from('"é"', 'latin1'), body: 'é' },
  { type: 'text/csv; charset="iso-8859-1"; header=present', text: Buffer.from('é', 'latin1'), body: 'é' },
  { type: 'text/plain; charset=UTF-16LE', text: Buffer.from('é', 'utf16le'), body: 'é' },
  { type: 'text/plain; charset=Shift_JIS', text: Buffer.from([0x93, 0xfa]), body: '日' },
  { type: 'application/xml', text: '<é/>', body: '<é/>' },
  { type: 'image/svg+xml', text: '<svg/>', body: '<svg/>' },
  { type: 'application/x-www-form-urlencoded', text: 'a=1', body: 'a=1' },
  ...[undefined, 'application/octet-stream', 'application/pdf', 'image/png', 'application/jsonx', 'application/zip']
    .map((type) => ({ ...(type && { type }), text: Buffer.from([0, 255]), body: new Uint8Array([0, 255]) })),
];
test.for(bodies)('$text as $type is $body', async ({ type, text, body }) => {
  const peer = await startPeer((_req, res) => {
    if (type !== undefined) res.setHeader('content-type', type);
    res.end(text);
  });
  expect((await clientOf(peer).get('/')).body).toEqual(body);
});

test('a charset that Node.js does not know is a 502', async () => {
  const peer = await startPeer((_req, res) => res.setHeader('content-type', 'text/plain; charset=klingon').end('x'));
  await expect(clientOf(peer).get('/'))
    .rejects.toMatchObject({ statusCode: 502, description: 'billing answered in the charset "klingon"' });
});

test('an error body in another charset keeps its texts', async () => {
  const body = { message: 'Zu spät.', description: 'é', error_code: { name: 'too_late', value: 7 } };
  const peer = await startPeer((_req, res) => {
    res.writeHead(410, { 'content-type': 'application/json; charset=iso-8859-1' });
    res.end(Buffer.from(JSON.stringify(body), 'latin1'));
  });
  await expect(clientOf(peer).get('/')).rejects.toMatchObject({ statusCode: 410, message: 'Zu spät.', description: 'é' });
});

const CODINGS: Readonly<Record<string, (text: string) => Buffer>> = {
  gzip: gzipSync,
  deflate: deflateSync,
  'deflate without its frame': deflateRawSync,
  br: brotliCompressSync,
};
test.for(Object.entries(CODINGS))('a caller that accepts %s gets the body decoded, errors too', async ([name, encode]) => {
  const coding = name.split(' ')[0] as string;
  const peer = await startPeer((req, res) => {
    const error = { message: 'm', description: 'd é', error_code: { name: 'n', value: 1 } };
    const [status, body] = req.url === '/error' ? [410, error] : [200, { a: 'é' }];
    res.writeHead(status, { 'content-type': 'application/json', 'content-encoding': coding });
    res.end(encode(JSON.stringify(body)));
  });
  const headers = { 'accept-encoding': coding };
  expect((await clientOf(peer).get('/', { headers })).body).toEqual({ a: 'é' });
  await expect(clientOf(peer).get('/error', { headers })).rejects.toMatchObject({ statusCode: 410, description: 'd é' });
  await expect(clientOf(peer).get('/'))
    .rejects.toMatchObject({ description: 'billing answered in a content coding that was not asked for' });
});

test.for<{ what: string; coding: string; body: Buffer; status?: number; says: string }>([
  { what: 'is not in its coding', coding: 'gzip', body: Buffer.from('x'), says: 'billing answered with a body that is not gzip' },
  { what: 'is cut', coding: 'gzip', body: gzipSync('x'.repeat(100)).subarray(0, 20),
    says: 'billing answered with a body that is not gzip' },
  { what: 'is too large without its coding', coding: 'br', body: brotliCompressSync(Buffer.alloc(1001)),
    says: 'billing answered with more than 1000 bytes' },
  { what: 'has another coding', coding: 'zstd', body: Buffer.from('x'),
    says: 'billing answered in a content coding that was not asked for' },
  { what: 'has two codings', coding: 'gzip, gzip', body: gzipSync(gzipSync('x')),
    says: 'billing answered in a content coding that was not asked for' },
  { what: 'of an error is not in its coding', coding: 'gzip', body: Buffer.from('x'), status: 410, says: 'billing answered 410' },
])('a body that $what is refused', async ({ coding, body, status = 200, says }) => {
  const peer = await startPeer((_req, res) => res.writeHead(status, { 'content-encoding': coding }).end(body));
  const client = clientOfUrl(peer, { maxBytes: 1000 });
  await expect(client.get('/', { headers: { 'accept-encoding': 'gzip, br' } }))
    .rejects.toMatchObject({ statusCode: status === 200 ? 502 : status, description: says });
});

test('a 204 has no body', async () => {
  const peer = await startPeer((_req, res) => res.writeHead(204).end());
  expect(await clientOf(peer).delete('/7')).toMatchObject({ status: 204, body: undefined });
});

test.for([301, 302, 303, 304, 307, 308])('a %i is a result and is not followed', async (status) => {
  const elsewhere = await startEcho();
  const peer = await startPeer((_req, res) => res.writeHead(status, { location: `${elsewhere.url}/x` }).end());
  const response = await clientOf(peer).get('/');
  expect(response.status).toBe(status);
  expect(response.headers.get('location')).toBe(`${elsewhere.url}/x`);
  expect([peer.requests.length, elsewhere.requests.length]).toEqual([1, 0]);
});

test('every value of a repeated header is there', async () => {
  const peer = await startPeer((_req, res) =>
    res.setHeader('set-cookie', ['a=1', 'b=2']).setHeader('x', ['1', '2']).end(),
  );
  const { headers } = await clientOf(peer).get('/');
  expect(headers.getSetCookie()).toEqual(['a=1', 'b=2']);
  expect(headers.get('x')).toBe('1, 2');
});

test('requests in sequence share one connection, concurrent ones have their own', async () => {
  const peer = await startEcho();
  const client = clientOf(peer);
  for (let i = 0; i < 5; i += 1) await client.get('/');
  expect(peer.sockets).toHaveLength(1);
  await Promise.all([client.get('/'), client.get('/'), client.get('/')]);
  expect(peer.sockets).toHaveLength(3);
});

test('an unknown service throws at once', () => {
  const clients = clientsOf({ billing: 'http://billing:8000' });
  for (const name of ['mail', '__proto__', 'constructor', '']) expect(() => clients.client(name)).toThrow(TypeError);
  expect(() => clients.client('mail')).toThrow('service "mail" is not connected');
});

test('without a caller nothing is passed on', async () => {
  const { body } = await clientOf(await startEcho()).get<Echo>('/');
  expect(Object.keys(body.headers).sort()).toEqual(['accept', 'connection', 'host', 'x-envoy-expected-rq-timeout-ms']);
});

test('of a caller the id, the trace and the baggage are passed on, nothing else', async () => {
  const peer = await startEcho();
  const traceparent = '00-12345678901234567890123456789012-1234567890123456-01';
  const headers = {
    traceparent,
    tracestate: 'a=1',
    baggage: 'b=2',
    authorization: 'Bearer x',
    cookie: 'c=3',
    'x-forwarded-for': '10.0.0.1',
    connection: 'keep-alive, x-hop',
    'x-hop': '1',
  };
  const client = clientsOf({ billing: peer.url }).client('billing', {
    id: 'abc',
    headers,
    span: undefined,
    spanExport: null,
    signal: new AbortController().signal,
    deadlineMs: Infinity,
  });
  const { body } = await client.get<Echo>('/');
  expect(Object.keys(body.headers).sort()).toEqual([
    'accept', 'baggage', 'connection', 'host', 'traceparent', 'tracestate', 'x-envoy-expected-rq-timeout-ms',
    'x-request-id',
  ]);
  expect(body.headers).toMatchObject({ 'x-request-id': 'abc', tracestate: 'a=1', baggage: 'b=2', traceparent });
  expect((await client.get<Echo>('/', { headers: { 'x-request-id': 'mine' } })).body.headers)
    .toMatchObject({ 'x-request-id': 'mine' });
});
test('a service call with a wrong signal throws before anything is sent', async () => {
  const app = createApp({ settings: { SERVICE_CONNECTIONS: ['a=http://127.0.0.1:1'] } });
  await expect(app.service('a').get('/', { signal: new AbortController() as never })).rejects.toThrow(TypeError);
});

test.for([
  { version: '1.4.2', sent: 'users/1.4.2' },
  { version: 'März (draft)\r\nx: y', sent: 'users/M_rz_draft_x_y' },
])('version $version is $sent in the user-agent of a call, which a call may override', async ({ version, sent }) => {
  const app = createApp({ version, settings: { SERVICE_CONNECTIONS: [`a=${(await startEcho()).url}`] } });
  const agentOf = async (headers = {}): Promise<string | undefined> =>
    (await app.service('a').get<Echo>('/', { headers })).body.headers['user-agent'];
  expect(await agentOf()).toMatch(new RegExp(`^${sent} postern/\\d+\\.\\d+\\.\\d+$`));
  expect(await agentOf({ 'User-Agent': 'mine' })).toBe('mine');
});

test('two calls made at once, before the code that sends them is loaded, share it and its connections', async () => {
  const peer = await startEcho();
  const clients = clientsOf({ billing: peer.url });
  const calls = ['/a', '/b'].map((path) => clients.client('billing').get<Echo>(path));
  expect((await Promise.all(calls)).map(({ body }) => body.url)).toEqual(['/a', '/b']);
  await clients.client('billing').get('/c');
  expect(peer.sockets).toHaveLength(2);
});
