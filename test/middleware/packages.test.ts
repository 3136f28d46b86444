/**
 * Packages on npm that are middleware for Express, with the options of their own READMEs: a client gets from Postern
 * what it gets from Express 5. Only errors have each framework's own body, and some headers are each framework's own.
 *
 * @module-tag package
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, test } from 'vitest';
import type { Request, Response } from 'express';
import type { ConnectMiddleware } from 'postern';
import { compare, type Added, type Asked, type Program, type Sent } from '../support/express-beside.js';

const require = createRequire(import.meta.url);
/** A package, as far as its README uses it here. */
const load = <T = (...options: readonly unknown[]) => ConnectMiddleware>(name: string): T => require(name) as T;
type Factory = (...options: readonly unknown[]) => ConnectMiddleware;
/** Middleware with the types of Express. */
const typed = (run: (req: Request, res: Response, next: (error?: unknown) => void) => unknown): ConnectMiddleware =>
  run as unknown as ConnectMiddleware;

const plain = { 'content-type': 'text/plain; charset=utf-8' };
const hello = (): Sent => ({ headers: plain, body: 'hello, world!' });
const json = (value: unknown, status = 200): Sent => ({
  status,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify(value),
});
const ok: Asked = { line: 'GET /', status: 200 };
const missing: Asked = { line: 'GET /missing', status: 404, isError: true };

let folder = '';
let upstream = '';
const server = createServer((req, res) => {
  const chunks: Buffer[] = [];
  req
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => {
      const seen = {
        method: req.method,
        url: req.url,
        body: Buffer.concat(chunks).toString(),
        for: req.headers['x-forwarded-for'],
      };
      res.writeHead(req.url?.includes('teapot') === true ? 418 : 200, {
        'content-type': 'application/json',
        'x-upstream': '1',
      });
      res.end(JSON.stringify(seen));
    });
});
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postern-public-'));
  mkdirSync(join(folder, 'ftp/sub'), { recursive: true });
  writeFileSync(join(folder, 'ftp/a.txt'), 'a file of some text\n'.repeat(10));
  writeFileSync(join(folder, 'ftp/default.htm'), '<p>index');
  writeFileSync(join(folder, 'ftp/data.json'), '{"a":1}');
  writeFileSync(join(folder, 'ftp/ä b.txt'), 'spelt');
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A stream that notes each line that is written to it. */
const lines = (notes: unknown[], read: (line: string) => unknown): Writable =>
  new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk
        .toString()
        .split('\n')
        .filter((each) => each !== ''))
        notes.push(read(line));
      done();
    },
  });

const TEXT = 'text '.repeat(1000);
const zipped = (line: string, coding: string, headers = {}): Asked => ({
  line,
  headers: { 'accept-encoding': coding, ...headers },
  status: 200,
});

const HELMET: Program[] = [
  [undefined, 'helmet()'],
  [{ contentSecurityPolicy: false, xDownloadOptions: false }, 'helmet() without some headers'],
  [
    { contentSecurityPolicy: { directives: { 'script-src': ["'self'", 'example.com'], 'style-src': null } } },
    'helmet() with a policy',
  ],
  [
    {
      contentSecurityPolicy: {
        useDefaults: false,
        directives: { defaultSrc: ["'self'"], upgradeInsecureRequests: [] },
      },
    },
    'helmet() with a policy of its own',
  ],
].map(([options, name]) => ({
  name: name as string,
  build: (site) => {
    site.use(load('helmet')(options));
    site.get('/', hello);
  },
  requests: [ok, missing, { line: 'HEAD /', status: 200 }],
}));
const nonce: Program = {
  name: 'helmet() with a nonce in res.locals',
  build: (site) => {
    site.use(
      typed((_req, res, next) => {
        res.locals['cspNonce'] = 'abc';
        next();
      }),
    );
    const scriptSrc = ["'self'", (_req: Request, res: Response) => `'nonce-${String(res.locals['cspNonce'])}'`];
    site.use(load('helmet')({ contentSecurityPolicy: { directives: { scriptSrc } } }));
    site.get('/', hello);
  },
  requests: [ok],
};

