/** A failing or slow request says which service was to blame, up the whole chain. */

import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { connect, defineEndpoint, HttpError, Postern, reply, type Context, type Handler } from 'postern';
import { createApp, createRecorder, expectFailures, serve, type Entry } from '../support/serve.js';
import { rawRequest } from '../support/raw.js';

type Recorder = ReturnType<typeof createRecorder>;

/** A service that calls the next one, or fails. */
interface Link {
  readonly app: Postern;
  readonly url: string;
  readonly log: Recorder;
}

/** `names[0]` calls `names[1]` and so on; the last one runs `leaf`. */
async function chain(
  names: readonly string[],
  leaf: (ctx: Context) => unknown,
  call: (ctx: Context, next: string) => Promise<unknown> = async (ctx, next) => (await ctx.service(next).get('/')).body,
): Promise<Link[]> {
  const links: Link[] = [];
  let below: { readonly name: string; readonly url: string } | undefined;
  for (const name of [...names].reverse()) {
    const next = below;
    const log = createRecorder();
    const settings = { SERVICE_CONNECTIONS: next === undefined ? [] : [`${next.name}=${next.url}`] };
    const app = createApp({ settings, logger: log }, name);
    app.get('/', (ctx) => (next === undefined ? leaf(ctx) : call(ctx, next.name)) as object);
    const { url } = await serve(app);
    links.unshift({ app, url, log });
    below = { name, url };
  }
  return links;
}

const lines = ({ entries }: Recorder, message: string): Entry[] => entries.filter((each) => each.message === message);
const callsOf = (link: Link | undefined, message = 'request failed'): unknown =>
  lines(link?.log as Recorder, message)[0]?.object['calls'];

const MS = expect.any(Number);
const UNKNOWN = 'framework_unknown_error';

test('the line of the first service has the whole tree, whose end is the service that failed', async () => {
  const links = await chain(['a', 'b', 'c', 'd'], () => {
    throw new Error('secret');
  });
  for (const { app } of links) expectFailures(app, 500);
  const response = await fetch(`${links[0]?.url}/`);
  expect([response.status, response.headers.get('x-postern-calls')]).toEqual([500, null]);
  const toD = ['d', 'GET', '', 500, MS, UNKNOWN, []];
  const toC = ['c', 'GET', '', 500, MS, UNKNOWN, [toD]];
  expect(links.map((link) => callsOf(link))).toEqual([
    [['b', 'GET', '', 500, MS, UNKNOWN, [toC]]],
    [toC],
    [toD],
    undefined,
  ]);
  expect(JSON.stringify(links.slice(0, 3).map((link) => callsOf(link)))).not.toContain('secret');
});

test('to a service the failing reply has the header; its client never sees it', async () => {
  let seen: Headers | undefined;
  const [b, c] = await chain(['b', 'c'], () => reply({}, { status: 503 }));
  for (const link of [b, c]) expectFailures((link as Link).app, 503);
  const options = { headers: { 'user-agent': 'a/1 postern/1' } };
  const answer = await fetch(`${b?.url}/`, options);
  const told: unknown = JSON.parse(answer.headers.get('x-postern-calls') as string);
  expect(told).toEqual([['c', 'GET', '', 503, MS, expect.any(String), []]]);
  const a = createApp({ settings: { SERVICE_CONNECTIONS: [`b=${b?.url}`] } }, 'a');
  a.get('/', async (ctx) => {
    const response = await ctx.service('b').fetch('/');
    seen = response.headers;
    return { status: response.status };
  });
  const { url } = await serve(a);
  expect(await (await fetch(url)).json()).toEqual({ status: 503 });
  expect(seen?.has('x-postern-calls')).toBe(false);
  expect(await (await fetch(`${b?.url}/`, { headers: { 'user-agent': 'curl/8' } })).status).toBe(503);
  expect((await fetch(`${b?.url}/`)).headers.has('x-postern-calls')).toBe(false);
});

const FAILED = { status: 503, headers: { 'X-Postern-Calls': '[]' } };

