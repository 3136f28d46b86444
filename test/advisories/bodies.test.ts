/**
 * Published advisories about bodies, content types and parsing, one by one: T-10 to T-19.
 *
 * Other parts: everyday content types are in http/context (T-10), bodies of exactly the limit in http/bad-input (T-12), more
 * wrong options in http/lifecycle and http/limits (T-13), other limits of parameters in http/limits (T-14), what JSON is
 * refused in unit/json (T-16, T-18), a logger given cycles in unit/log (T-16), names of Object.prototype in paths in
 * http/routing and unit/router (T-18), single clients that leave in http/hardening (T-19). T-11 (GHSA-w2qp-rph6-63g4) has no
 * test: there is no validator whose output could be passed over.
 */

import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { tracingChannel } from 'node:diagnostics_channel';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Postern, type Context, type Handler, type PosternOptions } from 'postern';
import { createJsonLogger } from '../../src/log.js';
import { inParallel } from '../support/gateway-upstream.js';
import { assertGrowth } from '../support/growth.js';
import { parseResponses, rawExchange, type RawResponse } from '../support/raw.js';
import { createApp, serve } from '../support/serve.js';

const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const FORM = 'application/x-www-form-urlencoded';
/** For what is certain to come, on a machine that has other work. */
const PATIENT = { timeout: 10_000 };

/** Every way to read a body. */
const READERS: Readonly<Record<string, (ctx: Context) => Promise<unknown>>> = {
  json: (ctx) => ctx.json(),
  form: async (ctx) => [...(await ctx.form())],
  text: (ctx) => ctx.text(),
  bytes: async (ctx) => (await ctx.bytes()).length,
  stream: async (ctx) => {
    let length = 0;
    for await (const chunk of ctx.stream()) length += (chunk as Buffer).length;
    return length;
  },
};

/** An application with one route for each reader, and the names of those that got a body. */
function createReading(options: PosternOptions = {}): { app: Postern; got: string[] } {
  const app = createApp(options);
  const got: string[] = [];
  for (const [name, read] of Object.entries(READERS)) {
    app.post(`/${name}`, async (ctx) => {
      const body = await read(ctx);
      got.push(name);
      return { body };
    });
  }
  return { app, got };
}

const post = (path: string, headers: string, body: string): string => `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n${body}`;
const sized = (path: string, type: string, body: string): string => post(path, `Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`, body);

/** The first response to some bytes; a server may go on reading behind it. */
async function answerTo(port: number, bytes: string): Promise<RawResponse> {
  const received = await new Promise<string>((resolve) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.from(bytes, 'latin1')));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      const end = text.indexOf('\r\n\r\n');
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0);
      if (end !== -1 && text.length >= end + 4 + length) socket.destroy();
    });
    socket.on('error', () => undefined).on('close', () => resolve(text));
  });
  const [response] = parseResponses(received);
  if (response === undefined) throw new Error('the server closed without a response');
  return response;
}

/** Lets everything happen that is due. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** What nobody caught while a test ran: outside of tests it would have ended the process. */
function watchProcess(): unknown[] {
  const escaped: unknown[] = [];
  const add = (error: unknown): void => void escaped.push(error);
  process.on('uncaughtException', add).on('unhandledRejection', add);
  onTestFinished(() => void process.off('uncaughtException', add).off('unhandledRejection', add));
  return escaped;
}

