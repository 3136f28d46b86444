/** Middleware that changes the document of a monitoring endpoint changes one reply, and no other. */

import { expect, test } from 'vitest';
import type { Middleware, Postern } from 'postern';
import { createApp, serve } from '../support/serve.js';

/** Replaces each value in a document. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  Object.values(value).forEach(spoil);
  for (const name of Object.keys(value)) Reflect.set(value, name, 'spoilt');
}
/** Spoils the document of a request with the header `x-spoil`. */
const spoiling: Middleware = async (ctx, next) => {
  const reply = await next();
  if (ctx.headers['x-spoil'] !== undefined) spoil(reply.body);
};

async function documentsOf(app: Postern, path: string): Promise<unknown[]> {
  const { url } = await serve(app);
  const ask = async (headers: Record<string, string>): Promise<unknown> => {
    const response = await fetch(url + path, { headers });
    return JSON.parse((await response.text()).replace(/\d+ ms/g, 'n ms'));
  };
  const before = await ask({});
  // At the same time, because checks and pings that run already are shared; and one after another.
  const together = await Promise.all([ask({ 'x-spoil': '1' }), ask({}), ask({})]);
  return [before, ...together, await ask({})];
}

test.for<[string, () => Promise<Postern>]>([
  ['/users/openapi/', async () => createApp().get('/users/:id', () => 'user')],
  ['/users/health/', async () => {
    const app = createApp();
    app.health.check('database', () => new Promise((resolve) => setTimeout(resolve, 20)));
    return app;
  }],
  ['/users/ping/?depth=1', async () => {
    const billing = createApp({}, 'billing').use(async (_ctx, next) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return next();
    });
    const { url } = await serve(billing);
    return createApp({ settings: { SERVICE_CONNECTIONS: [`billing=${url}`] } });
  }],
])('%s', async ([path, create]) => {
  const [before, spoilt, ...others] = await documentsOf((await create()).use(spoiling), path);
  expect(JSON.stringify(spoilt)).toContain('"spoilt"');
  expect(others).toEqual([before, before, before]);
});