const from = (origin: string, more = {}): { readonly headers: Record<string, string> } => ({
  headers: { origin, ...more },
});
const preflight = (path: string, origin: string, status: number): Asked => ({
  line: `OPTIONS ${path}`,
  status,
  ...from(origin, { 'access-control-request-method': 'DELETE', 'access-control-request-headers': 'x-a, x-b' }),
});
const CORS: readonly Program[] = [
  {
    name: 'cors()',
    build: (site) => {
      site.use(load('cors')());
      site.get('/', hello);
    },
    requests: [
      ok,
      { ...ok, ...from('http://a.example') },
      preflight('/', 'http://a.example', 204),
      { ...missing, ...from('http://a.example') },
    ],
  },
  {
    name: 'cors() for one route, with an origin and optionsSuccessStatus',
    build: (site) => {
      site.get('/products/:id', load('cors')({ origin: 'http://example.com', optionsSuccessStatus: 200 }), () =>
        json({ msg: 'Hello' }),
      );
    },
    requests: [{ line: 'GET /products/7', status: 200, ...from('http://other.example') }],
  },
  {
    name: 'cors() with a dynamic origin',
    build: (site) => {
      const origins = ['http://example.com'];
      const origin = (given: string | undefined, done: (error: Error | null, allowed?: unknown) => void): void =>
        void setImmediate(() =>
          given === 'http://evil.example' ? done(new Error('not allowed')) : done(null, origins),
        );
      site.use(load('cors')({ origin, credentials: true, maxAge: 600, exposedHeaders: ['x-a'] }));
      site.get('/', hello);
    },
    requests: [
      ok,
      { ...ok, ...from('http://example.com') },
      { ...ok, ...from('http://other.example') },
      preflight('/', 'http://example.com', 204),
      { line: 'GET /', ...from('http://evil.example'), status: 500, isError: true },
    ],
  },
  {
    name: 'cors() with options for each request',
    build: (site) => {
      site.use(
        load('cors')((req: Request, done: (error: null, options: object) => void) => {
          const isPrivate = req.path.startsWith('/auth/connect/');
          done(null, isPrivate ? { origin: 'http://mydomain.com', credentials: true } : { origin: '*' });
        }),
      );
      site.get('/auth/connect/twitter', hello);
      site.get('/', hello);
    },
    requests: [
      { ...ok, ...from('http://a.example') },
      { line: 'GET /auth/connect/twitter', status: 200, ...from('http://a.example') },
    ],
  },
];

const COMPRESSION: readonly Program[] = [
  {
    name: 'compression()',
    build: (site) => {
      site.use(load('compression')());
      site.get('/', () => ({ headers: plain, body: TEXT }));
      site.get('/small', hello);
      site.get('/bytes', () => ({ headers: { 'content-type': 'image/png' }, body: Buffer.from(TEXT) }));
      site.get('/stream', () => ({
        headers: plain,
        body: async function* () {
          yield TEXT;
          yield TEXT;
        },
      }));
      site.get('/untouched', () => ({ headers: { ...plain, 'cache-control': 'no-transform' }, body: TEXT }));
      site.get('/tagged', () => ({ headers: { ...plain, etag: '"a"', vary: 'x-own' }, body: TEXT }));
      site.get('/empty', () => ({ status: 204, body: '' }));
    },
    requests: [
      ...['gzip', 'deflate', 'br', 'gzip, deflate, br', 'identity', '*', 'gzip;q=0', ''].map((coding) =>
        zipped('GET /', coding),
      ),
      zipped('HEAD /', 'gzip'),
      zipped('GET /small', 'gzip'),
      zipped('GET /bytes', 'gzip'),
      zipped('GET /stream', 'gzip'),
      zipped('GET /untouched', 'gzip'),
      zipped('GET /tagged', 'gzip'),
      { ...zipped('GET /empty', 'gzip'), status: 204 },
      { ...missing, headers: { 'accept-encoding': 'identity' } },
    ],
  },
  {
    name: 'compression() with a filter',
    build: (site) => {
      const compression = load<Factory & { filter(req: Request, res: Response): boolean }>('compression');
      const filter = (req: Request, res: Response): boolean =>
        req.headers['x-no-compression'] === undefined && compression.filter(req, res);
      site.use(compression({ filter }));
      site.get('/', () => ({ headers: plain, body: TEXT }));
    },
    requests: [zipped('GET /', 'gzip'), zipped('GET /', 'gzip', { 'x-no-compression': '1' })],
  },
];

/** The fields of morgan's line that are not of chance. */
const logged = (line: string): string =>
  line
    .replace(/\[[^\]]*\]/, '[DATE]')
    .replace(/[\d.]+ ms/, 'TIME ms')
    .replace(/(?<= 404 )\d+(?= |$)/, 'LENGTH');
