/**
 * The members that `connect` adds to a request and a response do what they do in Express: each expression is evaluated
 * by middleware of both, for the same request.
 *
 * @module-tag package
 */

import { once } from 'node:events';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Request, Response } from 'express';
import { connect, type ConnectMiddleware } from 'postern';
import { createApp, expectFailures, serve } from '../support/serve.js';
import { rawRequest } from '../support/raw.js';

const require = createRequire(import.meta.url);
type Application = ConnectMiddleware & {
  handle(): void;
  use(middleware: ConnectMiddleware): Application;
  listen(port: number, host: string): Server;
};
const express = require('express') as () => Application;

type Run = (req: Request, res: Response) => unknown;
let run: Run = () => undefined;
/** Runs what a test has set, and sends its result, unless it has sent something itself. */
const middleware: ConnectMiddleware = (req, res) => {
  let result: unknown;
  try {
    // Both have the members of Express.
    result = run(req as unknown as Request, res as unknown as Response);
  } catch (error) {
    result = error instanceof Error ? `threw ${error.name}` : error;
  }
  if (res.writableEnded || result === res) return;
  // In a header, so that a reply to HEAD has it.
  res.setHeader('x-result', encodeURIComponent(JSON.stringify(result ?? String(result), withMembers))).end();
};

/** Lists have members, too, such as the type of a range. */
function withMembers(_name: string, value: unknown): unknown {
  return Array.isArray(value) ? { ...(value as object), length: value.length } : (value ?? String(value));
}

