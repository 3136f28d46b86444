/*
 * Detects a queue that does not empty before one route, and then admits only the requests that will be done in time.
 *
 * Its caller reports requests and the time. It has no timer, and keeps a bounded number of figures.
 */

import { Patience } from './patience.js';
import { Quantile } from './quantile.js';
import { SLOT_MS, Slots } from './slots.js';

/** How long the usual time of a route is remembered, in ms: two of these at most. */
const EPOCH_MS = 300_000;
/** A request is admitted every so often, in ms, however long the queue: its time may show that the queue is gone. */
const PROBE_MS = 500;
/** A queue in which requests would wait for this part of the patience is too long. */
const LATE_SHARE = 0.75;
/** The part of the time between usual time and patience that requests may take while others are refused. */
const TARGET_SHARE = 0.6;

/** The result of a request's handler: its work, an error that took no work (4xx), or nothing (5xx, aborted). */
export type Ending = 'done' | 'failed' | 'cancelled';

/** One admitted request. */
export interface Ticket {
  readonly number: number;
  readonly startedAtMs: number;
  readonly patienceMs: number;
  isOutcomeKnown: boolean;
}

/** The time from the first refusal to the last, with its figures. */
export interface Episode {
  readonly beganAtMs: number;
  readonly patienceMs: number;
  /** Maximum requests in the queue. */
  limit: number;
  ratePerMs: number;
  /** The part of the limit that routes of higher priority leave. */
  share: number;
  refused: number;
  lastRefusalAtMs: number;
  lastAdmissionAtMs: number;
}

/** The limiter of one route. */
export class RouteLimiter {
  /** Requests whose handlers have not ended, whether or not anybody waits for them. */
  inFlight = 0;
  /** Whether a route of higher priority is short of room, set from outside. */
  isYielding = false;
  #episode: Episode | null = null;
  #lastNumber = 0;
  #freshNumber = 0;
  readonly #times = new Quantile(0.75);
  #usualMs = Infinity;
  #formerUsualMs = Infinity;
  #epochAtMs = 0;
  readonly #patience = new Patience();
  readonly #slots = new Slots();
  #slotAtMs = 0;

  /** The present episode; null while nothing is refused. */
  get episode(): Episode | null {
    return this.#episode;
  }

