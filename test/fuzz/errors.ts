/**
 * Whatever a handler throws: one answer with the uniform body, a status of an error, and nothing of what only the log
 * may know.
 */

import { STATUS_CODES } from 'node:http';
import { runInNewContext } from 'node:vm';
import {
  ApiError, BadRequest, Conflict, defineErrorCodes, HttpError, NotFound, Postern, ServiceUnavailable, TooManyRequests,
} from 'postern';
import { JsonLogger } from '../../src/base/log.js';
import { oneIn, several, type Random } from '../support/random.js';
import { assertUniformError, WireConnection, type WireResponse } from '../support/strict-client.js';
import { assert, assertSame, type Target } from './target.js';

/** What is thrown, and what its answer must say; null where nothing but its form is promised. */
interface Thrown {
  readonly kind: string;
  readonly value: unknown;
  readonly answer: Answer | null;
}

interface Answer {
  readonly status: number;
  readonly message: string;
  readonly description: string;
  readonly code: { readonly name: string; readonly value: number };
  readonly headers?: Readonly<Record<string, string>>;
}

const SECRET = 'secret-7f3a';
const Codes = defineErrorCodes({ too_slow: 10_002, help_me: 10_003 });
const UNSPECIFIED = { name: 'framework_error_unspecified', value: 999_998 };
const UNKNOWN: Answer = {
  status: 500,
  message: 'Server Error',
  description: 'Something has blown up really bad. Somebody should be notified?',
  code: { name: 'framework_unknown_error', value: 999_999 },
};

const PLACES = [
  'sync', 'async', 'late', 'middleware', 'after', 'generator', 'rejected', 'returned', 'returned late',
] as const;

export const errors: Target = {
  name: 'errors',
  outcomes: [
    'scalar', 'foreign', 'exposed', 'own', 'own with a header', 'own with a wrong header', 'tampered', 'proxy',
    'hostile', ...PLACES,
  ],
  async run(random, met) {
    for (let apps = 4; apps > 0; apps -= 1) await askOne(random, met);
  },
};

/** Of more failures in a second an application logs only the number. */
const LOGGED_FAILURES = 10;

async function askOne(random: Random, met: (outcome: string) => void): Promise<void> {
  const lines: string[] = [];
  const app = new Postern('fuzz', { logger: new JsonLogger('fuzz', (line) => lines.push(line)) });
  let thrown: Thrown = { kind: 'scalar', value: undefined, answer: UNKNOWN };
  addRoutes(app, () => thrown.value);
  try {
    const { port } = await app.listen({ host: '127.0.0.1', port: 0 });
    let connection = await WireConnection.open(port);
    for (let count = LOGGED_FAILURES; count > 0; count -= 1) {
      thrown = random.pick(KINDS)(random);
      const place = random.pick(PLACES);
      // A value that is no error is what a handler answers with.
      if (place.startsWith('returned') && !isError(thrown.value)) continue;
      // Streams of Node.js itself read the stack of what they are destroyed with.
      if (place === 'generator' && !hasStack(thrown.value)) continue;
      lines.length = 0;
      await connection.write(`GET /${encodeURIComponent(place)} HTTP/1.1\r\nHost: x\r\n\r\n`);
      const details = { kind: thrown.kind, place, answer: thrown.answer };
      const response = await connection.finalResponse();
      assert(response !== null, 'no answer', details);
      try {
        assertAnswer(response, thrown.answer);
        assertLogged(lines, response.status);
      } catch (error) {
        throw new Error(
          `${JSON.stringify(details)} was answered with ${response.status} ${JSON.stringify(response.headers)} ${response.body.toString().slice(0, 400)}; log: ${lines.join('').slice(0, 400)}`,
          { cause: error },
        );
      }
      met(thrown.kind);
      met(place);
      if (response.headers['connection'] === 'close') {
        await connection.destroy();
        connection = await WireConnection.open(port);
      }
    }
    await connection.destroy();
  } finally {
    await app.close({ timeout: 0 });
  }
}

function addRoutes(app: Postern, value: () => unknown): void {
  const raise = (): never => {
    throw value();
  };
  app.get('/sync', raise);
  app.get('/async', async () => raise());
  app.get('/late', async () => {
    await new Promise((resolve) => setImmediate(resolve));
    raise();
  });
  app.get('/rejected', () => Promise.reject(value()));
  app.get('/generator', () => (async function* (): AsyncGenerator<string> {
    raise();
  })());
  app.get('/returned', () => value() as Error);
  app.get('/returned%20late'.replace('%20', ' '), async () => value() as Error);
  app.group('/middleware', (group) => group.use(raise).get('', () => 'never'));
  app.group('/after', (group) =>
    group.use(async (_ctx, next) => (await next(), raise())).get('', () => 'soon replaced'),
  );
}

