/**
 * Whatever is thrown or returned, wherever, is one reply and one line in the log. Nothing of it ends the process, or
 * leaves a request without an answer.
 *
 * @module-tag slow
 */

import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { connect, NotFound, reply } from 'postern';
import type { Handler, Postern, StandardSchemaV1 } from 'postern';
import { RETURNED, THROWN, trappedAfter } from '../support/hostile-values.js';
import { activeTasksOf, createApp, createRecorder, expectFailures, serve, type Entry } from '../support/serve.js';
import { WireConnection } from '../support/strict-client.js';

type Create = () => unknown;
const GET = 'GET /r HTTP/1.1\r\nHost: x\r\n\r\n';
const POST = 'POST /r HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}';

function throwing(create: Create): () => never {
  return () => { throw create(); };
}

/** What a schema does with whatever it is given. */
function schema(validate: () => unknown): StandardSchemaV1 {
  return { '~standard': { version: 1, vendor: 'test', validate: validate as () => { value: unknown } } };
}

/** An iterator by hand, which fails with the result of its second or first call. */
function iterable(next: (call: number) => unknown): object {
  let calls = 0;
  return { [Symbol.asyncIterator]: () => ({ next: () => next((calls += 1)) }) };
}
const chunk = { done: false, value: 'a chunk' };

/** Node.js reads the `stack` of what a stream is destroyed with, and takes nothing for no error. */
const UNREAD = ['what throws when it is read', 'a value that is false'];

interface Place {
  /** Whether the value is thrown after the head of the reply. */
  readonly isLate?: boolean;
  /** Groups of values that cannot be thrown there. */
  readonly except?: readonly string[];
  readonly request?: string;
  add(app: Postern, create: Create): unknown;
}

const inHandler =
  (handler: (create: Create) => Handler): Place['add'] =>
  (app, create) => app.get('/r', handler(create));