const MORGAN: readonly Program[] = [
  'combined',
  'common',
  'short',
  'tiny',
  ':method :url :status :res[content-length] - :response-time ms',
].map((format): Program => ({
  name: `morgan(${format})`,
  build: (site) => {
    site.use(load('morgan')(format, { stream: lines(site.notes, logged) }));
    site.get('/', hello);
    site.get('/users/:id', () => ({ status: 204, body: '' }));
  },
  requests: [
    { ...ok, headers: { referer: 'http://a.example/', 'user-agent': 'tests', authorization: 'Basic YWRhOng=' } },
    { line: 'GET /users/7?a=1', status: 204 },
    missing,
  ],
  notes: 3,
}));
const FUNCTIONS: Program = {
  name: 'morgan() with a function, tokens and skip',
  build: (site) => {
    type Tokens = Readonly<Record<'method' | 'url' | 'status', (req: Request, res: Response) => string>>;
    const morgan = load<Factory & { token(name: string, read: (req: Request) => string): void }>('morgan');
    morgan.token('type', (req) => String(req.headers['content-type']));
    const format = (tokens: Tokens, req: Request, res: Response): string =>
      [tokens.method(req, res), tokens.url(req, res), tokens.status(req, res)].join(' ');
    site.use(morgan(format, { stream: lines(site.notes, String) }));
    site.use(morgan(':method :type', { stream: lines(site.notes, String), immediate: true }));
    site.use(
      morgan('tiny', {
        stream: lines(site.notes, logged),
        skip: (_req: Request, res: Response) => res.statusCode < 400,
      }),
    );
    site.get('/', hello);
  },
  requests: [{ ...ok, headers: { 'content-type': 'text/x' } }],
  notes: 2,
};

const BOUNDARY = 'x-x-x-x';
const form = (...parts: readonly (readonly [name: string, value: string, file?: string])[]): Partial<Asked> => ({
  headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
  body: `${parts
    .map(
      ([name, value, file]) =>
        `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${
          file === undefined ? '' : `; filename="${file}"\r\ncontent-type: image/png`
        }\r\n\r\n${value}\r\n`,
    )
    .join('')}--${BOUNDARY}--\r\n`,
});
interface Multer {
  (options?: object): Record<'single' | 'array', (name: string, most?: number) => ConnectMiddleware> & {
    fields(fields: readonly object[]): ConnectMiddleware;
    none(): ConnectMiddleware;
    any(): ConnectMiddleware;
  };
  memoryStorage(): object;
  readonly MulterError: new (...args: never[]) => Error;
}
const uploaded = ({ file, files, body }: Added): Sent => {
  const shown = (one: NonNullable<Added['file']>): unknown => [one.fieldname, one.originalname, one.mimetype, one.size];
  const all = Array.isArray(files) ? files : Object.values(files ?? {}).flat();
  return json({ file: file && shown(file), files: all.map(shown), body });
};
const MULTER: Program = {
  name: 'multer()',
  build: (site) => {
    const multer = load<Multer>('multer');
    const upload = multer({ dest: join(folder, 'uploads') });
    const limited = multer({ storage: multer.memoryStorage(), limits: { fileSize: 4 } });
    site.post('/profile', upload.single('avatar'), uploaded);
    site.post('/photos', upload.array('photos', 2), uploaded);
    site.post(
      '/product',
      upload.fields([
        { name: 'avatar', maxCount: 1 },
        { name: 'gallery', maxCount: 8 },
      ]),
      uploaded,
    );
    site.post('/text', upload.none(), uploaded);
    site.post('/limited', limited.single('avatar'), uploaded);
    const single = limited.single('avatar');
    site.post(
      '/handled',
      typed((req, res, next) =>
        single(req, res, (error) => {
          if (error instanceof multer.MulterError) res.status(400).send(error.message);
          else next(error);
        }),
      ),
      uploaded,
    );
  },
  requests: [
    {
      line: 'POST /profile',
      status: 200,
      ...form(['title', 'A cat'], ['avatar', 'meow', 'cat.png'], ['tags', 'a'], ['tags', 'b']),
    },
    { line: 'POST /profile', status: 200, headers: { 'content-type': 'text/plain' }, body: 'no form' },
    { line: 'POST /photos', status: 200, ...form(['photos', '1', 'a.png'], ['photos', '22', 'b.png']) },
    {
      line: 'POST /photos',
      status: 500,
      isError: true,
      ...form(['photos', '1', 'a'], ['photos', '2', 'b'], ['photos', '3', 'c']),
    },
    {
      line: 'POST /product',
      status: 200,
      ...form(['avatar', '1', 'a.png'], ['gallery', '22', 'b.png'], ['gallery', '333', 'c.png']),
    },
    { line: 'POST /text', status: 200, ...form(['a', '1'], ['b[c]', '2']) },
    { line: 'POST /text', status: 500, isError: true, ...form(['a', '1', 'a.png']) },
    { line: 'POST /limited', status: 200, ...form(['avatar', 'meow', 'cat.png']) },
    { line: 'POST /limited', status: 500, isError: true, ...form(['avatar', 'meow!', 'cat.png']) },
    { line: 'POST /handled', status: 400, ...form(['avatar', 'meow!', 'cat.png']) },
    { line: 'POST /handled', status: 200, ...form(['avatar', 'meow', 'cat.png']) },
  ],
};

