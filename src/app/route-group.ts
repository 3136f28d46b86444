/*
 * Registers routes under a prefix, with middleware of their own.
 */

import type { CompiledRoutes } from '../pipeline/compiled-routes.js';
import type { Context, Handler, HandlerResult, Middleware } from '../http/context.js';
import type { AnyFunction } from '../endpoint/public-facing.js';
import type { ParamsOf } from '../endpoint/pattern.js';
import type { MaybeResponse, MaybeSchema } from '../endpoint/schemas.js';
import { isEndpointDefinition, type EndpointDefinition } from '../endpoint/endpoint-definition.js';
import type { DeclaredOptions } from '../endpoint/route-options.js';
import type { EndpointHandler, RouteOptions, Sends, ServedSettings } from './endpoint.js';

type ViewMethod<P> = (ctx: Context<P>, input: never) => HandlerResult | Promise<HandlerResult>;

/** A class of handlers, one for each method that it serves. */
export interface View<P> {
  get?: ViewMethod<P>;
  post?: ViewMethod<P>;
  put?: ViewMethod<P>;
  patch?: ViewMethod<P>;
  delete?: ViewMethod<P>;
  head?: ViewMethod<P>;
  options?: ViewMethod<P>;
}

/** A handler of a path. */
type RoutedHandler<Prefix extends string, Path extends string> = Handler<ParamsOf<`${Prefix}${Path}`>>;

/** Adds a route of one method: path, options if any, handler. @throws {TypeError} when the path is invalid or taken */
export interface Verb<Prefix extends string, Group> {
  <const Path extends string, Handles extends RoutedHandler<Prefix, Path>>(
    path: Path,
    handler: Handles & Sends<Handles>,
  ): Group;
  <
    const Path extends string,
    Handles extends EndpointHandler<ParamsOf<`${Prefix}${Path}`>, P, Q, H, B, R>,
    P extends MaybeSchema = undefined,
    Q extends MaybeSchema = undefined,
    H extends MaybeSchema = undefined,
    B extends MaybeSchema = undefined,
    R extends MaybeResponse = undefined,
  >(
    path: Path,
    options: RouteOptions<P, Q, H, B, R>,
    handler: Handles & Sends<Handles>,
  ): Group;
}

/** {@link Sends} for each method of a view. */
type Sending<Views> = {
  readonly [Name in keyof Views & keyof View<never>]?: Views[Name] extends AnyFunction ? Sends<Views[Name]> : unknown;
};

/** What stands behind the path. */
type HandlerArguments = readonly [handler: unknown] | readonly [options: RouteOptions, handler: unknown];

const VERBS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const;

/** Routes that share a prefix and middleware. Every method returns the group, so that calls can be chained. */
export class RouteGroup<Prefix extends string = ''> {
  declare readonly get: Verb<Prefix, this>;
  declare readonly post: Verb<Prefix, this>;
  declare readonly put: Verb<Prefix, this>;
  declare readonly patch: Verb<Prefix, this>;
  declare readonly delete: Verb<Prefix, this>;
  declare readonly head: Verb<Prefix, this>;
  declare readonly options: Verb<Prefix, this>;

  readonly #routes: CompiledRoutes;
  readonly #prefix: Prefix;
  readonly #groups: readonly Middleware[][];
  readonly #middleware: Middleware[] = [];

  static {
    for (const name of VERBS) {
      const { [name]: value } = {
        [name](this: RouteGroup, path: string, ...rest: HandlerArguments) {
          return this.#add(name.toUpperCase(), path, ...rest);
        },
      };
      Object.defineProperty(this.prototype, name, { value, configurable: true, writable: true });
    }
  }

  /** @internal */
  constructor(routes: CompiledRoutes, prefix: Prefix, outer: readonly Middleware[][]) {
    this.#routes = routes;
    this.#prefix = prefix;
    this.#groups = [...outer, this.#middleware];
  }

