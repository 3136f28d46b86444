/** Bodies of every kind, both ways: `body` of the verbs, and `fetch`. */

import { once } from 'node:events';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { ServiceError, type ServiceBody } from 'postern';
import type { ServiceClient } from 'postern';
import { clientOf as clientOfUrl } from '../support/clients.js';
import { readText, startPeer, startRawPeer, type TestServer } from '../support/peer.js';
import { createApp } from '../support/serve.js';

const clientOf = (peer: Pick<TestServer, 'url'>, maxServiceRequests = 1024): ServiceClient =>
  clientOfUrl(peer, { maxServiceRequests });
const startEcho = (): ReturnType<typeof startPeer> =>
  startPeer((req, res) => {
    void readText(req).then((body) =>
      res
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ method: req.method, headers: req.headers, body })),
    );
  });
interface Echo {
  method: string;
  headers: Record<string, string>;
  body: string;
}
async function* words(): AsyncGenerator<string> {
  yield 'one ';
  await new Promise(setImmediate);
  yield 'two';
}

const bodies: { what: string; body: () => ServiceBody; text: string; type: string | undefined; length?: string }[] = [
  { what: 'a string', body: () => 'é', text: 'é', type: 'text/plain;charset=UTF-8', length: '2' },
  { what: 'bytes', body: () => new Uint8Array([104, 105]), text: 'hi', type: 'application/octet-stream', length: '2' },
  { what: 'a Buffer', body: () => Buffer.from('hi'), text: 'hi', type: 'application/octet-stream', length: '2' },
  { what: 'an ArrayBuffer', body: () => new Uint8Array([104, 105]).buffer, text: 'hi', type: 'application/octet-stream',
    length: '2' },
  { what: 'a form', body: () => new URLSearchParams({ a: '1 2', b: 'é' }), text: 'a=1+2&b=%C3%A9',
    type: 'application/x-www-form-urlencoded;charset=UTF-8', length: '14' },
  { what: 'a Blob', body: () => new Blob(['hi'], { type: 'text/csv' }), text: 'hi', type: 'text/csv' },
  { what: 'a Readable', body: () => Readable.from(['one ', 'two']), text: 'one two', type: 'application/octet-stream' },
  { what: 'an async generator', body: words, text: 'one two', type: 'application/octet-stream' },
  { what: 'a ReadableStream', body: () => new Blob(['one ', 'two']).stream() as ReadableStream<Uint8Array>,
    text: 'one two', type: 'application/octet-stream' },
];
for (const verb of ['post', 'delete'] as const) {
  test.for(bodies)(`${verb} sends $what`, async ({ body, text, type, length }) => {
    const answer = await clientOf(await startEcho())[verb]<Echo>('/', { body: body() });
    expect(answer.body).toMatchObject({ method: verb.toUpperCase(), body: text });
    const { headers } = answer.body;
    expect([headers['content-type'], headers['content-length'], headers['transfer-encoding']])
      .toEqual([type, length, length === undefined ? 'chunked' : undefined]);
  });
}

test('a given content type beats that of the body', async () => {
  const { body } = await clientOf(await startEcho()).post<Echo>('/', {
    body: '<a/>',
    headers: { 'content-type': 'text/xml' },
  });
  expect(body.headers['content-type']).toBe('text/xml');
});

test.for<{ what: string; options: object; says: string }>([
  { what: 'json beside body', options: { json: 1, body: 'x' }, says: 'json and body are both given; keep one' },
  { what: 'a body that is a number', options: { body: 7 }, says: 'body is 7; give a string, bytes' },
  { what: 'a body that is a plain object', options: { body: {} }, says: 'body is an object; give a string, bytes' },
  { what: 'json that is a promise', options: { json: Promise.resolve(1) },
    says: 'json is a Promise, which JSON loses; await it first' },
  { what: 'json with a member that JSON loses', options: { json: { items: [{ tags: new Set() }] } },
    says: 'json/items/0/tags is a Set, which JSON loses; give [...set]' },
  { what: 'an unknown option', options: { jsn: {} }, says: 'unknown option "jsn" of post(); did you mean "json"?' },
])('$what is refused before anything is sent', async ({ options, says }) => {
  const peer = await startEcho();
  const sent = clientOf(peer).post('/', options);
  await expect(sent).rejects.toThrow(TypeError);
  await expect(sent).rejects.toThrow(says);
  expect(peer.requests).toHaveLength(0);
});

