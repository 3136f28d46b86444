/** Advisories about node:http and headers: what they did to others must not work here. */

// T-21 (smuggling) has a corpus of its own in test/wire. The plain cases of other rows stand where their subject does:
// T-22 in http/bad-input ("no Host" and the rows after it), T-24 in http/context ("behind $trustProxy …"), T-25 in http/replies
// ("… cannot be sent"), T-27 in unit/log ("… stays one valid JSON line"), T-28 in http/replies ("… is cancelled when …").

import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { IncomingMessage, type ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import * as entry from 'postern';
import { ApiError, NotFound, Postern, reply, type Context, type Handler, type HandlerResult } from 'postern';
import { Body } from '../../src/http/body.js';
import { createAddressResolver } from '../../src/http/client-address.js';
import { assertRequestHead, parseTarget, requestId } from '../../src/http/request.js';
import { createJsonLogger } from '../../src/log.js';
import { readBody, readJson, toServiceError, type Answer } from '../../src/mesh/answer.js';
import { formatHeaders } from '../../src/mesh/request.js';
import { parseTraceContext } from '../../src/mesh/trace-context.js';
import { acceptsGzip, negotiateFormat } from '../../src/monitor/negotiation.js';
import { startPeer, startRawPeer } from '../support/peer.js';
import { createRandom, type Random } from '../support/random.js';
import { parseResponses, rawExchange, rawRequest } from '../support/raw.js';
import { createApp, createRecorder, serve } from '../support/serve.js';

const SERVER_ERROR = {
  message: 'Server Error',
  description: 'Something has blown up really bad. Somebody should be notified?',
  error_code: { name: 'framework_unknown_error', value: 999999 },
};
const HEAD = 'Host: x\r\nConnection: close\r\n';
const get = (path: string, headers = HEAD): string => `GET ${path} HTTP/1.1\r\n${headers}\r\n`;

// T-20

const PROTOTYPE_NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__'];
test.for(PROTOTYPE_NAMES)('T-20: a header named %s harms no reader of headers, trailers, queries or answers (CVE-2026-21710)', async (name) => {
  const before = Reflect.ownKeys(Object.prototype);
  const peer = await startPeer((_req, res) => res.setHeader(name, 'x').end('answer'));
  const app = createApp({ trustProxy: ['127.0.0.1'], settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } });
  app.use((_ctx, next) => next());
  app.post('/all', async (ctx) => {
    const { body, headers } = await ctx.service('peer').get('/', { headers: [[name, 'x']] });
    return { ip: ctx.ip, id: ctx.id, query: ctx.query.get(name), state: Reflect.ownKeys(ctx.state), json: await ctx.json(), peer: body, header: headers.get(name) };
  });
  const { port } = await serve(app);
  const fields = `${name}: x\r\n`.repeat(2);
  const chunked = `POST /all?${name}=1 HTTP/1.1\r\n${HEAD}x-request-id: mine\r\n${fields}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n${fields}\r\n`;
  const all = await rawRequest(port, chunked);
  expect([all.status, JSON.parse(all.body)]).toEqual([200, { ip: '127.0.0.1', id: 'mine', query: '1', state: [], json: {}, peer: 'answer', header: 'x' }]);
  for (const [path, status] of [['/users/metrics/', 200], ['/users/health/', 200], ['/users/ping/?depth=1', 200], [`/${name}`, 404], ['/all', 405]] as const) {
    expect((await rawRequest(port, get(path, HEAD + fields))).status, path).toBe(status);
  }
  expect((await app.request('/users/ping/', { headers: [[name, 'x']] })).status).toBe(200);
  expect(Reflect.ownKeys(Object.prototype)).toEqual(before);
});

const SRC = fileURLToPath(new URL('../../src', import.meta.url));
const sources = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
test('T-20: nothing reads headersDistinct or trailersDistinct, which throw on some releases of Node.js', () => {
  for (const file of sources) expect(readFileSync(`${SRC}/${file}`, 'utf8'), file).not.toMatch(/(?:headers|trailers)Distinct/);
});

// T-22