function isError(value: unknown): boolean {
  try {
    return value instanceof Error && !('then' in value);
  } catch {
    return false;
  }
}

function hasStack(value: unknown): boolean {
  try {
    if (typeof value === 'object' && value !== null && 'stack' in value) void value.stack;
    return true;
  } catch {
    return false;
  }
}

function assertAnswer(response: WireResponse, answer: Answer | null): void {
  assertUniformError(response);
  const { status, headers, body } = response;
  assert(headers['x-request-id'] !== undefined, 'there is no request id');
  assert(!JSON.stringify([headers, body.toString()]).includes(SECRET), 'a secret was told');
  if (answer === null) return;
  const { message, description, code } = answer;
  assertSame(
    [status, JSON.parse(body.toString())],
    [answer.status, { message, description, error_code: code }],
    'the answer',
  );
  for (const [name, value] of Object.entries(answer.headers ?? {})) assertSame(headers[name], value, name);
}

/** A 5xx is logged, on one line of JSON; a header that can't be sent behind the error that has it. */
function assertLogged(lines: readonly string[], status: number): void {
  // What nobody serves is the client's own affair: whether an HttpError says so, a service that raises it decides.
  const isOptional = status === 501 || status === 505;
  assert(
    status >= 500 ? isOptional || lines.length === 1 || lines.length === 2 : lines.length === 0,
    `${lines.length} lines were logged`,
  );
  for (const line of lines) {
    const { level, msg } = JSON.parse(line) as Record<string, unknown>;
    assert(line.indexOf('\n') === line.length - 1, 'an entry of more than one line');
    assertSame([level, msg], ['error', 'request failed'], 'the entry');
  }
}

type Make = (random: Random) => Thrown;

function pickAny(random: Random, values: readonly unknown[]): unknown {
  return values[random.int(values.length)];
}

const STATUSES: readonly unknown[] = [
  undefined, 0, 99, 200, 204, 304, 399, 400, 404, 418, 451, 499, 500, 503, 599, 600, 404.5, NaN, '404', Infinity, -1,
  null, {}, 400n,
];

const scalar: Make = (random) => {
  const scalars = [
    undefined, null, 0, NaN, '', SECRET, true, 1n, Symbol(SECRET), 404, [SECRET], () => SECRET, new Date(),
    new Map([[SECRET, SECRET]]), Object.create(null), { status: 404, expose: true, message: SECRET },
    { statusCode: 400, description: SECRET, errorCode: Codes.help_me }, { toString: fail, toJSON: fail },
    Promise.resolve(SECRET), { then: fail }, new Response(SECRET), new Uint8Array(3),
  ];
  return { kind: 'scalar', value: pickAny(random, scalars), answer: UNKNOWN };
};

function fail(): never {
  throw new Error(SECRET);
}

function foreign(random: Random): Error {
  return random.pick([
    () => new Error(SECRET),
    () => new TypeError(SECRET),
    () => new AggregateError([new Error(SECRET)], SECRET),
    () => new DOMException(SECRET, 'AbortError'),
    () => new (class Odd extends RangeError {})(SECRET, { cause: new Error(SECRET) }),
  ])();
}

const foreignError: Make = (random) => {
  const error = oneIn(random, 10) ? (runInNewContext(`new Error('${SECRET}')`) as Error) : foreign(random);
  const fields: Record<string, unknown> = {
    status: pickAny(random, STATUSES),
    statusCode: pickAny(random, STATUSES),
    code: SECRET,
    headers: { 'x-secret': SECRET },
    description: SECRET,
    errorCode: Codes.help_me,
    toJSON: () => SECRET,
  };
  if (oneIn(random, 3)) fields['expose'] = pickAny(random, [1, 'true', {}, null, false]);
  for (const [name, value] of Object.entries(fields))
    if (oneIn(random, 2))
      Object.defineProperty(error, name, { value, configurable: true, enumerable: oneIn(random, 2) });
  return { kind: 'foreign', value: error, answer: UNKNOWN };
};

