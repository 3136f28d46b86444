/* Promises: whether a value is one, and those that nobody awaits. */

/** Whether a value is a promise, of whatever maker; reading it can throw, for example from a Proxy. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function';
  return isObject && 'then' in value && typeof value.then === 'function';
}

/** Handles the rejection of a promise that was thrown or left over: nobody awaits it, so it would end the process. */
export function ignoreRejection(value: unknown): void {
  try {
    // An object that only has a `then` is not touched: to call it can begin work, such as a query.
    if (Object.prototype.toString.call(value) === '[object Promise]') Promise.resolve(value).catch(ignoreRejection);
  } catch {
    // Looking at the value can throw, for example at a Proxy.
  }
}
