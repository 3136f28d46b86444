/**
 * A `Response` is sent as that response, whatever copy of Fetch it comes from, and with headers that fit what is sent.
 *
 * @module-tag package
 */

import { createRequire } from 'node:module';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { reply, type Postern } from 'postern';
import { startPeer } from '../support/peer.js';
import { Realm } from '../support/realm.js';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';
import { WireConnection, type WireResponse } from '../support/strict-client.js';

interface Init {
  readonly status?: number;
  readonly statusText?: string;
  readonly headers?: Record<string, string>;
}

/** One implementation of Fetch. */
interface Copy {
  fetch(url: string, init?: { method: string }): Promise<object>;
  readonly Response: new (body?: string | Buffer | null, init?: Init) => object;
}

// By `require`: the types of these packages would declare those of browsers for all tests.
const require = createRequire(import.meta.url);
const undici = require('undici') as Copy;
const nodeFetch2 = require('node-fetch-2') as Copy['fetch'] & Pick<Copy, 'Response'>;
const nodeFetch3 = require('node-fetch') as { readonly default: Copy['fetch'] } & Pick<Copy, 'Response'>;

const COPIES: Readonly<Record<string, Copy>> = {
  'the global one': { fetch: (url, init) => fetch(url, init), Response: Response as unknown as Copy['Response'] },
  undici,
  'node-fetch 2': { fetch: nodeFetch2, Response: nodeFetch2.Response },
  'node-fetch 3': { fetch: nodeFetch3.default, Response: nodeFetch3.Response },
  '@whatwg-node/fetch': require('@whatwg-node/fetch') as Copy,
  'undici in another realm': new Realm().require('undici') as Copy,
};
const names = Object.keys(COPIES);
const copyOf = (name: string): Copy => COPIES[name] as Copy;

/** Both replies to two requests on one connection, which the first one has to leave open. */
async function askTwice(app: Postern, method = 'GET'): Promise<[WireResponse, WireResponse]> {
  const { port } = await serve(app);
  const client = await WireConnection.open(port);
  onTestFinished(() => client.destroy());
  const replies: WireResponse[] = [];
  for (const _ of [1, 2]) {
    await client.write(`${method} / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip, br\r\n\r\n`);
    const response = await client.finalResponse(method);
    if (response === null) throw new Error('the connection was closed without a reply');
    replies.push(response);
  }
  return replies as [WireResponse, WireResponse];
}

const TEXT = 'grüß dich, '.repeat(500);

/** Replies of the service that is asked, each with what a client gets when the reply is passed on. */
const UPSTREAM: Readonly<Record<string, {
  readonly listener: (req: IncomingMessage, res: ServerResponse) => unknown;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body: string;
}>> = {
  'a text with its length': {
    listener: (_req, res) => res.setHeader('content-type', 'text/plain').setHeader('x-own', '1').end(TEXT),
    headers: { 'content-type': 'text/plain', 'x-own': '1' },
    body: TEXT,
  },
  'JSON in chunks': {
    listener: (_req, res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).write('{"a":');
      res.end('1}');
    },
    headers: { 'content-type': 'application/json' },
    body: '{"a":1}',
  },
  'an error': {
    listener: (_req, res) => res.writeHead(404, { 'content-type': 'text/html' }).end('<p>nobody</p>'),
    status: 404, headers: { 'content-type': 'text/html' }, body: '<p>nobody</p>',
  },
  'a 204': { listener: (_req, res) => res.writeHead(204).end(), status: 204, body: '' },
  'an empty body': { listener: (_req, res) => res.writeHead(200, { 'content-length': 0 }).end(), body: '' },
  'gzip with its length': {
    listener: (_req, res) => {
      const zipped = gzipSync(TEXT);
      res.writeHead(200, { 'content-encoding': 'gzip', 'content-length': zipped.length }).end(zipped);
    },
    headers: { 'content-encoding': undefined }, body: TEXT,
  },
  'gzip in chunks': {
    listener: (_req, res) => {
      const zipped = gzipSync(TEXT);
      res.writeHead(200, { 'content-encoding': 'gzip' }).write(zipped.subarray(0, 20));
      res.end(zipped.subarray(20));
    },
    headers: { 'content-encoding': undefined }, body: TEXT,
  },
  'brotli with its length': {
    listener: (_req, res) => {
      const zipped = brotliCompressSync(TEXT);
      res.writeHead(200, { 'content-encoding': 'br', 'content-length': zipped.length }).end(zipped);
    },
    headers: { 'content-encoding': undefined }, body: TEXT,
  },
  'connection: close': {
    listener: (_req, res) => res.setHeader('connection', 'close').end('last'),
    headers: { connection: 'keep-alive' }, body: 'last',
  },
  'headers of its connection': {
    listener: (_req, res) =>
      res.writeHead(200, {
        connection: 'close, x-hop', 'x-hop': '1', 'keep-alive': 'timeout=1, max=1', upgrade: 'h2c', 'x-own': '1',
      }).end('hop'),
    headers: { connection: 'keep-alive', 'x-hop': undefined, upgrade: undefined, 'x-own': '1' }, body: 'hop',
  },
  'two cookies': {
    listener: (_req, res) =>
      res.writeHead(200, { 'set-cookie': ['a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT', 'b=2'] }).end('cookies'),
    body: 'cookies',
  },
};

