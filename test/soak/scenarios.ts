/** What clients do to the service under load, well-behaved ones and others, and what each must get. */

import { gunzipSync } from 'node:zlib';
import { parseExposition } from '../support/exposition-parser.js';
import { cut, several, type Random } from '../support/random.js';
import { assertUniformError, WireConnection, type WireResponse } from '../support/strict-client.js';

/** One client, from its connection to the end of it. */
export interface Scenario {
  readonly name: string;
  /** How many requests it sends. */
  readonly requests: number;
  /** @throws when it got something else than it must */
  run(port: number): Promise<void>;
}

/** One request and its answer. */
interface Ask {
  readonly bytes: Buffer;
  readonly method: string;
  readonly check: (response: WireResponse) => void;
}

/** A scenario at random; well-behaved clients are the most. */
export function randomScenario(random: Random): Scenario {
  return random.pick([
    keepAlive,
    keepAlive,
    keepAlive,
    keepAlive,
    pipelined,
    pipelined,
    refused,
    refused,
    leaving,
    leaving,
    leaving,
    slowReader,
    slowBody,
    slowHead,
    silent,
    halfClosed,
  ])(random);
}

/** Every kind of scenario, so that a run begins with all that there is. */
export function everyScenario(random: Random): Scenario[] {
  return [keepAlive, pipelined, slowReader, slowBody, slowHead, silent, halfClosed].map((create) => create(random))
    .concat(BAD.map((bad) => refusedWith(random, bad)), EVERY.map((create) => one('keep-alive', create(random))));
}

// Well-behaved clients.

function keepAlive(random: Random): Scenario {
  const asks = several(random, 1, 12, () => randomAsk(random));
  const pauses = asks.map(() => (random.int(4) === 0 ? random.int(40) : 0));
  return { name: 'keep-alive', requests: asks.length, run: (port) => withConnection(port, async (connection) => {
    for (const [index, ask] of asks.entries()) {
      await connection.write(ask.bytes);
      checkAnswer(ask, await connection.finalResponse(ask.method));
      await pause(pauses[index] ?? 0);
    }
  }) };
}

function one(name: string, ask: Ask): Scenario {
  return { name, requests: 1, run: (port) => withConnection(port, async (connection) => {
    await connection.write(ask.bytes);
    checkAnswer(ask, await connection.finalResponse(ask.method));
  }) };
}

function pipelined(random: Random): Scenario {
  const asks = several(random, 2, 6, () => randomAsk(random));
  const pieces = cut(random, Buffer.concat(asks.map(({ bytes }) => bytes)), 4);
  return { name: 'pipelined', requests: asks.length, run: (port) => withConnection(port, async (connection) => {
    const written = connection.write(...pieces);
    for (const ask of asks) checkAnswer(ask, await connection.finalResponse(ask.method));
    await written;
  }) };
}

/** Reads nothing for a while of what is much more than buffers hold. */
function slowReader(random: Random): Scenario {
  const ask = streamed(64 + random.int(64));
  const ms = 200 + random.int(800);
  return { name: 'slow reader', requests: 1, run: (port) => withConnection(port, async (connection) => {
    connection.socket.pause();
    await connection.write(ask.bytes);
    await pause(ms);
    connection.socket.resume();
    checkAnswer(ask, await connection.finalResponse(ask.method));
  }) };
}

/** Sends its body byte by byte, in time or too slowly. */
function slowBody(random: Random): Scenario {
  const [length, ms] = random.int(2) === 0 ? [10, 50] : [30, 400];
  const inTime = length * ms < 1_000;
  return {
    name: 'slow body',
    requests: 1,
    run: (port) =>
      withConnection(port, async (connection) => {
        await connection.write(`POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`);
        const [response] = await Promise.all([
          connection.finalResponse('POST'),
          trickle(connection, 'a'.repeat(length), ms),
        ]);
        if (inTime) checkJson(response, { length });
        // What is sent while the connection closes may take the reply with it.
        else if (response !== null) checkError(response, [408]);
      }),
  };
}

