/*
 * Detects a queue that does not empty before one route, and then admits only the requests that will be done in time.
 *
 * Its caller reports requests and the time. It has no timer, and keeps a bounded number of figures.
 */

import { LONG, Patience, UsualTime } from './estimates.js';
import { isFailing, isGrowing, isStanding, rateOf, Slot, SLOT_MS, sumOf } from './slots.js';
import { ENOUGH, SharedLoad, Trial, type Cohort } from './trial.js';

/** 3 s of a busy route: as long as a standing queue is looked for. */
const MAX_SLOTS = 64;
/** From so many first requests is learnt how long requests take and callers wait; then one in four shows the same. */
const FIRST_LESSONS = 50;
const LESSON_EVERY = 4;
/** Maximum of such requests in a slot: on a busy route more of them would remember too short a time. */
const LESSONS = 8;
/** After this time, in ms, without an admission one request is admitted: it may show that the queue is gone. */
const PROBE_MS = 500;
/** Slow routes are not probed before so many requests could be done, or the probes would be too much for them. */
const PROBE_REQUESTS = 4;
/** A queue in which requests would wait for this part of the patience is too long: the rest is for what they take. */
const LATE_SHARE = 0.75;
/** The part of the time from usual time to patience that requests may take, under the low and the high limit. */
const TRIAL_SHARES = [0.5, 0.8] as const;
const PROVEN_SHARES = [0.45, 0.6] as const;
/** From this part of the high limit on, requests show what it does; before, the queue still fills. */
const FULL_SHARE = 0.9;
/** If a larger part of the latest 20 requests, or of some more, is late, fewer are admitted. */
const LATE_ENOUGH = 0.02;
const LATEST = 20;
/** Weight of the present rate in the rate by which requests are admitted, 20 times a second: 2.5 s are remembered. */
const RATE_WEIGHT = 0.02;
/** 10 s of a rate that falls in a trial: the more of a service that is only slow is refused, the less it does. */
const FALL_WEIGHT = 0.005;
/** A queue is worked off at the same rate under any limit: at less than this part of it, the limit is proved again. */
const PROVEN_RATE_SHARE = 0.67;
/** Minimum part of its queue that a route uses; a route that yields is closed when it has come down to this part. */
const MIN_SHARE = 0.02;
/** A queue is short while it takes up less than this part of its limit; an episode ends when it is for a while. */
export const SHORT_SHARE = 0.5;
/** With this many times the requests in flight that later requests do not overtake, the route does not queue. */
const OVERTAKEN = 3;
/** Time between trials, in ms, or in lengths of a trial that failed: it refuses 40 % of a service that is only slow. */
const WAIT_MS = 30_000;
const WAIT_TRIALS = 40;

/** The result of a request's handler: its work, an error that took no work (4xx), or nothing (5xx, aborted). */
export type Ending = 'done' | 'failed' | 'cancelled';

/** One admitted request. */
export interface Ticket {
  readonly number: number;
  readonly startedAtMs: number;
  readonly patienceMs: number;
  /** Whether its time shows how long a request takes without a queue. */
  readonly showsUsual: boolean;
  /** The requests of a trial that it is one of. */
  readonly cohort: Cohort | null;
  /** Its age when nobody waited for it any more; Infinity before. */
  leftMs: number;
}

/** The time from the first refusal until the queue is gone, with its figures. */
export class Episode {
  /** Maximum requests in the queue; 0 while the route only probes, because it yields and has yielded all. */
  limit = 1;
  ratePerMs = 0;
  /** The part of the queue that is used: less if requests in it are late, or a route of higher priority is crowded. */
  share = 1;
  refused = 0;
  /** The present proof of the limit; null after it succeeded, until the next one. */
  trial: Trial | null;
  proveAgainAtMs = 0;
  /** The rate at the latest proof; 0 before it, and after the route has yielded. */
  provenRatePerMs = 0;
  /** Length of a phase, in ms: a patience, as a power of 2, so that routes and processes agree. */
  readonly phaseMs: number;
  /** When a request was refused, or the queue was long. */
  lastFullAtMs: number;
  lastAdmissionAtMs: number;

  /** @param countsAll whether all requests in flight are the queue */
  constructor(
    readonly beganAtMs: number,
    readonly patienceMs: number,
    readonly countsAll: boolean,
  ) {
    this.trial = new Trial(beganAtMs, patienceMs);
    this.phaseMs = 2 ** Math.min(13, Math.max(8, Math.round(Math.log2(countsAll ? 2 * patienceMs : patienceMs))));
    this.lastFullAtMs = this.lastAdmissionAtMs = beganAtMs;
  }
}

