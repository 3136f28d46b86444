/** The rules of SPEC.md section 7, over real sockets. */

import { expect, test } from 'vitest';
import {
  ApiError, BadRequest, Conflict, defineErrorCodes, Forbidden, FrameworkErrorCodes, HttpError, NotFound,
  ServiceUnavailable, TooManyRequests, Unauthorized,
} from 'postern';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

const Codes = defineErrorCodes({ too_slow: 10002, help_me: 10003 });
enum Numeric {
  broken = 4,
  worn = -5,
}
const EnumCodes = defineErrorCodes(Numeric);

class TooSlow extends ApiError {
  static override statusCode = 408;
  static override description = 'Too slow!';
  static override errorCode = Codes.too_slow;
}
class Terse extends ApiError {
  static override message = 'Terse.';
}
class MissingId extends BadRequest {
  static override errorCode = EnumCodes.broken;
}

const unspecified = { name: 'framework_error_unspecified', value: 999998 };
const unknown = {
  message: 'Server Error',
  description: 'Something has blown up really bad. Somebody should be notified?',
  error_code: { name: 'framework_unknown_error', value: 999999 },
};
const hostile = new Proxy(
  {},
  {
    get: () => {
      throw new Error('trap');
    },
    getPrototypeOf: () => {
      throw new Error('trap');
    },
  },
);

const cases: { rule: string; thrown: () => unknown; status: number; body: object; headers?: Record<string, string> }[] =
  [
    {
      rule: '7.1.3: a type with fixed attributes',
      thrown: () => new TooSlow(),
      status: 408,
      body: {
        message: 'An unknown error occurred',
        description: 'Too slow!',
        error_code: { name: 'too_slow', value: 10002 },
      },
    },
    {
      rule: '7.1.4: a description per raise',
      thrown: () => new TooSlow('Very slow!'),
      status: 408,
      body: {
        message: 'An unknown error occurred',
        description: 'Very slow!',
        error_code: { name: 'too_slow', value: 10002 },
      },
    },
    {
      rule: '7.1.4: description, status and code alone',
      thrown: () => new ApiError('HELP ME!', { statusCode: 504, errorCode: Codes.help_me }),
      status: 504,
      body: {
        message: 'An unknown error occurred',
        description: 'HELP ME!',
        error_code: { name: 'help_me', value: 10003 },
      },
    },
    { rule: '7.1: an API exception without anything', thrown: () => new ApiError(), status: 500,
      body: { message: 'An unknown error occurred', description: 'An unknown error occurred', error_code: unspecified } },
    { rule: '7.1: a type without a description uses its message', thrown: () => new Terse(), status: 500,
      body: { message: 'Terse.', description: 'Terse.', error_code: unspecified } },
    { rule: '7.1: a message per raise', thrown: () => new ApiError('d', { message: 'm' }), status: 500,
      body: { message: 'm', description: 'd', error_code: unspecified } },
    { rule: '7.1.5: a server exception', thrown: () => new HttpError(503, 'down for repairs'), status: 503,
      body: { message: 'Service Unavailable', description: 'down for repairs', error_code: unspecified } },
    { rule: '7.1.5: a server exception without a text', thrown: () => new HttpError(418), status: 418,
      body: { message: "I'm a Teapot", description: "I'm a Teapot", error_code: unspecified } },
    { rule: '7.1.6: any other exception', thrown: () => new TypeError('secret /etc/passwd'), status: 500, body: unknown },
    { rule: '7.1.6: a thrown string', thrown: () => 'secret', status: 500, body: unknown },
    { rule: '7.1.6: throw undefined', thrown: () => undefined, status: 500, body: unknown },
    { rule: '7.1.6: throw null', thrown: () => null, status: 500, body: unknown },
    { rule: '7.1.6: a thrown object that traps every look', thrown: () => hostile, status: 500, body: unknown },
    { rule: '7.1.6: a foreign error with a status',
      thrown: () => Object.assign(new Error('secret'), { status: 404, code: 'ECONNREFUSED', headers: { 'x-secret': '1' } }),
      status: 500, body: unknown },
    { rule: '7.1.5: an error that exposes itself (http-errors)',
      thrown: () => Object.assign(new Error('no such cat'), { status: 404, expose: true, headers: { 'x-own': '1' } }),
      status: 404, body: { message: 'Not Found', description: 'no such cat', error_code: unspecified },
      headers: { 'x-own': '1' } },
    { rule: '7.1.6: an exposing error with a status that is none of an error',
      thrown: () => Object.assign(new Error('secret'), { status: 200, expose: true }), status: 500, body: unknown },
    { rule: '7.3: the base bad request', thrown: () => new BadRequest(), status: 400,
      body: { message: 'Bad request.', description: 'Bad request.', error_code: unspecified } },
    { rule: '7.3: a bad request with a code of its own', thrown: () => new MissingId('No id.'), status: 400,
      body: { message: 'Bad request.', description: 'No id.', error_code: { name: 'broken', value: 4 } } },
    { rule: 'ready-made: Unauthorized',
      thrown: () => new Unauthorized(undefined, { headers: { 'www-authenticate': 'Basic' } }), status: 401,
      body: { message: 'Unauthorized.', description: 'Unauthorized.', error_code: unspecified },
      headers: { 'www-authenticate': 'Basic' } },
    { rule: 'ready-made: Forbidden', thrown: () => new Forbidden(), status: 403,
      body: { message: 'Forbidden.', description: 'Forbidden.', error_code: unspecified } },
    { rule: 'ready-made: NotFound', thrown: () => new NotFound('No user 7.'), status: 404,
      body: { message: 'Not found.', description: 'No user 7.', error_code: unspecified } },
    { rule: 'ready-made: Conflict', thrown: () => new Conflict(), status: 409,
      body: { message: 'Conflict.', description: 'Conflict.', error_code: unspecified } },
    { rule: 'ready-made: TooManyRequests', thrown: () => new TooManyRequests('Slow down', { retryAfter: 30 }),
      status: 429, body: { message: 'Too many requests.', description: 'Slow down', error_code: unspecified },
      headers: { 'retry-after': '30' } },
    { rule: 'ready-made: ServiceUnavailable', thrown: () => new ServiceUnavailable(undefined, { retryAfter: 1 }),
      status: 503,
      body: { message: 'Service unavailable.', description: 'Service unavailable.', error_code: unspecified },
      headers: { 'retry-after': '1' } },
    { rule: 'an error whose headers were taken away',
      thrown: () => Object.defineProperty(new HttpError(418, 'tea'), 'headers', { value: null }), status: 418,
      body: { message: 'I\'m a Teapot', description: 'tea', error_code: unspecified } },
  ];

