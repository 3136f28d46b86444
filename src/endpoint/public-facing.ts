/*
 * Flags single methods of a route as open to the public (SPEC 4.3).
 *
 * The flag sits on the handler itself, so the router that matched the handler has the only word on who may reach it.
 */

import { assertOptions } from '../base/options-check.js';

/** Any function that can be a handler. */
export type AnyFunction = (...args: never[]) => unknown;

/** What {@link publicFacing} restricts. */
export interface PublicOptions {
  /** Names of the query parameters that are allowed; `[]` allows none, absent allows any. */
  params?: Iterable<string> | null | undefined;
}

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

/** Who may reach a route. @internal */
export interface Exposure {
  readonly public: boolean;
  /** Allowed query parameters in the order given; null for any. */
  readonly params: readonly string[] | null;
}

/**
 * Flags a handler as public, as a wrapper or as a standard (TC39) method decorator.
 *
 * The function passed in is left as it was; the one returned has `scope === 'public'`. The route option `public` says
 * the same, and has the last word where both speak.
 *
 * @throws {TypeError} when `params` is no iterable of strings, an option is unknown, or what is flagged is no function
 * or method
 */
export function publicFacing<F extends AnyFunction>(
  handler: F,
  options?: PublicOptions | ClassMethodDecoratorContext,
): PublicHandler<F>;
export function publicFacing(options?: PublicOptions): PublicFlag;
export function publicFacing<F extends AnyFunction>(
  first?: F | PublicOptions,
  second?: PublicOptions | ClassMethodDecoratorContext,
): PublicHandler<F> | PublicFlag {
  if (typeof first === 'function') {
    if (isDecorated(second)) return flag(first, null, second);
    return flag(first, allowedParams('publicFacing()', second));
  }
  const params = allowedParams('publicFacing()', first);
  return <G extends AnyFunction>(handler: G, context?: ClassMethodDecoratorContext) => flag(handler, params, context);
}

/** Whether a handler was flagged by {@link publicFacing}. @internal */
export function isPublic(handler: unknown): handler is PublicHandler {
  return typeof handler === 'function' && 'scope' in handler && handler.scope === 'public' && 'params' in handler;
}

/** Who may reach a handler, as it says itself. @internal */
export function exposureOf(handler: unknown): Exposure {
  return isPublic(handler) ? { public: true, params: handler.params } : { public: false, params: null };
}

/**
 * Who may reach a route with the option `public`; undefined where it doesn't speak.
 *
 * @throws {TypeError} when it is neither a boolean nor the options of {@link publicFacing}
 *
 * @internal
 */
export function toExposure(what: string, option: boolean | PublicOptions | undefined): Exposure | undefined {
  if (option === undefined) return undefined;
  if (typeof option === 'boolean') return { public: option, params: null };
  return { public: true, params: allowedParams(`${what}: public`, option) };
}

function flag<F extends AnyFunction>(
  handler: F,
  params: readonly string[] | null,
  context?: ClassMethodDecoratorContext,
): PublicHandler<F> {
  // Flagging twice must not lift the restriction of the first time.
  const allowed = params ?? (isPublic(handler) ? handler.params : null);
  return carry('publicFacing', handler, { scope: 'public', params: allowed } as const, context);
}

function isDecorated(
  second: PublicOptions | ClassMethodDecoratorContext | undefined,
): second is ClassMethodDecoratorContext {
  return typeof second === 'object' && second !== null && 'kind' in second;
}

function allowedParams(what: string, options: PublicOptions | undefined): readonly string[] | null {
  if (options === undefined) return null;
  assertOptions(what, options, ['params']);
  const { params } = options;
  if (params === undefined || params === null) return null;
  if (typeof params === 'string' || typeof params[Symbol.iterator] !== 'function')
    throw new TypeError(`params of ${what} is ${JSON.stringify(params)}; give a list of names, such as ["q"]`);
  const names = [...new Set(params)];
  for (const name of names)
    if (typeof name !== 'string') throw new TypeError(`params of ${what} holds ${String(name)}; give names as strings`);
  return Object.freeze(names);
}

/**
 * A function that does what another does, with its properties and some more; the other is left as it was.
 *
 * @param by who asks, for messages: `publicFacing`
 * @param context given where `by` is used as a standard (TC39) decorator
 * @throws {TypeError} when what is passed in is no function, or what is decorated no method
 *
 * @internal
 */
export function carry<F extends AnyFunction, Properties extends object>(
  by: string,
  handler: F,
  properties: Properties,
  context?: ClassMethodDecoratorContext,
): F & Properties {
  if (context !== undefined && context.kind !== 'method')
    throw new TypeError(`${by} decorates methods, not a ${String(context.kind)}; wrap the function instead`);
  if (typeof handler !== 'function') throw new TypeError(`${by} takes functions, not ${String(handler)}`);
  // bind would lose `this` of a decorated method, so the call is passed on.
  const carrier = function (this: unknown, ...args: never[]): unknown {
    return handler.apply(this, args);
  };
  Object.defineProperty(carrier, 'name', { value: handler.name });
  return Object.assign(carrier as F, handler, properties);
}
