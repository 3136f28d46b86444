/** `app.closing`: work that would never end by itself learns when to end. */

import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { createApp, serve } from '../support/serve.js';

test('app.closing aborts at the end of the delay, while requests in flight still run', async () => {
  const app = createApp();
  const order: string[] = [];
  app.get('/poll', async () => {
    order.push('asked');
    await new Promise((resolve) => app.closing.addEventListener('abort', resolve));
    return 'ended';
  });
  app.onClose(() => order.push('hook'));
  app.closing.addEventListener('abort', () => order.push('closing'));
  const polled = app.request('/poll').then((response) => response.text());
  await expect.poll(() => order).toEqual(['asked']);
  const closed = app.close({ delay: 100, timeout: 60_000 });
  expect(app.closing.aborted).toBe(false);
  expect(await polled).toBe('ended');
  await closed;
  expect(order).toEqual(['asked', 'closing', 'hook']);
});

test.for(['that listens', 'inside the server of someone else', 'that never listened'])(
  'app.closing aborts when an application %s is closed',
  async (which) => {
    const app = createApp();
    if (which === 'that listens') await serve(app);
    if (which === 'inside the server of someone else') app.attach(createServer());
    await app.close();
    expect(app.closing.aborted).toBe(true);
  },
);

test('app.closing takes any number of listeners without a warning', async () => {
  const warnings: Error[] = [];
  const warn = (warning: Error): void => void warnings.push(warning);
  process.on('warning', warn);
  onTestFinished(() => void process.off('warning', warn));
  const app = createApp();
  let calls = 0;
  for (let i = 0; i < 50; i += 1) app.closing.addEventListener('abort', () => (calls += 1));
  await app.close();
  await new Promise(setImmediate);
  expect([calls, warnings]).toEqual([50, []]);
});