const raised = [
  ...cases.map((row) => ({ ...row, how: 'thrown' })),
  ...cases.map((row) => ({ ...row, how: 'rejected' })),
];
test.for(raised)('$rule, $how', async ({ thrown, status, body, headers = {}, how }) => {
  const app = expectFailures(createApp(), status);
  app.get('/', how === 'thrown' ? () => { throw thrown(); } : async () => Promise.reject(thrown()));
  const { url } = await serve(app);
  const response = await fetch(url);
  expect(response.status).toBe(status);
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(await response.json()).toEqual(body);
  expect(response.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
  expect(response.headers.get('x-secret')).toBeNull();
  for (const [name, value] of Object.entries(headers)) expect(response.headers.get(name)).toBe(value);
});

test('7.1: an error that is returned is raised', async () => {
  const { url } = await serve(
    expectFailures(createApp(), 500)
      .get('/', () => new NotFound('gone'))
      .get('/wrapped', async () => new TypeError('secret')),
  );
  expect((await fetch(url)).status).toBe(404);
  expect(await (await fetch(`${url}/wrapped`)).json()).toEqual(unknown);
});

test('7.1.6: a 5xx is logged on one line with its stack, its description and its code; a 4xx at debug', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500, 504);
  app.get('/bug', () => { throw new TypeError('boom'); });
  app.get('/api', () => { throw new ApiError('HELP ME!', { statusCode: 504, errorCode: Codes.help_me }); });
  app.get('/no', () => { throw new NotFound(); });
  const { url } = await serve(app);
  const id = (await fetch(`${url}/bug`)).headers.get('x-request-id');
  await fetch(`${url}/api`);
  await fetch(`${url}/no`);
  const [bug, api, no] = logger.entries;
  expect(bug).toMatchObject({
    level: 'error',
    object: {
      request_id: id,
      status_code: 500,
      method: 'GET',
      target: '/bug',
      err: { message: 'boom', stack: expect.stringContaining('TypeError: boom') },
    },
  });
  expect(api).toMatchObject({
    level: 'error',
    object: { status_code: 504, err: { description: 'HELP ME!', errorCode: { name: 'help_me', value: 10003 } } },
  });
  expect(no).toMatchObject({ level: 'debug', object: { status_code: 404 } });
});