const HOSTS: Record<200 | 400, readonly string[]> = {
  200: ['x', 'x:80', 'x:', 'EXAMPLE.com', 'a_b.c~d', 'a%20b', '127.0.0.1:8080', '[::1]', '[::1]:80', '[::ffff:1.2.3.4]', "!$&'()*+,;=", ' x ', '\tx\t'],
  400: [
    'evil@x', 'u:p@x:80', '@', 'x/', 'x/../y', 'x?y', 'x#y', 'x\\y', 'x y', 'x\ty', 'x:y', 'x:80:80', 'x:-1', 'x:123456', 'x: 80', ':80', 'http://x',
    '::1', '[::1', '::1]', '[::1]x', '[]', '[g::]', '[::1%25eth0]', '%', 'a%2', '%zz', 'x"y', 'x<y>', '{x}', 'x|y', 'x^y', '\xe9', 'x\x80',
  ],
};
const hosts = Object.entries(HOSTS).flatMap(([status, values]) => values.map((host) => ({ host, status: Number(status) })));
test.for(hosts)('T-22: the Host $host gets $status, whatever the route (CVE-2026-27959)', async ({ host, status }) => {
  let calls = 0;
  const { port } = await serve(createApp().get('/', () => { calls += 1; }).use((_ctx, next) => { calls += 1; return next(); }));
  const statusOf = async (line: string): Promise<number> => (await rawRequest(port, `${line}\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).status;
  expect(await statusOf('GET / HTTP/1.1')).toBe(status === 200 ? 204 : 400);
  expect(await statusOf('GET / HTTP/1.0')).toBe(status === 200 ? 204 : 400);
  expect(await statusOf('GET http://y/ HTTP/1.1')).toBe(status === 200 ? 204 : 400);
  expect(await statusOf('GET /users/ping/ HTTP/1.1')).toBe(status);
  expect(await statusOf('GET /nowhere HTTP/1.1')).toBe(status === 200 ? 404 : 400);
  expect(calls).toBe(status === 200 ? 8 : 0);
});

test.for([
  ['the same twice', 'Host: x\r\nHost: x\r\n'],
  ['in two spellings', 'Host: x\r\nhOST: y\r\n'],
  ['far apart', `Host: x\r\n${'a: b\r\n'.repeat(900)}host: y\r\n`],
  ['the second one empty', 'Host: x\r\nHost:\r\n'],
  ['the first one empty', 'Host:\r\nHost: x\r\n'],
] as const)('T-22: two Host headers, %s, get 400 in HTTP/1.1 and 1.0', async ([, fields]) => {
  const { port } = await serve(createApp().get('/', () => 'reached'));
  for (const version of ['1.1', '1.0']) {
    const { status, body } = await rawRequest(port, `GET / HTTP/${version}\r\n${fields}Connection: close\r\n\r\n`);
    expect([status, JSON.parse(body)]).toMatchObject([400, { description: 'The request has more than one Host header.' }]);
  }
});

test('T-22: what node:http keeps of 1,000 header fields hides no second Host', async () => {
  const { port } = await serve(createApp().get('/', () => 'reached'));
  for (const count of [997, 998, 1022, 1023, 1060, 1500, 3000]) {
    const response = await rawRequest(port, `GET / HTTP/1.1\r\n${HEAD}${'a:\r\n'.repeat(count)}Host: y\r\n\r\n`);
    expect(response.status, `${count} fields`).toBeGreaterThanOrEqual(400);
  }
});

// T-23

const PIECES = [
  ' ', '\t', ',', ';', '"', '\\', '=', 'a', '-', '+', ';q=', ', ', '",', '"\\', ' ;q=" ', 'a=1,', 'a/b;q=0.1, ', '10.0.0.1,', '::ffff:', '100-continue ',
  '%20',
];
const ENDS: readonly (readonly [string, string])[] = [
  ['', ''], ['', '!'], ['', '10.0.0.1'], ['a', 'b'], ['"', ''], ['application/json', ';'], ['00-12345678901234567890123456789012-1234567890123456-01',
  'x'],
];
const hostile = PIECES.flatMap((piece) => ENDS.map(([start, end]) => (length: number): string => start + piece.repeat(length / piece.length) + end));

/** Fails if work on twice `length` takes far more than twice the time: noise only ever adds, so the fastest of several runs counts. */
async function expectLinear(what: string, length: number, floorMs: number, work: (length: number) => unknown): Promise<void> {
  const fastest = [Infinity, Infinity];
  for (let run = 0; run < 12; run += 1) {
    for (const twice of [0, 1]) {
      const startedMs = performance.now();
      await work(length * (twice + 1));
      fastest[twice] = Math.min(fastest[twice] as number, performance.now() - startedMs);
    }
    const [once = 0, twice = 0] = fastest;
    if (twice < Math.max(floorMs, 3.5 * once)) return;
  }
  expect.fail(`${what}: ${fastest[0]} ms for ${length}, ${fastest[1]} ms for twice as much`);
}

function requestWith(name: string, value: string): IncomingMessage {
  const req = new IncomingMessage(new Socket());
  req.httpVersion = '1.1';
  req.rawHeaders = [name, value];
  req.headers = { [name]: value };
  req.push(null);
  return req;
}
const answerWith = (name: string, value: string): Answer => ({ status: 503, headers: { [name]: value }, rawHeaders: [name, value], body: Buffer.from('{}') });
const attempt = (work: () => unknown): unknown => {
  try {
    return work();
  } catch {
    return undefined;
  }
};
const bodyOf = (name: string, value: string): Body => new Body(requestWith(name, value), { bodyLimitBytes: 10, parameterLimit: 10 }, () => undefined);
const resolveAddress = createAddressResolver(['10.0.0.0/8', '127.0.0.1', '::/0']);
const READERS: Record<string, (value: string) => unknown> = {
  'accept': (value) => negotiateFormat(value),
  'accept-encoding': (value) => acceptsGzip(value),
  'baggage': (value) => parseTraceContext({ baggage: value }),
  'connection, of a call': (value) => attempt(() => formatHeaders({ connection: value })),
  'content-encoding': (value) => bodyOf('content-encoding', value).bytes().catch(() => undefined),
  'content-encoding, of an answer': (value) => attempt(() => readBody('b', answerWith('content-encoding', value))),
  'content-type, for a form': (value) => bodyOf('content-type', value).form().catch(() => undefined),
  'content-type, for JSON': (value) => bodyOf('content-type', value).json().catch(() => undefined),
  'content-type, of an answer': (value) => readJson(answerWith('content-type', value)),
  'host': (value) => attempt(() => assertRequestHead(requestWith('host', value), 999)),
  'host, in the target': (value) => attempt(() => parseTarget(`http://${value}`, 'GET')),
  'retry-after, of an answer': (value) => toServiceError('b', answerWith('retry-after', value)),
  'traceparent': (value) => parseTraceContext({ traceparent: value }),
  'tracestate': (value) => parseTraceContext({ traceparent: '00-12345678901234567890123456789012-1234567890123456-01', tracestate: value }),
  'x-forwarded-for': (value) => resolveAddress('127.0.0.1', value),
  'x-request-id': (value) => requestId(requestWith('x-request-id', value)),
};
test.for(Object.entries(READERS))('T-23: %s is read in time linear to its length (CVE-2025-25200)', async ([header, read]) => {
  for (const [index, make] of hostile.entries()) {
    await expectLinear(`${header}, ${make(20)} (${index})`, 16_000, 8, (length) => read(make(length)));
  }
});

const WIRE: Record<string, string> = {
  'Accept': 'GET /users/metrics/',
  'Accept-Encoding': 'GET /users/metrics/',
  'Authorization': 'GET /',
  'Baggage': 'GET /call',
  'Connection': 'GET /',
  'Content-Encoding': 'POST /json',
  'Content-Length': 'POST /json',
  'Content-Type': 'POST /json',
  'Cookie': 'GET /',
  'Expect': 'POST /json',
  'Forwarded': 'GET /',
  'Host': 'GET /',
  'If-None-Match': 'GET /',
  'Range': 'GET /',
  'Traceparent': 'GET /call',
  'Tracestate': 'GET /call',
  'Transfer-Encoding': 'POST /json',
  'Upgrade': 'GET /',
  'X-Forwarded-For': 'GET /',
  'X-Request-Id': 'GET /',
};
test.for(Object.entries(WIRE))('T-23: a hostile %s of nearly 16 KiB holds up no other request', async ([name, request]) => {
  const peer = await startPeer((_req, res) => res.end('answer'));
  const app = createApp({ trustProxy: ['127.0.0.1', '10.0.0.0/8'], settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } });
  app.get('/', (ctx) => ctx.ip + ctx.id).post('/json', (ctx) => ctx.json()).get('/call', async (ctx) => (await ctx.service('peer').get('/')).body);
  const { port } = await serve(app);
  const others = Object.entries({ Host: 'x', Connection: 'close', 'Content-Length': '2' }).filter(([
    other,
  ]) => other !== name && !(name === 'Transfer-Encoding' && other === 'Content-Length'));
  const fields = others.map(([other, value]) => `${other}: ${value}\r\n`).join('');
  for (const piece of PIECES) {
    const value = (length: number): string => `a${piece.repeat(length / piece.length)}b`;
    await expectLinear(`${name}, ${piece}`, 7_500, 20, async (length) => {
      const bytes = `${request} HTTP/1.1\r\n${fields}${name}: ${value(length)}\r\n\r\n{}`;
      await new Promise((resolve) => {
        const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
        socket.on('error', () => undefined).once('data', () => socket.destroy()).once('close', resolve);
      });
    });
  }
  expect((await rawRequest(port, get('/users/ping/'))).status).toBe(200);
});

test('T-23: hostile headers of an answer hold up no call', async () => {
  let field = '';
  const peer = await startRawPeer(() => `HTTP/1.1 503 x\r\n${field}content-length: 2\r\n\r\n{}`);
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } });
  const call = (): Promise<unknown> => app.service('peer').get('/').catch((error: unknown) => error);
  for (const name of ['retry-after', 'content-type', 'content-encoding', 'connection', 'keep-alive', 'set-cookie']) {
    for (const piece of PIECES) {
      await expectLinear(`${name}, ${piece}`, 7_500, 20, (length) => {
        field = `${name}: a${piece.repeat(length / piece.length)}b\r\n`;
        return call();
      });
    }
  }
  field = '';
  expect(await call()).toMatchObject({ statusCode: 503, description: 'peer answered 503' });
});