test.for<[how: string, handler: Handler]>([
  ['a reply with such a header', () => reply({}, FAILED)],
  ['a Response with such a header', () => new Response('', FAILED)],
  ['an error with such a header', () => { throw new HttpError(503, 'x', { headers: FAILED.headers }); }],
  ['what the handler wrote', ({ raw: { res } }) => void res.writeHead(503, FAILED.headers).end()],
  ['what the handler set and wrote', ({ raw: { res } }) => void Object.assign(res, { statusCode: 503 }).end('x')],
  ['what the handler piped', ({ raw: { res } }) => void Readable.from(['x']).pipe(res.writeHead(503))],
])('the header has the calls, too, if the failing reply is %s', async ([, handler]) => {
  const { url: leaf } = await serve(expectFailures(createApp({}, 'c'), 500).get('/', () => { throw new Error('x'); }));
  const app = expectFailures(createApp({ settings: { SERVICE_CONNECTIONS: [`c=${leaf}`] } }, 'b'), 503);
  app.get('/', async (ctx) => {
    await ctx.service('c').get('/').catch(() => undefined);
    return handler(ctx);
  });
  const { url } = await serve(app);
  const response = await fetch(url, { headers: { 'user-agent': 'a/1 postern/1' } });
  const told: unknown = JSON.parse(response.headers.get('x-postern-calls') as string);
  expect([response.status, told]).toEqual([503, [['c', 'GET', '', 500, MS, UNKNOWN, []]]]);
});

test('each attempt is a call; a typed call has its path pattern, a call without an answer the status of its error', async () => {
  const getUser = defineEndpoint('GET', '/users/:id', {});
  const users = createApp({}, 'users').implement(getUser, () => ({ id: 1 }));
  const { url } = await serve(users);
  const log = createRecorder();
  const settings = { SERVICE_CONNECTIONS: [`users=${url}`, 'gone=http://127.0.0.1:9'] };
  const app = expectFailures(createApp({ logger: log, settings }, 'a'), 503);
  app.get('/', async (ctx) => {
    await ctx.service('users').call(getUser, { params: { id: '7' } });
    await ctx.service('gone').get('/x', { retry: 1 });
  });
  await fetch((await serve(app)).url);
  const gone = ['gone', 'GET', '', 503, MS, expect.any(String), []];
  expect(lines(log, 'request failed')[0]?.object['calls']).toEqual([
    ['users', 'GET', '/users/:id', 200, MS, null, []],
    gone,
    gone,
  ]);
});

test('a slow request is one that took more than half of its deadline: a line at warn, and the header', async () => {
  const [b, c] = await chain(['b', 'c'], () => new Promise((resolve) => setTimeout(resolve, 1_200, {})));
  const headers = { 'user-agent': 'a/1 postern/1', 'x-envoy-expected-rq-timeout-ms': '2000' };
  const response = await fetch(`${b?.url}/`, { headers });
  expect(response.status).toBe(200);
  expect(JSON.parse(response.headers.get('x-postern-calls') as string)).toEqual([['c', 'GET', '', 200, MS, null, []]]);
  const object: unknown = expect.objectContaining({ patience_ms: 2000, status_code: 200 });
  await expect.poll(() => lines((b as Link).log, 'request slow'))
    .toEqual([{ level: 'warn', message: 'request slow', object }]);
  expect(callsOf(b, 'request slow')).toEqual([['c', 'GET', '', 200, MS, null, []]]);
  await expect.poll(() => lines((c as Link).log, 'request slow').length).toBe(1);
});

/** Takes longer than half of the deadline of its request. */
const late = (): Readable => Readable.from((async function* () {
  await new Promise((resolve) => setTimeout(resolve, 600));
  yield 'late';
})());

const OF_LENGTH = { 'content-length': '4' };

test.for<[how: string, define: (app: Postern) => unknown]>([
  ['is returned', (app) => app.get('/', late)],
  ['is piped', (app) => app.get('/', ({ raw: { res } }) => void late().pipe(res))],
  ['has a length', (app) => app.get('/', ({ raw: { res } }) => void late().pipe(res.writeHead(200, OF_LENGTH)))],
  ['is written', (app) => app.get('/', async ({ raw: { res } }) => {
    res.write('la');
    await new Promise((resolve) => setTimeout(resolve, 600));
    res.end('te');
  })],
  ['comes from middleware', (app) => app.use(connect((_req, res) => void late().pipe(res.writeHead(200, OF_LENGTH))))],
  ['comes from a mount', (app) => app.mount('/', (_req, res) => void late().pipe(res.writeHead(200, OF_LENGTH)))],
])('a stream that %s is never slow, with HTTP/1.0 either', async ([, define]) => {
  const log = createRecorder();
  const app = createApp({ logger: log }, 'a');
  define(app);
  const { port } = await serve(app);
  // More than a busy machine takes to begin, less than the stream takes.
  for (const version of ['1.0', '1.1\r\nHost: a\r\nConnection: close']) {
    const head = `GET / HTTP/${version}\r\nx-envoy-expected-rq-timeout-ms: 500\r\n\r\n`;
    expect((await rawRequest(port as number, head)).body).toMatch(/late|la\r\n2\r\nte/);
  }
  await app.close();
  expect(lines(log, 'request slow')).toEqual([]);
});

