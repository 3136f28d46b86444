/**
 * A value that JSON would lose without a word is a 500, whose log line names its path and the remedy, wherever it is.
 * What JSON writes, or leaves out as its owner wants, is sent.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { events, NotFound, reply } from 'postern';
import type { Handler, Middleware, PosternOptions, StandardSchemaV1 } from 'postern';
import { Realm } from '../support/realm.js';
import { createApp, createRecorder, expectFailures, serve } from '../support/serve.js';

class Instance {
  id = 7;
  greet(): string {
    return 'hello';
  }
}
class Empty {
  greet(): string {
    return 'hello';
  }
}
class Optional {
  name = undefined;
  age = undefined;
}

class Private {
  readonly #amount = 7;
  get amount(): number {
    return this.#amount;
  }
}
class Failure extends Error {
  code = 'E_FAILURE';
}
function Old(this: { id: number }): void {
  this.id = 7;
}
Old.prototype.greet = (): string => 'hello';
const realm = new Realm();
const entity = { toJSON: () => ({ id: 7 }), save: () => 1, relations: new Map() };
const rows = Array.from({ length: 50 }, (_, id) => ({ id }));

/** What JSON loses, with a word of the remedy that the log names. */
const lost: Record<string, { create: () => unknown; remedy: RegExp }> = {
  'a Map': { create: () => new Map([['a', 1]]), remedy: /a Map\b.*Object\.fromEntries/ },
  'an empty Map': { create: () => new Map(), remedy: /a Map\b.*Object\.fromEntries/ },
  'a Set': { create: () => new Set([1]), remedy: /a Set\b.*\[\.\.\.set\]/ },
  'a Map of another realm':
    { create: () => realm.evaluate('new Map([["a", 1]])'), remedy: /a Map\b.*Object\.fromEntries/ },
  'an instance whose fields are undefined': { create: () => new Optional(), remedy: /an instance of Optional/ },
  'a WeakMap': { create: () => new WeakMap(), remedy: /WeakMap/ },
  'a WeakSet': { create: () => new WeakSet(), remedy: /WeakSet/ },
  'a WeakRef': { create: () => new WeakRef(entity), remedy: /WeakRef/ },
  'an iterator of a Map': { create: () => new Map().keys(), remedy: /Map Iterator.*\[\.\.\.iterator\]/ },
  'an iterator of a Set': { create: () => new Set().values(), remedy: /Set Iterator.*\[\.\.\.iterator\]/ },
  'an iterator of an array': { create: () => [1].values(), remedy: /Array Iterator.*\[\.\.\.iterator\]/ },
  'an iterator of a text': { create: () => 'x'[Symbol.iterator](), remedy: /String Iterator.*\[\.\.\.iterator\]/ },
  'matches': { create: () => 'a1'.matchAll(/\d/g), remedy: /RegExp String Iterator.*\[\.\.\.iterator\]/ },
  'an iterator of Headers': { create: () => new Headers().keys(), remedy: /Headers Iterator.*\[\.\.\.iterator\]/ },
  'a generator': { create: () => (function* () { yield 1; })(), remedy: /a Generator\b.*\[\.\.\.generator\]/ },
  'an asynchronous generator':
    { create: () => (async function* () { yield 1; })(), remedy: /AsyncGenerator.*by itself|collect/ },
  ...iteratorHelpers(),
  'a promise': { create: () => Promise.resolve(1), remedy: /a Promise\b.*await/ },
  'a promise of another realm': { create: () => realm.evaluate('Promise.resolve(1)'), remedy: /a Promise\b.*await/ },
  'Headers': { create: () => new Headers({ a: 'b' }), remedy: /Headers\b.*Object\.fromEntries/ },
  'URLSearchParams': { create: () => new URLSearchParams('a=1'), remedy: /URLSearchParams.*Object\.fromEntries/ },
  'FormData': { create: () => new FormData(), remedy: /FormData.*Object\.fromEntries/ },
  'a Blob': { create: () => new Blob(['x']), remedy: /a Blob\b.*blob\.text/ },
  'a File': { create: () => new File(['x'], 'a.txt'), remedy: /a File\b.*file\.text/ },
  'a Response': { create: () => new Response('x'), remedy: /Response\b/ },
  'a Stream of Node.js': { create: () => new PassThrough(), remedy: /a stream\b.*collect/ },
  'a ReadableStream': { create: () => new ReadableStream(), remedy: /ReadableStream.*by itself|collect/ },
  'an ArrayBuffer': { create: () => new ArrayBuffer(1), remedy: /ArrayBuffer.*base64/ },
  'a DataView': { create: () => new DataView(new ArrayBuffer(1)), remedy: /DataView.*base64/ },
  'a regular expression': { create: () => /x/, remedy: /RegExp/ },
  'a formatter': { create: () => new Intl.NumberFormat(), remedy: /NumberFormat/ },
  'an abort signal': { create: () => new AbortController().signal, remedy: /AbortSignal/ },
  'an instance with private fields alone': { create: () => new Private(), remedy: /toJSON/ },
  'an instance without fields': { create: () => new Empty(), remedy: /toJSON/ },
  'an Error': { create: () => new Error('no database'), remedy: /Error\b.*message/ },
  'an Error with members': { create: () => new Failure('no database'), remedy: /Error|Failure/ },
  'an AggregateError': { create: () => new AggregateError([]), remedy: /Error\b.*message/ },
  'a DOMException': { create: () => new DOMException('x'), remedy: /(?:DOMException|Error)\b.*message/ },
  'an Error of another realm': { create: () => realm.evaluate('new TypeError("x")'), remedy: /Error\b.*message/ },
  'a bigint': { create: () => 10n, remedy: /bigint.*(?:String|Number|text|number)/i },
  'a bigint in an object': { create: () => Object(10n) as unknown, remedy: /BigInt/ },
  'a symbol': { create: () => Symbol('x'), remedy: /symbol/ },
  'a symbol in an object': { create: () => Object(Symbol('x')) as unknown, remedy: /symbol/i },
  'a function': { create: () => () => 1, remedy: /a function\b.*(?:call it|leave it out)/ },
  'an asynchronous function': { create: () => async () => 1, remedy: /function\b.*(?:call it|leave it out)/i },
  'a class': { create: () => Instance, remedy: /(?:function|class)\b/ },
};

