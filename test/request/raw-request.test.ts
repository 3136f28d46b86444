/**
 * `ctx.raw.req` of a request without a body is a stream like any other, on every version of Node.js: whichever way a
 * handler reads it, it ends, and it tells when the client leaves.
 */

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { finished } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createApp, serve } from '../support/serve.js';

const WAYS: Record<string, (req: IncomingMessage) => Promise<unknown>> = {
  'resume() and end': (req) => once(req.resume(), 'end'),
  'data and end': (req) => new Promise((resolve, reject) => req.on('data', reject).on('end', resolve)),
  'readable and end': (req) => new Promise((resolve) => req.on('readable', () => req.read()).on('end', resolve)),
  'resume() and close': (req) => once(req.resume(), 'close'),
  'end, asked for in a later turn': (req) => sleep(5).then(() => once(req.resume(), 'end')),
  pipe: (req) => once(req.pipe(new PassThrough()).resume(), 'end'),
  iteration: async (req) => {
    for await (const chunk of req) expect.fail(String(chunk));
  },
  'text()': (req) => text(req),
  'finished()': (req) => finished(req.resume()),
};

test.each(Object.entries(WAYS))('a request without a body ends for %s', async (_way, read) => {
  const app = createApp();
  app.get('/', async ({ raw }) => {
    await read(raw.req);
    return 'read';
  });
  const { url } = await serve(app);
  expect(await (await fetch(url)).text()).toBe('read');
});

test('a request without a body is not closed while its handler is at work, and closes when its client leaves', async () => {
  const app = createApp();
  const events: string[] = [];
  let left = (): void => undefined;
  const leaving = new Promise<void>((resolve) => (left = resolve));
  app.get('/', async ({ raw: { req } }) => {
    events.push(`destroyed: ${req.destroyed}`);
    req
      .on('error', () => undefined)
      .on('close', () => {
        events.push('close');
        left();
      });
    await sleep(20);
    events.push('still at work');
    await leaving;
    return 'late';
  });
  const { port } = await serve(app);
  const client = connect(port, '127.0.0.1', () => client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
  await expect.poll(() => events.length).toBe(2);
  client.destroy();
  await leaving;
  expect(events).toEqual(['destroyed: false', 'still at work', 'close']);
});