/** Where a value may be thrown. */
const PLACES: Readonly<Record<string, Place>> = {
  'a handler': { add: inHandler((create) => throwing(create)) },
  'an asynchronous handler': { add: inHandler((create) => async () => throwing(create)()) },
  'a handler, later': { add: inHandler((create) => async () => (await turn(), throwing(create)())) },
  'a handler with a time limit':
    { add: (app, create) => app.get('/r', { timeout: 60_000 }, async () => throwing(create)()) },
  'the getter of a value': { add: inHandler((create) => () => ({ get a(): unknown { return throwing(create)(); } })) },
  'toJSON': { add: inHandler((create) => () => ({ a: { toJSON: throwing(create) } })) },
  'the then of a value': { add: inHandler((create) => () => ({ then: throwing(create) })) },
  'middleware of the application': { add: (app, create) => app.use(throwing(create)).get('/r', () => 'unreachable') },
  'middleware after next()': {
    add: (app, create) => app.get('/r', () => 'inner').use(async (_ctx, next) => {
      await next();
      throw create();
    }),
  },
  'middleware of a group': {
    add: (app, create) => app.group('/r', (group) => void group.use(throwing(create)).get('', () => 'unreachable')),
  },
  'middleware of a route': {
    add: (app, create) => app.get('/r', { middleware: [throwing(create)] }, () => 'unreachable'),
  },
  'a handler below middleware': { add: (app, create) => app.use((_ctx, next) => next()).get('/r', throwing(create)) },
  'middleware of Connect': {
    add: (app, create) => app.use(connect(() => throwing(create)())).get('/r', () => 'unreachable'),
  },
  'asynchronous middleware of Connect': {
    add: (app, create) => app.use(connect(async () => throwing(create)())).get('/r', () => 'unreachable'),
  },
  'next() of middleware of Connect': {
    except: ['a value that is false'],
    add: (app, create) => app.use(connect((_req, _res, next) => next(create()))).get('/r', () => 'unreachable'),
  },
  'a mount': { add: (app, create) => app.mount('/r', throwing(create)) },
  'an asynchronous mount': { add: (app, create) => app.mount('/r', async () => throwing(create)()) },
  'a schema': {
    request: POST, add: (app, create) => app.post('/r', { body: schema(throwing(create)) }, () => 'unreachable'),
  },
  'an asynchronous schema': {
    request: POST,
    add: (app, create) => app.post('/r', { body: schema(async () => throwing(create)()) }, () => 'unreachable'),
  },
  'a generator': { add: inHandler((create) => async function* () { throw create(); }) },
  'a generator, later': {
    isLate: true,
    add: inHandler((create) => async function* () {
      yield 'a chunk';
      throw create();
    }),
  },
  'a generator that is returned later':
    { add: inHandler((create) => async () => (await turn(), (async function* () { throw create(); })())) },
  'a generator below middleware': {
    add: (app, create) => app.use((_ctx, next) => next()).get('/r', async function* () { throw create(); }),
  },
  'a generator in a reply': { add: inHandler((create) => () => reply((async function* () { throw create(); })())) },
  'the method of an iterable': { add: inHandler((create) => () => ({ [Symbol.asyncIterator]: throwing(create) })) },
  'next() of an iterator': { add: inHandler((create) => () => iterable(throwing(create))) },
  'next() of an iterator, later': {
    isLate: true,
    add: inHandler((create) => () => iterable((call) => (call === 1 ? Promise.resolve(chunk) : throwing(create)()))),
  },
  'the promise of an iterator': { add: inHandler((create) => () => iterable(async () => throwing(create)())) },
  'the promise of an iterator, later': {
    isLate: true,
    add: inHandler((create) => () => iterable(async (call) => (call === 1 ? chunk : throwing(create)()))),
  },
  'the result of an iterator': {
    add: inHandler((create) => () => iterable(async () => ({ get done(): unknown { return throwing(create)(); } }))),
  },
  'a web stream': { add: inHandler((create) => () => new ReadableStream({ pull: throwing(create) })) },
  'a web stream that is errored':
    { add: inHandler((create) => () => new ReadableStream({ pull: (controller) => controller.error(create()) })) },
  'a web stream, later': {
    isLate: true,
    add: inHandler((create) => () => {
      let isBegun = false;
      return new ReadableStream({
        pull(controller) {
          if (isBegun) throw create();
          isBegun = true;
          controller.enqueue(Buffer.from('a chunk'));
        },
      }, { highWaterMark: 0 });
    }),
  },
  'the web stream of a Response':
    { add: inHandler((create) => () => new Response(new ReadableStream({ pull: throwing(create) }))) },
  'a Readable': {
    except: UNREAD,
    add: inHandler((create) => () => new Readable({ read() { this.destroy(create() as Error); } })),
  },
  'a Readable, later': {
    isLate: true,
    except: UNREAD,
    add: inHandler((create) => () => {
      const stream = new Readable({ read: () => undefined });
      stream.push('a chunk');
      setTimeout(() => stream.destroy(create() as Error), 20);
      return stream;
    }),
  },
  'a Readable of a generator': {
    except: UNREAD,
    add: inHandler((create) => () => Readable.from((async function* () { throw create(); })())),
  },
};

interface Outcome {
  /** Null for a connection that was closed in the middle of the reply; `hangs` for one that is still open. */
  readonly status: number | string | null;
  readonly lines: readonly (string | undefined)[];
  readonly active: number;
}

const errors = (entries: readonly Entry[]): (string | undefined)[] =>
  entries.filter(({ level }) => level === 'error').map(({ message }) => message);

/** What becomes of requests to one application, one after the other: each has a value of its own. */
async function outcomesOf(
  values: readonly (readonly [name: string, create: Create])[],
  request: string,
  add: (app: Postern, create: Create) => unknown,
): Promise<[name: string, outcome: Outcome][]> {
  const logger = createRecorder();
  const app = createApp({ logger });
  let current: Create = () => undefined;
  add(app, () => current());
  const { port } = await serve(app);
  const outcomes: [string, Outcome][] = [];
  let client: WireConnection | undefined;
  for (const [name, create] of values) {
    current = create;
    const before = errors(logger.entries).length;
    client ??= await WireConnection.open(port);
    const response = await client.write(request).then(() => client?.finalResponse()).catch(() => null);
    // A reply broke off, as it should if its head was sent.
    const status = response?.status ?? (client.isClosed ? null : 'hangs');
    if (response?.headers['connection'] !== 'keep-alive') {
      await client.destroy();
      client = undefined;
    }
    if (activeTasksOf(app) > 0) await expect.poll(() => activeTasksOf(app)).toBe(0).catch(() => undefined);
    outcomes.push([name, { status, lines: errors(logger.entries).slice(before), active: activeTasksOf(app) }]);
  }
  if (errors(logger.entries).length > 0) expectFailures(app, 500);
  return outcomes;
}

