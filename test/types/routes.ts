/** Types of routes, handlers and flags: compiled, never run. */

import {
  HttpError, Postern, publicFacing, reply, Router, type Context, type Handler, type Middleware, type ParamsOf,
} from 'postern';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function assertType<_T extends true>(): void {}

assertType<Equal<ParamsOf<'/users/:id/posts/:post(\\d+)'>, { readonly id: string; readonly post: string }>>();
assertType<Equal<ParamsOf<'/'>, {}>>();
assertType<Equal<ParamsOf<'/f/*rest'>, { readonly rest: string }>>();
assertType<Equal<ParamsOf<'/f/*'>, { readonly '*': string }>>();
assertType<Equal<ParamsOf<'/a/:x((?:a|[)/])\\)+)/b/:y'>, { readonly x: string; readonly y: string }>>();
assertType<Equal<ParamsOf<'/a:b/:c'>, { readonly c: string }>>();
assertType<Equal<ParamsOf<`${string}/users/:id`>, Readonly<Record<string, string>>>>();
assertType<Equal<ParamsOf<string>, Readonly<Record<string, string>>>>();
// @ts-expect-error: a name that the path does not have
assertType<Equal<ParamsOf<'/users/:id'>, { readonly other: string }>>();

const app = new Postern('users');

app.get('/users/:id/posts/:post(\\d+)', (ctx) => {
  const id: string = ctx.params.id;
  const post: string = ctx.params.post;
  // @ts-expect-error: no such parameter
  ctx.params.comment;
  // @ts-expect-error: parameters are read-only
  ctx.params.id = 'x';
  return { id, post };
});

const base: string = '/v1';
app.get(`${base}/users/:id`, (ctx) => ctx.params['id']);

app.get('/plain', (ctx) => {
  // @ts-expect-error: no parameters at all
  ctx.params.id;
  return 'ok';
});

app.group('/tenants/:tenant', (tenants) => {
  tenants.get('/users/:id', (ctx) => `${ctx.params.tenant}/${ctx.params.id}`);
  // @ts-expect-error: neither the prefix nor the path has it
  tenants.get('/users/:id', (ctx) => ctx.params.name);
});

app.get('/returns', () => 'text');
app.get('/returns', () => new Uint8Array());
app.get('/returns', () => undefined);
app.get('/returns', async () => [1, 2]);
app.get('/returns', () => reply({ a: 1 }, { status: 201, headers: { 'x-a': 'b' } }));
app.get('/returns', () => new Response('x'));
app.get('/returns', async function* () {
  yield 'chunk';
});
// @ts-expect-error: a bigint has no JSON form
app.get('/returns', () => 1n);
// @ts-expect-error: a symbol has no JSON form
app.get('/returns', () => Symbol('x'));

app.get('/public/:id', publicFacing((ctx) => ctx.params.id.trim()));
app.get('/public/:id', publicFacing(async (ctx) => ({ id: ctx.params.id, json: await ctx.json() }), { params: ['q'] }));
app.group('/tenants/:tenant', (g) => g.get('/:id', publicFacing(({ params }) => params.tenant.trim() + params.id)));
// @ts-expect-error: no such parameter
app.get('/public/:id', publicFacing((ctx) => ctx.params.name));
// @ts-expect-error: JSON loses a Map
app.get('/public/:id', publicFacing(() => new Map([[1, 2]])));
app.get('/public/:id', publicFacing({ params: ['q'] })((ctx: Context<{ readonly id: string }>) => ctx.params.id));
app.get('/public', publicFacing(() => 'ok', { params: new Set(['q']) }));
const flagged = publicFacing((ctx: Context) => ctx.path);
assertType<Equal<typeof flagged.scope, 'public'>>();
// @ts-expect-error: only functions are flagged
publicFacing('handler');
// @ts-expect-error: names are strings
publicFacing({ params: [1] });

class FastView {
  @publicFacing get(ctx: Context): string {
    return ctx.path;
  }
  @publicFacing({ params: [] }) delete(): string {
    return 'deleted';
  }
  @publicFacing() post(): string {
    return 'posted';
  }
  put(_ctx: Context<{ readonly id: string }>): string {
    return 'put';
  }
}
app.view('/fast/:id', FastView);
// @ts-expect-error: put wants a parameter that the path does not have
app.view('/fast', FastView);
// Each member of a wrapper knows the parameters, also next to others.
app.route('/several/:id', { GET: publicFacing((ctx) => ctx.params.id), PUT: (ctx) => ctx.params.id });
// @ts-expect-error: no such parameter
app.route('/several/:id', { GET: publicFacing((ctx) => ctx.params.other) });
// @ts-expect-error: a bigint has no JSON form
app.route('/several', { GET: publicFacing(() => 1n) });
const manyMethods: Record<string, Handler> = { GET: () => 1 };
app.route('/several', manyMethods);
// @ts-expect-error: a number is not a method
app.route('/u', { 0: () => 'ok' });
// @ts-expect-error: no method at all
app.view('/fast', class { fetch(): string { return ''; } });

const middleware: Middleware = async (ctx, next) => {
  const replied = await next();
  replied.status = 201;
  replied.headers.set('x-id', ctx.id);
  return replied;
};
app.use(middleware);
// @ts-expect-error: next takes nothing
app.use((_ctx, next) => next('error'));

const handler: Handler<{ readonly id: string }> = (ctx) => ctx.params.id;
app.get('/users/:id', handler);
// @ts-expect-error: the path lacks the handler's parameter
app.get('/users', handler);

const router = new Router<() => string>();
router.add('GET', '/a', () => 'a');
// @ts-expect-error: not a handler of this router
router.add('GET', '/a', 5);
const found: (() => string) | undefined = router.find('GET', '/a')?.handler;
void found;

// @ts-expect-error: a name is required
new Postern();
// @ts-expect-error: no such option
new Postern('a', { verzion: '1' });

// An option whose value may be missing needs no condition, with exactOptionalPropertyTypes, too.
const maybe = (name: string): string | undefined => process.env[name];
new Postern('a', { version: maybe('VERSION'), settings: { SERVICE_URL_TEMPLATE: maybe('TEMPLATE') } });
app.get('/maybe', () => reply('a', { statusText: maybe('REASON'), headers: undefined }));
app.get('/maybe', () => new HttpError(418, 'a', { headers: undefined, cause: undefined }));

export async function listenOnPath(): Promise<void> {
  const { url, path } = await app.listen({ path: '/run/x.sock' });
  assertType<Equal<[typeof url, typeof path], [null, string]>>();
}
