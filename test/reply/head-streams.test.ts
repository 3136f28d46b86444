/** A reply to HEAD has no body, and frees the stream that the GET route opened for one. */

import { EventEmitter, on } from 'node:events';
import { createReadStream } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { reply, type HandlerResult } from 'postern';
import { HEAD, rawExchange } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

/** Sources that are open before anything is read from them. */
const SOURCES: Record<string, (freed: () => void) => HandlerResult> = {
  'a file': (freed) => createReadStream(fileURLToPath(import.meta.url)).on('close', freed),
  'a ReadableStream': (freed) => new ReadableStream({ cancel: freed }),
  'a Response': (freed) => new Response(new ReadableStream({ cancel: freed })),
  'a reply': (freed) => reply(new ReadableStream({ cancel: freed }), { headers: { 'content-length': '9' } }),
  'an iterator of events': (freed) => {
    const events = on(new EventEmitter(), 'news');
    const end = events.return?.bind(events) as () => Promise<IteratorResult<unknown>>;
    return Object.assign(events, { return: () => (freed(), end()) });
  },
};

test.for(Object.keys(SOURCES))('HEAD frees %s, on a connection that stays open and on one that closes', async (name) => {
  let opened = 0;
  let freed = 0;
  const app = createApp().get('/', () => ((opened += 1), SOURCES[name]?.(() => void (freed += 1))));
  const { port } = await serve(app);
  const head = (headers: string): string => `HEAD / HTTP/1.1\r\n${headers}\r\n`;
  const text = await rawExchange(port, head('Host: x\r\n').repeat(2) + head(HEAD));
  expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(3);
  await expect.poll(() => [opened, freed]).toEqual([3, 3]);
});

test('HEAD with an unread body frees the stream, too', async () => {
  let freed = 0;
  const app = createApp().get('/', () => new ReadableStream({ cancel: () => void (freed += 1) }));
  const { port } = await serve(app);
  await rawExchange(port, 'HEAD / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab');
  await expect.poll(() => freed).toBe(1);
});