/** Slowloris. */
function slowHead(random: Random): Scenario {
  const head = random.pick(['GET /hello HTTP/1.1\r\nHost: x\r\nX: ', 'GET /', '']);
  return { name: 'slow head', requests: 1, run: (port) => withConnection(port, async (connection) => {
    await connection.write(head);
    const [response] = await Promise.all([connection.finalResponse(), trickle(connection, 'a'.repeat(60), 150)]);
    if (response !== null) checkError(response, [408, 400]);
  }) };
}

async function trickle(connection: WireConnection, text: string, ms: number): Promise<void> {
  for (const char of text) {
    if (connection.isClosed) return;
    await connection.write(char);
    await pause(ms);
  }
}

// Clients with errors.

/** A few good requests, then one that is not. */
function refused(random: Random): Scenario {
  return refusedWith(random, random.pick(BAD));
}

function refusedWith(random: Random, bad: Bad): Scenario {
  const asks = several(random, 0, 2, () => randomAsk(random));
  const bytes = bad.bytes(random);
  return { name: 'malformed', requests: asks.length + 1, run: (port) => withConnection(port, async (connection) => {
    await connection.write(...asks.map(({ bytes }) => bytes));
    for (const ask of asks) checkAnswer(ask, await connection.finalResponse(ask.method));
    const written = connection.write(bytes);
    const response = await connection.finalResponse('POST').catch((error: unknown) => {
      if (bad.isCut === true) return null;
      throw error;
    });
    if (response !== null) checkError(response, bad.statuses);
    connection.end();
    await connection.closed;
    await written;
  }) };
}

/** Leaves at any time without a word. */
function leaving(random: Random): Scenario {
  const asks = several(random, 1, 4, () =>
    random.int(3) === 0 ? random.pick([streamed(100), slow(1_000), slow(50)]) : randomAsk(random),
  );
  const bytes = Buffer.concat(asks.map((ask) => ask.bytes));
  const end = random.int(3) === 0 ? bytes.length : random.int(bytes.length + 1);
  const pieces = cut(random, bytes.subarray(0, end), 3);
  const ms = random.pick([0, 0, 1, 5, 30, 100]);
  return { name: 'leaving', requests: asks.length, run: (port) => withConnection(port, async (connection) => {
    await connection.write(...pieces);
    await pause(ms);
  }) };
}

/** Connects and says nothing. */
function silent(random: Random): Scenario {
  const ms = random.int(500);
  return { name: 'silent', requests: 1, run: (port) => withConnection(port, () => pause(ms)) };
}

/** Says that it will not write more; what node:http has not answered by then, it need not answer. */
function halfClosed(random: Random): Scenario {
  const ask = randomAsk(random);
  return { name: 'half-closed', requests: 1, run: (port) => withConnection(port, async (connection) => {
    await connection.write(ask.bytes);
    connection.end();
    const response = await connection.finalResponse(ask.method).catch((error: unknown) => {
      if (/the connection ended/.test(String(error))) return null;
      throw error;
    });
    if (response !== null) checkAnswer(ask, response);
    await connection.closed;
  }) };
}

async function withConnection(port: number, use: (connection: WireConnection) => Promise<void>): Promise<void> {
  const connection = await WireConnection.open(port);
  try {
    await use(connection);
  } finally {
    await connection.destroy();
  }
}

// Requests that are answered on a connection that stays.

