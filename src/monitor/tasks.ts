/*
 * Counts asynchronous tasks (SPEC 2.2): requests being handled, jobs, and promises that the service asked to track.
 */

import { show } from '../base/options-check.js';
import { isThenable } from '../base/promises.js';
import type { Jobs } from '../job/job.js';

export class Tasks {
  readonly #tracked = new Set<Promise<unknown>>();

  /** @param requests of each listener */
  constructor(
    readonly requests: readonly { readonly active: number }[],
    readonly jobs: Jobs,
  ) {}

  /** Number of requests being handled, and of jobs and tracked promises that are not settled. */
  get active(): number {
    return this.requests.reduce((sum, { active }) => sum + active, this.#tracked.size);
  }

  /** Number of tracked promises that are not settled; each job is one. */
  get tracked(): number {
    return this.#tracked.size;
  }

  /** Number of active tasks and of resources that keep the event loop alive. */
  get total(): number {
    return this.active + process.getActiveResourcesInfo().length;
  }

  /** Counts a promise until it settles. @throws {TypeError} for anything else */
  track(promise: PromiseLike<unknown>, onRejection: (reason: unknown) => void): void {
    if (!isThenable(promise))
      throw new TypeError(`track() got ${show(promise)}; give a promise: call the function that returns one`);
    const settled: Promise<unknown> = Promise.resolve(promise)
      .catch(onRejection)
      .then(() => this.#tracked.delete(settled));
    this.#tracked.add(settled);
  }

  /** Resolves as soon as no tracked promise is open. */
  async settled(): Promise<void> {
    while (this.#tracked.size > 0) await Promise.all(this.#tracked);
  }
}
