/** Types of shared endpoints: compiled, never run. */

import { z } from 'zod';
import { defineEndpoint, Postern } from 'postern';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function assertType<_T extends true>(): void {}

const User = z.object({ id: z.number(), since: z.string().transform((text) => new Date(text)) });
const getUser = defineEndpoint('GET', '/users/:id', {
  params: z.object({ id: z.coerce.number<string>() }),
  response: User,
});
const putUser = defineEndpoint('PUT', '/users/:id/*rest', {
  query: z.object({ dry: z.string().optional() }),
  body: z.object({ name: z.string() }),
  response: { 200: User, 204: null },
});
const list = defineEndpoint('GET', '/users');

const app = new Postern('users');
app.implement(getUser, (_ctx, { params }) => {
  assertType<Equal<typeof params, { id: number }>>();
  return { id: params.id, since: '2026' };
});
// @ts-expect-error: the reply is no user
app.implement(getUser, () => ({ id: 'x', since: '2026' }));
app.implement(
  putUser,
  (ctx, { body, query }) =>
    query.dry === undefined ? { id: ctx.params.id.length, since: body.name + ctx.params.rest } : undefined,
  { public: true },
);

export async function calls(): Promise<void> {
  const users = app.service('users');
  const found = await users.call(getUser, { params: { id: '7' } });
  assertType<Equal<typeof found.body, { id: number; since: Date }>>();
  // @ts-expect-error: the input of the schema is a text
  await users.call(getUser, { params: { id: 7 } });
  // @ts-expect-error: the path has another parameter
  await users.call(list, { params: { id: '7' } }, { retry: 'x' });
  const put = await users.call(putUser, { params: { id: 7, rest: 'a/b' }, body: { name: 'Ann' } }, { timeout: 100 });
  if (put.status === 200) assertType<Equal<typeof put.body, { id: number; since: Date }>>();
  if (put.status === 204) assertType<Equal<typeof put.body, undefined>>();
  // @ts-expect-error: a body is wanted
  await users.call(putUser, { params: { id: 7, rest: 'a' } });
  const { body } = await users.call(list);
  assertType<Equal<typeof body, unknown>>();
}

const preset = defineEndpoint('GET', '/users/:id', { params: z.object({ id: z.string().default('x') }) });
// @ts-expect-error: the path has a parameter, whatever the schema makes of its absence
void app.service('users').call(preset);