/** Iterators of `Iterator.prototype.map` and the like, in versions of Node.js that have them. */
function iteratorHelpers(): Record<string, { create: () => unknown; remedy: RegExp }> {
  const map: unknown = Reflect.get([].values(), 'map');
  if (typeof map !== 'function') return {};
  const create = (): unknown => Reflect.apply(map, [1].values(), [(n: number) => n]);
  return { 'an iterator helper': { create, remedy: /Iterator Helper.*\[\.\.\.iterator\]/ } };
}

function nest(depth: number, value: unknown): unknown {
  let nested = value;
  for (let i = 0; i < depth; i += 1) nested = { d: nested };
  return nested;
}

/** Where a lost value may be, with its path. */
const places: Record<string, { put: (value: unknown) => unknown; path: string }> = {
  'a member': { put: (value) => ({ a: 1, b: value }), path: '/b' },
  'the only member': { put: (value) => ({ b: value }), path: '/b' },
  'a member whose name has a space': { put: (value) => ({ 'last name': value }), path: '/last name' },
  'an element': { put: (value) => [1, value], path: '/1' },
  'a member of an element': { put: (value) => ({ items: [{}, {}, {}, { price: value }] }), path: '/items/3/price' },
  'an element past the tenth': { put: (value) => [...rows, value], path: '/50' },
  'a member of a row past the tenth': {
    put: (value) => ({ rows: rows.map((row) => (row.id === 40 ? { ...row, x: value } : row)) }), path: '/rows/40/x',
  },
  'a member beside empty objects': { put: (value) => ({ a: {}, b: [[], {}], c: value }), path: '/c' },
  'the result of toJSON': { put: (value) => ({ a: { toJSON: () => value } }), path: '/a' },
  'a member below toJSON': { put: (value) => ({ a: { toJSON: () => ({ b: [value] }) } }), path: '/a/b/0' },
  'a member below the toJSON of the whole': { put: (value) => ({ toJSON: () => ({ b: value }) }), path: '/b' },
  'a member below toJSON in a row past the tenth': {
    put: (value) => rows.map(({ id }) => ({ toJSON: () => (id === 30 ? { id, x: value } : { id }) })), path: '/30/x',
  },
  'a member of an instance': { put: (value) => Object.assign(new Instance(), { b: value }), path: '/b' },
  'a member of an object without a prototype':
    { put: (value) => Object.assign(Object.create(null) as object, { b: value }), path: '/b' },
  'a member of an object of another realm':
    { put: (value) => Object.assign(realm.evaluate('{}') as object, { b: value }), path: '/b' },
  'a member that a getter returns': { put: (value) => ({ get b() { return value; } }), path: '/b' },
  'a member at depth 150': { put: (value) => nest(150, { x: value }), path: `${'/d'.repeat(150)}/x` },
  'a member at depth 1000': { put: (value) => nest(1000, { x: value }), path: `${'/d'.repeat(1000)}/x` },
  'a member of the body of a reply': { put: (value) => reply({ b: value }, { status: 201 }), path: '/b' },
  'the result of a promise, a member': { put: (value) => Promise.resolve({ b: value }), path: '/b' },
};

