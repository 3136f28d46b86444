/** Errors as problem details (RFC 9457), to clients that ask for them. */

import { expect, test } from 'vitest';
import { ApiError, defineErrorCodes, Postern } from 'postern';
import { createApp, expectFailures } from '../support/serve.js';

const Codes = defineErrorCodes({ too_slow: 10002 });
class TooSlow extends ApiError {
  static override statusCode = 408;
  static override message = 'Too slow.';
  static override description = 'Be quick.';
  static override errorCode = Codes.too_slow;
}
const failing = (options: object = {}): Postern => createApp(options)
  .get('/slow', () => { throw new TooSlow(undefined, { headers: { vary: 'Origin', 'x-a': 'b' } }); });
const UNIFORM = { message: 'Too slow.', description: 'Be quick.', error_code: { name: 'too_slow', value: 10002 } };
const PROBLEM = {
  type: 'about:blank',
  title: 'Too slow.',
  status: 408,
  detail: 'Be quick.',
  error_code: { name: 'too_slow', value: 10002 },
};

const accepts: { accept: string | undefined; isProblem: boolean }[] = [
  { accept: undefined, isProblem: false },
  { accept: '*/*', isProblem: false },
  { accept: 'application/*', isProblem: false },
  { accept: 'application/json', isProblem: false },
  { accept: 'application/problem+json', isProblem: true },
  { accept: 'Application/Problem+JSON; charset=utf-8', isProblem: true },
  { accept: 'application/problem+json, */*', isProblem: true },
  { accept: 'application/json, application/problem+json', isProblem: false },
  { accept: 'application/json;q=0.9, application/problem+json', isProblem: true },
  { accept: 'application/json, application/problem+json;q=0.9', isProblem: false },
  { accept: 'application/problem+json;q=0', isProblem: false },
  { accept: 'application/problem+json;q=2', isProblem: false },
  { accept: 'text/plain;x="application/problem+json"', isProblem: false },
  { accept: 'application/problem+json-patch', isProblem: false },
];
test.for(accepts)('Accept: $accept', async ({ accept, isProblem }) => {
  const response = await failing().request('/slow', accept === undefined ? {} : { headers: { accept } });
  expect(response.status).toBe(408);
  expect(response.headers.get('content-type')).toBe(isProblem ? 'application/problem+json' : 'application/json');
  expect(response.headers.get('vary')).toBe('Origin, accept');
  expect(response.headers.get('x-a')).toBe('b');
  expect(await response.json()).toEqual(isProblem ? PROBLEM : UNIFORM);
});

const ask = { headers: { accept: 'application/problem+json' } };

test.for(['https://errors.example/codes/', 'https://errors.example/codes#'])(
  'errorTypes %s stands before the name of the code',
  async (errorTypes) => {
    expect(await (await failing({ errorTypes }).request('/slow', ask)).json())
      .toEqual({ ...PROBLEM, type: `${errorTypes}too_slow` });
  },
);

test.for(['errors/', 'https://errors.example', '', 5])('errorTypes %s is refused', (errorTypes) => {
  expect(() => new Postern('users', { errorTypes: errorTypes as string }))
    .toThrow('give an absolute URL that ends in / or #');
});

test('404, 405, 500 and findings are problem details too', async () => {
  const app = expectFailures(createApp(), 500).get('/fails', () => { throw new Error('secret'); });
  app.get(
    '/checked',
    {
      query: {
        '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [{ message: 'no', path: ['q'] }] }) },
      } as never,
    },
    () => 'ok',
  );
  expect(await (await app.request('/none', ask)).json())
    .toMatchObject({ title: 'Not Found', status: 404, error_code: { value: 999998 } });
  expect(await (await app.request('/fails', { method: 'PUT', ...ask })).json()).toMatchObject({ status: 405 });
  expect(await (await app.request('/fails', ask)).json())
    .toMatchObject({ title: 'Server Error', status: 500, error_code: { value: 999999 } });
  expect(await (await app.request('/checked', ask)).json()).toEqual({
    type: 'about:blank',
    title: 'Bad request.',
    status: 400,
    detail: 'query/q: no',
    error_code: { name: 'framework_invalid_request', value: 999401 },
    errors: [{ in: 'query', pointer: '#/q', detail: 'no' }],
  });
});

test('a header Accept of 16 kB costs no more than its length', async () => {
  const app = createApp({ maxHeaderSize: 65_536 });
  const response = await app.request('/none', {
    headers: { accept: `application/problem+json,${';q=",'.repeat(4000)}` },
  });
  expect(response.status).toBe(404);
});