/** A service that is not built with Postern, and answers with any header. */
async function foreign(calls: string, status = 500): Promise<string> {
  const server = createServer((_req, res) => res.writeHead(status, { 'X-Postern-Calls': calls }).end('{}'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const nested = (depth: number): unknown[] => (depth === 0 ? [] : [['s', 'GET', '', 500, 1, null, nested(depth - 1)]]);
const depthOf = (calls: unknown): number => {
  const [first] = calls as [unknown[]?];
  return first === undefined ? 0 : 1 + depthOf(first[6]);
};

test.for([
  ['no JSON', '{', []],
  ['another value', '{"a":1}', []],
  ['a tuple that is too short', '[["s","GET"]]', []],
  ['a name with a space', '[["a b","GET","",500,1,null,[]]]', []],
  ['a status of another type', '[["s","GET","","500",1,null,[]]]', []],
  ['a code that is no name', '[["s","GET","",500,1,"<b> secret",[]]]', []],
  ['too many bytes', JSON.stringify([...Array(200)].map(() => ['s', 'GET', '', 500, 1, null, []])), []],
  ['one good call among others', '[7,["s","GET","",500,1,null,[]],null]', [['s', 'GET', '', 500, 1, null, []]]],
] as const)('what is malformed in the header of an answer is dropped: %s', async ([, header, below]) => {
  const log = createRecorder();
  const app = createApp({ logger: log, settings: { SERVICE_CONNECTIONS: [`other=${await foreign(header)}`] } }, 'a');
  expectFailures(app, 500).get('/', async (ctx) => (await ctx.service('other').get('/')).body as object);
  await fetch((await serve(app)).url);
  const [line] = lines(log, 'request failed');
  expect(line?.object['calls']).toEqual([['other', 'GET', '', 500, MS, 'framework_error_unspecified', below]]);
});

test('what is deeper than eight levels is dropped', async () => {
  const log = createRecorder();
  const header = JSON.stringify(nested(30));
  const app = createApp({ logger: log, settings: { SERVICE_CONNECTIONS: [`other=${await foreign(header)}`] } }, 'a');
  expectFailures(app, 500).get('/', async (ctx) => (await ctx.service('other').get('/')).body as object);
  await fetch((await serve(app)).url);
  expect(depthOf(lines(log, 'request failed')[0]?.object['calls'])).toBe(9);
});

test('of many calls the slowest and the failed are kept, in at most 2 KiB, and the line still names the leaf', async () => {
  const [a, b, c] = await chain(['a', 'b', 'c'], (ctx) => {
    if (ctx.query.has('fail')) throw new Error('boom');
    return {};
  }, async (ctx, next) => {
    if (next === 'b') return (await ctx.service(next).get('/')).body;
    for (let i = 0; i < 100; i += 1) await ctx.service(next).get('/');
    await ctx.service(next).get('/', { query: { fail: 1 } });
    return {};
  });
  for (const link of [a, b, c]) expectFailures((link as Link).app, 500);
  const response = await fetch(`${b?.url}/`, { headers: { 'user-agent': 'a/1 postern/1' } });
  const header = response.headers.get('x-postern-calls') as string;
  expect(header.length).toBeLessThanOrEqual(2048);
  const calls = JSON.parse(header) as unknown[][];
  expect(calls.length).toBeLessThanOrEqual(32);
  expect(calls.filter(([, , , status]) => status === 500)).toEqual([['c', 'GET', '', 500, MS, UNKNOWN, []]]);
  await fetch(`${a?.url}/`);
  expect(JSON.stringify(callsOf(a))).toContain('["c","GET","",500,');
});

test.for([
  ['the header x-postern-scope', {}, { 'x-postern-scope': 'public' }],
  ["scope: 'public'", { scope: 'public' }, {}],
] as const)('with %s no reply has the header, whoever set it', async ([, listen, sent]) => {
  const { url: leaf } = await serve(expectFailures(createApp({}, 'c'), 500).get('/', () => { throw new Error('x'); }));
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`c=${leaf}`] } }, 'b');
  expectFailures(app, 500);
  const headers = { 'X-Postern-Calls': '[]' };
  app.group('', { public: true }, (open) => {
    open.get('/failing', async (ctx) => (await ctx.service('c').get('/')).body as object);
    open.get('/reply', () => reply({}, { headers }));
    open.get('/stream', () => reply((async function* () { yield 'x'; })(), { headers }));
    open.get('/raw', (ctx) => void ctx.raw.res.writeHead(200, headers).end());
    open.get('/raw-failing', async (ctx) => {
      await ctx.service('c').get('/').catch(() => undefined);
      ctx.raw.res.writeHead(500).end();
    });
    open.get('/set', (ctx) => {
      ctx.raw.res.setHeader('x-postern-calls', '[]');
      return {};
    });
  });
  const { url } = await app.listen({ host: '127.0.0.1', port: 0, ...listen });
  for (const path of ['/failing', '/reply', '/stream', '/raw', '/raw-failing', '/set', '/nowhere']) {
    const response = await fetch(url + path, { headers: { 'user-agent': 'a/1 postern/1', ...sent } });
    expect([path, response.headers.has('x-postern-calls')]).toEqual([path, false]);
  }
});

