/** Whatever is thrown maps to a status of an error and the uniform body, and nothing of it leaks. */

import { expect, test } from 'vitest';
import { ApiError, HttpError } from 'postern';
import { mapError } from '../../src/answer/errors.js';
import { toErrorBody } from '../../src/payload/error-body.js';
import { createRandom } from '../support/random.js';

const SECRET = 'secret-7f3a';

test('any thrown value', () => {
  const seed = Number(process.env['SEED'] ?? 99);
  const random = createRandom(seed);
  const pickAny = (values: readonly unknown[]): unknown => values[random.int(values.length)];
  const scalars = [
    undefined, null, 0, NaN, '', SECRET, true, 1n, Symbol(SECRET), 404, [SECRET], () => SECRET, new Date(), new Map(),
    Object.create(null) as object,
  ];
  const statuses = [undefined, 0, 99, 200, 399, 400, 404, 499, 500, 599, 600, 404.5, NaN, '404', Infinity, -1];
  for (let round = 0; round < 5000; round += 1) {
    let thrown = pickAny(scalars);
    if (random.int(3) > 0) {
      const error: Error = random.pick([
        new Error(SECRET),
        new TypeError(SECRET),
        new AggregateError([new Error(SECRET)], SECRET),
        new DOMException(SECRET),
      ]);
      const fields: Record<string, unknown> = {
        status: pickAny(statuses),
        statusCode: pickAny(statuses),
        code: pickAny(scalars),
        headers: { 'x-secret': SECRET },
        description: SECRET,
        errorCode: { name: SECRET, value: 1 },
      };
      if (random.int(4) === 0) fields['expose'] = pickAny([1, 'true', {}, null]);
      for (const [name, value] of Object.entries(fields))
        Object.defineProperty(error, name, { value, configurable: true });
      if (random.int(5) === 0) Object.defineProperty(error, 'expose', { get: () => { throw new Error(SECRET); } });
      thrown = random.int(4) === 0 ? new Proxy(error, {}) : error;
    }
    const mapped = mapError(thrown);
    expect(mapped.statusCode, `seed ${seed}`).toBe(500);
    expect(JSON.stringify(toErrorBody(mapped)), `seed ${seed}`).toBe(
      '{"message":"Server Error","description":"Something has blown up really bad. Somebody should be notified?","error_code":{"name":"framework_unknown_error","value":999999}}',
    );
    expect(mapped.headers, `seed ${seed}`).toBeUndefined();
  }
});

test('an error of ours keeps what it says', () => {
  for (const error of [new ApiError('a', { statusCode: 418 }), new HttpError(503, 'b')])
    expect(mapError(error)).toBe(error);
});
