import { expect, test } from 'vitest';
import { ServiceError } from 'postern';
import type { WholeAnswer } from '../../src/mesh/answer.js';
import type { PingRequest } from '../../src/mesh/service-client.js';
import { createPing } from '../../src/monitor/ping.js';
import type { PingDocument } from '../../src/monitor/ping-document.js';

type SendPing = (request: PingRequest) => Promise<WholeAnswer>;

const answerOf = (body: unknown, status = 200, type = 'application/json'): WholeAnswer => ({
  status,
  headers: { 'content-type': type },
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
});
const pong = { response: 'pong', process_time: '0 ms' };
const entry = { response: pong, status_code: 200, request_time: '1 ms' };
/** Services that are asked at their ping endpoint. */
const unchanged = (names: readonly string[]): Map<string, undefined> => new Map(names.map((name) => [name, undefined]));
const ignore = (): void => undefined;
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };
const unspecified = { name: 'framework_error_unspecified', value: 999998 };

function ping(
  names: string[],
  sendPing: SendPing,
  query = '',
  { maxPingDepth = 5, pingTimeout = 1000 } = {},
): Promise<PingDocument> {
  return createPing({ services: unchanged(names), sendPing, maxPingDepth, pingTimeout, logger: SILENT })({
    query: new URLSearchParams(query),
  });
}

test.for(['', 'depth=0', 'other=1'])('?%s pings nobody', async (query) => {
  expect(await ping(['a'], () => expect.unreachable(), query))
    .toEqual({ response: 'pong', process_time: expect.stringMatching(/^\d+ ms$/) });
});

test('without connections every depth is answered with pong', async () => {
  expect((await ping([], () => expect.unreachable(), 'depth=3')).response).toBe('pong');
});

test.for([
  'depth',
  'depth=',
  'depth=6',
  'depth=-1',
  'depth=-0',
  'depth=%2B1',
  'depth=1.5',
  'depth=1e0',
  'depth=+1',
  'depth=1+',
  'depth=01',
  'depth=0x1',
  'depth=NaN',
  'depth=Infinity',
  'depth=null',
  `depth=${'9'.repeat(400)}`,
  'depth=1&depth=1',
  'depth=%D9%A1',
])('?%s is refused', async (query) => {
  await expect(ping(['a'], () => expect.unreachable(), query)).rejects.toMatchObject({
    statusCode: 400,
    message: 'Bad request.',
    description: 'Invalid depth. Allowed: 0 to 5',
  });
});

test('each service is asked with one level less, and with time for every level', async () => {
  const requests: PingRequest[] = [];
  const sendPing: SendPing = async (request) => {
    requests.push(request);
    return answerOf(pong);
  };
  const { response } = await ping(['b', 'a'], sendPing, 'depth=3', { pingTimeout: 200 });
  expect(Object.keys(response)).toEqual(['b', 'a']);
  expect(response).toMatchObject({
    a: { response: pong, status_code: 200, request_time: expect.stringMatching(/^\d+ ms$/) },
  });
  expect(requests).toMatchObject(
    ['b', 'a'].map((service) => ({
      service,
      target: `/${service}/ping/?depth=2`,
      timeoutMs: 600,
      headers: { accept: 'application/json' },
    })),
  );
});

test('known fields of an answer are kept, others are not', async () => {
  const nested = {
    response: { c: { ...entry, since: 'v9', response: { ...pong, hint: 1 } } },
    process_time: '2 ms',
    version: 9,
  };
  const { response } = await ping(['b'], async () => answerOf(nested), 'depth=2');
  expect(response).toEqual({
    b: {
      response: { response: { c: entry }, process_time: '2 ms' },
      status_code: 200,
      request_time: expect.any(String),
    },
  });
});

test('a service named __proto__ is a service', async () => {
  const document = JSON.parse(
    '{"response":{"__proto__":{"response":{"response":"pong","process_time":"0 ms"},"status_code":200,"request_time":"1 ms"}},"process_time":"0 ms"}',
  ) as unknown;
  const { response } = await ping(['__proto__'], async () => answerOf(document), 'depth=2');
  expect(JSON.stringify(response))
    .toContain('{"__proto__":{"response":{"response":{"__proto__":{"response":{"response":"pong"');
});

