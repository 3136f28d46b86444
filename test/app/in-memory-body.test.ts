/** A request in memory ends with its reply or its signal, and so does the source of its body. */

import { Readable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test, vi } from 'vitest';
import type { Context } from 'postern';
import { activeTasksOf, createApp } from '../support/serve.js';

/** A body without end. */
function endless(): {
  readonly body: ReadableStream<Uint8Array>;
  readonly seen: { pulls: number; cancelled: unknown[] };
} {
  const seen = { pulls: 0, cancelled: [] as unknown[] };
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    seen.pulls += 1;
    await new Promise((resolve) => setImmediate(resolve));
    controller.enqueue(new Uint8Array(1000));
  };
  return { seen, body: new ReadableStream({ pull, cancel: (reason) => void seen.cancelled.push(reason) }) };
}

async function isAtRest(seen: { pulls: number; cancelled: unknown[] }): Promise<void> {
  await expect.poll(() => seen.cancelled).toHaveLength(1);
  const { pulls } = seen;
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(seen.pulls - pulls).toBeLessThan(2);
}

test.for(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'])('a stream is the body of a %s', async (method) => {
  const app = createApp().route('/', { [method]: (ctx: Context) => ctx.text() });
  const body = new Blob(['abc']).stream();
  expect(await (await app.request('/', { method, body })).text()).toBe('abc');
});

test('its source is cancelled when an early reply is complete', async () => {
  const { body, seen } = endless();
  const response = await createApp().post('/', () => 'early').request('/', { method: 'POST', body });
  expect(await response.text()).toBe('early');
  await isAtRest(seen);
});

test('its source is cancelled at once although nobody reads the early reply', async () => {
  const { body, seen } = endless();
  await createApp().post('/', () => 'early').request('/', { method: 'POST', body });
  await isAtRest(seen);
  // Not only when the server gives up reading the rest of the body.
  expect(seen.pulls).toBeLessThan(1000);
});

test('its source is cancelled when an early reply without a body is complete', async () => {
  const { body, seen } = endless();
  expect((await createApp().post('/', () => undefined).request('/', { method: 'POST', body })).status).toBe(204);
  await isAtRest(seen);
});

test('its source is cancelled when the signal aborts', async () => {
  const { body, seen } = endless();
  const abort = new AbortController();
  // On a busy machine more than the default limit is sent before the poll below notices, and the reply would be a 413.
  const app = createApp({ bodyLimit: 1e12 })
    .post('/', async (ctx) => { for await (const chunk of ctx.stream()) void chunk; });
  const reason = new Error('enough');
  const response = app.request('/', { method: 'POST', body, signal: abort.signal });
  const rejected = expect(response).rejects.toBe(reason);
  await expect.poll(() => seen.pulls).toBeGreaterThan(2);
  abort.abort(reason);
  await rejected;
  await isAtRest(seen);
  await expect.poll(() => activeTasksOf(app)).toBe(0);
});

test.for([
  ['an error', new Error('enough')],
  ['no error', 'enough'],
  ['nothing', undefined],
] as const)('reading its response rejects with the reason of the signal: %s', async ([, reason]) => {
  const abort = new AbortController();
  const app = createApp().get('/', async function* ({ signal }) {
    yield 'first';
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  });
  const response = await app.request('/', { signal: abort.signal });
  const reader = response.body?.getReader();
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('first');
  abort.abort(reason);
  await expect(reader?.read()).rejects.toBe(abort.signal.reason);
});

test('a signal ends a request that nobody else holds any more, also after a garbage collection', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const app = createApp().get('/', () => new Promise(() => undefined));
  const rejected = expect(app.request('/', { signal: AbortSignal.timeout(300) })).rejects.toThrow('timeout');
  for (let round = 0; round < 5; round += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    collect();
  }
  await rejected;
});

test.for(['GET', 'POST'])('an abort right after the call rejects: %s', async (method) => {
  const abort = new AbortController();
  let ran = 0;
  const app = createApp().route('/', { GET: () => (ran += 1), POST: () => (ran += 1) });
  const response = app.request('/', { method, signal: abort.signal, ...(method === 'POST' ? { body: 'text' } : {}) });
  abort.abort(new Error('at once'));
  await expect(response).rejects.toThrow('at once');
  expect(ran).toBe(0);
});

test('an async iterable is sent as it comes: a handler may answer before its end', async () => {
  const source = new Readable({ read() {} });
  source.push('a');
  const app = createApp().post('/', () => 'early');
  const response = await app.request('/', { method: 'POST', body: source });
  expect(await response.text()).toBe('early');
});

test('a Request may be the options of a request', async () => {
  const app = createApp().post('/', (ctx) => ctx.text());
  const options = new Request('http://x/', { method: 'POST', body: 'body' });
  expect(await (await app.request('/', options)).text()).toBe('body');
});

test('the source of a body is cancelled where the signal has aborted before', async () => {
  const cancel = vi.fn();
  const init = { method: 'POST', body: new ReadableStream({ cancel }), signal: AbortSignal.abort('why') };
  await expect(createApp().request('/', init)).rejects.toBe('why');
  expect(cancel).toHaveBeenCalledWith('why');
});
