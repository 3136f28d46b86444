/**
 * Advisories about headers that take long to read.
 *
 * @module-tag slow
 */

import { IncomingMessage, ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Body } from '../../src/answer/body.js';
import { parseTarget } from '../../src/answer/target.js';
import { clientAddress, trustNetworks } from '../../src/answer/client-address.js';
import { Exchange } from '../../src/wire/exchange.js';
import { createHeadCheck } from '../../src/wire/head.js';
import { readBody, readJson, toServiceError, type WholeAnswer } from '../../src/mesh/answer.js';
import { formatHeaders } from '../../src/mesh/request.js';
import { readDeadlineHeader, requestId } from '../../src/propagation/mesh-headers.js';
import { beginRequestSpan, traceHeaders } from '../../src/propagation/trace-context.js';
import { acceptsGzip, negotiateFormat } from '../../src/monitor/metrics-text.js';
import { cpuMs } from '../support/growth.js';
import { startPeer, startRawPeer } from '../support/peer.js';
import { get, rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

const PIECES = [
  ' ', '\t', ',', ';', '"', '\\', '=', 'a', '-', '+', ';q=', ', ', '",', '"\\', ' ;q=" ', 'a=1,', 'a/b;q=0.1, ',
  '10.0.0.1,', '::ffff:', '100-continue ',
  '%20',
];
const ENDS: readonly (readonly [string, string])[] = [
  ['', ''],
  ['', '!'],
  ['', '10.0.0.1'],
  ['a', 'b'],
  ['"', ''],
  ['application/json', ';'],
  [
    '00-12345678901234567890123456789012-1234567890123456-01',
    'x',
  ],
];
const hostile = PIECES.flatMap((piece) =>
  ENDS.map(
    ([start, end]) =>
      (length: number): string =>
        start + piece.repeat(length / piece.length) + end,
  ),
);

/**
 * Fails if work on twice `length` takes far more than twice the CPU time: noise only ever adds, so the fastest of
 * several runs counts.
 */
async function expectLinear(
  what: string,
  length: number,
  floorMs: number,
  work: (length: number) => unknown,
): Promise<void> {
  const fastest = [Infinity, Infinity];
  for (let run = 0; run < 12; run += 1) {
    for (const twice of [0, 1]) {
      const startedMs = cpuMs();
      await work(length * (twice + 1));
      fastest[twice] = Math.min(fastest[twice] as number, cpuMs() - startedMs);
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
const answerWith = (name: string, value: string): WholeAnswer =>
  ({ status: 503, headers: { [name]: value }, body: Buffer.from('{}') });
const CALLEE = { service: 'b', method: 'GET', path: '/' };
const attempt = (work: () => unknown): unknown => {
  try {
    return work();
  } catch {
    return undefined;
  }
};
const CARRIER = { watch(): void {}, endsWith: (): boolean => false, replace(): void {}, dismiss(): void {} };
const bodyOf = (name: string, value: string): Body => {
  const req = requestWith(name, value);
  return new Body(new Exchange(req, new ServerResponse(req), CARRIER, false, null), 10, 10);
};
const isTrusted = trustNetworks(['10.0.0.0/8', '127.0.0.1', '::/0']);
const READERS: Record<string, (value: string) => unknown> = {
  'accept': (value) => negotiateFormat(value),
  'accept-encoding': (value) => acceptsGzip(value),
  'connection, of a call': (value) => attempt(() => formatHeaders([{ connection: value }], 'GET', undefined)),
  'content-encoding': (value) => bodyOf('content-encoding', value).bytes().catch(() => undefined),
  'content-encoding, of an answer': (value) => attempt(() => readBody(CALLEE, answerWith('content-encoding', value))),
  'content-type, for a form': (value) => bodyOf('content-type', value).form().catch(() => undefined),
  'content-type, for JSON': (value) => bodyOf('content-type', value).json().catch(() => undefined),
  'content-type, of an answer': (value) => readJson(answerWith('content-type', value)),
  'host': (value) => attempt(() => createHeadCheck(999)(requestWith('host', value))),
  'host, in the target': (value) => attempt(() => parseTarget(`http://${value}`, 'GET')),
  'retry-after, of an answer': (value) => toServiceError(CALLEE, answerWith('retry-after', value)),
  'traceparent': (value) => beginRequestSpan({ traceparent: value }),
  tracestate: (value) => {
    const traceparent = '00-12345678901234567890123456789012-1234567890123456-01';
    return traceHeaders({ traceparent, tracestate: value }, beginRequestSpan({ traceparent }));
  },
  'x-envoy-expected-rq-timeout-ms': (value) => readDeadlineHeader({ 'x-envoy-expected-rq-timeout-ms': value }),
  'x-forwarded-for': (value) =>
    clientAddress({ socket: { remoteAddress: '127.0.0.1' }, headers: { 'x-forwarded-for': value } }, isTrusted),
  'x-request-id': (value) => requestId(requestWith('x-request-id', value)),
};
test.for(Object.entries(READERS))(
  '%s is read in time linear to its length (CVE-2025-25200)',
  async ([header, read]) => {
    for (const [index, make] of hostile.entries()) {
      await expectLinear(`${header}, ${make(20)} (${index})`, 16_000, 8, (length) => read(make(length)));
    }
  },
);

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
test.for(Object.entries(WIRE))(
  'a hostile %s of nearly 16 KiB holds up no other request (CVE-2025-25200)',
  async ([name, request]) => {
    const peer = await startPeer((_req, res) => res.end('answer'));
    const app = createApp({
      trustProxy: ['127.0.0.1', '10.0.0.0/8'],
      settings: { SERVICE_CONNECTIONS: [`peer=${peer.url}`] },
    });
    app
      .get('/', (ctx) => ctx.ip + ctx.id)
      .post('/json', (ctx) => ctx.json())
      .get('/call', async (ctx) => (await ctx.service('peer').get('/')).body);
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
  },
);

test('hostile headers of an answer hold up no call (CVE-2025-25200)', async () => {
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