// T-24

const SPOOFED = '6.6.6.6';
const CLAIMS = [
  'X-Forwarded-For', 'X-Forwarded', 'Forwarded-For', 'X-Real-IP', 'X-Client-IP', 'Client-IP', 'True-Client-IP', 'CF-Connecting-IP', 'X-Cluster-Client-IP',
  'Fastly-Client-IP', 'X-Originating-IP', 'X-Remote-IP', 'X-Remote-Addr', 'X-Forwarded-Host',
];
const others = `Forwarded: for=${SPOOFED};host=${SPOOFED};proto=https\r\nVia: 1.1 ${SPOOFED}\r\nX-Forwarded-Proto: https\r\n`;
const claims = CLAIMS.map((name) => `${name}: ${SPOOFED}\r\n`).join('') + others;
const UNTRUSTING: { trustProxy: string[] | undefined }[] = [
  { trustProxy: undefined },
  { trustProxy: [] },
  { trustProxy: ['10.0.0.0/8', '::1', '128.0.0.0/1', '126.255.255.255', '127.0.0.2/31'] },
];
test.for(UNTRUSTING)(
  'T-24: no header of a direct client changes its address when $trustProxy is trusted (CVE-2026-3635)',
  async ({ trustProxy }) => {
    const { port } = await serve(createApp(trustProxy === undefined ? {} : { trustProxy }).get('/', (ctx) => ctx.ip));
    expect((await rawRequest(port, get('/', HEAD + claims))).body).toBe('127.0.0.1');
  },
);