/** The limiter of one route. */
export class RouteLimiter {
  /** Requests whose handlers have not ended, whether or not anybody waits for them. */
  inFlight = 0;
  /** Whether a route of higher priority is crowded, set from outside. */
  isYielding = false;
  /** The present episode; null while nothing is refused. */
  episode: Episode | null = null;
  readonly usual: UsualTime = new UsualTime();
  #lastNumber = 0;
  #freshNumber = 0;
  readonly #patience = new Patience();
  /** Slots that are over, the latest one first. */
  readonly #slots: Slot[] = [];
  #slot = new Slot();
  #tickAtMs = 0;
  #lessons = 0;
  /** When the next trial may begin, or before with twice as many requests in flight as in the trial that failed. */
  #nextTrialAtMs = 0;
  #triedInFlight = 0;

  /** @param load of the routes of a process */
  constructor(readonly load: SharedLoad = new SharedLoad()) {}

  /** Requests that a new one would wait for: those that arrived after the latest fresh one. */
  get ahead(): number {
    return this.episode?.countsAll ? this.inFlight : Math.min(this.inFlight, this.#lastNumber - this.#freshNumber);
  }

  /** Whether a request may begin. @param patienceMs how long its caller waits */
  admits(nowMs: number, patienceMs: number): boolean {
    if (nowMs >= this.#tickAtMs) this.tick(nowMs);
    const { episode } = this;
    if (episode === null) return true;
    const { ahead, usual } = this;
    const fits = ahead < episode.limit && ahead <= Math.max(patienceMs, LONG * usual.ms) * episode.ratePerMs;
    if (!fits) episode.lastFullAtMs = nowMs;
    // Handlers that never end bring the rate down for as long as they are waited for.
    const probeMs = Math.max(PROBE_MS, PROBE_REQUESTS * Math.min(1 / episode.ratePerMs, usual.ms));
    const isAdmitted = fits || nowMs - episode.lastAdmissionAtMs > probeMs;
    if (isAdmitted) episode.lastAdmissionAtMs = nowMs;
    else episode.refused += 1;
    return isAdmitted;
  }

  /** A request begins. */
  begin(nowMs: number, patienceMs: number): Ticket {
    const { episode } = this;
    const number = this.#lastNumber + 1;
    const isLesson = this.#lessons > 0 && (number <= FIRST_LESSONS || number % LESSON_EVERY === 0);
    const ahead = isLesson || episode !== null ? this.ahead : 0;
    if (isLesson) {
      this.#lessons -= 1;
      this.#patience.stated.add(patienceMs);
    }
    const showsUsual = isLesson && (episode === null ? this.usual.expect(ahead) : ahead === 0);
    this.inFlight += 1;
    this.#lastNumber = number;
    // A request that only probes is not part of the trial, nor one before the queue is full under the high limit.
    let cohort = (episode !== null && ahead < episode.limit && episode.trial?.cohort) || null;
    if (cohort?.isHigh && episode?.countsAll === false && ahead + 1 < FULL_SHARE * episode.limit) cohort = null;
    cohort?.begin(ahead + 1, this.load.inFlight);
    return { number, startedAtMs: nowMs, patienceMs, showsUsual, cohort, leftMs: Infinity };
  }

  /** The handler of a request has ended. */
  end(ticket: Ticket, nowMs: number, ending: Ending): void {
    if (nowMs >= this.#tickAtMs) this.tick(nowMs);
    const tookMs = nowMs - ticket.startedAtMs;
    ticket.cohort?.end(ending === 'done' ? tookMs : ticket.leftMs, this.load.inFlight);
    this.inFlight -= 1;
    if (ending === 'cancelled') return;
    const slot = this.#slot;
    slot.done += 1;
    if (ticket.leftMs === Infinity) {
      slot.outcomes += 1;
      if (tookMs > Math.max(ticket.patienceMs, LONG * this.usual.ms)) slot.missed += 1;
    }
    if (ending === 'failed') return;
    if (tookMs > this.usual.longMs) slot.slow += 1;
    if (ticket.showsUsual) this.usual.add(nowMs, tookMs);
    if (ticket.number < this.#freshNumber) return;
    this.#freshNumber = ticket.number;
    slot.fresh += 1;
    slot.quickestMs = Math.min(slot.quickestMs, tookMs);
  }

  /** Nobody waits for a request any more, whose handler still runs. @param isTimeout its client has not disconnected */
  abandon(ticket: Ticket, nowMs: number, isTimeout = false): void {
    if (ticket.leftMs < Infinity) return;
    ticket.leftMs = nowMs - ticket.startedAtMs;
    if (ticket.leftMs < this.usual.ms) return;
    this.#slot.outcomes += 1;
    this.#slot.missed += 1;
    if (!isTimeout) this.#patience.abandon(nowMs, ticket.leftMs);
  }

  /** Time has passed. To be called during an episode even if no request arrives. */
  tick(nowMs: number): void {
    if (nowMs < this.#tickAtMs) return;
    this.#tickAtMs = nowMs + SLOT_MS;
    this.#lessons = LESSONS;
    const slot = this.#slot;
    if (slot.done > 0) {
      slot.endedAt = nowMs;
      slot.ahead = this.ahead;
      this.#slots.unshift(slot);
      if (this.#slots.length > MAX_SLOTS) this.#slots.pop();
      this.#slot = new Slot();
      if (this.episode === null && slot.ahead > 0) this.#beginIfLate(nowMs);
    }
    if (this.episode !== null && !this.#steer(nowMs, this.episode)) this.episode = null;
  }

  /** Begins an episode if a queue makes requests late. */
  #beginIfLate(nowMs: number): void {
    if (nowMs < this.#nextTrialAtMs && this.inFlight < 2 * this.#triedInFlight + ENOUGH) return;
    const { ms: usualMs, longMs, isKnown } = this.usual;
    const { ms, firmMs } = this.#patience.of(nowMs, sumOf(this.#slots).outcomes);
    if (ms === Infinity) return;
    const isOvertaken = this.inFlight > OVERTAKEN * this.ahead;
    const isLate =
      (firmMs < Infinity && isGrowing(this.#slots, usualMs, Math.max(LATE_SHARE * firmMs, longMs))) ||
      isStanding(this.#slots, nowMs, Math.max(ms / 2, longMs), ms === firmMs ? 500 : 1000) ||
      (isOvertaken && isKnown && this.inFlight < 10 * this.ahead && ms === firmMs && isFailing(this.#slots, nowMs));
    if (!isLate) return;
    this.episode = new Episode(nowMs, ms, isOvertaken);
    this.load.routes.add(this);
    this.#triedInFlight = this.inFlight;
  }

  /** Sets the limit from the rate. @returns false if nobody was refused and the queue is short, or it does not help */
  #steer(nowMs: number, episode: Episode): boolean {
    const usualMs = this.usual.ms;
    const patienceMs = Math.max(episode.patienceMs, LONG * usualMs);
    if (this.ahead > SHORT_SHARE * episode.limit) episode.lastFullAtMs = nowMs;
    if (nowMs - episode.lastFullAtMs > Math.max(1000, usualMs)) return false;
    const phase = Math.floor((nowMs + this.load.originMs()) / episode.phaseMs);
    if (this.isYielding) {
      // The outcomes before a route yielded show nothing about its limit afterwards.
      episode.trial &&= new Trial(nowMs, episode.patienceMs);
      episode.provenRatePerMs = 0;
    } else if (!this.#isProven(nowMs, phase, episode)) return false;
    const { trial } = episode;
    const { missed, outcomes } = sumOf(this.#slots, nowMs, LATEST);
    const change = this.isYielding ? 0.9 : trial === null && missed > LATE_ENOUGH * outcomes ? 0.95 : 1.04;
    episode.share = Math.min(1, Math.max(MIN_SHARE, episode.share * change));
    const riseOfRate = rateOf(this.#slots, nowMs, Math.min(3000, Math.max(500, 3 * usualMs))) - episode.ratePerMs;
    const isFirst = episode.ratePerMs === 0;
    const weight = isFirst ? 1 : trial === null || riseOfRate > 0 ? RATE_WEIGHT : FALL_WEIGHT;
    // While the first queue is worked off, what shares its work among all requests does many of them at once.
    if (isFirst || trial === null || trial.phase !== undefined) episode.ratePerMs += weight * riseOfRate;
    const [low, high] = trial === null ? PROVEN_SHARES : TRIAL_SHARES;
    const isHigh = trial === null ? phase % 2 === 1 : trial.cohort.isHigh;
    const targetMs = usualMs + (isHigh ? high : low) * episode.share * (patienceMs - usualMs);
    const limit = episode.ratePerMs * targetMs;
    const isClosed = this.isYielding && episode.share === MIN_SHARE;
    // Small limits, too, must differ.
    episode.limit = isClosed ? 0 : Math.max(1, isHigh ? limit : Math.floor(limit));
    return true;
  }

  /** Whether the limit has proved itself, or still may. */
  #isProven(nowMs: number, phase: number, episode: Episode): boolean {
    const isCollapsed = episode.ratePerMs < PROVEN_RATE_SHARE * episode.provenRatePerMs;
    if (episode.trial === null && (isCollapsed || nowMs > episode.proveAgainAtMs)) {
      episode.trial = new Trial(nowMs, episode.patienceMs);
      // The rate is measured anew: a capacity that has fallen needs a smaller limit at once.
      if (isCollapsed) [episode.ratePerMs, episode.share] = [0, 1];
    }
    const { trial } = episode;
    const helps = trial?.look(nowMs, phase, this.load);
    if (helps === true) {
      episode.trial = null;
      episode.provenRatePerMs = episode.ratePerMs;
      episode.proveAgainAtMs = nowMs + Math.max(WAIT_MS, nowMs - episode.beganAtMs);
      this.#nextTrialAtMs = 0;
    } else if (trial !== null && helps === false)
      this.#nextTrialAtMs = nowMs + Math.max(WAIT_MS, WAIT_TRIALS * (nowMs - trial.beganAtMs));
    return helps !== false;
  }
}