test("7.1: the request's own id is kept when it is fit, and replaced when it is not", async () => {
  const { url } = await serve(createApp());
  const idFor = async (given: string): Promise<string | null> =>
    (await fetch(`${url}/nowhere`, { headers: { 'x-request-id': given } })).headers.get('x-request-id');
  expect(await idFor('abc-1._Z')).toBe('abc-1._Z');
  for (const unfit of ['a b', 'a,b', 'x'.repeat(129), 'é', '"']) {
    const id = await idFor(unfit);
    expect(id).not.toBe(unfit);
    expect(id).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
  }
});

test('7.2: the common codes have their names and values', () => {
  expect({ ...FrameworkErrorCodes }).toEqual({
    framework_error_unspecified: { name: 'framework_error_unspecified', value: 999998 },
    framework_unknown_error: { name: 'framework_unknown_error', value: 999999 },
    framework_invalid_query_params: { name: 'framework_invalid_query_params', value: 999400 },
    framework_invalid_request: { name: 'framework_invalid_request', value: 999401 },
    framework_invalid_response: { name: 'framework_invalid_response', value: 999502 },
    framework_overloaded: { name: 'framework_overloaded', value: 999503 },
    framework_timeout: { name: 'framework_timeout', value: 999504 },
  });
});

test('2.6: an error code is a frozen member of an enumeration', () => {
  expect(Codes.too_slow).toEqual({ name: 'too_slow', value: 10002 });
  expect(Object.isFrozen(Codes.too_slow) && Object.isFrozen(Codes)).toBe(true);
  expect({ ...EnumCodes }).toEqual({ broken: { name: 'broken', value: 4 }, worn: { name: 'worn', value: -5 } });
});

test.for([
  ['two names with one value', { a: 1, b: 1 }],
  ['a fraction', { a: 1.5 }],
  ['an unsafe integer', { a: 2 ** 53 }],
  ['NaN', { a: NaN }],
  ['a string', { a: 'a' }],
  ['a list', [1] as never],
  ['nothing', null as never],
] as const)('2.6: an enumeration with %s throws', ([, source]) => {
  expect(() => defineErrorCodes(source)).toThrow(/^(?:error codes? "|defineErrorCodes\(\) got ).*; /);
  expect(() => defineErrorCodes(source)).toThrow(TypeError);
});

test('7.1: retryAfter takes the place of the header, in whatever case', () => {
  const { headers } = new TooManyRequests('x', { retryAfter: 30, headers: { 'Retry-After': '5', 'x-a': 'b' } });
  expect(headers).toEqual({ 'x-a': 'b', 'retry-after': '30' });
});

test('7.1: an error code that came from elsewhere throws, a status that is none of an error too', () => {
  for (const errorCode of [{ name: 'too_slow', value: 10002 }, null])
    expect(() => new ApiError('x', { errorCode: errorCode as never })).toThrow(TypeError);
  for (const statusCode of [399, 600, 200, 404.5, NaN, null as never]) {
    expect(() => new ApiError('x', { statusCode })).toThrow(RangeError);
    expect(() => new HttpError(statusCode)).toThrow(RangeError);
  }
});

test('7.1: an error keeps its cause, for the log alone', async () => {
  const cause = new Error('secret cause');
  const error = new ApiError('d', { cause });
  expect(error.cause).toBe(cause);
  const { url } = await serve(expectFailures(createApp(), 500).get('/', () => { throw error; }));
  expect(await (await fetch(url)).text()).not.toContain('secret');
});

test('7.1: a header of an error that cannot be sent gives the uniform 500', async () => {
  const { url } = await serve(
    expectFailures(createApp(), 500).get('/', () => {
      throw new NotFound('x', { headers: { 'x-bad': 'a\r\nset-cookie: b' } });
    }),
  );
  const response = await fetch(url);
  expect(response.status).toBe(500);
  expect(await response.json()).toEqual(unknown);
  expect(response.headers.get('set-cookie')).toBeNull();
});

test.for<[string, PropertyDescriptorMap]>([
  ['a status that is none of an error', { statusCode: { value: 200 } }],
  ['no code', { errorCode: { value: null } }],
  ['a getter that throws', { statusCode: { get: () => { throw new Error('trap'); } } }],
])('an API error that was given %s gives 500', async ([, change]) => {
  const { url } = await serve(
    expectFailures(createApp(), 500).get('/', () => {
      throw Object.defineProperties(new NotFound(), change);
    }),
  );
  for (const _ of [1, 2]) expect((await fetch(url)).status).toBe(500);
});