test('T-24: of a trusted proxy x-forwarded-for alone is read, and of several lines the last', async () => {
  const { port } = await serve(createApp({ trustProxy: ['127.0.0.1'] }).get('/', (ctx) => ctx.ip));
  const ipOf = async (fields: string): Promise<string> => (await rawRequest(port, get('/', HEAD + fields))).body;
  expect(await ipOf(claims.replace(/^X-Forwarded-For: .*\r\n/, ''))).toBe('127.0.0.1');
  expect(await ipOf(`${claims}X-Forwarded-For: 1.1.1.1\r\n`)).toBe('1.1.1.1');
  expect(await ipOf(`X-Forwarded-For: ${SPOOFED}, ${SPOOFED}\r\nx-forwarded-for: ${SPOOFED},1.1.1.1\r\n`)).toBe('1.1.1.1');
  for (const entry of [
    '', '1.1.1.1:80', '[2001:db8::1]:80', '"1.1.1.1"', 'for=1.1.1.1', 'unknown', '_hidden', '1.1.1', '0x7f.1', '2130706433', '127.1', '010.0.0.1',
    '1.1.1.1 2.2.2.2', '1.1.1.1/32', '1.1.1.1\\', '::ffff:1.1.1.256', '1:2',
  ]) {
    expect(await ipOf(`X-Forwarded-For: ${SPOOFED}, ${entry}\r\n`), entry).toBe('127.0.0.1');
  }
});

test('T-24: a client on IPv4 has its IPv4 address on a socket for both families, and is trusted by it', async () => {
  const trusting = createApp({ trustProxy: ['127.0.0.0/8'] }).get('/', (ctx) => ctx.ip);
  const { port } = await trusting.listen({ port: 0 });
  expect((await rawRequest(port, get('/'))).body).toBe('127.0.0.1');
  expect((await rawRequest(port, get('/', `${HEAD}X-Forwarded-For: ::ffff:1.1.1.1\r\n`))).body).toBe('1.1.1.1');
});

