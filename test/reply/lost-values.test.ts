/** Values that JSON loses are a 500 with the remedy in the log, never an empty object; what looks like one goes out. */

import { expect, onTestFinished, test } from 'vitest';
import { reply } from 'postern';
import { createApp, createRecorder, expectFailures } from '../support/serve.js';

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
function Old(this: { id: number }): void {
  this.id = 7;
}
Old.prototype.greet = (): string => 'hello';
const entity = { toJSON: () => ({ id: 7 }), save: () => 1, relations: new Map() };
const rows = Array.from({ length: 50 }, (_, id) => ({ id }));

const lost: [string, () => unknown, RegExp][] = [
  ['a Map', () => new Map([['a', 1]]), /the value is a Map.*Object\.fromEntries/],
  ['a Set', () => new Set([1]), /the value is a Set.*\[\.\.\.set\]/],
  ['an iterator', () => new Map().keys(), /the value is a Map Iterator.*\[\.\.\.iterator\]/],
  ['a promise in an object', () => ({ b: Promise.resolve(1) }), /b is a Promise.*await it first/],
  ['a promise in an array', () => [1, Promise.resolve(1)], /\[1\] is a Promise/],
  ['a Map, deep down', () => ({ users: [{ roles: { all: new Map() } }] }), /users\[0\]\.roles\.all is a Map/],
  ['a Map behind many rows', () => [...rows, { m: new Map() }], /\[50\]\.m is a Map/],
  ['a Set beside empty objects', () => ({ a: {}, b: new Set() }), /b is a Set/],
  ['a Blob in an object', () => ({ file: new Blob(['x']) }), /file is a Blob.*blob\.text/],
  ['FormData in an object', () => ({ form: new FormData() }), /form is a FormData/],
  ['URLSearchParams in an object', () => ({ query: new URLSearchParams('a=1') }), /query is a URLSearchParams/],
  ['an ArrayBuffer in an object', () => ({ bytes: new ArrayBuffer(1) }), /bytes is a ArrayBuffer/],
  ['a function in an object', () => ({ a: 1, f: () => 1 }), /f is a function.*call it/],
  ['a method of an object', () => ({ a: 1, f() {} }), /f is a function/],
  ['nothing but functions', () => ({ f: () => 1 }), /f is a function/],
  ['a function in an array', () => [1, () => 1], /\[1\] is a function/],
  ['a function in a row', () => rows.map(({ id }) => ({ id, f: () => id })), /\[0\]\.f is a function/],
  ['a member without a name', () => ({ '': () => 1 }), /the value is a function/],
  ['a class', () => ({ Instance }), /Instance is a function/],
  ['a promise as the body of a reply', () => reply(Promise.resolve(1)), /the value is a Promise/],
  ['a Map in the body of a reply', () => reply({ m: new Map() }, { status: 201 }), /m is a Map/],
];
test.for(lost)('%s', async ([, value, remedy]) => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500).get('/', () => value() as object);
  const response = await app.request('/');
  expect(response.status).toBe(500);
  expect(await response.json()).toMatchObject({ error_code: { value: 999999 } });
  expect(logger.entries).toMatchObject([
    { level: 'error', object: { err: { message: expect.stringMatching(remedy) } } },
  ]);
});

test('the promise of a body that was forgotten to be awaited', async () => {
  const logger = createRecorder();
  const app = expectFailures(createApp({ logger }), 500);
  app.post('/', (ctx) => ({ b: ctx.json() }) as object);
  expect((await app.request('/', { method: 'POST', body: '{"a":1}' })).status).toBe(500);
  expect(String(logger.entries[0]?.object['err']))
    .toBe('TypeError: POST /: b is a Promise, which JSON loses; await it first');
});

test('forgotten promises that reject do not end the process', async () => {
  const fail = (): Promise<never> => Promise.reject(new Error('no database'));
  const unhandled: unknown[] = [];
  const add = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', add);
  onTestFinished(() => void process.off('unhandledRejection', add));
  const app = expectFailures(createApp(), 500);
  app.get('/', () => ({ a: fail(), b: [new Map(), fail()] }) as object);
  expect((await app.request('/')).status).toBe(500);
  // Node.js reports rejections when the microtasks of a turn have run.
  await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled).toEqual([]);
});

const shared = { x: 1 };
let deep: unknown = 1;
for (let i = 0; i < 2000; i += 1) deep = [deep];
const kept: [string, () => unknown, string][] = [
  ['an empty object', () => ({}), '{}'],
  ['empty objects', () => [{}, { a: {} }], '[{},{"a":{}}]'],
  ['a text that looks like one', () => ({ a: '{}' }), '{"a":"{}"}'],
  ['an instance of a class', () => new Instance(), '{"id":7}'],
  ['an instance without fields', () => ({ a: new Empty() }), '{"a":{}}'],
  ['an instance of a function', () => Reflect.construct(Old, []), '{"id":7}'],
  ['what has a toJSON', () => [entity, {}], '[{"id":7},{}]'],
  ['a Map with a toJSON', () => Object.assign(new Map([['a', 1]]), { toJSON: () => ({ a: 1 }) }), '{"a":1}'],
  ['a function with a toJSON', () => ({ f: Object.assign(() => 1, { toJSON: () => 1 }) }), '{"f":1}'],
  ['an object without a prototype', () => Object.assign(Object.create(null), { a: {} }), '{"a":{}}'],
  ['one object twice', () => [shared, shared, {}], '[{"x":1},{"x":1},{}]'],
  ['undefined members', () => ({ a: undefined, b: {} }), '{"b":{}}'],
  ['dates and URLs', () => [new Date(0), new URL('http://x/'), {}], '["1970-01-01T00:00:00.000Z","http://x/",{}]'],
  ['what is nested deeply', () => [deep, {}], `[${'['.repeat(2000)}1${']'.repeat(2000)},{}]`],
  ['headers in an object', () => ({ status: 200, headers: new Headers({ a: 'b' }), body: 1 }),
    '{"status":200,"headers":{},"body":1}'],
  ['an error in an object', () => ({ errors: [new Error('x')] }), '{"errors":[{}]}'],
];
test.for(kept)('%s goes out as JSON writes it', async ([, value, json]) => {
  const response = await createApp().get('/', () => value() as object).request('/');
  expect([response.status, await response.text()]).toEqual([200, json]);
});