const exposedError: Make = (random) => {
  const [status, statusCode] = [pickAny(random, STATUSES), pickAny(random, STATUSES)];
  const message = random.pick(['no such thing', '', 'é "\\\n\u2028', '<script>', '\ud83d']);
  const error = Object.assign(new Error(message), {
    expose: true,
    status,
    statusCode,
    headers: { 'x-told': 'told' },
    description: SECRET,
    errorCode: Codes.help_me,
  });
  const valid = [status, statusCode].find(
    (one): one is number => typeof one === 'number' && Number.isInteger(one) && one >= 400 && one <= 599,
  );
  const answer =
    valid === undefined
      ? UNKNOWN
      : exposedAnswer(valid, message);
  return { kind: 'exposed', value: error, answer };
};

/** An error without a text is described by the reason phrase. */
function exposedAnswer(status: number, text: string): Answer {
  const message = STATUS_CODES[status] ?? 'Unknown Error';
  return { status, message, description: text === '' ? message : text, code: UNSPECIFIED, headers: { 'x-told': 'told' } };
}

class TooSlow extends ApiError {
  static override statusCode = 408;
  static override message = 'Too slow.';
  static override description = 'It took too long.';
  static override errorCode = Codes.too_slow;
}

function ownAnswer(random: Random): { readonly error: ApiError | HttpError; readonly answer: Answer } {
  const text = random.pick(['gone', 'é "\\\n\u2028', '<script>', 'x'.repeat(2000), ' ']);
  const status = 400 + random.int(200);
  const { code, message } = {
    code: oneIn(random, 2) ? Codes.help_me : undefined,
    message: oneIn(random, 2) ? 'Oh.' : undefined,
  };
  const cause = new Error(SECRET);
  const options = {
    cause,
    ...(code === undefined ? {} : { errorCode: code }),
    ...(message === undefined ? {} : { message }),
  };
  const answerOf = (own: number, phrase: string, description: string): Answer =>
    ({ status: own, message: message ?? phrase, description, code: code ?? UNSPECIFIED });
  switch (random.int(8)) {
    case 0:
      return {
        error: new HttpError(status, text, { cause }),
        answer: { status, message: STATUS_CODES[status] ?? 'Unknown Error', description: text, code: UNSPECIFIED },
      };
    case 1:
      return { error: new NotFound(text, options), answer: answerOf(404, 'Not found.', text) };
    case 2:
      return {
        error: new BadRequest(undefined, options),
        answer: answerOf(400, 'Bad request.', message ?? 'Bad request.'),
      };
    case 3:
      return {
        error: new TooManyRequests(text, { ...options, retryAfter: 30 }),
        answer: { ...answerOf(429, 'Too many requests.', text), headers: { 'retry-after': '30' } },
      };
    case 4:
      return {
        error: new TooSlow(undefined, { cause }),
        answer: { status: 408, message: 'Too slow.', description: 'It took too long.', code: Codes.too_slow },
      };
    case 5:
      return { error: new ServiceUnavailable(text, options), answer: answerOf(503, 'Service unavailable.', text) };
    case 6:
      return {
        error: new Conflict(text, { ...options, statusCode: status }),
        answer: answerOf(status, 'Conflict.', text),
      };
    default:
      return {
        error: new ApiError(text, { ...options, statusCode: status }),
        answer: answerOf(status, 'An unknown error occurred', text),
      };
  }
}

const ownError: Make = (random) => {
  const { error, answer } = ownAnswer(random);
  return { kind: 'own', value: error, answer };
};

const ownErrorWithHeader: Make = (random) => {
  const [name, value] = random.pick([
    ['x-a', 'b'],
    ['X-B', ' c '],
    ['www-authenticate', 'Basic realm="a"'],
    ['retry-after', '7'],
  ] as const);
  // What frames a reply is not an error's to say.
  const headers = {
    [name]: value,
    ...(oneIn(random, 2)
      ? { 'Content-Length': '3', 'content-type': 'text/html', 'Transfer-Encoding': 'chunked', 'X-Request-ID': SECRET }
      : {}),
  };
  const error = oneIn(random, 2) ? new HttpError(404, 'gone', { headers }) : new NotFound('gone', { headers });
  const answer = {
    status: 404,
    message: error.message,
    description: 'gone',
    code: UNSPECIFIED,
    headers: { [name.toLowerCase()]: value.trim() },
  };
  return { kind: 'own with a header', value: error, answer };
};