  /** How long a request takes without a queue, in ms; Infinity before the first one. */
  get usualMs(): number {
    const ms = Math.min(this.#usualMs, this.#formerUsualMs);
    return ms === Infinity ? (this.#times.ms ?? Infinity) : ms;
  }

  /** Requests that a new one would wait for: those that arrived after the latest fresh one. */
  get ahead(): number {
    return Math.min(this.inFlight, this.#lastNumber - this.#freshNumber);
  }

  /** Whether a request may begin. @param patienceMs how long its caller waits */
  admits(nowMs: number, patienceMs: number): boolean {
    this.tick(nowMs);
    const episode = this.#episode;
    if (episode === null) return true;
    const { ahead } = this;
    const fits = ahead < episode.limit && ahead <= patienceMs * episode.ratePerMs;
    if (!fits) episode.lastRefusalAtMs = nowMs;
    if (fits || nowMs - episode.lastAdmissionAtMs > PROBE_MS) {
      episode.lastAdmissionAtMs = nowMs;
      return true;
    }
    episode.refused += 1;
    return false;
  }

  /** A request begins. */
  begin(nowMs: number, patienceMs: number): Ticket {
    this.tick(nowMs);
    this.inFlight += 1;
    this.#lastNumber += 1;
    this.#patience.expect(patienceMs);
    return { number: this.#lastNumber, startedAtMs: nowMs, patienceMs, isOutcomeKnown: false };
  }

  /** The handler of a request has ended. */
  end(ticket: Ticket, nowMs: number, ending: Ending): void {
    this.tick(nowMs);
    this.inFlight -= 1;
    if (ending === 'cancelled') return;
    const { current } = this.#slots;
    const tookMs = nowMs - ticket.startedAtMs;
    current.done += 1;
    if (!ticket.isOutcomeKnown) {
      current.outcomes += 1;
      if (tookMs > ticket.patienceMs) current.missed += 1;
    }
    if (ending === 'failed') return;
    if (this.#episode === null) this.#times.add(tookMs);
    if (ticket.number < this.#freshNumber) return;
    this.#freshNumber = ticket.number;
    current.fresh += 1;
    if (tookMs < current.quickestMs) current.quickestMs = tookMs;
  }

  /** Nobody waits for a request any more, whose handler still runs. @param isTimeout its client has not disconnected */
  abandon(ticket: Ticket, nowMs: number, isTimeout = false): void {
    this.tick(nowMs);
    if (ticket.isOutcomeKnown) return;
    ticket.isOutcomeKnown = true;
    const ageMs = nowMs - ticket.startedAtMs;
    if (ageMs < this.usualMs) return;
    this.#slots.current.outcomes += 1;
    this.#slots.current.missed += 1;
    if (!isTimeout) this.#patience.abandon(nowMs, ageMs);
  }

  /** Time has passed. To be called during an episode even if no request arrives. */
  tick(nowMs: number): void {
    if (nowMs - this.#slotAtMs < SLOT_MS) return;
    this.#slotAtMs = nowMs;
    const isSeen = this.#slots.end(nowMs, this.ahead);
    if (this.#episode !== null) this.#steer(nowMs, this.#episode);
    else if (isSeen) {
      this.#learn(nowMs);
      this.#judge(nowMs);
    }
  }

  /** The usual time is the shortest that requests took recently: a queue that builds up slowly must not look usual. */
  #learn(nowMs: number): void {
    if (nowMs - this.#epochAtMs > EPOCH_MS) {
      this.#epochAtMs = nowMs;
      this.#formerUsualMs = this.#usualMs;
      this.#usualMs = Infinity;
    }
    if (this.#times.isSettled) this.#usualMs = Math.min(this.#usualMs, this.#times.ms ?? Infinity);
  }

  /** Begins an episode if a queue makes requests late. */
  #judge(nowMs: number): void {
    const { usualMs } = this;
    const patience = this.#patience.of(nowMs, this.#slots.outcomes);
    // A patience shorter than the usual time is nobody's: no limit can satisfy it.
    if (patience === undefined || patience.ms < 1.25 * usualMs) return;
    const { ms, firmMs } = patience;
    const isFirm = ms === firmMs;
    if (
      (firmMs < Infinity && this.#slots.isGrowing(usualMs, Math.max(LATE_SHARE * firmMs, 2 * usualMs))) ||
      this.#slots.isStanding(nowMs, Math.max(ms / 2, 2 * usualMs), isFirm ? 500 : 1000)
    ) {
      this.#episode = {
        beganAtMs: nowMs,
        patienceMs: ms,
        limit: 1,
        ratePerMs: 0,
        share: 1,
        refused: 0,
        lastRefusalAtMs: nowMs,
        lastAdmissionAtMs: nowMs,
      };
      this.#steer(nowMs, this.#episode);
    }
  }

  /** Sets the limit from the present rate; ends the episode once nobody was refused, or there is no queue. */
  #steer(nowMs: number, episode: Episode): void {
    const { usualMs } = this;
    this.#patience.hold(nowMs);
    const patienceMs = this.#patience.of(nowMs, Infinity)?.ms ?? Infinity;
    const targetMs = usualMs + TARGET_SHARE * Math.max(0, patienceMs - usualMs);
    const calmMs = Math.max(500, 1.5 * targetMs);
    const quickMs = usualMs + 0.3 * (targetMs - usualMs);
    // While a route yields, its few requests are quick although the others would find a queue.
    const mayBeQuick = episode.share === 1 && nowMs - episode.beganAtMs > calmMs;
    if (
      nowMs - episode.lastRefusalAtMs > Math.max(1000, usualMs) ||
      (mayBeQuick && this.#slots.isQuick(nowMs, quickMs, calmMs))
    ) {
      this.#episode = null;
      return;
    }
    episode.share = this.isYielding ? Math.max(0.02, episode.share * 0.8) : Math.min(1, episode.share * 1.04);
    episode.ratePerMs = this.#slots.rate(nowMs, Math.min(3000, Math.max(500, 3 * usualMs)));
    episode.limit = Math.max(1, episode.ratePerMs * targetMs * episode.share);
  }
}
