/** Types of what handlers return: compiled, never run. What JSON loses does not compile, as far as types tell. */

import { ApiError, endpoint, Postern, publicFacing, redirect, reply, type Handler, type HandlerResult } from 'postern';

class User {
  id = 7;
  greet(): string {
    return 'hello';
  }
}
interface Named {
  id: number;
  tags: readonly string[];
  at?: Date | undefined;
  save(): void;
}
interface Tree {
  children: Tree[];
  parent?: Tree;
}
interface WithMap {
  m: Map<string, number>;
}
declare const named: Named;
declare const tree: Tree;
declare const handler: Handler;
declare const handlers: (() => string) | (() => Buffer) | (() => Promise<Named>);
declare const result: HandlerResult;
declare const anything: unknown;

const app = new Postern('users');
app.get('/1', () => ({ a: 1, list: [{ b: 'x' }], none: undefined, maybe: named.at }));
app.get('/2', async () => ({ a: 1 }));
app.get('/3', () => undefined);
app.get('/4', async () => {});
app.get('/5', () => new User());
app.get('/6', () => [named, named]);
app.get('/7', () => tree);
app.get('/8', handler);
app.get('/9', handlers);
app.get('/9', {}, handlers);
app.route('/9', { GET: handlers });
app.get('/10', () => result);
app.get('/11', () => ({ rows: anything, record: {} as Record<string, unknown> }));
app.get('/12', () => ({ at: new Date(), url: new URL('http://x') }));
app.get('/13', (ctx) => ctx.json());
app.get('/14', async (ctx) => ({ json: await ctx.json() }));
app.get('/15', () => new Response('x'));
app.get('/16', () => reply({ a: 1 }, { status: 201 }));
app.get('/17', () => new URLSearchParams());
app.get('/18', () => new Blob([]));
app.get('/19', () => new FormData());
app.get('/20', () => new ArrayBuffer(1));
app.get('/21', async function* () {
  yield 'x';
});
app.get('/22', publicFacing(() => ({ a: 1 })));
app.get('/23/:id', ({ params }) => (params.id === '' ? { a: 1 } : 'x'));
app.get('/24', (ctx) => ctx.service('billing').get('/').then(({ body }) => body));
app.get('/25', () => {
  throw new Error('x');
});
app.get('/26', () => redirect('/login', 303));
app.post('/27', async (ctx) => {
  const bytes: ReturnType<typeof Uint8Array.of> = await ctx.bytes();
  return new Blob([bytes]);
});
// @ts-expect-error: no redirect
app.get('/28', () => redirect('/login', 200));
app.get('/29', () => ({ name: 'x', message: 'y' }));
app.get('/30', () => ({ headers: Object.fromEntries(new Headers()), count: Number(10n) }));
app.group('/g', (group) => group.post('/:id', ({ params }) => params.id));