const GOOD: readonly ((random: Random) => Ask)[] = [
  () => get('/hello', (response) => checkText(response, 'hello')),
  () => ({
    ...get('/hello', (response) => checkText(response, '')),
    bytes: head('HEAD', '/hello', []),
    method: 'HEAD',
  }),
  () => ({
    ...get('/hello', ({ status, headers }) =>
      same([status, headers['allow']], [204, 'GET, HEAD, OPTIONS'], 'the answer'),
    ),
    bytes: head('OPTIONS', '/hello', []),
  }),
  (random) => {
    const id = random.pick(['7', 'ü', 'a b', 'a/b', '%', String(random.int(1e9))]);
    return get(`/items/${encodeURIComponent(id)}?a=${random.int(9)}&a=${encodeURIComponent(id)}`, (response) => {
      const { id: seen, query } = checkJson(response) as { id: string; query: string[][] };
      same([seen, query[1]?.[1]], [id, id], 'the item');
    });
  },
  (random) => {
    const order = String(random.int(1e6));
    return get(`/orders/${order}/lines/x`, (response) => checkJson(response, [order, 'x']));
  },
  (random) =>
    get(`/files/a/${random.int(99)}/c`, ({ status, body }) =>
      same([status, /^a\/\d+\/c$/.test(String(body))], [200, true], 'the rest'),
    ),
  () => get('/public/7?q=x', (response) => checkJson(response, { id: '7', q: 'x' })),
  (random) => {
    const value = several(random, 0, 5, (index) => ({
      index,
      text: random.pick(['', 'é', '"', '\n', 'x'.repeat(random.int(2_000))]),
    }));
    return upload(
      random,
      '/echo',
      Buffer.from(JSON.stringify(value)),
      (response) => checkJson(response, { echo: value }),
      ['Content-Type: application/json'],
    );
  },
  (random) =>
    upload(
      random,
      '/form',
      Buffer.from('a=b&c=d+e'),
      (response) =>
        checkJson(response, [
          ['a', 'b'],
          ['c', 'd e'],
        ]),
      ['Content-Type: application/x-www-form-urlencoded'],
    ),
  (random) => sized(random, '/upload'),
  (random) => sized(random, '/stream-up'),
  (random) => {
    const content = Buffer.alloc(random.int(20_000), 'mirror');
    return upload(random, '/mirror', content, ({ status, body }) =>
      same([status, body.equals(content)], [200, true], 'the mirror'),
    );
  },
  (random) => streamed(1 + random.int(6)),
  (random) => slow(random.int(60)),
  (random) => {
    const id = String(random.int(100));
    return get(`/stock/${id}`, (response) => checkJson(response, { id, left: 3 }));
  },
  (random) =>
    get(`/grouped/${random.int(9)}`, ({ status, headers }) =>
      same([status, headers['x-seen']], [200, 'true'], 'the answer'),
    ),
];

const MONITORING: readonly ((random: Random) => Ask)[] = [
  () =>
    get('/soak/health/', (response) => same((checkJson(response) as { status: string }).status, 'OK', 'the status')),
  () =>
    get('/soak/ping/', (response) => same((checkJson(response) as { response: string }).response, 'pong', 'the ping')),
  () =>
    get('/soak/ping/?depth=1', (response) =>
      same(Object.keys((checkJson(response) as { response: object }).response), ['stock'], 'the services'),
    ),
  () =>
    get('/soak/metrics/?json', (response) =>
      same(typeof (checkJson(response) as { request_count: number }).request_count, 'number', 'the count'),
    ),
  () => get('/soak/metrics/', (response) => checkExposition(response, 'text')),
  () =>
    get('/soak/metrics/', (response) => checkExposition(response, 'openmetrics'), [
      'Accept: application/openmetrics-text',
      'Accept-Encoding: gzip',
    ]),
];

const WRONG: readonly ((random: Random) => Ask)[] = [
  (random) => get(`/nowhere/${random.int(1e9).toString(36)}`, (response) => checkError(response, [404])),
  () => ({ ...get('/hello', (response) => checkError(response, [405])), bytes: head('DELETE', '/hello', []) }),
  (random) => ({
    ...get('/nowhere', (response) => checkError(response, [404])),
    bytes: head(random.pick(['PROPFIND', 'PURGE', 'M-SEARCH', 'LINK']), '/nowhere', []),
  }),
  () => get('/items/%zz', (response) => checkError(response, [400])),
  () => get('/orders/x/lines/1', (response) => checkError(response, [404])),
  (random) => get(`/public/7?p${random.int(1e6)}=1`, (response) => checkError(response, [400])),
  () => get('/fail', (response) => {
    checkError(response, [500]);
    same(response.body.includes('not to be told'), false, 'whether the message was told');
  }),
  (random) => get(`/refuse/${random.int(1e6)}`, (response) => checkError(response, [404])),
  () => get('/stock/none', (response) => checkError(response, [404])),
  () => get('/soak/ping/?depth=99', (response) => checkError(response, [400])),
  () => plain('/echo', '{"a":', (response) => checkError(response, [400]), ['Content-Type: application/json']),
  () => plain('/echo', '{}', (response) => checkError(response, [415]), ['Content-Type: text/plain']),
  () =>
    plain('/echo', '{"__proto__":1}', (response) => checkError(response, [400]), ['Content-Type: application/json']),
  () => plain('/upload', 'abc', (response) => checkError(response, [415]), ['Content-Encoding: gzip']),
  () => plain('/upload', 'a'.repeat(65_537), (response) => checkError(response, [413])),
  () => plain('/ignored', 'a'.repeat(3_000), (response) => checkText(response, 'ignored')),
];

