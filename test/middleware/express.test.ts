/**
 * Middleware of Express, as it is on npm, finds what it expects of a request and a response, and needs no change.
 *
 * @module-tag package
 */

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connect, type ConnectMiddleware, type Middleware } from 'postern';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

const require = createRequire(import.meta.url);
type Factory = (...options: never[]) => ConnectMiddleware;
const load = <T = Factory>(name: string): T => require(name) as T;

/** What Express adds, as far as these tests read it. */
interface ExpressRequest extends IncomingMessage {
  ip: string;
  ips: string[];
  originalUrl: string;
  baseUrl: string;
  protocol: string;
  secure: boolean;
  hostname: string;
  path: string;
  query: Record<string, unknown>;
  app: { get(name: string): unknown };
  get(name: string): string | undefined;
}
interface ExpressResponse extends ServerResponse {
  locals: Record<string, unknown>;
  status(code: number): this;
  sendStatus(code: number): this;
  set(name: string | object, value?: unknown): this;
  get(name: string): unknown;
  type(type: string): this;
  cookie(name: string, value: unknown, options?: object): this;
  json(body: unknown): this;
  send(body?: unknown): this;
  redirect(...args: unknown[]): void;
}
type Express = (req: ExpressRequest, res: ExpressResponse, next: (error?: unknown) => void) => unknown;
const express = (middleware: Express): Middleware => connect(middleware as unknown as ConnectMiddleware);

describe('a request', () => {
  const read = express((req, res) => {
    const { ip, ips, originalUrl, baseUrl, protocol, secure, hostname, path, query } = req;
    res.json({
      ip,
      ips,
      originalUrl,
      baseUrl,
      protocol,
      secure,
      hostname,
      path,
      query,
      trust: typeof req.app.get('trust proxy'),
      other: req.app.get('x') ?? null,
    });
  });
  const own = {
    ip: '127.0.0.1',
    ips: [],
    originalUrl: '/a%20b?q=1&r=2&r=3',
    baseUrl: '',
    protocol: 'http',
    secure: false,
    hostname: 'shop.example',
    path: '/a%20b',
    query: { q: '1', r: ['2', '3'] },
    trust: 'boolean',
    other: null,
  };
  const forwarded = {
    'x-forwarded-for': '9.9.9.9, 1.2.3.4, 10.0.0.7',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'public.example',
  };

  test.for<[string, string[], Record<string, string>, object]>([
    ['of a client', [], {}, own],
    ['of a client that claims to be a proxy', [], forwarded, own],
    [
      'of a trusted proxy',
      ['127.0.0.1', '10.0.0.0/8'],
      forwarded,
      {
        ...own,
        ip: '1.2.3.4',
        ips: ['1.2.3.4', '10.0.0.7'],
        protocol: 'https',
        secure: true,
        hostname: 'public.example',
        trust: 'function',
      },
    ],
  ])('%s has the members of Express', async ([, trustProxy, headers, expected]) => {
    const app = createApp({ trustProxy }).use(read);
    const response = await app.request('http://shop.example:81/a%20b?q=1&r=2&r=3', { headers });
    expect(await response.json()).toEqual(expected);
  });

  test('get() finds a header in any case, and Referer in both spellings; members may be replaced', async () => {
    const app = createApp();
    app.use(express((req, _res, next) => {
      Object.assign(req, { query: { mine: 1 }, path: '/mine' });
      next();
    }));
    app.use(
      express((req, res) =>
        res.send(
          [
            req.get('X-A'),
            req.get('referrer'),
            req.get('Referer'),
            req.get('none') ?? 'none',
            req.query['mine'],
            req.path,
          ].join(),
        ),
      ),
    );
    expect(await (await app.request('/', { headers: { 'x-a': '1', referer: 'r' } })).text()).toBe('1,r,r,none,1,/mine');
  });

  test('has nothing more while no such middleware runs', async () => {
    const app = createApp().get('/', ({ raw }) => ['ip', 'originalUrl', 'app'].filter((name) => name in raw.req));
    expect(await (await app.request('/')).json()).toEqual([]);
  });

  test('originalUrl stays what was sent when middleware changes url', async () => {
    const app = createApp();
    app.use(express((req, _res, next) => { req.url = '/changed?x=1'; next(); }));
    app.use(express((req, res) => res.send([req.originalUrl, req.url, req.path].join())));
    expect(await (await app.request('/sent?a=1')).text()).toBe('/sent?a=1,/changed?x=1,/changed');
  });
});

