/** Advisories about what a framework ships, counts, forwards and leaves running: what is not there can't be attacked. */

// T-shutdown is http/shutdown: (a), (h) "SIGTERM: a request in flight finishes …"; (b) "an idle connection closes at once …"; (c) "a connection
// that becomes idle …"; (d) "a pipelined request …" and "two requests pipelined …"; (f) "what outlives the time limit …"; (g) "a second
// signal …"; (i) "a process that closed …"; and (e) http/lifecycle, "while the application drains …". T-inject-parity is http/lifecycle,
// "a request in memory is answered as over a socket: …". Each part of T-32 stands alone in mesh/client, errors, ping, failures and agent.

import { execFile } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { METHODS, Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import * as postern from 'postern';
import { Postern, type PosternOptions, type ServiceError } from 'postern';
import * as gateway from 'postern/gateway';
import * as metrics from 'postern/metrics';
import packageJson from '../../package.json' with { type: 'json' };
import { startMesh } from '../support/mesh.js';
import { startPeer, startRawPeer } from '../support/peer.js';
import { createRandom } from '../support/random.js';
import { rawExchange, rawRequest } from '../support/raw.js';
import { createApp, createRecorder, serve } from '../support/serve.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// T-30

const SERIES = /^(\w+(?:\{[^}]*\})?) /;
/** Every series of an exposition, save those that tell of the process. */
function seriesOf(app: Postern): string[] {
  const lines = app.metrics.expose().split('\n').filter((line) => line !== '' && !/^(?:#|nodejs_|process_|python_)/.test(line));
  return lines.map((line) => SERIES.exec(line)?.[1] ?? line).sort();
}

/** The statuses of requests that are sent on one connection, one behind the other. */
async function pipeline(port: number, requests: readonly string[]): Promise<Record<string, number>> {
  const last = requests.at(-1) ?? '';
  const bytes = [...requests.slice(0, -1), last.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')].join('');
  const statuses: Record<string, number> = {};
  for (const [, status = ''] of (await rawExchange(port, bytes, 10_000)).matchAll(/HTTP\/1\.1 (\d{3}) /g)) statuses[status] = (statuses[status] ?? 0) + 1;
  return statuses;
}

test('T-30: 1,000 methods and 10,000 paths that a client invents add no series (CVE-2022-21698)', async () => {
  const random = createRandom(30);
  const text = (alphabet: string): string => Array.from({ length: 4 + random.int(12) }, () => alphabet[random.int(alphabet.length)]).join('');
  const METHOD = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ-';
  const app = createApp().get('/users/:id', () => 'user').get('/files/*rest', () => 'file').get('/n/:n(\\d+)', () => 'number');
  app.route('/dav', { PROPFIND: () => 'found' });
  const { port } = await serve(app);

  const methods = async (count: number): Promise<void> => {
    // CONNECT and what node:http does not know end their connection.
    for (let i = 0; i < count; i += 50) {
      const batch = Array.from({ length: 50 }, () => `${text(METHOD)} /${text('abc')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      await Promise.all([...batch, 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n'].map((bytes) => rawRequest(port, bytes)));
    }
    const known = METHODS.filter((method) => method !== 'CONNECT' && method !== 'HEAD');
    await pipeline(port, known.flatMap((method) => ['/nowhere', '/users/7', '/dav'].map((path) => `${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)));
  };
  const target = (): string => {
    const name = text('abcdefghijklmnopqrstuvwxyz0123456789-_~');
    const paths = [`/${name}`, `/users/${name}`, `/files/${name}/${name}`, `/n/${name}`, `/n/${random.int(1e9)}`, `/${name}?${name}=${name}`, `/users/${name}/`];
    return random.pick([...paths, `http://${name.replace(/[~_]/g, '')}a/${name}`]);
  };
  const paths = async (count: number): Promise<number> => {
    const requests = Array.from({ length: count }, () => `GET ${target()} HTTP/1.1\r\nHost: ${text('abc')}\r\nX-Request-Id: ${text('abc')}\r\nUser-Agent: ${text('abc')}\r\n\r\n`);
    const statuses = await pipeline(port, requests);
    expect(Object.keys(statuses)).toEqual(['200', '404']);
    return (statuses['200'] ?? 0) + (statuses['404'] ?? 0);
  };
  await methods(50);
  await paths(200);
  const before = seriesOf(app);
  await methods(1000);
  expect(await paths(10_000)).toBe(10_000);
  expect(seriesOf(app)).toEqual(before);

  const counts = before.flatMap((series) => /^http_request_duration_seconds_count\{method="([^"]*)",route="([^"]*)"/.exec(series)?.slice(1) ?? []);
  const labels = { methods: new Set(counts.filter((_, i) => i % 2 === 0)), routes: new Set(counts.filter((_, i) => i % 2 === 1)) };
  expect([
    ...labels.methods].sort()).toEqual(['CONNECT', 'DELETE', 'GET', 'OPTIONS', 'PATCH', 'POST', 'PROPFIND', 'PUT', ...(METHODS.includes('QUERY') ? ['QUERY'] : []),
    'TRACE', '_OTHER',
  ]);
  expect([...labels.routes].sort()).toEqual(['', '/dav', '/files/*rest', '/n/:n(\\\\d+)', '/users/:id']);
});

// T-31, T-26, T-29, T-33, T-cluster: what is not shipped

test('T-31: each entry exports a closed list: no JWT, CSRF, cookies, CORS, cache, static files, multipart, proxy, templates or sessions', () => {
  expect(Object.keys(postern).sort()).toEqual([
    'ApiError', 'BadRequest', 'Conflict', 'Forbidden', 'FrameworkErrorCodes', 'HttpError', 'NotFound', 'Postern', 'Registry', 'Reply', 'Router', 'ServiceError', 'ServiceUnavailable',
    'TooManyRequests', 'Unauthorized', 'defineErrorCodes', 'publicFacing', 'reply',
  ]);
  expect(Object.keys(metrics).sort()).toEqual(['Counter', 'Gauge', 'Histogram', 'Registry', 'exponentialBuckets', 'linearBuckets']);
  expect(Object.keys(gateway).sort()).toEqual(['GatewayError', 'toCaddy', 'toGatewayApi', 'toHAProxy', 'toKong', 'toNginx']);
  expect(Object.keys(packageJson.exports)).toEqual(['.', './metrics', './gateway', './package.json']);
});

const membersOf = (object: object): string[] => {
  const prototype: object = Object.getPrototypeOf(object);
  return [...Object.getOwnPropertyNames(object), ...(prototype === Object.prototype ? [] : membersOf(prototype))].filter((name) => name !== 'constructor');
};
test('T-31: an application, a request, a reply and a client have a closed list of members', async () => {
  let context: string[] = [];
  const app = createApp({ settings: { SERVICE_CONNECTIONS: ['billing'] } }).get('/', (ctx) => { context = membersOf(ctx); });
  await app.request('/');
  expect(context.sort()).toEqual([
    'bytes', 'form', 'headers', 'id', 'ip', 'json', 'log', 'method', 'params', 'path', 'query', 'raw', 'service', 'signal', 'state', 'stream', 'target', 'text',
  ]);
  expect([...new Set(membersOf(app))].sort()).toEqual([
    'attach', 'close', 'delete', 'get', 'group', 'handler', 'head', 'health', 'listen', 'metrics', 'name', 'onClose', 'options', 'patch', 'post', 'put', 'request', 'route', 'router', 'run',
    'server', 'service', 'settings', 'track', 'use', 'version', 'view',
  ]);
  expect(membersOf(postern.reply()).sort()).toEqual(['body', 'headers', 'ownHeaders', 'status', 'statusText']);
  expect(membersOf(app.service('billing')).sort()).toEqual(['delete', 'get', 'patch', 'post', 'put']);
});

test('T-31: no file is served, no cookie is set and nothing is cached unless the application says so', async () => {
  const { port } = await serve(createApp().get('/', () => 'x'));
  for (const path of [
    '/', '/package.json', '/README.md', '/src/index.ts', '/..%2fpackage.json', '/.env', '/.git/config', '/favicon.ico', '/users/',
    '/users/metrics/../../package.json',
  ]) {
    const { status, headers } = await rawRequest(port, `GET ${path} HTTP/1.1\r\nHost: x\r\nOrigin: http://evil.test\r\nCookie: a=1\r\nConnection: close\r\n\r\n`);
    expect(status, path).toBe(path === '/' ? 200 : 404);
    expect(Object.keys(headers).filter((name) => /cookie|cache|etag|last-modified|expires|access-control|server|powered/.test(name)), path).toEqual([]);
  }
});

test('T-cluster: the metrics are those of one process: nothing collects those of workers or forks any', () => {
  for (const file of readdirSync(`${ROOT}/src`, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))) {
    expect(readFileSync(`${ROOT}/src/${file}`, 'utf8'), file).not.toMatch(/['"](?:node:)?(?:cluster|worker_threads|child_process|dgram|tls|http2|vm|inspector)['"]/);
  }
});

// T-32

const HOP_BY_HOP = [
  'Connection: keep-alive, X-Hop', 'X-Hop: 1', 'Keep-Alive: timeout=5', 'TE: trailers', 'Trailer: x-t', 'Upgrade: h2c', 'Proxy-Authorization: Basic x',
  'Proxy-Connection: keep-alive',
];
const CREDENTIALS = [
  'Authorization: Bearer secret', 'Cookie: session=secret', 'X-Api-Key: secret', 'X-Forwarded-For: 6.6.6.6', 'Forwarded: for=6.6.6.6',
  'X-Forwarded-Host: evil.test', 'Origin: http://evil.test', 'Referer: http://evil.test', 'Accept-Language: de', 'Content-Type: text/plain',
];

test('T-32: neither a call nor a ping passes on what belongs to the caller or to its connection', async () => {
  const peer = await startPeer((_req, res) => res.setHeader('content-type', 'application/json').end('{"response":"pong","process_time":"0 ms"}'));
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } });
  app.post('/call', async (ctx) => { await ctx.service('peer').post('/', { json: await ctx.text() }); });
  const { port } = await serve(app);
  const fields = [...HOP_BY_HOP, ...CREDENTIALS].map((field) => `${field}\r\n`).join('');
  for (const [index, line] of ['POST /call', 'GET /users/ping/?depth=1'].entries()) {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${line} HTTP/1.1\r\nHost: inbound.test\r\n${fields}Content-Length: 2\r\nX-Request-Id: mine\r\n\r\nhi`));
    await expect.poll(() => peer.requests.length).toBe(index + 1);
    socket.destroy();
  }
  const [call, ping] = peer.requests.map(({ rawHeaders }) => rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()).sort());
  expect(call).toEqual(['accept', 'connection', 'content-length', 'content-type', 'host', 'traceparent', 'x-request-id']);
  expect(ping).toEqual(['accept', 'connection', 'host']);
  for (const { headers } of peer.requests) {
    expect(headers.host).toBe(new URL(peer.url).host);
    expect(headers.connection).toBe('keep-alive');
    expect(JSON.stringify(headers)).not.toMatch(/secret|6\.6\.6\.6|evil|inbound/);
  }
});

test('T-32: of the headers of a failed answer none reaches the client but Retry-After', async () => {
  const peer = await startPeer((_req, res) => {
    res.setHeader('set-cookie', 'session=stolen').setHeader('www-authenticate', 'Basic').setHeader('access-control-allow-origin', '*').setHeader('x-hop', '1');
    res.writeHead(503, { 'retry-after': '7', 'location': 'http://evil.test', 'connection': 'close, x-hop', 'content-type': 'text/html', 'x-request-id': 'theirs' });
    res.end('<script>');
  });
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } }).get('/', async (ctx) => (await ctx.service('peer').get('/')).body);
  const { url } = await serve(app);
  const response = await fetch(url, { headers: { 'x-request-id': 'mine' } });
  expect(Object.fromEntries([
    ...response.headers].filter(([name]) => !['date', 'connection', 'keep-alive', 'content-length',
  ].includes(name)))).toEqual({ 'content-type': 'application/json', 'retry-after': '7', 'x-request-id': 'mine' });
  expect(await response.json()).toEqual({ message: 'Service Unavailable', description: 'peer answered 503', error_code: { name: 'framework_error_unspecified', value: 999998 } });
});

const LIMIT = 10 * 1024 * 1024;
test.for([
  { what: 'as announced', size: LIMIT, chunked: false, taken: true },
  { what: 'in chunks', size: LIMIT, chunked: true, taken: true },
  { what: 'and a byte, as announced', size: LIMIT + 1, chunked: false, taken: false },
  { what: 'and a byte, in chunks', size: LIMIT + 1, chunked: true, taken: false },
])('T-32: an answer of 10 MiB $what: taken $taken', async ({ size, chunked, taken }) => {
  const peer = await startPeer((_req, res) => {
    if (!chunked) res.setHeader('content-length', size);
    res.write(Buffer.alloc(size, 'x'));
    res.end();
  });
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } });
  const answer: unknown = await app.service('peer').get('/').then(({ body }) => String(body).length, (error: ServiceError) => [error.statusCode, error.description]);
  expect(answer).toEqual(taken ? LIMIT : [502, 'peer answered with more than 10485760 bytes']);
});

test('T-32: neither a call nor a ping follows a redirect, and a call can be led to no other host', async () => {
  const elsewhere = await startPeer((_req, res) => res.end('elsewhere'));
  const peer = await startPeer((_req, res) => res.writeHead(307, { location: `${elsewhere.url}/` }).end());
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } }).get('/call/*path', (ctx) => ctx.service('peer').get(`/${ctx.params.path}`).then(({ status }) => ({ status })));
  const { port } = await serve(app);
  const host = new URL(elsewhere.url).host;
  expect((await rawRequest(port, 'GET /call/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).body).toBe('{"status":307}');
  for (const path of [`%2f${host}/`, `%5c${host}`, `..%2f..%2fadmin`, `%2e%2e/admin`, `x%0d%0aHost: ${host}`, `x%23`, `@${host}/`, `http:%2f%2f${host}/`]) {
    await rawRequest(port, `GET /call/${path.replaceAll(' ', '%20')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  }
  await rawRequest(port, 'GET /users/ping/?depth=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(elsewhere.requests).toHaveLength(0);
  expect(peer.requests.map(({ url }) => url)).toEqual(['/x', `/@${host}/`, `/http://${host}/`, '/peer/ping/?depth=0']);
});

test('T-32: a connection over which data came unasked serves no second call (CVE-2026-48931)', async () => {
  const answer = (text: string): string => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
  const peer = await startRawPeer((_chunk, socket) => answer(`connection ${peer.sockets.indexOf(socket)}`));
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } }).get('/', async (ctx) => (await ctx.service('peer').get('/')).body);
  const ask = async (): Promise<string> => (await app.request('/')).text();
  expect([await ask(), await ask()]).toEqual(['connection 0', 'connection 0']);
  for (const index of [0, 1]) {
    const idle = peer.sockets[index];
    idle?.write(answer('poison'));
    await expect.poll(() => idle?.closed).toBe(true);
    expect([await ask(), await ask()]).toEqual([`connection ${index + 1}`, `connection ${index + 1}`]);
  }
});

test('T-32: a poisoned ping is one entry, and the next ping is right', async () => {
  const document = '{"response":"pong","process_time":"0 ms"}';
  const head = (length: number): string => `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
  const peer = await startRawPeer(() => `${head(document.length)}${document}${head(1)}7`);
  const { a } = await startMesh({ a: [`b=${peer.url}`] });
  for (let i = 0; i < 3; i += 1) {
    const ping = await (await fetch(`${a.url}/a/ping/?depth=1`)).json();
    expect(ping).toMatchObject({ response: { b: { status_code: 200, response: { response: 'pong' } } } });
  }
  expect(peer.sockets).toHaveLength(3);
});

// T-33

test('T-33: no TLS option is passed through: the server speaks plain HTTP, whatever it is given (CVE-2026-21637)', async () => {
  let asked = 0;
  const tls = { key: 'x', cert: 'x', SNICallback: () => { asked += 1; }, ALPNCallback: () => { asked += 1; }, insecureHTTPParser: true, requireHostHeader: true };
  const options: PosternOptions = Object.assign({ logger: false as const }, tls);
  const app = createApp(options).get('/', () => 'plain');
  expect(app.server.constructor).toBe(Server);
  const { port } = await serve(app);
  const hello = Buffer.from('16030100050100000100', 'hex');
  expect((await rawRequest(port, hello, 500)).status).toBe(400);
  expect((await rawRequest(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).body).toBe('plain');
  // The lenient parser would take a control character in a header.
  expect((await rawRequest(port, 'GET / HTTP/1.1\r\nHost: x\r\na: b\x01c\r\nConnection: close\r\n\r\n')).status).toBe(400);
  expect(asked).toBe(0);
});

const der = (tag: number, ...parts: (Buffer | string)[]): Buffer => {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const length = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
};
/** A certificate that nobody but itself vouches for. */
function selfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const ed25519 = der(0x30, der(0x06, Buffer.from('2b6570', 'hex')));
  const name = der(0x30, der(0x31, der(0x30, der(0x06, Buffer.from('550403', 'hex')), der(0x0c, 'localhost'))));
  const validity = der(0x30, der(0x17, '200101000000Z'), der(0x17, '491231235959Z'));
  const body = der(0x30, der(0xa0, der(0x02, '\x02')), der(0x02, '\x01'), ed25519, name, validity, name, publicKey.export({ type: 'spki', format: 'der' }));
  const certificate = der(0x30, body, ed25519, der(0x03, '\0', sign(null, body, privateKey)));
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), cert: `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64')}\n-----END CERTIFICATE-----` };
}

test('T-33: a call over https goes to no service whose certificate nobody vouches for', async () => {
  let reached = 0;
  const server = createTlsServer(selfSigned(), (socket) => socket.on('error', () => undefined).on('data', () => { reached += 1; socket.end('HTTP/1.1 204 x\r\n\r\n'); }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const logger = createRecorder();
  const app = createApp({ logger, settings: { SERVICE_CONNECTIONS: [`peer=https://localhost:${port}`] } });
  const error: unknown = await app.service('peer').get('/', { headers: { authorization: 'secret' } }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ statusCode: 503, description: 'peer is unreachable', cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } });
  expect(await (await app.request('/users/ping/?depth=1')).json()).toMatchObject({ response: { peer: { status_code: 503 } } });
  expect(reached).toBe(0);
});

// T-exit: processes of the built package

const ENDINGS: Record<string, string> = {
  'imports every entry': `import 'postern'; import 'postern/metrics'; import 'postern/gateway';`,
  'makes an application that uses everything and listens to nothing': `
    import { Postern } from 'postern';
    const app = new Postern('a', { settings: { SERVICE_CONNECTIONS: ['b=http://127.0.0.1:1'] }, trustProxy: ['10.0.0.0/8'] });
    app.use((ctx, next) => next()).get('/:x', () => 'x').onClose(() => {});
    app.health.check('c', () => true);
    app.metrics.histogram({ name: 'x_seconds', help: 'X.' }).startTimer();
    app.track(new Promise(() => {}));
    app.service('b');
    app.router.routesPublic;
    app.metrics.expose();`,
  'asks an application in memory, its metrics and its pings too': `
    import { Postern } from 'postern';
    const app = new Postern('a', { logger: false, settings: { SERVICE_CONNECTIONS: ['b=http://127.0.0.1:1'] } });
    app.get('/', () => 'x').post('/', (ctx) => ctx.text());
    app.health.check('c', () => new Promise(() => {}), { timeout: 20 });
    for (const path of ['/', '/a/metrics/', '/a/health/', '/a/ping/?depth=1', '/none']) await (await app.request(path)).text();
    await (await app.request('/', { method: 'POST', body: 'x' })).text();`,
  'closes an application that never listened': `
    import { Postern } from 'postern';
    const app = new Postern('a', { logger: false });
    await (await app.request('/a/metrics/')).text();
    await app.close();`,
  'closes an application with clients that keep their connections': `
    import { Postern } from 'postern';
    import { connect } from 'node:net';
    const app = new Postern('a', { logger: false, settings: { SERVICE_CONNECTIONS: [] } });
    app.get('/', () => 'x').post('/', () => 'unread').get('/stream', async function* () { for (;;) { yield 'x'; await new Promise(setImmediate); } });
    const { url, port } = await app.listen({ host: '127.0.0.1', port: 0 });
    await (await fetch(url)).text();
    const open = (text) => new Promise((resolve) => {
      const s = connect(port, '127.0.0.1', () => s.write(text)).on('error', () => {});
      s.once(text === '' ? 'connect' : 'data', resolve);
    });
    await open('');
    await open('GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n');
    await open('POST / HTTP/1.1\\r\\nHost: x\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n');
    await open('GET /stream HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n');
    await app.close({ timeout: 50 });`,
  'closes an application that called another one': `
    import { Postern } from 'postern';
    const b = new Postern('b', { logger: false }).get('/', () => 'x');
    const { url } = await b.listen({ host: '127.0.0.1', port: 0 });
    const a = new Postern('a', { logger: false, settings: { SERVICE_CONNECTIONS: ['b=' + url] } });
    await a.service('b').get('/');
    await Promise.all([a.close(), b.close()]);`,
  'closes an application inside the server of another': `
    import { Postern } from 'postern';
    import { createServer } from 'node:http';
    const app = new Postern('a', { logger: false });
    const server = createServer();
    app.attach(server);
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    await (await fetch('http://127.0.0.1:' + server.address().port + '/a/metrics/')).text();
    await app.close();
    server.close();
    server.closeAllConnections();`,
  'fails to listen': `
    import { Postern } from 'postern';
    import { createServer } from 'node:http';
    const taken = createServer();
    await new Promise((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const app = new Postern('a', { logger: false });
    await app.listen({ host: '127.0.0.1', port: taken.address().port }).catch(() => {});
    taken.close();`,
};
const run = promisify(execFile);
test.for(Object.entries(ENDINGS))('T-exit: a process that %s exits by itself', async ([, source]) => {
  // A process that hangs is killed in time, which rejects.
  const code = `${source}; process.on('exit', () => console.log('done'));`;
  const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '--eval', code], { cwd: ROOT, timeout: 10_000 });
  expect([stdout, stderr]).toEqual(['done\n', '']);
});
