/* Learns about the requests of a route: how long they take without a queue, and how long their callers wait. */

import { MAX_TIMEOUT_MS } from '../base/deadline.js';

/** In this time, in ms, the usual time may double: services change, but a queue of minutes must not look usual. */
const DOUBLING_MS = 3_600_000;
/** Minimum and maximum of the ages of clients that left: fewer may be chance. */
const MIN_AGES = 5;
const MAX_AGES = 15;
/** Ages count for so long, in ms, from one peak to the next. */
const RECENT_MS = 60_000;
/** Resolution of a quantile, in ms: shorter times are equal, because of the clock and the turns of the event loop. */
const MIN_MS = 1;
/** Part of a median by which one time moves it, once there have been 50; other quantiles rise and fall unequally. */
const MIN_STEP = 0.02;
/** Number of times after which an estimate no longer depends on the first of them. */
const SETTLED = 10;
/** Requests over which the mean queue is taken, so that it follows the load of the last seconds or minutes. */
const MEAN_OF = 500;
/** A request that takes this many usual times or more is slow for another reason than chance. */
export const LONG = 2;
/** After one time, a quantile may be higher than its estimate by this many estimates; with more times, by fewer. */
const DOUBT = 2.5;

/** A quantile of recent times, in constant space: each time moves the estimate by a small part of itself. */
export class Quantile {
  /** Times from the first finite one on. */
  count = 0;
  /** Infinity before the first finite time, and {@link MAX_TIMEOUT_MS} at most afterwards. */
  ms: number = Infinity;

  /** @param share of the times that are below: 0.5 for the median */
  constructor(readonly share: number) {}

  /** @param ms may be infinite, for a time without an end */
  add(ms: number): void {
    if (ms === Infinity && this.count === 0) return;
    this.count += 1;
    const step = Math.max(MIN_STEP, 1 / this.count) * 2;
    if (this.count === 1) this.ms = Math.min(MAX_TIMEOUT_MS, Math.max(MIN_MS, ms));
    else if (ms > this.ms) this.ms = Math.min(ms, MAX_TIMEOUT_MS, this.ms * (1 + step * this.share));
    else this.ms = Math.max(MIN_MS, ms, this.ms * (1 - step * (1 - this.share)));
  }
}

/**
 * Learns how long the requests of a route take without a queue. Only requests count that began with no more requests
 * before them than the mean: a queue that is there from the first request on, or builds up slowly, must not look usual.
 */
export class UsualTime {
  /** In ms; Infinity before the first request. */
  ms = Infinity;
  /** A time, in ms, that no request takes without a queue. The fewer times are known, the longer it is. */
  longMs = Infinity;
  /** False while it is the time of the first requests to end, the quick ones; true after 100 times at the latest. */
  isKnown = true;
  /** The part of the latest times that was longer. */
  #longShare = 0;
  readonly #times = new Quantile(0.75);
  #addedAtMs = 0;
  #requests = 0;
  #meanAhead = 0;

  /** A request arrived. @param ahead requests before it @returns whether to add its time */
  expect(ahead: number): boolean {
    const isCounted = ahead <= this.#meanAhead;
    if (this.#requests < MEAN_OF) this.#requests += 1;
    this.#meanAhead += (ahead - this.#meanAhead) / this.#requests;
    return isCounted;
  }

  add(nowMs: number, tookMs: number): void {
    this.#longShare += (Number(tookMs > this.longMs) - this.#longShare) / SETTLED;
    this.#times.add(tookMs);
    const { count, ms } = this.#times;
    const risenMs = count > SETTLED ? this.ms * 2 ** ((nowMs - this.#addedAtMs) / DOUBLING_MS) : Infinity;
    this.#addedAtMs = nowMs;
    this.isKnown = this.#longShare < 0.5 || count > 10 * SETTLED;
    // By chance the estimate is far too low at times, most of all in the beginning.
    this.ms = count < SETTLED ? ms : Math.min(risenMs, (1 + DOUBT / count) * ms);
    this.longMs = (LONG + DOUBT / Math.sqrt(count)) * this.ms;
  }
}

/** Learns how long callers wait: as their deadlines and the route's timeout say, or until many of them disconnected. */
export class Patience {
  /** How long the callers of requests wait, in ms; Infinity without a deadline and a timeout. */
  readonly stated: Quantile = new Quantile(0.25);
  readonly #ages: { readonly atMs: number; readonly ms: number }[] = [];

  /** A client disconnected from a request of that age. */
  abandon(nowMs: number, ageMs: number): void {
    this.#ages.push({ atMs: nowMs, ms: ageMs });
    if (this.#ages.length > MAX_AGES) this.#ages.shift();
  }

  /**
   * @param outcomes number of recent requests: a tenth of them, from 5 to 15, must be abandoned for ages to count
   * @returns Infinity without deadlines and disconnects; `firmMs` also if clients left at very different ages
   */
  of(nowMs: number, outcomes: number): { readonly ms: number; readonly firmMs: number } {
    const recent = this.#ages.filter(({ atMs }) => nowMs - atMs < RECENT_MS).map(({ ms }) => ms).sort((a, b) => a - b);
    const ms = this.stated.ms < MAX_TIMEOUT_MS ? this.stated.ms : Infinity;
    if (recent.length < Math.max(MIN_AGES, Math.min(MAX_AGES, 0.1 * outcomes))) return { ms, firmMs: ms };
    const at = (share: number): number => recent[Math.floor(share * (recent.length - 1))] as number;
    return { ms: Math.min(ms, at(0.5)), firmMs: at(0.9) < 1.2 * at(0.1) ? Math.min(ms, at(0.5)) : ms };
  }
}
