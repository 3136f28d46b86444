/*
 * Detects a queue that does not empty before one route, and then admits only the requests that will be done in time.
 *
 * Its caller reports requests and the time. It has no timer, and keeps a bounded number of figures.
 */

import { LONG, Patience, UsualTime } from './estimates.js';
import { isGrowing, isStanding, rateOf, Slot, SLOT_MS, sumOf } from './slots.js';

const MAX_SLOTS = 64;
/** After this time, in ms, without an admission one request is admitted: it may show that the queue is gone. */
const PROBE_MS = 500;
/** Slow routes are not probed before so many requests could be done, or the probes would be too much for them. */
const PROBE_REQUESTS = 4;
/** A queue in which requests would wait for this part of the patience is too long. */
const LATE_SHARE = 0.75;
/** The part of the time between usual time and patience that requests may take while others are refused. */
const TARGET_SHARE = 0.6;
/** If a larger part of the admitted requests is late, fewer are admitted, and the weight of one request in it. */
const LATE_ENOUGH = 0.02;
const OUTCOME_WEIGHT = 0.05;
/** Minimum part of its queue that a route uses; a route that yields is closed when it has come down to this part. */
const MIN_SHARE = 0.02;
/** An episode ends when the queue has been shorter than this part of its limit for a while. */
const SHORT_SHARE = 0.75;
/** Minimum requests without others before them whose time replaces the usual time of the route. */
const ENOUGH = 5;

/** The result of a request's handler: its work, an error that took no work (4xx), or nothing (5xx, aborted). */
export type Ending = 'done' | 'failed' | 'cancelled';

/** One admitted request. */
export interface Ticket {
  readonly number: number;
  readonly startedAtMs: number;
  readonly patienceMs: number;
  /** Whether its time shows how long a request takes without a queue. */
  readonly showsUsual: boolean;
  isOutcomeKnown: boolean;
}

/** The time from the first refusal until the queue is gone, with its figures. */
export class Episode {
  /** Maximum requests in the queue; 0 while the route only probes, because it yields and has yielded all. */
  limit = 1;
  ratePerMs = 0;
  /** The part of the queue that is used: less if requests in it are late, or a route of higher priority is crowded. */
  share = 1;
  /** The part of the recently admitted requests that is late. */
  lateShare = 0;
  refused = 0;
  /** The usual time as the requests of this episode show it that began with none before them. */
  readonly usual: UsualTime = new UsualTime();
  /** When a request was refused, or the queue was long. */
  lastFullAtMs: number;
  lastAdmissionAtMs: number;

