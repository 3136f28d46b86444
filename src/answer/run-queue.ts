/*
 * Requests that wait for the CPU.
 *
 * Handlers that keep the event loop busy would make all further requests wait in the kernel, where nobody sees how many
 * there are, how old they are, and who has left. So once handlers have used up a slice of one turn, further requests
 * are parsed and wait here. They run in the order of their arrival. Routes take turns, so that a route that needs much
 * of the CPU does not hold up the others.
 */

import { monotonicNow, setImmediate } from '../base/clock.js';

/** How long handlers may run before the event loop reads from its sockets again, in ms. */
const SLICE_MS = 10;
/**
 * How long requests are taken in before handlers run again, in ms. The event loop accepts one connection in each turn
 * (libuv 1.45), so with one turn for each slice most new connections would wait in the kernel.
 */
const INTAKE_MS = 3;
/** A handler that runs for less is not counted, to spare quick routes the work. */
export const NOTICED_MS = 0.2;

/** The waiting requests of one route, the first one first. */
export type Lane = (() => void)[];

/** The waiting requests of one application. */
export class RunQueue {
  /** Lanes with waiting requests, the next one first. */
  readonly #lanes: Lane[] = [];
  /** Requests that have arrived so far. */
  arrivals = 0;
  /** Whether a request has to wait. */
  isBusy = false;
  #spentMs = 0;
  #isScheduled = false;
  #seenArrivals = 0;
  #intakeAtMs = 0;

  /** A handler ran for so long, {@link NOTICED_MS} at least, without waiting for anything. */
  spend(ms: number): void {
    this.#spentMs += ms;
    if (this.#spentMs > SLICE_MS) this.isBusy = true;
    this.#schedule();
  }

  /** Runs a function, which must not throw, when it is its lane's turn. */
  add(lane: Lane, run: () => void): void {
    if (lane.push(run) === 1) this.#lanes.push(lane);
    this.isBusy = true;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#runSlice);
  }

  readonly #runSlice = (): void => {
    this.#isScheduled = false;
    this.#spentMs = 0;
    this.isBusy = this.#lanes.length > 0;
    const startedAtMs = monotonicNow();
    if (this.arrivals !== this.#seenArrivals && startedAtMs - this.#intakeAtMs < INTAKE_MS) {
      this.#seenArrivals = this.arrivals;
      this.#schedule();
      return;
    }
    for (let lane = this.#lanes.shift(); lane !== undefined; lane = this.#lanes.shift()) {
      const run = lane.shift() as () => void;
      if (lane.length > 0) this.#lanes.push(lane);
      run();
      if (monotonicNow() - startedAtMs > SLICE_MS) break;
    }
    this.#intakeAtMs = monotonicNow();
    this.isBusy = this.#lanes.length > 0 || this.#spentMs > SLICE_MS;
    if (this.#lanes.length > 0) this.#schedule();
  };
}
