/*
 * Flags single methods of a route as open to the public (SPEC 4.3).
 *
 * The handler itself carries the flag, so no list of paths has to match the router: the route that is found decides.
 */

import { assertOptions } from '../base/options-check.js';

/** Any function that can be a handler. */
export type AnyFunction = (...args: never[]) => unknown;

/** Options of {@link publicFacing}. */
export interface PublicOptions {
  /** Names of the query parameters that are allowed; `[]` allows none, absent allows any. */
  params?: Iterable<string> | null | undefined;
}

/** A handler that is open to the public. */
export type PublicHandler<F extends AnyFunction = AnyFunction> = F & {
  /** The flag. */
  readonly scope: 'public';
  /** Allowed query parameters in the order given; null allows any. */
  readonly params: readonly string[] | null;
};

/** Flags a handler, or a method that it decorates. */
export interface PublicFlag {
  /** Flags a handler, or the method that it decorates. */
  <F extends AnyFunction>(handler: F, context?: ClassMethodDecoratorContext): PublicHandler<F>;
  /** Flags the method that it decorates, with `experimentalDecorators`. */
  <F extends AnyFunction>(
    target: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<F>,
  ): TypedPropertyDescriptor<F>;
}

/** Who may reach a route. @internal */
export interface Exposure {
  readonly public: boolean;
  /** Allowed query parameters in the order given; null for any. */
  readonly params: readonly string[] | null;
}

/**
 * Flags a handler as public: as a wrapper, or as a decorator of a method (a standard one, or with
 * `experimentalDecorators`).
 *
 * The function passed in is not changed; the result has `scope === 'public'`. The route option `public` overrides the
 * flag.
 *
 * @throws {TypeError} if `params` is not an iterable of strings, an option is unknown, or the value that is flagged is
 * not a function or method
 *
 * @example
 * app.get('/users/:id', publicFacing((ctx) => users.find(ctx.params.id), { params: ['fields'] }));
 */
export function publicFacing<F extends AnyFunction>(
  handler: F,
  options?: PublicOptions | ClassMethodDecoratorContext,
): PublicHandler<F>;
/** Flags the method that it decorates, with `experimentalDecorators`. */
export function publicFacing<F extends AnyFunction>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
): TypedPropertyDescriptor<F>;
/** Creates a decorator or wrapper that flags a method or handler, with these options. */
export function publicFacing(options?: PublicOptions): PublicFlag;
export function publicFacing(...given: readonly unknown[]): unknown {
  const [first, second] = given;
  const isDecorator = typeof second === 'string' || typeof second === 'symbol' || isContext(second);
  const isComplete = isDecorator || typeof first === 'function';
  const options = isDecorator ? undefined : isComplete ? second : first;
  if (!isComplete && second !== undefined)
    throw new TypeError('publicFacing() takes the handler first; write publicFacing(handler, { params: ["q"] })');
  const params = allowedParams('publicFacing()', options as PublicOptions | undefined);
  // Flagging twice must not lift the restriction of the first time.
  const paramsOf = (handler: unknown): readonly string[] | null => params ?? exposureOf(handler)?.params ?? null;
  const flag = (...args: readonly unknown[]): unknown =>
    carry('publicFacing', args, (handler) => ({ scope: 'public', params: paramsOf(handler) }));
  return isComplete ? flag(...given) : waiting(flag);
}

const WAITS = Symbol('waits for its handler');

/** Marks the result of a flag that is called without a handler: it may decorate a method, but is not a handler. @internal */
export function waiting<Flag extends AnyFunction>(flag: Flag): Flag {
  return Object.assign(flag, { [WAITS]: true });
}

/** @throws {TypeError} for a flag in place of a handler: each request would fail @internal */
export function assertComplete(what: string, handler: unknown): void {
  if (typeof handler === 'function' && WAITS in handler)
    throw new TypeError(`${what} has a flag without its handler; write publicFacing(options)(handler), or endpoint(options, handler)`);
}

/** Who may reach a handler by its own flag; undefined without a flag. @internal */
export function exposureOf(handler: unknown): Exposure | undefined {
  if (typeof handler !== 'function' || !('scope' in handler) || handler.scope !== 'public') return undefined;
  return 'params' in handler ? { public: true, params: (handler as PublicHandler).params } : undefined;
}

/**
 * Who may reach a route by its option `public`; undefined without the option.
 *
 * @throws {TypeError} when it is neither a boolean nor the options of {@link publicFacing}
 * @internal
 */
export function toExposure(what: string, option: boolean | PublicOptions | undefined): Exposure | undefined {
  if (option === undefined) return undefined;
  if (typeof option === 'boolean') return { public: option, params: null };
  return { public: true, params: allowedParams(`${what}: public`, option) };
}

function allowedParams(what: string, options: PublicOptions = {}): readonly string[] | null {
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
 * Creates a function, or the method of a decorator, that does what another does, with its properties and more; the
 * other is not changed.
 *
 * A wrapper can pass the properties on with `Object.assign(wrapper, handler)`.
 *
 * @param by the decorator, for messages: `publicFacing`
 * @param given the function; or a method and its context (TC39); or an object, a name and a descriptor
 * (`experimentalDecorators`)
 * @throws {TypeError} for anything but a function or a method, and for a static method
 * @internal
 */
export function carry(by: string, given: readonly unknown[], properties: (handler: unknown) => object): unknown {
  const [target, second, descriptor] = given;
  const fail = (member: string, name: string | symbol = 'class'): never => {
    throw new TypeError(`${by} decorates methods, not a ${member} (${String(name)}); make it a method of instances`);
  };
  const extend = (handler: unknown): unknown => {
    if (typeof handler !== 'function') throw new TypeError(`${by} takes functions, not ${String(handler)}`);
    // bind would lose `this` of a decorated method, so the call is passed on.
    const carrier = function (this: unknown, ...args: readonly unknown[]): unknown {
      return handler.apply(this, args);
    };
    Object.defineProperty(carrier, 'name', { value: handler.name });
    return Object.assign(carrier, handler, properties(handler));
  };
  if (typeof second === 'string' || typeof second === 'symbol') {
    const { value } = (descriptor ?? {}) as PropertyDescriptor;
    if (typeof target === 'function') fail('static member', second);
    if (typeof value !== 'function') fail('field or an accessor', second);
    return { ...(descriptor as PropertyDescriptor), value: extend(value) };
  }
  if (isContext(second)) {
    if (second.static) fail('static member', second.name);
    if (second.private) fail('private member', second.name);
    if (second.kind !== 'method') fail(second.kind, second.name);
  }
  return extend(target);
}

function isContext(value: unknown): value is ClassMemberDecoratorContext {
  return typeof value === 'object' && value !== null && 'kind' in value;
}
