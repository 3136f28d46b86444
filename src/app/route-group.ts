/* Registers routes under a prefix, with middleware of their own. */

import { assertOptions, isRecord, show } from '../base/options-check.js';
import type { CompiledRoutes, Groups } from '../answer/compiled-routes.js';
import type { Context, Handler, Middleware } from '../answer/context.js';
import { HANDLE_ERRORS } from '../answer/connect.js';
import type { AnyFunction } from '../endpoint/public-facing.js';
import { assertPath, type ParamsOf } from '../endpoint/pattern.js';
import type { MaybeResponse, MaybeSchema } from '../endpoint/schemas.js';
import { isEndpointDefinition, type EndpointDefinition } from '../endpoint/endpoint-definition.js';
import { isMiddleware, shareOptions, WITHOUT_SCHEMAS } from '../endpoint/route-options.js';
import type { DeclaredOptions, GroupOptions } from '../endpoint/route-options.js';
import { methodsOf, type View } from './view.js';
import { VERBS, type EndpointHandler, type ResultOf } from './endpoint.js';
import type { RouteOptions } from './endpoint.js';
import type { Sendable } from '../answer/sendable.js';

// `NoInfer`: without `strictFunctionTypes`, the path would be inferred from the `ctx` of a handler, too.
/** Adds a route of one method: path, options if any, handler. @throws {TypeError} when the path is invalid or taken */
export interface Verb<Prefix extends string, Group> {
  /** Adds a route: path and handler, which gets the context and returns the reply's body. */
  <const Path extends string, Handles extends (ctx: Context<ParamsOf<`${Prefix}${NoInfer<Path>}`>>) => unknown>(
    path: Path,
    // Types the `ctx` of a handler in a wrapper: `publicFacing((ctx) => ctx.params.id)`. To learn which type the wrapper
    // should return, a compiler before TypeScript 5.9 puts `never` in place of the handler.
    handler: [Handles] extends [never]
      ? (ctx: Context<ParamsOf<`${Prefix}${NoInfer<Path>}`>>) => unknown
      : // Without `noImplicitAny`, the `ctx` of an intersection of two functions would be `any`.
        Handles & Sendable<ReturnType<Handles>>,
  ): Group;
  /** Adds a route: path, options (schemas, middleware, limits, documentation), and handler `(ctx, input)`. */
  <
    const Path extends string,
    P extends MaybeSchema = undefined,
    Q extends MaybeSchema = undefined,
    H extends MaybeSchema = undefined,
    B extends MaybeSchema = undefined,
    R extends MaybeResponse = undefined,
    const Result extends ResultOf<R> = ResultOf<R>,
    Handles = unknown,
  >(
    path: Path,
    options: RouteOptions<P, Q, H, B, R>,
    handler: EndpointHandler<ParamsOf<`${Prefix}${NoInfer<Path>}`>, P, Q, H, B, R, Result, Handles>,
  ): Group;
}

/** The type of a view, or of its class, whose methods have nothing in their results that JSON loses. */
export type SendingView<Viewed, Params> = Viewed extends new () => infer Instance
  ? new () => SendingView<Instance, Params>
  : keyof Viewed & keyof View<never> extends never
    ? 'a view has one or more of the methods get, post, put, patch, delete, head, options'
    : View<Params> & SendingMethods<Viewed>;

/** {@link Sendable} for the result of each method of a view. */
type SendingMethods<Methods> = {
  readonly [Name in keyof Methods & keyof View<never>]?: Methods[Name] extends AnyFunction
    ? Sendable<ReturnType<Methods[Name]>>
    : unknown;
};

/** The arguments after a group's prefix. */
export type GroupArguments<Prefix extends string> =
  | readonly [define: (group: RouteGroup<Prefix>) => void]
  | readonly [options: GroupOptions<Middleware>, define: (group: RouteGroup<Prefix>) => void];

/** Routes that share a prefix and middleware. Every method returns the group, so that calls can be chained. */
export class RouteGroup<Prefix extends string = ''> {
  /**
   * Adds a GET route: path, options if any, handler. It answers HEAD, too.
   *
   * @example
   * app.get('/users/:id', (ctx) => users.find(ctx.params.id));
   */
  declare readonly get: Verb<Prefix, this>;
  /**
   * Adds a POST route: path, options if any, handler.
   *
   * @example
   * app.post('/users', { body: NewUser }, (ctx, { body }) => reply(users.create(body), { status: 201 }));
   */
  declare readonly post: Verb<Prefix, this>;
  /**
   * Adds a PUT route: path, options if any, handler.
   *
   * @example
   * app.put('/users/:id', { body: NewUser }, (ctx, { body }) => users.replace(ctx.params.id, body));
   */
  declare readonly put: Verb<Prefix, this>;
  /**
   * Adds a PATCH route: path, options if any, handler.
   *
   * @example
   * app.patch('/users/:id', { body: NewUser.partial() }, (ctx, { body }) => users.change(ctx.params.id, body));
   */
  declare readonly patch: Verb<Prefix, this>;
  /**
   * Adds a DELETE route: path, options if any, handler. A handler that returns nothing answers 204.
   *
   * @example
   * app.delete('/users/:id', (ctx) => users.remove(ctx.params.id));
   */
  declare readonly delete: Verb<Prefix, this>;
  /** Adds a HEAD route; without it, the GET route of the path answers HEAD. */
  declare readonly head: Verb<Prefix, this>;
  /** Adds an OPTIONS route; without it, OPTIONS is answered with 204 and `Allow`. */
  declare readonly options: Verb<Prefix, this>;

