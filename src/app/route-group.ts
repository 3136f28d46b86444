/**
 * Registers routes under a prefix, with middleware of their own.
 */

import type { Endpoints } from '../pipeline/endpoint.js';
import type { Context, Handler, HandlerResult, Middleware } from '../http/context.js';
import type { ParamsOf } from '../routing/pattern.js';

type ViewMethod<P> = (ctx: Context<P>) => HandlerResult | Promise<HandlerResult>;

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

const VIEW_METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const;

/** Routes that share a prefix and middleware. Every method returns the group, so that calls can be chained. */
export class RouteGroup<Prefix extends string = ''> {
  readonly #endpoints: Endpoints;
  readonly #prefix: Prefix;
  readonly #groups: readonly Middleware[][];
  readonly #middleware: Middleware[] = [];

  /** @internal */
  constructor(endpoints: Endpoints, prefix: Prefix, outer: readonly Middleware[][]) {
    this.#endpoints = endpoints;
    this.#prefix = prefix;
    this.#groups = [...outer, this.#middleware];
  }

  get<const Path extends string>(path: Path, handler: Handler<ParamsOf<`${Prefix}${Path}`>>): this {
    return this.#add('GET', path, handler);
  }

  post<const Path extends string>(path: Path, handler: Handler<ParamsOf<`${Prefix}${Path}`>>): this {
    return this.#add('POST', path, handler);
  }

  put<const Path extends string>(path: Path, handler: Handler<ParamsOf<`${Prefix}${Path}`>>): this {
    return this.#add('PUT', path, handler);
  }

  patch<const Path extends string>(path: Path, handler: Handler<ParamsOf<`${Prefix}${Path}`>>): this {
    return this.#add('PATCH', path, handler);
  }

  delete<const Path extends string>(path: Path, handler: Handler<ParamsOf<`${Prefix}${Path}`>>): this {
    return this.#add('DELETE', path, handler);
  }

  head<const Path extends string>(path: Path, handler: Handler<ParamsOf<`${Prefix}${Path}`>>): this {
    return this.#add('HEAD', path, handler);
  }

  options<const Path extends string>(path: Path, handler: Handler<ParamsOf<`${Prefix}${Path}`>>): this {
    return this.#add('OPTIONS', path, handler);
  }

  /**
   * Adds several methods of one path; any of `http.METHODS`, upper-case.
   *
   * @throws {TypeError} when a path or method is invalid or taken
   */
  route<const Path extends string>(path: Path, handlers: Readonly<Record<string, Handler<ParamsOf<`${Prefix}${Path}`>>>>): this {
    const entries = Object.entries(handlers);
    if (entries.length === 0) throw new TypeError(`route "${path}" has no methods; give at least one, { GET: handler }`);
    for (const [method, handler] of entries) assertHandler(method, path, handler);
    for (const [method, handler] of entries) this.#add(method, path, handler);
    return this;
  }

  /**
   * Adds the methods of a class, which is instantiated once.
   *
   * @throws {TypeError} when it has none of get, post, put, patch, delete, head, options
   */
  view<const Path extends string>(path: Path, ViewClass: new () => View<ParamsOf<`${Prefix}${Path}`>>): this {
    const view = new ViewClass();
    const methods = VIEW_METHODS.filter((name) => typeof view[name] === 'function');
    if (methods.length === 0) throw new TypeError(`view of "${path}" has no method; give it get, post, put, patch, delete, head or options`);
    for (const name of methods) {
      const method = view[name] as ViewMethod<ParamsOf<`${Prefix}${Path}`>>;
      // The flag is the method's, `this` the view's.
      this.#add(name.toUpperCase(), path, Object.assign(method.bind(view), method));
    }
    return this;
  }

  /** Adds middleware around the routes of this group, those registered before included. */
  use(middleware: Middleware): this {
    if (typeof middleware !== 'function') throw new TypeError('middleware must be a function (ctx, next) => reply');
    this.#middleware.push(middleware);
    this.#endpoints.recompile();
    return this;
  }

  /** Opens a group inside this one: its paths go behind `prefix`, its middleware inside this group's. */
  group<const Inner extends string>(prefix: Inner, define: (group: RouteGroup<`${Prefix}${Inner}`>) => void): this {
    define(new RouteGroup(this.#endpoints, this.#join(prefix) as `${Prefix}${Inner}`, this.#groups));
    return this;
  }

  #add<P>(method: string, path: string, handler: Handler<P>): this {
    assertHandler(method, path, handler);
    this.#endpoints.add(method, this.#join(path), handler as Handler, this.#groups);
    return this;
  }

  /** Without its slash a path would go on in the last segment of the prefix. */
  #join(path: string): string {
    if (path !== '' && !String(path).startsWith('/')) throw new TypeError(`path ${JSON.stringify(path)} does not start with "/"; add it`);
    return this.#prefix + path;
  }
}

function assertHandler(method: string, path: string, handler: unknown): void {
  if (typeof handler !== 'function') throw new TypeError(`${method} ${path} has no handler; give a function`);
}
