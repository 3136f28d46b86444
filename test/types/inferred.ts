/**
 * Exports of a library that is built on Postern and writes no types: each inferred type must have a name in the
 * library's declarations. Compiled, never run. `declarations.test.ts` checks that every generic or overloaded public
 * function is called here.
 */

import {
  connect, defineEndpoint, defineErrorCodes, endpoint, Postern, publicFacing, redirect, Registry, Reply, reply, Router,
  type ConnectMiddleware, type Context, type RouteGroup, type StandardSchemaV1,
} from 'postern';

interface NewUser {
  readonly name: string;
}
interface User extends NewUser {
  readonly id: number;
}
declare const NewUserSchema: StandardSchemaV1<NewUser>;
declare const UserSchema: StandardSchemaV1<{ readonly id: string; readonly name: string }, User>;
declare const ctx: Context;
declare const methodContext: ClassMethodDecoratorContext;
declare const readMethod: TypedPropertyDescriptor<() => string>;
declare const addMethod: TypedPropertyDescriptor<(ctx: Context, input: { readonly body: NewUser }) => Reply<User, 201>>;

const add = (_ctx: Context, { body }: { readonly body: NewUser }): Reply<User, 201> =>
  reply({ id: 1, ...body }, { status: 201 });
class UserView {
  get(view: Context<{ readonly id: string }>): { readonly id: string } {
    return { id: view.params.id };
  }
}

export const app = new Postern('users');
export const chained = app
  .get('/users/:id', ({ params }) => ({ id: params.id }))
  .post('/users', { body: NewUserSchema, response: { 201: UserSchema } }, (_ctx, { body }) =>
    reply({ id: '1', ...body }, { status: 201 }),
  )
  .route('/fast', { GET: () => 'read', PUT: publicFacing(() => 'written') })
  .view('/views/:id', UserView)
  .group('/v1', (v1) => void v1.get('/x', () => 'x'))
  .group('/v2', (routes) => void routes.get('/x', () => 'x'));
export const { settings, server, handler, router, metrics, health, errorCodes } = app;
const withNext: ConnectMiddleware = (_req, _res, next) => next();
app.mount('/legacy', (_req, res) => void res.end()).mount('/old', Object.assign(withNext, { handle: () => 1 }));
export const verb = app.get;
export const methods = { group: app.group, route: app.route, view: app.view, implement: app.implement };
export const listening = [app.listen({ port: 0 }), app.listen({ path: '/run/x.sock' }), app.listen({ fd: 3 })] as const;
export const running = [app.run({ port: 0 }), app.run({ path: '/run/x.sock' }), app.run({ fd: 3 })] as const;
export const answer = app.request('/users/7', { headers: { accept: 'text/plain' } });
export const tracked = app.track(Promise.resolve(7));
export const worked = [app.job('mail', (job) => job.id), app.job('mail', { timeout: 5 }, async ({ signal }) => signal)];
const fromOtherFile = (routes: RouteGroup): void => void routes.get('/x', () => 'x');
app.group('/v3', fromOtherFile);
export function openGroup(): unknown[] {
  const opened: unknown[] = [];
  app.group('/tenants/:tenant', (tenants) => void opened.push(tenants.get));
  return opened;
}

export const getUser = defineEndpoint('GET', '/users/:id', { response: UserSchema });
export const addUser = defineEndpoint('POST', '/users', {
  body: NewUserSchema,
  response: { 201: UserSchema, 204: null },
});
export const listUsers = defineEndpoint('GET', '/users');
export const implemented = app.implement(getUser, ({ params }) => ({ id: params.id, name: 'Ann' }));

const users = app.service('users');
export { users };
export const typed = users.call(getUser, { params: { id: 7 } });
export function callTyped(id: number) {
  return users.call(getUser, { params: { id } });
}
export async function callByStatus(name: string) {
  const added = await users.call(addUser, { body: { name } });
  return { added, headers: added.headers, listed: await users.call(listUsers) };
}
export const untyped = users.get('/users');
export const replies = [
  users.get<User>('/users/7'), users.post<User>('/users'), users.put<User>('/users/7'), users.patch<User>('/users/7'),
  users.delete<User>('/users/7'),
];
export const streamed = users.post('/users', { body: new Response('text').body });
export const fetched = users.fetch('/users');

export const readJson = () => ctx.json<User>();
export const readBody = () => ({ bytes: ctx.bytes(), form: ctx.form(), text: ctx.text(), stream: ctx.stream() });
export const { raw, headers, route, log, state, signal, query } = ctx;

export const created = reply({ id: 7 }, { status: 201 });
export const ownReply = new Reply('text', { status: 200, headers: [['content-type', 'text/plain']] });
export const moved = redirect('/users');
export const Codes = defineErrorCodes({ too_slow: 10_002, too_old: 10_003 });
export const { too_slow: tooSlow } = Codes;

export const fromConnect = connect((req, res, next) => void [req.url, res.statusCode, next()]);
export const carrying = endpoint({ body: NewUserSchema }, (_ctx, { body }) => ({ name: body.name }));
export const flag = endpoint({ body: NewUserSchema });
export const flagged = flag(add);
flag(add, methodContext);
flag(UserView, 'add', addMethod);
export const open = publicFacing(add, { params: ['fields'] });
export const openMethod = publicFacing(UserView, 'get', readMethod);
export const openFlag = publicFacing({ params: [] });
export const openByFlag = openFlag(() => 'read');
export const openMethodByFlag = openFlag(UserView, 'get', readMethod);

export const ownRouter = new Router<() => string>();
export const added = ownRouter.add('GET', '/users/:id', () => 'user');
export const found = ownRouter.find('GET', '/users/7');

export const registry = new Registry();
export const jobs = registry.counter({ name: 'jobs_total', help: 'Jobs.', labelNames: ['queue', 'outcome'] });
export const plain = registry.counter({ name: 'plain_total', help: 'Plain.' });
export const depth = registry.gauge({ name: 'depth', help: 'Depth.', labelNames: ['queue'] });
export const seconds = registry.histogram({ name: 'job_seconds', help: 'Seconds.', labelNames: ['queue'] });
export const sizes = registry.summary({ name: 'job_bytes', help: 'Bytes.', labelNames: ['queue'] });
export const ofApplication = [
  app.metrics.counter({ name: 'a_total', help: 'A.', labelNames: ['queue'] }), app.metrics.gauge({ name: 'b', help: 'B.' }),
  app.metrics.histogram({ name: 'c', help: 'C.' }), app.metrics.summary({ name: 'd', help: 'D.' }),
] as const;
export const bound = [
  jobs.labels({ queue: 'mail', outcome: 'sent' }), jobs.labels('mail', 'sent'), depth.labels({ queue: 'mail' }),
  seconds.labels({ queue: 'mail' }), sizes.labels({ queue: 'mail' }),
] as const;
export const timers = [
  depth.startTimer(), seconds.startTimer(), sizes.startTimer(), bound[2].startTimer(), bound[3].startTimer(),
] as const;
jobs.remove({ queue: 'mail', outcome: 'sent' });
jobs.remove('mail', 'sent');
bound[0].inc(2);
bound[0].inc({ value: 2, exemplarLabels: { trace_id: 'a' } });
bound[3].observe(2);
bound[3].observe({ value: 2 });

/** Keeps metrics in members, as classes of applications do. */
export class Worker {
  readonly jobs = registry.counter({ name: 'worker_jobs_total', help: 'Jobs.', labelNames: ['queue'] });
  readonly client = app.service('users');
  readonly settings = app.settings;
  load(id: number) {
    return this.client.call(getUser, { params: { id } });
  }
}
