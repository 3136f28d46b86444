/** Advisories about clients that do not read, or leave, while a reply streams. */

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { reply, type HandlerResult } from 'postern';
import { get } from '../support/raw.js';
import { activeTasksOf, createApp, serve } from '../support/serve.js';

const CHUNK_BYTES = 64 * 1024;
const MOST_CHUNKS = 4096;
/**
 * Sources that would go on for 256 MiB, a chunk for each turn of the event loop, each with a way to tell that it was
 * freed.
 */
const SOURCES: Record<string, (chunk: () => Buffer | null, freed: () => void) => HandlerResult> = {
  'a Readable': (chunk, freed) =>
    new Readable({
      read() {
        setImmediate(() => this.push(chunk()));
      },
      destroy(error, done) {
        freed();
        done(error);
      },
    }),
  'a ReadableStream': (chunk, freed) => webStream(chunk, freed),
  'a Response': (chunk, freed) => new Response(webStream(chunk, freed)),
  'a reply with a stream': (chunk, freed) =>
    reply(webStream(chunk, freed), { headers: { 'content-type': 'text/csv' } }),
  'an async generator': (chunk, freed) => (async function* () {
    try {
      for (let next = chunk(); next !== null; next = chunk()) {
        yield next;
        await new Promise(setImmediate);
      }
    } finally {
      freed();
    }
  })(),
};
function webStream(chunk: () => Buffer | null, freed: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      await new Promise(setImmediate);
      const next = chunk();
      if (next === null) controller.close();
      else controller.enqueue(next);
    },
    cancel: freed,
  });
}

test.for(Object.entries(SOURCES))(
  'a client that does not read holds %s back, and frees it when it leaves (CVE-2026-25224)',
  async ([, make]) => {
    let pulled = 0;
    let mostBytes = 0;
    let response: ServerResponse | undefined;
    let wake = (): void => undefined;
    const freed = new Promise<void>((resolve) => (wake = resolve));
    const app = createApp().get('/', ({ raw: { res } }) => {
      response = res;
      const chunk = (): Buffer | null => {
        pulled += 1;
        mostBytes = Math.max(mostBytes, res.writableLength);
        return pulled > MOST_CHUNKS ? null : Buffer.alloc(CHUNK_BYTES);
      };
      return make(chunk, () => wake());
    });
    const { port } = await serve(app);
    const socket = connect(port, '127.0.0.1', () => socket.write(get('/')));
    socket.pause();
    await expect.poll(() => response?.writableNeedDrain).toBe(true);
    for (let turn = 0; turn < 300; turn += 1) await new Promise(setImmediate);
    expect(mostBytes).toBeLessThan(1024 * 1024);
    expect(pulled).toBeLessThan(MOST_CHUNKS);
    socket.destroy();
    await freed;
    await expect.poll(() => activeTasksOf(app)).toBe(0);
  },
);

/** Sources that fall silent after their first chunk. */
const SILENT: Record<string, (freed: () => void) => HandlerResult> = {
  'a Readable': (freed) => {
    const source = new Readable({ read() {}, destroy(error, done) { freed(); done(error); } });
    source.push('first');
    return source;
  },
  'a ReadableStream': (cancel) =>
    new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('first')), cancel }),
  'a Response': (cancel) =>
    new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('first')), cancel })),
  'an iterator': (freed) => {
    const values = ['first'].values();
    const next = async (): Promise<IteratorResult<string>> => {
      const result = values.next();
      return result.done === true ? new Promise(() => undefined) : result;
    };
    const iterator = {
      next,
      return: async (): Promise<IteratorResult<string>> => {
        freed();
        return { done: true, value: undefined };
      },
    };
    return { [Symbol.asyncIterator]: () => iterator };
  },
};
test.for(Object.entries(SILENT))('a client that leaves frees %s that says nothing (CVE-2026-25224)', async ([, make]) => {
  let wake = (): void => undefined;
  const freed = new Promise<void>((resolve) => (wake = resolve));
  const app = createApp().get('/', () => make(() => wake()));
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write(get('/')));
  let text = '';
  socket.on('data', (data) => (text += String(data)));
  await expect.poll(() => text).toContain('first');
  socket.destroy();
  await freed;
  await expect.poll(() => activeTasksOf(app)).toBe(0);
});

test('a request whose client has left is over, even where its source cannot be interrupted (CVE-2026-25224)', async () => {
  const app = createApp().get('/', () => (async function* () { yield 'first'; await new Promise(() => undefined); })());
  const { port } = await serve(app);
  const socket = connect(port, '127.0.0.1', () => socket.write(get('/')));
  await once(socket, 'data');
  socket.destroy();
  await expect.poll(() => activeTasksOf(app)).toBe(0);
  expect(app.metrics.expose()).toContain(
    'http_request_duration_seconds_count{method="GET",route="/",status_code="499"} 1.0',
  );
});