let server: Server;
beforeAll(async () => {
  server = express().use(middleware).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

/** Headers that each framework, or the connection, adds by itself. */
const OWN = ['date', 'connection', 'keep-alive', 'x-powered-by'];

/** The reply of a server, without its own headers. */
async function ask(port: number, request: string): Promise<unknown> {
  const { status, headers, body } = await rawRequest(port, request);
  const compared = Object.entries(headers).filter(([name]) => !OWN.includes(name)).sort();
  return { status, headers: Object.fromEntries(compared), body };
}

interface Sent {
  readonly line?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function compare(what: Run, { line = 'GET /', headers = {}, body = '' }: Sent = {}): Promise<void> {
  run = what;
  const app = createApp().use(connect(middleware));
  const { port } = await serve(app);
  const fields = Object.entries({ host: 'shop.example:81', connection: 'close', ...headers });
  const request = `${line} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
  const expected = await ask((server.address() as AddressInfo).port, request);
  expect([request, await ask(port, request)]).toEqual([request, expected]);
}

describe('a request', () => {
  const lines = [
    'GET /', 'GET /a%20b/c?q=1&r=2&r=3', 'GET /?', 'GET /a?b?c=d', 'POST //a//b?x=%20', 'GET /?a[b]=1&c.d=2',
  ];
  test.for(lines)('%s has url, path, query and the rest', async (line) => {
    await compare((req) => [
      req.url, req.originalUrl, req.baseUrl, req.path, req.query, req.method, req.protocol, req.secure, req.hostname,
      req.subdomains, req.xhr, req.ips, req.params, req.res === req.res?.req.res, req.fresh, req.stale,
    ], { line });
  });

  test('in absolute form has url, path and query', async () => {
    await compare((req) => [req.url, req.originalUrl, req.path, req.query, req.hostname],
      { line: 'GET http://shop.example:81/a/b?c=1' });
  });

  const hosts = ['a.example', 'a.b.c.example:8080', 'localhost', '127.0.0.1:81', '[::1]:81', '[::1]', 'x.y.z.example'];
  test.for(hosts)('for the host %s has hostname and subdomains', async (host) => {
    await compare((req) => [req.hostname, req.subdomains], { headers: { host } });
  });

  test.for<[string, Run]>([
    ['get', (req) => [req.get('X-A'), req.get('x-a'), req.get('none'), req.get('Referer'), req.get('REFERRER')]],
    ['header', (req) => [req.header('X-A'), req.header('x-a'), req.header('Referer')]],
    ['get without a name', (req) => req.get('')],
    ['get of something else', (req) => req.get(7 as never)],
    ['xhr', (req) => req.xhr],
    ['app.get', ({ app }) => ['env', 'etag', 'query parser', 'subdomain offset', 'none'].map((name) => app.get(name))],
    ['app.get of functions', ({ app }) => ['etag fn', 'query parser fn', 'trust proxy fn'].map((name) => typeof app.get(name))],
    ['app.enabled', ({ app }) => [app.enabled('etag'), app.disabled('etag'), app.enabled('none')]],
    ['app', (req) => req.app === req.app],
    ['a query that is changed', (req) => Object.defineProperty(req, 'query', { value: { a: 1 } }).query],
    ['params that are changed', (req) => { req.params['a'] = 'b'; return req.params; }],
    ['a url that is changed', (req) => { req.url = '/x/y?z=1'; return [req.path, req.query, req.originalUrl]; }],
  ])('%s', async ([, what]) => {
    await compare(what, { headers: { 'x-a': '1', referer: 'r', 'x-requested-with': 'XMLHttpRequest' } });
  });

  const ACCEPTS = [
    undefined, '', '*/*', 'text/html', 'text/*', 'application/json', 'text/*;q=.5, application/json',
    'text/html;q=0.8, application/json;q=0.9, */*;q=0.1', 'application/json;q=0, */*',
    'text/html;level=1, text/html;q=0.7',
    'application/*;q=0.2, image/png', 'text/html, application/xhtml+xml, application/xml;q=0.9, image/avif, */*;q=0.8',
    'nonsense', 'text/html;q=x', ', ,', 'text/plain; q="0.3", text/csv', 'image/*, text/plain;q=0.9',
  ];
  test.for(ACCEPTS)('accepts, for accept: %s', async (accept) => {
    await compare((req) => [
      req.accepts(), req.accepts('html'), req.accepts('json'), req.accepts('html', 'json'),
      req.accepts(['json', 'html']),
      req.accepts('text'), req.accepts('text', 'html'), req.accepts('png'), req.accepts('application/json'),
      req.accepts('text/html;level=1', 'text/html'), req.accepts('.html'), req.accepts('nothing'),
      req.accepts('xml', 'csv', 'image/*'),
    ], accept === undefined ? {} : { headers: { accept } });
  });

  const ENCODINGS = [
    undefined, '', 'gzip', 'gzip, deflate, br', 'gzip;q=0.5, br;q=0.7', '*', '*;q=0', 'identity;q=0', 'br;q=0, *',
    'gzip;q=0.5, identity;q=0.7',
  ];
  test.for(ENCODINGS)('acceptsEncodings, for accept-encoding: %s', async (value) => {
    await compare((req) => [
      req.acceptsEncodings(), req.acceptsEncodings('gzip'), req.acceptsEncodings('br', 'gzip'),
      req.acceptsEncodings('gzip', 'br', 'identity'), req.acceptsEncodings('identity'),
      req.acceptsEncodings(['deflate']),
    ], value === undefined ? {} : { headers: { 'accept-encoding': value } });
  });

  const LISTS = [
    undefined, '', '*', 'en', 'de-CH, de;q=0.9, en;q=0.8', 'en-US, *;q=0.1', 'fr;q=0', 'EN', 'UTF-8', 'utf-8;q=0, *',
    'utf-8, iso-8859-1;q=0.5',
  ];
  test.for(LISTS)('acceptsLanguages and acceptsCharsets, for %s', async (value) => {
    await compare((req) => [
      req.acceptsLanguages(), req.acceptsLanguages('en'), req.acceptsLanguages('de', 'en'),
      req.acceptsLanguages(['en-GB', 'de-CH']),
      req.acceptsCharsets(), req.acceptsCharsets('utf-8'), req.acceptsCharsets('iso-8859-1', 'utf-8'),
      req.acceptsCharsets(['utf-16']),
    ], value === undefined ? {} : { headers: { 'accept-language': value, 'accept-charset': value } });
  });

  const TYPES = ['application/json', 'application/json; charset=utf-8', 'text/html', 'application/vnd.api+json', 'text',
    'multipart/form-data; boundary=x', 'application/x-www-form-urlencoded', 'TEXT/Plain', ''];
  const bodies = TYPES.flatMap((type) => ['2', '0', undefined].map((length) => ({ type, length })));
  test.for(bodies)('is, for content-type: $type and content-length: $length', async ({ type, length }) => {
    await compare((req) => [
      req.is('json'), req.is('application/json'), req.is('html'), req.is('text/*'), req.is('*/*'),
      req.is(['html', 'json']), req.is('urlencoded'), req.is('multipart'), req.is('+json'), req.is('application/*'),
      req.is('nothing'), req.is([]), req.is('*/html'), req.is('.json'),
    ], { line: 'POST /', body: length === '2' ? '{}' : '',
      headers: { 'content-type': type, ...(length === undefined ? {} : { 'content-length': length }) } });
  });

  const RANGES = [
    'bytes=0-4', 'bytes=5-', 'bytes=-5', 'bytes=0-4,90-99,5-75,100-199,101-102', 'bytes=200-', 'bytes=4-2', 'bytes=-0',
    'items=0-5', 'malformed', 'bytes=x-y', 'bytes=', 'bytes=1', 'bytes=0-0,-1', 'bytes= 1 - 2 ', 'bytes=0-999',
  ];
  test.for([undefined, ...RANGES])('range, for range: %s', async (range) => {
    await compare((req) => {
      const all = req.range(150);
      return [all, Array.isArray(all) && all.type, req.range(150, { combine: true }), req.range(0)];
    }, range === undefined ? {} : { headers: { range } });
  });

  const CONDITIONS: readonly Readonly<Record<string, string>>[] = [
    {},
    ...['"a"', 'W/"a"', '"b", "a"', '"b"', '*'].map((tag) => ({ 'if-none-match': tag })),
    { 'if-modified-since': 'Sat, 01 Jan 2000 00:00:00 GMT' },
    { 'if-modified-since': 'Fri, 31 Dec 1999 00:00:00 GMT' }, { 'if-modified-since': 'never' },
    { 'if-none-match': '"a"', 'cache-control': 'no-cache' },
    { 'if-none-match': '"b"', 'if-modified-since': 'Sat, 01 Jan 2000 00:00:00 GMT' },
    { 'if-none-match': '"a"', 'cache-control': 'max-age=0' },
  ];
  const fresh = CONDITIONS.flatMap((headers) => ['GET', 'HEAD', 'POST'].map((method) => ({ headers, method })));
  test.for(fresh)('fresh and stale, for $method and $headers', async ({ headers, method }) => {
    await compare((req, res) => {
      const before = [req.fresh, req.stale];
      res.set({ etag: '"a"', 'last-modified': 'Sat, 01 Jan 2000 00:00:00 GMT' });
      const between = [req.fresh, req.stale];
      const after = [404, 304, 299].map((status) => [res.status(status) && req.fresh, req.stale]);
      res.status(200);
      return [before, between, after];
    }, { line: `${method} /`, headers });
  });
});

describe('a response', () => {
  test.for(['.html', 'FILE.HTML', 'nothing', 'a/b.png', 'text/html', 'application/json', 'application/x-own'])(
    'type(%s)',
    async (type) => {
      await compare((_req, res) => res.type(type).end());
    },
  );

  test('type() of an extension is Express’s, or the default for one that Postern does not know', async () => {
    const { types } = createRequire(require.resolve('express'))('mime-types') as { readonly types: object };
    const names = Object.keys(types);
    const seen: unknown[][] = [];
    await compare((_req, res) => {
      seen.push(names.map((name) => res.type(name).get('content-type')));
      res.removeHeader('content-type');
    });
    const [theirs = [], ours = []] = seen;
    const unlike = names.filter((_name, i) => ours[i] !== theirs[i] && ours[i] !== 'application/octet-stream');
    expect(unlike).toEqual([]);
    expect(ours.filter((type) => type !== 'application/octet-stream').length).toBeGreaterThan(80);
  });

  const TEXT = 'text '.repeat(50);
  const SENT: readonly (readonly [string, Run])[] = [
    ['status(201)', (_req, res) => res.status(201).end()],
    ...[99, 1000, 200.5, '200', undefined].map((code): [string, Run] => [
      `status(${String(code)})`, (_req, res) => res.status(code as never).end(),
    ]),
    ...[200, 204, 205, 304, 404, 418, 499].map((code): [string, Run] => [
      `sendStatus(${code})`, (_req, res) => res.sendStatus(code),
    ]),
    ['set and header', (_req, res) => res.set('X-A', 'b').header('x-c', 'd').set({ 'x-e': 'f', 'x-g': ['h', 'i'] }).end()],
    ['set of other types', (_req, res) => res.set('x-a', 7 as never).set('x-b', true as never).end()],
    ['set of a list', (_req, res) => res.set('x-c', [1, 2] as never).end()],
    ['set of a content type', (_req, res) => res.set('Content-Type', 'text/plain').end()],
    ['set of a content type by extension', (_req, res) => res.set('content-type', 'html').end()],
    ['set of a content type with a charset', (_req, res) => res.set('content-type', 'text/html; charset=latin1').end()],
    ['set of content types', (_req, res) => res.set('content-type', ['text/html'] as never).end()],
    ['get', (_req, res) => [res.set('x-a', 'b').get('X-A'), res.get('none')]],
    ['append', (_req, res) => res.append('link', '<a>').append('Link', ['<b>', '<c>']).append('x-a', 'b').end()],
    ['append of cookies', (_req, res) => res.append('set-cookie', 'a=1').append('Set-Cookie', 'b=2').cookie('c', '3').end()],
    ...['Accept', 'Accept, Origin', ['Accept', 'Accept-Language'], '*', 'accept'].map((field): [string, Run] => [
      `vary(${String(field)})`, (_req, res) => res.vary('Origin').vary(field as string).end(res.get('vary')),
    ]),
    ['vary after set', (_req, res) => res.set('vary', 'origin').vary('Origin').vary('Accept').end()],
    ...['', 'a b'].map((field): [string, Run] => [`vary('${field}')`, (_req, res) => res.vary(field).end()]),
    ...['send', 'json'].flatMap((method): [string, Run][] => [
      ['<p>ä</p>', '', null, undefined, true, 0, 7, { a: 'ä' }, [1], TEXT].map((body): [string, Run] => [
        `${method}(${JSON.stringify(body)})`, (_req, res) => res[method as 'send' | 'json'](body),
      ]),
    ].flat()),
    ['send of bytes', (_req, res) => res.send(Buffer.from('abc'))],
    ['send of a view', (_req, res) => res.send(new Uint8Array([97, 98]))],
    ['send of bytes with a type', (_req, res) => res.type('png').send(Buffer.from('x'))],
    ['send of a text with a type', (_req, res) => res.type('text/csv').send('a,ä')],
    ['send of a text with a charset', (_req, res) => res.set('content-type', 'Text/HTML; charset=latin1; x="y z"').send('ä')],
    ['send with an ETag', (_req, res) => res.set('etag', '"own"').send('a')],
    ['send of 204', (_req, res) => res.status(204).send('none')],
    ['send of 304', (_req, res) => res.status(304).send('none')],
    ['send of 205', (_req, res) => res.status(205).send('none')],
    ['json with a type', (_req, res) => res.type('application/problem+json').json({ a: 1 })],
    ['json with a status', (_req, res) => res.status(422).json({ a: 1 })],
    ...['/a', '/ä b', 'https://x.example/%20?a=b&c', '../login', '/100%', '/a"b<c>', '//x\\y', '/%zz%41'].flatMap(
      (url): [string, Run][] => [
        [`redirect(${url})`, (_req, res) => res.redirect(url)],
        [`redirect(303, ${url})`, (_req, res) => res.redirect(303, url)],
        [`location(${url})`, (_req, res) => res.location(url).end()],
      ],
    ),
    ...[
      undefined, 'a.txt', 'a b.pdf', 'ä.html', 'a"b.png', 'a%20b.txt', '/x/y/z.css', 'none', '€ rates.csv', "it's.txt",
      '日本.zip',
    ].map((name): [string, Run] => [`attachment(${name})`, (_req, res) => res.attachment(name as string).end()]),
    ['clearCookie', (_req, res) => res.clearCookie('a').clearCookie('b', { path: '/x', domain: 'x.example' }).end()],
    ['clearCookie with an age', (_req, res) => res.clearCookie('a', Object.assign({}, { maxAge: 9 })).end()],
    ['locals', ({ res }) => [Object.assign(res?.locals ?? {}, { a: 1 }) === res?.locals, res?.locals['a']]],
    ['the prototype of locals', (_req, { locals }) => Object.getPrototypeOf(locals) === null],
    ['req', (req, res) => res.req === req],
  ];
  test.for(SENT)('%s', async ([, what]) => {
    await compare(what);
    await compare(what, { line: 'HEAD /' });
  });

  const FORMS = ['text/html', 'text/plain', 'application/json', '*/*', 'text/html,*/*;q=0.1'];
  test.for(FORMS)('redirect(), for accept: %s', async (accept) => {
    await compare((_req, res) => res.redirect('/a?b="<c>"&d=\'e\''), { headers: { accept } });
  });

  test.for<[string, string]>([['the same', 'W/"2-QBBfU+VQtF4HYaz8xI9pk9oo8UU"'], ['another', '"b"'], ['any', '*']])(
    'send() to a client that has %s version',
    async ([, tag]) => {
      const headers = { 'if-none-match': tag };
      await compare((_req, res) => res.send('hi'), { headers });
      await compare((_req, res) => res.status(404).send('hi'), { headers });
      await compare((_req, res) => res.json('hi'), { headers });
      await compare((_req, res) => res.send('hi'), { headers, line: 'POST /' });
    },
  );

  const VALUES: readonly unknown[] = ['b', 'b c;d', '', { c: 1 }, null, 7, 'ä', undefined];
  test.for(VALUES)('cookie() with the value %o', async (value) => {
    await compare((_req, res) => res.cookie('a', value).end());
  });

  const day = new Date(86_400_000);
  const ATTRIBUTES: readonly object[] = [
    { httpOnly: true, secure: true, partitioned: true }, { httpOnly: false, secure: false },
    ...['/x', null, '', '/; HttpOnly'].map((path) => ({ path })),
    ...['x.example', '.x.example', 'x y', '', 'x\r\ny: z'].map((domain) => ({ domain })),
    ...[day, null, new Date(NaN), 'soon'].map((expires) => ({ expires })),
    ...[null, undefined, 'x'].map((maxAge) => ({ maxAge })),
    ...[true, false, 'lax', 'Strict', 'NONE', 'any'].map((sameSite) => ({ sameSite })),
    ...['low', 'Medium', 'HIGH', 'any'].map((priority) => ({ priority })),
    ...[String, (text: string) => `x${text}`, () => 'a;b', 7].map((encode) => ({ encode })),
    { expires: day, maxAge: undefined },
  ];
  test.for(ATTRIBUTES)('cookie() with %o', async (options) => {
    await compare((_req, res) => res.cookie('a', 'b', options).end());
  });

  test.for(['a b', 'ä', '', 'a=b', '$a.b'])('cookie() with the name %o', async (name) => {
    await compare((_req, res) => res.cookie(name, 'b').end());
  });

  test('cookie() signs with the secret of cookie-parser', async () => {
    await compare((req, res) => {
      Object.assign(req, { secret: 'cat' });
      res.cookie('a', 'b', { signed: true }).cookie('c', { d: 1 }, { signed: true }).end();
    });
  });

  test.for([1500, 0, 86_400_000, 999.9])('cookie() with a maxAge of %d ms', async (maxAge) => {
    await compare((_req, res) => {
      res.cookie('a', 'b', { maxAge });
      const text = String(res.get('set-cookie'));
      const [, expires = ''] = /Expires=([^;]*)/.exec(text) ?? [];
      return [text.replace(expires, ''), Math.abs(Date.parse(expires) - Date.now() - maxAge) < 60_000];
    });
  });
});

describe('beyond Express', () => {
  test('a middleware of a route finds its parameters, and may change its own copy', async () => {
    const app = createApp();
    const seen: unknown[] = [];
    const look = connect((req, _res, next) => {
      const { params } = req as unknown as Request;
      seen.push({ ...params });
      params['id'] = `${params['id'] as string}!`;
      next();
    });
    app.use(look);
    app.get('/users/:id/*rest', { middleware: [look] }, ({ params }) => params);
    const response = await app.request('/users/a%20b/c/d');
    expect(await response.json()).toEqual({ id: 'a b', rest: 'c/d' });
    expect(seen).toEqual([{ id: 'a b', rest: 'c/d' }, { id: 'a b!', rest: 'c/d' }]);
  });

  test('locals that middleware has set are the locals of a mounted application', async () => {
    const app = createApp().use(connect((_req, res, next) => {
      (res as unknown as Response).locals['user'] = 'ada';
      next();
    }));
    app.mount('/', express().use((_req, res) => {
      const { locals, json } = res as unknown as Response;
      json.call(res, locals);
    }));
    expect(await (await app.request('/')).json()).toEqual({ user: 'ada' });
  });

  test('in a server of Express, a middleware has the members of that, and the parameters of the route', async () => {
    const app = createApp();
    app.get('/users/:id', { middleware: [connect((req, res) => {
      const { params, baseUrl, originalUrl, app: outer } = req as unknown as Request;
      (res as unknown as Response).json([params, baseUrl, originalUrl, outer.get('title')]);
    })] }, () => 'handler');
    const outer = (require('express') as typeof import('express'))();
    outer.set('title', 'outer');
    outer.use('/api', app.handler);
    const listening = outer.listen(0, '127.0.0.1');
    await once(listening, 'listening');
    onTestFinished(() => void listening.close());
    const response = await fetch(`http://127.0.0.1:${(listening.address() as AddressInfo).port}/api/users/7`);
    expect(await response.json()).toEqual([{ id: '7' }, '/api', '/api/users/7', 'outer']);
  });

  test('a value of a cookie that would end early is a 500', async () => {
    const app = expectFailures(createApp(), 500).use(connect((_req, res) =>
      (res as unknown as Response).cookie('a', 'b; Domain=evil.example', { encode: String }).end()));
    expect((await app.request('/')).status).toBe(500);
  });
});
