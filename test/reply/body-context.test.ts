/** What produces a body is read in the async context of its handler, such as a store that middleware has entered. */

import { AsyncLocalStorage } from 'node:async_hooks';
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { reply, type Context, type HandlerResult, type Middleware, type Postern } from 'postern';
import { createApp, serve } from '../support/serve.js';
import { WireConnection } from '../support/strict-client.js';

const tenant = new AsyncLocalStorage<string>();
type Note = (place: string) => void;

async function* pages(note: Note): AsyncGenerator<string> {
  try {
    note('begun');
    yield 'a';
    note('after the first chunk');
    await turn();
    note('after a turn');
    yield 'b';
    note('after the second chunk');
  } finally {
    note('ended');
  }
}

/** A stream that is read piece by piece, each time by a call of `read`. */
function readable(note: Note): Readable {
  const rest = ['a', 'b'];
  return new Readable({
    read() {
      note('read');
      const next = rest.shift();
      setImmediate(() => {
        note('pushed');
        this.push(next ?? null);
      });
    },
    destroy(error, done) {
      note('destroyed');
      done(error);
    },
  });
}

function webStream(note: Note): ReadableStream {
  const rest = ['a', 'b'];
  return new ReadableStream(
    {
      async pull(controller) {
        note('pulled');
        await turn();
        note('after a turn');
        const next = rest.shift();
        if (next === undefined) controller.close();
        else controller.enqueue(Buffer.from(next));
      },
    },
    { highWaterMark: 0 },
  );
}

/** An iterator by hand, which knows nothing of generators. */
function iterable(note: Note): AsyncIterable<string> {
  const rest = ['a', 'b'];
  return {
    [Symbol.asyncIterator]: () => {
      note('iterated');
      return {
        next: async () => {
          note('next');
          const value = rest.shift();
          return value === undefined ? { done: true, value } : { done: false, value };
        },
      };
    },
  };
}

const BODIES: Record<string, (note: Note) => HandlerResult> = {
  'a generator': pages,
  'a generator in a reply': (note) => reply(pages(note), { headers: { 'content-type': 'text/csv' } }),
  'an iterable': iterable,
  'a Readable': readable,
  'a Readable of a generator': (note) => Readable.from(pages(note)),
  'a ReadableStream': (note) => webStream(note) as HandlerResult,
  'a Response of a ReadableStream': (note) => new Response(webStream(note)),
};

const enter: Middleware = (ctx, next) => tenant.run(ctx.path.slice(1), () => next());
const enterLater: Middleware = async (ctx, next) => {
  await turn();
  return tenant.run(ctx.path.slice(1), async () => next());
};

/** Where middleware enters the store. */
const LEVELS: Record<string, (app: Postern, handler: (ctx: Context) => HandlerResult) => unknown> = {
  'the application': (app, handler) => app.use(enter).get('/:own', handler),
  'the application, later': (app, handler) => app.use(enterLater).get('/:own', handler),
  'a group': (app, handler) => app.group('', (group) => void group.use(enter).get('/:own', handler)),
  'a route': (app, handler) => app.get('/:own', { middleware: [enter] }, handler),
  'a route with a timeout': (app, handler) => app.get('/:own', { middleware: [enter], timeout: 60_000 }, handler),
};

/** Requests of one application, and what each place of their bodies saw of the store. */
function tenants(level: string, body: string): { app: Postern; seen: string[][] } {
  const seen: string[][] = [];
  const app = createApp();
  const handler = ({ path }: Context): HandlerResult =>
    BODIES[body]?.((place) => void seen.push([place, path.slice(1), tenant.getStore() ?? 'none']));
  LEVELS[level]?.(app, handler);
  return { app, seen };
}

const wrongOf = (seen: readonly string[][]): unknown => seen.filter(([, own, store]) => own !== store);

describe.for(Object.keys(BODIES))('%s', (body) => {
  test.for(Object.keys(LEVELS))('is read in the store that middleware of %s entered', async (level) => {
    const { app, seen } = tenants(level, body);
    const { url } = await serve(app);
    const texts = ['one', 'two', 'three'].map(async (own) => (await fetch(`${url}/${own}`)).text());
    expect(await Promise.all(texts)).toEqual(['ab', 'ab', 'ab']);
    expect(seen.length).toBeGreaterThanOrEqual(9);
    expect(wrongOf(seen)).toEqual([]);
  });

  test('is read in its own store when its request had to wait for another', async () => {
    const { app, seen } = tenants('the application', body);
    const { port } = await serve(app);
    const client = await WireConnection.open(port);
    onTestFinished(() => client.destroy());
    await client.write(['one', 'two', 'three'].map((own) => `GET /${own} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
    for (const _ of [1, 2, 3]) expect(String((await client.finalResponse())?.body)).toBe('ab');
    expect(seen.length).toBeGreaterThanOrEqual(9);
    expect(wrongOf(seen)).toEqual([]);
  });

  test('is read in its store although outer middleware looks at the reply', async () => {
    const { app, seen } = tenants('a route', body);
    app.use(async (_ctx, next) => {
      const answered = await next();
      answered.headers.set('x-outer', '1');
      return answered;
    });
    expect(await (await app.request('/one')).text()).toBe('ab');
    expect(wrongOf(seen)).toEqual([]);
  });
});

test.for<[string, (body: AsyncIterable<string>) => HandlerResult]>([
  ['the stream itself', (body) => body],
  ['a reply', (body) => reply(body)],
])('a generator is read in its store when outer middleware puts another around it, as %s', async ([, wrap]) => {
  const { app, seen } = tenants('a route', 'a generator');
  const upper = async function* (body: AsyncIterable<unknown>): AsyncGenerator<string> {
    for await (const chunk of body) yield String(chunk).toUpperCase();
  };
  app.use(async (_ctx, next) => wrap(upper((await next()).body as AsyncIterable<unknown>)));
  expect(await (await app.request('/one')).text()).toBe('AB');
  expect(seen.length).toBeGreaterThanOrEqual(5);
  expect(wrongOf(seen)).toEqual([]);
});

test.for(['a generator', 'a Readable', 'a Readable of a generator'])(
  '%s ends in its store when the client disconnects',
  async (body) => {
    const seen: string[][] = [];
    const endless = async function* (note: Note): AsyncGenerator<string> {
      try {
        for (;;) {
          yield 'x'.repeat(10_000);
          note('next');
        }
      } finally {
        note('ended');
      }
    };
    const app = createApp().use(enter).get('/:own', ({ path }) => {
      const note: Note = (place) => void seen.push([place, path.slice(1), tenant.getStore() ?? 'none']);
      if (body === 'a generator') return endless(note);
      if (body === 'a Readable of a generator') return Readable.from(endless(note));
      return new Readable({
        read() {
          note('next');
          this.push('x'.repeat(10_000));
        },
        destroy(error, done) {
          note('ended');
          done(error);
        },
      });
    });
    const { port } = await serve(app);
    const client = await WireConnection.open(port);
    await client.write('GET /one HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => client.rest.length).toBeGreaterThan(10_000);
    await client.destroy();
    await expect.poll(() => seen.some(([place]) => place === 'ended')).toBe(true);
    expect(wrongOf(seen)).toEqual([]);
  },
);