describe.for(names)('fetch of %s', (name) => {
  test.for(Object.keys(UPSTREAM))('passes on %s, and keeps the connection', async (what) => {
    const { listener, status = 200, headers = {}, body } = UPSTREAM[what] as (typeof UPSTREAM)[string];
    const { url } = await startPeer(listener);
    const [first, second] = await askTwice(createApp().get('/', () => copyOf(name).fetch(url)));
    for (const response of [first, second]) {
      expect([response.status, response.body.toString()]).toEqual([status, body]);
      expect(response.headers).toMatchObject(
        Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)),
      );
      const left = Object.keys(headers).filter((header) => headers[header] === undefined);
      expect(Object.keys(response.headers).filter((header) => left.includes(header))).toEqual([]);
      expect(response.headers['keep-alive']).not.toBe('timeout=1, max=1');
    }
  });

  test('passes on cookies one by one', async () => {
    const { listener } = UPSTREAM['two cookies'] as (typeof UPSTREAM)[string];
    const { url } = await startPeer(listener);
    const response = await createApp().get('/', () => copyOf(name).fetch(url)).request('/');
    expect(response.headers.getSetCookie()).toEqual(['a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT', 'b=2']);
  });

  test('answers HEAD with its status and headers', async () => {
    const { url } = await startPeer((_req, res) => res.writeHead(203, { 'x-own': '1' }).end(TEXT));
    const [first, second] = await askTwice(createApp().get('/', () => copyOf(name).fetch(url)), 'HEAD');
    for (const { status, headers } of [first, second]) expect([status, headers['x-own']]).toEqual([203, '1']);
  });

  test('that it got for a HEAD tells no length, since the length of a decoded body is not known', async () => {
    const { url } = await startPeer((_req, res) => res.setHeader('content-length', TEXT.length).end(TEXT));
    const app = createApp().get('/', () => copyOf(name).fetch(url, { method: 'HEAD' }));
    const [first, second] = await askTwice(app, 'HEAD');
    for (const { status, headers } of [first, second])
      expect([status, headers['content-length']]).toEqual([200, undefined]);
  });

  test.for(['in middleware that returns it', 'in place of the reply of next()'])('%s is that response', async (how) => {
    const { url } = await startPeer((_req, res) => res.writeHead(203, { 'x-own': '1' }).end('made'));
    const app = createApp().use(async (_ctx, next) => {
      if (how !== 'in middleware that returns it') await next();
      return copyOf(name).fetch(url);
    });
    const response = await app.get('/', () => 'inner').request('/');
    expect([response.status, response.headers.get('x-own'), await response.text()]).toEqual([203, '1', 'made']);
  });

  test('is given up when the client disconnects', async () => {
    let isClosed = false;
    const { url } = await startPeer((_req, res) => {
      res.once('close', () => (isClosed = true)).write('begun');
    });
    const { port } = await serve(createApp().get('/', () => copyOf(name).fetch(url)));
    const client = await WireConnection.open(port);
    await client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => client.rest.toString()).toContain('begun');
    await client.destroy();
    await expect.poll(() => isClosed).toBe(true);
  });
});