const ownErrorWithWrongHeader: Make = (random) => {
  const headers = random.pick([
    { 'x a': 'b' }, { 'x-a': 'a\r\nx-b: c' }, { 'x-a': '\u0000' }, { 'x-a': '漢' }, { '': 'a' }, { 'x-a\r\n': 'b' },
    { 'é': 'b' },
  ]);
  return { kind: 'own with a wrong header', value: new NotFound('gone', { headers }), answer: UNKNOWN };
};

/** With its stack as text: with source maps, what makes that text reads fields that are about to change. */
function written<E extends Error>(error: E): E {
  void error.stack;
  return error;
}

/** Values that no field of an error ought to have. */
function odd(random: Random): PropertyDescriptor {
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  const values: readonly unknown[] = [
    undefined, null, 0, '', NaN, 1n, Symbol('x'), cycle, {}, [], () => 'x', { name: 5, value: 'x' },
    { name: 'x', value: 1.5 }, 'x', new Proxy({}, THROWING), { toJSON: fail }, ...STATUSES,
  ];
  return oneIn(random, 4)
    ? { get: fail, configurable: true }
    : { value: pickAny(random, values), configurable: true, enumerable: oneIn(random, 2) };
}

/** Errors of ours whose fields were changed later, or that a subclass defines anew. */
const tamperedError: Make = (random) => {
  const error = written(ownAnswer(random).error);
  for (const name of several(random, 1, 3, () =>
    random.pick([
      'statusCode',
      'description',
      'errorCode',
      'message',
      'headers',
      'stack',
      'cause',
      'name',
      'expose',
      'status',
      'toJSON',
      'constructor',
    ]),
  ))
    Object.defineProperty(error, name, odd(random));
  return { kind: 'tampered', value: error, answer: null };
};

const THROWING: ProxyHandler<object> = {
  get: fail,
  has: fail,
  getPrototypeOf: fail,
  getOwnPropertyDescriptor: fail,
  ownKeys: fail,
};

const proxiedError: Make = (random) => {
  const target = written(oneIn(random, 2) ? ownAnswer(random).error : foreign(random));
  if (oneIn(random, 6)) {
    const { proxy, revoke } = Proxy.revocable(target, {});
    revoke();
    return { kind: 'proxy', value: proxy, answer: UNKNOWN };
  }
  const traps = Object.entries(THROWING).filter(() => oneIn(random, 3));
  let reads = 0;
  // A different answer each time that it is asked.
  const fickle = {
    get: (object: object, name: string | symbol): unknown =>
      (reads += 1) % 3 === 0 ? undefined : reads % 5 === 0 ? SECRET.length : Reflect.get(object, name),
  };
  return {
    kind: 'proxy',
    value: new Proxy(target, Object.fromEntries(oneIn(random, 3) ? Object.entries(fickle) : traps)),
    answer: null,
  };
};

const hostileError: Make = (random) => {
  const error = written(foreign(random));
  const name = random.pick(['cycle', 'deep', 'stack', 'message', 'name', 'inspect', 'errors', 'wide', 'then']);
  const define = (key: string | symbol, descriptor: PropertyDescriptor): unknown =>
    Object.defineProperty(error, key, { configurable: true, enumerable: true, ...descriptor });
  if (name === 'cycle') define('cause', { value: error });
  else if (name === 'deep') {
    let inner = new Error(SECRET);
    for (let depth = oneIn(random, 10) ? 20_000 : 100; depth > 0; depth -= 1)
      inner = new Error(SECRET, { cause: inner });
    define('cause', { value: inner });
  } else if (name === 'inspect') define(Symbol.for('nodejs.util.inspect.custom'), { value: fail });
  else if (name === 'errors') define('errors', { value: [error, error] });
  else if (name === 'wide')
    define('fields', {
      value: Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`k${index}\u2028`, SECRET])),
    });
  else if (name === 'then') define('then', { value: (_: unknown, reject: (error: unknown) => void) => reject(error) });
  else
    define(
      name,
      oneIn(random, 2) ? { get: fail } : { value: pickAny(random, [undefined, null, 1n, Symbol('x'), {}, []]) },
    );
  return { kind: 'hostile', value: error, answer: UNKNOWN };
};

const KINDS: readonly Make[] = [
  scalar, foreignError, foreignError, exposedError, ownError, ownErrorWithHeader, ownErrorWithWrongHeader,
  tamperedError, tamperedError, proxiedError, hostileError,
];