const EVERY = [...GOOD, ...MONITORING, ...WRONG];

function randomAsk(random: Random): Ask {
  const kind = random.int(20);
  return random.pick(kind === 0 ? MONITORING : kind < 6 ? WRONG : GOOD)(random);
}

function head(method: string, target: string, fields: readonly string[]): Buffer {
  return Buffer.from(
    `${method} ${target} HTTP/1.1\r\n${['Host: x', ...fields].map((field) => `${field}\r\n`).join('')}\r\n`,
    'latin1',
  );
}

function get(target: string, check: Ask['check'], fields: readonly string[] = []): Ask {
  return { bytes: head('GET', target, fields), method: 'GET', check };
}

function plain(target: string, content: string, check: Ask['check'], fields: readonly string[] = []): Ask {
  return {
    bytes: Buffer.concat([
      head('POST', target, [...fields, `Content-Length: ${Buffer.byteLength(content)}`]),
      Buffer.from(content),
    ]),
    method: 'POST',
    check,
  };
}

/** With a length, or in chunks. */
function upload(
  random: Random,
  target: string,
  content: Buffer,
  check: Ask['check'],
  fields: readonly string[] = [],
): Ask {
  if (random.int(2) === 0)
    return {
      bytes: Buffer.concat([head('POST', target, [...fields, `Content-Length: ${content.length}`]), content]),
      method: 'POST',
      check,
    };
  const chunks = cut(random, content, 4).filter(({ length }) => length > 0)
    .flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]);
  return {
    bytes: Buffer.concat([
      head('POST', target, [...fields, 'Transfer-Encoding: chunked']),
      ...chunks,
      Buffer.from('0\r\n\r\n'),
    ]),
    method: 'POST',
    check,
  };
}

function sized(random: Random, target: string): Ask {
  const length = random.pick([0, 1, 1_000, 65_536, random.int(65_537)]);
  return upload(random, target, Buffer.alloc(length, 'u'), (response) => checkJson(response, { length }));
}

function streamed(chunks: number): Ask {
  return get(`/stream?chunks=${chunks}`, ({ status, body }) => {
    same([status, body.length], [200, chunks * 16_384], 'the stream');
    for (let index = 0; index < chunks; index += 1)
      same(
        [body[index * 16_384], body[index * 16_384 + 16_383]],
        [65 + (index % 26), 65 + (index % 26)],
        `chunk ${index}`,
      );
  });
}

function slow(ms: number): Ask {
  return get(`/slow?ms=${ms}`, (response) => checkText(response, 'slow'));
}

// Requests behind which the connection is closed.

interface Bad {
  readonly statuses: readonly number[];
  /** Whether its reply has begun when it goes wrong, so that it can only be cut. */
  readonly isCut?: boolean;
  readonly bytes: (random: Random) => string;
}

const post = (fields: string, content: string): string =>
  `POST /upload HTTP/1.1\r\nHost: x\r\n${fields}\r\n\r\n${content}`;

