/**
 * Advisories about headers that take long to read.
 *
 * @module-tag slow
 */

import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { cpuMs } from '../support/growth.js';
import { startPeer, startRawPeer } from '../support/peer.js';
import { get, rawRequest } from '../support/raw.js';
import { createApp, expectFailures, serve } from '../support/serve.js';

const PIECES = [
  ' ', '\t', ',', ';', '"', '\\', '=', 'a', '-', '+', ';q=', ', ', '",', '"\\', ' ;q=" ', 'a=1,', 'a/b;q=0.1, ',
  '10.0.0.1,', '::ffff:', '100-continue ',
  '%20',
];
const ENDS: readonly (readonly [string, string])[] = [
  ['', ''],
  ['a', 'b'],
  ['', '!'],
  ['', '10.0.0.1'],
  ['"', ''],
  ['application/json', ';'],
  [
    '00-12345678901234567890123456789012-1234567890123456-01',
    'x',
  ],
];
/** Values of a length, each of another shape. */
const SHAPES = PIECES.flatMap((piece) =>
  ENDS.map(([start, end]) => ({ value: (length: number) => start + piece.repeat(length / piece.length) + end })),
);
/** Of the values of a request, in characters. */
const LENGTH = 16_000;
/** Of the values of an answer; as many again still fit into the largest head that a call takes. */
const ANSWER_LENGTH = 7_500;
/** Linear work on twice the length takes less, in ms of CPU time, its request and its reply included. */
const LINEAR_MS = 20;

/**
 * Fails if work on twice the length takes far more than twice the CPU time: noise only ever adds, so the fastest of
 * several runs counts.
 */
async function expectLinear(what: string, length: number, work: (length: number) => Promise<unknown>): Promise<void> {
  const fastest = { once: Infinity, twice: Infinity };
  const measure = async (which: keyof typeof fastest): Promise<void> => {
    const startedMs = cpuMs();
    await work(which === 'once' ? length : 2 * length);
    fastest[which] = Math.min(fastest[which], cpuMs() - startedMs);
  };
  for (let run = 0; run < 12; run += 1) {
    await measure('twice');
    if (fastest.twice < LINEAR_MS) return;
    await measure('once');
    if (fastest.twice < 3.5 * fastest.once) return;
  }
  expect.fail(`${what}: ${fastest.once} ms for ${length}, ${fastest.twice} ms for twice as much`);
}

const TRACEPARENT = 'Traceparent: 00-12345678901234567890123456789012-1234567890123456-01\r\n';

/** Requests, each with `«»` where its hostile value goes. */
const REQUESTS: readonly (readonly [what: string, line: string, fields: string])[] = [
  ['Accept', 'GET /users/metrics/', 'Accept: «»'],
  ['Accept-Encoding', 'GET /users/metrics/', 'Accept-Encoding: «»'],
  ['Authorization', 'GET /', 'Authorization: «»'],
  ['Baggage', 'GET /call', 'Baggage: «»'],
  ['Connection', 'GET /', 'Connection: «»'],
  ['Content-Encoding', 'POST /json', 'Content-Encoding: «»'],
  ['Content-Length', 'POST /json', 'Content-Length: «»'],
  ['Content-Type of JSON', 'POST /json', 'Content-Type: «»'],
  ['Content-Type of a form', 'POST /form', 'Content-Type: «»'],
  ['Cookie', 'GET /', 'Cookie: «»'],
  ['Expect', 'POST /json', 'Expect: «»'],
  ['Forwarded', 'GET /', 'Forwarded: «»'],
  ['Host', 'GET /', 'Host: «»'],
  ['host in the target', 'GET http://«»/', ''],
  ['If-None-Match', 'GET /', 'If-None-Match: «»'],
  ['Range', 'GET /', 'Range: «»'],
  ['Traceparent', 'GET /call', 'Traceparent: «»'],
  ['Tracestate', 'GET /call', `${TRACEPARENT}Tracestate: «»`],
  ['Transfer-Encoding', 'POST /json', 'Transfer-Encoding: «»'],
  ['Upgrade', 'GET /', 'Upgrade: «»'],
  ['X-Envoy-Expected-Rq-Timeout-Ms', 'GET /', 'X-Envoy-Expected-Rq-Timeout-Ms: «»'],
  ['X-Forwarded-For', 'GET /', 'X-Forwarded-For: «»'],
  ['X-Request-Id', 'GET /', 'X-Request-Id: «»'],
];
test.for(REQUESTS)(
  'a hostile %s is read in time linear to its length, and holds up no other request (CVE-2025-25200)',
  async ([what, line, fields]) => {
    const peer = await startPeer((_req, res) => res.end('answer'));
    const app = createApp({
      trustProxy: ['127.0.0.1', '10.0.0.0/8', '::/0'],
      maxHeaderSize: 3 * LENGTH,
      settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] },
    });
    app
      .get('/', (ctx) => `${ctx.ip}${ctx.id}`)
      .post('/json', (ctx) => ctx.json())
      .post('/form', async (ctx) => [...(await ctx.form())])
      .get('/call', async (ctx) => (await ctx.service('peer').get('/')).body);
    // To read them takes longer than to read the header.
    if (line.includes('/metrics/')) app.metrics.clear();
    const { port } = await serve(app);
    if (what === 'Transfer-Encoding') {
      // Some versions of Node.js refuse all hostile values themselves, with a 400.
      const coded = `${line} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n`;
      expect((await rawRequest(port, coded)).status).toBe(501);
      expectFailures(app, 501);
    }
    const others = ['Host: x', 'Connection: close', 'Content-Length: 2'].filter((field) => {
      const [name = ''] = field.split(':');
      return !fields.startsWith(name) && !(fields.startsWith('Transfer-Encoding') && name === 'Content-Length');
    });
    const head = [`${line} HTTP/1.1`, ...others, ...(fields === '' ? [] : [fields])].join('\r\n');
    for (const { value } of SHAPES) {
      await expectLinear(`${what}, ${value(40)}`, LENGTH, (length) => {
        const bytes = `${head.replace('«»', () => value(length))}\r\n\r\n{}`;
        return new Promise((resolve) => {
          const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
          socket.on('error', () => undefined).once('data', () => socket.destroy()).once('close', resolve);
        });
      });
    }
    expect((await rawRequest(port, get('/users/ping/'))).status).toBe(200);
  },
);

test.for(['Retry-After', 'Content-Type', 'Content-Encoding', 'Connection', 'Keep-Alive', 'Set-Cookie'])(
  'a hostile %s of an answer holds up no call (CVE-2025-25200)',
  async (name) => {
    let field = '';
    const peer = await startRawPeer(() => `HTTP/1.1 503 x\r\n${field}content-length: 2\r\n\r\n{}`);
    const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } });
    const call = (): Promise<unknown> => app.service('peer').get('/').catch((error: unknown) => error);
    for (const { value } of SHAPES) {
      await expectLinear(`${name}, ${value(40)}`, ANSWER_LENGTH, (length) => {
        field = `${name}: ${value(length)}\r\n`;
        return call();
      });
    }
    field = '';
    expect(await call()).toMatchObject({ statusCode: 503, description: 'peer answered 503' });
  },
);

test('a hostile Connection of a call is read in time linear to its length (CVE-2025-25200)', async () => {
  const peer = await startPeer((_req, res) => res.end('answer'));
  const app = createApp({ settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] } });
  for (const { value } of SHAPES) {
    await expectLinear(value(40), LENGTH, (length) =>
      app.service('peer').get('/', { headers: { connection: value(length) } }).catch((error: unknown) => error),
    );
  }
});