const deep = '['.repeat(200_000) + ']'.repeat(200_000);
test.for<[string, WholeAnswer]>([
  ['HTML', answerOf('<h1>Welcome</h1>', 200, 'text/html')],
  ['a ping of another content type', answerOf(pong, 200, 'text/plain')],
  ['nothing', answerOf('', 204)],
  ['a redirect', answerOf('', 302)],
  ['a ping with 201', answerOf(pong, 201)],
  ['broken JSON', answerOf('{')],
  ['another document', answerOf({ status: 'ok' })],
  ['null', answerOf(null)],
  ['no time', answerOf({ response: 'pong' })],
  ['a time in words', answerOf({ response: 'pong', process_time: 'soon' })],
  ['another word', answerOf({ response: 'ping', process_time: '0 ms' })],
  ['a list', answerOf({ response: [entry], process_time: '0 ms' })],
  ['an entry without a status',
    answerOf({ response: { c: { ...entry, status_code: undefined } }, process_time: '0 ms' })],
  ['an entry with a status that is none',
    answerOf({ response: { c: { ...entry, status_code: 1e9 } }, process_time: '0 ms' })],
  ['an entry without a time', answerOf({ response: { c: { ...entry, request_time: 3 } }, process_time: '0 ms' })],
  ['a failed entry without an error',
    answerOf({ response: { c: { ...entry, status_code: 503 } }, process_time: '0 ms' })],
  ['a name that is none', answerOf({ response: { 'a/b': entry }, process_time: '0 ms' })],
  [
    'more levels than asked for',
    answerOf({
      response: { c: { ...entry, response: { response: { d: entry }, process_time: '0 ms' } } },
      process_time: '0 ms',
    }),
  ],
  ['200,000 brackets', answerOf(deep)],
  ['200,000 brackets in a document',
    answerOf(`{"response":{"c":{"response":${deep},"status_code":200,"request_time":"1 ms"}},"process_time":"0 ms"}`)],
])('%s is reported and not trusted', async ([, answer]) => {
  const { response } = await ping(['b'], async () => answer, 'depth=2');
  const description = `b answered ${answer.status} with something else than a ping`;
  expect(response).toEqual({
    b: {
      response: { message: 'Bad Gateway', description, error_code: unspecified },
      status_code: 502,
      request_time: expect.any(String),
    },
  });
});

test('a remote error is an entry with its status and body', async () => {
  const error = { message: 'm', description: 'd', error_code: { name: 'n', value: 1 } };
  expect((await ping(['b'], async () => answerOf({ ...error, more: 1 }, 400), 'depth=1')).response)
    .toMatchObject({ b: { response: error, status_code: 400 } });
  expect((await ping(['b'], async () => answerOf('<h1>', 404, 'text/html'), 'depth=1')).response).toMatchObject({
    b: { response: { message: 'Not Found', description: 'b answered 404', error_code: unspecified }, status_code: 404 },
  });
});

test('a failed entry two levels down keeps its error', async () => {
  const error = { message: 'Gateway Timeout', description: 'c did not answer within 1000 ms', error_code: unspecified };
  const document = {
    response: { c: { response: error, status_code: 504, request_time: '1000 ms' } },
    process_time: '1001 ms',
  };
  expect((await ping(['b'], async () => answerOf(document), 'depth=2')).response)
    .toMatchObject({ b: { response: document, status_code: 200 } });
});

test('a failure is an entry, whatever was thrown, and its reason goes to the log', async () => {
  const entries: object[] = [];
  const logger = { ...SILENT, warn: (object: object) => entries.push(object) };
  const sendPing: SendPing = async ({ service: name }) => {
    throw name === 'b'
      ? new ServiceError('b', 'b is unreachable', { statusCode: 503, message: 'Service Unavailable' })
      : new Error('secret');
  };
  const handler = createPing({ services: unchanged(['b', 'c']), sendPing, maxPingDepth: 5, pingTimeout: 1000, logger });
  const { response } = await handler({ query: new URLSearchParams('depth=1') });
  expect(response).toMatchObject({
    b: { status_code: 503, response: { description: 'b is unreachable' } },
    c: { status_code: 502, response: { description: 'c could not be pinged' } },
  });
  expect(JSON.stringify(response)).not.toContain('secret');
  expect(entries).toMatchObject([{ service: 'b' }, { service: 'c', err: { cause: 'secret' } }]);
});

test('pings in flight are shared by service and depth, finished ones are not', async () => {
  const asked: string[] = [];
  const release: (() => void)[] = [];
  const sendPing: SendPing = ({ target }) => {
    asked.push(target);
    return new Promise((resolve) => release.push(() => resolve(answerOf(pong))));
  };
  const options = { maxPingDepth: 5, pingTimeout: 1000, logger: SILENT };
  const handler = createPing({ services: unchanged(['b']), sendPing, ...options });
  const call = (depth: number): Promise<PingDocument> => handler({ query: new URLSearchParams(`depth=${depth}`) });
  const together = [call(1), call(1), call(2), call(1)];
  await expect.poll(() => asked).toEqual(['/b/ping/?depth=0', '/b/ping/?depth=1']);
  for (const finish of release) finish();
  await Promise.all(together);
  const later = call(1);
  await expect.poll(() => asked).toHaveLength(3);
  release.at(-1)?.();
  await later;
});

test('all services are asked at once, since each has the time of the whole ping', async () => {
  const names = Array.from({ length: 200 }, (_, i) => `s${i}`);
  let active = 0;
  let most = 0;
  const sendPing: SendPing = async () => {
    active += 1;
    most = Math.max(most, active);
    await new Promise(setImmediate);
    active -= 1;
    return answerOf(pong);
  };
  const { response } = await ping(names, sendPing, 'depth=1');
  expect(Object.keys(response)).toEqual(names);
  expect(most).toBe(200);
});

test('the longest wait is one that a timer takes', async () => {
  let timeoutMs = 0;
  const sendPing: SendPing = async (request) => {
    timeoutMs = request.timeoutMs;
    return answerOf(pong);
  };
  await ping(['b'], sendPing, 'depth=100', { maxPingDepth: 1000, pingTimeout: 2 ** 30 });
  expect(timeoutMs).toBe(2 ** 31 - 1);
});