describe.for(names)('a Response of %s made by hand', (name) => {
  const { Response: Made } = copyOf(name);
  test.for<[string, () => object, number, string, Record<string, string>]>([
    ['a text', () => new Made('made', { status: 203, headers: { 'x-own': '1' } }), 203, 'made', { 'x-own': '1' }],
    ['no body', () => new Made(null, { status: 204, headers: { 'x-own': '1' } }), 204, '', { 'x-own': '1' }],
    ['a status of an error', () => new Made('no', { status: 418 }), 418, 'no', {}],
    ['a content type', () => new Made('{}', { headers: { 'content-type': 'application/json' } }), 200, '{}',
      { 'content-type': 'application/json' }],
  ])('is sent with %s', async ([, create, status, body, headers]) => {
    const app = createApp().get('/', create).get('/later', async () => create());
    for (const path of ['/', '/later']) {
      const response = await app.request(path);
      expect([response.status, await response.text()]).toEqual([status, body]);
      expect(Object.fromEntries(response.headers)).toMatchObject(headers);
    }
  });

  test('keeps its content-encoding: its body was not decoded', async () => {
    const zipped = gzipSync(TEXT);
    const app = createApp().get('/', () => new Made(zipped, { headers: { 'content-encoding': 'gzip' } }));
    const [{ headers, body }] = await askTwice(app);
    expect([headers['content-encoding'], body.equals(zipped)]).toEqual(['gzip', true]);
  });

  test('whose body fails before its first byte is a 500, with the reason in the log', async () => {
    const logger = createRecorder();
    const broken = (): Readable => new Readable({ read() { this.destroy(new Error('the source failed')); } });
    // node-fetch takes streams of Node.js only, the other copies take those of the web.
    const body = (): never => (name.startsWith('node-fetch') ? broken() : Readable.toWeb(broken())) as never;
    const app = expectFailures(createApp({ logger }), 500).get('/', () => new Made(body()));
    expect((await app.request('/')).status).toBe(500);
    expect(logger.entries).toMatchObject([{ level: 'error', message: 'request failed' }]);
    expect(String(logger.entries[0]?.object['err'])).toContain('the source failed');
  });

  test('whose body was read is a 500, with the remedy in the log', async () => {
    const logger = createRecorder();
    const app = createApp({ logger }).get('/', async () => {
      const made = new Made('made') as Response;
      await made.text();
      return made;
    });
    // @whatwg-node/fetch keeps a text, however often it is read.
    if (name.startsWith('@whatwg')) return void expect(await (await app.request('/')).text()).toBe('made');
    expectFailures(app, 500);
    expect((await app.request('/')).status).toBe(500);
    expect(String(logger.entries[0]?.object['err'])).toContain('GET /: the body of the Response was read already; use');
  });

  test('cannot be the body of a reply', async () => {
    const app = expectFailures(createApp(), 500).get('/', () => reply(new Made('made')));
    expect((await app.request('/')).status).toBe(500);
  });
});

test('the global fetch returns a Response although another package has replaced globalThis.Response', async () => {
  const { url } = await startPeer((_req, res) => res.writeHead(203, { 'x-own': '1' }).end('made'));
  const app = createApp().get('/', () => fetch(url)).get('/made', () => new undici.Response('made', { status: 203 }));
  const client = fetch;
  const { url: own } = await serve(app);
  vi.stubGlobal('Response', undici.Response);
  onTestFinished(() => void vi.unstubAllGlobals());
  for (const path of ['/', '/made']) {
    const response = await client(own + path);
    expect([response.status, await response.text()]).toEqual([203, 'made']);
  }
});

test.for<[string, object]>([
  ['a tag alone', { [Symbol.toStringTag]: 'Response', a: 1 }],
  ['a tag and the data of a Response',
    { [Symbol.toStringTag]: 'Response', status: 201, ok: true, url: 'http://x/', headers: {}, body: 'x' }],
  ['the data of a Response', { status: 201, statusText: '', ok: true, url: 'http://x/', headers: {}, body: 'x' }],
])('an object with %s is sent as JSON', async ([, value]) => {
  const response = await createApp().get('/', () => value).request('/');
  expect([response.status, await response.json()]).toEqual([200, JSON.parse(JSON.stringify(value))]);
});

describe('ctx.service(…).fetch()', () => {
  test.for(['a text with its length', 'JSON in chunks', 'connection: close', 'headers of its connection'])(
    'passes on %s, and keeps the connection',
    async (what) => {
      const { listener, headers = {}, body } = UPSTREAM[what] as (typeof UPSTREAM)[string];
      const { url } = await startPeer(listener);
      const app = createApp({ settings: { SERVICE_CONNECTIONS: [`billing=${url}`] } });
      const replies = await askTwice(app.get('/', (ctx) => ctx.service('billing').fetch('/')));
      for (const response of replies) {
        expect([response.status, response.body.toString()]).toEqual([200, body]);
        for (const [header, value] of Object.entries(headers)) expect(response.headers[header]).toBe(value);
        expect(response.headers['keep-alive']).not.toBe('timeout=1, max=1');
      }
    },
  );

  test('passes on a stream, and ends the call when the client disconnects', async () => {
    let isClosed = false;
    const { url } = await startPeer((_req, res) => {
      res.once('close', () => (isClosed = true)).write('begun');
    });
    const app = createApp({ settings: { SERVICE_CONNECTIONS: [`billing=${url}`] } });
    const { port } = await serve(app.get('/', (ctx) => ctx.service('billing').fetch('/')));
    const client = await WireConnection.open(port);
    await client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => client.rest.toString()).toContain('begun');
    await client.destroy();
    await expect.poll(() => isClosed).toBe(true);
  });
});

test.for(names)('a stand-in for a service may answer with a Response of %s', async (name) => {
  const { Response: Copied } = copyOf(name);
  const answer = (): Response => new Copied('{"a":1}', {
    status: 201, headers: { 'content-type': 'application/json', 'x-own': '1' },
  }) as Response;
  const app = createApp({ services: { billing: answer } });
  app.get('/', async (ctx) => {
    const { status, headers, body } = await ctx.service('billing').get('/');
    return { status, own: headers.get('x-own'), body };
  });
  const response = await app.request('/');
  expect(await response.json()).toEqual({ status: 201, own: '1', body: { a: 1 } });
});
