/*
 * Finds out whether a limit helps: the limit alternates between low and high, like 5 and 8, and times must follow.
 *
 * With a queue, half as many requests again take half as long again. In a service that is merely slow they take as
 * long as before, so the limit refuses requests for nothing. Everything that has a limit, routes of one process and
 * processes that share a database, rises and falls at the same time, by the clock: together they are one queue.
 */

/** Fewer requests are chance: in a mean under the low or the high limit, or more in flight than there were. */
export const ENOUGH = 8;
/** How much likelier it must be that a limit helps, as a logarithm: by chance it is wrong in one of 1,000 trials. */
const SURE = 7;
/** The same, if it does not help: an error in one of 150. */
const SURE_NOT = -5;
/** Uncertainty that more requests do not remove: the service changes meanwhile. */
const DRIFT = 0.1;
/** Maximum cohorts of a trial. If they leave much doubt, it has failed: a healthy service has lost enough by then. */
const MAX_COHORTS = 12;
/** Times count up to this part of the patience, so that the answer is known soon after. */
const CAP_SHARE = 1.5;

/** The routes of a process that have been overloaded: they may wait for the same thing. */
export class SharedLoad {
  readonly routes = new Set<{ readonly inFlight: number }>();

  /** @param originMs returns when the clock of the limiters was 0, in ms since the Unix epoch */
  constructor(readonly originMs: () => number = () => 0) {}

  get inFlight(): number {
    return [...this.routes].reduce((sum, { inFlight }) => sum + inFlight, 0);
  }
}

/** Requests that were admitted under the same limit. */
export class Cohort {
  admitted = 0;
  open = 0;
  done = 0;
  /** Sums over its requests: how many ran on the route and on all routes, and their times. */
  ahead = 0;
  all = 0;
  ms = 0;
  squares = 0;
  closedAtMs: number = Infinity;

  constructor(readonly isHigh: boolean, readonly capMs: number) {}

  begin(ahead: number, all: number): void {
    this.ahead += ahead;
    // Half counts as it begins, half as it ends: later requests slow what shares its work, too.
    this.all += all / 2;
    this.admitted += 1;
    this.open += 1;
  }

  /** @param tookMs Infinity if the request shows nothing */
  end(tookMs: number, all: number): void {
    this.open -= 1;
    this.all += all / 2;
    if (tookMs === Infinity) return;
    const ms = Math.min(tookMs, this.capMs);
    this.ms += ms;
    this.squares += ms * ms;
    this.done += 1;
  }

  add(other: Cohort): void {
    for (const key of ['ahead', 'all', 'admitted', 'ms', 'squares', 'done'] as const) this[key] += other[key];
  }

  /** Means over its requests, with the square of the uncertainty of the time. */
  get means(): { readonly ms: number; readonly variance: number; readonly ahead: number; readonly all: number } {
    const ms = this.ms / this.done;
    const variance = Math.max(0, this.squares / this.done - ms ** 2) / this.done;
    return { ms, variance, ahead: this.ahead / this.admitted, all: this.all / this.admitted };
  }
}

/** One proof of a limit. */
export class Trial {
  /** Odd while limits are high; undefined while the queue of before is worked off, under a low limit and unjudged. */
  phase: number | undefined;
  readonly #low = new Cohort(false, 0);
  readonly #high = new Cohort(true, 0);
  /** Cohorts that are admitted completely, the first one first. */
  readonly #closed: Cohort[] = [];
  cohort: Cohort;
  #cohorts = 0;

  constructor(readonly beganAtMs: number, patienceMs: number) {
    this.cohort = new Cohort(false, CAP_SHARE * patienceMs);
  }

  /**
   * @param phase odd while limits are high
   * @returns whether the limit helps; undefined as long as it is not known
   */
  look(nowMs: number, phase: number, { inFlight, routes }: SharedLoad): boolean | undefined {
    if (phase !== this.phase && (this.phase !== undefined || this.cohort.done > 0)) {
      this.cohort.closedAtMs = nowMs;
      // Dead requests may have been before the first ones.
      if (this.phase !== undefined) this.#closed.push(this.cohort);
      this.phase = phase;
      this.cohort = new Cohort(phase % 2 === 1, this.cohort.capMs);
    }
    const cohort = this.#closed[0];
    if (cohort === undefined || (cohort.open > 0 && nowMs - cohort.closedAtMs < cohort.capMs)) return undefined;
    while (cohort.open > 0) cohort.end(cohort.capMs, inFlight);
    (cohort.isHigh ? this.#high : this.#low).add(cohort);
    this.#closed.shift();
    this.#cohorts += 1;
    const [more = 0, less = 0] = Math.min(this.#low.done, this.#high.done) < ENOUGH ? [] : this.#weigh();
    if (more > SURE) return true;
    // Where routes wait for the same thing, the load of only one of them misleads. Of one route, one measure is enough.
    if (less < SURE_NOT && more <= (routes.size > 1 ? SURE_NOT : SURE / 2)) return false;
    return this.#cohorts > MAX_COHORTS ? more > SURE / 2 : undefined;
  }

  /**
   * How much likelier it is that times follow the load than that they do not, negative if it is less likely: for the
   * load of the route and for the load of all routes, the higher one first.
   */
  #weigh(): readonly number[] {
    const [low, high] = [this.#low.means, this.#high.means];
    const meanMs = (low.ms + high.ms) / 2;
    const longer = (high.ms - low.ms) / meanMs;
    const doubt = (low.variance + high.variance) / meanMs ** 2;
    const weigh = (less: number, more: number): number => {
      const larger = (2 * (more - less)) / (more + less);
      return larger <= 0 ? 0 : (larger * (longer - larger / 2)) / (doubt + (DRIFT * larger) ** 2 + 1e-6);
    };
    return [weigh(low.ahead, high.ahead), weigh(low.all, high.all)].sort((a, b) => b - a);
  }
}
