/** Advisories about headers of replies: injection, and lengths that are none. */

import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { ApiError, connect, NotFound, reply, type Handler } from 'postern';
import { get, HEAD, parseResponses, rawExchange, rawRequest } from '../support/raw.js';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

const SERVER_ERROR = {
  message: 'Server Error',
  description: 'Something has blown up really bad. Somebody should be notified?',
  error_code: { name: 'framework_unknown_error', value: 999999 },
};

const BREAKS: Record<string, string> = {
  'CR LF': '\r\n',
  'a bare LF': '\n',
  'a bare CR': '\r',
  'NUL': '\0',
  'characters whose low bytes are CR LF': '\u{10d}\u{10a}',
  'a character beyond Latin-1': '€',
  'half a surrogate pair': '\ud800',
};
const HEADER_PLACES: Record<string, (text: string) => Handler> = {
  'a header of a reply': (text) => () => reply('x', { headers: { 'x-a': text } }),
  'a header name of a reply': (text) => () => reply('x', { headers: { [text]: 'a' } }),
  'a cookie': (text) => () => {
    const replied = reply('x');
    replied.headers.append('set-cookie', 'a=1');
    replied.headers.append('set-cookie', text);
    return replied;
  },
  'a content type': (text) => () => reply({ a: 1 }, { headers: { 'content-type': text } }),
  'a location': (text) => () => reply(undefined, { status: 302, headers: { location: text } }),
  'a header of a 204': (text) => () => reply(undefined, { headers: { 'x-a': text } }),
  'a header of a stream': (text) => () => reply(Readable.from(['x']), { headers: { 'x-a': text } }),
  'the status text of a reply': (text) => () => reply('x', { statusText: text }),
  'the status text of a stream': (text) => () => reply(Readable.from(['x']), { statusText: text }),
  'the status text that middleware sets': (text) => () => Object.assign(reply('x'), { statusText: text }),
  'a header of an error': (text) => () => { throw new NotFound('x', { headers: { 'x-a': text } }); },
  'a header name of an error': (text) => async () => { throw new NotFound('x', { headers: { [text]: 'a' } }); },
  'a header set by hand': (text) => ({ raw: { res } }) => { res.setHeader('x-a', text); },
};
const injections = Object.entries(HEADER_PLACES)
  .flatMap(([place, make]) => Object.entries(BREAKS).map(([what, end]) => ({ place, make, what, end })));
test.for(injections)('$place with $what gives the uniform 500, in one reply (CVE-2025-7339)', async ({ make, end }) => {
  const logger = createRecorder();
  const text = `a${end}x-injected: 1${end}${end}HTTP/1.1 200 injected`;
  const { port } = await serve(
    expectFailures(createApp({ logger }), 500)
      .get('/', make(text))
      .get('/next', () => 'next'),
  );
  const received = await rawExchange(port, get('/'));
  expect(received.split('HTTP/1.1 ')).toHaveLength(2);
  expect(received.split('\r\n\r\n')[0]).not.toContain('injected');
  const [response] = parseResponses(received);
  expect([response?.status, JSON.parse(response?.body ?? '')]).toEqual([500, SERVER_ERROR]);
  expect(received.startsWith('HTTP/1.1 500 Internal Server Error\r\n')).toBe(true);
  expect(logger.entries.at(-1)?.level).toBe('error');
  expect((await rawRequest(port, get('/next'))).body).toBe('next');
});

const UNSENDABLE: Record<string, Handler> = {
  'a header of a reply': HEADER_PLACES['a header of a reply']!('\u0001'),
  'a header of a stream': HEADER_PLACES['a header of a stream']!('\u0001'),
  'a header of a Response': () => new Response('x', { headers: { 'x-a': '\u0001' } }),
  'a header of an error': HEADER_PLACES['a header of an error']!('\u0001'),
  'a status text': HEADER_PLACES['the status text of a reply']!('€'),
  'a trailer': () => reply('x', { headers: { trailer: 'x-a' } }),
  'a bigint': () => ({ price: 1n }) as never,
  'a stream that fails': async function* () { throw new Error('failed'); },
};
test.for(Object.keys(UNSENDABLE))('what middleware sets stays when %s makes a reply unsendable, and one line says why', async (name) => {
  const logger = createRecorder();
  const headers = { 'access-control-allow-origin': '*', 'content-security-policy': "default-src 'none'" };
  const app = expectFailures(createApp({ logger }), 500)
    .use(async (_ctx, next) => {
      const replied = await next();
      for (const [header, value] of Object.entries(headers)) replied.headers.set(header, value);
      replied.headers.append('vary', 'origin');
      return replied;
    })
    .use(connect((_req, res, next) => {
      res.setHeader('x-connect', '1');
      res.appendHeader('set-cookie', 'a=1');
      next();
    }))
    .get('/', UNSENDABLE[name]!);
  const response = await app.request('/');
  expect([response.status, await response.json()]).toEqual([500, SERVER_ERROR]);
  expect(Object.fromEntries(response.headers)).toMatchObject({ ...headers, 'x-connect': '1', 'set-cookie': 'a=1' });
  expect(response.headers.get('vary')).toContain('origin');
  expect(logger.entries.filter(({ level }) => level === 'error')).toHaveLength(1);
});