/** An address as 128 bits, in one of the ways to write them. */
function spell(bits: bigint, random: Random): string {
  const groups = Array.from({ length: 8 }, (_, i) => Number((bits >> BigInt(112 - 16 * i)) & 0xffffn));
  const texts = groups.map((group) => group.toString(16).padStart(random.int(5), '0'));
  const dotted = random.int(3) === 0 ? [...groups.slice(6)].map((group) => `${group >> 8}.${group & 255}`).join('.') : undefined;
  if (dotted !== undefined) texts.splice(6, 2, dotted);
  const zeros = groups.slice(0, texts.length - (dotted === undefined ? 0 : 1)).map((group) => (group === 0 ? '0' : 'x')).join('');
  const run = /00+/.exec(zeros);
  const text = run === null || random.int(4) === 0 ? texts.join(':') : `${texts.slice(0, run.index).join(':')}::${texts.slice(run.index + run[0].length).join(':')}`;
  return random.int(2) === 0 ? text : text.toUpperCase();
}
const MAPPED = 0xffffn << 32n;
const dotted = (bits: bigint): string => [24n, 16n, 8n, 0n].map((shift) => String((bits >> shift) & 255n)).join('.');

test('T-24: addresses are compared with networks as numbers, however they are written (CVE-2026-47674)', () => {
  const random = createRandom(24);
  const bitsOf = (count: number): bigint => Array.from({ length: count }, () => BigInt(random.int(2))).reduce((all, bit) => (all << 1n) | bit, 0n);
  for (let round = 0; round < 4000; round += 1) {
    const isV4 = random.int(2) === 0;
    const [width, base] = isV4 ? [32, MAPPED] : [128, 0n];
    const length = random.int(width + 1);
    const network = random.int(3) === 0 && !isV4 ? bitsOf(32) : bitsOf(width);
    const flipped = random.int(width);
    const address = random.int(4) === 0 ? bitsOf(width) : network ^ (1n << BigInt(flipped));
    const inside = length === 0 || (address ^ network) >> BigInt(width - length) === 0n;
    const cidr = `${isV4 ? dotted(network) : spell(network, random)}/${length}`;
    const written = isV4 && random.int(2) === 0 ? dotted(address) : spell(base + address, random);
    const expected = inside ? '9.9.9.9' : written.replace(/^::ffff:(?=\d+\.)/i, '');
    expect(createAddressResolver([cidr])(written, '9.9.9.9'), `${written} in ${cidr}`).toBe(expected);
  }
});

test('T-24: an address of one family is in no network of the other', () => {
  const trusts = (network: string, address: string): boolean => createAddressResolver([network])(address, '9.9.9.9') === '9.9.9.9';
  for (const address of [
    '::1', '::7f00:1', '::127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', '2001:db8::1',
  ]) expect(trusts('0.0.0.0/0', address), address).toBe(false);
  for (const address of ['fe80::1%eth0', '', 'localhost', '127.0.0.1 ', '127.1']) expect(trusts('127.0.0.0/8', address), address).toBe(false);
});

// T-25

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
const injections = Object.entries(HEADER_PLACES).flatMap(([place, make]) => Object.entries(BREAKS).map(([what, end]) => ({ place, make, what, end })));
test.for(injections)('T-25: $place with $what gives the uniform 500, in one reply', async ({ make, end }) => {
  const logger = createRecorder();
  const text = `a${end}x-injected: 1${end}${end}HTTP/1.1 200 injected`;
  const { port } = await serve(createApp({ logger }).get('/', make(text)).get('/next', () => 'next'));
  const received = await rawExchange(port, get('/'));
  expect(received.split('HTTP/1.1 ')).toHaveLength(2);
  expect(received.split('\r\n\r\n')[0]).not.toContain('injected');
  const [response] = parseResponses(received);
  expect([response?.status, JSON.parse(response?.body ?? '')]).toEqual([500, SERVER_ERROR]);
  expect(received.startsWith('HTTP/1.1 500 Internal Server Error\r\n')).toBe(true);
  expect(logger.entries.at(-1)?.level).toBe('error');
  expect((await rawRequest(port, get('/next'))).body).toBe('next');
});

test('T-25: what Latin-1 has is no reason to refuse a reply', async () => {
  const { port } = await serve(createApp().get('/', () => reply(Buffer.from('x'), { statusText: 'd\xe9\tj\xe0', headers: { 'x-a': 'na\xefve\tb' } })));
  const received = await rawExchange(port, get('/'));
  expect(received).toContain('HTTP/1.1 200 d\xe9\tj\xe0\r\n');
  expect(received).toContain('x-a: na\xefve\tb\r\n');
});