interface Failure500 {
  readonly status: number;
  readonly code: unknown;
  readonly lines: readonly string[];
}

/** What becomes of replies with these values, each by the route of its name. */
async function failuresOf(values: Readonly<Record<string, () => unknown>>): Promise<Record<string, Failure500>> {
  const failures: Record<string, Failure500> = {};
  for (const [name, create] of Object.entries(values)) {
    // One for each: of more than ten failures in a second an application logs only the number.
    const logger = createRecorder();
    const app = expectFailures(createApp({ logger }), 500).get('/r', () => create() as object);
    const response = await app.request('/r');
    const body: unknown = JSON.parse(await response.text());
    const lines = logger.entries.map(({ level, object: { err, ...fields } }) => {
      const texts = Object.values(fields).filter((field) => typeof field === 'string');
      return [level, err instanceof Error ? err.message : String(err), ...texts].join(' ');
    });
    failures[name] = { status: response.status, code: Reflect.get(Object(body), 'error_code'), lines };
  }
  return failures;
}

/** The failure that is expected: one line at error, which matches. */
const failure = (line: RegExp): object => ({
  status: 500,
  code: { name: 'framework_unknown_error', value: 999999 },
  lines: [expect.stringMatching(new RegExp(`^error .*${line.source}`, line.flags))],
});

test.for(Object.keys(lost))('%s is a 500 with its path and the remedy, wherever it is', async (what) => {
  const { create, remedy } = lost[what] as (typeof lost)[string];
  const values = Object.entries(places).map(([place, { put }]) => [place, () => put(create())] as const);
  const expected = Object.entries(places).map(([place, { path }]) => {
    const line = `(?<![^ "'(\`])${path}(?![/\\w]).*${remedy.source}`;
    return [place, failure(new RegExp(line, remedy.flags))] as const;
  });
  expect(await failuresOf(Object.fromEntries(values))).toEqual(Object.fromEntries(expected));
});

/** What is sent as a whole if it is not inside of another value. */
const WHOLE =
  /asynchronous generator|promise|URLSearchParams|FormData|Blob|File|Response|Stream|ArrayBuffer|DataView|Error|DOMExc/;

const others = Object.keys(lost).filter((what) => !WHOLE.test(what));
test.for(others)('%s by itself is a 500 with the remedy', async (what) => {
  const { create, remedy } = lost[what] as (typeof lost)[string];
  expect(await failuresOf({ value: create })).toEqual({ value: failure(remedy) });
});

test.for<[string, () => unknown, string]>([
  ['the results of Promise.allSettled', () => Promise.allSettled([1, Promise.reject(new Error('x'))]), '/1/reason'],
  ['an object that was spread from an instance', () => ({ ...new Instance(), save: () => 1 }), '/save'],
  ['an object with a method', () => ({ a: 1, f() {} }), '/f'],
  ['a list of functions', () => [() => 1], '/0'],
  ['the first of two', () => ({ a: new Map(), b: new Set() }), '/a'],
])('%s: the path is in the log', async ([, create, path]) => {
  expect(await failuresOf({ value: create })).toEqual({ value: failure(new RegExp(path)) });
});

test('the promise of a body that was forgotten to be awaited is in the log with its remedy', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500);
  app.post('/', (ctx) => ({ b: ctx.json() }) as object);
  expect((await app.request('/', { method: 'POST', body: '{"a":1}' })).status).toBe(500);
  expect(String(logger.entries[0]?.object['err'])).toMatch(/\/b is a Promise.*await it first/);
});