test.for([{ chunks: [1] }, { chunks: ['x', {}] }])(
  'a stream of $chunks is a TypeError, and its connection is cut',
  async ({ chunks }) => {
    const peer = await startPeer((req) => void readText(req).catch(() => undefined));
    await expect(clientOf(peer).post('/', { body: Readable.from(chunks) })).rejects.toThrow(TypeError);
  },
);

test('what a stream fails with is what the call fails with', async () => {
  const reason = new Error('disk');
  async function* failing(): AsyncGenerator<string> {
    yield 'x';
    throw reason;
  }
  const peer = await startPeer((req) => void readText(req).catch(() => undefined));
  await expect(clientOf(peer).post('/', { body: failing() })).rejects.toBe(reason);
  const destroyed = new Readable({ read() {} });
  const call = clientOf(peer).post('/', { body: destroyed });
  destroyed.destroy();
  await expect(call).rejects.toThrow("the body's stream was destroyed before its end");
});

test('a stream that has ended before the call, and closes later, fails it at once', async () => {
  const source = new Readable({ read() { this.push(null); }, destroy: (_error, done) => void setTimeout(done, 20) });
  source.resume();
  await once(source, 'end');
  const peer = await startPeer((req, res) => void readText(req).then(() => res.end()));
  await expect(clientOf(peer).post('/', { body: source })).rejects.toThrow("the body's stream was destroyed before its end");
});

test('a stream that failed before the call, or fails while headers are awaited, fails it with its error', async () => {
  const peer = await startPeer((req, res) => void readText(req).finally(() => res.end()));
  const headers = (): Promise<Record<string, string>> => new Promise((resolve) => setTimeout(resolve, 50, {}));
  const settings = { SERVICE_CONNECTIONS: [`billing=${peer.url}`] };
  const client = createApp({ connections: { billing: { headers } }, settings }).service('billing');
  const reason = new Error('disk');
  for (const isEarly of [true, false]) {
    const body = new Readable({ read() {} });
    if (isEarly) await once(body.destroy(reason), 'close').catch(() => undefined);
    const call = client.post('/', { body });
    body.destroy(reason);
    await expect(call).rejects.toBe(reason);
  }
  expect(peer.requests).toHaveLength(0);
});

test.for<[what: string, path: string, options: object]>([
  ['without headers', '/', {}],
  ['with a wrong path', 'x', {}],
  ['with a wrong option', '/', { jsn: 1 }],
  ['whose signal has aborted', '/', { signal: AbortSignal.abort() }],
])('a call %s, which is not sent, frees the source of its body', async ([, path, options]) => {
  const headers = (): Promise<never> => Promise.reject(new Error('no token'));
  const app = createApp({ connections: { billing: { headers } } });
  for (const method of ['post', 'fetch'] as const) {
    const body = new Readable({ read() {} });
    await expect(app.service('billing')[method](path, { ...options, body })).rejects.toThrow();
    expect(body.destroyed).toBe(true);
  }
});

test('an answer before the end of a body frees the source of the body', async () => {
  const peer = await startPeer((_req, res) => res.writeHead(413).end());
  const source = new Readable({ read() { setImmediate(() => this.push('x'.repeat(1000))); } });
  await expect(clientOf(peer).post('/', { body: source })).rejects.toMatchObject({ statusCode: 413 });
  if (!source.closed) await once(source, 'close');
});