/** Content types as sent, and which reader takes them: never both, or a body could pass for what it is not. */
const TYPES: readonly (readonly [headers: readonly string[], reader: 'json' | 'form' | null])[] = [
  [['application/json;'], 'json'],
  [['\tapplication/json'], 'json'],
  [['\t application/json \t'], 'json'],
  [['application/json\t;x'], 'json'],
  [['application/json ;charset=utf-8'], 'json'],
  [['application/json; charset="utf-8"'], 'json'],
  [['application/json;application/x-www-form-urlencoded'], 'json'],
  [['APPLICATION/JSON;='], 'json'],
  [['application/problem+json;,'], 'json'],
  [[`${FORM}\t;charset=utf-8`], 'form'],
  [['Application/X-WWW-Form-URLencoded ;'], 'form'],
  [[`${FORM};application/json`], 'form'],
  [['application/json', 'text/plain'], 'json'],
  [['text/plain', 'application/json'], null],
  [[FORM, 'application/json'], 'form'],
  [['application/json', FORM], 'json'],
  [['application/json,text/plain'], null],
  [['application/json, application/json'], null],
  [[`application/json,${FORM}`], null],
  [['text/plain;application/json'], null],
  [[';application/json'], null],
  [['application/json/x'], null],
  [['application/ json'], null],
  [['application /json'], null],
  [['application/json x'], null],
  [['application/json\xa0'], null],
  [['\xa0application/json'], null],
  [['application/json\x85;x'], null],
  [['application\\json'], null],
  [['"application/json"'], null],
  [['application/json+xml'], null],
  [['application/+json'], null],
  [['multipart/form-data; boundary=application/json'], null],
  [['json'], null],
  [['*/*'], null],
  [[''], null],
];

test.for(TYPES)('T-10: a body of type %j is taken by %s, and by no other parser (CVE-2025-32442, CVE-2026-25223)', async ([headers, reader]) => {
  const { app, got } = createReading();
  const { port } = await serve(app);
  const lines = headers.map((header) => `Content-Type: ${header}\r\n`).join('');
  for (const name of ['json', 'form']) {
    const { status } = await answerTo(port, post(`/${name}`, `${lines}Content-Length: 7\r\n`, '{"a":1}'));
    expect([name, status]).toEqual([name, name === reader ? 200 : 415]);
  }
  expect(got).toEqual(reader === null ? [] : [reader]);
});

/** Eleven bytes and more, for a limit of ten. */
const OVERSIZED: readonly (readonly [what: string, headers: string, body: string])[] = [
  ['a length that says so', 'Content-Length: 11\r\n', 'a'.repeat(11)],
  ['a length that says so, and no byte of it', 'Content-Length: 11\r\n', ''],
  ['a length with zeros before it', 'Content-Length: 00000000000000000011\r\n', 'a'.repeat(11)],
  ['a length beyond safe integers', 'Content-Length: 18446744073709551615\r\n', 'a'.repeat(11)],
  ['one chunk', CHUNKED, `b\r\n${'a'.repeat(11)}\r\n0\r\n\r\n`],
  ['chunks of a byte', CHUNKED, `${'1\r\na\r\n'.repeat(11)}0\r\n\r\n`],
  ['chunks with extensions', CHUNKED, `${'1;length=0\r\na\r\n'.repeat(11)}0\r\nx-trailer: 1\r\n\r\n`],
  ['a chunk that never ends', CHUNKED, `fffffff\r\n${'a'.repeat(11)}`],
];