const COOKIES: readonly Program[] = [
  {
    name: 'cookieParser()',
    build: (site) => {
      site.use(load('cookie-parser')());
      site.get('/', ({ cookies, signedCookies }) => json({ cookies, signedCookies }));
    },
    requests: [
      ok,
      { ...ok, headers: { cookie: 'Cho=Kim;Greet=Hello' } },
      { ...ok, headers: { cookie: 'a=j:{"b":1}; c=%zz; d' } },
    ],
  },
  {
    name: 'cookieParser() with a secret',
    build: (site) => {
      site.use(load('cookie-parser')('keyboard cat'));
      site.get(
        '/set',
        typed((_req, res) => {
          res
            .cookie('plain', 'p')
            .cookie('signed', { a: 1 }, { signed: true, httpOnly: true, sameSite: 'lax' })
            .send('set');
        }),
        hello,
      );
      site.get(
        '/clear',
        typed((_req, res) => res.clearCookie('plain').clearCookie('signed', { path: '/' }).send('clear')),
        hello,
      );
      site.get('/', ({ cookies, signedCookies }) => json({ cookies, signedCookies }));
    },
    requests: [
      { line: 'GET /set', status: 200 },
      ok,
      { ...ok, headers: { cookie: 'signed=s%3Aforged.abc' } },
      { line: 'GET /clear', status: 200 },
      ok,
    ],
  },
];