  readonly #routes: CompiledRoutes;
  readonly #prefix: Prefix;
  readonly #groups: Groups;
  readonly #shared: DeclaredOptions | undefined;
  readonly #middleware: Middleware[] = [];

  static {
    for (const name of VERBS) {
      const { [name]: value } = {
        [name](this: RouteGroup, path: string, ...rest: readonly unknown[]) {
          return this.#add(name.toUpperCase(), path, ...rest);
        },
      };
      Object.defineProperty(this.prototype, name, { value, configurable: true, writable: true });
    }
  }

  /** @internal */
  constructor(routes: CompiledRoutes, prefix: Prefix, outer: Groups = [], shared?: DeclaredOptions) {
    this.#routes = routes;
    this.#prefix = prefix;
    this.#groups = [...outer, this.#middleware];
    this.#shared = shared;
  }

  /**
   * Adds several methods of one path; any of `http.METHODS`, upper-case.
   *
   * @throws {TypeError} when a path or method is invalid or taken
   *
   * @example
   * app.route('/users/:id', { GET: (ctx) => users.find(ctx.params.id), DELETE: (ctx) => users.remove(ctx.params.id) });
   */
  route<
    const Path extends string,
    Handlers extends Readonly<Record<string, (ctx: Context<ParamsOf<`${Prefix}${NoInfer<Path>}`>>) => unknown>>,
  >(
    path: Path,
    handlers: {
      // As for a verb: types the `ctx` of a handler in a wrapper.
      readonly [Method in keyof Handlers]: [Handlers[Method]] extends [never]
        ? (ctx: Context<ParamsOf<`${Prefix}${NoInfer<Path>}`>>) => unknown
        : Handlers[Method] &
            (Uppercase<`${Exclude<Method, symbol>}`> extends Exclude<Method, Lowercase<string>>
              ? Sendable<ReturnType<Handlers[Method]>>
              : 'write this method in upper case, { GET: handler }');
    },
  ): this {
    assertPath(this.#join(path));
    if (!isRecord(handlers) || Object.keys(handlers).length === 0)
      throw new TypeError(`route "${path}" has no handlers by method; give an object such as { GET: handler }`);
    const entries = Object.entries<unknown>(handlers).map(([method, handler]): [string, Handler] => {
      assertHandler(method, path, handler);
      return [method, handler];
    });
    return this.#registerAll(path, entries);
  }

  /**
   * Adds the methods of a class, which is instantiated once, or of an instance.
   *
   * @throws {TypeError} when it has none of get, post, put, patch, delete, head, options
   *
   * @example
   * class UserView {
   *   get(ctx: Context<{ readonly id: string }>) {
   *     return users.find(ctx.params.id);
   *   }
   * }
   * app.view('/users/:id', UserView);
   */
  view<const Path extends string, Viewed extends View<ParamsOf<`${Prefix}${NoInfer<Path>}`>> | (new () => object)>(
    path: Path,
    view: Viewed & SendingView<Viewed, ParamsOf<`${Prefix}${NoInfer<Path>}`>>,
  ): this {
    // An arrow function is not a class: it has no prototype.
    const instance = (typeof view === 'function' && view.prototype ? new view() : view) as View<never>;
    const entries = methodsOf(path, instance).map((name): [string, Handler] => {
      const method = instance[name] as Handler;
      // With the properties of the method: its options and flags.
      return [name.toUpperCase(), Object.assign(method.bind(instance) as Handler, method)];
    });
    return this.#registerAll(path, entries);
  }

  /**
   * Serves an endpoint that others call, made by `defineEndpoint`.
   *
   * @param own options of this side; they override the options of the definition
   * @throws {TypeError} when `endpoint` is not an endpoint, and in the cases of the verbs
   *
   * @example
   * app.implement(getUser, (ctx) => users.find(ctx.params.id));
   */
  implement<
    Path extends string,
    P extends MaybeSchema,
    Q extends MaybeSchema,
    H extends MaybeSchema,
    B extends MaybeSchema,
    R extends MaybeResponse,
    const Result extends ResultOf<R> = ResultOf<R>,
    Handles = unknown,
  >(
    endpoint: EndpointDefinition<Path, P, Q, H, B, R>,
    handler: EndpointHandler<ParamsOf<`${Prefix}${NoInfer<Path>}`>, P, Q, H, B, R, Result, Handles>,
    own: Omit<RouteOptions, 'params' | 'query' | 'headers' | 'body' | 'response'> = {},
  ): this {
    if (!isEndpointDefinition(endpoint)) throw new TypeError('implement() takes an endpoint made by defineEndpoint');
    const { method, path } = endpoint;
    assertHandler(method, path, handler);
    assertOptions(`implement() of ${method} ${path}`, own, WITHOUT_SCHEMAS);
    const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
    return this.#register(method, path, handler, { ...(endpoint.options as DeclaredOptions), ...given });
  }

  /**
   * Adds middleware around the routes of this group, those registered before included.
   *
   * @throws {TypeError} for anything but one middleware
   */
  use(middleware: Middleware): this {
    assertMiddleware(middleware, arguments.length);
    this.#middleware.push(middleware);
    this.#routes.recompile();
    return this;
  }

  /**
   * Opens a group inside this one: its paths start with `prefix`, and its middleware runs inside this group's.
   *
   * @throws {TypeError} for an unknown or invalid option, and for an option that describes one route, such as `body`
   *
   * @example
   * app.group('/v1', { middleware: [auth], tags: ['v1'] }, (v1) => {
   *   v1.get('/users/:id', (ctx) => users.find(ctx.params.id)); // GET /v1/users/7
   * });
   */
  group<const Inner extends string>(prefix: Inner, ...rest: GroupArguments<`${Prefix}${Inner}`>): this;
  /** Opens a group inside this one, whose function is typed `(routes: RouteGroup) => void`, with any prefix. */
  group(prefix: string, ...rest: GroupArguments<''>): this;
  group(prefix: string, ...[first, second]: readonly unknown[]): this {
    const [given = {}, define] = second === undefined ? [undefined, first] : [first, second];
    const options = given as GroupOptions<Middleware>;
    const what = `group ${show(prefix)}`;
    if (typeof define !== 'function') {
      const wrong =
        typeof first === 'function'
          ? 'has its options after the function; swap them: group(prefix, options, define)'
          : 'has no function; give one that adds its routes: (group) => { group.get(...) }';
      throw new TypeError(`${what} ${wrong}`);
    }
    const shared = shareOptions(what, options, this.#shared);
    const outer = [...this.#groups, [...(options.middleware ?? [])]];
    define(new RouteGroup(this.#routes, this.#join(prefix), outer, shared));
    return this;
  }

  #add(method: string, path: string, ...[first, second, ...more]: readonly unknown[]): this {
    const isSimple = second === undefined;
    const handler = isSimple ? first : second;
    if (typeof handler !== 'function' || (!isSimple && typeof first === 'function') || more.length > 0)
      throw new TypeError(`${method} ${String(path)} ${mistake(method, [first, second, ...more])}`);
    return this.#register(method, path, handler as Handler, isSimple ? undefined : (first as DeclaredOptions));
  }

  #register(method: string, path: string, handler: Handler, options?: DeclaredOptions): this {
    return this.#registerAll(path, [[method, handler]], options);
  }

  /** Checks every method before it adds the first one: all are registered, or none. */
  #registerAll(path: string, handlers: readonly (readonly [string, Handler])[], options?: DeclaredOptions): this {
    const whole = this.#join(path);
    const prepared = handlers.map(([method, handler]) =>
      this.#routes.prepare(this.#groups, method, whole, handler, options, this.#shared),
    );
    for (const add of prepared) add();
    return this;
  }

  /** A path without its slash would continue the last segment of the prefix: `/users` and `list` make `/userslist`. */
  #join(path: string): string {
    if (path !== '') assertPath(path);
    return this.#prefix + path;
  }
}

/** @param count how many arguments `use` got */
export function assertMiddleware(middleware: unknown, count: number): asserts middleware is Middleware {
  if (isMiddleware(middleware)) {
    if (count === 1) return;
    throw new TypeError('use() takes one middleware at a time; call it for each: use(first).use(second)');
  }
  let remedy = 'use() takes no path: open a group';
  if (typeof middleware === 'function') remedy = middleware.length > 3 ? HANDLE_ERRORS : 'wrap (req, res, next) in connect()';
  throw new TypeError(`middleware must be a function (ctx, next) => reply, not ${show(middleware)}; ${remedy}`);
}

function assertHandler(method: string, path: string, handler: unknown): asserts handler is Handler {
  if (typeof handler !== 'function') throw new TypeError(`${method} ${String(path)} ${mistake(method, [handler])}`);
}

/** Describes what is wrong with the arguments after the path of a route, and the remedy. */
function mistake(method: string, given: readonly unknown[]): string {
  const verb = method.toLowerCase();
  const functions = given.flat().filter((each) => typeof each === 'function');
  if (functions.length > 1)
    return `has several handlers; give middleware as an option: ${verb}(path, { middleware: [auth] }, handler)`;
  if (Array.isArray(given[0])) return `has a list in place of its handler; give the function itself`;
  if (typeof given[0] === 'function') return `has its options after the handler; swap them: ${verb}(path, options, handler)`;
  return 'has no handler; give a function';
}