describe('T-12: limits that trust what a request says of itself (GHSA-92vj-g62v-jqhh, CVE-2026-44456, CVE-2026-54288)', () => {
  test.for(OVERSIZED)('a body over the limit by %s gives 413, and its handler gets nothing of it', async ([, headers, body]) => {
    const { app, got } = createReading({ bodyLimit: 10 });
    const { port } = await serve(app);
    for (const name of Object.keys(READERS)) expect((await answerTo(port, post(`/${name}`, headers, body))).status, name).toBe(413);
    expect(got).toEqual([]);
  });

  test('a length shorter than what follows cuts the body there, and the rest is no body', async () => {
    const { app, got } = createReading({ bodyLimit: 10 });
    const { port } = await serve(app);
    for (const [headers, body] of [['Content-Length: 3\r\n', 'abc'], ['', ''], ['Content-Length: 0\r\n', '']]) {
      const responses = parseResponses(await rawExchange(port, `POST /text HTTP/1.1\r\nHost: x\r\n${headers}\r\n${body}${'x'.repeat(20)}\r\n\r\n`));
      expect(responses.map(({ status }) => status)).toEqual([200, 400]);
      expect(responses[0]?.body).toBe(JSON.stringify({ body }));
    }
    expect(got).toEqual(['text', 'text', 'text']);
  });

  test('a limit of 0 takes empty bodies alone', async () => {
    const { app } = createReading({ bodyLimit: 0 });
    const { port } = await serve(app);
    for (const name of ['form', 'text', 'bytes', 'stream']) {
      for (const [headers, body] of [['', ''], ['Content-Length: 0\r\n', ''], [CHUNKED, '0\r\n\r\n']] as const) {
        expect((await answerTo(port, post(`/${name}`, headers, body))).status, name).toBe(200);
      }
      for (const [headers, body] of [['Content-Length: 1\r\n', 'a'], [CHUNKED, '1\r\na\r\n0\r\n\r\n']] as const) {
        expect((await answerTo(port, post(`/${name}`, headers, body))).status, name).toBe(413);
      }
    }
  });

  test('after a 413 no other reader gives the part that had arrived', async () => {
    const outcomes: unknown[] = [];
    const app = createApp({ bodyLimit: 10 }).post('/', async (ctx) => {
      for (const read of Object.values(READERS)) outcomes.push(await read(ctx).catch((error: unknown) => error));
      return 'done';
    });
    const { port } = await serve(app);
    await rawExchange(port, post('/', CHUNKED, `a\r\n${'1'.repeat(10)}\r\n1\r\n1\r\n0\r\n\r\n`));
    expect(outcomes).toHaveLength(5);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ statusCode: 413 });
  });
});

describe('T-13: limits that are none (CVE-2026-12590)', () => {
  const wrong: readonly unknown[] = ['10 MBs', '10mb', '1048576', '', Infinity, -Infinity, 2 ** 53, -0.5, 10n, true, [10], {}];
  const options = [
    'bodyLimit', 'parameterLimit', 'maxHeaderSize', 'maxHeadersCount', 'maxConnections',
    'requestTimeout', 'headersTimeout', 'keepAliveTimeout', 'sendTimeout',
  ];
  for (const option of options) {
    test.for(wrong.map((value) => ({ value })))(`${option} of $value throws at construction`, ({ value }) => {
      expect(() => new Postern('users', { logger: false, [option]: value })).toThrow(`${option} is ${String(value)}`);
    });
  }

  test('a limit that is left out, or given as undefined, is 1 MiB', async () => {
    const options: PosternOptions = {};
    Object.assign(options, { bodyLimit: undefined });
    for (const { app } of [createReading(), createReading(options)]) {
      const send = async (length: number): Promise<number> => (await app.request('/bytes', { method: 'POST', body: Buffer.alloc(length) })).status;
      expect([await send(1_048_576), await send(1_048_577)]).toEqual([200, 413]);
    }
  });
});

describe('T-14: forms of many parts (CVE-2024-45590, CVE-2025-13466)', () => {
  test.for([
    ['1,000 fields', 200, 'a=1&'.repeat(999)],
    ['1,000 fields of nothing', 200, '&'.repeat(999)],
    ['1,001 fields', 413, `${'a=1&'.repeat(1000)}a`],
    ['1,001 fields of nothing', 413, '&'.repeat(1000)],
    ['100,000 fields', 413, 'a&'.repeat(100_000)],
  ] as const)('%s give %i', async ([, status, body]) => {
    const { app } = createReading();
    expect((await app.request('/form', { method: 'POST', body, headers: { 'content-type': FORM } })).status).toBe(status);
  });

  test.for([[1000, 200], [1001, 400]] as const)('a query of %i parameters gives %i', async ([count, status]) => {
    const app = createApp().get('/', (ctx) => ctx.query.size);
    expect((await app.request(`/?${'a&'.repeat(count - 1)}a`)).status).toBe(status);
  });

  const shapes: readonly (readonly [what: string, make: (n: number) => string])[] = [
    ['fields', (n) => 'a&'.repeat(n / 2)],
    ['fields of nothing', (n) => '&'.repeat(n)],
    ['equals signs', (n) => '='.repeat(n)],
    ['pluses', (n) => `a=${'+'.repeat(n)}`],
    ['escapes', (n) => `a=${'%41'.repeat(n / 3)}`],
    ['broken escapes', (n) => `a=${'%'.repeat(n)}`],
    ['brackets', (n) => `a${'[]'.repeat(n / 2)}=`],
  ];
  test.for(shapes)('a form of %s takes linear time', async ([what, make]) => {
    const app = createApp().post('/', async (ctx) => {
      await ctx.bytes();
      const startedAt = performance.now();
      const size = await ctx.form().then((form) => form.size, () => 0);
      return { size, ms: performance.now() - startedAt };
    });
    const measure = async (n: number): Promise<number> => {
      const response = await app.request('/', { method: 'POST', body: make(n), headers: { 'content-type': FORM } });
      return ((await response.json()) as { ms: number }).ms;
    };
    await assertGrowth(`a form of ${what}`, measure, 48_000);
  });
});

