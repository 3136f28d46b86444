/* Ends requests that take longer than their route allows. */

import { clearTimeout, monotonicNow, setTimeout } from '../base/clock.js';
import { discard } from './reply.js';
import { Context, type Handler, type Middleware } from './context.js';
import { dropLateHeaders } from '../wire/node-internals.js';
import { TimedOut } from '../base/errors.js';

/** One limit in two places, so that the 504 passes through middleware as the handler's own errors do. */
export class TimeLimit {
  readonly #expire = new WeakMap<Context, (error: TimedOut) => void>();

  /** @param timeoutMs from the start of a request; middleware that continues after the 504 has the same time again */
  constructor(readonly timeoutMs: number) {}

  /** Starts the timer; put around the handler and all middleware. */
  around(run: Handler): Handler {
    const { timeoutMs } = this;
    return (ctx) => {
      const { exchange } = ctx;
      let timer: NodeJS.Timeout | undefined;
      let hasReplied = false;
      ctx.timeUpMs = monotonicNow() + timeoutMs;
      const begin = (end: (error: TimedOut) => void): void => {
        const stop = (): void => {
          // Nobody waits for the 504, but a handler that never ends would never be counted.
          if (exchange.state === 'left') return exchange.carrier.dismiss(exchange);
          // A reply that is begun, or left to the handler, takes as long as it takes.
          if (hasReplied && (exchange.outgoing === null || exchange.res.headersSent)) return;
          const error = new TimedOut(`The request was not answered within ${timeoutMs} ms.`);
          dropLateHeaders(exchange.res);
          ctx.abort(error);
          if (hasReplied) return exchange.carrier.replace(exchange, error);
          const inner = this.#expire.get(ctx);
          this.#expire.delete(ctx);
          if (inner !== undefined) timer = setTimeout(stop, timeoutMs);
          (inner ?? end)(error);
        };
        timer = setTimeout(stop, timeoutMs);
      };
      // Not before: the reply may be a stream whose first chunk never comes.
      // A handler whose client has disconnected keeps its time limit.
      exchange.onOver(() => {
        if (!exchange.isCut || exchange.state === 'over') clearTimeout(timer);
      });
      return endable(() => run(ctx), begin).finally(() => {
        hasReplied = true;
        if (exchange.isCut) clearTimeout(timer);
      });
    };
  }

  /** Throws the 504 when time is up while the request is in here, so that the middleware around it gets to see it. */
  readonly within: Middleware = (ctx, next) =>
    endable(next, (end) => this.#expire.set(ctx, end)).finally(() => this.#expire.delete(ctx));
}

/** Runs something that can be ended from outside, by an error; its later reply is discarded. */
function endable<T>(run: () => T | Promise<T>, begin: (end: (error: Error) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    let hasEnded = false;
    begin((error) => {
      hasEnded = true;
      reject(error);
    });
    Promise.resolve(run()).then((value) => (hasEnded ? discard(value) : resolve(value)), reject);
  });
}
