/**
 * Flags single methods of a route as open to the public (SPEC 4.3).
 *
 * The flag sits on the handler itself, so the router that matched the handler has the only word on who may reach it.
 */

/** What {@link publicFacing} restricts. */
export interface PublicOptions {
  /** Names of the query parameters that are allowed; `[]` allows none, absent allows any. */
  params?: Iterable<string> | null | undefined;
}

/** Any function that can be flagged. */
export type AnyFunction = (...args: never[]) => unknown;

/** A handler that is open to the public. */
export type PublicHandler<F extends AnyFunction = AnyFunction> = F & {
  readonly scope: 'public';
  /** Allowed query parameters in the order given; null allows any. */
  readonly params: readonly string[] | null;
};

/** Flags a handler, or a method that it decorates. */
export interface PublicFlag {
  <F extends AnyFunction>(handler: F, context?: ClassMethodDecoratorContext): PublicHandler<F>;
}

/**
 * Flags a handler as public, as a wrapper or as a standard (TC39) method decorator.
 *
 * The function passed in is left as it was; the one returned has `scope === 'public'`.
 *
 * @throws {TypeError} when `params` is no iterable of strings, or what is flagged is no function or method
 */
export function publicFacing<F extends AnyFunction>(handler: F, options?: PublicOptions | ClassMethodDecoratorContext): PublicHandler<F>;
export function publicFacing(options?: PublicOptions): PublicFlag;
export function publicFacing<F extends AnyFunction>(
  first?: F | PublicOptions,
  second?: PublicOptions | ClassMethodDecoratorContext,
): PublicHandler<F> | PublicFlag {
  if (typeof first === 'function') {
    if (second === undefined || !('kind' in second)) return flag(first, allowedParams(second));
    return flagMethod(first, null, second);
  }
  const params = allowedParams(first);
  return <G extends AnyFunction>(handler: G, context?: ClassMethodDecoratorContext) => flagMethod(handler, params, context);
}

/** Whether a handler was flagged by {@link publicFacing}. */
export function isPublic(handler: unknown): handler is PublicHandler {
  return typeof handler === 'function' && 'scope' in handler && handler.scope === 'public' && 'params' in handler;
}

function flagMethod<F extends AnyFunction>(handler: F, params: readonly string[] | null, context?: ClassMethodDecoratorContext): PublicHandler<F> {
  if (context !== undefined && context.kind !== 'method') {
    throw new TypeError(`publicFacing decorates methods, not a ${String(context.kind)}; wrap the function instead`);
  }
  return flag(handler, params);
}

function flag<F extends AnyFunction>(handler: F, params: readonly string[] | null): PublicHandler<F> {
  if (typeof handler !== 'function') throw new TypeError(`publicFacing flags functions, not ${String(handler)}`);
  // bind would lose `this` of a decorated method, so the call is passed on.
  const flagged = function (this: unknown, ...args: never[]): unknown {
    return handler.apply(this, args);
  };
  Object.defineProperty(flagged, 'name', { value: handler.name });
  // Flagging twice must not lift the restriction of the first time.
  const allowed = params ?? (isPublic(handler) ? handler.params : null);
  return Object.assign(flagged as F, { scope: 'public', params: allowed } as const);
}

function allowedParams(options: PublicOptions | undefined): readonly string[] | null {
  const params = options?.params;
  if (params === undefined || params === null) return null;
  if (typeof params === 'string' || typeof params[Symbol.iterator] !== 'function') {
    throw new TypeError(`params of publicFacing is ${JSON.stringify(params)}; give a list of names, such as ["q"]`);
  }
  const names = [...new Set(params)];
  for (const name of names) {
    if (typeof name !== 'string') throw new TypeError(`params of publicFacing holds ${String(name)}; give names as strings`);
  }
  return Object.freeze(names);
}
