/** The service client against peers that fail, lie or fall silent. */

import { getEventListeners, once } from 'node:events';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { ApiError, FrameworkErrorCodes, ServiceError } from 'postern';
import type { ServiceClient } from 'postern';
import { clientOf as clientOfUrl, clientsOf } from '../support/clients.js';
import { startPeer, startRawPeer, type TestServer } from '../support/peer.js';
import { freePort } from '../support/ports.js';

const MAX_BYTES = 1000;
const clientOf = (peer: Pick<TestServer, 'url'>): ServiceClient => clientOfUrl(peer, { maxBytes: MAX_BYTES });
const failureOf = async (call: Promise<unknown>): Promise<ServiceError> => {
  const error = await call.then(
    () => expect.unreachable('the call should fail'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ServiceError);
  return error as ServiceError;
};
const json = (value: unknown, status = 'HTTP/1.1 418 x', type = 'application/json'): string => {
  const text = JSON.stringify(value);
  return `${status}\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
};

test('a remote error keeps its status, message, description and code', async () => {
  const peer = await startPeer((_req, res) => {
    res.writeHead(408, { 'content-type': 'application/json', 'retry-after': '30', 'set-cookie': 'a=1' });
    res.end(
      '{"message":"An unknown error occurred","description":"Too slow! é","error_code":{"name":"too_slow","value":10002},"hint":"new in version 9"}',
    );
  });
  const error = await failureOf(clientOf(peer).get('/'));
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({
    name: 'ServiceError',
    service: 'billing',
    statusCode: 408,
    message: 'An unknown error occurred',
    description: 'Too slow! é',
    headers: { 'retry-after': '30' },
  });
  expect(error.errorCode).toEqual({ name: 'too_slow', value: 10002 });
});

const body = { message: 'm', description: 'd', error_code: { name: 'n', value: 1 } };
test.for([
  ['HTML', 'HTTP/1.1 418 x\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<h1>'],
  ['nothing', 'HTTP/1.1 418 Whatever\r\ncontent-length: 0\r\n\r\n'],
  ['another content type', json(body, undefined, 'text/plain')],
  ['broken JSON', 'HTTP/1.1 418 x\r\ncontent-type: application/json\r\ncontent-length: 1\r\n\r\n{'],
  ['a content coding', json(body, 'HTTP/1.1 418 x\r\ncontent-encoding: gzip')],
  ['an array', json([body])],
  ['null', json(null)],
  ['no message', json({ ...body, message: undefined })],
  ['a message that is no string', json({ ...body, message: { toString: 1 } })],
  ['no description', json({ ...body, description: undefined })],
  ['a code that is no object', json({ ...body, error_code: 7 })],
  ['a code value that is a string', json({ ...body, error_code: { name: 'n', value: '1' } })],
  ['a code value beyond the safe integers', json({ ...body, error_code: { name: 'n', value: 2 ** 53 } })],
  ['a fractional code value', json({ ...body, error_code: { name: 'n', value: 1.5 } })],
  ['a code name that is no string', json({ ...body, error_code: { name: ['n'], value: 1 } })],
] as const)('an error with %s is told by its status', async ([, answer]) => {
  const error = await failureOf(clientOf(await startRawPeer(() => answer)).get('/'));
  expect(error).toMatchObject({
    statusCode: 418,
    message: "I'm a Teapot",
    description: 'billing answered 418',
    errorCode: FrameworkErrorCodes.framework_error_unspecified,
    service: 'billing',
  });
});

test('an error body beyond 64 KiB is no explanation', async () => {
  const answer = json({ ...body, description: 'x'.repeat(65_536) });
  const client = clientOfUrl(await startRawPeer(() => answer));
  expect((await failureOf(client.get('/'))).description).toBe('billing answered 418');
});

test.for([
  { sent: '30', kept: '30' },
  { sent: 'Sun, 06 Nov 1994 08:49:37 GMT', kept: 'Sun, 06 Nov 1994 08:49:37 GMT' },
  { sent: 'soon', kept: undefined },
  { sent: '-1', kept: undefined },
  { sent: '9'.repeat(400), kept: undefined },
])('Retry-After: $sent survives as $kept', async ({ sent, kept }) => {
  const peer = await startPeer((_req, res) => res.writeHead(429, { 'retry-after': sent }).end());
  expect((await failureOf(clientOf(peer).get('/'))).headers?.['retry-after']).toBe(kept);
});

const HEAD = 'HTTP/1.1 200 OK\r\n';
const TEXT_HEAD = `${HEAD}content-type: text/plain\r\n`;
const failing: {
  what: string;
  answer: (chunk: string, socket: Socket) => string | null | undefined;
  status: number;
  says: string;
}[] = [
  { what: 'hangs up without an answer', answer: () => null, status: 503, says: 'billing is unreachable' },
  { what: 'hangs up in its head', answer: (_, socket) => (socket.end('HTTP/1.1 200 O'), undefined), status: 503,
    says: 'billing is unreachable' },
  { what: 'dies in a body of known length',
    answer: (_, socket) => (socket.end(`${HEAD}content-length: 9\r\n\r\nabc`), undefined), status: 503,
    says: 'billing broke off its answer' },
  { what: 'dies in a chunked body',
    answer: (_, socket) => (socket.end(`${HEAD}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n`), undefined),
    status: 503, says: 'billing broke off its answer' },
  { what: 'speaks no HTTP', answer: () => 'SSH-2.0-OpenSSH\r\n\r\n', status: 502,
    says: 'billing answered with malformed HTTP' },
  { what: 'frames its body in two ways',
    answer: () => `${HEAD}content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`, status: 502,
    says: 'billing answered with malformed HTTP' },
  { what: 'sends two lengths', answer: () => `${HEAD}content-length: 3\r\ncontent-length: 4\r\n\r\nabcd`, status: 502,
    says: 'billing answered with malformed HTTP' },
  { what: 'breaks its chunking', answer: () => `${HEAD}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n`,
    status: 502, says: 'billing answered with malformed HTTP' },
  { what: 'sends a head that is too large', answer: () => `${HEAD}x: ${'y'.repeat(20_000)}\r\n\r\n`, status: 502,
    says: 'billing answered with malformed HTTP' },
  { what: 'announces too much', answer: () => `${HEAD}content-length: 104857600\r\n\r\n`, status: 502,
    says: 'billing answered with more than 1000 bytes' },
  { what: 'sends too much', answer: () => `${HEAD}transfer-encoding: chunked\r\n\r\n3e9\r\n${'x'.repeat(1001)}\r\n`,
    status: 502, says: 'billing answered with more than 1000 bytes' },
  { what: 'sends too much until it closes', answer: () => `${HEAD}\r\n${'x'.repeat(1001)}`, status: 502,
    says: 'billing answered with more than 1000 bytes' },
  { what: 'switches protocols',
    answer: () => 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n', status: 502,
    says: 'billing switched to another protocol' },
  { what: 'answers with a status beyond 599', answer: () => 'HTTP/1.1 999 x\r\ncontent-length: 0\r\n\r\n', status: 502,
    says: 'billing answered with the status 999' },
  { what: 'answers with broken JSON', answer: () => json(1, 'HTTP/1.1 200 OK').replace(/1$/, '{'), status: 502,
    says: 'billing answered with invalid JSON' },
  { what: 'answers with JSON that is no UTF-8',
    answer: () => `${HEAD}content-type: application/json\r\ncontent-length: 3\r\n\r\n"\xff"`, status: 502,
    says: 'billing answered with invalid JSON' },
  { what: 'answers in a content coding', answer: () => `${HEAD}content-encoding: gzip\r\ncontent-length: 1\r\n\r\nx`,
    status: 502, says: 'billing answered in a content coding that was not asked for' },
];
test.for(failing)('a service that $what gives $status', async ({ answer, status, says }) => {
  const peer = await startRawPeer(answer);
  const error = await failureOf(clientOf(peer).get('/'));
  expect(error).toMatchObject({
    statusCode: status,
    message: status === 503 ? 'Service Unavailable' : 'Bad Gateway',
    description: says,
    errorCode: FrameworkErrorCodes.framework_error_unspecified,
    service: 'billing',
  });
  expect(peer.sockets).toHaveLength(1);
});

test('a body of exactly the limit is taken, in pieces too', async () => {
  const pieces = Array.from({ length: MAX_BYTES }, () => '1\r\nx\r\n').join('');
  const peer = await startRawPeer(() => `${TEXT_HEAD}transfer-encoding: chunked\r\n\r\n${pieces}0\r\n\r\n`);
  expect((await clientOf(peer).get('/')).body).toBe('x'.repeat(MAX_BYTES));
});

test('a service that nobody listens for gives 503 and keeps the reason for the log', async () => {
  const error = await failureOf(clientOf({ url: `http://127.0.0.1:${await freePort()}` }).get('/'));
  expect(error).toMatchObject({
    statusCode: 503,
    message: 'Service Unavailable',
    description: 'billing is unreachable',
    cause: { code: 'ECONNREFUSED' },
  });
});