  /**
   * Adds several methods of one path; any of `http.METHODS`, upper-case.
   *
   * @throws {TypeError} when a path or method is invalid or taken
   */
  route<const Path extends string, Handlers extends Readonly<Record<string, RoutedHandler<Prefix, Path>>>>(
    path: Path,
    handlers: Handlers & { readonly [Method in keyof Handlers]: Sends<Handlers[Method]> },
  ): this {
    const entries = Object.entries(handlers);
    if (entries.length === 0)
      throw new TypeError(`route "${path}" has no methods; give at least one, { GET: handler }`);
    for (const [method, handler] of entries) assertHandler(method, path, handler);
    for (const [method, handler] of entries) this.#add(method, path, handler);
    return this;
  }

  /**
   * Adds the methods of a class, which is instantiated once, or of an instance.
   *
   * @throws {TypeError} when it has none of get, post, put, patch, delete, head, options
   */
  view<const Path extends string, Views extends View<ParamsOf<`${Prefix}${Path}`>>>(
    path: Path,
    view: (Views & Sending<Views>) | (new () => Views & Sending<Views>),
  ): this {
    const instance = typeof view === 'function' ? new view() : view;
    const methods = VERBS.filter((name) => typeof instance?.[name] === 'function');
    if (methods.length === 0)
      throw new TypeError(`view of "${path}" has no method; give it get, post, put, patch, delete, head or options`);
    for (const name of methods) {
      const method = instance[name] as Handler;
      this.#register(name.toUpperCase(), path, method.bind(instance) as Handler, undefined, method);
    }
    return this;
  }

  /**
   * Serves an endpoint that others call, made by `defineEndpoint`.
   *
   * @param own what this side adds; it wins over what the definition says
   * @throws {TypeError} when the endpoint is none, and as the verbs do
   */
  implement<
    Path extends string,
    P extends MaybeSchema,
    Q extends MaybeSchema,
    H extends MaybeSchema,
    B extends MaybeSchema,
    R extends MaybeResponse,
  >(
    endpoint: EndpointDefinition<Path, P, Q, H, B, R>,
    handler: EndpointHandler<ParamsOf<`${Prefix}${Path}`>, P, Q, H, B, R>,
    own: ServedSettings = {},
  ): this {
    if (!isEndpointDefinition(endpoint)) throw new TypeError('implement() takes an endpoint made by defineEndpoint');
    const { method, path } = endpoint;
    assertHandler(method, path, handler);
    return this.#register(method, path, handler, { ...endpoint.options, ...own });
  }

  /** Adds middleware around the routes of this group, those registered before included. */
  use(middleware: Middleware): this {
    assertMiddleware(middleware);
    this.#middleware.push(middleware);
    this.#routes.recompile();
    return this;
  }

  /** Opens a group inside this one: its paths go behind `prefix`, its middleware inside this group's. */
  group<const Inner extends string>(prefix: Inner, define: (group: RouteGroup<`${Prefix}${Inner}`>) => void): this {
    define(new RouteGroup(this.#routes, this.#join(prefix) as `${Prefix}${Inner}`, this.#groups));
    return this;
  }

  #add(method: string, path: string, ...[first, second]: HandlerArguments): this {
    const [options, handler] = second === undefined ? [undefined, first] : [first as RouteOptions, second];
    assertHandler(method, path, handler);
    return this.#register(method, path, handler, options);
  }

  #register(
    method: string,
    path: string,
    handler: Handler,
    options?: DeclaredOptions,
    source: unknown = handler,
  ): this {
    this.#routes.add(method, this.#join(path), handler, this.#groups, options, source);
    return this;
  }

  /** A path without its slash would go on in the last segment of the prefix: `/users` and `list` make `/userslist`. */
  #join(path: string): string {
    if (path !== '' && !String(path).startsWith('/'))
      throw new TypeError(`path ${JSON.stringify(path)} does not start with "/"; add it`);
    return this.#prefix + path;
  }
}

/** @internal */
export function assertMiddleware(middleware: unknown): void {
  if (typeof middleware !== 'function') throw new TypeError('middleware must be a function (ctx, next) => reply');
}

function assertHandler(method: string, path: string, handler: unknown): asserts handler is Handler {
  if (typeof handler !== 'function') throw new TypeError(`${method} ${path} has no handler; give a function`);
}