test('forgotten promises that reject do not end the process', async () => {
  const fail = (): Promise<never> => Promise.reject(new Error('no database'));
  const thenable = (): object => realm.evaluate('Promise.reject(new Error("no database"))') as object;
  const unhandled: unknown[] = [];
  const add = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', add);
  onTestFinished(() => void process.off('unhandledRejection', add));
  const app = expectFailures(createApp(), 500);
  app.get('/', () => ({ a: fail(), b: [new Map(), fail()], c: [...rows, fail()], d: nest(150, fail()) }) as object);
  app.get('/below', () => ({ a: { toJSON: () => [fail(), { b: fail() }] }, c: 10n, d: fail() }) as object);
  app.get('/elsewhere', () => ({ a: thenable(), b: [thenable()] }) as object);
  for (const path of ['/', '/below', '/elsewhere']) expect((await app.request(path)).status).toBe(500);
  // Node.js reports rejections when the microtasks of a turn have run.
  await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled).toEqual([]);
});

const schemaOf = (validate: (value: unknown) => object): StandardSchemaV1 => {
  return { '~standard': { version: 1, vendor: 'test', validate } } as StandardSchemaV1;
};
const later = <T>(value: T): Promise<T> => new Promise((resolve) => setTimeout(resolve, 30, value));
const MISFIT = schemaOf(() => ({ issues: [{ message: 'no' }] }));
const OTHER = schemaOf(() => later({ value: { ok: true } }));

/** Ways to drop what a handler returned, or to be late with it. */
const LEFT_OVER: readonly (readonly [
  what: string, status: number, handler: (failing: () => unknown) => Handler,
  options?: PosternOptions, route?: object, middleware?: Middleware,
])[] = [
  ['a value is sent', 500, (failing) => () => ({ a: failing() })],
  ['a value is thrown', 500, (failing) => () => { throw { a: [failing()] }; }],
  ['a stream yields it', 500, (failing) => async function* () { yield { a: failing() }; }],
  ['a status without a body', 304, (failing) => () => reply({ a: { b: failing() } }, { status: 304 })],
  ['a header that cannot be sent', 500, (failing) => () => reply([failing()], { headers: { a: '\u20ac' } })],
  ['a reply in a reply', 500, (failing) => () => reply(reply({ a: failing() }))],
  ['ctx.raw', 200, (failing) => (ctx) => (ctx.raw.res.end(), { a: { b: failing() } })],
  ['the time limit', 504, (failing) => async () => (await later(0), { a: [{ b: failing() }] }), {}, { timeout: 10 }],
  ['a reply that misfits', 500, (failing) => () => ({ a: [{ b: failing() }] }), { validateResponses: true },
    { response: MISFIT }],
  ['an undeclared status', 500, (failing) => () => ({ a: failing() }), { validateResponses: true },
    { response: { 201: MISFIT } }],
  ['the output of a schema', 200, (failing) => () => ({ a: [{ b: failing() }] }), { validateResponses: 'output' },
    { response: OTHER }],
  ['slow middleware', 500, (failing) => () => ({ a: failing() }), {}, {}, async (_ctx, next) => later(await next())],
  ['middleware with another reply', 200, (failing) => () => [{ a: failing() }], {}, {},
    async (_ctx, next) => (await next(), 'other')],
  ['middleware that throws', 404, (failing) => () => ({ a: { b: failing() } }), {}, {}, async (_ctx, next) => {
    await next();
    throw new NotFound();
  }],
];
const FAILING = {
  'a promise that rejects': async () => { throw new Error('no database'); },
  'a stream that fails': () => createReadStream('/missing'),
};
const leftOver = LEFT_OVER.flatMap(([what, ...row]) => Object.entries(FAILING).map(([kind, failing]) => {
  return [`${kind}, and ${what}`, failing, ...row] as const;
}));

test.for(leftOver)('%s: the process does not end', async ([, failing, status, handler, options, route, around]) => {
  const app = expectFailures(createApp(options), status);
  if (around !== undefined) app.use(around);
  app.get('/', route ?? {}, handler(failing) as never);
  const response = await app.request('/');
  await response.text().catch(() => undefined);
  expect(response.status).toBe(status);
  // Until a file is found missing, and a handler ends that was late. What nobody handles fails each test.
  await later(undefined);
});

test.for(Object.entries(FAILING))('%s, and the client has left: the process does not end', async ([, failing]) => {
  const app = createApp();
  const client = new AbortController();
  const left = new Promise<void>((resolve) => {
    app.get('/', async (ctx) => {
      client.abort();
      await once(ctx.signal, 'abort');
      resolve();
      return { a: failing() } as object;
    });
  });
  const { url } = await serve(app);
  await expect(fetch(url, { signal: client.signal })).rejects.toThrow();
  await left;
  await later(undefined);
});

