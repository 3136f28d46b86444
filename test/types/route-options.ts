/** Types of routes with options, of views, and of the state of a request: compiled, never run. */

import { ApiError, endpoint, Postern, publicFacing, type Context, type Handler, type Middleware } from 'postern';

declare module 'postern' {
  interface State {
    member: { readonly name: string };
  }
}

class UserGone extends ApiError {}
const auth: Middleware = (ctx, next) => {
  ctx.state.member = { name: 'Ann' };
  // @ts-expect-error: a member has a name
  ctx.state.member = {};
  return next();
};

const app = new Postern('users');
app.get(
  '/users/:id',
  { middleware: [auth], errors: [UserGone], public: { params: ['q'] }, meta: { role: 'admin' } },
  (ctx) => {
    const name: string = ctx.state.member.name;
    const url: URL = ctx.url;
    const path: string | undefined = ctx.route?.path;
    // @ts-expect-error: no such parameter
    ctx.params.name;
    return { id: ctx.params.id, name, url, path };
  },
);
// @ts-expect-error: no such option
app.get('/a', { bodylimit: 5 }, () => 'ok');
// @ts-expect-error: bytes are a number
app.get('/a', { bodyLimit: '5' }, () => 'ok');
// @ts-expect-error: a type is wanted, not an error
app.get('/a', { errors: [new UserGone()] }, () => 'ok');
// @ts-expect-error: a handler is missing
app.get('/a', { bodyLimit: 5 });

app.get('/users/:id', endpoint({ summary: 'A user' }, (ctx) => ctx.params.id));
app.get(
  '/users/:id',
  publicFacing(endpoint({ summary: 'A user' }, (ctx: Context<{ readonly id: string }>) => ctx.params.id)),
);
app.get(
  '/users/:id',
  endpoint(
    { summary: 'A user' },
    publicFacing((ctx: Context<{ readonly id: string }>) => ctx.params.id),
  ),
);
app.route('/users/:id', { GET: endpoint({ summary: 'A user' }, (ctx) => ctx.params.id), PUT: (ctx) => ctx.params.id });
const carrying: Handler<{ readonly id: string }> = endpoint({}, (ctx) => ctx.params.id);
// @ts-expect-error: the path lacks the handler's parameter
app.get('/users', carrying);

class Users {
  constructor(readonly table: string) {}
  @endpoint({ summary: 'A user' }) get(ctx: Context<{ readonly id: string }>): string {
    return `${this.table}/${ctx.params.id}`;
  }
}
app.view('/users/:id', new Users('users'));
// @ts-expect-error: a class that wants arguments is instantiated by its user
app.view('/users/:id', Users);
// @ts-expect-error: the path lacks the method's parameter
app.view('/users', new Users('users'));

// Types of OpenAPI by other packages are interfaces, which have no index signature.
interface TagObject {
  name: string;
}
interface OperationObject {
  tags: string[];
  security: object[];
}
declare const tags: TagObject[];
declare const operation: OperationObject;
new Postern('users', { openapi: { info: { title: 'Users' }, tags } }).get('/a', { openapi: operation }, () => 'ok');
// @ts-expect-error: a server is an object
new Postern('users', { openapi: { servers: ['https://a.example'] } });