test.for([
  ['a list', 'a[]=1&a[]=2', [['a[]', '1'], ['a[]', '2']]],
  ['a large index', 'a[0][50000000]=x', [['a[0][50000000]', 'x']]],
  ['the largest index, and a length', 'a[4294967295]=x&a.length=9', [['a[4294967295]', 'x'], ['a.length', '9']]],
  ['nested keys, and their root', 'a[b][c][d]=x&a=y', [['a[b][c][d]', 'x'], ['a', 'y']]],
  ['escaped brackets', 'a%5B0%5D=x', [['a[0]', 'x']]],
  ['commas', 'a=1,2,3', [['a', '1,2,3']]],
  ['a thousand brackets', `a${'[x]'.repeat(1000)}=y`, [[`a${'[x]'.repeat(1000)}`, 'y']]],
] as const)('T-15: %s stays flat, in a form as in a query (CVE-2025-15284)', async ([, text, pairs]) => {
  const app = createApp().post('/', async (ctx) => ({ form: [...(await ctx.form())], query: [...ctx.query] }));
  const response = await app.request(`/?${text}`, { method: 'POST', body: text, headers: { 'content-type': FORM } });
  expect(await response.json()).toEqual({ form: pairs, query: pairs });
});

const DEPTH = 200_000;

describe('T-16: nesting without an end while asynchronous contexts are kept (CVE-2025-59466)', () => {
  const store = new AsyncLocalStorage<string>();

  /** Contexts kept by a middleware, by a subscriber to the tracing channel, and by hooks. */
  function createNested(options: PosternOptions): { app: Postern; stores: unknown[] } {
    const hook = createHook({ init() {}, before() {}, after() {} }).enable();
    const { start } = tracingChannel('postern.request');
    const traced = new AsyncLocalStorage<unknown>();
    start.bindStore(traced, () => 'traced');
    onTestFinished(() => {
      hook.disable();
      start.unbindStore(traced);
    });
    const stores: unknown[] = [];
    const app = createApp({ bodyLimit: 8 * DEPTH, ...options })
      .use((_ctx, next) => store.run('kept', next))
      .post('/', async (ctx) => {
        await ctx.json().finally(() => stores.push(store.getStore(), traced.getStore()));
      })
      .get('/', () => 'alive');
    return { app, stores };
  }

  test.for([
    ['arrays', '['.repeat(DEPTH) + ']'.repeat(DEPTH)],
    ['arrays that are not closed', '['.repeat(DEPTH)],
    ['objects', `${'{"a":'.repeat(DEPTH)}1${'}'.repeat(DEPTH)}`],
    ['objects that are not closed', '{"":'.repeat(DEPTH)],
    ['both by turns', `${'[{"a":'.repeat(DEPTH / 2)}1${'}]'.repeat(DEPTH / 2)}`],
  ] as const)('JSON of %s, 200,000 deep, gives 400, and the process serves on', async ([, body]) => {
    const { app, stores } = createNested({});
    const response = await app.request('/', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    expect([response.status, ((await response.json()) as { description: string }).description]).toEqual([400, 'The body is nested more than 1000 deep.']);
    expect(stores).toEqual(['kept', 'traced']);
    expect(await (await app.request('/')).text()).toBe('alive');
  });

  const nested = (): unknown[] => {
    let value: unknown[] = [];
    for (let depth = 0; depth < DEPTH; depth += 1) value = [value];
    return value;
  };
  const chained = (): Error => {
    let error = new Error('innermost');
    for (let depth = 0; depth < 10_000; depth += 1) error = new Error('outer', { cause: error });
    return error;
  };
  const raises: readonly (readonly [what: string, raise: Handler])[] = [
    ['an error with a deep property', () => Object.assign(new Error('x'), { body: nested() })],
    ['an error with a deep cause', () => new Error('x', { cause: nested() })],
    ['an error behind 10,000 others', chained],
    ['a deep value that is thrown', () => { throw nested(); }],
  ];
  test('a deep value that is returned is written where the runtime can, and else gives 500', async () => {
    const { app } = createNested({});
    app.get('/deep', nested);
    let text: string | null = null;
    try {
      text = JSON.stringify(nested());
    } catch {
      // Node.js 24 and earlier recurse.
    }
    const response = await app.request('/deep');
    expect(response.status).toBe(text === null ? 500 : 200);
    if (text !== null) expect(await response.text()).toBe(text);
    expect(await (await app.request('/')).text()).toBe('alive');
  });

  test.for(raises)('%s gives 500 and one line in the log', async ([, raise]) => {
    let written = '';
    const { app } = createNested({ logger: createJsonLogger('users', (line) => (written += line)) });
    app.get('/deep', raise);
    expect((await app.request('/deep')).status).toBe(500);
    expect(await (await app.request('/')).text()).toBe('alive');
    expect(written.trimEnd().split('\n').map((line) => (JSON.parse(line) as { level: string }).level)).toEqual(['error']);
  });
});

test('T-17: an object of more keys than the limit has room for is refused before it is parsed (CVE-2026-21717, CVE-2025-27209)', async () => {
  const parse = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parse.mockRestore());
  const { app, got } = createReading();
  const body = `{${Array.from({ length: 100_000 }, (_, i) => `"${(i + 1) * 65_536}":0`).join()}}`;
  const streamed = new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from(body));
      controller.close();
    },
  });
  for (const given of [body, streamed]) {
    expect((await app.request('/json', { method: 'POST', body: given, headers: { 'content-type': 'application/json' } })).status).toBe(413);
  }
  expect([got, parse.mock.calls]).toEqual([[], []]);
});