test('fetch gives a Response for whatever status', async () => {
  const peer = await startPeer((req, res) =>
    res
      .writeHead(Number(req.url?.slice(1)), { 'x-a': ['1', '2'], location: '/' })
      .end(req.method === 'HEAD' ? undefined : 'hi'),
  );
  const client = clientOf(peer);
  for (const status of [200, 302, 404, 503]) {
    const response = await client.fetch(`/${status}`);
    expect([response.status, response.headers.get('x-a'), await response.text()]).toEqual([status, '1, 2', 'hi']);
  }
  for (const [path, method] of [
    ['/204', 'GET'],
    ['/304', 'GET'],
    ['/200', 'head'],
  ] as const)
    expect((await client.fetch(path, { method })).body).toBeNull();
});

test.for<{ what: string; init: object }>([
  { what: 'CONNECT', init: { method: 'CONNECT' } },
  { what: 'a method that is none', init: { method: 'a b' } },
  { what: 'following redirects', init: { redirect: 'follow' } },
  { what: 'an option of fetch that means nothing here', init: { credentials: 'include' } },
])('fetch refuses $what', async ({ init }) => {
  await expect(clientOf(await startEcho()).fetch('/', init)).rejects.toThrow(TypeError);
});

test('fetch streams both ways at once', async () => {
  const peer = await startPeer((req, res) => void req.pipe(res));
  let push: (text: string | undefined) => void = () => undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      push = (text) => (text === undefined ? controller.close() : controller.enqueue(Buffer.from(text)));
    },
  });
  push('ping');
  const response = await clientOf(peer).fetch('/', { method: 'POST', body, duplex: 'half' });
  const reader = response.body?.getReader();
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('ping');
  push('pong');
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('pong');
  push(undefined);
  expect((await reader?.read())?.done).toBe(true);
});

test('fetch reads an answer of any length no faster than it is read', async () => {
  const size = 32 * 1024 * 1024;
  let written = 0;
  const peer = await startPeer((_req, res) => {
    void Readable.from(
      (function* () {
        for (; written < size; written += 65_536) yield Buffer.alloc(65_536);
      })(),
    ).pipe(res);
  });
  const response = await clientOf(peer).fetch('/');
  const reader = response.body?.getReader();
  let read = (await reader?.read())?.value?.length ?? 0;
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(written).toBeLessThan(size);
  for (let chunk = await reader?.read(); chunk?.done === false; chunk = await reader?.read())
    read += chunk.value.length;
  expect(read).toBe(size);
});

test('the timeout of fetch ends with the head', async () => {
  const peer = await startPeer((_req, res) => {
    res.write('slow ');
    setTimeout(() => res.end('body'), 600);
  });
  expect(await (await clientOf(peer).fetch('/', { timeout: 500 })).text()).toBe('slow body');
  const silent = await startPeer(() => undefined);
  await expect(clientOf(silent).fetch('/', { timeout: 50 })).rejects.toMatchObject({ statusCode: 504 });
});

test('a streamed answer that breaks off, or is aborted, fails its reader', async () => {
  const peer = await startRawPeer((chunk, socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc');
    if (chunk.startsWith('GET /broken')) setTimeout(() => socket.destroy(), 20);
    return undefined;
  });
  const broken = await clientOf(peer).fetch('/broken');
  await expect(broken.text()).rejects.toMatchObject({ statusCode: 503, description: 'billing broke off its answer' });
  const abort = new AbortController();
  const aborted = await clientOf(peer).fetch('/open', { signal: abort.signal });
  const text = aborted.text();
  abort.abort('enough');
  await expect(text).rejects.toBe('enough');
});

test('a streamed answer counts as under way until it is read or cancelled', async () => {
  const peer = await startPeer((req, res) => void res.end('x'.repeat(req.url === '/big' ? 1_000_000 : 1)));
  const client = clientOf(peer, 1);
  const big = await client.fetch('/big');
  const refused = await client.get('/').catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ServiceError);
  expect(refused).toMatchObject({ statusCode: 503, description: 'billing has 1 requests in flight, the maximum' });
  await big.text();
  expect((await client.get('/')).status).toBe(200);
  await (await client.fetch('/big')).body?.cancel();
  expect((await client.get('/')).status).toBe(200);
});