test('a service that can not be found gives 503', async () => {
  expect(await failureOf(clientOf({ url: 'http://nowhere.invalid' }).get('/')))
    .toMatchObject({ statusCode: 503, description: 'billing is unreachable' });
});

test('an https URL that speaks plain HTTP gives 503', async () => {
  const peer = await startRawPeer(() => `${HEAD}content-length: 0\r\n\r\n`);
  expect(await failureOf(clientOf({ url: peer.url.replace('http:', 'https:') }).get('/')))
    .toMatchObject({ statusCode: 503 });
});

test.for<{ what: string; answer: string | undefined }>([
  { what: 'says nothing', answer: undefined },
  { what: 'stops in its head', answer: 'HTTP/1.1 200 OK\r\nx' },
  { what: 'stops in its body', answer: `${HEAD}content-length: 9\r\n\r\nabc` },
  { what: 'has only informational answers', answer: 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(50) },
])('a service that $what gives 504, and its connection is closed', async ({ answer }) => {
  const peer = await startRawPeer(() => answer);
  const error = await failureOf(clientOf(peer).get('/', { timeout: 50 }));
  expect(error).toMatchObject({
    statusCode: 504,
    message: 'Gateway Timeout',
    description: 'billing did not answer within 50 ms',
  });
  const [socket] = peer.sockets;
  if (socket !== undefined && !socket.destroyed) await once(socket, 'close');
});

