/**
 * Requests with errors in them, sent as bytes over real sockets: each answer is a response, each error has the uniform
 * body, and no handler ever sees a request that the bytes do not hold.
 *
 * What a body carries is itself a request, for a path of its own, so that bytes of a body that are taken for a request
 * show.
 */

import { METHODS } from 'node:http';
import { Postern, type Context } from 'postern';
import { cut, oneIn, several, type Random } from '../support/random.js';
import { assertUniformError, WireConnection, type WireResponse } from '../support/strict-client.js';
import { readStream, type FramedRequest, type FramedStream } from './framing.js';
import { assert, assertSame, type Target } from './target.js';

/** What a handler saw, and what it answers with. */
interface Seen {
  readonly method: string;
  readonly target: string;
  /** As latin1; null where it was not read. */
  body: string | null;
}

const BODY_LIMIT = 4_000;
const CANARY = 'GET /canary HTTP/1.1\r\nHost: x\r\n\r\n';

export const http: Target = {
  name: 'http',
  outcomes: ['clean', 'incomplete', 'malformed', 'closed', 'answered', 'refused', 'in step'],
  async run(random, met) {
    const seen = new Map<number, Seen[]>();
    const app = createApp(seen);
    try {
      const { port } = await app.listen({ host: '127.0.0.1', port: 0 });
      await Promise.all(
        several(random, 20, 20, () => randomStream(random)).map((text) => exchange(random, port, text, seen, met)),
      );
    } finally {
      await app.close({ timeout: 0 });
    }
  },
};

function createApp(seen: Map<number, Seen[]>): Postern {
  const app = new Postern('fuzz', { logger: false, bodyLimit: BODY_LIMIT, attachMonitorEndpoints: false });
  const ignore = (ctx: Context): Seen => {
    const { req } = ctx.raw;
    const one: Seen = { method: ctx.method, target: req.url ?? '', body: null };
    const port = req.socket.remotePort ?? 0;
    seen.set(port, [...(seen.get(port) ?? []), one]);
    return one;
  };
  const read = async (ctx: Context): Promise<Seen> => {
    const one = ignore(ctx);
    one.body = Buffer.from(await ctx.bytes()).toString('latin1');
    return one;
  };
  for (const method of METHODS) {
    if (method === 'CONNECT' || method === 'HEAD') continue;
    app.route('/', { [method]: read });
    app.route('/ignored/*rest', { [method]: ignore });
    app.route('/*rest', { [method]: read });
  }
  return app;
}

/** Sends a stream, and compares what comes back, and what handlers saw, with what the stream holds. */
async function exchange(
  random: Random,
  port: number,
  text: string,
  seen: ReadonlyMap<number, readonly Seen[]>,
  met: (outcome: string) => void,
): Promise<void> {
  const stream = readStream(text);
  const connection = await WireConnection.open(port);
  const localPort = connection.socket.localPort ?? 0;
  const responses: WireResponse[] = [];
  try {
    await connection.write(...cut(random, Buffer.from(text, 'latin1'), 5));
    await checkResponses(connection, text, stream, responses, met);
    if (stream.end !== 'lost') checkSeen(seen.get(localPort) ?? [], stream);
  } catch (error) {
    const answers = responses.map(({ status, headers, body }) => [
      status,
      headers['connection'],
      body.toString('latin1').slice(0, 300),
    ]);
    throw new Error(
      `${JSON.stringify(text)} holds ${JSON.stringify(stream)}; answered with ${JSON.stringify(answers)}; seen: ${JSON.stringify(seen.get(localPort))}`,
      { cause: error },
    );
  } finally {
    await connection.destroy();
  }
  met(stream.end);
}

