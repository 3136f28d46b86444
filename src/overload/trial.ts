/*
 * Finds out whether a limit helps: the limit rises and falls by a third, and times must follow it.
 *
 * With a queue, half as many requests again take half as long again. In a service that is merely slow they take as
 * long as before, so the limit refuses requests for nothing. Everything that has a limit, routes of one process and
 * processes that share a database, rises and falls at the same time, by the clock: together they are one queue.
 */

/** Minimum requests under the low and under the high limit: a mean of fewer is chance. */
const ENOUGH = 8;
/** How much likelier it must be that a limit helps, as a logarithm: by chance it is wrong in one of 1,000 trials. */
const SURE = 7;
/** The same, if it does not help: an error in one of 150. */
const SURE_NOT = -5;
/** Uncertainty that more requests do not remove: the service changes meanwhile. */
const DRIFT = 0.1;
/** Maximum cohorts of a trial. If they leave a doubt, it has failed: a healthy service has lost enough by then. */
const MAX_COHORTS = 12;
/** Times count up to this part of the patience, so that the answer is known soon after. */
const CAP_SHARE = 1.5;

/** The routes of a process that have been overloaded: they may wait for the same thing. */
export class SharedLoad {
  readonly routes = new Set<{ readonly inFlight: number }>();

  /** @param originMs returns when the clock of the limiters was 0, in ms since the Unix epoch */
  constructor(readonly originMs: () => number = () => 0) {}

  get inFlight(): number {
    let sum = 0;
    for (const { inFlight } of this.routes) sum += inFlight;
    return sum;
  }
}

/** Requests that were admitted under the same limit. */
export class Cohort {
  admitted = 0;
  open = 0;
  done = 0;
  /** Sums over its requests: how many ran on the route and on all routes as each began, how many on all as it ended, its time. */
  ahead = 0;
  all = 0;
  allEnd = 0;
  ms = 0;
  squares = 0;
  closedAtMs: number = Infinity;

  constructor(
    readonly isHigh: boolean,
    readonly capMs: number,
  ) {}

  begin(ahead: number, all: number): void {
    this.ahead += ahead;
    this.all += all;
    this.admitted += 1;
    this.open += 1;
  }

  /** @param tookMs Infinity if the request shows nothing */
  end(tookMs: number, all: number): void {
    this.open -= 1;
    if (tookMs === Infinity) return;
    const ms = Math.min(tookMs, this.capMs);
    this.ms += ms;
    this.squares += ms * ms;
    this.allEnd += all;
    this.done += 1;
  }

  add(other: Cohort): void {
    for (const key of ['ahead', 'all', 'admitted', 'allEnd', 'ms', 'squares', 'done'] as const) this[key] += other[key];
  }

  /** Means over its requests, with the square of the uncertainty of the time. */
  get means(): { readonly ms: number; readonly variance: number; readonly ahead: number; readonly all: number } {
    const ms = this.ms / this.done;
    const variance = Math.max(0, this.squares / this.done - ms ** 2) / this.done;
    // The requests of all routes in the middle of its time: later ones slow what shares its work, too.
    const all = (this.all / this.admitted + this.allEnd / this.done) / 2;
    return { ms, variance, ahead: this.ahead / this.admitted, all };
  }
}

/** One proof of a limit. */
export class Trial {
  /** Whether the queue that was there before is worked off; until then the limit is high, and nothing is compared. */
  isBegun = false;
  readonly #low = new Cohort(false, 0);
  readonly #high = new Cohort(true, 0);
  /** Cohorts that are admitted completely, the first one first. */
  readonly #closed: Cohort[] = [];
  cohort: Cohort;
  #phase = NaN;
  #cohorts = 0;

  /** @param isRepeated whether the limit has helped before: then a doubt does not remove it */
  constructor(
    patienceMs: number,
    readonly isRepeated = false,
  ) {
    this.cohort = new Cohort(true, CAP_SHARE * patienceMs);
  }

  /**
   * @param phase odd while limits are high
   * @returns whether the limit helps; undefined as long as it is not known
   */
  look(nowMs: number, phase: number, { inFlight, routes }: SharedLoad): boolean | undefined {
    if (phase !== this.#phase && (this.isBegun || this.cohort.done > 0)) this.#turn(nowMs, phase);
    const cohort = this.#closed[0];
    if (cohort === undefined || (cohort.open > 0 && nowMs - cohort.closedAtMs < cohort.capMs)) return undefined;
    while (cohort.open > 0) cohort.end(cohort.capMs, inFlight);
    (cohort.isHigh ? this.#high : this.#low).add(cohort);
    this.#closed.shift();
    this.#cohorts += 1;
    if (Math.min(this.#low.done, this.#high.done) < ENOUGH) return undefined;
    const [more, less] = this.#weigh();
    if (more > SURE) return true;
    // Where routes wait for the same thing, the load of only one of them misleads.
    if (less < SURE_NOT && more <= (routes.size > 1 ? SURE_NOT : 0)) return false;
    return this.#cohorts > MAX_COHORTS ? this.isRepeated && more > 0 : undefined;
  }

  #turn(nowMs: number, phase: number): void {
    this.cohort.closedAtMs = nowMs;
    // Dead requests may have been before the first ones.
    if (this.isBegun) this.#closed.push(this.cohort);
    this.isBegun = true;
    this.#phase = phase;
    this.cohort = new Cohort(phase % 2 === 1, this.cohort.capMs);
  }

  /**
   * How much likelier it is that times follow the load than that they do not, negative if it is less likely: for the
   * load of the route and for that of all routes, the higher one first.
   */
  #weigh(): readonly [number, number] {
    const [low, high] = [this.#low.means, this.#high.means];
    const meanMs = (low.ms + high.ms) / 2;
    const longer = (high.ms - low.ms) / meanMs;
    const doubt = (low.variance + high.variance) / meanMs ** 2;
    const weigh = (less: number, more: number): number => {
      const larger = (2 * (more - less)) / (more + less);
      return larger <= 0 ? 0 : (larger * (longer - larger / 2)) / (doubt + (DRIFT * larger) ** 2 + 1e-6);
    };
    const [own, shared] = [weigh(low.ahead, high.ahead), weigh(low.all, high.all)];
    return [Math.max(own, shared), Math.min(own, shared)];
  }
}