test('what Latin-1 has is no reason to refuse a reply (CVE-2025-7339)', async () => {
  const { port } = await serve(
    createApp().get('/', () =>
      reply(Buffer.from('x'), { statusText: 'd\xe9\tj\xe0', headers: { 'x-a': 'na\xefve\tb' } }),
    ),
  );
  const received = await rawExchange(port, get('/'));
  expect(received).toContain('HTTP/1.1 200 d\xe9\tj\xe0\r\n');
  expect(received).toContain('x-a: na\xefve\tb\r\n');
});

test('an error whose parts throw when they are read gives the uniform 500 (CVE-2025-7339)', async () => {
  const { port } = await serve(
    expectFailures(createApp(), 500)
      .get('/proxy', () => {
        throw new Proxy(new NotFound('x'), {
          get() {
            throw new Error('trap');
          },
        });
      })
      .get('/headers', () => {
        throw new ApiError('x', {
          headers: {
            get 'x-a'(): string {
              throw new Error('trap');
            },
          },
        });
      }),
  );
  for (const path of ['/proxy', '/headers']) {
    const { status, body } = await rawRequest(port, get(path));
    expect([status, JSON.parse(body)], path).toEqual([500, SERVER_ERROR]);
  }
});

test('headers set by hand stay beside those of the reply, and repeated ones stay several (CVE-2025-7339)', async () => {
  const { port } = await serve(
    createApp().get('/', ({ raw: { res } }) => {
      res.setHeader('x-kept', 'kept').setHeader('x-a', 'overridden');
      return reply('x', {
        headers: [
          ['x-a', 'reply'],
          ['set-cookie', 'a=1'],
          ['set-cookie', 'b=2'],
          ['vary', 'a'],
          ['vary', 'b'],
        ],
      });
    }),
  );
  const lines = (await rawExchange(port, get('/'))).toLowerCase().split('\r\n');
  expect(lines.filter((line) => /^(?:x-|set-cookie|vary)/.test(line)).sort()).toEqual([
    'set-cookie: a=1', 'set-cookie: b=2', 'vary: a, b', 'x-a: reply', 'x-kept: kept',
  ]);
});

test.for([200, 202, 204, 205, 302, 304, 404])(
  'a length given to a %i without a body never makes the next reply that body (CVE-2025-7339)',
  async (status) => {
    const app = createApp().get('/', () => reply(undefined, { status, headers: { 'content-length': '5' } }))
      .get('/next', () => 'next');
    const { port } = await serve(app);
    const responses = parseResponses(await rawExchange(port, get('/', 'Host: x\r\n') + get('/next')));
    expect(responses.map(({ status, body }) => [status, body])).toEqual([[status, ''], [200, 'next']]);
    expect(responses[0]?.headers['content-length']).toBe(status === 204 ? undefined : status === 304 ? '5' : '0');
  },
);

test('the length in a reply to HEAD is that of the reply to GET, and stays (CVE-2025-7339)', async () => {
  const app = createApp().head('/', () => reply(undefined, { status: 200, headers: { 'content-length': '5000' } }));
  const { port } = await serve(app);
  expect(await rawExchange(port, `HEAD / HTTP/1.1\r\n${HEAD}\r\n`)).toContain('content-length: 5000\r\n');
});

test.for(['', '-1', '+1', '1e0', '0x1', '1.0', '1, 1', '1x', '\xb9'])(
  'the length %j of a stream is no length: 500 (CVE-2025-7339)',
  async (length) => {
    const { port } = await serve(
      expectFailures(createApp(), 500).get('/', () =>
        reply(Readable.from(['x']), { headers: { 'content-length': length } }),
      ),
    );
    const [head = '', body = ''] = (await rawExchange(port, get('/'))).split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 500 /);
    expect(JSON.parse(body)).toEqual(SERVER_ERROR);
  },
);
