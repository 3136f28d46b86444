/* Overload protection of one application: its options, the number of refused requests, and its log. */

import { clearInterval, monotonicNow, monotonicOrigin, setInterval } from '../base/clock.js';
import { logSafely, type Logger } from '../base/log.js';
import { BOOLEAN, converted, isRecord, option, resolve, wholeNumber } from '../base/options-check.js';
import type { OptionTable, Resolved } from '../base/options-check.js';
import type { Priority } from '../endpoint/route-options.js';
import type { Counter } from '../metrics/counter.js';
import type { Registry } from '../metrics/registry.js';
import { ProcessLimits } from '../process/process-limits.js';
import type { Route } from '../routing/router.js';
import { SHORT_SHARE, type Episode, type RouteLimiter } from './route-limiter.js';
import { SharedLoad } from './trial.js';

/** Which requests are refused because there are too many. */
export interface OverloadOptions {
  /**
   * Limits of the process: while one is exceeded, requests are refused with 503, except monitoring endpoints. Default:
   * no such limits; `{}` sets both to their defaults. `false` also turns off the refusal of requests that would be
   * answered too late.
   */
  loadShedding?: LoadSheddingOptions | false | undefined;
}

/** @internal */
export const OVERLOAD = {
  loadShedding: converted(
    { accepts: (value) => value === false || isRecord(value), give: 'false or an object' },
    resolveLoadShedding,
  ),
} satisfies OptionTable<OverloadOptions>;

/** Limits of the process; while one is exceeded, requests are refused with 503. */
export interface LoadSheddingOptions {
  /** Whether requests are only counted and logged instead of refused. Default: false. */
  observe?: boolean | undefined;
  /** Maximum ms that the event loop may be late. Default: 500. */
  maxEventLoopDelay?: number | undefined;
  /** Maximum memory of the process, in percent of the cgroup's limit, else of the machine's memory. Default: 95. */
  maxMemoryPercent?: number | undefined;
  /** Seconds after which clients may come back, sent as `retry-after`. Default: 1. */
  retryAfter?: number | undefined;
}

const LOAD_SHEDDING = {
  observe: option(BOOLEAN, false),
  maxEventLoopDelay: option(wholeNumber(1), 500),
  maxMemoryPercent: option(wholeNumber(1, 100), 95),
  retryAfter: option(wholeNumber(0), 1),
} satisfies OptionTable<LoadSheddingOptions>;

/** The option with its defaults, and whether the limits of the process apply. @internal */
export type LoadShedding = Resolved<typeof LOAD_SHEDDING> & { readonly limitsProcess: boolean };

/** @returns null if nothing may be refused */
function resolveLoadShedding(given?: LoadSheddingOptions | false): LoadShedding | null {
  if (given === false) return null;
  return { ...resolve('loadShedding', given ?? {}, LOAD_SHEDDING), limitsProcess: given !== undefined };
}

/** The reason for a refusal, as a label. */
export type Reason = 'queue' | 'deadline' | 'event_loop' | 'memory';

/** Routes of the lowest rank are refused first. */
const RANKS: Readonly<Record<Priority, number>> = { low: 0, normal: 1, high: 2 };

/** How often episodes are looked after, in ms. */
const TICK_MS = 100;

/** Counts refusals, makes their errors, and looks after the episodes of routes. @internal */
export class Overload {
  readonly #logger: Logger;
  readonly #count: Counter<'route' | 'reason'>;
  /** The load that the limiters of all routes share. */
  readonly load = new SharedLoad(monotonicOrigin);
  /** The limits of the process, if they apply. */
  readonly limits: ProcessLimits | null;
  readonly #episodes = new Map<RouteLimiter, Readonly<{ route: Route; rank: number; episode: Episode }>>();
  #timer: NodeJS.Timeout | undefined;

  /** @param memoryPercent the memory of the process, in percent of the memory that it may use */
  constructor(readonly options: LoadShedding, registry: Registry, logger: Logger, memoryPercent: () => number) {
    this.#logger = logger;
    this.#count = registry.counter({
      name: options.observe ? 'http_requests_refusable_total' : 'http_requests_refused_total',
      help: `Requests that ${options.observe ? 'would have been' : 'were'} refused, by route and reason.`,
      labelNames: ['route', 'reason'],
    });
    this.limits = options.limitsProcess ? new ProcessLimits(options, memoryPercent, this.#log) : null;
  }

  /**
   * Counts a request that may be refused.
   *
   * @param route its path as registered; empty without a route
   * @returns whether it is refused; false if refusals are only observed
   */
  refuses(route: string, reason: Reason): boolean {
    this.#count.inc({ route, reason });
    return !this.options.observe;
  }

  /** A request of a route does not fit into its queue. The first such request of an episode is logged. */
  follow(route: Route, limiter: RouteLimiter): void {
    const { episode } = limiter;
    if (episode === null || this.#episodes.has(limiter)) return;
    this.#episodes.set(limiter, { route, rank: RANKS[route.options.priority ?? 'normal'], episode });
    this.#timer ??= setInterval(this.#tick, TICK_MS).unref();
    this.#log(true, {
      route: `${route.method} ${route.path}`,
      patience_ms: Math.round(episode.patienceMs),
      usual_ms: Math.round(limiter.usual.ms),
      requests_in_flight: limiter.inFlight,
      requests_per_second: Math.round(episode.ratePerMs * 1000),
      limit: Math.round(episode.limit),
    });
  }

  close(): void {
    this.limits?.close();
    for (const limiter of this.#episodes.keys()) limiter.episode = null;
    this.#tick();
  }

  /** Lets the limiters know that time has passed, and logs the episodes that are over. */
  readonly #tick = (): void => {
    const nowMs = monotonicNow();
    let crowdedRank = -1;
    let openRank = Infinity;
    for (const [{ ahead }, { rank, episode }] of this.#episodes) {
      if (ahead > SHORT_SHARE * episode.limit) crowdedRank = Math.max(crowdedRank, rank);
      if (episode.limit > 0) openRank = Math.min(openRank, rank);
    }
    for (const [limiter, { route, rank, episode }] of this.#episodes) {
      // The next rank yields once the ranks below are closed.
      limiter.isYielding = rank < crowdedRank && rank <= openRank;
      limiter.tick(nowMs);
      if (limiter.episode === episode) continue;
      this.#episodes.delete(limiter);
      limiter.isYielding = false;
      const seconds = Math.round((nowMs - episode.beganAtMs) / 100) / 10;
      this.#log(false, { route: `${route.method} ${route.path}`, refused: episode.refused, seconds });
    }
    if (this.#episodes.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  };

  readonly #log = (isOverloaded: boolean, figures: object): void => {
    const verb = this.options.observe ? 'would be' : 'are';
    if (isOverloaded) logSafely(this.#logger, 'warn', figures, `overloaded: requests ${verb} refused`);
    else logSafely(this.#logger, 'info', figures, `no longer overloaded: no more requests ${verb} refused`);
  };
}