test('events() of a stream that fails before it is read do not end the process', async () => {
  const app = expectFailures(createApp(), 500).use(async (_ctx, next) => later(await next()));
  app.get('/', () => events(createReadStream('/missing')));
  await expect((await app.request('/')).text()).rejects.toThrow();
});

const shared = { x: 1 };
let deep: unknown = 1;
for (let i = 0; i < 2000; i += 1) deep = [deep];
const kept: [string, () => unknown, string][] = [
  ['an empty object', () => ({}), '{}'],
  ['empty objects', () => [{}, { a: {} }], '[{},{"a":{}}]'],
  ['empty objects of another realm', () => realm.evaluate('{ a: {}, b: [{}] }'), '{"a":{},"b":[{}]}'],
  ['a text that looks like one', () => ({ a: '{}' }), '{"a":"{}"}'],
  ['an instance of a class', () => new Instance(), '{"id":7}'],
  ['an instance of a class of another realm', () => realm.evaluate('new (class { id = 7; })()'), '{"id":7}'],
  ['an instance of a function', () => Reflect.construct(Old, []), '{"id":7}'],
  ['an instance with private fields and others', () => Object.assign(new Private(), { id: 7 }), '{"id":7}'],
  ['an object whose toJSON leaves members out', () => [entity, {}], '[{"id":7},{}]'],
  ['a Map with a toJSON', () => Object.assign(new Map([['a', 1]]), { toJSON: () => ({ a: 1 }) }), '{"a":1}'],
  ['an Error with a toJSON', () => ({ e: Object.assign(new Error('x'), { toJSON: () => 'x' }) }), '{"e":"x"}'],
  ['a function with a toJSON', () => ({ f: Object.assign(() => 1, { toJSON: () => 1 }) }), '{"f":1}'],
  ['an object without a prototype', () => Object.assign(Object.create(null), { a: {} }), '{"a":{}}'],
  ['one object twice', () => [shared, shared, {}], '[{"x":1},{"x":1},{}]'],
  ['undefined members', () => ({ a: undefined, b: {} }), '{"b":{}}'],
  ['an object of undefined members', () => ({ a: { b: undefined } }), '{"a":{}}'],
  ['members that are not enumerable', () => Object.defineProperty({ a: 1 }, 'f', { value: () => 1 }), '{"a":1}'],
  ['members whose names are symbols', () => ({ a: 1, [Symbol('f')]: () => 1 }), '{"a":1}'],
  ['null, NaN and a hole', () => [null, NaN, , 1], '[null,null,null,1]'],
  ['primitives in objects', () => [new Number(1), new String('x'), new Boolean(false)] as unknown, '[1,"x",false]'],
  ['dates and URLs', () => [new Date(0), new URL('http://x/'), {}], '["1970-01-01T00:00:00.000Z","http://x/",{}]'],
  ['a Buffer in an object', () => ({ b: Buffer.from('a') }), '{"b":{"type":"Buffer","data":[97]}}'],
  ['what is nested deeply', () => [deep, {}], `[${'['.repeat(2000)}1${']'.repeat(2000)},{}]`],
  ['a member of the prototype', () => ({ a: Object.assign(Object.create({ f: () => 1 }), { b: 1 }) }), '{"a":{"b":1}}'],
];
test.for(kept)('%s is sent as JSON writes it', async ([, value, json]) => {
  const response = await createApp().get('/', () => value() as object).request('/');
  expect([response.status, await response.text()]).toEqual([200, json]);
});

test.for([true, 'output', undefined] as const)('with validateResponses: %s, the line about a bigint names its place', async (validateResponses) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ validateResponses, logger }), 500)
    .get('/', { response: z.any() }, () => ({ items: [{ price: 10n }] }) as never);
  expect((await app.request('/')).status).toBe(500);
  expect(String(logger.entries.at(-1)?.object['err'])).toContain('/items/0/price is a bigint');
});

test('toJSON is called once for each reply', async () => {
  let calls = 0;
  const app = createApp().get('/', () => ({ a: {}, b: { toJSON: () => ({ n: (calls += 1) }) } }));
  expect(await (await app.request('/')).text()).toBe('{"a":{},"b":{"n":1}}');
});