/** Values for one application: it logs this many failures in a second. */
const VALUES_PER_APP = 10;

/** Outcomes that are not as expected, by the names of their values. */
async function deviations(
  values: Readonly<Record<string, Create>>,
  request: string,
  add: (app: Postern, create: Create) => unknown,
  isExpected: (outcome: Outcome) => boolean,
): Promise<[string, Outcome][]> {
  const rest = Object.entries(values);
  const parts: Promise<[string, Outcome][]>[] = [];
  while (rest.length > 0) parts.push(outcomesOf(rest.splice(0, VALUES_PER_APP), request, add));
  return (await Promise.all(parts)).flat().filter(([, outcome]) => !isExpected(outcome));
}

describe.for(Object.keys(PLACES))('thrown in %s', (where) => {
  const { isLate = false, except = [], request = GET, add } = PLACES[where] as Place;
  const expected: Outcome = { status: isLate ? null : 500, lines: ['request failed'], active: 0 };
  const groups = Object.keys(THROWN).filter((group) => !except.includes(group));
  test.for(groups)(`%s ${isLate ? 'ends the reply that has begun' : 'is a 500'}, and one line`, async (group) => {
    const isExpected = (outcome: Outcome): boolean => isDeepStrictEqual(outcome, expected);
    expect(await deviations(THROWN[group] ?? {}, request, add, isExpected)).toEqual([]);
  });
});

/** Where a value may be returned. */
const RETURNS: Readonly<Record<string, Place['add']>> = {
  'by a handler': (app, create) => app.get('/r', () => create() as object),
  'by an asynchronous handler': (app, create) => app.get('/r', async () => (await turn(), create() as object)),
  'by a handler with a time limit': (app, create) => app.get('/r', { timeout: 60_000 }, () => create() as object),
  'by middleware of the application': (app, create) => app.use(() => create() as object).get('/r', () => 'inner'),
  'by middleware of a route':
    (app, create) => app.get('/r', { middleware: [() => create() as object] }, () => 'unreachable'),
  'by a handler below middleware': (app, create) => app.use((_ctx, next) => next()).get('/r', () => create() as object),
  'as the body of a reply': (app, create) => app.get('/r', () => reply(create() as object)),
  'as a body that middleware assigns': (app, create) => app.get('/r', () => 'inner').use(async (_ctx, next) => {
    (await next()).body = create();
  }),
  'as a member of a value': (app, create) => app.get('/r', () => ({ a: create() }) as object),
  'as an element past the tenth': (app, create) => app.get('/r', () => [...Array(20).keys(), create()] as object),
  'by toJSON': (app, create) => app.get('/r', () => ({ a: { toJSON: () => create() } })),
  'as a chunk of a generator': (app, create) => app.get('/r', async function* () { yield create(); }),
  'as a chunk of a web stream': (app, create) =>
    app.get('/r', () => new ReadableStream({
      // One chunk: what a stream keeps for later is its maker's.
      start: (controller) => controller.enqueue(create() as Uint8Array),
    })),
  'as the result of an iterator': (app, create) => app.get('/r', () => iterable(() => create())),
  'as the status of a reply':
    (app, create) => app.get('/r', () => Object.assign(reply('x'), { status: create() as number })),
  'as headers of a reply': (app, create) =>
    app.get('/r', () => reply('x', { headers: create() as Record<string, string> })),
};

describe.for(Object.keys(RETURNS))('returned %s', (how) => {
  test.for(Object.keys(RETURNED))('%s is a reply, and a line if it is a 500', async (group) => {
    const isExpected = ({ status, lines, active }: Outcome): boolean => {
      const expected = status === 500 ? ['request failed'] : [];
      return active === 0 && (status === 500 || status === 200) && isDeepStrictEqual(lines, expected);
    };
    expect(await deviations(RETURNED[group] ?? {}, GET, RETURNS[how] as Place['add'], isExpected)).toEqual([]);
  });
});

