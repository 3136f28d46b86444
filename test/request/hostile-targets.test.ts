/** Advisories about request targets. */

import { expect, test } from 'vitest';
import { rawRequest } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

/**
 * Targets with what a handler sees of them, and refused ones that target.test.ts leaves out; `null` for a query without
 * `next`.
 */
const TARGETS: readonly (readonly [target: string, status: number, answer?: string])[] = [
  ['http://x?next=/admin', 200, '/ next=/admin'],
  ['http://x?/admin', 200, '/ next=null'],
  ['http://x:80?next=http://y/admin', 200, '/ next=http://y/admin'],
  ['HTTP://x', 200, '/ next=null'],
  ['hTTpS://x/', 200, '/ next=null'],
  ['http://x/?/admin', 200, '/ next=null'],
  ['http://x%2Fadmin', 200, '/ next=null'],
  ['http://x;a=/admin', 200, '/admin next=null'],
  ['http://[::1]:80/admin?next=/', 200, '/admin next=/'],
  ['http://y/admin', 200, '/admin next=null'],
  ['http://x//x', 404],
  ['http://x//admin', 404],
  ['/*', 404],
  ['http://', 400],
  ['http://?next=/admin', 400],
  ['http:\\\\x\\admin', 400],
  ['http://x\\@y/admin', 400],
  ['http://x:80:81/admin', 400],
  ['http://x:admin', 400],
  ['javascript://x/admin', 400],
  ['x', 400],
  ['*?next=/admin', 400],
  ['**', 400],
];

test.for(TARGETS)('the target %s gives %i', async ([target, status, answer]) => {
  const app = createApp();
  for (const path of ['/', '/admin'] as const) app.get(path, (ctx) => `${ctx.path} next=${ctx.query.get('next')}`);
  const { port } = await serve(app);
  const response = await rawRequest(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(response.status).toBe(status);
  if (answer !== undefined) expect(response.body).toBe(answer);
});

test.for(['http://x', '*?a', '**', '/*'])('OPTIONS with the target %s is not OPTIONS *', async (target) => {
  const { port } = await serve(createApp().post('/', () => 'x'));
  const response = await rawRequest(port, `OPTIONS ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  if (target === 'http://x') expect([response.status, response.headers['allow']]).toEqual([204, 'OPTIONS, POST']);
  else expect(response.status).toBe(target === '/*' ? 404 : 400);
});
