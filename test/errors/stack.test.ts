/** The stack of an API exception begins with its message and its description: tools show nothing else of an error. */

import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { ApiError, NotFound, ServiceError } from 'postern';

class Gone extends ApiError {
  static override statusCode = 410;
  static override message = 'Gone.';
  static override description = 'It was here.';
}
class Loud extends NotFound {
  constructor() {
    super('There is no user 7.');
  }
}

test.for<[() => ApiError, string]>([
  [() => new NotFound('There is no user 7.'), 'NotFound: Not found. There is no user 7.'],
  [() => new NotFound(), 'NotFound: Not found.'],
  [() => new Gone(), 'Gone: Gone. It was here.'],
  [() => new Gone('Long gone.'), 'Gone: Gone. Long gone.'],
  [() => new Loud(), 'Loud: Not found. There is no user 7.'],
  [() => new ApiError('HELP ME!', { message: 'Help' }), 'ApiError: Help HELP ME!'],
  [() => new ServiceError('billing', 'Too late.'), 'ServiceError: Bad Gateway Too late.'],
])('%s has a stack that begins with %s, then the line that created it', ([create, text]) => {
  const error = create();
  const [first, second] = (error.stack ?? '').split('\n');
  expect([first, second]).toEqual([text, expect.stringContaining('stack.test.ts')]);
  expect(inspect(error)).toContain(text);
  expect([error.message, Object.keys(error)]).toEqual([error.message, expect.not.arrayContaining(['stack'])]);
});

test('a stack may be replaced, and the limit of later stacks stays as it was', () => {
  const error = new NotFound('There is no user 7.');
  error.stack = 'replaced';
  expect(error.stack).toBe('replaced');
  expect((new Error().stack ?? '').split('\n').length).toBeGreaterThan(2);
  expect(() => new (class extends NotFound { static override message = Symbol('x') as never; })('x')).not.toThrow();
  expect((new Error().stack ?? '').split('\n').length).toBeGreaterThan(2);
});