/** What a handler may return, shown by a proxy that throws after some looks. */
const SHOWN: Readonly<Record<string, () => object>> = {
  'an object': () => ({ a: 1, b: { c: [2] } }),
  'an array': () => [1, { a: 2 }],
  'a reply': () => reply({ a: 1 }, { status: 201, headers: { 'x-a': 'b' } }),
  'a reply with a stream': () => reply(iterable(async (call) => (call < 3 ? chunk : { done: true, value: undefined }))),
  'a Response': () => new Response('x'),
  'an iterable': () => iterable(async (call) => (call < 3 ? chunk : { done: true, value: undefined })),
  'an object with a then': () => ({ then: (resolve: (value: string) => void) => resolve('late') }),
  'an Error': () => new Error('x'),
  'a NotFound': () => new NotFound('x', { headers: { 'x-a': 'b' } }),
};
const WAYS: Readonly<Record<string, Place['add']>> = {
  'returned': (app, create) => app.get('/r', () => create() as object),
  'returned below middleware': (app, create) => app.use((_ctx, next) => next()).get('/r', () => create() as object),
  'thrown': (app, create) => app.get('/r', throwing(create)),
};

describe.for(Object.keys(WAYS))('%s, and throwing from its nth look on,', (way) => {
  test.for(Object.keys(SHOWN))('%s is one reply, whatever n', async (what) => {
    const looks = Array.from({ length: 60 }, (_, n) => [`${n} looks`, () => trappedAfter(n, SHOWN[what]?.() ?? {})]);
    const isExpected = ({ status, lines, active }: Outcome): boolean => {
      const isReply = status === null || [200, 201, 404, 500].includes(Number(status));
      const isLogged = isDeepStrictEqual(lines, ['request failed']);
      return isReply && active === 0 && (status === null || status === 500 ? isLogged : lines.length === 0);
    };
    const values = Object.fromEntries(looks) as Record<string, Create>;
    expect(await deviations(values, GET, WAYS[way] as Place['add'], isExpected)).toEqual([]);
  });
});

test('an error that is exposed, and whose headers throw, is a reply', async () => {
  const get = (): never => { throw new Error('trap'); };
  const create = (): Error =>
    Object.defineProperty(Object.assign(new Error('x'), { expose: true, status: 404 }), 'headers', { get });
  const isExpected = ({ status, active }: Outcome): boolean => (status === 404 || status === 500) && active === 0;
  const add: Place['add'] = (app, current) => app.get('/r', throwing(current));
  expect(await deviations({ 'such an error': create }, GET, add, isExpected)).toEqual([]);
});

describe('a client that disconnects', () => {
  const ENDINGS: Readonly<Record<string, (create: Create) => object>> = {
    'return() of an iterator': (create) => ({
      [Symbol.asyncIterator]: () => ({ next: async () => chunk, return: throwing(create) }),
    }),
    'the promise of return()': (create) => ({
      [Symbol.asyncIterator]: () => ({ next: async () => chunk, return: async () => throwing(create)() }),
    }),
    'the finally of a generator': (create) => (async function* () {
      try {
        for (;;) yield 'a chunk';
      } finally {
        throwing(create)();
      }
    })(),
    'cancel() of a web stream': (create) =>
      new ReadableStream({
        pull: (controller) => controller.enqueue(Buffer.from('a chunk')),
        cancel: throwing(create),
      }),
  };
  test.for(Object.keys(ENDINGS).flatMap((ending) => Object.keys(THROWN).map((group) => ({ ending, group }))))(
    'is no harm when $ending throws $group',
    async ({ ending, group }) => {
      await Promise.all(Object.values(THROWN[group] ?? {}).map(async (create) => {
        const app = createApp().get('/r', () => ENDINGS[ending]?.(create) ?? '');
        const { port } = await serve(app);
        const client = await WireConnection.open(port);
        await client.write(GET);
        await expect.poll(() => client.rest.length).toBeGreaterThan(1000);
        await client.destroy();
        await expect.poll(() => activeTasksOf(app)).toBe(0);
      }));
    },
  );
});