describe('a response', () => {
  const day = 86_400_000;
  test.for<[Express, number, Record<string, string | null>, string]>([
    [(_req, res) => res.status(201).json({ a: 1 }), 201, { 'content-type': 'application/json; charset=utf-8' },
      '{"a":1}'],
    [(_req, res) => res.sendStatus(418), 418, { 'content-type': 'text/plain; charset=utf-8' }, "I'm a Teapot"],
    [(_req, res) => res.send('<p>'), 200, { 'content-type': 'text/html; charset=utf-8', 'content-length': '3' }, '<p>'],
    [(_req, res) => res.send(Buffer.from('ab')), 200,
      { 'content-type': 'application/octet-stream', 'content-length': '2' }, 'ab'],
    [(_req, res) => res.send({ a: 1 }), 200, { 'content-type': 'application/json; charset=utf-8' }, '{"a":1}'],
    [(_req, res) => res.send(), 200, { 'content-type': null, 'content-length': '0' }, ''],
    [(_req, res) => res.status(204).send('none'), 204, { 'content-type': null, 'content-length': null }, ''],
    [(_req, res) => res.type('text').send('a'), 200, { 'content-type': 'text/plain; charset=utf-8' }, 'a'],
    [(_req, res) => res.type('image/png').send('a'), 200, { 'content-type': 'image/png; charset=utf-8' }, 'a'],
    [(_req, res) => res.set('X-A', 'b').set({ 'x-c': 'd', 'x-e': 5 }).send(String(res.get('x-a'))), 200,
      { 'x-a': 'b', 'x-c': 'd', 'x-e': '5' }, 'b'],
    [(_req, res) => res.redirect('/ä b'), 302, { location: '/%C3%A4%20b', 'content-type': 'text/plain; charset=utf-8' },
      'Found. Redirecting to /%C3%A4%20b'],
    [(_req, res) => res.redirect(301, 'https://x.example/%20'), 301, { location: 'https://x.example/%20' },
      'Moved Permanently. Redirecting to https://x.example/%20'],
    [(_req, res) => { res.locals['a'] = 1; res.json(res.locals); }, 200, {}, '{"a":1}'],
    [(_req, res) => res.cookie('a', 'b c').send(), 200, { 'set-cookie': 'a=b%20c; Path=/' }, ''],
    [
      (_req, res) =>
        res
          .cookie('a', { b: 1 }, { httpOnly: true, secure: true, sameSite: true, path: '/x', domain: 'x.example' })
          .send(),
      200,
      {
        'set-cookie': `a=${encodeURIComponent('j:{"b":1}')}; Domain=x.example; Path=/x; HttpOnly; Secure; SameSite=Strict`,
      },
      '',
    ],
    [(_req, res) => res.cookie('a', 'b', { expires: new Date(day), sameSite: 'lax' }).cookie('c', 'd').send(), 200,
      { 'set-cookie': 'a=b; Path=/; Expires=Fri, 02 Jan 1970 00:00:00 GMT; SameSite=Lax, c=d; Path=/' }, ''],
  ])('%s', async ([middleware, status, headers, body]) => {
    const app = createApp().use(express(middleware));
    const response = await app.request('/');
    expect([response.status, await response.text()]).toEqual([status, body]);
    for (const [name, value] of Object.entries(headers))
      expect([name, response.headers.get(name)]).toEqual([name, value]);
    const head = await app.request('/', { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([status, '']);
  });

  test.for<[what: string, Express]>([
    ['set(): text/plain', (_req, res) => res.set('Content-Type', 'text/plain').send('ä')],
    ['set(): text/html with its own charset', (_req, res) => res.set('content-type', 'text/html; charset=latin1').end('a')],
    ['set(): application/json', (_req, res) => res.set({ 'Content-Type': 'application/json' }).send('{}')],
    ['set(): application/xml', (_req, res) => res.set('content-type', 'application/xml').send(Buffer.from('<a/>'))],
    ['type(): a media type', (_req, res) => res.type('text/csv').send('a,b')],
    ['type(): an extension', (_req, res) => res.type('.css').send('a{}')],
    ['send(null)', (_req, res) => res.send(null)],
    ['send(true)', (_req, res) => res.send(true)],
    ['send(bytes) of a type', (_req, res) => res.type('png').send(Buffer.from('x'))],
    ['json(null)', (_req, res) => res.json(null)],
    ['sendStatus()', (_req, res) => res.sendStatus(404)],
    ['set() of several values', (_req, res) => res.set('x-a', ['1', '2']).send('a')],
  ])('%s gives what Express gives', async ([, middleware]) => {
    const { default: createExpress } = await import('express');
    const theirs = createExpress().use(middleware as never).listen(0, '127.0.0.1');
    await once(theirs, 'listening');
    onTestFinished(() => void theirs.close());
    const { url } = await serve(createApp().use(express(middleware)));
    const ask = async (from: string): Promise<unknown> => {
      const response = await fetch(from);
      const headers = ['content-type', 'content-length', 'x-a'].map((name) => response.headers.get(name));
      return [response.status, headers, await response.text()];
    };
    expect(await ask(String(url))).toEqual(await ask(`http://127.0.0.1:${(theirs.address() as AddressInfo).port}/`));
  });

  test.for<[string, Express]>([
    ['a name', (_req, res) => res.cookie('a b', 'c').send()],
    ['a path', (_req, res) => res.cookie('a', 'c', { path: '/; HttpOnly' }).send()],
    ['a domain', (_req, res) => res.cookie('a', 'c', { domain: 'x\r\ny: z' }).send()],
    ['a signature without a secret', (_req, res) => res.cookie('a', 'c', { signed: true }).send()],
  ])('a cookie with %s that is wrong is a 500', async ([, middleware]) => {
    const app = expectFailures(createApp().use(express(middleware)), 500);
    expect((await app.request('/')).status).toBe(500);
  });
});

describe('a reply that it writes itself', () => {
  test('is what outer middleware sees, and a header that comes too late is an error in the log', async () => {
    const logger = createRecorder();
    const app = expectFailures(createApp({ logger }), 'a header was set after the reply was written');
    const seen: unknown[] = [];
    app.use(async (_ctx, next) => {
      const reply = await next();
      seen.push([reply.status, reply.headers.get('x-a'), reply.headers.getSetCookie(), reply.error]);
      reply.headers.set('x-late', '1');
    });
    app.use(
      express(function teapot(_req, res) {
        res.cookie('a', '1').cookie('b', '2').status(418).set('x-a', 'b').json({});
      }),
    );
    const response = await app.request('/');
    expect([response.status, response.headers.has('x-late')]).toEqual([418, false]);
    await expect.poll(() => seen).toEqual([[418, 'b', ['a=1; Path=/', 'b=2; Path=/'], undefined]]);
    expect(logger.entries.filter(({ level }) => level === 'error')).toMatchObject([
      { message: 'a header was set after the reply was written',
        object: { header: 'x-late', middleware: 'teapot', request_id: expect.any(String) } },
    ]);
  });

  test('is counted with its own status', async () => {
    const app = createApp().use(express((_req, res) => res.sendStatus(404)));
    await (await app.request('/')).text();
    await expect.poll(() => app.metrics.expose())
      .toContain('http_request_duration_seconds_count{method="GET",route="",status_code="404"} 1.0');
  });
});

describe('unchanged', () => {
  test('express-rate-limit gives each client its own count', async () => {
    const { rateLimit } = load<{ rateLimit: (options: object) => ConnectMiddleware }>('express-rate-limit');
    const app = createApp({ trustProxy: ['127.0.0.1'] })
      .use(connect(rateLimit({ limit: 2, windowMs: 60_000, standardHeaders: true, legacyHeaders: false })));
    app.get('/', () => 'ok');
    const ask = async (ip: string): Promise<unknown[]> => {
      const response = await app.request('/', { headers: { 'x-forwarded-for': ip } });
      return [response.status, response.headers.get('ratelimit-remaining'), await response.text()];
    };
    expect(await ask('1.1.1.1')).toEqual([200, '1', 'ok']);
    expect(await ask('1.1.1.1')).toEqual([200, '0', 'ok']);
    expect(await ask('1.1.1.1')).toEqual([429, '0', 'Too many requests, please try again later.']);
    expect(await ask('2.2.2.2')).toEqual([200, '1', 'ok']);
  });

  test('cookie-parser reads what cookie() wrote, signed too', async () => {
    const app = createApp().use(connect(load<(secret: string) => ConnectMiddleware>('cookie-parser')('secret')));
    app.post(
      '/',
      { middleware: [express((_req, res) => res.cookie('s', 'ada', { signed: true }).cookie('p', 'plain').send())] },
      () => 1,
    );
    app.get('/', ({ raw }) => {
      const { cookies, signedCookies } = raw.req as unknown as Record<string, Record<string, string>>;
      return { ...cookies, ...signedCookies };
    });
    const cookie = (await app.request('/', { method: 'POST' })).headers.getSetCookie().map((one) => one.split(';')[0])
      .join('; ');
    expect(await (await app.request('/', { headers: { cookie } })).json()).toEqual({ s: 'ada', p: 'plain' });
  });

  test('express-session keeps a session, for replies of ours and of its own', async () => {
    const session = load<(options: object) => ConnectMiddleware>('express-session');
    const app = createApp().use(connect(session({ secret: 's', resave: false, saveUninitialized: true, cookie: {} })));
    const count = (req: IncomingMessage): number => {
      const { session: own } = req as unknown as { session: { count?: number } };
      return (own.count = (own.count ?? 0) + 1);
    };
    app.get('/', ({ raw }) => ({ count: count(raw.req) }));
    app.get('/own', { middleware: [express((req, res) => res.json({ count: count(req) }))] }, () => 1);
    const first = await app.request('/');
    const cookie = first.headers.get('set-cookie')?.split(';')[0] ?? '';
    expect([await first.json(), cookie]).toEqual([{ count: 1 }, expect.stringContaining('connect.sid=')]);
    for (const [index, path] of ['/', '/own', '/', '/own'].entries())
      expect(await (await app.request(path, { headers: { cookie } })).json()).toEqual({ count: index + 2 });
  });

  test('response-time sets its header on replies and errors', async () => {
    const app = createApp().use(connect(load<() => ConnectMiddleware>('response-time')())).get('/', () => 'ok');
    for (const path of ['/', '/nowhere'])
      expect((await app.request(path)).headers.get('x-response-time')).toMatch(/^[\d.]+ms$/);
  });

  test('passport lets a user in, refuses others, and redirects', async () => {
    const passport = new (load<{
      Passport: new () => {
        use(name: string, strategy: object): void;
        initialize(): ConnectMiddleware;
        authenticate(name: string, options: object): ConnectMiddleware;
      };
    }>('passport').Passport)();
    passport.use('token', {
      name: 'token',
      authenticate(
        this: { success(user: object): void; fail(challenge: string, status?: number): void },
        req: IncomingMessage,
      ) {
        if (req.headers.authorization === 'Bearer ada') this.success({ name: 'ada' });
        else this.fail('Bearer');
      },
    });
    const app = createApp().use(connect(passport.initialize()));
    const userOf = ({ raw }: { raw: { req: IncomingMessage } }): unknown =>
      (raw.req as unknown as { user: object }).user;
    app.get(
      '/',
      { middleware: [connect(passport.authenticate('token', { session: false }))] },
      (ctx) => userOf(ctx) as object,
    );
    app.get(
      '/page',
      { middleware: [connect(passport.authenticate('token', { session: false, failureRedirect: '/login' }))] },
      () => 1,
    );
    expect(await (await app.request('/', { headers: { authorization: 'Bearer ada' } })).json())
      .toEqual({ name: 'ada' });
    const refused = await app.request('/');
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    const redirected = await app.request('/page');
    expect([redirected.status, redirected.headers.get('location')]).toEqual([302, '/login']);
  });

  test('serve-static serves files with an ETag, and leaves the rest to routes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'postern-static-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, 'a.txt'), 'a file');
    const app = createApp().use(connect(load<(root: string) => ConnectMiddleware>('serve-static')(folder)))
      .get('/b.txt', () => 'a route');
    const { url } = await serve(app);
    const first = await fetch(`${url}/a.txt`);
    expect([first.status, first.headers.get('content-type'), await first.text()])
      .toEqual([200, 'text/plain; charset=utf-8', 'a file']);
    expect((await app.request('/a.txt', { headers: { 'if-none-match': first.headers.get('etag') ?? '' } })).status)
      .toBe(304);
    expect(await (await fetch(`${url}/b.txt`)).text()).toBe('a route');
    expect((await fetch(`${url}/c.txt`)).status).toBe(404);
    expect((await fetch(`${url}/%2e%2e%2fpackage.json`)).status).toBe(404);
  });

  const whens = [{ when: 'alone', isLater: false }, { when: 'after other middleware', isLater: true }];
  test.for(whens)('an Express application below a mount has its own members, $when', async ({ isLater }) => {
    interface Application extends ConnectMiddleware {
      handle(): void;
      set(name: string, value: unknown): void;
      engine(
        extension: string,
        run: (file: string, locals: object, done: (error: null, text: string) => void) => void,
      ): this;
      get(
        path: string,
        run: (req: ExpressRequest, res: ExpressResponse & { render(view: string): void }) => void,
      ): void;
    }
    const mounted = load<() => Application>('express')();
    const views = mkdtempSync(join(tmpdir(), 'postern-views-'));
    onTestFinished(() => rmSync(views, { recursive: true }));
    writeFileSync(join(views, 'page.txt'), '');
    mounted.set('views', views);
    mounted.set('trust proxy', true);
    mounted.engine('txt', (_file, _locals, done) => done(null, 'rendered'));
    mounted.get('/ip', (req, res) => res.json([req.ip, req.baseUrl, req.originalUrl, req.path, req.query]));
    mounted.get('/page', (_req, res) => res.render('page.txt'));
    const app = createApp();
    if (isLater) app.use(connect(load<() => ConnectMiddleware>('helmet')()));
    app.mount('/old', mounted);
    const asked = await app.request('/old/ip?a=1', { headers: { 'x-forwarded-for': '203.0.113.7' } });
    expect([asked.headers.has('etag'), asked.headers.has('x-dns-prefetch-control')]).toEqual([true, isLater]);
    expect(await asked.json()).toEqual(['203.0.113.7', '/old', '/old/ip?a=1', '/ip', { a: '1' }]);
    expect(await (await app.request('/old/page')).text()).toBe('rendered');
  });

  test('http-proxy-middleware forwards requests with their bodies', async () => {
    const upstream = createApp({}, 'upstream');
    upstream.post('/*rest', async (ctx) => ({
      url: ctx.raw.req.url,
      body: await ctx.text(),
      host: ctx.headers['x-forwarded-host'],
    }));
    const { url: target } = await serve(upstream);
    const { createProxyMiddleware } = load<{ createProxyMiddleware: (options: object) => ConnectMiddleware }>(
      'http-proxy-middleware',
    );
    const app = createApp()
      .use(connect(createProxyMiddleware({ target, pathFilter: '/api', pathRewrite: { '^/api': '' }, xfwd: true })))
      .get('/own', () => 'own');
    const { url, port } = await serve(app);
    const response = await fetch(`${url}/api/items?x=1`, { method: 'POST', body: 'hello' });
    expect([response.status, await response.json()])
      .toEqual([200, { url: '/items?x=1', body: 'hello', host: `127.0.0.1:${port}` }]);
    expect(await (await fetch(`${url}/own`)).text()).toBe('own');
  });
});

test('the members are there in a server that sets originalUrl itself, and a maxAge of null sets no age', async () => {
  const app = createApp().get('/', () => 'never');
  app.use(connect((req, res) => {
    const { ip, query } = req as IncomingMessage & { ip: string; query: { a: string } };
    const { cookie } = res as ServerResponse & { cookie: (name: string, value: string, options: object) => void };
    cookie.call(res, 'a', 'b', { maxAge: null });
    res.end(`${ip} ${query.a}`);
  }));
  const server = createServer((req, res) => app.handler(Object.assign(req, { originalUrl: req.url }), res));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/?a=1`);
  expect([await response.text(), response.headers.get('set-cookie')]).toEqual(['127.0.0.1 1', 'a=b; Path=/']);
});
