/** Server-sent events: `events(source)`. */

import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect as connectSocket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { events, reply, type Context, type EventItem, type Reply } from 'postern';
import { activeTasksOf, createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

/** For what has to happen, but takes as long as the machine needs. */
const LONG = { timeout: 20_000, interval: 5 };

/** A source that never ends by itself: it yields what the test gives it, and counts how often it was told to return. */
class Source implements AsyncIterable<EventItem> {
  returned = 0;
  read = 0;
  readonly #items: EventItem[] = [];
  #wake = (): void => undefined;

  give(...items: EventItem[]): void {
    this.#items.push(...items);
    this.#wake();
  }

  [Symbol.asyncIterator](): AsyncIterator<EventItem, undefined> {
    return {
      next: async () => {
        this.read += 1;
        while (this.#items.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
        return { done: false, value: this.#items.shift() as EventItem };
      },
      return: async () => {
        this.returned += 1;
        return { done: true, value: undefined };
      },
    };
  }
}

interface Reading {
  readonly response: Promise<IncomingMessage>;
  readonly ended: Promise<string>;
  text(): string;
  leave(): void;
}

function open(port: number, path = '/', headers: Record<string, string> = {}): Reading {
  const outgoing = request({ port, path, host: '127.0.0.1', agent: false, headers }).end();
  onTestFinished(() => void outgoing.destroy());
  let text = '';
  const response = once(outgoing, 'response').then(([incoming]) => incoming as IncomingMessage);
  const ended = response.then(async (incoming) => {
    incoming.on('data', (chunk) => (text += String(chunk)));
    await once(incoming, 'end');
    return text;
  });
  ended.catch(() => undefined);
  outgoing.on('error', () => undefined);
  return { response, ended, text: () => text, leave: () => void outgoing.destroy() };
}

const frames: readonly { what: string; items: EventItem[]; text: string }[] = [
  { what: 'a string', items: ['a'], text: 'data: a\n\n' },
  { what: 'an empty string', items: [''], text: 'data: \n\n' },
  { what: 'lines of each kind', items: ['a\nb\rc\r\nd\n'], text: 'data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n' },
  { what: 'a value', items: [{ data: { order: 7, text: 'a\nb' } }], text: 'data: {"order":7,"text":"a\\nb"}\n\n' },
  { what: 'null and 0', items: [{ data: null }, { data: 0 }], text: 'data: null\n\ndata: 0\n\n' },
  {
    what: 'a name and an id',
    items: [{ data: 'a', event: 'placed', id: 7 }, { data: 'b', id: '' }],
    text: 'event: placed\nid: 7\ndata: a\n\nid: \ndata: b\n\n',
  },
];
test.for(frames)('an item is framed: $what', async ({ items, text }) => {
  const app = createApp().get('/list', () => events(items));
  app.get('/generator', () => events((async function* () { yield* items; })()));
  for (const path of ['/list', '/generator']) {
    const response = await app.request(path);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    expect(await response.text()).toBe(text);
  }
});

test('the head is sent at once, without a byte of the body; retry is sent once, before the events', async () => {
  const source = new Source();
  const app = createApp().get('/', () => events(source)).get('/retry', () => events(['a', 'b'], { retry: 500 }));
  const { port } = await serve(app);
  const { response, text, leave } = open(port);
  expect((await response).headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
  });
  expect(text()).toBe('');
  source.give('a');
  await expect.poll(text, LONG).toBe('data: a\n\n');
  leave();
  expect(await (await app.request('/retry')).text()).toBe('retry: 500\n\ndata: a\n\ndata: b\n\n');
});

async function* textsOf(source: Source): AsyncGenerator<string> {
  for await (const item of source) yield String(item);
}

const OF_EVENTS = { headers: { 'content-type': 'text/event-stream; charset=utf-8' } };
test.for<[what: string, answer: (ctx: Context, source: Source) => Reply | Promise<Response>]>([
  ['a handler frames itself', (_ctx, source) => reply(textsOf(source), OF_EVENTS)],
  ['another service sends', (ctx) => ctx.service('orders').fetch('/', { timeout: 5000 })],
])('the head of an event stream that %s is sent at once, too', async ([, answer]) => {
  const source = new Source();
  const orders = createApp({}, 'orders').get('/', () => events(source, { heartbeat: false }));
  const app = createApp({ services: { orders } }).get('/', (ctx) => answer(ctx, source));
  const { response, text, leave } = open((await serve(app)).port);
  expect((await response).headers['content-type']).toMatch('text/event-stream');
  expect(text()).toBe('');
  source.give('a');
  await expect.poll(text, LONG).toContain('a');
  leave();
});

test('a silent stream gets a comment every heartbeat, and an event after it arrives once', async () => {
  const source = new Source();
  const app = createApp().get('/', () => events(source, { heartbeat: 20 }));
  app.get('/off', () => events(source, { heartbeat: false }));
  const { port } = await serve(app);
  const { text, leave } = open(port);
  await expect.poll(text, LONG).toContain(':\n\n:\n\n:\n\n');
  source.give('a');
  await expect.poll(text, LONG).toContain('data: a\n\n');
  expect(text().replaceAll(':\n\n', '')).toBe('data: a\n\n');
  expect(source.read).toBeLessThanOrEqual(2);
  leave();
});

test('a client that disconnects has the source return, once', async () => {
  const source = new Source();
  const app = createApp().get('/', () => events(source, { heartbeat: false }));
  const { port } = await serve(app);
  const { text, leave } = open(port);
  source.give('a');
  await expect.poll(text, LONG).toBe('data: a\n\n');
  leave();
  await expect.poll(() => source.returned, LONG).toBe(1);
  await expect.poll(() => activeTasksOf(app), LONG).toBe(0);
  expect(source.returned).toBe(1);
});

test('HEAD has the head of the stream, and frees the source unread', async () => {
  const source = new Source();
  const app = createApp().get('/', () => events(source));
  const { status, headers } = await app.request('/', { method: 'HEAD' });
  expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  await expect.poll(() => source.returned, LONG).toBe(1);
  expect(source.read).toBe(0);
});

test('a client that does not read lets the source wait', async () => {
  let yielded = 0;
  async function* fast(): AsyncGenerator<string> {
    for (; ; yielded += 1) yield 'x'.repeat(10_000);
  }
  const { port } = await serve(createApp().get('/', () => events(fast())));
  const socket = connectSocket(port, '127.0.0.1').pause();
  onTestFinished(() => void socket.destroy());
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  // Until the buffers of both sides are full, which the kernel decides.
  let before = -1;
  await expect.poll(() => {
    const isStill = yielded > 0 && yielded === before;
    before = yielded;
    return isStill;
  }, { timeout: 20_000, interval: 300 }).toBe(true);
  expect(yielded).toBeLessThan(2_000);
  socket.resume();
  await expect.poll(() => yielded, LONG).toBeGreaterThan(before + 100);
});

test.for([
  ['plain', []],
  ['below middleware', [(_ctx: Context, next: () => Promise<Reply>) => next()]],
  ['in a stream of middleware', ['upper']],
] as const)('a stream ends when the application closes: %s', async ([, middleware]) => {
  const source = new Source();
  const logger = createRecorder();
  const app = createApp({ logger });
  async function* upper(body: unknown): AsyncGenerator<string> {
    for await (const chunk of body as AsyncIterable<string>) yield chunk.toUpperCase();
  }
  for (const each of middleware)
    app.use(each === 'upper' ? async (_ctx, next) => {
      const answered = await next();
      answered.body = upper(answered.body);
      return answered;
    } : each);
  app.get('/', () => events(source, { heartbeat: false }));
  const { port } = await serve(app);
  const streams = Array.from({ length: 20 }, () => open(port));
  await Promise.all(streams.map(({ response }) => response));
  await app.close({ timeout: 20_000 });
  for (const { ended } of streams) expect(await ended).toBe('');
  expect(source.returned).toBeGreaterThanOrEqual(20);
  expect(logger.entries).toEqual([]);
});

test('a stream that is asked for while the application closes is an empty 200, which an EventSource takes as an end', async () => {
  const app = createApp();
  const source = new Source();
  app.get('/', () => events(source)).get('/slow', async () => {
    await new Promise((resolve) => app.closing.addEventListener('abort', resolve));
    return events(source, { retry: 5 });
  });
  const { port } = await serve(app);
  const { response, ended } = open(port, '/slow');
  await expect.poll(() => activeTasksOf(app), LONG).toBe(1);
  await app.close({ timeout: 20_000 });
  expect([(await response).statusCode, (await response).headers['content-type'], await ended])
    .toEqual([200, 'text/event-stream', '']);
  await expect.poll(() => source.returned, LONG).toBe(1);
});

const wrong: Record<string, () => unknown> = {
  'events() got "abc"; give an iterable, such as the result of an async generator': () => events('abc'),
  'events() got a function; give an iterable, such as the result of an async generator': () =>
    events(async function* () {} as never),
  'events() got undefined; give an iterable, such as the result of an async generator': () =>
    events(undefined as never),
  'heartbeat of events() is 0; give a whole number from 1 to 2147483647, in ms, or false': () =>
    events([], { heartbeat: 0 }),
  'heartbeat of events() is true; give a whole number from 1 to 2147483647, in ms, or false': () =>
    events([], { heartbeat: true as never }),
  'retry of events() is -1; give a whole number of 0 or more': () => events([], { retry: -1 }),
  'unknown option "hearbeat" of events(); did you mean "heartbeat"?': () => events([], { hearbeat: 5 } as never),
};
test.for(Object.keys(wrong))('a wrong argument is a TypeError with a remedy: %s', (message) => {
  expect(wrong[message]).toThrow(new TypeError(message));
});

const broken: readonly { item: unknown; message: string }[] = [
  { item: { data: 'x', event: 'a\nb' }, message: 'event of an event is "a\\nb"; give a text without line breaks and NUL' },
  { item: { data: 'x', id: 'a\0' }, message: 'id of an event is "a\\u0000"; give a text without line breaks and NUL' },
  { item: { data: 'x', id: {} }, message: 'id of an event is an object; give a text without line breaks and NUL' },
  { item: { event: 'a' }, message: 'events() got an item without data (an object); yield a string, or { data, event, id }' },
  { item: 7, message: 'events() got an item without data (7); yield a string, or { data, event, id }' },
  { item: { data: 10n }, message: 'bigint' },
  { item: { data: new Map() }, message: 'Map' },
];
test.for(broken)('an item that cannot be sent ends the stream, and the log says why: $message', async ({ item, message }) => {
  const logger = createRecorder();
  const app = createApp({ logger });
  expectFailures(app, 500);
  let isFreed = false;
  async function* source(): AsyncGenerator<EventItem> {
    try {
      yield 'first';
      yield item as EventItem;
    } finally {
      isFreed = true;
    }
  }
  app.get('/', () => events(source()));
  const { port } = await serve(app);
  const { text, response } = open(port);
  const incoming = await response;
  await new Promise((resolve) => incoming.on('error', () => undefined).on('close', resolve));
  expect([incoming.complete, text()]).toEqual([false, 'data: first\n\n']);
  await expect.poll(() => logger.entries.length, LONG).toBe(1);
  expect(String((logger.entries[0]?.object['err'] as Error).message)).toContain(message);
  await expect.poll(() => isFreed, LONG).toBe(true);
});