test('the time limit covers the whole body, however steadily it drips', async () => {
  const peer = await startPeer((_req, res) => {
    const timer = setInterval(() => res.write('x'), 5);
    res.on('close', () => clearInterval(timer));
  });
  expect((await failureOf(clientOf(peer).get('/', { timeout: 60 }))).statusCode).toBe(504);
});

test('a signal that was aborted before rejects with its reason, and nothing is sent', async () => {
  const peer = await startPeer((_req, res) => res.end());
  const reason = new Error('changed my mind');
  await expect(clientOf(peer).get('/', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect(peer.sockets).toHaveLength(0);
});

test('a signal that aborts on the way rejects with its reason and cuts the connection', async () => {
  const abort = new AbortController();
  const peer = await startRawPeer(() => {
    abort.abort('enough');
    return undefined;
  });
  await expect(clientOf(peer).get('/', { signal: abort.signal, retry: 3 })).rejects.toBe('enough');
  const [socket] = peer.sockets;
  if (socket !== undefined && !socket.destroyed) await once(socket, 'close');
  expect(getEventListeners(abort.signal, 'abort')).toHaveLength(0);
});

test('no listener stays on a signal, whatever the outcome', async () => {
  const { signal } = new AbortController();
  const peer = await startPeer((req, res) => res.writeHead(req.url === '/ok' ? 200 : 503).end());
  await clientOf(peer).get('/ok', { signal });
  await failureOf(clientOf(peer).get('/no', { signal, retry: 1 }));
  await failureOf(clientOf({ url: `http://127.0.0.1:${await freePort()}` }).get('/', { signal }));
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

test('a hundred calls that share a signal end with it, without a warning', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  const abort = new AbortController();
  const peer = await startPeer(() => undefined);
  const calls = Array.from({ length: 100 }, () =>
    clientOf(peer)
      .get('/', { signal: abort.signal })
      .catch((reason: unknown) => reason),
  );
  await expect.poll(() => peer.requests.length).toBe(100);
  abort.abort('enough');
  expect(new Set(await Promise.all(calls))).toEqual(new Set(['enough']));
  expect(getEventListeners(abort.signal, 'abort')).toHaveLength(0);
  await new Promise(setImmediate);
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});

test.for<{ what: string; call: (client: ServiceClient) => Promise<unknown>; method: string }>([
  { what: 'an unreachable service',
    call: async function callOfTheUser(client) { return client.get('/invoices/7?secret=1', { timeout: 1000 }); },
    method: 'GET' },
  { what: 'fetch of an unreachable service',
    call: async function callOfTheUser(client) { return client.fetch('/invoices/7', { method: 'put' }); },
    method: 'PUT' },
])(
  'the error of $what has service, method and path, the line of its caller in the stack, and no address in what clients see',
  async ({ call, method }) => {
    const port = await freePort();
    const error = await failureOf(call(clientOf({ url: `http://127.0.0.1:${port}` })));
    expect(error).toMatchObject({ service: 'billing', method, path: '/invoices/7' });
    expect(error.stack?.split('\n')[0]).toBe(`ServiceError: Service Unavailable ${error.description}`);
    expect(error.stack?.split('\n')[1]).toMatch(/callOfTheUser .*failures\.test\.ts:\d+/);
    expect(`${error.message} ${error.description} ${JSON.stringify(error.headers)}`).not.toMatch(
      new RegExp(`127|${port}|secret`),
    );
  },
);

test('the error of a service that was too late has the line of its caller in the stack', async () => {
  const peer = await startPeer(() => undefined);
  async function callOfTheUser(): Promise<void> {
    await clientOf(peer).get('/', { timeout: 20 });
  }
  expect((await failureOf(callOfTheUser())).stack).toMatch(/callOfTheUser .*failures\.test\.ts:\d+/);
});

test.for([
  { method: 'get', retry: 2, requests: 3 },
  { method: 'put', retry: 2, requests: 3 },
  { method: 'delete', retry: 2, requests: 3 },
  { method: 'post', retry: 2, requests: 1 },
  { method: 'patch', retry: 2, requests: 1 },
  { method: 'get', retry: 0, requests: 1 },
] as const)(
  '$method with retry $retry is sent $requests times to a service that is unavailable',
  async ({ method, retry, requests }) => {
    const peer = await startPeer((_req, res) => res.writeHead(503).end());
    expect((await failureOf(clientOf(peer)[method]('/', { retry }))).statusCode).toBe(503);
    expect(peer.requests).toHaveLength(requests);
  },
);

test.for([
  { status: 504, requests: 2 },
  { status: 500, requests: 1 },
  { status: 502, requests: 1 },
  { status: 429, requests: 1 },
  { status: 404, requests: 1 },
])('a $status is sent $requests times with one retry', async ({ status, requests }) => {
  const peer = await startPeer((_req, res) => res.writeHead(status).end());
  expect((await failureOf(clientOf(peer).get('/', { retry: 1 }))).statusCode).toBe(status);
  expect(peer.requests).toHaveLength(requests);
});

test('a retry ends with the first answer, and repeats a body as it was', async () => {
  const bodies: string[] = [];
  const peer = await startRawPeer((chunk) => {
    bodies.push(chunk.slice(chunk.indexOf('\r\n\r\n') + 4));
    return [null, undefined, `${HEAD}content-length: 0\r\n\r\n`][bodies.length - 1];
  });
  await clientOf(peer).put('/', { json: { a: 1 }, retry: 5, timeout: 500 });
  expect(bodies).toEqual(['{"a":1}', '{"a":1}', '{"a":1}']);
});

test('a short Retry-After is waited for, a long one ends the tries', async () => {
  let retryAfter = '0';
  const peer = await startPeer((_req, res) => res.writeHead(503, { 'retry-after': retryAfter }).end());
  await failureOf(clientOf(peer).get('/', { retry: 1 }));
  expect(peer.requests).toHaveLength(2);
  for (const long of ['3600', new Date(Date.now() + 3_600_000).toUTCString()]) {
    const { length } = peer.requests;
    retryAfter = long;
    await failureOf(clientOf(peer).get('/', { retry: 1 }));
    expect(peer.requests, long).toHaveLength(length + 1);
  }
});

test('a signal ends the pause before the next try', async () => {
  const abort = new AbortController();
  const peer = await startPeer((_req, res) => {
    res.on('close', () => abort.abort('enough'));
    res.writeHead(503, { 'retry-after': '86400' }).end();
  });
  const patient = { retry: 9, timeout: 2 ** 31 - 1, signal: abort.signal };
  await expect(clientOf(peer).get('/', patient)).rejects.toBe('enough');
  expect(peer.requests).toHaveLength(1);
});

/**
 * A peer that answers the first request of each connection, and hangs up on the second, or on its first byte of an
 * answer.
 */
async function startForgetful(last: string | null): Promise<TestServer & { readonly requests: string[] }> {
  const requests: string[] = [];
  const seen = new WeakSet<Socket>();
  const peer = await startRawPeer((chunk, socket) => {
    requests.push(chunk);
    if (!seen.has(socket)) return seen.add(socket), `${HEAD}content-length: 0\r\n\r\n`;
    if (last !== null) socket.end(last);
    return last === null ? null : undefined;
  });
  return { ...peer, requests };
}

test.for(['get', 'put', 'delete'] as const)(
  'a %s that an idle connection refuses is sent once more on a fresh one',
  async (method) => {
    const peer = await startForgetful(null);
    const client = clientOf(peer);
    await client.get('/');
    expect((await client[method]('/again', method === 'put' ? { json: { a: 1 } } : {})).status).toBe(200);
    expect(peer.sockets).toHaveLength(2);
    expect(peer.requests).toHaveLength(3);
    // Its connection and its deadline aside.
    const changing = /^(?:connection|x-envoy-expected-rq-timeout-ms): .*\r\n/gim;
    const [refused, repeated] = peer.requests.slice(1).map((request) => request.replace(changing, ''));
    expect(repeated).toBe(refused);
  },
);

test('a request that is sent once more has what is left of its deadline', async () => {
  let refuse: (() => void) | undefined;
  const deadlines: number[] = [];
  const peer = await startRawPeer((chunk, socket) => {
    deadlines.push(Number(/^x-envoy-expected-rq-timeout-ms: (\d+)/im.exec(chunk)?.[1]));
    if (deadlines.length !== 2) return `${HEAD}content-length: 0\r\n\r\n`;
    refuse = () => socket.resetAndDestroy();
    return undefined;
  });
  const client = clientOf(peer);
  await client.get('/');
  const again = client.get('/again', { timeout: 2000 });
  await expect.poll(() => refuse).toBeDefined();
  await new Promise((resolve) => setTimeout(resolve, 60));
  refuse?.();
  expect((await again).status).toBe(200);
  expect(deadlines[1]).toBe(2000);
  expect(deadlines[2]).toBeLessThanOrEqual(1950);
});

test.for([
  { what: 'a POST', send: (client: ServiceClient) => client.post('/') },
  { what: 'a PATCH', send: (client: ServiceClient) => client.patch('/') },
  { what: 'a body that is a stream', send: (client: ServiceClient) => client.put('/', { body: Readable.from(['x']) }) },
])('$what is not sent again', async ({ send }) => {
  const peer = await startForgetful(null);
  const client = clientOf(peer);
  await client.get('/');
  expect((await failureOf(send(client))).statusCode).toBe(503);
  expect(peer.sockets).toHaveLength(1);
});

test('a request is not sent again once a byte of its answer has come', async () => {
  const peer = await startForgetful('H');
  const client = clientOf(peer);
  await client.get('/');
  expect((await failureOf(client.get('/'))).statusCode).toBe(503);
  expect(peer.requests).toHaveLength(2);
});

test('a request that a fresh connection refuses is not sent again, nor one that was sent again', async () => {
  let requests = 0;
  const peer = await startRawPeer(() => {
    requests += 1;
    return requests === 1 ? `${HEAD}content-length: 0\r\n\r\n` : null;
  });
  const client = clientOf(peer);
  await client.get('/');
  expect((await failureOf(client.get('/'))).statusCode).toBe(503);
  expect(requests).toBe(3);
  expect((await failureOf(client.get('/'))).statusCode).toBe(503);
  expect(requests).toBe(4);
});

test('an idle connection that receives data is closed, not taken for the next answer', async () => {
  const answer = (text: string): string => `${TEXT_HEAD}content-length: ${text.length}\r\n\r\n${text}`;
  const peer = await startRawPeer((_chunk, socket) => answer(`of connection ${peer.sockets.indexOf(socket)}`));
  const client = clientOf(peer);
  expect((await client.get('/')).body).toBe('of connection 0');
  const [first] = peer.sockets;
  if (first === undefined) expect.unreachable();
  const closed = once(first, 'close');
  first.write(answer('poison'));
  await closed;
  expect((await client.get('/')).body).toBe('of connection 1');
});

test('an answer with another behind it gives the first and loses the connection', async () => {
  const answer = (text: string): string => `${TEXT_HEAD}content-length: ${text.length}\r\n\r\n${text}`;
  const peer = await startRawPeer(
    (_chunk, socket) => answer(`of connection ${peer.sockets.indexOf(socket)}`) + answer('poison'),
  );
  const client = clientOf(peer);
  expect((await client.get('/')).body).toBe('of connection 0');
  expect((await client.get('/')).body).toBe('of connection 1');
});

test('a connection is given up before the service says that it will close it', async () => {
  const peer = await startRawPeer(() => `${HEAD}keep-alive: timeout=1\r\ncontent-length: 0\r\n\r\n`);
  const client = clientOf(peer);
  await client.get('/');
  await client.get('/');
  expect(peer.sockets).toHaveLength(2);
});

test('a hostile pile of header fields hides none that frames the body', async () => {
  const peer = await startRawPeer(
    () => `${HEAD}${'a:\r\n'.repeat(3000)}content-type: application/json\r\ncontent-length: 1\r\n\r\n7`,
  );
  expect((await clientOf(peer).get('/')).body).toBe(7);
});

test('close cuts what is open and lets a later call open anew', async () => {
  const peer = await startPeer((req, res) => {
    if (req.url !== '/hang') res.end();
  });
  const clients = clientsOf({ billing: peer.url });
  const client = clients.client('billing');
  await client.get('/');
  const hanging = failureOf(client.get('/hang'));
  await expect.poll(() => peer.requests.length).toBe(2);
  clients.close();
  expect((await hanging).statusCode).toBe(503);
  await Promise.all(peer.sockets.map((socket) => (socket.destroyed ? undefined : once(socket, 'close'))));
  await client.get('/');
  clients.close();
});
