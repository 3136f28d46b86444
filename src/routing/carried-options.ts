/*
 * Functions that carry what was declared about them as properties, so that wrappers can pass it on with
 * `Object.assign(wrapper, handler)`.
 */

/** Any function that can be a handler. */
export type AnyFunction = (...args: never[]) => unknown;

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
