/**
 * Counts asynchronous tasks (SPEC 2.2): requests being handled, and promises that the service asked to track.
 */

/** The tasks of one application. */
export class Tasks {
  readonly #activeRequests: () => number;
  #tracked = 0;

  constructor(activeRequests: () => number) {
    this.#activeRequests = activeRequests;
  }

  /** Tasks that are not settled. */
  get active(): number {
    return this.#activeRequests() + this.#tracked;
  }

  /** Active tasks and the resources that keep the event loop alive. */
  get total(): number {
    return this.active + process.getActiveResourcesInfo().length;
  }

  /** Counts a promise until it settles. @throws {TypeError} for anything else */
  track(promise: PromiseLike<unknown>, onRejection: (reason: unknown) => void): void {
    if (typeof (promise as Partial<PromiseLike<unknown>> | null)?.then !== 'function') throw new TypeError('track takes a promise');
    this.#tracked += 1;
    Promise.resolve(promise).then(
      () => {
        this.#tracked -= 1;
      },
      (reason: unknown) => {
        this.#tracked -= 1;
        onRejection(reason);
      },
    );
  }
}
