/* Reports each request of a route to its limiter, and refuses the requests that the limiter does not admit. */

import { builtin } from '../base/builtin.js';
import { monotonicNow } from '../base/clock.js';
import { Context, type Handler, type HandlerResult, type Middleware } from '../http/context.js';
import type { Exchange, Witness } from '../http/exchange.js';
import { isThenable, Reply } from '../http/reply.js';
import type { Route } from '../routing/router.js';
import type { Overload } from './overload.js';
import { RouteLimiter, type Ending, type Ticket } from './route-limiter.js';
import type { Lane } from './run-queue.js';

/** The guard of one route. */
export class RouteGuard {
  readonly #limiter = new RouteLimiter();
  readonly #lane: Lane = [];

  constructor(
    readonly overload: Overload,
    readonly route: Route,
  ) {}

  /** Admits or refuses a request; put around the middleware of groups and routes. */
  around(run: Handler): Handler {
    const { overload, route } = this;
    const limiter = this.#limiter;
    return (ctx) => {
      overload.queue.arrivals += 1;
      const nowMs = monotonicNow();
      const { deadlineMs = Infinity } = ctx;
      const patienceMs = deadlineMs - nowMs;
      const reason = overload.exceeded ?? (limiter.admits(nowMs, patienceMs) ? undefined : 'queue');
      if (reason !== undefined) {
        if (reason === 'queue') overload.follow(route, limiter);
        const error = overload.refuse(route.path, reason);
        if (error !== undefined) return error;
      }
      const exchange = Context.exchangeOf(ctx);
      const admission = new Admission(limiter);
      exchange.witness = admission;
      // Until the body has arrived, the request waits for its client, not in a queue.
      if (exchange.hasBody && !exchange.req.complete)
        exchange.req.once('end', () => admission.begin(monotonicNow(), patienceMs));
      else admission.begin(nowMs, patienceMs);
      if (overload.queue.isBusy) return this.#runLater(ctx, exchange, admission, run);
      return this.#run(ctx, admission, run, nowMs);
    };
  }

  /** Refuses a request whose caller no longer waits; put around the handler only. */
  inTime<Input, Result>(
    handler: (ctx: Context, input: Input) => Result,
  ): (ctx: Context, input: Input) => Result | Error {
    return (ctx, input) => {
      const { deadlineMs } = ctx;
      const isLate = deadlineMs !== undefined && monotonicNow() >= deadlineMs;
      return (isLate ? this.overload.refuse(this.route.path, 'deadline') : undefined) ?? handler(ctx, input);
    };
  }

  #run(ctx: Context, admission: Admission, run: Handler, startedAtMs: number): HandlerResult | Promise<HandlerResult> {
    let result: HandlerResult | Promise<HandlerResult>;
    try {
      result = run(ctx);
    } catch (thrown) {
      admission.end(endingOf(thrown), monotonicNow());
      // To return an error is to raise it, and costs far less than to throw it again.
      if (thrown instanceof Error) return thrown;
      throw thrown;
    }
    const nowMs = monotonicNow();
    this.overload.queue.spend(nowMs - startedAtMs);
    if (!isThenable(result)) {
      admission.end(endingOf(result), nowMs);
      return result;
    }
    // Each call of `then` would begin anew what is not a promise, such as a query of knex.
    const promise = (result instanceof Promise ? result : Promise.resolve(result)) as Promise<HandlerResult>;
    const end = (outcome: unknown): void => admission.end(endingOf(outcome), monotonicNow());
    promise.then(end, end);
    return promise;
  }

  #runLater(ctx: Context, exchange: Exchange, admission: Admission, run: Handler): Promise<HandlerResult> {
    const { AsyncResource } = builtin('node:async_hooks');
    return new Promise((resolve, reject) => {
      const start = (): void => {
        const hasLeft = exchange.state === 'left' || exchange.state === 'over';
        // During an episode it is known that the work of requests that nobody waits for is what makes the others late.
        const isPointless = hasLeft && this.#limiter.episode !== null;
        try {
          resolve(this.#run(ctx, admission, isPointless ? failLeft : run, monotonicNow()));
        } catch (thrown) {
          reject(thrown as Error);
        }
      };
      this.overload.queue.add(this.#lane, AsyncResource.bind(start));
    });
  }
}

function failLeft(): Error {
  return new Error('the client has left');
}

/** Put around the handler of a route with a `timeout`, inside the time limit: the handler counts until it ends. */
export const hold: Middleware = (ctx, next) => {
  const { witness } = Context.exchangeOf(ctx);
  const replied = next();
  if (!(witness instanceof Admission)) return replied;
  witness.isHeld = true;
  void replied.then((value) => witness.release(endingOf(value)));
  return replied;
};

/** One admitted request. */
class Admission implements Witness {
  isHeld = false;
  #ticket: Ticket | null = null;
  #isOver = false;

  constructor(readonly limiter: RouteLimiter) {}

  begin(nowMs: number, patienceMs: number): void {
    if (!this.#isOver) this.#ticket = this.limiter.begin(nowMs, patienceMs);
  }

  /** The reply is known, or the handler that outlived a 504 has ended. */
  end(ending: Ending, nowMs: number): void {
    if (this.#isOver) return;
    this.#isOver = !this.isHeld;
    if (this.#ticket === null) return;
    if (this.isHeld) this.limiter.abandon(this.#ticket, nowMs, true);
    else this.limiter.end(this.#ticket, nowMs, ending);
  }

  /** Nobody can receive the reply any more. */
  left(): void {
    if (!this.#isOver && this.#ticket !== null) this.limiter.abandon(this.#ticket, monotonicNow());
  }

  /** A handler has written the head of the reply itself; what follows is a stream. */
  headSent(): void {
    this.release('done');
  }

  /** Ends, although a handler may hold it. */
  release(ending: Ending): void {
    this.isHeld = false;
    this.end(ending, monotonicNow());
  }
}

/** An error with 4xx may be quick, and says nothing about the queue; an error with 5xx may have done no work at all. */
function endingOf(result: unknown): Ending {
  if (typeof result !== 'object' || result === null) return 'done';
  try {
    const status = result instanceof Reply ? result.status : result instanceof Error ? statusOf(result) : 200;
    return status < 400 ? 'done' : status < 500 ? 'failed' : 'cancelled';
  } catch {
    // Looking at the value throws, for example at a Proxy: the reply is the fixed 500.
    return 'cancelled';
  }
}

function statusOf(error: Error): number {
  return 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : 500;
}
