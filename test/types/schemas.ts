/** Types of input and replies by schema: compiled, never run. */

import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import {
  defineEndpoint, endpoint, NotFound, Postern, publicFacing, reply, type Context, type StandardSchemaV1,
} from 'postern';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function assertType<_T extends true>(): void {}

const Id = z.object({ id: z.coerce.number() });
const Page = v.object({ page: v.pipe(v.string(), v.transform(Number)) });
const Trace = type({ 'x-trace': 'string' });
const NewUser = z.object({ name: z.string().trim() });
const User = z.object({ id: z.number(), name: z.string() });

const app = new Postern('users');
app.post(
  '/users/:id',
  { params: Id, query: Page, headers: Trace, body: NewUser, response: User },
  (ctx, { params, query, headers, body }) => {
    assertType<Equal<typeof params, { id: number }>>();
    assertType<Equal<typeof query, { page: number }>>();
    assertType<Equal<typeof headers, { 'x-trace': string }>>();
    assertType<Equal<typeof body, { name: string }>>();
    const id: string = ctx.params.id;
    void id;
    return { id: params.id, name: body.name };
  },
);
app.post('/users', { body: NewUser }, (_ctx, input) => {
  assertType<Equal<keyof typeof input, 'body'>>();
  // @ts-expect-error: not declared
  input.query;
  return input.body.name;
});
app.post('/users/:id', { body: NewUser }, publicFacing((ctx, { body }) => ctx.params.id + body.name));
// @ts-expect-error: no schema, no input
app.get('/users', {}, (_ctx, { body }) => body);
// @ts-expect-error: no schema
app.get('/users', { query: { page: 'number' } }, () => 'ok');

app.get('/reply', { response: User }, async () => ({ id: 1, name: 'Ann' }));
app.get('/reply', { response: User }, () => reply({ id: 1, name: 'Ann' }, { status: 201, headers: { location: '/' } }));
// These need no schema.
for (const status of [300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 409, 410, 412, 422, 429, 503] as const)
  app.get('/reply', { response: User }, () => reply({ reason: 'other' }, { status }));
app.get('/reply', { response: User }, () => new Response('{}'));
// @ts-expect-error: a number is wanted
app.get('/reply', { response: User }, () => ({ id: '1', name: 'Ann' }));
// @ts-expect-error: a name is wanted
app.get('/reply', { response: User }, async () => ({ id: 1 }));
// @ts-expect-error: in a reply, too
app.get('/reply', { response: User }, () => reply({ id: 1 }, { status: 201 }));
// @ts-expect-error: nothing is no user
app.get('/reply', { response: User }, () => undefined);

const byStatus = { 201: User, 204: null } as const;
app.put('/reply', { response: byStatus }, () => reply({ id: 1, name: 'Ann' }, { status: 201 }));
app.put('/reply', { response: byStatus }, () => undefined);
app.put('/reply', { response: { 200: User, 204: null } }, (ctx) =>
  ctx.query.has('none') ? undefined : { id: 1, name: 'Ann' },
);
app.put('/reply', { response: { 200: User, 201: User } }, (ctx) =>
  reply({ id: 1, name: 'Ann' }, { status: ctx.query.has('new') ? 201 : 200 }),
);
// @ts-expect-error: of two statuses, both have to be declared
app.put('/reply', { response: { 200: User, 201: User } }, (ctx) => reply({ id: 1, name: 'Ann' }, { status: ctx.query.has('new') ? 202 : 200 }));
// @ts-expect-error: a plain value is a 200, which is not declared
app.put('/reply', { response: byStatus }, () => ({ id: 1, name: 'Ann' }));
// @ts-expect-error: 202 is not declared
app.put('/reply', { response: byStatus }, () => reply({ id: 1, name: 'Ann' }, { status: 202 }));

// @ts-expect-error: nothing is a 204, which is not declared
app.put('/reply', { response: { 200: null } }, () => undefined);
app.put('/reply', { response: { 200: null } }, () => reply(undefined, { status: 200 }));

/** Routes of a generic type, of which nothing is known, that a schema describes. */
export function crud<T extends object>(schema: StandardSchemaV1<T>, zod: z.ZodType<T, T>, load: () => Promise<T>) {
  app.get('/items', { response: schema }, () => load());
  app.get('/items', { response: schema }, load);
  app.get('/items', { response: schema }, async (ctx) => (ctx.path === '/' ? new NotFound() : await load()));
  app.get('/items', { response: { 200: schema, 204: null } }, async (ctx) => (ctx.path === '/' ? undefined : load()));
  app.get('/items', { response: z.array(zod) }, async () => [await load()]);
  app.get('/items', { response: z.object({ items: z.array(zod), total: z.number() }) }, async () => ({
    items: [await load()],
    total: 1,
  }));
  app.post('/items', { body: zod, response: { 201: zod } }, async (_ctx, { body }) => reply(body, { status: 201 }));
  app.implement(defineEndpoint('GET', '/items', { response: schema }), () => load());
  endpoint({ response: schema }, () => load());
  // @ts-expect-error: of another type
  app.get('/items', { response: schema }, async () => ({ item: await load() }));
}

const create = endpoint({ body: NewUser }, (_ctx, { body }) => body.name);
app.post('/users', create);
app.post('/users/:id', endpoint({ body: NewUser }, (ctx, { body }) => `${ctx.params.id} ${body.name}`));
app.route('/users', { POST: publicFacing(create), PUT: endpoint({ body: NewUser }, (_ctx, { body }) => body.name) });
// @ts-expect-error: what a test hands to it is typed as well
void create({} as Context, { body: { nam: 'Ann' } });

class Users {
  @endpoint({ body: NewUser, response: User }) post(
    _ctx: Context,
    { body }: { readonly body: { name: string } },
  ): { id: number; name: string } {
    return { id: 1, name: body.name };
  }
  // @ts-expect-error: the schema gives another name
  @endpoint({ body: NewUser }) put(_ctx: Context, { body }: { readonly body: { nam: string } }): string {
    return body.nam;
  }
}
app.view('/users', Users);

const digits: StandardSchemaV1<unknown, number> = {
  '~standard': {
    version: 1,
    vendor: 'mine',
    validate: (value) =>
      /^\d+$/.test(String(value)) ? { value: Number(value) } : { issues: [{ message: 'Digits are wanted' }] },
  },
};
app.post('/digits', { body: digits }, (_ctx, { body }) => {
  assertType<Equal<typeof body, number>>();
  return body;
});