test('T-25: an error whose parts throw when they are read gives the uniform 500', async () => {
  const { port } = await serve(createApp()
    .get('/proxy', () => { throw new Proxy(new NotFound('x'), { get() { throw new Error('trap'); } }); })
    .get('/headers', () => { throw new ApiError('x', { headers: { get 'x-a'(): string { throw new Error('trap'); } } }); }));
  for (const path of ['/proxy', '/headers']) {
    const { status, body } = await rawRequest(port, get(path));
    expect([status, JSON.parse(body)], path).toEqual([500, SERVER_ERROR]);
  }
});

test('T-25: headers set by hand stay beside those of the reply, and repeated ones stay several (CVE-2025-7339)', async () => {
  const { port } = await serve(createApp().get('/', ({ raw: { res } }) => {
    res.setHeader('x-kept', 'kept').setHeader('x-a', 'overridden');
    return reply('x', { headers: [['x-a', 'reply'], ['set-cookie', 'a=1'], ['set-cookie', 'b=2'], ['vary', 'a'], ['vary', 'b']] });
  }));
  const lines = (await rawExchange(port, get('/'))).toLowerCase().split('\r\n');
  expect(lines.filter((line) => /^(?:x-|set-cookie|vary)/.test(line)).sort()).toEqual([
    'set-cookie: a=1', 'set-cookie: b=2', 'vary: a, b', 'x-a: reply', 'x-kept: kept',
  ]);
});

test.for([200, 202, 204, 205, 302, 304, 404])('T-25: a length given to a %i without a body never makes the next reply that body', async (status) => {
  const app = createApp().get('/', () => reply(undefined, { status, headers: { 'content-length': '5' } })).get('/next', () => 'next');
  const { port } = await serve(app);
  const responses = parseResponses(await rawExchange(port, get('/', 'Host: x\r\n') + get('/next')));
  expect(responses.map(({ status, body }) => [status, body])).toEqual([[status, ''], [200, 'next']]);
  expect(responses[0]?.headers['content-length']).toBe(status === 204 ? undefined : status === 304 ? '5' : '0');
});

test('T-25: the length in a reply to HEAD is that of the reply to GET, and stays', async () => {
  const app = createApp().head('/', () => reply(undefined, { status: 200, headers: { 'content-length': '5000' } }));
  const { port } = await serve(app);
  expect(await rawExchange(port, `HEAD / HTTP/1.1\r\n${HEAD}\r\n`)).toContain('content-length: 5000\r\n');
});

test.for(['', '-1', '+1', '1e0', '0x1', '1.0', '1, 1', '1x', '\xb9'])('T-25: the length %j of a stream is no length: 500', async (length) => {
  const { port } = await serve(createApp().get('/', () => reply(Readable.from(['x']), { headers: { 'content-length': length } })));
  const [head = '', body = ''] = (await rawExchange(port, get('/'))).split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1\.1 500 /);
  expect(JSON.parse(body)).toEqual(SERVER_ERROR);
});

// T-26

test('T-26: no redirect helper is shipped, and a redirect by hand has no body made of its URL (CVE-2024-43796)', async () => {
  const names = [entry, Postern.prototype, reply().constructor.prototype].flatMap((object) => Object.getOwnPropertyNames(object));
  const app = createApp().get('/', (ctx) => {
    names.push(...Object.getOwnPropertyNames(Object.getPrototypeOf(ctx)));
    return reply(undefined, { status: 302, headers: { location: '//evil.test/<script>' } });
  });
  const { port } = await serve(app);
  const { status, headers, body } = await rawRequest(port, get('/'));
  expect([status, headers['content-length'], headers['content-type'], body]).toEqual([302, '0', undefined, '']);
  expect(names).toContain('stream');
  expect(names.filter((name) => /redirect|back|location|referr?er/i.test(name))).toEqual([]);
});

test.for([
  '//evil.test', '//evil.test/..', '/%5cevil.test', '/%2f/evil.test', '/users', '/users/ping', '/users/health', '/users//ping/', '/USERS/ping/', '/a/',
  '/a//', '//a', '/./a', '/x/../a', 'http://evil.test/', 'http://evil.test/a/',
])(
  'T-26: the framework redirects nobody away from %s (CVE-2024-29041)',
  async (target) => {
    const { port } = await serve(createApp().get('/a', () => 'a'));
    const { status, headers, body } = await rawRequest(port, get(target));
    expect(status === 200 || status >= 400).toBe(true);
    expect(headers).not.toHaveProperty('location');
    expect(body).not.toMatch(/evil|<|http/);
  },
);

// T-27

