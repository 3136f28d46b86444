/** JSON of clients: what is refused, and what is none of anybody's business. */

import { expect, test } from 'vitest';
import { HttpError } from 'postern';
import { parseJson } from '../../src/payload/json.js';

const deep = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

test.for([
  '',
  '{"a":',
  'undefined',
  '{"__proto__":{"polluted":1}}',
  '{"a":[{"__proto__":1}]}',
  '{"\\u005f_proto__":{"polluted":1}}',
  '{"\\u005F\\u005fproto\\u005f_":1}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  '{"constr\\u0075ctor":{"prototype":1}}',
  deep(1001),
  '{"a":'.repeat(200_000),
  '['.repeat(500_000),
])('%.40s is refused', (text) => {
  expect(() => parseJson(text)).toThrow(HttpError);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test.for([
  'null',
  '"__proto__"',
  '{"a":"__proto__"}',
  '{"constructor":"Ford"}',
  '{"constructor":{"name":"x"},"prototype":{}}',
  '{"a":"\\u00e9"}',
  deep(1000),
  `{"a":"${'['.repeat(5000)}\\"${'{'.repeat(5000)}"}`,
  `[${'[],'.repeat(5000)}[]]`,
])('%.40s is taken', (text) => {
  expect(parseJson(text)).toEqual(JSON.parse(text));
});