  constructor(
    readonly beganAtMs: number,
    readonly patienceMs: number,
  ) {
    this.lastFullAtMs = beganAtMs;
    this.lastAdmissionAtMs = beganAtMs;
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
  #lastNumber = 0;
  #freshNumber = 0;
  #usual = new UsualTime();
  readonly #patience = new Patience();
  /** Slots that are over, the latest one first. */
  readonly #slots: Slot[] = [];
  #slot = new Slot();
  #slotAtMs = 0;

  /** How long a request takes without a queue, in ms; Infinity before the first one. */
  get usualMs(): number {
    return this.#usual.ms;
  }

  /** Requests that a new one would wait for: those that arrived after the latest fresh one. */
  get ahead(): number {
    return Math.min(this.inFlight, this.#lastNumber - this.#freshNumber);
  }

  /** Whether a request may begin. @param patienceMs how long its caller waits */
  admits(nowMs: number, patienceMs: number): boolean {
    this.tick(nowMs);
    const { episode } = this;
    if (episode === null) return true;
    const { ahead } = this;
    const fits = ahead < episode.limit && ahead <= Math.max(patienceMs, LONG * this.usualMs) * episode.ratePerMs;
    if (!fits) episode.lastFullAtMs = nowMs;
    // Handlers that never end bring the rate down for as long as they are waited for.
    const probeMs = Math.max(PROBE_MS, PROBE_REQUESTS * Math.min(1 / episode.ratePerMs, this.usualMs));
    if (fits || nowMs - episode.lastAdmissionAtMs > probeMs) {
      episode.lastAdmissionAtMs = nowMs;
      return true;
    }
    episode.refused += 1;
    return false;
  }

  /** A request begins. */
  begin(nowMs: number, patienceMs: number): Ticket {
    this.tick(nowMs);
    const showsUsual = this.episode === null ? this.#usual.expect(this.ahead) : this.ahead === 0;
    this.inFlight += 1;
    this.#lastNumber += 1;
    this.#patience.expect(patienceMs);
    return { number: this.#lastNumber, startedAtMs: nowMs, patienceMs, showsUsual, isOutcomeKnown: false };
  }

  /** The handler of a request has ended. */
  end(ticket: Ticket, nowMs: number, ending: Ending): void {
    this.tick(nowMs);
    this.inFlight -= 1;
    if (ending === 'cancelled') return;
    const slot = this.#slot;
    const tookMs = nowMs - ticket.startedAtMs;
    slot.done += 1;
    this.#settle(ticket, tookMs > Math.max(ticket.patienceMs, LONG * this.usualMs));
    if (ending === 'failed') return;
    if (ticket.showsUsual) this.#learn(ticket, nowMs, tookMs);
    if (ticket.number < this.#freshNumber) return;
    this.#freshNumber = ticket.number;
    slot.fresh += 1;
    if (tookMs < slot.quickestMs) slot.quickestMs = tookMs;
  }

  /** Takes in the time of a request that shows how long a request takes without a queue. */
  #learn({ startedAtMs }: Ticket, nowMs: number, tookMs: number): void {
    this.#usual.add(nowMs, tookMs);
    const { episode } = this;
    if (episode === null || startedAtMs < episode.beganAtMs || episode.usual === this.#usual) return;
    const { usual } = episode;
    usual.add(nowMs, tookMs);
    // The first requests of the route were quick by chance, so that its usual time looked like a queue.
    if (usual.count >= ENOUGH && usual.ms > LONG * this.usualMs) this.#usual = usual;
  }

  /** Nobody waits for a request any more, whose handler still runs. @param isTimeout its client has not disconnected */
  abandon(ticket: Ticket, nowMs: number, isTimeout = false): void {
    this.tick(nowMs);
    const ageMs = nowMs - ticket.startedAtMs;
    if (ageMs < this.usualMs) ticket.isOutcomeKnown = true;
    if (ticket.isOutcomeKnown) return;
    this.#settle(ticket, true);
    if (!isTimeout) this.#patience.abandon(nowMs, ageMs);
  }

  /** Counts a request once. */
  #settle(ticket: Ticket, isLate: boolean): void {
    if (ticket.isOutcomeKnown) return;
    ticket.isOutcomeKnown = true;
    this.#slot.outcomes += 1;
    if (isLate) this.#slot.missed += 1;
    const { episode } = this;
    // Requests that were in the queue before are late in any case.
    if (episode === null || ticket.startedAtMs < episode.beganAtMs) return;
    episode.lateShare += OUTCOME_WEIGHT * (Number(isLate) - episode.lateShare);
  }

  /** Time has passed. To be called during an episode even if no request arrives. */
  tick(nowMs: number): void {
    if (nowMs - this.#slotAtMs < SLOT_MS) return;
    this.#slotAtMs = nowMs;
    const slot = this.#slot;
    if (slot.done > 0) {
      slot.endedAt = nowMs;
      slot.ahead = this.ahead;
      this.#slots.unshift(slot);
      if (this.#slots.length > MAX_SLOTS) this.#slots.pop();
      this.#slot = new Slot();
      if (this.episode === null) this.#beginIfLate(nowMs);
    }
    if (this.episode !== null) this.#steer(nowMs, this.episode);
  }

  /** Begins an episode if a queue makes requests late. */
  #beginIfLate(nowMs: number): void {
    const { ms: usualMs, longMs } = this.#usual;
    const { ms, firmMs } = this.#patience.of(nowMs, sumOf(this.#slots).outcomes);
    if (ms === Infinity) return;
    const isLate =
      (firmMs < Infinity && isGrowing(this.#slots, usualMs, Math.max(LATE_SHARE * firmMs, longMs))) ||
      isStanding(this.#slots, nowMs, Math.max(ms / 2, longMs), ms === firmMs ? 500 : 1000);
    if (isLate) this.episode = new Episode(nowMs, ms);
  }

  /** Sets the limit from the present rate; ends the episode once nobody was refused, and the queue is short. */
  #steer(nowMs: number, episode: Episode): void {
    const { usualMs } = this;
    const patienceMs = Math.max(this.#patience.keep(nowMs), LONG * usualMs);
    if (this.ahead > SHORT_SHARE * episode.limit) episode.lastFullAtMs = nowMs;
    if (nowMs - episode.lastFullAtMs > Math.max(1000, usualMs)) {
      this.episode = null;
      return;
    }
    const change = this.isYielding ? 0.8 : episode.lateShare > LATE_ENOUGH ? 0.95 : 1.04;
    episode.share = Math.min(1, Math.max(MIN_SHARE, episode.share * change));
    const ratePerMs = rateOf(this.#slots, nowMs, Math.min(3000, Math.max(500, 3 * usualMs)));
    // After the load, few requests arrive and so few are done: the rate that was possible is forgotten slowly.
    episode.ratePerMs = Math.max(ratePerMs, 0.98 * episode.ratePerMs);
    const targetMs = usualMs + TARGET_SHARE * episode.share * (patienceMs - usualMs);
    const isClosed = this.isYielding && episode.share === MIN_SHARE;
    episode.limit = isClosed ? 0 : Math.max(1, episode.ratePerMs * targetMs);
  }
}
