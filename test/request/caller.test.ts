/** `ctx.caller`: the Postern service that sent a request, by its own account. */

import { expect, test } from 'vitest';
import type { Context } from 'postern';
import { createApp, createRecorder, serve } from '../support/serve.js';

const own = { name: 'shop', version: '1.2.3-beta+7' };
const cases: readonly { userAgent: string | undefined; caller: Context['caller'] }[] = [
  { userAgent: 'shop/1.2.3-beta+7 postern/1.0.0', caller: own },
  { userAgent: 'shop/1.2.3-beta+7 postern/12.0.0-rc.1', caller: own },
  { userAgent: `${'s'.repeat(64)}/1 postern/1`, caller: { name: 's'.repeat(64), version: '1' } },
  { userAgent: `${'s'.repeat(65)}/1 postern/1`, caller: undefined },
  { userAgent: undefined, caller: undefined },
  { userAgent: 'curl/8.5.0', caller: undefined },
  { userAgent: 'Mozilla/5.0 (X11) shop/1 postern/1', caller: undefined },
  { userAgent: 'shop/1 postern/1 (proxy)', caller: undefined },
  { userAgent: '<b>/1 postern/1', caller: undefined },
  { userAgent: 'shop/1', caller: undefined },
  { userAgent: '/ postern/', caller: undefined },
];
test.for(cases)('user-agent $userAgent is the caller $caller', async ({ userAgent, caller }) => {
  const seen: unknown[] = [];
  const app = createApp().get('/', (ctx) => void seen.push(ctx.caller));
  const headers = userAgent === undefined ? {} : { 'user-agent': userAgent };
  expect((await app.request('/', { headers })).status).toBe(204);
  expect(seen).toEqual([caller]);
});

test('a called service sees the name and version of its caller, the public none', async () => {
  const seen: unknown[] = [];
  const billing = createApp({}, 'billing').get('/', (ctx) => void seen.push(ctx.caller));
  billing.get('/open', { public: true }, (ctx) => void seen.push([ctx.scope, ctx.caller]));
  const shop = createApp({ version: 'v1 (a)', services: { billing } }, 'shop');
  await shop.service('billing').get('/');
  await shop.service('billing').get('/open', { headers: { 'x-postern-scope': 'public' } });
  expect(seen).toEqual([{ name: 'shop', version: 'v1_a_' }, ['public', undefined]]);
});

test('the access log has the name of the caller, and no such field for any other client', async () => {
  const logger = createRecorder();
  const { url } = await serve(createApp({ logger, accessLog: true }).get('/', () => 'x'));
  for (const agent of ['shop/1 postern/1', 'curl/8.5.0'])
    await (await fetch(url, { headers: { 'user-agent': agent } })).text();
  await expect.poll(() => logger.entries.length).toBe(2);
  expect(logger.entries.map(({ object }) => ('caller' in object ? object['caller'] : 'absent'))).toEqual(['shop', 'absent']);
});