const views = ({ session }: Added): Sent => {
  if (session === undefined) return json(null);
  session.views = (session.views ?? 0) + 1;
  return json({ views: session.views });
};
const SESSION: readonly Program[] = [
  {
    name: 'session()',
    build: (site) => {
      site.use(
        load('express-session')({
          secret: 'keyboard cat',
          resave: false,
          saveUninitialized: true,
          cookie: { maxAge: 60_000 },
        }),
      );
      site.get('/', views);
      site.get(
        '/own',
        typed((req, res) => res.send(`own ${String((req as Request & Added).session?.views)}`)),
        hello,
      );
      site.get(
        '/fail',
        typed((_req, _res, next) => next(new Error('broken'))),
        hello,
      );
    },
    requests: [
      ok,
      ok,
      { line: 'GET /own', status: 200 },
      { line: 'HEAD /', status: 200 },
      ok,
      missing,
      { line: 'GET /fail', status: 500, isError: true },
      ok,
    ],
  },
  {
    name: 'session() with a secure cookie, behind a proxy',
    build: (site) => {
      site.use(
        load('express-session')({
          secret: 'keyboard cat',
          resave: false,
          saveUninitialized: true,
          cookie: { secure: true },
        }),
      );
      site.get('/', views);
    },
    requests: [
      ok,
      { ...ok, headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.7' } },
      { ...ok, headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.7' } },
    ],
    isBehindProxy: true,
  },
  {
    name: 'session() without saving',
    build: (site) => {
      site.use(
        load('express-session')({
          secret: ['new', 'old'],
          resave: true,
          saveUninitialized: false,
          rolling: true,
          name: 'sid',
        }),
      );
      site.get('/', views);
      site.get('/idle', hello);
    },
    requests: [{ line: 'GET /idle', status: 200 }, ok, ok, { line: 'GET /idle', status: 200 }],
  },
];

const limit = (options: object): ConnectMiddleware =>
  load<{ rateLimit: Factory }>('express-rate-limit').rateLimit(options);
const LIMITS: readonly Program[] = [
  ...['draft-6', 'draft-7', 'draft-8'].map((standardHeaders): Program => ({
    name: `rateLimit() with ${standardHeaders}`,
    build: (site) => {
      site.use(limit({ windowMs: 15 * 60 * 1000, limit: 2, standardHeaders, legacyHeaders: false, ipv6Subnet: 56 }));
      site.get('/', hello);
    },
    requests: [ok, ok, { ...ok, status: 429 }, { ...missing, status: 429, isError: false }],
  })),
  {
    name: 'rateLimit() with legacy headers and a message',
    build: (site) => {
      site.use(
        limit({
          limit: 1,
          message: { error: 'too many' },
          statusCode: 503,
          legacyHeaders: true,
          standardHeaders: false,
        }),
      );
      site.get('/', hello);
    },
    requests: [ok, { ...ok, status: 503 }],
  },
  {
    name: 'rateLimit() for each client behind a proxy',
    build: (site) => {
      site.use(limit({ windowMs: 60_000, limit: 1, standardHeaders: 'draft-8', legacyHeaders: false }));
      site.get('/', hello);
    },
    requests: ['203.0.113.7', '203.0.113.8', '2001:db8::1', '203.0.113.7', '2001:db8::2'].map((client, i): Asked => ({
      ...ok,
      headers: { 'x-forwarded-for': client },
      status: i < 3 ? 200 : 429,
    })),
    isBehindProxy: true,
  },
];

const TIMES: readonly Program[] = [
  {
    name: 'responseTime()',
    build: (site) => {
      site.use(load('response-time')());
      site.get('/', hello);
    },
    requests: [ok, missing, { line: 'HEAD /', status: 200 }],
  },
  {
    name: 'responseTime() with a function',
    build: (site) => {
      site.use(
        load('response-time')((req: Request, _res: Response, time: number) => {
          site.notes.push([`${req.method ?? ''}${req.url ?? ''}`.toLowerCase().replace(/\//g, '_'), time > 0]);
        }),
      );
      site.get('/', hello);
    },
    requests: [ok, missing],
    notes: 2,
  },
];

interface Passport {
  readonly Passport: new () => {
    use(strategy: object): void;
    serializeUser(run: (user: { id: number }, done: (error: null, id: number) => void) => void): void;
    deserializeUser(run: (id: number, done: (error: null, user: object | false) => void) => void): void;
    initialize(): ConnectMiddleware;
    session(): ConnectMiddleware;
    authenticate(name: string, options?: object): ConnectMiddleware;
  };
}
const PASSPORT: Program = {
  name: 'passport with a session and a form',
  build: (site) => {
    const ada = { id: 7, username: 'ada' };
    const passport = new (load<Passport>('passport').Passport)();
    const { Strategy } = load<{ readonly Strategy: new (verify: unknown) => object }>('passport-local');
    passport.use(
      new Strategy(
        (username: string, password: string, done: (error: Error | null, user?: object | false) => void) =>
          void setImmediate(() => {
            if (username === 'error') done(new Error('database'));
            else done(null, username === 'ada' && password === 'lovelace' ? ada : false);
          }),
      ),
    );
    passport.serializeUser(({ id }, done) => done(null, id));
    passport.deserializeUser((id, done) => done(null, id === 7 ? ada : false));
    site.use(load('cookie-parser')());
    site.use(load<Record<'urlencoded', Factory>>('express').urlencoded({ extended: true }));
    site.use(load('express-session')({ secret: 'keyboard cat', resave: true, saveUninitialized: true }));
    site.use(passport.initialize(), passport.session());
    site.post('/login', passport.authenticate('local', { failureRedirect: '/login' }), () => ({
      status: 302,
      headers: { location: '/' },
      body: '',
    }));
    site.post('/api/login', passport.authenticate('local'), ({ user }) => json(user));
    site.get(
      '/logout',
      typed((req, res, next) =>
        (req as unknown as { logout(done: (error?: Error) => void): void }).logout((error) =>
          error === undefined ? res.redirect('/') : next(error),
        ),
      ),
      hello,
    );
    site.get('/', ({ user }) => json(user ?? null));
  },
  requests: [
    ok,
    {
      line: 'POST /login',
      status: 302,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'username=ada&password=no',
    },
    ok,
    {
      line: 'POST /api/login',
      status: 401,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'username=bob&password=no',
    },
    { line: 'POST /api/login', status: 400 },
    {
      line: 'POST /login',
      status: 500,
      isError: true,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'username=error&password=no',
    },
    {
      line: 'POST /login',
      status: 302,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'username=ada&password=lovelace',
    },
    ok,
    { line: 'GET /logout', status: 302, headers: { accept: 'text/html' } },
    ok,
  ],
};

const files: readonly Asked[] = [
  { line: 'GET /', status: 200 },
  { line: 'GET /a.txt', status: 200 },
  { line: 'HEAD /a.txt', status: 200 },
  { line: 'GET /data.json?x=1', status: 200 },
  { line: 'GET /%C3%A4%20b.txt', status: 200 },
  { line: 'GET /sub', status: 301 },
  { line: 'GET /a.txt', status: 206, headers: { range: 'bytes=2-5' } },
  { line: 'GET /a.txt', status: 206, headers: { range: 'bytes=-5' } },
  { line: 'GET /a.txt', status: 304, headers: { 'if-none-match': '*' } },
  { line: 'GET /a.txt', status: 200, headers: { 'if-none-match': '"other"' } },
  { line: 'GET /route', status: 200 },
];
const STATIC: readonly Program[] = [
  {
    name: 'serveStatic() with an index',
    build: (site) => {
      site.use(load('serve-static')(join(folder, 'ftp'), { index: ['default.html', 'default.htm'] }));
      site.get('/route', hello);
    },
    requests: [
      ...files,
      missing,
      { line: 'POST /a.txt', status: 404, isError: true },
      { line: 'GET /sub/', status: 404, isError: true },
      { line: 'GET /a.txt', status: 416, isError: true, headers: { range: 'bytes=900-' } },
      { line: 'GET /a.txt', status: 412, isError: true, headers: { 'if-match': '"other"' } },
    ],
  },
  {
    name: 'serveStatic() without a fallback',
    build: (site) => {
      site.get('/route', hello);
      site.use(
        typed((req, res, next) =>
          req.path === '/route'
            ? next()
            : load('serve-static')(join(folder, 'ftp'), {
                fallthrough: false,
                index: ['default.htm'],
                redirect: false,
              })(req, res, next),
        ),
      );
    },
    requests: [
      ...files.filter(({ line }) => line !== 'GET /sub'),
      { ...missing },
      { line: 'GET /.hidden', status: 404, isError: true },
      { line: 'POST /a.txt', status: 405 },
      { line: 'GET /a%00.txt', status: 400, isError: true },
    ],
  },
  {
    name: 'serveStatic() for downloads, after another folder',
    build: (site) => {
      const setHeaders = (res: Response, path: string): void => {
        res.setHeader('Content-Disposition', `attachment; filename="${path.replace(/.*\//, '')}"`);
        if (path.endsWith('.json')) res.setHeader('Cache-Control', 'public, max-age=0');
      };
      site.use(
        load('serve-static')(join(folder, 'ftp/sub')),
        load('serve-static')(join(folder, 'ftp'), { index: false, maxAge: '1d', setHeaders }),
      );
      site.get('/route', hello);
      site.get('/', hello);
    },
    requests: [...files.filter(({ line }) => line !== 'GET /sub'), missing],
  },
];

const proxy = (options: object): ConnectMiddleware =>
  load<{ createProxyMiddleware: Factory }>('http-proxy-middleware').createProxyMiddleware(options);
const proxied: readonly Asked[] = [
  { line: 'GET /api/users?x=%20', status: 200 },
  { line: 'POST /api/users', status: 200, body: 'a body', headers: { 'content-type': 'text/plain' } },
  { line: 'GET /api/teapot', status: 418 },
  { line: 'DELETE /api/users/7', status: 200 },
];
const PROXY: readonly Program[] = [
  {
    name: 'createProxyMiddleware() with a filter',
    build: (site) => {
      site.use(proxy({ target: `${upstream}/base`, changeOrigin: true, pathFilter: '/api' }));
      site.get('/', hello);
    },
    requests: [ok, ...proxied, missing],
  },
  {
    name: 'createProxyMiddleware() that rewrites paths, and adds headers',
    build: (site) => {
      site.use(
        proxy({
          target: upstream,
          changeOrigin: true,
          xfwd: true,
          pathFilter: (path: string) => path.startsWith('/api'),
          pathRewrite: { '^/api/old': '/api/new', '^/api': '' },
          headers: { 'x-added': '1' },
        }),
      );
      site.get('/', hello);
    },
    requests: [ok, ...proxied, { line: 'GET /api/old/path', status: 200 }],
  },
  {
    name: 'createProxyMiddleware() whose target is down',
    build: (site) => {
      site.use(proxy({ target: 'http://127.0.0.1:1', pathFilter: '/api', logger: undefined }));
      site.get('/', hello);
    },
    requests: [ok, { line: 'GET /api/users', status: 504 }],
  },
];

const jsonwebtoken = load<{ sign(payload: object, secret: string, options?: object): string }>('jsonwebtoken');
const bearer = (
  payload: object,
  secret = 'shhhhhhared-secret',
  options = {},
): { readonly headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${jsonwebtoken.sign(payload, secret, options)}` },
});
type Jwt = (options: object) => ConnectMiddleware & { unless(options: object): ConnectMiddleware };
const jwt: Jwt = (options) => load<{ expressjwt: Jwt }>('express-jwt').expressjwt(options);
const admin = ({ auth }: Added): Sent =>
  auth?.admin === true ? { headers: plain, body: 'OK' } : { status: 401, headers: plain, body: 'Unauthorized' };
const JWT: readonly Program[] = [
  {
    name: 'expressjwt() for one route',
    build: (site) => site.get('/protected', jwt({ secret: 'shhhhhhared-secret', algorithms: ['HS256'] }), admin),
    requests: [
      { line: 'GET /protected', status: 200, ...bearer({ admin: true }) },
      { line: 'GET /protected', status: 401, ...bearer({ admin: false }) },
      { line: 'GET /protected', status: 401, isError: true },
      { line: 'GET /protected', status: 401, isError: true, headers: { authorization: 'Basic x' } },
      { line: 'GET /protected', status: 401, isError: true, headers: { authorization: 'Bearer x y' } },
      { line: 'GET /protected', status: 401, isError: true, headers: { authorization: 'Bearer x.y.z' } },
      { line: 'GET /protected', status: 401, isError: true, ...bearer({ admin: true }, 'another') },
      {
        line: 'GET /protected',
        status: 401,
        isError: true,
        ...bearer({ admin: true }, 'shhhhhhared-secret', { expiresIn: -1 }),
      },
      {
        line: 'GET /protected',
        status: 401,
        isError: true,
        ...bearer({ admin: true }, 'shhhhhhared-secret', { algorithm: 'HS512' }),
      },
    ],
  },
  {
    name: 'expressjwt() with audience and issuer, unless',
    build: (site) => {
      const options = {
        secret: 'shhhhhhared-secret',
        audience: 'http://myapi/protected',
        issuer: 'http://issuer',
        algorithms: ['HS256'],
      };
      site.use(jwt(options).unless({ path: ['/token', /^\/open/] }));
      site.get('/token', hello);
      site.get('/open/:id', hello);
      site.get('/', admin);
    },
    requests: [
      { line: 'GET /token?a=1', status: 200 },
      { line: 'GET /open/7', status: 200 },
      { ...ok, status: 401, isError: true },
      { ...ok, ...bearer({ admin: true }, undefined, { audience: 'http://myapi/protected', issuer: 'http://issuer' }) },
      {
        ...ok,
        status: 401,
        isError: true,
        ...bearer({ admin: true }, undefined, { audience: 'other', issuer: 'http://issuer' }),
      },
      { ...missing, status: 401 },
    ],
  },
  {
    name: 'expressjwt() without credentials, with a token in the query',
    build: (site) => {
      const getToken = (req: Request): unknown => {
        const [scheme, token] = req.headers.authorization?.split(' ') ?? [];
        return scheme === 'Bearer' ? token : (req.query['token'] ?? null);
      };
      const secret = async (_req: Request, token: { payload: { iss: string } }): Promise<string> =>
        `secret of ${token.payload.iss}`;
      site.use(jwt({ secret, algorithms: ['HS256'], credentialsRequired: false, getToken }));
      site.get('/', ({ auth }) => json(auth?.sub ?? null));
    },
    requests: [
      ok,
      { line: `GET /?token=${jsonwebtoken.sign({ iss: 'a', sub: 'ada' }, 'secret of a')}`, status: 200 },
      { line: `GET /?token=${jsonwebtoken.sign({ iss: 'a', sub: 'ada' }, 'secret of b')}`, status: 401, isError: true },
      { ...ok, ...bearer({ iss: 'b', sub: 'bob' }, 'secret of b') },
    ],
  },
];

interface HttpContext {
  readonly middleware: ConnectMiddleware;
  get(name: string): unknown;
  set(name: string, value: unknown): void;
}
const CONTEXT: Program = {
  name: 'express-http-context',
  build: (site) => {
    const context = load<HttpContext>('express-http-context');
    site.use(context.middleware);
    site.use(
      typed(async (req, _res, next) => {
        try {
          await new Promise((resolve) => setTimeout(resolve, 1));
          context.set('user', req.get('Authorization') ?? 'nobody');
          return next();
        } catch (error) {
          return next(error);
        }
      }),
    );
    site.get('/', () => json({ user: context.get('user') }));
    site.get('/later', () => ({
      headers: plain,
      body: async function* () {
        yield String(context.get('user'));
      },
    }));
  },
  requests: [ok, { ...ok, headers: { authorization: 'ada' } }, { ...ok, headers: { authorization: 'bob' } }, ok],
};

/** The members of pino's line that are not of chance. */
const entry = (line: string): unknown => {
  const { time, pid, hostname, responseTime, timeTaken, ...rest } = JSON.parse(line) as Record<string, unknown>;
  void [time, pid, hostname, responseTime, timeTaken];
  return JSON.parse(
    JSON.stringify(rest, (name, value: unknown) => {
      // Headers of a reply are compared where they arrive; an error's stack and the port are of chance.
      if (name === 'headers' || name === 'remotePort' || name === 'stack') return undefined;
      return value;
    }),
  );
};
const pinoOf = (stream: Writable): unknown => load<(stream: Writable) => unknown>('pino')(stream);
const PINO: readonly Program[] = [
  {
    name: 'pino-http',
    build: (site) => {
      site.use(load('pino-http')({}, lines(site.notes, entry)));
      site.get('/users', ({ log }) => {
        log?.info('something else');
        return hello();
      });
      site.get(
        '/fail',
        typed((_req, _res, next) => next(new Error('broken'))),
        hello,
      );
    },
    requests: [{ line: 'GET /users?a=1', status: 200 }, missing, { line: 'GET /fail', status: 500, isError: true }],
    notes: 4,
  },
  {
    name: 'pino-http with the options of its README',
    build: (site) => {
      const { stdSerializers } = load<{ readonly stdSerializers: Readonly<Record<'err' | 'req' | 'res', unknown>> }>(
        'pino',
      );
      site.use(
        typed((_req, res, next) => {
          res.locals['myCustomData'] = 'mine';
          next();
        }),
      );
      site.use(
        load('pino-http')({
          logger: pinoOf(lines(site.notes, entry)),
          genReqId: (req: Request & { id?: string }, res: Response) => {
            const existing = req.id ?? req.headers['x-request-id'];
            if (existing !== undefined) return existing;
            res.setHeader('x-request-id', 'made-here');
            return 'made-here';
          },
          serializers: { err: stdSerializers.err, req: stdSerializers.req, res: stdSerializers.res },
          wrapSerializers: true,
          customLogLevel: (_req: Request, res: Response, error: unknown) => {
            if (res.statusCode >= 400 && res.statusCode < 500) return 'warn';
            if (res.statusCode >= 500 || error !== undefined) return 'error';
            return res.statusCode >= 300 ? 'silent' : 'info';
          },
          customSuccessMessage: (req: Request, res: Response) =>
            res.statusCode === 404 ? 'resource not found' : `${req.method ?? ''} completed`,
          customReceivedMessage: (req: Request) => `request received: ${req.method ?? ''}`,
          customErrorMessage: (_req: Request, res: Response) => `request errored with status code: ${res.statusCode}`,
          customAttributeKeys: { req: 'request', res: 'response', err: 'error', responseTime: 'timeTaken' },
          customProps: (_req: Request, res: Response) => ({ customProp2: res.locals['myCustomData'] as unknown }),
        }),
      );
      site.get('/', hello);
      site.get('/moved', () => ({ status: 301, headers: { location: '/' }, body: '' }));
      site.get(
        '/fail',
        typed((_req, _res, next) => next(new Error('broken'))),
        hello,
      );
    },
    requests: [
      ok,
      { ...ok, headers: { 'x-request-id': 'given' } },
      { line: 'GET /moved', status: 301 },
      missing,
      { line: 'GET /fail', status: 500, isError: true },
    ],
    notes: 9,
  },
];

const PROGRAMS: readonly Program[] = [
  ...HELMET,
  nonce,
  ...CORS,
  ...COMPRESSION,
  ...MORGAN,
  FUNCTIONS,
  MULTER,
  ...COOKIES,
  ...SESSION,
  ...LIMITS,
  ...TIMES,
  PASSPORT,
  ...STATIC,
  ...PROXY,
  ...JWT,
  CONTEXT,
  ...PINO,
];
test.for(PROGRAMS)('$name', (program) => compare(program));