async function checkResponses(
  connection: WireConnection,
  text: string,
  stream: FramedStream,
  responses: WireResponse[],
  met: (outcome: string) => void,
): Promise<void> {
  const { requests, end } = stream;
  const read = async (method: string): Promise<WireResponse | null> => {
    const response = await connection.finalResponse(method);
    if (response !== null) responses.push(response);
    return response;
  };
  for (const request of requests) {
    if (request.body === null && end === 'incomplete') connection.end();
    const response = await read(request.method);
    if (response === null) {
      assert(request.body === null || end === 'lost', 'a request without an answer');
      met('broken off');
      return;
    }
    checkAnswer(request, response);
    met(response.status >= 400 ? 'refused' : 'answered');
    if (response.headers['connection'] === 'close') {
      await assertEnd(connection, request.method === 'HEAD' ? response : undefined);
      return;
    }
    // What is left of a request that broke off is told once.
    if (request.body === null) {
      await assertEnd(connection);
      return;
    }
  }
  if (end === 'lost') return;
  assert(end !== 'closed', 'a connection was kept that was to be closed');
  if (end === 'clean') {
    await connection.write('GET /in-step HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    const response = await read('GET');
    assertSame(
      [response?.status, response?.body.toString()],
      [200, JSON.stringify({ method: 'GET', target: '/in-step', body: '' })],
      'the answer behind all others',
    );
    met('in step');
    return;
  }
  if (end === 'incomplete') connection.end();
  // HEAD has an answer without a body, also where the rest of its line is wrong.
  const before = requests.at(-1)?.body ?? '';
  const isHead = /(?:^|[\r\n\0])HEAD /.test(text) || (before !== '' && text.includes(`${before}HEAD `));
  const response = await read(isHead ? 'HEAD' : 'GET');
  if (response !== null) checkAnswer(null, response, isHead ? 'HEAD' : 'GET');
  await assertEnd(connection, isHead && response !== null ? response : undefined);
}

/** @throws unless the server has closed, and sent nothing more */
async function assertEnd(connection: WireConnection, head?: WireResponse): Promise<void> {
  connection.end();
  if (head !== undefined) {
    // What could not be parsed is answered with a body: nobody knows that it was HEAD.
    await connection.closed;
    if (connection.rest.length > 0) assertUniformError({ ...head, body: connection.rest });
    return;
  }
  const more = await connection.response();
  assert(more === null && connection.rest.length === 0, 'there is more behind the last answer', more?.status);
}

/** An answer is a handler's to exactly this request, or an error; null for what was not even a head. */
function checkAnswer(request: FramedRequest | null, response: WireResponse, asked = request?.method): void {
  if (response.status >= 400) {
    assertUniformError(response, asked);
    if (request === null || !mustServe(request)) return;
  }
  assert(request !== null, `no request, and the answer ${response.status}`);
  if (request.method === 'OPTIONS' && request.target === '*' && response.status === 204) return;
  assertSame(response.status, 200, `the status of ${request.method} ${request.target}`);
  if (request.method === 'HEAD') return;
  const { method, target, body } = request;
  const isIgnored = /^(?:[Hh][Tt][Tt][Pp][Ss]?:\/\/[^/]*)?\/ignored\/./.test(
    decodeURIComponent(target.split('?', 1)[0] ?? ''),
  );
  assertSame(
    JSON.parse(response.body.toString()),
    { method, target, body: isIgnored ? null : body },
    'what the handler saw',
  );
}

/** Whether nothing is wrong with a request, and nothing about it is out of the ordinary. */
function mustServe(request: FramedRequest): boolean {
  const { method, target, body, fields, isDubious, version } = request;
  const hosts = fields.filter(([name]) => name === 'host').map(([, value]) => value);
  const isPlain =
    /^\/[A-Za-z0-9/._~-]*(?:\?[A-Za-z0-9=&]*)?$/.test(target) &&
    method !== 'CONNECT' &&
    !isDubious &&
    body !== null &&
    body.length <= BODY_LIMIT;
  const hasHost =
    hosts.length === 0 ? version === '1.0' : hosts.length === 1 && /^[A-Za-z0-9.-]+(?::\d{1,5})?$/.test(hosts[0] ?? '');
  const headLength = fields.reduce((sum, [name, value]) => sum + name.length + value.length, target.length);
  return (
    isPlain &&
    hasHost &&
    headLength < 8_000 &&
    !fields.some(([name]) => name === 'content-encoding' || name === 'expect' || name === 'upgrade') &&
    fields.length < 900
  );
}

/** Handlers saw requests of the stream, in their order, as they are. */
function checkSeen(seen: readonly Seen[], { requests }: FramedStream): void {
  let next = 0;
  for (const one of seen) {
    if (one.target === '/in-step') continue;
    const index = requests.findIndex(
      (request, at) =>
        at >= next &&
        request.method === one.method &&
        request.target === one.target &&
        (one.body === null || request.body === null || one.body === request.body),
    );
    assert(index !== -1, 'a handler saw a request that is not there', one);
    next = index + 1;
  }
}

// Random streams.

function randomStream(random: Random): string {
  const text = several(random, 1, 4, () => randomRequest(random)).join('');
  return oneIn(random, 4) ? mutate(random, text) : text;
}

const METHOD_TEXTS = ['GET', 'GET', 'POST', 'POST', 'PUT', 'HEAD', 'DELETE', 'OPTIONS', 'QUERY'];
const ODD_METHODS = [
  'get', 'BREW', '', ' GET', 'GET\t', 'G\u0000T', 'CONNECT', 'PRI', 'M-SEARCH', 'POST /', '\u0016\u0003\u0001',
];
const TARGETS = ['/', '/a', '/a/b', '/a?b=c', '/ignored/a', '/ignored/a', '/a'];
const ODD_TARGETS = [
  '*', 'http://x/a', 'HTTP://x/ignored/a', 'x:80', '//a', '/a#b', '/%zz', '/%', '/\u007f', '/é', '', 'a', '/a b',
  '/a\tb', 'http://', `/${'a'.repeat(9_000)}`, '/a\r\n', '/\u0000',
];
const ODD_VERSIONS = [
  'HTTP/1.0', 'HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/0.9', 'HTTP/9.9', 'http/1.1', 'HTTP/1.1 ', 'HTTP/1.10',
  'HTTP/11', 'HTTP/1', 'HTTP/ 1.1', '', 'ICE/1.0', 'HTTP/1.1\t',
];
const ODD_FIELDS = [
  'Host: y', 'Host: a@b', 'Host:', 'Connection: close', 'Connection: keep-alive', 'Connection: x, Close',
  'Connection: upgrade\r\nUpgrade: websocket', 'Upgrade: h2c', 'Expect: 100-continue', 'Expect: magic',
  'A : b', ' A: b', 'A: b\r\n c', 'A: b\r\n\tc', 'A b', 'A', ': b', 'A:', 'A: \u0000', 'A: \r', 'A: a\rb', 'A: \n',
  'A: b\nC: d', 'A\u0000: b', 'é: b', 'A(: b', 'A: é', 'A: \u007f', 'A: \u0001', '__proto__: x',
  'Content-Encoding: gzip',
  'Content-Length: 3', 'Content-Length: +3', 'Content-Length: -1', 'Content-Length: 3, 3', 'Content-Length: 3 3',
  'Content-Length: 0x3', 'Content-Length:', 'Content-Length: 99999999999999999999',
  'Content-Length: 3\r\nContent-Length: 3', 'content-length : 3', 'Content-Length: 3\r\n 3', 'Content-Length: 1e1',
  'Content-Length: ³',
  'Transfer-Encoding: chunked', 'Transfer-Encoding: Chunked', 'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: chunked, gzip', 'Transfer-Encoding: chunked, chunked', 'Transfer-Encoding: identity',
  'Transfer-Encoding: xchunked', 'Transfer-Encoding: chunkedx', 'Transfer-Encoding: "chunked"',
  'Transfer-Encoding: chunked;a=b', 'Transfer-Encoding:\u000bchunked', 'Transfer-Encoding : chunked',
  'Transfer-Encoding:', 'Transfer-Encoding: ,chunked', 'Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding\r\n: chunked', 'Transfer-Encoding: chun\r\n ked', 'X: y\rTransfer-Encoding: chunked',
  'Transfer_Encoding: chunked',
];
const ODD_SIZES = [
  '0x5', '+5', '-5', ' 5', '5 ', '5\t', '', 'g', 'FFFFFFFFFFFFFFFF', '10000000000000005', '5;', '5;a=', '5;=', '5;a="',
  '5;a="b\r\n"', '5;a\u0000', '5;é', '5\n', '5\r', '00000000000000000000005', '5;a =b', '5 ;a', '5_0', '5.0', '5,5',
];
const TRAILERS = [
  'X: y', 'Host: y', 'Content-Length: 5', 'Transfer-Encoding: chunked', 'A b', 'X: y\r\n z', 'X : y', ': y',
  'X: \u0000', CANARY.slice(0, -4),
];

function randomRequest(random: Random): string {
  const method = oneIn(random, 40) ? random.pick(ODD_METHODS) : random.pick(METHOD_TEXTS);
  const target = oneIn(random, 20) ? random.pick(ODD_TARGETS) : random.pick(TARGETS);
  const version = oneIn(random, 30) ? random.pick(ODD_VERSIONS) : 'HTTP/1.1';
  const space = (): string => (oneIn(random, 100) ? random.pick(['  ', '\t', '', '\r\n']) : ' ');
  const fields = oneIn(random, 30) ? [] : [random.pick(['Host: x', 'host:x', 'HOST:  x:80 '])];
  if (oneIn(random, 8)) fields.push(...several(random, 1, 2, () => random.pick(ODD_FIELDS)));
  if (oneIn(random, 40)) fields.push(...Array.from({ length: 1_100 }, () => 'a:'));
  if (oneIn(random, 60)) fields.push(`A: ${'a'.repeat(20_000)}`);
  let body = '';
  const framing = random.int(method === 'GET' ? 8 : 5);
  if (framing < 2) {
    body = randomContent(random);
    const length = oneIn(random, 10) ? Math.max(0, body.length + random.int(40) - 20) : body.length;
    fields.push(
      `${random.pick(['Content-Length', 'content-length'])}:${random.pick([' ', '', '\t'])}${random.pick(['', '', '0'])}${length}`,
    );
  } else if (framing < 4) {
    body = randomChunks(random);
    fields.push(
      `${random.pick(['Transfer-Encoding', 'transfer-encoding'])}: ${random.pick(['chunked', 'chunked', 'CHUNKED'])}`,
    );
  }
  if (oneIn(random, 3)) fields.reverse();
  const line = (): string =>
    oneIn(random, 200) ? random.pick(['\n', '\r', '\n\r', '\r\r\n', '\r\n\r\n', '']) : '\r\n';
  const before = oneIn(random, 20) ? random.pick(['\r\n', '\r\n\r\n', '\n', '\r', ' ', '\u0000']) : '';
  return `${before}${method}${space()}${target}${space()}${version}${line()}${fields.map((field) => `${field}${line()}`).join('')}${line()}${body}`;
}

function randomContent(random: Random): string {
  if (oneIn(random, 30)) return 'a'.repeat(BODY_LIMIT + random.int(3) - 1);
  return several(random, 0, 3, () =>
    random.pick([CANARY, '\r\n', 'abc', '0\r\n\r\n', '\u0000\u00ff', '5\r\nhello\r\n', '\r\n\r\n']),
  ).join('');
}

function randomChunks(random: Random): string {
  const chunk = (content: string): string => {
    const size = oneIn(random, 3) ? content.length.toString(16).toUpperCase() : content.length.toString(16)
      .padStart(random.pick([1, 1, 2, 5]), '0');
    const text = oneIn(random, 30)
      ? random.pick(ODD_SIZES)
      : `${size}${oneIn(random, 8) ? random.pick([';a', ';a=b', ';a="b c"', ';a="\\""', `;a="${'b'.repeat(3_000)}"`]) : ''}`;
    return `${text}\r\n${content}${oneIn(random, 40) ? random.pick(['', '\n', '\r', 'a\r\n', '\r\n\r\n']) : '\r\n'}`;
  };
  const chunks = several(random, 0, 3, () => randomContent(random)).filter((content) => content !== '');
  const trailers = oneIn(random, 8) ? several(random, 1, 2, () => `${random.pick(TRAILERS)}\r\n`) : [];
  const last = oneIn(random, 40)
    ? random.pick(['', '0', '0\r\n', '0\n\n', '00\r\n\r\n', '0;a\r\n\r\n', '-0\r\n\r\n'])
    : `0\r\n${trailers.join('')}\r\n`;
  return `${chunks.map(chunk).join('')}${last}`;
}

/** Flips, drops, repeats and moves bytes. */
function mutate(random: Random, text: string): string {
  let mutated = text;
  for (let count = 1 + random.int(3); count > 0 && mutated !== ''; count -= 1) {
    const at = random.int(mutated.length);
    const end = Math.min(mutated.length, at + 1 + random.int(oneIn(random, 3) ? 40 : 2));
    const slice = mutated.slice(at, end);
    const insert = [
      () => '',
      () => slice + slice,
      () =>
        random.pick(['\r', '\n', '\r\n', ' ', '\t', ':', '\u0000', '\u00ff', '0', ',', ';', '\u000b', CANARY]) + slice,
      () => String.fromCharCode(random.int(256)) + slice.slice(1),
      () => [...slice].reverse().join(''),
      () => slice.replace(/[a-z]/g, (char) => char.toUpperCase()),
    ];
    mutated = mutated.slice(0, at) + random.pick(insert)() + mutated.slice(end);
  }
  return oneIn(random, 8) ? mutated.slice(0, random.int(mutated.length + 1)) : mutated;
}
