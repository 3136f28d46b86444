/** Names and options that an application refuses. */

import { expect, test } from 'vitest';
import { Postern, type PosternOptions } from 'postern';

test.for(['', '.', '..', 'a/b', 'a b', 'é', 'a%20', undefined, 5])('the name %j throws a TypeError', (name) => {
  expect(() => new Postern(name as string)).toThrow(TypeError);
});

const invalid: PosternOptions[] = [
  { bodyLimit: -1 },
  { bodyLimit: NaN },
  { bodyLimit: 1.5 },
  { bodyLimit: '10 MB' as never },
  { bodyLimit: null as never },
  { requestTimeout: -1 },
  { headersTimeout: Infinity },
  { keepAliveTimeout: '5' as never },
  { headersTimeout: 2000, requestTimeout: 1000 },
  { maxPingDepth: 0.5 },
  { pingTimeout: -5 },
  { pingTimeout: 0 },
  { version: 5 as never },
  { logger: { info() {} } as never },
  { settings: { SERVICE_CONNECTIONS: ['a=http://x', 'a=http://y'] } },
];
test.for(invalid)('the options %j throw a TypeError', (options) => {
  expect(() => new Postern('users', options)).toThrow(TypeError);
});

test.for<PosternOptions>([
  { maxConnections: -1 },
  { maxHeadersCount: 0 },
  { maxHeaderSize: 1.5 },
  { parameterLimit: NaN },
  { sendTimeout: '1 s' as never },
  { loadShedding: { observe: 1 as never } },
  { loadShedding: null as never },
  { loadShedding: { maxEventLoopDelay: 0 } },
  { loadShedding: { maxMemoryPercent: Infinity } },
  { loadShedding: { retryAfter: -1 } },
])('the limit %j throws at construction', (options) => {
  expect(() => new Postern('users', options)).toThrow(TypeError);
});

test.for<PosternOptions>([
  { requestTimeout: 10_001 },
  { headersTimeout: 14_999 },
  { requestTimeout: 60_002, headersTimeout: 15_003 },
])('the limits %j, which are no multiples of 4 ms, are limits like any other', async (options) => {
  const app = new Postern('users', { ...options, logger: false });
  expect((await app.request('/users/ping/')).status).toBe(200);
});