const NAUGHTY = [
  '\n{"level":"error","msg":"forged"}', '\r\nlevel=error', '\0', '\u001b[2J\u001b]0;x\u0007', '\u0085\u2028\u2029', '"', '\\', '\\n', '\u007f\u009b', '{}',
  '__proto__', 'toJSON', 'constructor', '%0a', '\u{1f600}\ufeff', '\u202e', '${x}', '`', 'ﷺ'.repeat(200),
];
test.for(NAUGHTY)('T-27: %j in path, query, headers, body and errors stays inside one valid JSON line (CVE-2026-5078)', async (text) => {
  let written = '';
  const json = createJsonLogger('users', (line) => { written += line; });
  const app = createApp({ logger: { ...json, debug: json.info } });
  app.post('/log/:x', async (ctx: Context<{ readonly x: string }>) => {
    const { x } = ctx.params;
    ctx.log.warn({ path: ctx.path, query: Object.fromEntries(ctx.query), agent: ctx.headers['user-agent'], body: await ctx.text(), [`k${x}`]: { [x]: x } }, x);
    throw Object.assign(new Error(x), { user: x, level: 'forged', service: 'forged' });
  });
  const { port } = await serve(app);
  const encoded = encodeURIComponent(text);
  const body = Buffer.from(text);
  // What HTTP can't carry in a header is left out there.
  const agent = Buffer.from(text.replace(/[\0-\x1f\x7f]/g, '')).toString('latin1');
  const head = `POST /log/${encoded}?${encoded}=${encoded}&level=forged HTTP/1.1\r\n${HEAD}User-Agent: ${agent}\r\nX-Request-Id: ${agent}\r\nContent-Length: ${body.length}\r\n\r\n`;
  const response = await rawRequest(port, Buffer.concat([Buffer.from(head, 'latin1'), body]));
  expect(response.status).toBe(500);
  expect(await rawRequest(port, get(`/${encoded}`, `${HEAD}X-Request-Id: ${agent}\r\n`))).toMatchObject({ status: 404 });

  expect(written.endsWith('\n')).toBe(true);
  const lines = written.slice(0, -1).split(/\r\n|[\n\r]/).map((line) => JSON.parse(line) as Record<string, unknown>);
  const request_id = response.headers['x-request-id'];
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  const target = `/log/${encoded}?${encoded}=${encoded}&level=forged`;
  expect(lines).toMatchObject([
    { level: 'warn', time, service: 'users', msg: text, request_id, path: `/log/${text}`, query: { level: 'forged' }, body: text, agent },
    { level: 'error', time, service: 'users', msg: 'request failed', request_id, target, err: { message: text, user: text } },
    { level: 'info', time, service: 'users', msg: 'request refused', target: `/${encoded}`, request_id: expect.stringMatching(/^[A-Za-z0-9._-]{1,128}$/) },
  ]);
  expect(written).not.toMatch(/[\0-\x09\x0b-\x1f]/);
});

test('T-27: what could not be parsed stays inside one line as well', async () => {
  let written = '';
  const json = createJsonLogger('users', (line) => { written += line; });
  const { port } = await serve(createApp({ logger: { ...json, debug: json.info } }));
  const forged = '{"level":"error"}';
  for (const bytes of [`\x16\x03\x01${forged}\r\n\r\n`, 'GET /\x1b[2J HTTP/1.1\r\n\r\n', `GET / HTTP/1.1\nHost: x\n${forged}\n\n`, `BREW\x00 "/ HTTP/1.1\r\n${HEAD}\r\n`]) {
    expect((await rawRequest(port, bytes)).status).toBe(400);
  }
  const lines = written.slice(0, -1).split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.map(({ level, service, msg }) => [level, service, msg])).toEqual(Array.from({ length: 4 }, () => ['info', 'users', 'request refused']));
});

// T-28

const CHUNK_BYTES = 64 * 1024;
const MOST_CHUNKS = 4096;
/** Sources that would go on for 256 MiB, a chunk for each turn of the event loop, each with a way to tell that it was freed. */
const SOURCES: Record<string, (chunk: () => Buffer | null, freed: () => void) => HandlerResult> = {
  'a Readable': (chunk, freed) => new Readable({ read() { setImmediate(() => this.push(chunk())); }, destroy(error, done) { freed(); done(error); } }),
  'a ReadableStream': (chunk, freed) => webStream(chunk, freed),
  'a Response': (chunk, freed) => new Response(webStream(chunk, freed)),
  'a reply with a stream': (chunk, freed) => reply(webStream(chunk, freed), { headers: { 'content-type': 'text/csv' } }),
  'an async generator': (chunk, freed) => (async function* () {
    try {
      for (let next = chunk(); next !== null; next = chunk()) {
        yield next;
        await new Promise(setImmediate);
      }
    } finally {
      freed();
    }
  })(),
};
function webStream(chunk: () => Buffer | null, freed: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      await new Promise(setImmediate);
      const next = chunk();
      if (next === null) controller.close();
      else controller.enqueue(next);
    },
    cancel: freed,
  });
}

