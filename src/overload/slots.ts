/*
 * Keeps figures about the latest requests of one route, in short slots of time, and finds the signs of a standing
 * queue.
 *
 * Only fresh requests show how long the queue is: requests done before every request that arrived later. A long poll, a
 * slow report and requests left over from an hour ago are overtaken, and show nothing.
 */

/** Length of a slot, in ms. */
export const SLOT_MS = 50;
const MAX_SLOTS = 64;

/** Requests of one slot; a slot without requests is not kept. */
export interface Slot {
  endedAt: number;
  /** Requests whose work was done, in time or not. */
  done: number;
  /** Requests done before every request that arrived later. */
  fresh: number;
  /** Shortest time of a fresh request, in ms. */
  quickestMs: number;
  /** Requests of which it became known whether they were in time. */
  outcomes: number;
  /** Requests that took longer than their caller waited. */
  missed: number;
  /** Requests in the queue at the end: those that arrived after the latest fresh one. */
  ahead: number;
}

const emptySlot = (): Slot => ({
  endedAt: 0,
  done: 0,
  fresh: 0,
  quickestMs: Infinity,
  outcomes: 0,
  missed: 0,
  ahead: 0,
});

/** The latest slots of one route. */
export class Slots {
  readonly #slots: Slot[] = [];
  /** The slot that is not over yet. */
  current: Slot = emptySlot();

  /** Ends the current slot. @returns whether anything happened in it */
  end(nowMs: number, ahead: number): boolean {
    const { current } = this;
    if (current.done === 0 && current.outcomes === 0) return false;
    current.endedAt = nowMs;
    current.ahead = ahead;
    this.#slots.push(current);
    const oldest = this.#slots.length > MAX_SLOTS ? this.#slots.shift() : undefined;
    this.current = Object.assign(oldest ?? {}, emptySlot());
    return true;
  }

  get outcomes(): number {
    return this.#slots.reduce((sum, { outcomes }) => sum + outcomes, 0);
  }

  /** Requests done per ms in the time before now. */
  rate(nowMs: number, windowMs: number): number {
    let done = 0;
    let sinceMs = nowMs - SLOT_MS;
    for (let i = this.#slots.length - 1; i >= 0; i -= 1) {
      const slot = this.#slots[i] as Slot;
      if (nowMs - slot.endedAt > windowMs) break;
      done += slot.done;
      sinceMs = Math.min(sinceMs, slot.endedAt - SLOT_MS);
    }
    return done / (nowMs - sinceMs);
  }

  /**
   * Whether the queue grows so that requests which arrive now will be late: over some time even the quickest request
   * took longer and longer, the number of requests rose, and at the highest rate seen the latest one takes too long.
   *
   * @param usualMs how long a request takes without a queue
   * @param lateMs the time from which on a request is late
   */
  isGrowing(usualMs: number, lateMs: number): boolean {
    const slots = this.#slots;
    const last = slots[slots.length - 1];
    if (last === undefined || last.ahead <= this.#bestRate() * lateMs) return false;
    // After a stop of the process, or of what it depends on, requests took long for another reason than a queue.
    const gapMs = Math.max(5 * SLOT_MS, 3 * usualMs);
    for (let length = 2; length <= slots.length; length += 1 + (length >> 2)) {
      const first = slots.length - length;
      const middle = first + (length >> 1);
      const early = summarize(slots, first, middle, gapMs);
      const late = summarize(slots, middle, slots.length, gapMs);
      if (early === null || late === null || late.quickestMs < 1.3 * usualMs) return false;
      if (early.fresh < 2 || late.fresh < 3 || early.done + late.done < 8) continue;
      const start = slots[first] as Slot;
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
  isStanding(nowMs: number, longMs: number, leastMs: number): boolean {
    const sum = emptySlot();
    for (let i = this.#slots.length - 1; i >= 0; i -= 1) {
      const slot = this.#slots[i] as Slot;
      sum.quickestMs = Math.min(sum.quickestMs, slot.quickestMs);
      if (sum.quickestMs <= longMs) return false;
      sum.fresh += slot.fresh;
      sum.outcomes += slot.outcomes;
      sum.missed += slot.missed;
      const whileMs = leastMs * Math.max(1, Math.min(sum.quickestMs / 500, 3));
      if (sum.fresh >= 12 && nowMs - slot.endedAt >= whileMs) return sum.missed > 0.5 * sum.outcomes;
    }
    return false;
  }

  /** Whether in both halves of a time some request was quick, so that there is no queue. */
  isQuick(nowMs: number, quickMs: number, windowMs: number): boolean {
    const halves = [emptySlot(), emptySlot()] as const;
    for (let i = this.#slots.length - 1; i >= 0; i -= 1) {
      const slot = this.#slots[i] as Slot;
      const agoMs = nowMs - slot.endedAt;
      if (agoMs > windowMs) break;
      const half = halves[agoMs < windowMs / 2 ? 0 : 1];
      half.quickestMs = Math.min(half.quickestMs, slot.quickestMs);
      half.fresh += slot.fresh;
    }
    return halves.every(({ fresh, quickestMs }) => fresh >= 3 && quickestMs < quickMs);
  }

  /** Highest rate, per ms, at which requests were done over any time that saw enough of them. */
  #bestRate(): number {
    const slots = this.#slots;
    const last = slots[slots.length - 1] as Slot;
    let best = 0;
    let { done } = last;
    for (let i = slots.length - 2; i >= 0; i -= 1) {
      const slot = slots[i] as Slot;
      if (done >= 8) best = Math.max(best, done / (last.endedAt - slot.endedAt));
      done += slot.done;
    }
    return best === 0 ? Infinity : best;
  }
}

/** The sum of some slots; null if nothing happened for longer than the gap. */
function summarize(slots: readonly Slot[], from: number, to: number, gapMs: number): Slot | null {
  const sum = emptySlot();
  for (let i = from; i < to; i += 1) {
    const slot = slots[i] as Slot;
    if (i > 0 && slot.endedAt - (slots[i - 1] as Slot).endedAt > gapMs) return null;
    sum.done += slot.done;
    sum.fresh += slot.fresh;
    sum.quickestMs = Math.min(sum.quickestMs, slot.quickestMs);
  }
  return sum;
}