const BAD: readonly Bad[] = [
  { statuses: [400], bytes: () => 'GET /hello\r\n\r\nnonsense\r\n\r\n' },
  { statuses: [501], bytes: (random) => `BREW${random.int(99)} / HTTP/1.1\r\nHost: x\r\n\r\n` },
  { statuses: [400], bytes: () => '\x16\x03\x01\x02\x00\x01\x00\r\n\r\n' },
  { statuses: [400], bytes: () => 'GET / HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n' },
  { statuses: [400], bytes: () => 'GET / HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n' },
  { statuses: [400], bytes: () => 'GET /hello HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n' },
  { statuses: [400], bytes: () => 'GET /hello HTTP/1.1\r\nHost: x/y\r\n\r\n' },
  { statuses: [501], bytes: () => post('Transfer-Encoding: gzip, chunked', '0\r\n\r\n') },
  { statuses: [431],
    bytes: (random) => `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(17_000 + random.int(9_000))}\r\n\r\n` },
  // Which of both depends on how it comes in pieces.
  { statuses: [414, 431], bytes: () => `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n` },
  { statuses: [400], bytes: () => post('Content-Length: 3x', 'abc') },
  { statuses: [400], bytes: () => post('Content-Length: 3\r\nTransfer-Encoding: chunked', '0\r\n\r\n') },
  { statuses: [400], bytes: () => post('Transfer-Encoding: chunked', '3\r\nabc\r\nzz\r\n') },
  { statuses: [400], bytes: () => post('Transfer-Encoding: xchunked', '0\r\n\r\n') },
  { statuses: [413], bytes: () => post('Transfer-Encoding: chunked', `10001\r\n${'a'.repeat(65_537)}\r\n0\r\n\r\n`) },
  { statuses: [413], bytes: () => post('Content-Length: 2000000', 'a'.repeat(10_000)) },
  { statuses: [413], bytes: () => post('Content-Length: 2000000\r\nExpect: 100-continue', '') },
  { statuses: [417], bytes: () => post('Content-Length: 3\r\nExpect: magic\r\nConnection: close', 'abc') },
  { statuses: [501], bytes: () => 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n' },
  { statuses: [505, 400], bytes: () => 'GET / HTTP/2.0\r\nHost: x\r\nConnection: close\r\n\r\n' },
  { statuses: [], isCut: true, bytes: () => 'GET /broken HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' },
  {
    statuses: [413],
    isCut: true,
    bytes: () =>
      `POST /mirror HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${`4000\r\n${'m'.repeat(16_384)}\r\n`.repeat(5)}0\r\n\r\n`,
  },
];

// Checks.

function checkAnswer(ask: Ask, response: WireResponse | null): void {
  const what = ask.bytes.toString('latin1', 0, Math.min(ask.bytes.indexOf('\r\n'), 200));
  if (response === null) throw new Error(`no answer to ${what}`);
  try {
    ask.check(response);
  } catch (error) {
    throw new Error(
      `${what} was answered with ${response.status} ${JSON.stringify(response.headers)} ${response.body.toString('latin1').slice(0, 300)}`,
      { cause: error },
    );
  }
}

function checkText({ status, body }: WireResponse, expected: string): void {
  same([status, String(body)], [200, expected], 'the answer');
}

function checkJson(response: WireResponse | null, expected?: unknown): unknown {
  const value: unknown = response === null ? null : JSON.parse(String(response.body));
  same(response?.status, 200, 'the status');
  if (expected !== undefined) same(value, expected, 'the answer');
  return value;
}

function checkExposition({ status, headers, body }: WireResponse, format: 'text' | 'openmetrics'): void {
  same([status, headers['content-encoding'] ?? null], [200, format === 'text' ? null : 'gzip'], 'the answer');
  parseExposition(String(format === 'text' ? body : gunzipSync(body)), format);
}

function checkError(response: WireResponse | null, statuses: readonly number[]): void {
  if (response === null || !statuses.includes(response.status))
    throw new Error(`the status ${response?.status} is none of ${statuses.join()}`);
  assertUniformError(response);
}

function same(actual: unknown, expected: unknown, what: string): void {
  const [a, e] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== e) throw new Error(`${what} is ${a}, not ${e}`);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