test.for(Object.entries(SOURCES))('T-28: a client that does not read holds %s back, and frees it when it leaves (CVE-2026-25224)', async ([, make]) => {
  let pulled = 0;
  let mostBytes = 0;
  let response: ServerResponse | undefined;
  let wake = (): void => undefined;
  const freed = new Promise<void>((resolve) => (wake = resolve));
  const app = createApp().get('/', ({ raw: { res } }) => {
    response = res;
    const chunk = (): Buffer | null => {
      pulled += 1;
      mostBytes = Math.max(mostBytes, res.writableLength);
      return pulled > MOST_CHUNKS ? null : Buffer.alloc(CHUNK_BYTES);
    };
    return make(chunk, () => wake());
  });
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write(get('/')));
  socket.pause();
  await expect.poll(() => response?.writableNeedDrain).toBe(true);
  for (let turn = 0; turn < 300; turn += 1) await new Promise(setImmediate);
  expect(mostBytes).toBeLessThan(1024 * 1024);
  expect(pulled).toBeLessThan(MOST_CHUNKS);
  socket.destroy();
  await freed;
  await expect.poll(() => app.metrics.expose()).toContain('active_task_count 0.0');
});

/** Sources that fall silent after their first chunk. */
const SILENT: Record<string, (freed: () => void) => HandlerResult> = {
  'a Readable': (freed) => {
    const source = new Readable({ read() {}, destroy(error, done) { freed(); done(error); } });
    source.push('first');
    return source;
  },
  'a ReadableStream': (cancel) => new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('first')), cancel }),
  'a Response': (cancel) => new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('first')), cancel })),
  'an iterator': (freed) => {
    const values = ['first'].values();
    const next = async (): Promise<IteratorResult<string>> => {
      const result = values.next();
      return result.done === true ? new Promise(() => undefined) : result;
    };
    const iterator = { next, return: async (): Promise<IteratorResult<string>> => { freed(); return { done: true, value: undefined }; } };
    return { [Symbol.asyncIterator]: () => iterator };
  },
};
test.for(Object.entries(SILENT))('T-28: a client that leaves frees %s that says nothing', async ([, make]) => {
  let wake = (): void => undefined;
  const freed = new Promise<void>((resolve) => (wake = resolve));
  const app = createApp().get('/', () => make(() => wake()));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write(get('/')));
  let text = '';
  socket.on('data', (data) => (text += String(data)));
  await expect.poll(() => text).toContain('first');
  socket.destroy();
  await freed;
  await expect.poll(() => app.metrics.expose()).toContain('active_task_count 0.0');
});

test('T-28: a request whose client has left is over, even where its source cannot be interrupted', async () => {
  const app = createApp().get('/', () => (async function* () { yield 'first'; await new Promise(() => undefined); })());
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write(get('/')));
  await once(socket, 'data');
  socket.destroy();
  await expect.poll(() => app.metrics.expose()).toContain('active_task_count 0.0');
  expect(app.metrics.expose()).toContain('http_request_duration_seconds_count{method="GET",route="/",status_code="499"} 1.0');
});

// T-29

test('T-29: no token is compared: what a client claims to be changes no monitoring endpoint', async () => {
  const { port } = await serve(createApp());
  const documentOf = async (path: string, fields = ''): Promise<unknown> => {
    const { status, headers, body } = await rawRequest(port, get(path, HEAD + fields));
    return [status, headers['content-type'], headers['www-authenticate'], path === '/users/metrics/' ? body.match(/^# TYPE .*/gm) : body.replace(/\d+ ms/, 'n ms')];
  };
  for (const path of ['/users/health/', '/users/metrics/', '/users/ping/']) {
    const plain = await documentOf(path);
    for (const fields of [
      'Authorization: Bearer x\r\n', 'Authorization: Basic eDp5\r\n', 'X-Api-Key: x\r\n', 'Cookie: session=x\r\n',
    ]) expect(await documentOf(path, fields)).toEqual(plain);
  }
  for (const file of sources) {
    expect(readFileSync(`${SRC}/${file}`, 'utf8').replace(/'proxy-authorization'|www-authenticate/g, ''), file).not.toMatch(/authorization|api-?key|timingSafeEqual|createHmac/i);
  }
});
