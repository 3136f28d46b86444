/* Lets the requests of a route run as its limiter admits them, and reports each of them to it. */

import { builtin } from '../base/builtin.js';
import { monotonicNow } from '../base/clock.js';
import { DeadlinePassed, isNativeError, Overloaded } from '../base/errors.js';
import { isThenable } from '../base/promises.js';
import type { Overload, Reason } from '../overload/overload.js';
import { RouteLimiter } from '../overload/route-limiter.js';
import type { Route } from '../routing/router.js';
import { end, release, type Admission } from './admission.js';
import { Context, type Handler, type HandlerResult, type Middleware } from './context.js';
import type { MappedError } from './errors.js';
import { NOTICED_MS, RunQueue, type Lane } from './run-queue.js';

/** The refusals of one application. */
export class Admissions {
  /** Requests that wait for the CPU. */
  readonly queue: RunQueue = new RunQueue();
  // The same errors for all requests: a stack for each would add to the load.
  #overloaded: Overloaded | undefined;
  #late: DeadlinePassed | undefined;

  constructor(readonly overload: Overload) {}

  /**
   * Counts a request that may be refused.
   *
   * @param label the value of the label `route`
   * @returns the error of the refusal; undefined if refusals are only observed, so that the request has to run
   */
  refuse(label: string, reason: Reason): (MappedError & Error) | undefined {
    if (!this.overload.refuses(label, reason)) return undefined;
    if (reason === 'deadline') return (this.#late ??= Object.freeze(new DeadlinePassed()));
    const { retryAfter } = this.overload.options;
    return (this.#overloaded ??= Object.freeze(new Overloaded(undefined, { retryAfter })));
  }

  /**
   * Puts a guard around a mount, or the function that answers 404 and 405: only the limits of the process apply.
   *
   * @param isExempt whether the requests of a path are never refused
   */
  guardOthers(label: string, run: Handler, isExempt: (target: { readonly path: string }) => boolean): Handler {
    if (this.overload.limits === null) return run;
    return (ctx) => {
      const exceeded = isExempt(ctx.target) ? undefined : this.overload.limits?.exceeded;
      return (exceeded === undefined ? undefined : this.refuse(label, exceeded)) ?? run(ctx);
    };
  }
}

/** The gate of one route. */
export class Gate {
  readonly #limiter: RouteLimiter;
  readonly #lane: Lane = [];

  constructor(
    readonly admissions: Admissions,
    readonly route: Route,
  ) {
    this.#limiter = new RouteLimiter(admissions.overload.load);
  }

  /** Admits or refuses a request; put around the middleware of groups and routes. */
  around(run: Handler): Handler {
    const limiter = this.#limiter;
    const { overload, queue } = this.admissions;
    return (ctx) => {
      const nowMs = monotonicNow();
      const { deadlineMs } = ctx;
      const exceeded = overload.limits?.exceeded;
      if (exceeded !== undefined || deadlineMs <= nowMs || !limiter.admits(nowMs, deadlineMs - nowMs)) {
        const refusal = this.#refuse(exceeded ?? (deadlineMs <= nowMs ? 'deadline' : 'queue'));
        if (refusal !== undefined) return refusal;
      }
      const { req, body } = ctx.exchange;
      // Until the body has arrived, the request waits for its client, not in a queue.
      const isArriving = body !== null && !req.complete;
      const ticket = isArriving ? null : limiter.begin(nowMs, deadlineMs - nowMs);
      const admission = (ctx.admission = { limiter, deadlineMs, ticket, isHeld: false, isOver: false });
      if (isArriving) req.once('end', () => begin(admission, monotonicNow()));
      queue.arrivals += 1;
      return queue.isBusy ? this.#runLater(ctx, admission, run) : this.#run(ctx, admission, run, nowMs);
    };
  }

  /** Refuses a request whose caller no longer waits; put around the handler only. */
  inTime<Input, Result>(
    handler: (ctx: Context, input: Input) => Result,
  ): (ctx: Context, input: Input) => Result | Error {
    return (ctx, input) => {
      const isLate = ctx.admission !== null && ctx.admission.deadlineMs <= monotonicNow();
      return (isLate ? this.admissions.refuse(this.route.path, 'deadline') : undefined) ?? handler(ctx, input);
    };
  }

  #refuse(reason: Reason): Error | undefined {
    if (reason === 'queue') this.admissions.overload.follow(this.route, this.#limiter);
    return this.admissions.refuse(this.route.path, reason);
  }

  #run(ctx: Context, admission: Admission, run: Handler, startedAtMs: number): HandlerResult | Promise<HandlerResult> {
    let result: HandlerResult | Promise<HandlerResult>;
    try {
      result = run(ctx);
    } catch (thrown) {
      end(admission, thrown, monotonicNow());
      // To return an error is to raise it, and costs far less than to throw it again. A returned Proxy is a value.
      if (isNativeError(thrown)) return thrown;
      throw thrown;
    }
    const nowMs = monotonicNow();
    if (nowMs - startedAtMs > NOTICED_MS) this.admissions.queue.spend(nowMs - startedAtMs);
    if (isThenable(result)) return follow(admission, result);
    end(admission, result, nowMs);
    return result;
  }

  #runLater(ctx: Context, admission: Admission, run: Handler): Promise<HandlerResult> {
    const { AsyncResource } = builtin('node:async_hooks');
    return new Promise((resolve, reject) => {
      const start = (): void => {
        try {
          const nowMs = monotonicNow();
          const late = admission.deadlineMs <= nowMs ? this.#refuse('deadline') : undefined;
          const answer = ctx.exchange.isGone ? clientLeft : late === undefined ? run : (): Error => late;
          resolve(this.#run(ctx, admission, answer, nowMs));
        } catch (thrown) {
          reject(thrown as Error);
        }
      };
      this.admissions.queue.add(this.#lane, AsyncResource.bind(start));
    });
  }
}

/** Answers in place of a handler whose client has left before its turn; nobody receives it. */
export function clientLeft(): Error {
  return new Error('the client has left');
}

/** Put around the handler of a route with a `timeout`, inside the time limit: the handler counts until it ends. */
export const hold: Middleware = ({ admission }, next) => {
  const replied = next();
  if (admission === null) return replied;
  admission.isHeld = true;
  void replied.then((value) => release(admission, value));
  return replied;
};

/** The body of a request has arrived. */
function begin(admission: Admission, nowMs: number): void {
  if (!admission.isOver) admission.ticket = admission.limiter.begin(nowMs, admission.deadlineMs - nowMs);
}

/** Ends a request when the promise of its handler settles. */
function follow(admission: Admission, result: PromiseLike<unknown>): Promise<HandlerResult> {
  // Each call of `then` would begin anew what is not a promise, such as a query of knex.
  const promise = (result instanceof Promise ? result : Promise.resolve(result)) as Promise<HandlerResult>;
  const settle = (outcome: unknown): void => end(admission, outcome, monotonicNow());
  promise.then(settle, settle);
  return promise;
}