describe('T-18: names that reach a prototype (CVE-2026-8161 and others)', () => {
  const NAMES = [
    '__proto__', '__proto__[polluted]', '__proto__.polluted', 'constructor', 'constructor[prototype][polluted]', 'constructor.prototype.polluted',
    'prototype', 'toString', 'hasOwnProperty', '__defineGetter__', '__lookupSetter__',
  ];

  test.for(NAMES)('%s in the query, a form, the path and the state is a name like any other', async (name) => {
    const before = Reflect.ownKeys(Object.prototype);
    const app = createApp().post('/:first/*rest', async (ctx) => {
      ctx.state[name] = 'polluted';
      const form = await ctx.form();
      return {
        query: [ctx.query.get(name), [...ctx.query]],
        form: [form.get(name), [...form]],
        params: Object.entries(ctx.params),
        inherited: ['polluted', 'toString', 'constructor', '__proto__'].filter((key) => key in ctx.params || (key !== name && key in ctx.state)),
        state: Object.entries(ctx.state),
      };
    });
    const body = new URLSearchParams([[name, 'polluted']]).toString();
    const segment = encodeURIComponent(name);
    const response = await app.request(`/${segment}/${segment}?${body}`, { method: 'POST', body, headers: { 'content-type': FORM } });
    expect(await response.json()).toEqual({
      query: ['polluted', [[name, 'polluted']]],
      form: ['polluted', [[name, 'polluted']]],
      params: [['first', name], ['rest', name]],
      inherited: [],
      state: [[name, 'polluted']],
    });
    expect(Reflect.ownKeys(Object.prototype)).toEqual(before);
  });

  test('a request without a route, or without parameters, has no prototype behind its parameters either', async () => {
    const inherited: unknown[] = [];
    const app = createApp().get('/', () => 'x').use((ctx, next) => {
      inherited.push('constructor' in ctx.params, '__proto__' in ctx.params, 'toString' in ctx.state);
      return next();
    });
    for (const path of ['/', '/nowhere', '/__proto__']) await app.request(path);
    expect(inherited).toEqual(Array.from({ length: 9 }, () => false));
  });

  test('what a handler merges of a JSON body never reaches Object.prototype', async () => {
    onTestFinished(() => void Reflect.deleteProperty(Object.prototype, 'polluted'));
    const merged: Record<string, unknown> = {};
    const merge = (into: Record<string, unknown>, from: object): void => {
      for (const [key, value] of Object.entries(from)) {
        if (typeof value === 'object' && value !== null) merge((into[key] ??= {}) as Record<string, unknown>, value as object);
        else into[key] = value;
      }
    };
    const app = createApp().post('/', async (ctx) => merge(merged, await ctx.json<object>()));
    const bodies = [
      '{"__proto__":{"polluted":1}}', '{"a":{"__proto__":{"polluted":1}}}', '{"\\u005f\\u005fproto__":{"polluted":1}}',
      '{"constructor":{"prototype":{"polluted":1}}}', '[{"a":[{"constructor":{"prototype":{"polluted":1}}}]}]',
      '{"__proto__":1,"__proto__":{"polluted":1}}', '{"constructor":1,"constructor":{"prototype":{"polluted":1}}}',
    ];
    for (const body of bodies) {
      const { status } = await app.request('/', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
      expect(status, body).toBe(400);
    }
    expect('polluted' in {}).toBe(false);
    expect(merged).toEqual({});
  });
});

describe('T-19: uploads (CVE-2025-47935, CVE-2025-47944, CVE-2025-7338, CVE-2026-2359, CVE-2026-3304, CVE-2026-5038, CVE-2026-8159)', () => {
  test('multipart is parsed by nobody', async () => {
    const { app, got } = createReading();
    const body = '--b\r\nContent-Disposition: form-data; name="__proto__"; filename="../../x"\r\n\r\nx\r\n--b--\r\n';
    for (const [name, status] of [['json', 415], ['form', 415], ['text', 200]] as const) {
      const response = await app.request(`/${name}`, { method: 'POST', body, headers: { 'content-type': 'multipart/form-data; boundary=b' } });
      expect(response.status).toBe(status);
      if (status === 200) expect(await response.json()).toEqual({ body });
    }
    expect(got).toEqual(['text']);
  });

  const left = (ctx: Context): Promise<unknown> => new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
  /** Readers, and handlers that mind a body less than they should. */
  const uploads: typeof READERS = {
    ...READERS,
    piped: (ctx) => {
      ctx.stream().pipe(new PassThrough()).resume();
      return left(ctx);
    },
    'streamed and left alone': (ctx) => {
      ctx.stream();
      return left(ctx);
    },
    'streamed too late': async (ctx) => {
      await left(ctx);
      for await (const chunk of ctx.stream()) void chunk;
    },
    'read too late': async (ctx) => {
      await left(ctx);
      return ctx.bytes();
    },
    ignored: left,
  };

  test('a thousand uploads cut half-way leave no handler, no task, no connection, no memory and no error behind', async () => {
    const escaped = watchProcess();
    const kinds = Object.entries(uploads);
    const app = createApp();
    const contexts: WeakRef<Context>[] = [];
    const started = new Map<string, () => void>();
    const running = new Set<string>();
    for (const [i, [, read]] of kinds.entries()) {
      app.post(`/${i}/:id`, (ctx) => {
        contexts.push(new WeakRef<Context>(ctx));
        started.get(ctx.params.id)?.();
        running.add(ctx.params.id);
        return read(ctx).finally(() => running.delete(ctx.params.id));
      });
    }
    const { port } = await serve(app);
    const head = (i: number): string => `POST /${i % kinds.length}/${i} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n`;
    // No more than node:http takes ahead of a reader: beyond, it would not see who leaves.
    const upload = (i: number): Promise<void> => new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        // Some leave in the head, some at once behind a part of the body, most when their handler has begun.
        if (i % 20 === 0) socket.write(head(i), () => socket.destroy());
        else if (i % 20 < 5) socket.write(`${head(i)}\r\n${'x'.repeat(12_000)}`, () => socket.destroy());
        else {
          started.set(String(i), () => socket.destroy());
          socket.write(`${head(i)}\r\n${'x'.repeat(12_000)}`);
        }
      });
      socket.on('error', () => undefined).on('close', () => {
        started.delete(String(i));
        resolve();
      });
    });

    setFlagsFromString('--expose-gc');
    const collectGarbage: () => void = runInNewContext('gc');
    const used = (): number => {
      collectGarbage();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const settled = async (): Promise<void> => {
      await expect.poll(() => [...running], PATIENT).toEqual([]);
      await expect.poll(() => app.metrics.expose(), PATIENT).toContain('active_task_count 0.0');
      await expect.poll(() => new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count))), PATIENT).toBe(0);
    };

    await inParallel(Array.from({ length: 200 }, (_, i) => i), upload, 40);
    await settled();
    const usedBefore = used();
    await inParallel(Array.from({ length: 1000 }, (_, i) => i), upload, 40);
    await settled();
    expect(contexts.length).toBeGreaterThanOrEqual(900);
    await expect.poll(() => {
      collectGarbage();
      return contexts.filter((context) => context.deref() !== undefined).length;
    }, PATIENT).toBeLessThan(20);
    // 12 MB were received.
    expect(used() - usedBefore).toBeLessThan(8_000_000);
    expect(escaped).toEqual([]);
    expect((await fetch(`http://127.0.0.1:${port}/users/ping/`)).status).toBe(200);
  });

  test('an upload that nobody reads, longer than what is taken ahead, ends with requestTimeout when its client has left', async () => {
    const app = createApp({ requestTimeout: 200, headersTimeout: 200 });
    const handlers: Promise<unknown>[] = [];
    app.post('/', (ctx) => {
      const ended = left(ctx);
      handlers.push(ended);
      return ended;
    });
    const { port } = await serve(app);
    for (let i = 0; i < 10; i += 1) connect(port, '127.0.0.1').on('error', () => undefined).end(post('/', 'Content-Length: 1000000\r\n', 'x'.repeat(200_000)));
    await expect.poll(() => handlers.length, PATIENT).toBe(10);
    await Promise.all(handlers);
    await expect.poll(() => app.metrics.expose(), PATIENT).toContain('active_task_count 0.0');
    await expect.poll(() => new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count))), PATIENT).toBe(0);
  });

  test.for([
    ['as a stream', (ctx: Context) => ctx.stream()],
    ['as a stream, after it failed to be read', async (ctx: Context) => {
      await ctx.bytes().catch(() => undefined);
      return ctx.stream();
    }],
  ] as const)('a body over the limit, piped %s by a handler that listens for no error, does not end the process', async ([, open]) => {
    const escaped = watchProcess();
    const app = createApp({ bodyLimit: 10 }).post('/', async (ctx) => {
      (await open(ctx)).pipe(new PassThrough()).resume();
      await turns(20);
      return 'done';
    });
    const { port } = await serve(app);
    expect((await answerTo(port, post('/', CHUNKED, `b\r\n${'a'.repeat(11)}\r\n0\r\n\r\n`))).body).toBe('done');
    expect(escaped).toEqual([]);
  });

  test.for(['json', 'form', 'text', 'bytes'] as const)('%s() that fails while its handler waits for something else gives its own status', async (name) => {
    const escaped = watchProcess();
    const app = createApp({ bodyLimit: 10 }).post('/', async (ctx) => {
      const body = ctx[name]();
      await turns(20);
      return { body: await body };
    });
    const { port } = await serve(app);
    expect((await answerTo(port, sized('/', 'text/plain', 'a'.repeat(11)))).status).toBe(name === 'json' || name === 'form' ? 415 : 413);
    expect(escaped).toEqual([]);
  });
});
