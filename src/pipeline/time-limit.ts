/*
 * Ends requests that take longer than their route allows.
 */

import { clearTimeout, monotonicNow, setTimeout } from '../base/clock.js';
import { discard } from '../http/writer.js';
import type { Context, Handler, Middleware } from '../http/context.js';
import { TimedOut } from '../overload/overload.js';

/** One limit in two places, so that the 504 passes through middleware as the handler's own errors do. */
export interface TimeLimit {
  /** Starts the clock; goes around everything. */
  readonly around: (run: Handler) => Handler;
  /** Throws the 504 when time is up while the request is in here, so that the middleware around it gets to see it. */
  readonly within: Middleware;
}

/** @param timeoutMs from the start of a request; middleware that continues after the 504 has the same time again */
export function createTimeLimit(timeoutMs: number): TimeLimit {
  const expire = new WeakMap<Context, (error: TimedOut) => void>();

  const around = (run: Handler): Handler => {
    return (ctx) => {
      let timer: NodeJS.Timeout | undefined;
      ctx.timeUpMs = monotonicNow() + timeoutMs;
      const result = endable(
        () => run(ctx),
        (end) => {
          const stop = (): void => {
            const error = new TimedOut(`The request was not answered within ${timeoutMs} ms.`);
            ctx.abort(error);
            const inner = expire.get(ctx);
            expire.delete(ctx);
            if (inner !== undefined) timer = setTimeout(stop, timeoutMs);
            (inner ?? end)(error);
          };
          timer = setTimeout(stop, timeoutMs);
        },
      );
      return result.finally(() => clearTimeout(timer));
    };
  };

  const within: Middleware = (ctx, next) =>
    endable(next, (end) => expire.set(ctx, end)).finally(() => expire.delete(ctx));

  return { around, within };
}

/** Runs something that can be ended from outside, by an error; its later reply is discarded. */
async function endable<T>(run: () => T | Promise<T>, begin: (end: (error: Error) => void) => void): Promise<T> {
  let hasEnded = false;
  const ended = new Promise<never>((_, reject) => {
    begin((error) => {
      hasEnded = true;
      reject(error);
    });
  });
  const running = Promise.resolve(run()).then((value) => {
    if (hasEnded) discard(value);
    return value;
  });
  return Promise.race([running, ended]);
}
