/*
 * How long the callers of a route wait for a reply: as long as their deadlines and the route's timeout say, or until
 * the age at which many of them disconnected.
 */

import { Quantile } from './quantile.js';

const MAX_AGES = 15;
const MIN_AGES = 5;
/** How long an age counts as recent, and how long the patience derived from recent ages is remembered, in ms. */
const RECENT_MS = 10_000;
const REMEMBERED_MS = 60_000;

/** The patience of a route. */
export interface Waiting {
  readonly ms: number;
  /** The same, but Infinity if callers left at ages so different that they had other reasons than a time limit. */
  readonly firmMs: number;
}

/** Learns the patience of one route's callers. */
export class Patience {
  readonly #stated = new Quantile(0.25);
  readonly #ages: { readonly atMs: number; readonly ms: number }[] = [];
  #seen: Waiting | undefined;
  #seenAtMs = -Infinity;

  /** A request arrived that waits so long. @param ms Infinity if it has neither deadline nor timeout */
  expect(ms: number): void {
    this.#stated.add(ms);
  }

  /** A client disconnected from a request of that age. */
  abandon(nowMs: number, ageMs: number): void {
    this.#ages.push({ atMs: nowMs, ms: ageMs });
    if (this.#ages.length > MAX_AGES) this.#ages.shift();
  }

  /** Keeps the present patience: while requests are refused, the others are quick, and nobody leaves. */
  hold(nowMs: number): void {
    this.#seenAtMs = nowMs;
  }

  /**
   * @param outcomes number of recent requests, of which many have to be abandoned
   * @returns undefined if nobody has a deadline, and nobody disconnects
   */
  of(nowMs: number, outcomes: number): Waiting | undefined {
    const recent = this.#ages.filter(({ atMs }) => nowMs - atMs < RECENT_MS);
    if (recent.length >= Math.max(MIN_AGES, Math.min(MAX_AGES, 0.1 * outcomes))) {
      const sorted = recent.map(({ ms }) => ms).sort((a, b) => a - b);
      const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] as number;
      this.#seen = { ms: at(0.5), firmMs: at(0.9) < 1.2 * at(0.1) ? at(0.5) : Infinity };
      this.#seenAtMs = nowMs;
    }
    if (nowMs - this.#seenAtMs > REMEMBERED_MS) this.#seen = undefined;
    const statedMs = this.#stated.ms ?? Infinity;
    const ms = Math.min(statedMs, this.#seen?.ms ?? Infinity);
    return ms === Infinity ? undefined : { ms, firmMs: Math.min(statedMs, this.#seen?.firmMs ?? Infinity) };
  }
}
