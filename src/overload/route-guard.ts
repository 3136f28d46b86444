/*
 * Reports each request of a route to its limiter, and refuses the requests that the limiter does not admit.
 */

import { builtin } from '../base/builtin.js';
import { monotonicNow } from '../base/clock.js';
import { Context, type Handler, type HandlerResult, type Middleware } from '../http/context.js';
import type { Exchange, Witness } from '../http/exchange.js';
import { isThenable, Reply } from '../http/reply.js';
import type { Reason } from './refusals.js';
import { RouteLimiter, type Ending, type Ticket } from './route-limiter.js';
import { Lane, type RunQueue } from './run-queue.js';

/** The parts of the application's protection that a guard needs. */
export interface GuardOwner {
  readonly queue: RunQueue;
  /** The limit of the process that is exceeded, if any. */
  readonly exceeded: Reason | undefined;
  /** @returns the error of the refusal; undefined if the request has to run all the same */
  refuse(guard: RouteGuard, reason: Reason): Error | undefined;
}

/** The guard of one route. */
export class RouteGuard {
  readonly limiter: RouteLimiter = new RouteLimiter();
  readonly #owner: GuardOwner;
  readonly #lane = new Lane();
  /** Requests whose handlers end by themselves, after a 504. */
  readonly #held = new WeakMap<Context, Admission>();

  constructor(
    owner: GuardOwner,
    readonly method: string,
    readonly path: string,
    readonly priority: number,
    /** Whether a handler may outlive its reply, because the route has a `timeout`. */
    readonly isTimed: boolean,
  ) {
    this.#owner = owner;
  }

  /** Goes around the middleware of groups and routes. */
  around(run: Handler): Handler {
    const { limiter } = this;
    const owner = this.#owner;
    return (ctx) => {
      owner.queue.arrivals += 1;
      const nowMs = monotonicNow();
      const { deadlineMs = Infinity } = ctx;
      const patienceMs = deadlineMs - nowMs;
      const reason = owner.exceeded ?? (limiter.admits(nowMs, patienceMs) ? undefined : 'queue');
      if (reason !== undefined) {
        const error = owner.refuse(this, reason);
        if (error !== undefined) return error;
      }
      const exchange = Context.exchangeOf(ctx);
      const admission = new Admission(limiter, patienceMs);
      exchange.witness = admission;
      if (this.isTimed) this.#held.set(ctx, admission);
      // Until the body has arrived, the request waits for its client, not in a queue.
      if (exchange.hasBody && !exchange.req.complete) exchange.req.once('end', () => admission.begin(monotonicNow()));
      else admission.begin(nowMs);
      return owner.queue.isBusy ? this.#runLater(ctx, exchange, admission, run) : this.#run(ctx, admission, run, nowMs);
    };
  }

  /** Goes around the handler of a route with a `timeout`, inside of it: the handler counts until it ends. */
  readonly hold: Middleware = (ctx, next) => {
    const admission = this.#held.get(ctx);
    const replied = next();
    if (admission === undefined) return replied;
    admission.isHeld = true;
    void replied.then((value) => {
      admission.isHeld = false;
      admission.end(endingOf(value), monotonicNow());
    });
    return replied;
  };

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
    this.#owner.queue.spend(nowMs - startedAtMs);
    if (!isThenable(result)) {
      admission.end(endingOf(result), nowMs);
      return result;
    }
    // Each call of `then` would begin anew what is not a promise, such as a query of knex.
    const promise = (result instanceof Promise ? result : Promise.resolve(result)) as Promise<HandlerResult>;
    promise.then(
      (value) => admission.end(endingOf(value), monotonicNow()),
      (thrown: unknown) => admission.end(endingOf(thrown), monotonicNow()),
    );
    return promise;
  }

  #runLater(ctx: Context, exchange: Exchange, admission: Admission, run: Handler): Promise<HandlerResult> {
    const { AsyncResource } = builtin('node:async_hooks');
    return new Promise((resolve, reject) => {
      const start = (): void => {
        // During an episode it is known that the work of requests that nobody waits for is what makes the others late.
        if ((exchange.state === 'left' || exchange.state === 'over') && this.limiter.episode !== null) {
          admission.end('cancelled', monotonicNow());
          reject(new Error('the client has left'));
          return;
        }
        try {
          resolve(this.#run(ctx, admission, run, monotonicNow()));
        } catch (thrown) {
          reject(thrown as Error);
        }
      };
      this.#owner.queue.add(this.#lane, AsyncResource.bind(start));
    });
  }
}

/** One admitted request. */
class Admission implements Witness {
  isHeld = false;
  readonly #limiter: RouteLimiter;
  readonly #patienceMs: number;
  #ticket: Ticket | null = null;
  #isOver = false;

  constructor(limiter: RouteLimiter, patienceMs: number) {
    this.#limiter = limiter;
    this.#patienceMs = patienceMs;
  }

  begin(nowMs: number): void {
    if (!this.#isOver) this.#ticket = this.#limiter.begin(nowMs, this.#patienceMs);
  }

  /** The reply is known, or the handler that outlived a 504 has ended. */
  end(ending: Ending, nowMs: number): void {
    const ticket = this.#ticket;
    if (this.#isOver || (this.isHeld && ticket === null)) return;
    if (this.isHeld) this.#limiter.abandon(ticket as Ticket, nowMs, true);
    else {
      this.#isOver = true;
      if (ticket !== null) this.#limiter.end(ticket, nowMs, ending);
    }
  }

  /** The client has disconnected. */
  left(): void {
    if (!this.#isOver && this.#ticket !== null) this.#limiter.abandon(this.#ticket, monotonicNow());
  }

  /** A handler has written the head of the reply itself; what follows is a stream. */
  headSent(): void {
    this.isHeld = false;
    this.end('done', monotonicNow());
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