test('a call ends before the deadline of its request, so that the story of a hanging service arrives', async () => {
  const hang = (ctx: Context): unknown => new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
  const links = await chain(['a', 'b', 'c'], hang);
  expectFailures((links[0] as Link).app, 504);
  expectFailures((links[1] as Link).app, 504);
  const response = await fetch(`${links[0]?.url}/`, { headers: { 'x-envoy-expected-rq-timeout-ms': '4000' } });
  expect(response.status).toBe(504);
  const toC = ['c', 'GET', '', 504, MS, expect.any(String), []];
  expect(callsOf(links[0])).toEqual([['b', 'GET', '', 504, MS, expect.any(String), [toC]]]);
  await expect.poll(() => lines((links[2] as Link).log, 'request slow').length).toBe(1);
});

test('after ten lines in a second the rest are left out, and one line says how many', async () => {
  const log = createRecorder();
  const app = expectFailures(createApp({ logger: log }, 'a'), 500).get('/', () => { throw new Error('x'); });
  const { port } = await serve(app);
  const requests = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(60);
  await rawRequest(port as number, `${requests}GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  const leftOut = (): number => lines(log, 'more requests failed')
    .reduce((sum, { object }) => sum + Number(object['left_out']), 0);
  await expect.poll(() => lines(log, 'request failed').length + leftOut(), { timeout: 10_000 }).toBe(61);
  expect(leftOut()).toBeGreaterThan(0);
});

/** What the last service of a chain of four does, and how the others call it. */
const CHAINS: readonly {
  readonly title: string;
  readonly leaf: (ctx: Context) => unknown;
  readonly call?: (ctx: Context, next: string) => Promise<unknown>;
  readonly status?: number;
}[] = [
  { title: 'throws', leaf: () => { throw new Error('x'); } },
  { title: 'is unavailable, and each call has retries', leaf: () => reply({}, { status: 503 }), status: 503,
    call: async (ctx, next) => (await ctx.service(next).get('/', { retry: 2 })).body },
  { title: 'fails in its stream', status: 503, leaf: async function* () {
    yield 'begun';
    throw new Error('x');
  } },
  { title: 'fails after each service made a hundred calls', leaf: (ctx) => {
    if (ctx.query.has('fail')) throw new Error('x');
    return {};
  }, call: async (ctx, next) => {
    if (next === 'd') for (let i = 0; i < 100; i += 1) await ctx.service(next).get('/');
    return (await ctx.service(next).get('/', { query: { fail: 1 } })).body;
  } },
];

test.for(CHAINS)('the line of the first of four services names the last one, which $title', async (row) => {
  const { leaf, call, status = 500 } = row;
  const links = await chain(['a', 'b', 'c', 'd'], leaf, call);
  // A stream that breaks off is a 500 in its own service, and a 503 for its caller.
  const isStream = status === 503 && call === undefined;
  for (const [i, { app }] of links.entries()) expectFailures(app, isStream && i === 3 ? 500 : status);
  const url = links[0]?.url as string;
  for (let i = 0; i < 5; i += 1) await (await fetch(url)).arrayBuffer();
  const [first] = links;
  const trees = lines((first as Link).log, 'request failed').map(({ object }) => object['calls']);
  expect(trees.length).toBe(5);
  for (const tree of trees) expect(leafNameOf(tree)).toBe('d');
});

/** The service that was called last on the failing way down. */
function leafNameOf(calls: unknown): string {
  const list = calls as [string, string, string, number, number, string, unknown][];
  const failed = list.findLast(([, , , status]) => status >= 500);
  if (failed === undefined) return '';
  return leafNameOf(failed[6]) || failed[0];
}