// @ts-expect-error: a promise
app.post('/a', (ctx) => ({ b: ctx.json() }));
// @ts-expect-error: a promise
app.post('/b', async (ctx) => ({ b: ctx.text() }));
// @ts-expect-error: promises
app.get('/c', () => [Promise.resolve(1)]);
// @ts-expect-error: a promise, deep down
app.get('/d', () => ({ a: { b: [{ c: Promise.resolve(1) }] } }));
// @ts-expect-error: at times a promise
app.get('/e', () => ({ a: named.id > 0 ? Promise.resolve(1) : 1 }));
// @ts-expect-error: a Map
app.get('/f', () => new Map([['a', 1]]));
// @ts-expect-error: at times a Map
app.get('/aaa', () => (named.id > 0 ? new Map([['a', 1]]) : 1));
// @ts-expect-error: a Map in an object
app.get('/g', () => ({ m: new Map<string, number>() }));
// @ts-expect-error: a Map in an interface
app.get('/h', (): WithMap => ({ m: new Map() }));
// @ts-expect-error: a Set
app.get('/i', () => ({ s: new Set([1]) }));
// @ts-expect-error: an iterator
app.get('/j', () => new Map<string, number>().keys());
// @ts-expect-error: a Blob in an object
app.get('/k', () => ({ file: new Blob([]) }));
// @ts-expect-error: a form in an object
app.get('/l', () => ({ form: new FormData() }));
// @ts-expect-error: parameters in an object
app.get('/m', ({ query }) => ({ query }));
// @ts-expect-error: a function in an object
app.get('/n', () => ({ f: () => 1 }));
// @ts-expect-error: a method of an object
app.get('/o', () => ({ f() {} }));
// @ts-expect-error: a function
app.get('/p', () => () => 1);
// @ts-expect-error: a Map as the body of a reply
app.get('/s', () => reply(new Map([['a', 1]])));
// @ts-expect-error: a promise in the body of a reply
app.get('/t', (ctx) => reply({ b: ctx.json() }, { status: 201 }));
// @ts-expect-error: a bigint has no JSON form
app.get('/q', () => 1n);
// @ts-expect-error: a symbol has none either
app.get('/r', () => Symbol('x'));
// @ts-expect-error: a bigint in an object
app.get('/aa', () => ({ n: 10n }));
// @ts-expect-error: bigints in an array
app.get('/ab', async () => [10n]);
// @ts-expect-error: a bigint, deep down
app.get('/ac', () => ({ a: { b: [{ c: 10n }] } }));
// @ts-expect-error: at times a bigint
app.get('/ad', () => ({ a: named.id > 0 ? 10n : 10 }));
// @ts-expect-error: a bigint in the body of a reply
app.get('/ae', () => reply({ n: 10n }, { status: 201 }));
// @ts-expect-error: a symbol in an object
app.get('/af', () => ({ s: Symbol('x') }));
// @ts-expect-error: headers in an object
app.get('/ag', () => ({ h: new Headers() }));
// @ts-expect-error: headers by themselves
app.get('/ah', () => new Headers());
// @ts-expect-error: matches
app.get('/ai', () => ({ m: 'a1'.matchAll(/\d/g) }));
// @ts-expect-error: an iterator of an array
app.get('/aj', () => ({ i: [1].values() }));
// @ts-expect-error: a Map behind options
app.get('/u', { timeout: 5 }, () => ({ m: new Map<string, number>() }));
// @ts-expect-error: a promise behind options
app.post('/v/:id', { bodyLimit: 5 }, (ctx) => ({ id: ctx.params.id, b: ctx.json() }));
// @ts-expect-error: the spread of a promise behind options
app.post('/v/:id', { bodyLimit: 5 }, (ctx) => ({ ...ctx.json<Named>(), id: ctx.params.id }));
// @ts-expect-error: a Map among several methods
app.route('/w/:id', { GET: (ctx) => ctx.params.id, POST: () => ({ m: new Map<string, number>() }) });
app.route('/x/:id', { GET: (ctx) => ctx.params.id, POST: (ctx) => ({ id: ctx.params.id }) });
class LosingView {
  get() {
    return { m: new Map<string, number>() };
  }
}
// @ts-expect-error: a Map in what a view returns
app.view('/y', LosingView);
// @ts-expect-error: the same by an instance
app.view('/y', new LosingView());
app.view('/z/:id', { get: (ctx) => ({ id: ctx.params.id }) });
class DecoratedView {
  // @ts-expect-error: a Map in what a decorated method returns
  @endpoint({ timeout: 5 }) get() {
    return { m: new Map<string, number>() };
  }
  @endpoint({ timeout: 5 }) put() {
    return { n: 1 };
  }
}
void DecoratedView;

// A handler with options around it, wherever it is made.
endpoint({}, () => ({ a: 1 }));
endpoint({}, async () => reply({ a: 1 }, { status: 201 }));
endpoint({}, (ctx) => (ctx.method === 'GET' ? { a: 1 } : 'text'));
endpoint({}, () => {});
endpoint({}, () => {
  throw new Error('never returns');
});
endpoint<{ id: string }>({}, (ctx) => ctx.params.id);
app.get('/wrapped/:id', endpoint({}, (ctx) => ctx.params['id']));
// @ts-expect-error: JSON loses a Map
endpoint({}, () => ({ a: new Map([[1, 2]]) }));
// @ts-expect-error: JSON loses a promise
endpoint({}, async () => ({ a: Promise.resolve(1) }));

// @ts-expect-error: an error code is a member of an enumeration that defineErrorCodes made
new ApiError('x', { errorCode: { name: 'mine', value: 1 } });

/** Handlers whose results are of a generic type, of which nothing is known. */
export function crud<T extends object, U>(load: () => Promise<T>, one: (id: string) => T, any: () => Promise<U>): void {
  const routes = new Postern('users');
  routes.get('/a', () => load());
  routes.get('/b', load);
  routes.get('/c', async () => await load());
  routes.get('/d/:id', ({ params }) => one(params.id));
  routes.get('/e', async () => ({ items: [await load()], total: 1 }));
  routes.get('/f', async () => reply(await load(), { status: 201 }));
  routes.get('/g', { timeout: 5 }, () => load());
  routes.get('/h', publicFacing(() => load()));
  routes.get('/i', endpoint({ timeout: 5 }, () => load()));
  routes.route('/j', { GET: () => load(), PUT: async () => ({ item: await load() }) });
  routes.group('/k', (group) => group.get('/:id', (ctx) => one(ctx.params.id)));
  routes.get('/l', () => any());
  routes.get('/m', async (ctx) => (ctx.path === '/' ? { a: 1 } : await load()));
  routes.get('/n', () => ({ ...one('a'), a: 1 }));
  routes.view('/q', { get: () => load(), post: async () => ({ item: await load() }) });
  // @ts-expect-error: a Map beside it
  routes.get('/o', async () => ({ item: await load(), m: new Map<string, number>() }));
  // @ts-expect-error: a promise of it
  routes.get('/p', () => ({ item: load() }));
}
