/*
 * Keeps figures about the latest requests of one route, in short slots of time, and finds the signs of a standing
 * queue.
 *
 * Only fresh requests show how long the queue is: requests done before every request that arrived later. A long poll, a
 * slow report and requests left over from an hour ago are overtaken, and show nothing.
 */

/** Length of a slot, in ms. */
export const SLOT_MS = 50;
/** A rate is measured over at least so many requests. */
const MIN_DONE = 8;
/** How much longer than late a queue has to be if one request shows it: less, the more there are. */
const DOUBT = 3;
/** Fewer requests than these are before another by chance: no queue that grows. */
const MIN_QUEUE = 6;

/** Requests of one slot. It lasts until a request is done, so that slow routes are remembered for longer. */
export class Slot {
  endedAt = 0;
  /** Requests whose work was done, in time or not. */
  done = 0;
  /** Requests done before every request that arrived later. */
  fresh = 0;
  /** Shortest time of a fresh request, in ms. */
  quickestMs: number = Infinity;
  /** Requests of which it became known whether they were in time. */
  outcomes = 0;
  /** Requests that took longer than their caller waited. */
  missed = 0;
  /** Requests in the queue at the end: those that arrived after the latest fresh one. */
  ahead = 0;

  add({ done, fresh, quickestMs, outcomes, missed }: Slot): void {
    this.done += done;
    this.fresh += fresh;
    this.quickestMs = Math.min(this.quickestMs, quickestMs);
    this.outcomes += outcomes;
    this.missed += missed;
  }
}

/** Slots of one route that are over, the latest one first; one or more. */
type Slots = readonly Slot[];

/** Requests done per ms in the time before now, or in a longer time if there were few. */
export function rateOf(slots: Slots, nowMs: number, windowMs: number): number {
  let done = 0;
  let sinceMs = nowMs - SLOT_MS;
  for (const slot of slots) {
    if (nowMs - slot.endedAt > windowMs && done >= MIN_DONE) break;
    done += slot.done;
    sinceMs = Math.min(sinceMs, slot.endedAt - SLOT_MS);
  }
  return done / (nowMs - sinceMs);
}

/**
 * Whether the queue grows so that requests which arrive now will be late: over some time even the quickest request
 * took longer and longer, the number of requests rose, and at the highest rate seen the latest one takes too long.
 * The fewer requests were done in that time, the more hopeless the queue has to be.
 *
 * @param usualMs how long a request takes without a queue
 * @param lateMs the time from which on a request is late
 */
export function isGrowing(slots: Slots, usualMs: number, lateMs: number): boolean {
  const last = slots[0] as Slot;
  const waitMs = last.ahead / bestRate(slots, last);
  if (waitMs <= lateMs || last.ahead < MIN_QUEUE) return false;
  // After a stop of the process, or of what it depends on, requests took long for another reason than a queue.
  const gapMs = Math.max(5 * SLOT_MS, 3 * usualMs);
  const gap = slots.findIndex(({ endedAt }, i) => endedAt - (slots[i + 1]?.endedAt ?? endedAt) > gapMs);
  const longest = gap === -1 ? slots.length : gap;
  for (let length = 2; length <= longest; length += 1 + (length >> 2)) {
    const start = slots[length - 1] as Slot;
    const late = sumOf(slots.slice(0, length - (length >> 1)));
    const early = sumOf(slots.slice(length - (length >> 1), length));
    if (late.quickestMs < usualMs) return false;
    if (early.fresh === 0 || late.fresh === 0 || waitMs < (1 + DOUBT / (early.done + late.done)) * lateMs) continue;
    const roseMs = late.quickestMs - early.quickestMs;
    const isRising = roseMs > 0.07 * (last.endedAt - start.endedAt) && roseMs > 0.15 * early.quickestMs;
    if (isRising && last.ahead > 1.1 * start.ahead) return true;
  }
  return false;
}

/**
 * Whether the queue does not empty: for a while even the quickest request took long, and most requests were late.
 *
 * @param longMs a time that no request takes without a queue
 * @param leastMs the shortest while
 */
export function isStanding(slots: Slots, nowMs: number, longMs: number, leastMs: number): boolean {
  const sum = new Slot();
  for (const slot of slots) {
    sum.add(slot);
    if (sum.quickestMs <= longMs) return false;
    const whileMs = leastMs * Math.max(1, Math.min(sum.quickestMs / 500, 3));
    if (sum.fresh >= 12 && nowMs - slot.endedAt >= whileMs) return sum.missed > 0.5 * sum.outcomes;
  }
  return false;
}

/** Highest rate, per ms, at which requests were done over any time until now that saw some; Infinity without one. */
function bestRate(slots: Slots, last: Slot): number {
  let best = 0;
  let done = 0;
  for (const slot of slots) {
    if (done >= MIN_DONE / 2) best = Math.max(best, done / (last.endedAt - slot.endedAt));
    done += slot.done;
  }
  return best === 0 ? Infinity : best;
}

export function sumOf(slots: Slots): Slot {
  const sum = new Slot();
  for (const slot of slots) sum.add(slot);
  return sum;
}
