/*
 * Overload protection of one application, around its routes.
 */

import { clearInterval, monotonicNow, setInterval } from '../base/clock.js';
import { logSafely, type Logger } from '../base/log.js';
import type { Priority } from '../endpoint/route-options.js';
import type { Context, Handler } from '../http/context.js';
import type { RequestMetrics } from '../monitor/request-metrics.js';
import type { LoadShedding } from './options.js';
import * as processLimits from './process-limits.js';
import type { ProcessLimits } from './process-limits.js';
import { Refusals, type Reason } from './refusals.js';
import { RouteGuard, type GuardOwner } from './route-guard.js';
import type { Episode } from './route-limiter.js';
import { RunQueue } from './run-queue.js';

/** The parts of the application that protection reads. */
export interface OverloadSources {
  readonly requests: RequestMetrics;
  /** The memory of the process, in percent of the memory that it may use. */
  readonly memoryPercent: () => number;
  readonly logger: Logger;
}

/** The parts of a route that protection reads. */
export interface GuardedRoute {
  readonly method: string;
  readonly path: string;
  readonly options: { readonly timeout: number | undefined; readonly priority: Priority };
}

/** Routes of a lower rank are refused first. */
const RANKS: Readonly<Record<Priority, number>> = { low: 0, normal: 1, high: 2 };

/** How often episodes are looked after, in ms. */
const TICK_MS = 100;
/** A route is short of room while its queue takes up this part of its limit. */
const SHORT_SHARE = 0.5;

/** Decides which requests run. */
export class Overload implements GuardOwner {
  readonly queue: RunQueue = new RunQueue();
  readonly #observes: boolean;
  readonly #refusals: Refusals;
  readonly #limits: ProcessLimits | null;
  readonly #logger: Logger;
  /** Routes with an episode. */
  readonly #overloaded = new Map<RouteGuard, Episode>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LoadShedding, { requests, memoryPercent, logger }: OverloadSources) {
    this.#observes = options.observe;
    this.#refusals = new Refusals(requests, options);
    this.#limits = options.limitsProcess ? new processLimits.ProcessLimits(options, memoryPercent, logger) : null;
    this.#logger = logger;
  }

  get exceeded(): Reason | undefined {
    return this.#limits?.exceeded;
  }

  /** Goes around a route, and refuses requests before the middleware of its group runs. */
  guard({ method, path, options }: GuardedRoute): RouteGuard {
    return new RouteGuard(this, method, path, RANKS[options.priority], options.timeout !== undefined);
  }

  /**
   * Goes around a mount, or the function that answers 404 and 405: only the limits of the process apply.
   *
   * @param label the value of the label `route`
   */
  guardOthers(label: string, run: Handler): Handler {
    const limits = this.#limits;
    if (limits === null) return run;
    return (ctx) => {
      const { exceeded } = limits;
      return (exceeded === undefined ? undefined : this.#refusals.refuse(label, exceeded)) ?? run(ctx);
    };
  }

  /** Goes around the handler only, and refuses a request whose caller no longer waits. */
  inTime<Input, Result>(
    path: string,
    handler: (ctx: Context, input: Input) => Result,
  ): (ctx: Context, input: Input) => Result | Error {
    return (ctx, input) => {
      const { deadlineMs } = ctx;
      const isLate = deadlineMs !== undefined && monotonicNow() >= deadlineMs;
      return (isLate ? this.#refusals.refuse(path, 'deadline') : undefined) ?? handler(ctx, input);
    };
  }

  refuse(guard: RouteGuard, reason: Reason): Error | undefined {
    const { episode } = guard.limiter;
    if (reason === 'queue' && episode !== null && !this.#overloaded.has(guard)) this.#begin(guard, episode);
    return this.#refusals.refuse(guard.path, reason);
  }

  close(): void {
    this.#limits?.close();
    clearInterval(this.#timer);
  }

  /** The first request of an episode is refused. */
  #begin(guard: RouteGuard, episode: Episode): void {
    this.#overloaded.set(guard, episode);
    this.#timer ??= setInterval(this.#tick, TICK_MS).unref();
    const { limiter } = guard;
    const figures = {
      route: `${guard.method} ${guard.path}`,
      patience_ms: Math.round(episode.patienceMs),
      usual_ms: Math.round(limiter.usualMs),
      requests_in_flight: limiter.inFlight,
      requests_per_second: Math.round(episode.ratePerMs * 1000),
      limit: Math.round(episode.limit),
    };
    logSafely(this.#logger, 'warn', figures, `overloaded: requests ${this.#observes ? 'would be' : 'are'} refused`);
  }

  /** Lets the limiters know that time has passed, and logs the episodes that are over. */
  readonly #tick = (): void => {
    const nowMs = monotonicNow();
    const short = Math.max(-1, ...[...this.#overloaded.keys()].filter(isShort).map(({ priority }) => priority));
    for (const [guard, episode] of this.#overloaded) {
      guard.limiter.isYielding = guard.priority < short;
      guard.limiter.tick(nowMs);
      if (guard.limiter.episode === episode) continue;
      this.#overloaded.delete(guard);
      guard.limiter.isYielding = false;
      const figures = {
        route: `${guard.method} ${guard.path}`,
        refused: episode.refused,
        seconds: Math.round((nowMs - episode.beganAtMs) / 100) / 10,
      };
      const verb = this.#observes ? 'would be' : 'are';
      logSafely(this.#logger, 'info', figures, `no longer overloaded: no more requests ${verb} refused`);
    }
    if (this.#overloaded.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  };
}

function isShort({ limiter }: RouteGuard): boolean {
  return limiter.episode !== null && limiter.ahead > SHORT_SHARE * limiter.episode.limit;
}
